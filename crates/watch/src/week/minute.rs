//! A minute during its measurement: mean, minimum and maximum of each series.
//!
//! A minute may contain steps of one second and of ten; each counts by its length.

use hashbrown::HashMap;

use super::row::Spread;

/// How long a minute is.
pub const MINUTE_MS: u64 = 60_000;
/// A step counts for at most this time, whatever the clock says.
const STEP_MS_MAX: u64 = 15_000;

/// The minute that is measured now.
#[derive(Debug, Default)]
pub(crate) struct Minute {
    /// When it began, in milliseconds since the Unix epoch: a multiple of a minute.
    begins_ms: u64,
    last_ms: u64,
    sums: HashMap<String, Sum>,
}

#[derive(Debug, Clone, Copy)]
struct Sum {
    weighted: f64,
    weight: f64,
    min: f32,
    max: f32,
}

/// A minute that is over.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Over {
    pub(super) begins_ms: u64,
    pub(super) series: Vec<(String, Spread)>,
}

impl Minute {
    /// Adds a step; gives the minute before if this is the first one of the next.
    pub(crate) fn add(&mut self, time_ms: u64, values: &[(String, f64)]) -> Option<Over> {
        let begins_ms = time_ms - time_ms % MINUTE_MS;
        let over = (begins_ms != self.begins_ms).then(|| self.finish(begins_ms)).flatten();
        let since_ms = time_ms.saturating_sub(self.last_ms).clamp(1, STEP_MS_MAX);
        self.last_ms = time_ms;
        #[expect(clippy::cast_precision_loss, reason = "some milliseconds")]
        let weight = since_ms as f64;
        for (name, value) in values {
            #[expect(clippy::cast_possible_truncation, reason = "four digits are kept")]
            let short = *value as f32;
            if !short.is_finite() {
                continue;
            }
            if let Some(sum) = self.sums.get_mut(name) {
                sum.weighted += value * weight;
                sum.weight += weight;
                sum.min = sum.min.min(short);
                sum.max = sum.max.max(short);
            } else {
                let sum = Sum { weighted: value * weight, weight, min: short, max: short };
                self.sums.insert(name.clone(), sum);
            }
        }
        over
    }

    fn finish(&mut self, next_ms: u64) -> Option<Over> {
        let begins_ms = std::mem::replace(&mut self.begins_ms, next_ms);
        let sums = self.sums.drain();
        #[expect(clippy::cast_possible_truncation, reason = "four digits are kept")]
        let spread = |sum: Sum| Spread {
            mean: ((sum.weighted / sum.weight) as f32).clamp(sum.min, sum.max),
            min: sum.min,
            max: sum.max,
        };
        let mut series: Vec<_> = sums.map(|(name, sum)| (name, spread(sum))).collect();
        series.sort_by(|a, b| a.0.cmp(&b.0));
        (!series.is_empty()).then_some(Over { begins_ms, series })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(value: f64) -> Vec<(String, f64)> {
        vec![("a".to_owned(), value), ("gone".to_owned(), f64::NAN)]
    }

    #[test]
    fn a_minute_is_the_mean_of_the_time_and_not_of_the_steps() {
        let mut minute = Minute::default();
        assert_eq!(minute.add(600_000, &step(1.0)), None);
        // Half a minute in steps of ten seconds, and one in steps of a second.
        for second in [10, 20, 30] {
            assert_eq!(minute.add(600_000 + second * 1000, &step(1.0)), None);
        }
        for second in 31..60 {
            assert_eq!(minute.add(600_000 + second * 1000, &step(3.0)), None);
        }
        let over = minute.add(660_000, &step(9.0)).unwrap();
        assert_eq!((over.begins_ms, over.series.len()), (600_000, 1));
        let (name, spread) = &over.series[0];
        assert_eq!((name.as_str(), spread.min, spread.max), ("a", 1.0, 3.0));
        // The first step stands for fifteen seconds at most: it came after a pause.
        let mean = (45.0 * 1.0 + 29.0 * 3.0) / 74.0;
        assert!((spread.mean - mean).abs() < 1e-4, "{spread:?}");
    }

    #[test]
    fn a_clock_that_jumps_ends_the_minute_and_no_more() {
        let mut minute = Minute::default();
        minute.add(120_000, &step(1.0));
        let over = minute.add(60_000, &step(2.0)).unwrap();
        assert_eq!(over.begins_ms, 120_000);
        let over = minute.add(9_000_000_000, &step(3.0)).unwrap();
        assert_eq!((over.begins_ms, over.series[0].1.mean), (60_000, 2.0));
    }
}
