//! Exponential classes of how long reads of the source took.
//!
//! A class ends at a power of 2^(1/4) seconds and begins where the one before ends, so it is 19%
//! wide whatever the scale: schema 2 of
//! <https://prometheus.io/docs/specs/native_histograms/>. The first class has all that is shorter,
//! down to nothing. Each class that counted something is a row of `ogivestats`.

use std::time::Duration;

/// Four classes an octave.
const SCHEMA: i32 = 2;
/// The first class: up to 2⁻²⁴ seconds, 60 ns. No read is as short.
pub const FIRST: i32 = -96;
/// The last class: up to 1024 seconds, and whatever took longer.
pub const LAST: i32 = 40;
/// How many classes there are.
pub const CLASSES: usize = (LAST - FIRST) as usize + 1;

const ROW: &str = "origin_reads_exponential_";

/// The class of a duration.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a cast saturates, also that of no time at all"
)]
pub fn class(took: Duration) -> i32 {
    let octaves = took.as_secs_f64().log2();
    ((octaves * f64::from(1 << SCHEMA)).ceil() as i32).clamp(FIRST, LAST)
}

/// The name of the row that says how many reads of the source were of a class.
pub fn row(class: i32) -> String {
    format!("{ROW}{class}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The longest duration of a class, in seconds.
    fn upper_bound(class: i32) -> f64 {
        (f64::from(class) / f64::from(1 << SCHEMA)).exp2()
    }

    #[test]
    fn a_class_ends_with_its_bound_and_begins_behind_the_one_before() {
        assert_eq!(class(Duration::from_secs(1)), 0);
        assert_eq!(class(Duration::from_millis(250)), -8);
        assert_eq!(class(Duration::from_nanos(250_000_001)), -7);
        // Below, a class is not much wider than the nanosecond in which a duration is told.
        for at in class(Duration::from_micros(5))..LAST {
            let middle = upper_bound(at) * 0.95;
            assert_eq!(class(Duration::from_secs_f64(middle)), at, "{middle} s");
            assert_eq!(class(Duration::from_secs_f64(upper_bound(at) * 1.001)), at + 1);
        }
    }

    #[test]
    fn what_is_out_of_all_bounds_is_in_the_first_or_the_last_class() {
        assert_eq!(class(Duration::ZERO), FIRST);
        assert_eq!(class(Duration::from_nanos(1)), FIRST);
        assert_eq!(class(Duration::MAX), LAST);
        assert!((upper_bound(FIRST) - 1.0 / 16_777_216.0).abs() < 1e-15);
        assert!((upper_bound(LAST) - 1024.0).abs() < 1e-9);
    }
}
