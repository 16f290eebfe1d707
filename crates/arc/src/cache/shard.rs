//! One sublist behind its lock, with the loads in flight for its keys.

use super::core::{Core, lock_counted};
use super::evict::Leaving;
use super::flight::Flight;
use crate::counters::Event;
use crate::policy::{LISTS, NodeId, State, Sublist, transition};
use crate::sync::{Mutex, MutexGuard, try_lock};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// What the lock of a sublist guards.
pub(crate) struct Inside<K, V> {
    pub(crate) sublist: Sublist<K, Arc<V>>,
    /// Loads in flight by their loading node, doomed ones included.
    pub(crate) flights: HashMap<NodeId, Arc<Flight<V>>, FixedState>,
    stamp: u64,
}

/// Stamps handed out by one sublist between two arrivals, at most: 2^20.
const ARRIVAL_SHIFT: u32 = 20;

impl<K, V> Inside<K, V> {
    /// The stamp for what is used now: arrivals in the whole cache, then uses in this sublist
    /// since the last one. So sublists agree on what came before or after an arrival, and
    /// between two arrivals, where no hit may write what others read, they agree as far as
    /// hits are spread evenly.
    pub(crate) fn stamp(&mut self, core: &Core<K, V>) -> u64 {
        let start = core.arrivals() << ARRIVAL_SHIFT;
        let last = start | ((1 << ARRIVAL_SHIFT) - 1);
        self.stamp = (self.stamp + 1).clamp(start, last);
        self.stamp
    }
}

/// One sublist.
#[repr(align(128))]
pub(crate) struct Shard<K, V> {
    inside: Mutex<Inside<K, V>>,
    number: usize,
    pub(crate) core: Arc<Core<K, V>>,
}

impl<K, V> Shard<K, V> {
    pub(crate) fn new(number: usize, core: Arc<Core<K, V>>) -> Self {
        let flights = HashMap::with_hasher(FixedState::with_seed(0));
        Self {
            inside: Mutex::new(Inside { sublist: Sublist::new(), flights, stamp: 0 }),
            number,
            core,
        }
    }

    /// Its number.
    pub(crate) const fn number(&self) -> usize {
        self.number
    }

    /// Takes the lock.
    pub(crate) fn lock(&self) -> ShardGuard<'_, K, V> {
        ShardGuard { guard: lock_counted(&self.inside, &self.core.counters), shard: self }
    }

    /// Takes the lock to evict; counts if somebody has it.
    pub(crate) fn lock_to_evict(&self) -> ShardGuard<'_, K, V> {
        if let Some(guard) = try_lock(&self.inside) {
            return ShardGuard { guard, shard: self };
        }
        self.core.counters.count(Event::MutexMiss);
        self.lock()
    }

    /// Adds a hold to an entry somebody holds already.
    pub(crate) fn hold_again(&self, id: NodeId) {
        self.lock().sublist.hold(id);
    }

    /// Takes a hold away. With the last one the entry goes back to the head of its list,
    /// becomes a ghost if it was demoted meanwhile, or is freed if it was removed.
    pub(crate) fn release(&self, id: NodeId) {
        let mut leaving = Leaving::default();
        {
            let mut guard = self.lock();
            if guard.sublist.unhold(id) > 0 {
                return;
            }
            let stamp = guard.stamp(&self.core);
            let sublist = &mut guard.sublist;
            if sublist.state(id) == State::Dead {
                let freed = transition::bury(sublist, &mut self.core.ledger().balance, id);
                leaving.freed(freed);
            } else if sublist.flags(id).demote {
                leaving.demote(&self.core, sublist, id, stamp);
            } else {
                sublist.link(id, stamp);
            }
        }
        leaving.let_go(&self.core);
        self.core.trim_if_over();
    }
}

/// A sublist, locked. Publishes its tails when it is unlocked.
pub(crate) struct ShardGuard<'a, K, V> {
    guard: MutexGuard<'a, Inside<K, V>>,
    shard: &'a Shard<K, V>,
}

impl<K, V> Deref for ShardGuard<'_, K, V> {
    type Target = Inside<K, V>;

    fn deref(&self) -> &Inside<K, V> {
        &self.guard
    }
}

impl<K, V> DerefMut for ShardGuard<'_, K, V> {
    fn deref_mut(&mut self) -> &mut Inside<K, V> {
        &mut self.guard
    }
}

impl<K, V> Drop for ShardGuard<'_, K, V> {
    fn drop(&mut self) {
        let changed = self.guard.sublist.take_changed_tails();
        if changed == 0 {
            return;
        }
        for list in (0..LISTS).filter(|list| changed & (1 << list) != 0) {
            let stamp = self.guard.sublist.tail_stamp(list);
            self.shard.core.tails.publish(list, self.shard.number, stamp);
        }
    }
}
