//! A hit: found and pinned without a lock, and what it leaves behind for the lists and the referee.

use super::{Cache, Hold};
use crate::counters::{Event, Stripe};
use crate::policy::{Access, Kind, List};
use crate::table::{DEMOTE, MFU, MRU, Now, PREFETCHED, PROMOTED, Shard, TOUCHED, WATCHED, Word};
use crate::threads;
use std::hash::Hash;

/// Nothing was found without the lock.
pub(super) struct NotFound {
    /// There was nothing for sure at some moment of the search.
    pub(super) for_sure: bool,
}

impl<K: Eq + Hash + Clone, V> Cache<K, V> {
    /// A hit without a lock on an entry whose place in the index is near its home. Most are: what
    /// this finds nothing of, [`Cache::find_unlocked`] has to look for.
    #[inline(always)]
    pub(super) fn find_near(&self, hash: u64, key: &K, access: Access) -> Option<Hold<K, V>> {
        let core = self.core();
        let shard = core.shard_of(hash);
        let id = shard.index.near(hash as u32)?;
        let (hold, word) = Hold::pin(core, shard, id)?;
        // Never before the pin.
        if hold.key() != key {
            let_go(hold);
            return None;
        }
        Some(self.hit((shard, id), hold, word, access))
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
        let shard = core.shard_of(hash);
        let version = shard.index.version();
        let mut others = false;
        let found = shard.index.find(hash as u32, |id| {
            let Some((hold, word)) = Hold::pin(core, shard, id) else {
                // It is being loaded, or has just gone.
                others = true;
                return None;
            };
            // Never before the pin; and if it is another's, the drop lets go of it.
            (hold.key() == key).then_some((hold, id, word))
        });
        match found {
            Some((hold, id, word)) => Ok(self.hit((shard, id), hold, word, access)),
            None => {
                let for_sure = !others && version.is_some() && shard.index.version() == version;
                Err(NotFound { for_sure })
            }
        }
    }

    /// Counts a hit on an entry of a sublist that is held now and had this word, and leaves word
    /// for the lists if it has to move.
    #[inline(always)]
    pub(super) fn hit(
        &self,
        (shard, id): (&Shard<K, V>, u32),
        hold: Hold<K, V>,
        word: Word,
        access: Access,
    ) -> Hold<K, V> {
        let now = shard.recency.now(word.kind());
        // Whoever has no stripe among the first, or no number yet, goes the longer way.
        let thread = threads::number_if_any();
        let stripe = self.core().counters.stripe(thread);
        let spared = || word.is_watched_mfu() && self.is_spared(shard, word, access, thread);
        let plain = |_: &&Stripe| !now.is_exact() && (word.is_plain_mfu() || spared());
        if let Some(stripe) = stripe.filter(plain) {
            stripe.count(hit_place(access, word.kind(), List::Mfu));
            if word.is(WATCHED) {
                stripe.count_event(Event::RefereeSpared);
            }
            self.say_age(shard, &hold, (word.kind(), now), thread);
            hold
        } else {
            self.hit_noted((shard, id), hold, word, access)
        }
    }

    /// Whether a hit on a watched entry need not be shown to the referee.
    #[inline(always)]
    fn is_spared(&self, shard: &Shard<K, V>, word: Word, access: Access, thread: usize) -> bool {
        access == Access::Demand
            && shard.recency.is_spent(word.kind(), thread, self.core().arrivals())
    }

    /// A demand has hit a watched entry: what the referee gets to know of it.
    fn watched(&self, shard: &Shard<K, V>, hold: &Hold<K, V>, word: Word, exact: bool) {
        let (core, entry, kind) = (self.core(), hold.entry(), word.kind());
        if !core.is_watched(kind, entry.hash()) {
            // The sample has been halved since it came in, and never grows again.
            entry.meta.lower(WATCHED);
            return;
        }
        if !exact && !shard.recency.spend(kind, threads::number(), core.arrivals()) {
            core.counters.count(Event::RefereeSpared);
            return;
        }
        core.note_watched(kind, entry.hash(), entry.weight_bytes(), exact);
    }

