//! A hit: found and pinned without a lock. Its notes for the lists and for the referee are applied
//! later under the sublist's lock, in `apply_hits.rs`.

use super::{Cache, Hold};
use crate::counters::{Event, Stripe};
use crate::policy::{Access, Kind, List};
use crate::table::{
    ASKED_FOR, HANDED, MFU, MRU, Now, PREFETCHED, PROMOTED, RETURNED, Sublist, TOUCHED, WATCHED,
    Word,
};
use crate::threads;
use std::hash::Hash;

/// Nothing was found without the lock.
pub(super) struct NotFound {
    /// The key was certainly absent at some moment of the search.
    pub(super) for_sure: bool,
}

impl<K: Eq + Hash + Clone, V> Cache<K, V> {
    /// A hit without a lock on an entry that stands near its home in the index, as most do. If this
    /// finds nothing, [`Cache::find_unlocked`] looks further.
    #[inline(always)]
    pub(super) fn find_near(&self, hash: u64, key: &K, access: Access) -> Option<Hold<K, V>> {
        let core = self.core();
        let sublist = core.sublist_of(hash);
        let id = sublist.index.near(hash as u32)?;
        let (hold, word) = Hold::pin(core, sublist, id)?;
        // The key is read only after the pin: an entry that is not pinned may change.
        if hold.key() != key {
            unpin_other_key(hold);
            return None;
        }
        Some(self.hit((sublist, id), hold, word, access))
    }

    /// A hit without a lock, wherever in the index the entry is.
    #[inline(never)]
    pub(super) fn find_unlocked(
        &self,
        hash: u64,
        key: &K,
        access: Access,
    ) -> Result<Hold<K, V>, NotFound> {
        let core = self.core();
        let sublist = core.sublist_of(hash);
        let version = sublist.index.version();
        let mut others = false;
        let found = sublist.index.find(hash as u32, |id| {
            let Some((hold, word)) = Hold::pin(core, sublist, id) else {
                // It is being loaded, or has just gone.
                others = true;
                return None;
            };
            // The key is read only after the pin. If it is another key, dropping the hold unpins
            // it.
            (hold.key() == key).then_some((hold, id, word))
        });
        match found {
            Some((hold, id, word)) => Ok(self.hit((sublist, id), hold, word, access)),
            None => {
                let for_sure = !others && version.is_some() && sublist.index.version() == version;
                Err(NotFound { for_sure })
            }
        }
    }

    /// Counts a hit on a held entry that had this word. Notes the hit for the lists if the entry
    /// has to move.
    #[inline(always)]
    pub(super) fn hit(
        &self,
        (sublist, id): (&Sublist<K, V>, u32),
        hold: Hold<K, V>,
        word: Word,
        access: Access,
    ) -> Hold<K, V> {
        let now = sublist.hit_rings.now(word.kind());
        // A thread without a stripe in the first chunk, or without a number yet, takes the slow
        // path.
        let thread = threads::number_if_any();
        let stripe = self.core().counters.stripe(thread);
        let spared = || word.is_watched_mfu() && self.is_spared(sublist, word, access, thread);
        let plain = |_: &&Stripe| !now.is_exact() && (word.is_plain_mfu() || spared());
        if let Some(stripe) = stripe.filter(plain) {
            stripe.count(hit_place(access, word.kind(), List::Mfu));
            if word.is(WATCHED) {
                stripe.count_event(Event::RefereeSpared);
            }
            self.note_age(sublist, &hold, (word.kind(), now), thread);
            hold
        } else {
            self.hit_noted((sublist, id), hold, word, access)
        }
    }

    /// Whether a hit on a watched entry need not be shown to the referee.
    #[inline(always)]
    fn is_spared(
        &self,
        sublist: &Sublist<K, V>,
        word: Word,
        access: Access,
        thread: usize,
    ) -> bool {
        access == Access::Demand
            && sublist.hit_rings.is_spent(word.kind(), thread, self.core().arrivals())
    }

    /// A demand has hit a watched entry: notes it for the referee, as far as there is credit.
    fn watched(&self, sublist: &Sublist<K, V>, hold: &Hold<K, V>, word: Word, exact: bool) {
        let (core, entry, kind) = (self.core(), hold.entry(), word.kind());
        if !core.is_watched(kind, entry.hash()) {
            // The sample has been halved since it came in, and never grows again.
            entry.meta.lower(WATCHED);
            return;
        }
        if !exact && !sublist.hit_rings.spend(kind, threads::number(), core.arrivals()) {
            core.counters.count(Event::RefereeSpared);
            return;
        }
        core.note_watched(kind, entry.hash(), entry.weight_bytes(), exact);
    }

