//! The whole policy in one thread: one sublist, one balance.
//!
//! With one kind and equal weights the sequence of hits and misses is exactly that of ARC as
//! printed (FAST '03, Fig. 4); `tests/engine/golden.rs` holds it to published hit counts.

use super::balance::{Balance, Step};
use super::plain_sublist::Sublist;
use super::state::{Access, Kind, List, State};
use super::transition::{self, Arrival};
use foldhash::quality::FixedState;
use std::hash::{BuildHasher, Hash};

/// The result of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The entry, on this list.
    Hit(List),
    /// Only its ghost, from this list.
    GhostHit(List),
    /// Nothing.
    Miss,
}

impl Outcome {
    /// Whether it was a hit.
    #[must_use]
    pub const fn is_hit(self) -> bool {
        matches!(self, Self::Hit(_))
    }
}

/// ARC over keys alone, without values, for one thread.
///
/// ```
/// use ogive_arc::Kind;
/// use ogive_arc::policy::PlainArc;
///
/// let mut policy = PlainArc::new(2);
/// let keys = [1, 1, 2, 3, 1];
/// let hits = keys.into_iter().filter(|&key| policy.access(key, 1, Kind::Data).is_hit());
/// assert_eq!(hits.count(), 2);
/// ```
#[derive(Debug)]
pub struct PlainArc<K> {
    sublist: Sublist<K, ()>,
    balance: Balance,
    hasher: FixedState,
    clock: u64,
    evictions: u64,
}

impl<K: Eq + Hash> PlainArc<K> {
    /// An empty policy for `capacity_bytes`.
    #[must_use]
    pub fn new(capacity_bytes: u64) -> Self {
        Self {
            sublist: Sublist::new(),
            balance: Balance::new(0, capacity_bytes, capacity_bytes),
            hasher: FixedState::with_seed(0),
            clock: 0,
            evictions: 0,
        }
    }

    /// A demand access to a key, of `weight_bytes` if it has to be brought in (0 counts as 1).
    /// A key heavier than the capacity is not kept.
    pub fn access(&mut self, key: K, weight_bytes: u64, kind: Kind) -> Outcome {
        self.access_as(key, weight_bytes, kind, Access::Demand)
    }

    /// An access by demand or prefetch.
    pub fn access_as(&mut self, key: K, weight_bytes: u64, kind: Kind, by: Access) -> Outcome {
        let hash = self.hasher.hash_one(&key);
        let weight_bytes = weight_bytes.max(1);
        let found = self.sublist.find(hash, &key);
        let (id, arrival) = match found {
            Some(id) if self.sublist.state(id).is_live() => return self.hit(id, by),
            Some(id) => (id, transition::take_ghost(&mut self.sublist, &mut self.balance, id)),
            None if weight_bytes > self.balance.target_bytes() => return Outcome::Miss,
            None => (self.sublist.add(hash, key, kind), Arrival::NEW),
        };
        let outcome = arrival.ghost.map_or(Outcome::Miss, |(_, list)| Outcome::GhostHit(list));
        if weight_bytes > self.balance.target_bytes() {
            self.sublist.unindex(id);
            self.sublist.free(id);
            return outcome;
        }
        self.sublist.set_kind(id, kind);
        let incoming = arrival.incoming(kind, weight_bytes);
        while self.make_step(&self.balance.step(Some(&incoming), |k, l| self.can_evict(k, l))) {}
        self.balance.add_anon(kind, weight_bytes);
        let (sublist, balance) = (&mut self.sublist, &mut self.balance);
        transition::arrive(sublist, balance, id, arrival.list, weight_bytes, ());
        sublist.set_prefetched(id, by == Access::Prefetch);
        self.relink(id);
        outcome
    }

    fn hit(&mut self, id: u32, by: Access) -> Outcome {
        let touch = transition::touch(&mut self.sublist, id, by);
        self.sublist.unlink(id);
        if touch.promote {
            transition::promote(&mut self.sublist, &mut self.balance, id);
        }
        self.relink(id);
        Outcome::Hit(touch.list)
    }

    fn relink(&mut self, id: u32) {
        self.clock += 1;
        self.sublist.link(id, self.clock);
    }

    fn can_evict(&self, kind: Kind, list: List) -> bool {
        self.sublist.list_len(super::list_index(kind, list, false)) > 0
    }

    /// Takes a step; false if there was none to take.
    fn make_step(&mut self, step: &Step) -> bool {
        self.clock += 1;
        let (sublist, balance) = (&mut self.sublist, &mut self.balance);
        match *step {
            // The last two are of the duel's rules, which this does not have.
            Step::Fits | Step::NotEnough | Step::EvictWaiting { .. } | Step::Demote { .. } => false,
            Step::Forget { kind, list } => {
                let tail = sublist.tail(super::list_index(kind, list, true));
                tail.is_some_and(|id| transition::forget(sublist, balance, id).is_some())
            }
            Step::Evict { kind, list, keep_ghost } => {
                self.evictions += 1;
                let at = (kind, list);
                transition::evict_tail(sublist, balance, at, keep_ghost, self.clock).is_some()
            }
        }
    }

    /// Forgets a key, entry or ghost. Returns whether there was one.
    pub fn remove(&mut self, key: &K) -> bool {
        let hash = self.hasher.hash_one(key);
        let Some(id) = self.sublist.find(hash, key) else {
            return false;
        };
        if self.sublist.state(id).is_ghost() {
            transition::forget(&mut self.sublist, &mut self.balance, id);
        } else {
            transition::remove(&mut self.sublist, &mut self.balance, id);
        }
        true
    }

    /// Drops the bytes of an entry and keeps its ghost, as if it had been evicted. Returns
    /// whether there was one.
    pub fn demote(&mut self, key: &K) -> bool {
        let hash = self.hasher.hash_one(key);
        let Some(id) = self.sublist.find(hash, key) else {
            return false;
        };
        if !self.sublist.state(id).is_live() {
            return false;
        }
        self.clock += 1;
        self.sublist.unlink(id);
        transition::evict(&mut self.sublist, &mut self.balance, id, true, self.clock);
        true
    }

    /// Changes the capacity; evicts and forgets what does not fit any more.
    pub fn resize(&mut self, capacity_bytes: u64) {
        self.balance.set_max_bytes(capacity_bytes);
        while self.make_step(&self.balance.step(None, |k, l| self.can_evict(k, l))) {}
    }

    /// The state of a key.
    #[must_use]
    pub fn state(&self, key: &K) -> Option<State> {
        let id = self.sublist.find(self.hasher.hash_one(key), key)?;
        Some(self.sublist.state(id))
    }

    /// Sizes and targets.
    #[must_use]
    pub const fn balance(&self) -> &Balance {
        &self.balance
    }

    /// Entries and ghosts.
    #[must_use]
    pub const fn sublist(&self) -> &Sublist<K, ()> {
        &self.sublist
    }

    /// Entries evicted so far.
    #[must_use]
    pub const fn evictions(&self) -> u64 {
        self.evictions
    }

    /// Recounts everything.
    ///
    /// # Errors
    /// The first invariant that does not hold, in words.
    pub fn validate(&self) -> Result<(), String> {
        let census = self.sublist.validate()?;
        if census.state_bytes != *self.balance.sizes() {
            return Err(format!("{:?} counted, {:?} said", census.state_bytes, self.balance));
        }
        if self.balance.excess_bytes() > 0 {
            return Err(format!("over the target: {:?}", self.balance));
        }
        Ok(())
    }
}
