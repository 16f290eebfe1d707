//! Entries that were handed over: a cache above has their bytes now, and asks again only for those
//! that it could not keep.
//!
//! They stay where they are on their lists, and are the first to leave when room is needed. The one
//! that was handed over first goes first, so they have a queue. A demand takes an entry back: the
//! cache above has dropped it, and it stays as any other.
//!
//! Invariants: the bytes and the number are those of all live entries whose word says that they
//! were handed over (`meta::HANDED`). Each has one place in the queue. A place whose entry has
//! gone, or was taken back, is passed over. Apart from a few, there are never more of those than of
//! the others.
//!
//! The queue's lock is a leaf: nothing is locked, allocated by users or looked up under it.

use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use crate::sync::{Mutex, lock};
use std::collections::VecDeque;

/// Places of entries that have gone which are not worth a look through the queue.
const GONE_FEW: usize = 64;

/// The place of an entry in the queue: which slot it has, and in which generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) sublist: usize,
    pub(crate) id: u32,
    pub(crate) generation: u64,
    pub(crate) weight_bytes: u64,
}

/// All entries of a cache that were handed over.
#[derive(Debug)]
pub(crate) struct HandOverQueue {
    bytes: AtomicU64,
    entries: AtomicU64,
    limit_bytes: AtomicU64,
    queue: Mutex<VecDeque<Place>>,
}

impl HandOverQueue {
    pub(crate) fn new() -> Self {
        Self {
            bytes: AtomicU64::new(0),
            entries: AtomicU64::new(0),
            limit_bytes: AtomicU64::new(u64::MAX),
            queue: Mutex::new(VecDeque::new()),
        }
    }

    /// Their weight in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// How many there are.
    pub(crate) fn entries(&self) -> u64 {
        self.entries.load(Relaxed)
    }

    /// Whether there is one.
    pub(crate) fn any(&self) -> bool {
        self.entries() > 0
    }

    /// Whether they weigh more than they may.
    pub(crate) fn is_over(&self) -> bool {
        self.any() && self.bytes() > self.limit_bytes.load(Relaxed)
    }

    /// Says how much they may weigh.
    pub(crate) fn set_limit(&self, bytes: u64) {
        self.limit_bytes.store(bytes, Relaxed);
    }

    /// Counts an entry in, before its word says so: a hit may take it back at once, and counts it
    /// out.
    pub(crate) fn count_in(&self, weight_bytes: u64) {
        self.bytes.fetch_add(weight_bytes, Relaxed);
        self.entries.fetch_add(1, Relaxed);
    }

    /// Counts an entry out, after its word has said for the last time that it `was_handed`.
    pub(crate) fn count_out(&self, was_handed: bool, weight_bytes: u64) {
        if was_handed {
            self.bytes.fetch_sub(weight_bytes, Relaxed);
            self.entries.fetch_sub(1, Relaxed);
        }
    }

    /// Gives an entry its place. `is_there` says whether the entry of a place is still handed over.
    pub(crate) fn push(&self, place: Place, is_there: impl Fn(&Place) -> bool) {
        let queue = {
            let mut queue = lock(&self.queue);
            queue.push_back(place);
            let there = usize::try_from(self.entries()).unwrap_or(usize::MAX);
            let gone_at_least = queue.len().saturating_sub(there);
            if gone_at_least <= there.saturating_add(GONE_FEW) {
                return;
            }
            std::mem::take(&mut *queue)
        };
        // An eviction that looks for the first at this moment finds none, and takes another entry.
        let mut queue: VecDeque<Place> = queue.into_iter().filter(is_there).collect();
        let mut since = lock(&self.queue);
        queue.append(&mut since);
        let old = std::mem::replace(&mut *since, queue);
        drop(since);
        drop(old);
    }

    /// Takes the place of the one that was handed over first. Its entry may have gone.
    pub(crate) fn pop(&self) -> Option<Place> {
        if !self.any() {
            return None;
        }
        lock(&self.queue).pop_front()
    }

    /// Places in the queue.
    #[cfg(all(test, not(shuttle)))]
    fn places(&self) -> usize {
        lock(&self.queue).len()
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn places_of_departed_entries_never_outnumber_the_others_by_much() {
        let handed = HandOverQueue::new();
        let place = |id| Place { sublist: 0, id, generation: 0, weight_bytes: 1 };
        // Of every hundred that come, one stays.
        for id in 0..100_000 {
            let stays = id % 100 == 0;
            handed.entries.fetch_add(u64::from(stays), Relaxed);
            handed.push(place(id), |place| place.id % 100 == 0);
            let there = handed.entries() as usize;
            assert!(handed.places() <= 2 * there + GONE_FEW + 1, "{}", handed.places());
        }
        let mut left = Vec::new();
        while let Some(place) = handed.pop() {
            left.push(place.id);
        }
        assert!(left.is_sorted(), "the first is the first to leave");
        assert_eq!(left.iter().filter(|id| *id % 100 == 0).count(), 1000, "none is lost");
    }
}
