//! Event counters, to which threads add without contention.
//!
//! Every thread has a stripe of its own, and each stripe has its own cache lines. So counting is an
//! addition to memory that no other thread writes. A reader adds up the stripes. A sum that is
//! taken while others count lies between the sum before and the sum after.

use crate::stats::Stats;
use crate::threads;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Stripes of the first chunk.
const FIRST: usize = 64;

/// Chunks: room for a million threads at once.
const CHUNKS: usize = 14;

macro_rules! events {
    ($first:ident $statistic:ident $($event:ident $statistics:ident)+) => {
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
            $first = 16,
            $($event,)+
            Count,
        }

        impl Counters {
            /// Fills in the statistics that are sums of one event.
            pub(crate) fn read(&self, stats: &mut Stats) {
                stats.$statistic = self.sum(Event::$first);
                $(stats.$statistics = self.sum(Event::$event);)+
            }
        }
    };
}

// Each event, and the statistic that counts it.
events! {
    MruGhostHit mru_ghost_hits
    MfuGhostHit mfu_ghost_hits
    Deleted deleted
    MutexMiss mutex_miss
    EvictSkip evict_skip
    EvictParked evict_parked
    EvictNotEnough evict_not_enough
    CachedOnlyInProgress cached_only_in_progress
    PredictivePrefetch predictive_prefetch
    DemandHitPredictivePrefetch demand_hit_predictive_prefetch
    DemandIohitPredictivePrefetch demand_iohit_predictive_prefetch
    Locks locks
    LockWaits lock_waits
    LockWaitNs lock_wait_ns
    EvictCalls evict_calls
    EvictNs evict_ns
    EvictBytes evict_bytes
    GhostsForgotten ghosts_forgotten
    Inserts inserts
    InsertBytes insert_bytes
    Loads loads
    LoadNs load_ns
    LoadErrors load_errors
    LoadPanics load_panics
    LoadsAbandoned loads_abandoned
    LoadsDoomed loads_doomed
    NotesLost notes_lost
    JoinedWaits joined_waits
    JoinedWaitNs joined_wait_ns
    Invalidations invalidations
    Demotions demotions
    Oversize oversize
    ReclaimCalls reclaim_calls
    ReclaimBytes reclaim_bytes
    PruneRequests arc_prune
    PruneExamined prune_examined
    PruneFreedBytes prune_freed_bytes
    PruneFreedObjects prune_freed_objects
    PruneHeld prune_held
    PruneBackedOff prune_backed_off
    PruneBusy prune_busy
    RefereeRequests referee_requests
    RefereeBusy referee_busy
    RefereeSpared referee_spared
    WindowAdmitted window_admitted
    WindowDemoted window_demoted
    SecondChances second_chances
    GhostsTooLate ghosts_too_late
}

const EVENTS: usize = Event::Count as usize;

#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Stripe([AtomicU64; EVENTS]);

impl Stripe {
    fn new() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    /// Counts a hit of this place.
    #[inline(always)]
    pub(crate) fn count(&self, hit: usize) {
        self.add(Event::Hit as usize + hit, 1);
    }

    /// Counts an event.
    #[inline(always)]
    pub(crate) fn count_event(&self, event: Event) {
        self.add(event as usize, 1);
    }

    #[inline(always)]
    fn add(&self, counter: usize, count: u64) {
        // One thread alone writes here, so it need not lock the line.
        let counter = &self.0[counter];
        counter.store(counter.load(Relaxed).wrapping_add(count), Relaxed);
    }
}

/// Stripes by number of thread, in chunks of 64, 128, 256 and so on.
#[derive(Debug)]
pub(crate) struct Counters {
    /// The first chunk, for most programs the only one.
    first: Box<[Stripe; FIRST]>,
    more: Box<[OnceLock<Box<[Stripe]>>; CHUNKS]>,
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
        let first: Box<[Stripe]> = (0..FIRST).map(|_| Stripe::new()).collect();
        let first = first.try_into().expect("as many as were made");
        Self { first, more: Box::new(std::array::from_fn(|_| OnceLock::new())) }
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
        match self.stripe(threads::number_if_any()) {
            Some(stripe) => stripe.add(event as usize + offset, count),
            None => self.add_beyond(event as usize + offset, count),
        }
    }

    /// The stripe of this thread, which has that number, if it is one of the first.
    #[inline(always)]
    pub(crate) fn stripe(&self, thread: usize) -> Option<&Stripe> {
        self.first.get(thread)
    }

    /// The same for a thread that has no stripe in the first chunk, none yet, or none for itself.
    #[inline(never)]
    fn add_beyond(&self, counter: usize, count: u64) {
        let thread = threads::number();
        let (chunk, at) = if thread == threads::SHARED { (CHUNKS, 0) } else { place(thread) };
        if chunk >= CHUNKS {
            self.first[0].0[counter].fetch_add(count, Relaxed);
            return;
        }
        let stripe = if chunk == 0 { &self.first[at] } else { &self.chunk(chunk)[at] };
        stripe.add(counter, count);
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
            for _ in 0..80 {
                scope.spawn(|| (0..50).for_each(|_| counters.add_at(Event::Hit, 3, 2)));
            }
        });
        assert_eq!(counters.sum_at(Event::Hit, 3), 8000);
        assert_eq!(counters.sum(Event::Hit), 0);
    }
}
