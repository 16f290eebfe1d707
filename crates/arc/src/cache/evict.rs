//! Making room: the balance says from which list, the published tails say from which
//! sublist, and what leaves is dropped after all locks are released.
//!
//! Work is proportional to what is freed: held entries stand on no list, so nothing is
//! walked past; with nothing to evict, one load a list says so.

use super::core::{Core, elapsed_ns};
use super::tails::Pick;
use super::{Eviction, Growth, Reason};
use crate::counters::Event;
use crate::policy::transition::{self, Evicted};
use crate::policy::{Incoming, List, NodeId, Step, Sublist, is_ghost_list, list_index};
use std::sync::Arc;
use std::time::Instant;

/// The most entries evicted under one hold of a sublist's lock.
const BATCH: usize = 16;

/// How many sublists in a row may turn out empty, because others were quicker, before the
/// evictor lets it be.
const FRUITLESS_MAX: u32 = 64;

/// What leaves the cache: collected under locks, dropped after them.
pub(crate) struct Leaving<K, V> {
    keys: Vec<K>,
    values: Vec<Arc<V>>,
    evictions: Vec<Eviction<K, V>>,
    pub(crate) evicted_bytes: u64,
    evicted: u64,
    forgotten: u64,
}

impl<K, V> Default for Leaving<K, V> {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            values: Vec::new(),
            evictions: Vec::new(),
            evicted_bytes: 0,
            evicted: 0,
            forgotten: 0,
        }
    }
}

impl<K, V> Leaving<K, V> {
    /// For a batch, so that nothing has to be allocated under the locks.
    fn with_room(core: &Core<K, V>, list: usize) -> Self {
        let mut leaving = Self::default();
        if is_ghost_list(list) {
            leaving.keys.reserve_exact(BATCH);
        } else if core.evict_hook.is_some() {
            leaving.evictions.reserve_exact(BATCH);
        } else {
            leaving.values.reserve_exact(BATCH);
        }
        leaving
    }

    /// Takes what a freed node owned.
    pub(crate) fn freed(&mut self, (key, value): (Option<K>, Option<Arc<V>>)) {
        self.keys.extend(key);
        self.values.extend(value);
    }

    fn evicted(
        &mut self,
        core: &Core<K, V>,
        evicted: Evicted<K, Arc<V>>,
        key: Option<K>,
        reason: Reason,
    ) {
        self.evicted += 1;
        self.evicted_bytes += evicted.weight_bytes;
        let mut evicted = evicted;
        if core.evict_hook.is_some()
            && let (Some(key), Some(value)) = (key, evicted.payload.take())
        {
            self.evictions.push(Eviction {
                key,
                value,
                weight_bytes: evicted.weight_bytes,
                kind: evicted.kind,
                list: evicted.list,
                prefetched: evicted.prefetched,
                reason,
            });
        }
        self.freed((evicted.key, evicted.payload));
    }

    /// Turns an entry which nobody holds and which is on no list into a ghost.
    pub(crate) fn demote(
        &mut self,
        core: &Core<K, V>,
        sublist: &mut Sublist<K, Arc<V>>,
        id: NodeId,
        stamp: u64,
    ) {
        let key = core.evict_hook.as_ref().map(|_| (core.clone_key)(sublist.key(id)));
        let balance = &mut core.ledger().balance;
        let evicted = transition::evict(sublist, balance, id, true, stamp);
        self.evicted(core, evicted, key, Reason::Demoted);
        core.counters.count(Event::Demotions);
    }

    /// Counts, calls the hook and drops everything. Only with no lock held.
    pub(crate) fn let_go(self, core: &Core<K, V>) {
        if self.evicted > 0 {
            core.counters.add(Event::Deleted, self.evicted);
            core.counters.add(Event::EvictBytes, self.evicted_bytes);
        }
        if self.forgotten > 0 {
            core.counters.add(Event::GhostsForgotten, self.forgotten);
        }
        if let Some(hook) = &core.evict_hook {
            self.evictions.into_iter().for_each(hook);
        }
    }
}

/// What making room came to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Room {
    pub(crate) evicted_bytes: u64,
    /// The cache is over its target still, for all that is left is held.
    pub(crate) not_enough: bool,
    /// What is to come in is heavier than the whole target: no room was made.
    pub(crate) oversize: bool,
}

impl<K, V> Core<K, V> {
    /// Gets back within bounds after a release or a demotion. One load if there is nothing
    /// to do.
    pub(crate) fn trim_if_over(&self) {
        if self.is_over() {
            self.make_room(None);
        }
    }

