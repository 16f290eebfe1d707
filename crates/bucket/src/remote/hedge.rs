//! Hedged requests: a second request for a read whose first byte is late; the first answer wins.
//!
//! A first byte is late after the 95th percentile of first-byte latencies, but never before twice
//! the median. A few requests in a hundred take ten times as long as the others, because the
//! machine that serves them is slow. A second request reaches another machine. At most 5% of
//! requests are hedged. If more are late, the link is slow, and more requests would not help.
//!
//! # Locks
//! One, of the samples; a leaf.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// How many first-byte latencies are kept.
const SAMPLES: usize = 128;
/// How many of them are needed before a hedge.
const SAMPLES_MIN: usize = 32;
/// The percentiles are computed again after this many new samples.
const COUNT_EVERY: usize = 16;
/// The earliest hedge: saving less time is not worth a request.
const PATIENCE_MIN: Duration = Duration::from_millis(5);
/// One request in this many may be hedged.
const ONE_IN: u64 = 20;

/// When to hedge, and how often that happened.
pub(super) struct Hedge {
    samples: Mutex<Samples>,
    /// When to hedge, in microseconds; 0 while unknown.
    patience_us: AtomicU64,
    p95_us: AtomicU64,
    median_us: AtomicU64,
    /// How many first bytes have arrived, and the sum of their latencies in microseconds.
    first_bytes: AtomicU64,
    first_byte_us: AtomicU64,
    requests: AtomicU64,
    hedges: AtomicU64,
    won: AtomicU64,
}

struct Samples {
    us: [u32; SAMPLES],
    seen: usize,
}

impl Default for Hedge {
    fn default() -> Self {
        Self {
            samples: Mutex::new(Samples { us: [0; SAMPLES], seen: 0 }),
            patience_us: AtomicU64::new(0),
            p95_us: AtomicU64::new(0),
            median_us: AtomicU64::new(0),
            first_bytes: AtomicU64::new(0),
            first_byte_us: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            hedges: AtomicU64::new(0),
            won: AtomicU64::new(0),
        }
    }
}

impl Hedge {
    /// Counts a request. Returns after how long to hedge it, if that is known.
    pub(super) fn begin(&self) -> Option<Duration> {
        self.requests.fetch_add(1, Relaxed);
        match self.patience_us.load(Relaxed) {
            0 => None,
            us => Some(Duration::from_micros(us).max(PATIENCE_MIN)),
        }
    }

    /// Whether a hedge is allowed now; if so, it counts.
    pub(super) fn take(&self) -> bool {
        let most = self.requests.load(Relaxed) / ONE_IN;
        self.hedges
            .fetch_update(Relaxed, Relaxed, |so_far| (so_far < most).then_some(so_far + 1))
            .is_ok()
    }

    /// Counts a hedge that was faster.
    pub(super) fn won(&self) {
        self.won.fetch_add(1, Relaxed);
    }

    /// Records the latency of a first byte.
    pub(super) fn first_byte(&self, after: Duration) {
        let us = u32::try_from(after.as_micros()).unwrap_or(u32::MAX);
        self.first_bytes.fetch_add(1, Relaxed);
        self.first_byte_us.fetch_add(u64::from(us), Relaxed);
        let mut samples = self.samples.lock();
        let at = samples.seen % SAMPLES;
        samples.us[at] = us;
        samples.seen += 1;
        let known = samples.seen.min(SAMPLES);
        if known < SAMPLES_MIN || !samples.seen.is_multiple_of(COUNT_EVERY) {
            return;
        }
        let mut sorted = samples.us;
        drop(samples);
        let sorted = &mut sorted[..known];
        sorted.sort_unstable();
        let (median, p95) = (u64::from(sorted[known / 2]), u64::from(sorted[known * 95 / 100]));
        self.median_us.store(median, Relaxed);
        self.p95_us.store(p95, Relaxed);
        // If all requests take about as long, some are always last: hedging those is useless.
        self.patience_us.store(p95.max(2 * median).max(1), Relaxed);
    }

    pub(super) fn report(&self, report: &mut dyn FnMut(&str, u64)) {
        report("origin_hedged", self.hedges.load(Relaxed));
        report("origin_hedges_won", self.won.load(Relaxed));
        report("origin_first_bytes", self.first_bytes.load(Relaxed));
        report("origin_first_byte_us", self.first_byte_us.load(Relaxed));
        report("origin_first_byte_median_us", self.median_us.load(Relaxed));
        report("origin_first_byte_p95_us", self.p95_us.load(Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_slower_than_the_95th_percentile_is_hedged_once_that_is_known() {
        let hedging = Hedge::default();
        for sample in 0..31 {
            assert_eq!(hedging.begin(), None);
            let is_slow = sample % 10 == 0;
            hedging.first_byte(Duration::from_millis(if is_slow { 300 } else { 20 }));
        }
        hedging.first_byte(Duration::from_millis(20));
        assert_eq!(hedging.begin(), Some(Duration::from_millis(300)));
        (0..256).for_each(|sample| hedging.first_byte(Duration::from_millis(20 + sample % 3)));
        assert_eq!(hedging.begin(), Some(Duration::from_millis(42)), "twice the median");
        (0..256).for_each(|_| hedging.first_byte(Duration::from_micros(300)));
        assert_eq!(hedging.begin(), Some(PATIENCE_MIN), "old samples are forgotten");
        (0..256).for_each(|_| hedging.first_byte(Duration::MAX));
        assert!(hedging.begin().is_some());
    }

    #[test]
    fn at_most_one_request_in_twenty_is_hedged() {
        let hedging = Hedge::default();
        assert!(!hedging.take());
        (0..100).for_each(|_| assert_eq!(hedging.begin(), None));
        assert_eq!((0..100).filter(|_| hedging.take()).count(), 5);
    }
}
