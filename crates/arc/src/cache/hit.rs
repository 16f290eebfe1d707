//! What a hit does beyond pinning its entry and marking its age: notes for the lists, and having
//! what was counted taken over. Off the path of most hits; waits for no lock, unless every hit
//! counts.

use super::{Cache, Hold};
use crate::counters::Event;
use crate::policy::{Access, List};
use crate::table::{DEMOTE, MFU, MRU, PREFETCHED, PROMOTED, TOUCHED, Word};
use std::hash::Hash;

impl<K: Eq + Hash + Clone, V> Cache<K, V> {
    /// The same for an entry that may have to leave a note: one of MRU, or one that something is
    /// the matter with; or where every hit counts.
    #[cold]
    pub(super) fn hit_noted(&self, hold: &Hold<K, V>, word: Word, access: Access) {
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
        if shard.recency.note(hold.id(), word, promote) {
            return;
        }
        let guard = if shard.recency.is_exact() {
            Some(core.lock(shard))
        } else {
            shard.try_lock(&core.tails, &core.counters)
        };
        match guard {
            Some(mut guard) => {
                guard.drain(false, core.arrivals());
                shard.recency.note(hold.id(), word, promote);
            }
            None => core.counters.count(Event::NotesLost),
        }
    }

    /// Has the uses that this thread has counted in a sublist taken over, if the lock can be had.
    #[cold]
    pub(super) fn turn(&self, sublist: usize) {
        let core = self.core();
        if let Some(mut guard) = core.shards()[sublist].try_lock(&core.tails, &core.counters) {
            guard.drain(false, core.arrivals());
        }
    }
}
