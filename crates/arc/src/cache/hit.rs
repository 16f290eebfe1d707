//! A hit: found and pinned without a lock, and what it leaves behind for the lists and the referee.

use super::{Cache, Hold};
use crate::counters::Event;
use crate::policy::{Access, List};
use crate::table::{DEMOTE, MFU, MRU, PREFETCHED, PROMOTED, TOUCHED, WATCHED, Word};
use std::hash::Hash;

/// Nothing was found without the lock.
pub(super) struct NotFound {
    /// There was nothing for sure at some moment of the search.
    pub(super) for_sure: bool,
}

impl<K: Eq + Hash + Clone, V> Cache<K, V> {
    /// A hit without a lock.
    #[inline(always)]
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
            (hold.key() == key).then_some((hold, word))
        });
        match found {
            Some((hold, word)) => Ok(self.hit(hold, word, access)),
            None => {
                let for_sure = !others && version.is_some() && shard.index.version() == version;
                Err(NotFound { for_sure })
            }
        }
    }

    /// Counts a hit on an entry that is held now and had this word, and leaves word for the
    /// lists if it has to move.
    #[inline(always)]
    pub(super) fn hit(&self, hold: Hold<K, V>, word: Word, access: Access) -> Hold<K, V> {
        let core = self.core();
        let recency = &core.shards()[hold.sublist()].recency;
        let now = recency.now(word.kind());
        if !word.is_plain_mfu() || now.is_exact() {
            self.hit_noted(&hold, word, access);
            return hold;
        }
        core.count_hit(access as usize * 4 + word.kind() as usize * 2 + List::Mfu as usize);
        self.say_age(&hold, word);
        hold
    }

    /// Says in an MFU entry in which age it was hit.
    #[inline(always)]
    fn say_age(&self, hold: &Hold<K, V>, word: Word) {
        let (entry, recency) = (hold.entry(), &self.core().shards()[hold.sublist()].recency);
        let now = recency.now(word.kind());
        if entry.used_in() != now.age() {
            entry.set_used_in(now.age());
            if recency.count_use(word.kind(), now) {
                self.turn(hold.sublist());
            }
        }
    }

    /// The same for an entry that may have to leave a note: one of MRU, or one that something is
    /// the matter with; or where every hit counts.
    #[cold]
    fn hit_noted(&self, hold: &Hold<K, V>, word: Word, access: Access) {
        let core = self.core();
        let promoted = word.state() == MFU || word.is(PROMOTED);
        let list = if promoted { List::Mfu } else { List::Mru };
        let place = access as usize * 4 + word.kind() as usize * 2 + list as usize;
        core.count_hit(place);
        let demand = access == Access::Demand;
        let first = demand && word.any(PREFETCHED | DEMOTE) && self.asked_for(hold);
        let recency = &core.shards()[hold.sublist()].recency;
        let flags =
            if demand && !first && word.state() == MRU { TOUCHED | PROMOTED } else { TOUCHED };
        if demand && word.is(WATCHED) {
            let entry = hold.entry();
            core.note_watched(word.kind(), entry.hash(), entry.weight_bytes(), recency.is_exact());
        }
        if word.state() == MFU && !recency.is_exact() {
            self.say_age(hold, word);
            return;
        }
        let raised = word.is(flags);
        if !raised {
            hold.entry().meta.raise(flags);
        }
        if !raised || word.state() == MFU || recency.is_exact() {
            self.leave_word(hold, word, flags);
        }
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
    fn leave_word(&self, hold: &Hold<K, V>, word: Word, flags: u64) {
        let core = self.core();
        let shard = &core.shards()[hold.sublist()];
        let promote = flags & PROMOTED != 0;
        // So that the rule in force is the one of this hit.
        let at_once = shard.recency.is_exact() && core.referees.is_some();
        if shard.recency.note(hold.id(), word, promote) {
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
                shard.recency.note(hold.id(), word, promote);
            }
            None => core.counters.count(Event::NotesLost),
        }
    }

    /// Has the uses that this thread has counted in a sublist taken over, if the lock can be had.
    #[cold]
    fn turn(&self, sublist: usize) {
        let core = self.core();
        if let Some(mut guard) = core.shards()[sublist].try_lock(&core.tails, &core.counters) {
            core.drain(&mut guard, false, false);
        }
    }
}