    /// Evicts and forgets until `incoming` fits, and reserves its bytes; with `None` until
    /// the cache is within its target. Reserves them too if there is not enough to evict:
    /// a reader is never refused.
    pub(crate) fn make_room(&self, incoming: Option<&Incoming>) -> Room {
        let mut room = Room::default();
        if let Some(incoming) = incoming {
            room.oversize = self.grow_for(incoming);
            if room.oversize {
                return room;
            }
        }
        let mut start = None;
        let mut fruitless = 0;
        loop {
            let step = {
                let mut ledger = self.ledger();
                let mut step = self.next_step(&ledger.balance, incoming);
                if fruitless == FRUITLESS_MAX {
                    step = Step::NotEnough;
                }
                if matches!(step, Step::Fits | Step::NotEnough)
                    && let Some(incoming) = incoming
                {
                    ledger.balance.add_anon(incoming.kind, incoming.weight_bytes);
                }
                step
            };
            let Some(list) = step.list_index() else {
                room.not_enough = step == Step::NotEnough;
                break;
            };
            start.get_or_insert_with(Instant::now);
            let progress = self
                .tails
                .eldest(list)
                .is_some_and(|pick| self.take_batch(list, pick, incoming, &mut room.evicted_bytes));
            fruitless = if progress { 0 } else { fruitless + 1 };
        }
        if let Some(start) = start {
            self.counters.count(Event::EvictCalls);
            self.counters.add(Event::EvictNs, elapsed_ns(start));
        }
        if room.not_enough && incoming.is_some() {
            self.counters.count(Event::EvictNotEnough);
        }
        room
    }

    /// Lets the target grow for an entry on its way in, where that is allowed. Returns whether
    /// the entry is heavier than the whole target all the same.
    fn grow_for(&self, incoming: &Incoming) -> bool {
        let (oversize, denied) = {
            let mut ledger = self.ledger();
            let weight_bytes = incoming.weight_bytes;
            ledger.balance.grow_for(weight_bytes);
            let denied = ledger.note_denied(weight_bytes);
            let oversize = weight_bytes > ledger.balance.target_bytes();
            if oversize {
                ledger.balance.add_oversize(incoming.kind, weight_bytes);
            }
            (oversize, denied)
        };
        if let Some(hook) = denied {
            hook(Growth::Denied);
        }
        oversize
    }

    fn next_step(&self, balance: &crate::policy::Balance, incoming: Option<&Incoming>) -> Step {
        balance.step(incoming, |kind, list| self.tails.any(list_index(kind, list, false)))
    }

    /// Takes from one list of one sublist as long as the balance wants it from there and no
    /// other sublist has an elder entry. Returns whether anything left.
    fn take_batch(
        &self,
        list: usize,
        pick: Pick,
        incoming: Option<&Incoming>,
        evicted_bytes: &mut u64,
    ) -> bool {
        let Some(shard) = self.shard(pick.sublist) else {
            return false;
        };
        let mut leaving = Leaving::with_room(self, list);
        let mut taken = 0;
        {
            let mut guard = shard.lock_to_evict();
            let stamp = guard.stamp(self);
            let sublist = &mut guard.sublist;
            let mut ledger = self.ledger();
            while taken < BATCH {
                let Some(tail) = sublist.tail(list) else {
                    break;
                };
                if taken > 0 && sublist.tail_stamp(list) > pick.next_stamp {
                    break;
                }
                let step = self.next_step(&ledger.balance, incoming);
                if step.list_index() != Some(list) {
                    break;
                }
                let balance = &mut ledger.balance;
                match step {
                    Step::Forget { .. } => {
                        leaving.keys.extend(transition::forget(sublist, balance, tail));
                        leaving.forgotten += 1;
                    }
                    Step::Evict { kind, list, keep_ghost } => {
                        let at: (_, List) = (kind, list);
                        let key = self.evict_hook.as_ref();
                        let key = key.map(|_| (self.clone_key)(sublist.key(tail)));
                        let out = transition::evict_tail(sublist, balance, at, keep_ghost, stamp);
                        if let Some(out) = out {
                            leaving.evicted(self, out, key, Reason::Capacity);
                        }
                    }
                    Step::Fits | Step::NotEnough => {}
                }
                taken += 1;
            }
        }
        if taken == 0 {
            self.counters.count(Event::EvictSkip);
        }
        *evicted_bytes += leaving.evicted_bytes;
        leaving.let_go(self);
        taken > 0
    }
}
