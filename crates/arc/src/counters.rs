//! Event counters that threads add to without meeting each other.
//!
//! Every thread has a stripe of its own, each stripe has its own cache lines, so counting is an
//! addition to memory that nobody else writes; a reader adds the stripes up. A sum taken while others count is some sum between the one
//! before and the one after.

use crate::threads;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Stripes of the first chunk.
const FIRST: usize = 16;

/// Chunks: room for a million threads at once.
const CHUNKS: usize = 16;

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
    EvictParked,
    EvictNotEnough,
    CachedOnlyInProgress,
    PredictivePrefetch,
    DemandHitPredictivePrefetch,
    DemandIohitPredictivePrefetch,
    Locks,
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
    NotesLost,
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
    RefereeRequests,
    RefereeBusy,
    WindowAdmitted,
    WindowDemoted,
    SecondChances,
    GhostsTooLate,
    Count,
}

const EVENTS: usize = Event::Count as usize;

#[derive(Debug)]
#[repr(align(128))]
struct Stripe([AtomicU64; EVENTS]);

impl Stripe {
    fn new() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

/// Stripes by number of thread, in chunks of 16, 32, 64 and so on.
#[derive(Debug)]
pub(crate) struct Counters {
    /// The first chunk, for most programs the only one.
    first: Box<[Stripe]>,
    more: [OnceLock<Box<[Stripe]>>; CHUNKS],
}

/// Chunk of a thread's stripe, and its place in it.
#[inline]
const fn place(thread: usize) -> (usize, usize) {
    let number = thread + FIRST;
    let chunk = (number.ilog2() - FIRST.ilog2()) as usize;
    (chunk, number - (FIRST << chunk))
}

impl Counters {
    pub(crate) fn new() -> Self {
        let first = (0..FIRST).map(|_| Stripe::new()).collect();
        Self { first, more: std::array::from_fn(|_| OnceLock::new()) }
    }

    fn chunk(&self, chunk: usize) -> &[Stripe] {
        self.more[chunk].get_or_init(|| (0..FIRST << chunk).map(|_| Stripe::new()).collect())
    }

    fn stripes(&self) -> impl Iterator<Item = &Stripe> {
        let more = self.more.iter().filter_map(OnceLock::get).flat_map(|chunk| chunk.iter());
        self.first.iter().chain(more)
    }

    /// Adds to the counter `offset` places after `event`.
    #[inline]
    pub(crate) fn add_at(&self, event: Event, offset: usize, count: u64) {
        let thread = threads::number();
        let Some(Stripe(counters)) = self.first.get(thread).filter(|_| thread != threads::SHARED)
        else {
            return self.add_beyond(thread, event as usize + offset, count);
        };
        // This thread alone writes here, so it need not lock the line.
        let counter = &counters[event as usize + offset];
        counter.store(counter.load(Relaxed).wrapping_add(count), Relaxed);
    }

    /// The same for a thread that has no stripe in the first chunk, or none for itself.
    #[inline(never)]
    fn add_beyond(&self, thread: usize, counter: usize, count: u64) {
        let (chunk, at) = place(thread);
        if thread == threads::SHARED || chunk >= CHUNKS {
            self.first[0].0[counter].fetch_add(count, Relaxed);
            return;
        }
        let counter = &self.chunk(chunk)[at].0[counter];
        counter.store(counter.load(Relaxed).wrapping_add(count), Relaxed);
    }

    pub(crate) fn add(&self, event: Event, count: u64) {
        self.add_at(event, 0, count);
    }

    pub(crate) fn count(&self, event: Event) {
        self.add_at(event, 0, 1);
    }

    /// The sum over all stripes.
    pub(crate) fn sum_at(&self, event: Event, offset: usize) -> u64 {
        self.stripes().map(|stripe| stripe.0[event as usize + offset].load(Relaxed)).sum()
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
            for _ in 0..40 {
                scope.spawn(|| (0..50).for_each(|_| counters.add_at(Event::Hit, 3, 2)));
            }
        });
        assert_eq!(counters.sum_at(Event::Hit, 3), 4000);
        assert_eq!(counters.sum(Event::Hit), 0);
    }
}
