//! Hits that a referee has still to be shown: a ring for each processor. Hits write to it without a
//! lock; the thread that has the referee empties it, oldest first.
//!
//! A thread usually writes to a ring of its own, so nothing here is more than a load and a store.
//! Threads that share a ring may lose hits, or mix up hash and weight of two. That does little
//! harm: a shadow uses only the weight of a key that it does not have. If they set the count back,
//! the ring counts as empty.

use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicU32, AtomicU64};

/// Hits a ring holds.
const RING: usize = 64;

/// Hits of the sample, not shown yet, in their order.
#[repr(align(128))]
pub(super) struct Ring {
    /// How many were ever noted, and shown, modulo 2^32. The first is written by the thread of the
    /// ring, the second with the referee locked.
    noted: AtomicU32,
    shown: AtomicU32,
    hits: [(AtomicU64, AtomicU64); RING],
}

impl Ring {
    pub(super) fn new() -> Self {
        let hits = std::array::from_fn(|_| (AtomicU64::new(0), AtomicU64::new(0)));
        Self { noted: AtomicU32::new(0), shown: AtomicU32::new(0), hits }
    }

    /// Whether it is time to show some.
    pub(super) fn is_half_full(&self) -> bool {
        self.noted.load(Relaxed).wrapping_sub(self.shown.load(Relaxed)) >= RING as u32 / 2
    }

    /// Returns false if there is no room.
    pub(super) fn push(&self, hash: u64, weight_bytes: u64) -> bool {
        let noted = self.noted.load(Relaxed);
        if noted.wrapping_sub(self.shown.load(Acquire)) >= RING as u32 {
            return false;
        }
        let (to_hash, to_weight) = &self.hits[noted as usize % RING];
        to_hash.store(hash, Relaxed);
        to_weight.store(weight_bytes, Relaxed);
        self.noted.store(noted.wrapping_add(1), Release);
        true
    }

    /// Takes out the oldest, up to a limit.
    pub(super) fn drain(&self, count_max: u32, mut each: impl FnMut(u64, u64)) {
        let (noted, shown) = (self.noted.load(Acquire), self.shown.load(Relaxed));
        let mut count = noted.wrapping_sub(shown);
        if count > RING as u32 {
            // Threads that share the ring have set its count back: what it holds is unknown.
            return self.shown.store(noted, Release);
        }
        count = count.min(count_max);
        for at in 0..count {
            let (hash, weight_bytes) = &self.hits[shown.wrapping_add(at) as usize % RING];
            each(hash.load(Relaxed), weight_bytes.load(Relaxed));
        }
        if count > 0 {
            self.shown.store(shown.wrapping_add(count), Release);
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    fn drained(ring: &Ring, count_max: u32) -> Vec<(u64, u64)> {
        let mut all = Vec::new();
        ring.drain(count_max, |hash, weight_bytes| all.push((hash, weight_bytes)));
        all
    }

    #[test]
    fn a_ring_gives_its_hits_back_in_order_however_they_are_taken() {
        let ring = Ring::new();
        // Counts that come to their end and begin again.
        ring.noted.store(u32::MAX - 40, Relaxed);
        ring.shown.store(u32::MAX - 40, Relaxed);
        let (mut pushed, mut taken) = (0, 0);
        for round in 0..100 {
            while ring.push(pushed, 2 * pushed) {
                pushed += 1;
            }
            assert_eq!(pushed - taken, RING as u64);
            for pair in drained(&ring, round % 5 + 1) {
                assert_eq!(pair, (taken, 2 * taken));
                taken += 1;
            }
            assert_eq!(pushed - taken, RING as u64 - u64::from(round % 5 + 1));
        }
        let rest = drained(&ring, u32::MAX);
        assert_eq!(rest, (taken..pushed).map(|n| (n, 2 * n)).collect::<Vec<_>>());
        assert_eq!(drained(&ring, u32::MAX), []);
    }

    #[test]
    fn a_ring_whose_count_was_reset_is_empty_and_continues() {
        let ring = Ring::new();
        ring.shown.store(7, Relaxed);
        assert!(!ring.push(1, 1));
        assert_eq!(drained(&ring, 2), []);
        assert!(ring.push(2, 2));
        assert_eq!(drained(&ring, 2), [(2, 2)]);
    }
}
