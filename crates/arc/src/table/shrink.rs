//! Giving a sublist's memory back. Entries move into vacant slots, and the pages after the last one
//! go back to the system.
#![allow(unsafe_code)]

use super::entry::NONE;
use super::meta::{PARKED, Word};
use super::sublist::{SublistGuard, short};
use crate::policy::List;

impl<K, V> SublistGuard<'_, K, V> {
    /// Gives memory back. Shrinks the ghosts' queues and index if they are far too large. If most
    /// slots are vacant, moves entries without a hold into vacant slots, and gives back the pages
    /// after the last slot in use.
    pub(crate) fn shrink(&mut self) {
        self.locked.ghosts.shrink();
        self.sublist.index.shrink(self.locked.indexed);
        if self.locked.vacant_len / 3 < (self.locked.end - self.locked.vacant_len) {
            return;
        }
        let mut vacant: Vec<u32> =
            (0..self.locked.end).filter(|&id| self.word(id).state() == 0).collect();
        vacant.reverse();
        let before = self.locked.end;
        while let Some(last) = self.locked.end.checked_sub(1) {
            let word = self.word(last);
            if word.state() != 0 {
                let to = vacant.last().copied().filter(|&to| to < last);
                if !to.is_some_and(|to| self.relocate(last, to)) {
                    break;
                }
                vacant.pop();
            }
            self.locked.end = last;
        }
        let end = self.locked.end;
        vacant.retain(|&id| id < end);
        self.locked.vacant = NONE;
        for &id in &vacant {
            self.entry(id).set_newer(self.locked.vacant);
            self.locked.vacant = id;
        }
        self.locked.vacant_len = vacant.len() as u32;
        self.sublist.slab.give_back(end..before);
    }

    /// Moves a live entry without a hold into a vacant slot. Returns whether it could.
    fn relocate(&mut self, from: u32, to: u32) -> bool {
        let (entry, place) = (self.entry(from), self.entry(to));
        let idle = |word: Word| {
            let idle = word.is_live() && word.pins() == 0 && !word.is(PARKED);
            idle.then(|| word.vacated())
        };
        let Ok((word, _)) = entry.meta.change(idle) else {
            return false;
        };
        // SAFETY: this guard has made the live entry vacant, so its key and its value are this
        // guard's; the place is vacant.
        unsafe {
            place.put_key(entry.take_key());
            place.put_value(entry.take_value());
        }
        place.set_hash(entry.hash());
        place.set_weight_bytes(entry.weight_bytes());
        place.set_stamp(entry.stamp());
        place.set_used_in(entry.used_in());
        place.set_placed_in(entry.placed_in());
        place.set_uses(entry.uses(), entry.is_stale());
        let (newer, older) = (entry.newer(), entry.older());
        place.set_newer(newer);
        place.set_older(older);
        if word.list() == List::Mfu {
            self.locked.ages[word.kind() as usize].renumbered(entry.placed_in(), from, to);
        }
        let ends = &mut self.locked.lists[word.at().live()];
        match self.sublist.slab.get(newer) {
            Some(neighbour) if newer != NONE => neighbour.set_older(to),
            _ => ends.head = to,
        }
        match self.sublist.slab.get(older) {
            Some(neighbour) if older != NONE => neighbour.set_newer(to),
            _ => ends.tail = to,
        }
        let moved = place.meta.change(|vacant| Some(vacant.as_live(word)));
        debug_assert!(moved.is_ok());
        self.sublist.index.replace(short(entry.hash()), from, to);
        true
    }
}