    /// Says in an MFU entry in which age it was hit.
    #[inline(always)]
    fn say_age(
        &self,
        shard: &Shard<K, V>,
        hold: &Hold<K, V>,
        (kind, now): (Kind, Now),
        thread: usize,
    ) {
        let entry = hold.entry();
        let first = entry.used_in() != now.age();
        // In a line that this thread has just written anyway.
        entry.set_used_in(now.age());
        if shard.recency.count_use(kind, now, first, thread) {
            self.turn(shard);
        }
    }

    /// A hit on an entry that may have to leave a note: one of MRU, or one that something is the
    /// matter with; or where every hit counts.
    #[inline(never)]
    fn hit_noted(
        &self,
        (shard, id): (&Shard<K, V>, u32),
        hold: Hold<K, V>,
        word: Word,
        access: Access,
    ) -> Hold<K, V> {
        let core = self.core();
        let promoted = word.state() == MFU || word.is(PROMOTED);
        let list = if promoted { List::Mfu } else { List::Mru };
        core.counters.add_at(Event::Hit, hit_place(access, word.kind(), list), 1);
        let demand = access == Access::Demand;
        let first = demand && word.any(PREFETCHED | DEMOTE) && self.asked_for(&hold);
        let exact = shard.recency.is_exact();
        let flags =
            if demand && !first && word.state() == MRU { TOUCHED | PROMOTED } else { TOUCHED };
        if demand && word.is(WATCHED) {
            self.watched(shard, &hold, word, exact);
        }
        if word.state() == MFU && !exact {
            let now = shard.recency.now(word.kind());
            self.say_age(shard, &hold, (word.kind(), now), threads::number());
            return hold;
        }
        let raised = word.is(flags);
        if !raised {
            hold.entry().meta.raise(flags);
        }
        if !raised || word.state() == MFU || exact {
            self.leave_word((shard, id), word, flags);
        }
        hold
    }

    /// A demand has found an entry that was prefetched or is to be demoted. Returns whether it is
    /// the one that a prefetch was for.
    #[cold]
    fn asked_for(&self, hold: &Hold<K, V>) -> bool {
        let before = hold.entry().meta.lower(PREFETCHED | DEMOTE);
        if before.is(PREFETCHED) {
            self.core().counters.count(Event::DemandHitPredictivePrefetch);
        }
        before.is(PREFETCHED)
    }

    /// Notes a hit for the lists. The notes of a full ring are applied if the lock can be had, or
    /// in any case if every hit counts.
    fn leave_word(&self, (shard, id): (&Shard<K, V>, u32), word: Word, flags: u64) {
        let core = self.core();
        let promote = flags & PROMOTED != 0;
        // So that the rule in force is the one of this hit.
        let at_once = shard.recency.is_exact() && core.referees.is_some();
        if shard.recency.note(id, word, promote) {
            if at_once {
                drop(core.lock_drained(shard));
            }
            return;
        }
        let guard = if shard.recency.is_exact() {
            Some(core.lock(shard))
        } else {
            shard.try_lock(&core.tails, &core.counters)
        };
        match guard {
            Some(mut guard) => {
                core.drain(&mut guard, false, shard.recency.is_exact());
                shard.recency.note(id, word, promote);
            }
            None => core.counters.count(Event::NotesLost),
        }
    }

    /// Has the uses that this thread has counted in a sublist taken over, if the lock can be had.
    #[cold]
    fn turn(&self, shard: &Shard<K, V>) {
        let core = self.core();
        if let Some(mut guard) = shard.try_lock(&core.tails, &core.counters) {
            core.drain(&mut guard, false, false);
        }
    }
}

/// The place of a hit among the counters of hits.
#[inline(always)]
const fn hit_place(access: Access, kind: Kind, list: List) -> usize {
    access as usize * 4 + kind as usize * 2 + list as usize
}

/// Lets go of what was pinned for another key with the same bits of its hash.
#[cold]
#[inline(never)]
fn let_go<K, V>(hold: Hold<K, V>) {
    drop(hold);
}
