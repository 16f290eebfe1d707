//! `/proc/pressure/*` and the `*.pressure` files of cgroups: pressure stall information (PSI), the
//! time in which tasks stalled for lack of a resource.
//!
//! A file has two lines, such as `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`. Source:
//! `Documentation/accounting/psi.rst`.

/// The tasks that stalled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// At least one task.
    Some,
    /// All tasks that were not idle.
    Full,
}

/// One line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stall {
    /// The tasks that stalled.
    pub share: Share,
    /// Percent of the last ten seconds.
    pub average_10s_percent: f64,
    /// Microseconds since boot.
    pub total_us: u64,
}

/// The lines of a file; invalid ones are left out.
pub fn stalls(text: &str) -> impl Iterator<Item = Stall> {
    text.lines().filter_map(|line| {
        let (share, rest) = line.split_once(' ')?;
        let share = match share {
            "some" => Share::Some,
            "full" => Share::Full,
            _ => return None,
        };
        let value =
            |key: &str| rest.split_ascii_whitespace().find_map(|word| word.strip_prefix(key));
        let average_10s_percent = value("avg10=")?.parse().ok()?;
        Some(Stall { share, average_10s_percent, total_us: value("total=")?.parse().ok()? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lines_are_read_and_invalid_ones_are_left_out() {
        let text = "some avg10=1.53 avg60=0.87 avg300=0.20 total=58120\n\
                    full avg10=9.00 avg60=0.00 avg300=0.00 total=7\nnonsense\n";
        let expected = [(Share::Some, 1.53, 58_120), (Share::Full, 9.0, 7)].map(
            |(share, average_10s_percent, total_us)| Stall { share, average_10s_percent, total_us },
        );
        assert_eq!(stalls(text).collect::<Vec<_>>(), expected);
        for odd in ["", "half avg10=1.0 total=1\n", "some avg10=x total=1\n", "some total=1\n"] {
            assert_eq!(stalls(odd).count(), 0, "{odd:?}");
        }
    }
}
