//! A distribution of times: how many were within each of some bounds.
//!
//! A measured event, such as a read of the origin, takes much longer than the counting. So all
//! threads share the counters, without stripes. Counters are read one after another, so a reader
//! may see one event more in one counter than in another.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds in microseconds, from a hit in a page cache to a source that hardly answers.
pub(crate) const BOUNDS_US: [u64; 15] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000,
    5_000_000, 30_000_000,
];

/// A distribution.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Latency {
    /// How many were within this bound and exceeded the one before.
    buckets: [AtomicU64; BOUNDS_US.len()],
    total_ns: AtomicU64,
}

impl Latency {
    /// Counts one time.
    pub(crate) fn add(&self, took: Duration) {
        let us = took.as_nanos().div_ceil(1_000);
        if let Some(bucket) = BOUNDS_US.iter().position(|bound| us <= u128::from(*bound)) {
            self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        }
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.total_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Each bound, with the number of times within it.
    pub(crate) fn within(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let mut within = 0_u64;
        let counts = self.buckets.each_ref().map(|bucket| {
            within = within.wrapping_add(bucket.load(Ordering::Relaxed));
            within
        });
        BOUNDS_US.into_iter().zip(counts)
    }

    /// The sum of all times, in nanoseconds.
    pub(crate) fn total_ns(&self) -> u64 {
        self.total_ns.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_within_the_bounds_that_it_did_not_exceed() {
        let latency = Latency::default();
        for us in [1, 50, 51, 1_000, 31_000_000] {
            latency.add(Duration::from_micros(us));
        }
        latency.add(Duration::from_nanos(50_001));
        let within: Vec<_> = latency.within().collect();
        assert_eq!(within[..2], [(50, 2), (100, 4)]);
        assert_eq!(within[4], (1_000, 5));
        assert_eq!(within[BOUNDS_US.len() - 1], (30_000_000, 5), "the longest is within none");
        assert_eq!(latency.total_ns(), 31_001_102_000 + 50_001);
    }
}
