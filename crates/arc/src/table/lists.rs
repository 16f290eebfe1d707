//! What the lock of a sublist guards: lists through its entries, vacant slots, ghosts, and the
//! loads in flight.

use super::entry::Entry;
use super::ghosts::{Ghosts, Marks};
use super::slab::Slab;
use crate::cache::Flight;
use crate::policy::{EMPTY, Kind, LISTS, List, is_ghost_list, list_index, window_index};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::sync::Arc;

/// No entry: the end of a list.
pub(super) const NONE: u32 = u32::MAX;

/// Lists of entries: two kinds, MRU, MFU and the window.
pub(super) const LIVE_LISTS: usize = 6;

/// Stamps handed out by one sublist between two arrivals, at most: 2^20.
pub(crate) const ARRIVAL_SHIFT: u32 = 20;

/// A list of live entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) kind: Kind,
    pub(crate) list: List,
    /// Of MRU, the window.
    pub(crate) waits: bool,
}

impl At {
    pub(crate) const fn mru(kind: Kind) -> Self {
        Self { kind, list: List::Mru, waits: false }
    }

    pub(crate) const fn mfu(kind: Kind) -> Self {
        Self { kind, list: List::Mfu, waits: false }
    }

    pub(crate) const fn window(kind: Kind) -> Self {
        Self { kind, list: List::Mru, waits: true }
    }

    /// The list with this number, if it is one of live entries.
    pub(crate) const fn of(index: usize) -> Option<Self> {
        if index >= LISTS {
            return Some(Self::window(Kind::ALL[index - LISTS]));
        }
        if is_ghost_list(index) {
            return None;
        }
        let kind = Kind::ALL[index / 4];
        Some(if index.is_multiple_of(2) { Self::mru(kind) } else { Self::mfu(kind) })
    }

    /// Its number among the engine's lists.
    pub(crate) const fn index(self) -> usize {
        if self.waits { window_index(self.kind) } else { list_index(self.kind, self.list, false) }
    }

    /// Its number among the lists of live entries.
    pub(super) const fn live(self) -> usize {
        let place = if self.waits { 2 } else { self.list as usize };
        self.kind as usize * 3 + place
    }

    /// All of them, in the order of [`At::live`].
    pub(super) fn all() -> impl Iterator<Item = Self> {
        Kind::ALL.into_iter().flat_map(|kind| [Self::mru(kind), Self::mfu(kind), Self::window(kind)])
    }
}

/// What a slot owned.
pub(crate) type Stored<K, V> = (K, Option<Arc<V>>);

#[derive(Clone, Copy)]
pub(super) struct Ends {
    pub(super) head: u32,
    pub(super) tail: u32,
    pub(super) bytes: u64,
    pub(super) len: u64,
}

/// Behind the lock.
pub(crate) struct Inside {
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
    /// Loads in flight that somebody waits for, by their entry.
    pub(crate) flights: HashMap<u32, Arc<Flight>, FixedState>,
    /// Moves to the head of MFU, by kind.
    pub(super) moves: [u32; 2],
    pub(super) clocks_changed: bool,
    /// One bit a list (see [`crate::policy::list_index`]): its tail may be another.
    pub(super) changed_tails: u16,
    /// Bytes that went from MRU to MFU, by kind, of which the balance has not heard yet; and how
    /// many of them came from the window.
    pub(super) promoted_bytes: [u64; 2],
    pub(super) admitted_bytes: [u64; 2],
    stamp: u64,
}

impl Inside {
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
            moves: [0; 2],
            clocks_changed: false,
            changed_tails: 0,
            promoted_bytes: [0; 2],
            admitted_bytes: [0; 2],
            stamp: 0,
        }
    }

    /// The stamp for what is used now: arrivals in the whole cache, then uses in this sublist
    /// since the last one. So sublists agree on what came before or after an arrival, and
    /// between two arrivals, where no hit may write what others read, they agree as far as
    /// hits are spread evenly.
    pub(super) fn stamp(&mut self, arrivals: u64) -> u64 {
        let start = arrivals << ARRIVAL_SHIFT;
        let last = start | ((1 << ARRIVAL_SHIFT) - 1);
        self.stamp = (self.stamp + 1).clamp(start, last);
        self.stamp
    }

    /// Puts an entry, which is on no list, at the head of one.
    pub(super) fn link<K, V>(
        &mut self,
        slab: &Slab<K, V>,
        (id, entry): (u32, &Entry<K, V>),
        at: At,
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
            let moves = &mut self.moves[at.kind as usize];
            *moves = moves.wrapping_add(1);
            entry.set_moved_at(*moves);
            self.clocks_changed = true;
        }
    }

    /// Takes an entry off its list.
    pub(super) fn unlink<K, V>(
        &mut self,
        slab: &Slab<K, V>,
        entry: &Entry<K, V>,
        at: At,
    ) {
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
    pub(super) fn tail(&self, at: At) -> Option<u32> {
        let tail = self.lists[at.live()].tail;
        (tail != NONE).then_some(tail)
    }

    /// What the sublist publishes of a list: the stamp of its eldest entry. Under ARC alone
    /// ghosts have no stamps; the longest list of them counts as the eldest.
    pub(super) fn tail_stamp<K, V>(&self, slab: &Slab<K, V>, index: usize) -> u64 {
        if let Some(at) = At::of(index) {
            return self.tail(at).and_then(|id| slab.get(id)).map_or(EMPTY, Entry::stamp);
        }
        let (kind, list) = (Kind::ALL[index / 4], List::ALL[index % 2]);
        if self.ghosts.have_marks() {
            return self.ghosts.eldest(kind, list).map_or(EMPTY, |mark| mark.stamp);
        }
        let len = self.ghosts.list_len(kind, list) as u64;
        if len == 0 { EMPTY } else { EMPTY - 1 - len }
    }

    pub(super) fn ghosts_changed(&mut self, kind: Kind, list: List) {
        self.changed_tails |= 1 << list_index(kind, list, true);
    }
}
