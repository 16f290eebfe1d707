//! The half of a sublist behind its lock: lists through its entries, vacant slots, ghosts, and the
//! loads in flight.

use super::entry::{Entry, NONE};
use super::ghosts::{Ghosts, Marks};
use super::live_list::{LIVE_LISTS, LiveList};
use super::mfu_order::Ages;
use super::slab::Slab;
use crate::flight::Flight;
use crate::policy::{EMPTY, Kind, List, list_index};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::sync::Arc;

/// Stamps handed out by one sublist between two arrivals, at most: 2^20.
pub(super) const ARRIVAL_SHIFT: u32 = 20;

/// Entries of MFU that one eviction moves, at most.
const LOOKS: usize = 128;

/// The key and the value of a slot.
pub(crate) type Stored<K, V> = (K, Option<Arc<V>>);

#[derive(Clone, Copy)]
pub(super) struct Ends {
    pub(super) head: u32,
    pub(super) tail: u32,
    pub(super) bytes: u64,
    pub(super) len: u64,
}

/// Behind the lock.
pub(crate) struct Locked {
    pub(super) lists: [Ends; LIVE_LISTS],
    pub(super) ghosts: Ghosts,
    /// The first vacant slot that has been used; how many there are.
    pub(super) vacant: u32,
    pub(super) vacant_len: u32,
    /// Slots from here on have never been used, or have been given back.
    pub(super) end: u32,
    pub(super) indexed: usize,
    pub(super) indexed_max: usize,
    pub(super) resident: usize,
    /// Loads in flight that have waiters, by their entry.
    pub(crate) flights: HashMap<u32, Arc<Flight>, FixedState>,
    /// The order of MFU, by kind.
    pub(super) ages: [Ages; 2],
    pub(super) ages_changed: bool,
    /// One bit a list (see [`crate::policy::list_index`]): its tail may be another.
    pub(super) changed_tails: u16,
    /// Bytes that went from MRU to MFU, by kind, and are not yet in the balance; and how many of
    /// them came from the window.
    pub(super) promoted_bytes: [u64; 2],
    pub(super) admitted_bytes: [u64; 2],
    stamp: u64,
}

impl Locked {
    pub(super) fn new(marks: Marks) -> Self {
        let empty = Ends { head: NONE, tail: NONE, bytes: 0, len: 0 };
        Self {
            lists: [empty; LIVE_LISTS],
            ghosts: Ghosts::new(marks),
            vacant: NONE,
            vacant_len: 0,
            end: 0,
            indexed: 0,
            indexed_max: 0,
            resident: 0,
            flights: HashMap::with_hasher(FixedState::with_seed(0)),
            ages: [const { Ages::new() }; 2],
            ages_changed: true,
            changed_tails: 0,
            promoted_bytes: [0; 2],
            admitted_bytes: [0; 2],
            stamp: 0,
        }
    }

    /// The stamp for a use that happens now: arrivals in the whole cache, then uses in this sublist
    /// since the last arrival. So sublists agree on what came before or after an arrival. Between
    /// two arrivals no hit may write what others read. There they agree as far as hits are spread
    /// evenly.
    pub(super) fn stamp(&mut self, arrivals: u64) -> u64 {
        let start = arrivals << ARRIVAL_SHIFT;
        let last = start | ((1 << ARRIVAL_SHIFT) - 1);
        self.stamp = (self.stamp + 1).clamp(start, last);
        self.stamp
    }

    /// The stamp that was given out last.
    pub(super) const fn last_stamp(&self) -> u64 {
        self.stamp
    }

    /// Puts an entry, which is on no list, at the head of one.
    pub(super) fn link<K, V>(
        &mut self,
        slab: &Slab<K, V>,
        (id, entry): (u32, &Entry<K, V>),
        at: LiveList,
        stamp: u64,
    ) {
        let ends = &mut self.lists[at.live()];
        entry.set_stamp(stamp);
        entry.set_newer(NONE);
        entry.set_older(ends.head);
        match slab.get(ends.head) {
            Some(head) if ends.head != NONE => head.set_newer(id),
            _ => {
                ends.tail = id;
                self.changed_tails |= 1 << at.index();
            }
        }
        ends.head = id;
        ends.bytes += entry.weight_bytes();
        ends.len += 1;
        if at.list == List::Mfu {
            self.ages[at.kind as usize].placed_at_head((id, entry));
            self.used(at.kind, 1, stamp);
        }
    }

