//! The order of MFU, kept lazily. A hit only notes in which **age** it was. An entry is put where
//! it belongs when an eviction meets it.
//!
//! An age is the time in which a 16th of the list is used, each entry counted once. A hit stores
//! the number of the current age in its entry, unless that is there already. So a hot entry is
//! written to once an age, and no hit moves anything.
//!
//! The list stands in the order in which its entries were *placed*. An eviction may meet an entry
//! at the old end that has been used in a later age than it was placed in. It moves that entry
//! next to the newest one of the age it was used in. So the evicted entry is the least recently
//! used one, give or take an age. An entry is moved only when evictions come to it, and never more
//! often than it is hit.
//!
//! Invariants, checked by validation: the marks of ages stand in order along the list, and the
//! stamps along the list never grow. A placed entry gets the stamp of its age.

use super::entry::{Entry, NONE};
use super::slab::Slab;

/// Ages for each turnover of the list, which is as many uses as it has entries.
const AGES_PER_LIST: u64 = 16;

/// Ages that are distinguished; all before them count as *older*. An entry in steady use is counted
/// in every age, so the ages have to span several turnovers of the list. With two turnovers, a
/// trace lost 0.2 points.
pub(super) const TRACKED: usize = 128;

/// The marks of one MFU list.
pub(super) struct Ages {
    /// The current age, modulo 2^16.
    now: u16,
    /// Uses in the current age.
    uses: u64,
    /// The stamp with which each age began.
    stamps: [u64; TRACKED],
    /// The newest entry placed in each age, or [`NONE`].
    newest: [u32; TRACKED],
    /// The newest entry placed in an age that is not tracked any more.
    older: u32,
}

const fn mark(age: u16) -> usize {
    age as usize % TRACKED
}

impl Ages {
    pub(super) const fn new() -> Self {
        Self { now: 0, uses: 0, stamps: [0; TRACKED], newest: [NONE; TRACKED], older: NONE }
    }

    /// The current age.
    pub(super) const fn now(&self) -> u16 {
        self.now
    }

    /// Entries used in an age before it ends.
    pub(super) const fn width(len: u64) -> u64 {
        let width = len / AGES_PER_LIST;
        if width == 0 { 1 } else { width }
    }

    /// The stamp with which the age of an entry's last use ended; `None` if it has not ended.
    pub(super) fn end_of<K, V>(&self, entry: &Entry<K, V>) -> Option<u64> {
        let back = self.now.wrapping_sub(entry.used_in()) as usize;
        if back == 0 {
            return None;
        }
        let next = if back >= TRACKED { TRACKED - 1 } else { back - 1 };
        Some(self.stamps[mark(self.now.wrapping_sub(next as u16))])
    }

    /// Counts uses; returns whether the age is over, of a list of `len` entries.
    pub(super) const fn count(&mut self, uses: u64, len: u64) -> bool {
        self.uses += uses;
        self.uses >= Self::width(len)
    }

    /// Begins the next age, after what has this stamp.
    pub(super) const fn begin(&mut self, stamp: u64) {
        self.uses = 0;
        self.now = self.now.wrapping_add(1);
        let mark = mark(self.now);
        if self.newest[mark] != NONE {
            self.older = self.newest[mark];
            self.newest[mark] = NONE;
        }
        self.stamps[mark] = stamp + 1;
    }

    /// An entry has been put at the head of the list.
    pub(super) fn placed_at_head<K, V>(&mut self, (id, entry): (u32, &Entry<K, V>)) {
        entry.set_used_in(self.now);
        entry.set_placed_in(self.now);
        self.newest[mark(self.now)] = id;
    }

    /// An entry is about to be taken off the list.
    pub(super) fn unplaced<K, V>(&mut self, slab: &Slab<K, V>, (id, entry): (u32, &Entry<K, V>)) {
        let (older, mark) = (entry.older(), mark(entry.placed_in()));
        if self.newest[mark] == id {
            let next = slab.get(older).filter(|_| older != NONE);
            let same = next.is_some_and(|next| next.placed_in() == entry.placed_in());
            self.newest[mark] = if same { older } else { NONE };
        }
        if self.older == id {
            self.older = older;
        }
    }

    /// Whether an entry has been used in a later age than it was placed in.
    pub(super) fn is_used<K, V>(&self, entry: &Entry<K, V>) -> bool {
        entry.used_in().wrapping_sub(entry.placed_in()).cast_signed() > 0
    }

    /// How many ages ago an entry was used.
    pub(super) fn back<K, V>(&self, entry: &Entry<K, V>) -> usize {
        self.now.wrapping_sub(entry.used_in()) as usize
    }

    /// An entry has been moved to another slot.
    pub(super) const fn renumbered(&mut self, placed_in: u16, from: u32, to: u32) {
        if self.newest[mark(placed_in)] == from {
            self.newest[mark(placed_in)] = to;
        }
        if self.older == from {
            self.older = to;
        }
    }

    /// The place of an entry that is on no list, by its last use: its older neighbour, if any, and
    /// the least stamp for it.
    pub(super) fn place<K, V>(&mut self, (id, entry): (u32, &Entry<K, V>)) -> (u32, u64) {
        let used_in = entry.used_in();
        let back = self.now.wrapping_sub(used_in) as usize;
        if back >= TRACKED {
            let oldest = self.now.wrapping_sub(TRACKED as u16);
            entry.set_placed_in(oldest);
            return (std::mem::replace(&mut self.older, id), 0);
        }
        entry.set_placed_in(used_in);
        let neighbour = (back..TRACKED)
            .map(|back| self.newest[mark(self.now.wrapping_sub(back as u16))])
            .find(|&newest| newest != NONE);
        self.newest[mark(used_in)] = id;
        (neighbour.unwrap_or(self.older), self.stamps[mark(used_in)])
    }

    /// The newest entry of each age that has any, from now back; of the older at last.
    pub(super) fn marks(&self) -> impl Iterator<Item = (Option<u16>, u32)> {
        let ages = (0..TRACKED).map(|back| self.now.wrapping_sub(back as u16));
        let tracked = ages.map(|age| (Some(age), self.newest[mark(age)]));
        tracked.chain([(None, self.older)]).filter(|&(_, newest)| newest != NONE)
    }

    /// The age an entry was placed in, or nothing if it is an older.
    pub(super) fn placed_in<K, V>(&self, entry: &Entry<K, V>) -> Result<Option<u16>, String> {
        let oldest = self.now.wrapping_sub(TRACKED as u16 - 1);
        if entry.stamp() < self.stamps[mark(oldest)] {
            return Ok(None);
        }
        let age = entry.placed_in();
        let tracked = (self.now.wrapping_sub(age) as usize) < TRACKED;
        if !tracked || entry.stamp() < self.stamps[mark(age)] {
            return Err(format!("stamp {} in age {age}, now {}", entry.stamp(), self.now));
        }
        Ok(Some(age))
    }
}
