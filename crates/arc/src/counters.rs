//! Event counters that threads add to without meeting each other.
//!
//! Every thread belongs to one of 16 stripes, each stripe has its own cache lines, and a
//! reader adds the stripes up. A sum taken while others count is some sum between the one
//! before and the one after.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

const STRIPES: usize = 16;

/// Events, numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Event {
    /// 8 places: access, kind, list.
    Hit = 0,
    /// 4 places: access, kind.
    JoinedHit = 8,
    /// 4 places: access, kind.
    Miss = 12,
    MruGhostHit = 16,
    MfuGhostHit,
    Deleted,
    MutexMiss,
    EvictSkip,
    EvictNotEnough,
    CachedOnlyInProgress,
    PredictivePrefetch,
    DemandHitPredictivePrefetch,
    DemandIohitPredictivePrefetch,
    LockWaits,
    LockWaitNs,
    EvictCalls,
    EvictNs,
    EvictBytes,
    GhostsForgotten,
    Inserts,
    InsertBytes,
    Loads,
    LoadNs,
    LoadErrors,
    LoadPanics,
    LoadsAbandoned,
    LoadsDoomed,
    JoinedWaits,
    JoinedWaitNs,
    Invalidations,
    Demotions,
    Oversize,
    ReclaimCalls,
    ReclaimBytes,
    PruneRequests,
    PruneExamined,
    PruneFreedBytes,
    PruneFreedObjects,
    PruneHeld,
    PruneBackedOff,
    PruneBusy,
    Count,
}

const EVENTS: usize = Event::Count as usize;

#[derive(Debug)]
#[repr(align(128))]
struct Stripe([AtomicU64; EVENTS]);

/// All stripes.
#[derive(Debug)]
pub(crate) struct Counters(Box<[Stripe]>);

fn stripe() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static STRIPE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    STRIPE.with(|cell| {
        if cell.get() == usize::MAX {
            cell.set(NEXT.fetch_add(1, Relaxed) % STRIPES);
        }
        cell.get()
    })
}

impl Counters {
    pub(crate) fn new() -> Self {
        let stripe = |_| Stripe(std::array::from_fn(|_| AtomicU64::new(0)));
        Self((0..STRIPES).map(stripe).collect())
    }

    /// Adds to the counter `offset` places after `event`.
    pub(crate) fn add_at(&self, event: Event, offset: usize, count: u64) {
        self.0[stripe()].0[event as usize + offset].fetch_add(count, Relaxed);
    }

    pub(crate) fn add(&self, event: Event, count: u64) {
        self.add_at(event, 0, count);
    }

    pub(crate) fn count(&self, event: Event) {
        self.add_at(event, 0, 1);
    }

    /// The sum over all stripes.
    pub(crate) fn sum_at(&self, event: Event, offset: usize) -> u64 {
        self.0.iter().map(|stripe| stripe.0[event as usize + offset].load(Relaxed)).sum()
    }

    pub(crate) fn sum(&self, event: Event) -> u64 {
        self.sum_at(event, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stripes_add_up() {
        let counters = Counters::new();
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| (0..50).for_each(|_| counters.add_at(Event::Hit, 3, 2)));
            }
        });
        assert_eq!(counters.sum_at(Event::Hit, 3), 2000);
        assert_eq!(counters.sum(Event::Hit), 0);
    }
}