    /// Counts uses of entries of MFU: with enough of them a new age begins.
    pub(super) fn used(&mut self, kind: Kind, uses: u64, stamp: u64) {
        let len = self.lists[LiveList::mfu(kind).live()].len;
        if self.ages[kind as usize].count(uses, len) {
            self.ages[kind as usize].begin(stamp);
            self.ages_changed = true;
        }
    }

    /// Moves used entries from the old end of MFU to their age, until the oldest one has not been
    /// used since it was placed. After a fixed number of looks, the least recently used of those
    /// seen is put there.
    pub(super) fn sort_tail<K, V>(&mut self, slab: &Slab<K, V>, kind: Kind) {
        let id = self.lists[LiveList::mfu(kind).live()].tail;
        let Some(mut tail) = slab.get(id).filter(|_| id != NONE).map(|entry| (id, entry)) else {
            return;
        };
        for _ in 0..LOOKS {
            if !self.ages[kind as usize].is_used(tail.1) {
                return;
            }
            let id = tail.1.newer();
            let Some(next) = slab.get(id).filter(|_| id != NONE) else {
                return;
            };
            let ages = &self.ages[kind as usize];
            let worse = ages.is_used(next) && ages.back(next) <= ages.back(tail.1);
            let place = if worse { (id, next) } else { std::mem::replace(&mut tail, (id, next)) };
            self.place(slab, place, kind);
        }
    }

    /// Moves an entry of MFU that has been used since it was placed to where that use belongs.
    pub(super) fn place<K, V>(
        &mut self,
        slab: &Slab<K, V>,
        (id, entry): (u32, &Entry<K, V>),
        kind: Kind,
    ) {
        self.unlink(slab, (id, entry), LiveList::mfu(kind));
        entry.count_use();
        let (older, stamp) = self.ages[kind as usize].place((id, entry));
        let ends = &mut self.lists[LiveList::mfu(kind).live()];
        let neighbour = slab.get(older).filter(|_| older != NONE);
        let stamp = entry.stamp().max(stamp).max(neighbour.map_or(0, Entry::stamp));
        entry.set_stamp(stamp);
        let newer = neighbour.map_or(ends.tail, Entry::newer);
        entry.set_newer(newer);
        entry.set_older(older);
        match neighbour {
            Some(neighbour) => neighbour.set_newer(id),
            None => ends.tail = id,
        }
        match slab.get(newer) {
            Some(neighbour) if newer != NONE => neighbour.set_older(id),
            _ => ends.head = id,
        }
        ends.bytes += entry.weight_bytes();
        ends.len += 1;
    }

    /// Takes an entry off its list.
    pub(super) fn unlink<K, V>(
        &mut self,
        slab: &Slab<K, V>,
        (id, entry): (u32, &Entry<K, V>),
        at: LiveList,
    ) {
        if at.list == List::Mfu {
            self.ages[at.kind as usize].unplaced(slab, (id, entry));
        }
        let ends = &mut self.lists[at.live()];
        let (newer, older) = (entry.newer(), entry.older());
        match slab.get(newer) {
            Some(neighbour) if newer != NONE => neighbour.set_older(older),
            _ => ends.head = older,
        }
        match slab.get(older) {
            Some(neighbour) if older != NONE => neighbour.set_newer(newer),
            _ => {
                ends.tail = newer;
                self.changed_tails |= 1 << at.index();
            }
        }
        ends.bytes -= entry.weight_bytes();
        ends.len -= 1;
    }

    /// The entry at the old end of a list.
    pub(super) fn tail(&self, at: LiveList) -> Option<u32> {
        let tail = self.lists[at.live()].tail;
        (tail != NONE).then_some(tail)
    }

    /// The stamp that the sublist publishes for a list: that of its oldest entry or ghost.
    pub(super) fn tail_stamp<K, V>(&self, slab: &Slab<K, V>, index: usize) -> u64 {
        if let Some(at) = LiveList::of(index) {
            return self.tail(at).and_then(|id| slab.get(id)).map_or(EMPTY, Entry::stamp);
        }
        let (kind, list) = (Kind::ALL[index / 4], List::ALL[index % 2]);
        self.ghosts.oldest_stamp(kind, list).unwrap_or(EMPTY)
    }

    pub(super) fn ghosts_changed(&mut self, kind: Kind, list: List) {
        self.changed_tails |= 1 << list_index(kind, list, true);
    }
}
