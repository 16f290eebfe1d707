//! A measured quantity: a lower and an upper bound, a unit, and a time. Its words follow from the
//! range alone.

use super::{LITTLE_CPUS, count_of_cpus, cpus, percent, spent};

/// The unit of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// CPUs.
    Cpus,
    /// Percent of all CPUs, whose number is unknown.
    PercentOfMachine,
    /// Percent of the busy samples of a profile.
    PercentOfBusy,
    /// Seconds of CPU.
    Seconds,
}

/// The time of a measurement, if it is not the time that was watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Since each process began.
    Life,
    /// Since the machine started.
    Boot,
}

/// A lower and an upper bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The lower bound: this much is shown.
    pub least: f64,
    /// The upper bound: the evidence allows no more.
    pub most: f64,
    /// The unit.
    pub of: Of,
    /// The time of the measurement; `None` for the time that was watched.
    pub over: Option<Over>,
}

/// Bounds nearer to each other than this part are one figure.
const ONE_FIGURE: f64 = 0.15;
/// A lower bound below this part of the upper one is as good as zero.
const NOTHING: f64 = 0.05;

impl Range {
    /// A measured figure.
    pub fn exact(value: f64, of: Of) -> Self {
        Self { least: value, most: value, of, over: None }
    }

    /// A figure between two bounds.
    pub fn between(least: f64, most: f64, of: Of) -> Self {
        Self { least: least.min(most), most, of, over: None }
    }

    /// The same over another time.
    pub fn over(self, over: Option<Over>) -> Self {
        Self { over, ..self }
    }

    /// The figure for order and sums.
    pub fn middle(&self) -> f64 {
        f64::midpoint(self.least, self.most)
    }

    /// The range, if it has this unit.
    pub fn of(self, of: Of) -> Option<Self> {
        (self.of == of).then_some(self)
    }

    /// As text: `3.8 CPUs`, `0.4 to 0.6 CPUs`, `at most 4% of all CPUs`.
    pub fn words(&self) -> String {
        let figure = |value: f64| match self.of {
            Of::Cpus => cpus(value),
            Of::PercentOfMachine => format!("{} of all CPUs", percent(value)),
            Of::PercentOfBusy => format!("{} of the busy samples", percent(value)),
            Of::Seconds => format!("{} since it began", spent(value)),
        };
        let (least, most) = (self.least, self.most);
        let is_little = self.of == Of::Cpus && most < LITTLE_CPUS;
        if is_little || most - least <= ONE_FIGURE * most {
            return figure(self.middle());
        }
        if least <= NOTHING * most {
            return format!("at most {}", figure(most));
        }
        let bare = match self.of {
            Of::Cpus => count_of_cpus(least),
            Of::PercentOfMachine | Of::PercentOfBusy => percent(least),
            Of::Seconds => spent(least),
        };
        format!("{bare} to {}", figure(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_follow_from_the_range() {
        for (least, most, of, words) in [
            (3.8, 3.8, Of::Cpus, "3.8 CPUs"),
            (0.42, 0.6, Of::Cpus, "0.42 to 0.60 CPUs"),
            (0.0, 0.04, Of::Cpus, "at most 0.04 CPUs"),
            (0.0, 4.0, Of::PercentOfMachine, "at most 4.0% of all CPUs"),
            (60.0, 64.0, Of::PercentOfBusy, "62% of the busy samples"),
            (512.0, 512.0, Of::Seconds, "512 s of CPU since it began"),
            (0.0, 0.0, Of::Cpus, "0 CPUs"),
        ] {
            assert_eq!(Range::between(least, most, of).words(), words);
        }
    }
}
