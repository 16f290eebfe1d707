//! Percentiles of the growth of a histogram between two looks.
//!
//! A mount counts how many reads of its source took at most 50 µs, 100 µs and so on. A percentile
//! lies between two of these bounds. The estimate assumes that reads are spread evenly there, as
//! Prometheus's `histogram_quantile` does; its error is at most the width of a bucket. Reads that
//! took longer than the last bound count as that bound. Without reads there is no percentile.

/// Prefix of the rows of the latency histogram of reads of the source. The rest of a name is an
/// upper bound in microseconds; the value is the number of reads within it.
pub(super) const WITHIN: &str = "origin_reads_within_us_";

/// Bounds in microseconds, in ascending order, each with the number of reads within it.
pub(super) type Within = Vec<(f64, f64)>;

/// The growth between two looks, if both have the same bounds and no count went back.
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

/// The value in milliseconds that this share of all does not exceed; `None` without any.
pub(super) fn percentile_ms(within: &[(f64, f64)], all: f64, share: f64) -> Option<f64> {
    let (last_bound, counted) = *within.last()?;
    // Counters are read one after another: the total may be behind its parts by a read.
    let all = all.max(counted);
    if all <= 0.0 {
        return None;
    }
    let rank = all * share;
    let (mut lower, mut below) = (0.0, 0.0);
    for &(bound, count) in within {
        if count >= rank && count > below {
            let part = (rank - below) / (count - below);
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
    fn a_percentile_is_between_the_bounds_of_its_bucket() {
        assert_eq!(percentile_ms(&WITHIN_EACH, 100.0, 0.5), Some(0.1));
        assert_eq!(percentile_ms(&WITHIN_EACH, 100.0, 0.25), Some(0.05));
        assert_eq!(percentile_ms(&WITHIN_EACH, 100.0, 0.99), Some(1.0));
        let tail = percentile_ms(&WITHIN_EACH, 100.0, 0.995).unwrap();
        assert!((tail - 5.5).abs() < 1e-9, "{tail}");
    }

    #[test]
    fn reads_beyond_the_last_bound_count_as_that_bound() {
        assert_eq!(percentile_ms(&WITHIN_EACH, 1000.0, 0.5), Some(10.0));
    }

    #[test]
    fn without_reads_there_is_no_percentile() {
        assert_eq!(percentile_ms(&[(100.0, 0.0)], 0.0, 0.5), None);
        assert_eq!(percentile_ms(&[], 7.0, 0.5), None);
    }

    #[test]
    fn only_the_growth_between_the_looks_counts() {
        let later = [(100.0, 50.0), (1000.0, 109.0), (10_000.0, 110.0)];
        let counted = since(&later, &WITHIN_EACH).unwrap();
        assert_eq!(counted, [(100.0, 0.0), (1000.0, 10.0), (10_000.0, 10.0)]);
        assert_eq!(since(&WITHIN_EACH, &later), None, "a counter went back");
        assert_eq!(since(&later, &later[..2]), None, "other bounds");
        assert_eq!(since(&[], &[]), None, "a daemon that counts none");
    }
}
