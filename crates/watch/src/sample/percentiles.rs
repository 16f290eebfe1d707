//! Percentiles of what happened between two looks at a distribution.
//!
//! A mount counts how many reads of its source took at most 50 µs, 100 µs and so on. A percentile
//! lies between two of these bounds and is told as if the reads there were spread evenly, as
//! Prometheus's `histogram_quantile` does: it is an estimate, wrong by the width of a class at most.
//! What took longer than the last bound is told as that bound. Without a read there is none.

/// Rows with the distribution of how long a read of the source took begin so; the rest of the name is
/// an upper bound in microseconds, and the number how many were within it.
pub(super) const WITHIN: &str = "origin_reads_within_us_";

/// How many were within each bound in microseconds, bounds in ascending order.
pub(super) type Within = Vec<(f64, f64)>;

/// What was counted between two looks, if both have the same bounds and nothing went back.
pub(super) fn since(now: &[(f64, f64)], before: &[(f64, f64)]) -> Option<Within> {
    let same = now.len() == before.len() && !now.is_empty();
    let pairs = now.iter().zip(before);
    same.then(|| {
        let counted = pairs.map(|((bound, now), (old, before))| {
            (bound == old && now >= before).then_some((*bound, now - before))
        });
        counted.collect()
    })?
}

/// The value in milliseconds that a share of all does not exceed; `None` if there were none.
pub(super) fn percentile_ms(within: &[(f64, f64)], all: f64, share: f64) -> Option<f64> {
    let (last_bound, counted) = *within.last()?;
    // Counters are read one after another: the whole may be behind its parts by a read.
    let all = all.max(counted);
    if all <= 0.0 {
        return None;
    }
    let wanted = all * share;
    let (mut lower, mut below) = (0.0, 0.0);
    for &(bound, count) in within {
        if count >= wanted && count > below {
            let part = (wanted - below) / (count - below);
            return Some((lower + (bound - lower) * part) / 1e3);
        }
        (lower, below) = (bound, count.max(below));
    }
    Some(last_bound / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITHIN_EACH: [(f64, f64); 3] = [(100.0, 50.0), (1000.0, 99.0), (10_000.0, 100.0)];

    #[test]
    fn a_percentile_is_between_the_bounds_of_its_class() {
        assert_eq!(percentile_ms(&WITHIN_EACH, 100.0, 0.5), Some(0.1));
        assert_eq!(percentile_ms(&WITHIN_EACH, 100.0, 0.25), Some(0.05));
        assert_eq!(percentile_ms(&WITHIN_EACH, 100.0, 0.99), Some(1.0));
        let tail = percentile_ms(&WITHIN_EACH, 100.0, 0.995).unwrap();
        assert!((tail - 5.5).abs() < 1e-9, "{tail}");
    }

    #[test]
    fn what_no_bound_holds_is_told_as_the_last() {
        assert_eq!(percentile_ms(&WITHIN_EACH, 1000.0, 0.5), Some(10.0));
    }

    #[test]
    fn of_nothing_there_is_no_percentile() {
        assert_eq!(percentile_ms(&[(100.0, 0.0)], 0.0, 0.5), None);
        assert_eq!(percentile_ms(&[], 7.0, 0.5), None);
    }

    #[test]
    fn only_what_was_counted_between_the_looks_counts() {
        let later = [(100.0, 50.0), (1000.0, 109.0), (10_000.0, 110.0)];
        let counted = since(&later, &WITHIN_EACH).unwrap();
        assert_eq!(counted, [(100.0, 0.0), (1000.0, 10.0), (10_000.0, 10.0)]);
        assert_eq!(since(&WITHIN_EACH, &later), None, "a counter went back");
        assert_eq!(since(&later, &later[..2]), None, "other bounds");
        assert_eq!(since(&[], &[]), None, "a daemon that counts none");
    }
}
