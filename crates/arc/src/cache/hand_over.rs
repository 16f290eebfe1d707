//! Handing entries over to a cache above: this cache sees only the misses of that one.
//!
//! The bytes of such an entry are in memory twice. They stay while memory is free. They are the
//! first to leave when an arrival needs room, when the cache shrinks, or when they weigh more than
//! their limit. The owner sets that limit by the memory that is free.

use super::Cache;
use super::core::Core;
use super::evict::Leaving;
use crate::table::{HANDED, Place, RETURNED, SublistGuard, Word};
use std::hash::Hash;

impl<K: Eq + Hash + Clone, V> Cache<K, V> {
    /// Notes that a cache above has the bytes of an entry now. The entry is evicted first when room
    /// is needed, and leaves a ghost like any other. A demand that comes first takes it back.
    ///
    /// Returns whether it was handed over. It is not if there is no entry, or if the entry is
    /// handed over already. It is not if the entry came back once, because the cache above could
    /// not keep it.
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
    /// Entries over the limit leave now, and later as soon as they are handed over.
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

    /// Evicts entries over the limit. No room was lacking, and there may be more memory when they
    /// come back. So the target grows as if they had stayed, with room for another arrival of
    /// `next_bytes`. Otherwise the target would stay as small as the entries that are kept, and so
    /// would the ghosts. Then no key that comes back would be recognised.
    fn trim_handed(&self, next_bytes: u64) {
        let mut any = false;
        while self.handed.is_over() && self.evict_handed_over() {
            any = true;
        }
        if any {
            self.ledger().balance.grow_for_ghosts(next_bytes);
            // If it could not grow, there are too many ghosts.
            self.trim_if_over();
        }
    }

    /// Evicts the entry that was handed over first; a held one is freed with its last release.
    /// Returns whether there was one.
    pub(super) fn evict_handed_over(&self) -> bool {
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
            leaving.finish(self);
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
