//! Handing entries over to a cache above, whose misses are all that this cache sees.
//!
//! The bytes of such an entry are in memory twice. They stay as long as nobody needs the memory,
//! and are the first to leave: when an arrival needs room, when the cache shrinks, and when they
//! weigh more than their limit, which the owner sets by what memory is free.

use super::Cache;
use super::core::Core;
use super::evict::Leaving;
use crate::table::{HANDED, Place, RETURNED, SublistGuard, Word};
use std::hash::Hash;

impl<K: Eq + Hash + Clone, V> Cache<K, V> {
    /// Says that a cache above has the bytes of an entry now. It is the first to leave when room is
    /// needed, and leaves its ghost as any other. A demand that comes before takes it back.
    ///
    /// Returns whether it was handed over: not if there is no entry, if it was so before, or if it
    /// came back since it, or its ghost, was here last. The cache above could not keep that one.
    pub fn hand_over(&self, key: &K) -> bool {
        let core = self.core();
        let hash = self.hash(key);
        let place = {
            let mut guard = core.lock_drained(core.sublist_of(hash));
            guard.find(hash, key).and_then(|id| core.mark_handed(&mut guard, id))
        };
        let Some(place) = place else { return false };
        core.handed.push(place, |place| {
            let entry = core.sublists()[place.sublist].entry(place.id);
            entry.is_some_and(|entry| is_of(place, entry.meta.load()))
        });
        core.trim_handed(place.weight_bytes);
        true
    }
}

impl<K, V> Cache<K, V> {
    /// Limits the weight of all entries that are handed over, in bytes; without a limit at first.
    /// What is over it leaves now, and later as soon as it is handed over.
    pub fn limit_handed(&self, bytes: u64) {
        let core = self.core();
        core.handed.set_limit(bytes);
        core.trim_handed(0);
    }

    /// Weight of all entries that are handed over, in bytes.
    #[must_use]
    pub fn handed_bytes(&self) -> u64 {
        self.core().handed.bytes()
    }
}

/// Whether this is the word of the entry that has the place, and it is still handed over.
fn is_of(place: &Place, word: Word) -> bool {
    word.is_live() && word.is(HANDED) && word.generation() == place.generation
}

impl<K, V> Core<K, V> {
    /// Marks a live entry as handed over. Does nothing, and returns no place, if it is so already,
    /// or has come back.
    fn mark_handed(&self, guard: &mut SublistGuard<'_, K, V>, id: u32) -> Option<Place> {
        let entry = guard.entry(id);
        let weight_bytes = entry.weight_bytes();
        self.handed.count_in(weight_bytes);
        let mark = |word: Word| {
            (word.is_live() && !word.any(HANDED | RETURNED)).then(|| word.with(HANDED))
        };
        let marked = entry.meta.change(mark).ok();
        self.handed.count_out(marked.is_none(), weight_bytes);
        let (before, _) = marked?;
        let (sublist, generation) = (guard.sublist.number(), before.generation());
        Some(Place { sublist, id, generation, weight_bytes })
    }

    /// Lets go of what is over the limit. No room was lacking, and more memory may be had as soon as
    /// something comes back. So the target grows as if they had stayed. Otherwise the target, and
    /// the ghosts with it, would stay as small as what is kept, and nothing would be known again.
    /// There is room for another arrival of `next_bytes` then.
    fn trim_handed(&self, next_bytes: u64) {
        let mut any = false;
        while self.handed.is_over() && self.let_go_of_handed() {
            any = true;
        }
        if any {
            self.ledger().balance.grow_for_ghosts(next_bytes);
            // As far as it could not grow, there are ghosts too many.
            self.trim_if_over();
        }
    }

    /// Lets go of the entry that was handed over first; of one that is held with its last release.
    /// Returns whether there was one.
    pub(super) fn let_go_of_handed(&self) -> bool {
        while let Some(place) = self.handed.pop() {
            let mut leaving = Leaving::with_room(self, 1);
            let is_there = {
                let mut guard = self.lock_drained(&self.sublists()[place.sublist]);
                let is_there = is_of(&place, guard.word(place.id));
                if is_there {
                    self.demote_locked(&mut guard, place.id, &mut leaving);
                }
                is_there
            };
            leaving.let_go(self);
            if is_there {
                return true;
            }
        }
        false
    }

    /// Makes a live entry a ghost, or marks it to become one with its last release.
    pub(super) fn demote_locked(
        &self,
        guard: &mut SublistGuard<'_, K, V>,
        id: u32,
        leaving: &mut Leaving<K, V>,
    ) {
        if let Some((stored, gone)) = guard.demote(id) {
            self.demoted(guard, leaving, stored, &gone);
        }
    }
}
