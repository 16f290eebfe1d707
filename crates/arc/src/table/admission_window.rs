//! A sublist's part in the duel's rules: the window, and the uses that an entry remembers.
//!
//! The window is a list next to MRU, for entries of MRU that wait. An entry that was the oldest of
//! MRU and MFU when it went to the window is *stale* until it is used again. So every list, the
//! window too, is in the order of its stamps.

use super::hit_rings::Note;
use super::live_list::LiveList;
use super::meta::{MFU, MRU, PARKED, PROMOTED, TOUCHED, WAITING, WATCHED, Word};
use super::sublist::SublistGuard;
use crate::policy::duel::rules::one_use_more;
use crate::policy::{Balance, EMPTY, Kind, List};

/// The outcome of an attempt to demote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Demoted {
    /// The oldest has gone to the window.
    Moved,
    /// The oldest has been used, and stands there still.
    Used(u32),
    /// There is nothing to demote.
    Nothing,
}

impl<K, V> SublistGuard<'_, K, V> {
    /// The word of the entry a note is of, if it is that entry still and live.
    pub(crate) fn noted(&self, note: Note) -> Option<Word> {
        let word = self.sublist.entry(note.id)?.meta.load();
        (word.generation() == note.generation && word.is_live()).then_some(word)
    }

    /// Puts the old end of MFU in order, if hits have only noted their age.
    pub(crate) fn sort(&mut self, at: LiveList) {
        if at.list == List::Mfu {
            self.locked.sort_tail(&self.sublist.slab, at.kind);
        }
    }

    /// When the oldest of MRU and MFU was used last, or [`EMPTY`]. Of an MFU entry only the age of
    /// its last use is known. The end of that age is taken: in a loop, what is asked for now was
    /// used only a little before the oldest.
    pub(crate) fn horizon(&mut self, kind: Kind) -> u64 {
        self.sort(LiveList::mfu(kind));
        let mru = self.tail_stamp(LiveList::mru(kind).index());
        let mfu = self.locked.tail(LiveList::mfu(kind)).map_or(EMPTY, |id| {
            let entry = self.entry(id);
            if self.sublist.hit_rings.is_exact() {
                return entry.stamp();
            }
            self.locked.ages[kind as usize].end_of(entry).unwrap_or(self.locked.last_stamp())
        });
        mru.min(mfu)
    }

    /// The oldest entry of a list.
    pub(crate) fn oldest(&self, at: LiveList) -> Option<u32> {
        self.locked.tail(at)
    }

    /// Notes a use of an entry that waits, and leaves it where it is.
    pub(crate) fn count_use(&mut self, id: u32, by_demand: bool) {
        let entry = self.entry(id);
        let word = entry.meta.lower(TOUCHED | PROMOTED);
        if by_demand || word.is(PROMOTED) {
            entry.set_uses(one_use_more(entry.uses()), entry.is_stale());
        }
    }

    /// The key of an entry is no longer sampled.
    pub(crate) fn unwatch(&mut self, id: u32) {
        self.entry(id).meta.lower(WATCHED);
    }

    /// Moves an entry of MRU or of the window to the head of MFU.
    pub(crate) fn admit(&mut self, id: u32, arrivals: u64) {
        self.entry(id).meta.raise(PROMOTED);
        self.move_up(id, arrivals);
    }

    /// Gives the oldest of the window or of MFU another round at the head of MFU, with so many uses
    /// left. The caller has updated the balance for everything else.
    pub(crate) fn second_chance(&mut self, id: u32, uses: u8, arrivals: u64) {
        self.admit(id, arrivals);
        self.entry(id).set_uses(uses, false);
    }

    /// Moves the oldest entry of the window to the head of MRU. Returns whether there was one.
    pub(crate) fn readmit(&mut self, kind: Kind, balance: &mut Balance, arrivals: u64) -> bool {
        let Some(id) = self.locked.tail(LiveList::window(kind)) else {
            return false;
        };
        let entry = self.entry(id);
        self.unlink(id, self.word(id));
        let word = entry.meta.lower(WAITING).without(WAITING);
        entry.set_uses(entry.uses(), false);
        let stamp = self.locked.stamp(arrivals);
        self.link(id, word, stamp);
        balance.sub_waiting(kind, entry.weight_bytes());
        true
    }

    /// Moves the oldest entry of MRU or MFU to the head of the window, unless it has been used, or
    /// is all there is.
    pub(crate) fn demote_oldest(
        &mut self,
        (kind, list): (Kind, List),
        balance: &mut Balance,
        arrivals: u64,
    ) -> Demoted {
        let at = LiveList { kind, list, waits: false };
        self.sort(at);
        let Some(id) = self.locked.tail(at) else {
            return Demoted::Nothing;
        };
        let entry = self.entry(id);
        let weight_bytes = entry.weight_bytes();
        if balance.main_bytes(kind) <= weight_bytes {
            balance.cancel_demotions(kind);
            return Demoted::Nothing;
        }
        let demoted = |word: Word| (!word.is(TOUCHED)).then(|| word.with_state(MRU).with(WAITING));
        let Ok((before, after)) = entry.meta.change(demoted) else {
            return Demoted::Used(id);
        };
        debug_assert!(!before.is(PARKED), "what is on a list is not parked");
        self.unlink(id, before);
        entry.set_uses(entry.uses(), true);
        let stamp = self.locked.stamp(arrivals);
        self.link(id, after, stamp);
        if before.state() == MFU {
            balance.sub(kind, List::Mfu, false, weight_bytes);
            balance.add(kind, List::Mru, false, weight_bytes);
        }
        balance.add_waiting(kind, weight_bytes);
        Demoted::Moved
    }
}