    /// Notes in an MFU entry the age of its hit.
    #[inline(always)]
    fn note_age(
        &self,
        sublist: &Sublist<K, V>,
        hold: &Hold<K, V>,
        (kind, now): (Kind, Now),
        thread: usize,
    ) {
        let entry = hold.entry();
        let first = entry.used_in() != now.age();
        // This thread has just written that cache line.
        entry.set_used_in(now.age());
        if sublist.hit_rings.count_use(kind, now, first, thread) {
            self.turn(sublist);
        }
    }

    /// A hit that may have to leave a note: on MRU, on an entry with a special flag, or in an exact
    /// cache.
    #[inline(never)]
    fn hit_noted(
        &self,
        (sublist, id): (&Sublist<K, V>, u32),
        hold: Hold<K, V>,
        word: Word,
        access: Access,
    ) -> Hold<K, V> {
        let core = self.core();
        let promoted = word.state() == MFU || word.is(PROMOTED);
        let list = if promoted { List::Mfu } else { List::Mru };
        core.counters.add_at(Event::Hit, hit_place(access, word.kind(), list), 1);
        let demand = access == Access::Demand;
        let first = demand && word.any(ASKED_FOR) && self.asked_for(sublist, &hold);
        let exact = sublist.hit_rings.is_exact();
        let flags =
            if demand && !first && word.state() == MRU { TOUCHED | PROMOTED } else { TOUCHED };
        if demand && word.is(WATCHED) {
            self.watched(sublist, &hold, word, exact);
        }
        if word.state() == MFU && !exact {
            let now = sublist.hit_rings.now(word.kind());
            self.note_age(sublist, &hold, (word.kind(), now), threads::number());
            return hold;
        }
        let raised = word.is(flags);
        if !raised {
            hold.entry().meta.raise(flags);
        }
        if !raised || word.state() == MFU || exact {
            self.leave_note((sublist, id), word, flags);
        }
        hold
    }

    /// A demand has found an entry that was prefetched, handed over or marked to be demoted.
    /// Returns whether it is the one that a prefetch was for.
    #[cold]
    fn asked_for(&self, sublist: &Sublist<K, V>, hold: &Hold<K, V>) -> bool {
        let entry = hold.entry();
        let before = entry.meta.lower(ASKED_FOR);
        if before.is(HANDED) {
            entry.meta.raise(RETURNED);
            sublist.handed.count_out(true, entry.weight_bytes());
        }
        if before.is(PREFETCHED) {
            self.core().counters.count(Event::DemandHitPredictivePrefetch);
        }
        before.is(PREFETCHED)
    }

    /// Notes a hit for the lists. If the ring is full, its notes are applied first. That needs the
    /// lock, and waits for it only in an exact cache.
    fn leave_note(&self, (sublist, id): (&Sublist<K, V>, u32), word: Word, flags: u64) {
        let core = self.core();
        let promote = flags & PROMOTED != 0;
        // Applied at once, so that it is judged by the rule that is in force now.
        let at_once = sublist.hit_rings.is_exact() && core.goes_by_rules();
        if sublist.hit_rings.note(id, word, promote) {
            if at_once {
                drop(core.lock_drained(sublist));
            }
            return;
        }
        let guard = if sublist.hit_rings.is_exact() {
            Some(core.lock(sublist))
        } else {
            sublist.try_lock(&core.tails, &core.counters)
        };
        match guard {
            Some(mut guard) => {
                core.drain(&mut guard, false, sublist.hit_rings.is_exact());
                sublist.hit_rings.note(id, word, promote);
            }
            None => core.counters.count(Event::NotesLost),
        }
    }

    /// Takes over the uses that this thread has counted in a sublist, if the lock is free.
    #[cold]
    fn turn(&self, sublist: &Sublist<K, V>) {
        let core = self.core();
        if let Some(mut guard) = sublist.try_lock(&core.tails, &core.counters) {
            core.drain(&mut guard, false, false);
        }
    }
}

/// The place of a hit among the counters of hits.
#[inline(always)]
const fn hit_place(access: Access, kind: Kind, list: List) -> usize {
    access as usize * 4 + kind as usize * 2 + list as usize
}

/// Unpins an entry that has another key with the same bits of the hash.
#[cold]
#[inline(never)]
fn unpin_other_key<K, V>(hold: Hold<K, V>) {
    drop(hold);
}
