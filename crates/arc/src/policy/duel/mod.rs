//! The duel: four rules, and four small shadows of the cache that play one each. The cache goes by
//! the rule whose shadow does best.
//!
//! [`Duel`] is the whole policy in one thread, for one kind of entries. `docs/policy.md` explains
//! it and has its table.

mod directory;
mod referee;
mod ruled_cache;
pub(crate) mod rules;

pub(crate) use referee::is_sampled;
pub use referee::{Referee, Verdict};
pub use rules::{Constants, Rule};

use super::Outcome;
use foldhash::quality::FixedState;
use ruled_cache::RuledCache;
use std::hash::{BuildHasher, Hash};

/// The duel over keys alone, without values, for one thread and one kind.
///
/// ```
/// use ogive_arc::policy::duel::Duel;
///
/// // A loop over 150 keys in a cache of 100: under LRU or ARC it never hits.
/// let mut duel = Duel::new(100);
/// let hits = (0..1500).filter(|n| duel.access(n % 150, 1).is_hit()).count();
/// assert!(hits > 850);
/// ```
#[derive(Debug)]
pub struct Duel<K> {
    cache: RuledCache<K>,
    referee: Referee,
    hasher: FixedState,
}

impl<K: Eq + Hash> Duel<K> {
    /// An empty policy for `capacity_bytes`.
    #[must_use]
    pub fn new(capacity_bytes: u64) -> Self {
        Self::with_constants(capacity_bytes, Constants::DEFAULT)
    }

    /// The same with other constants: to see how little they matter.
    #[must_use]
    pub fn with_constants(capacity_bytes: u64, constants: Constants) -> Self {
        Self {
            cache: RuledCache::new(capacity_bytes, Rule::FIRST, constants),
            referee: Referee::with_constants(capacity_bytes, constants),
            hasher: FixedState::with_seed(0),
        }
    }

    /// An access to a key, of `weight_bytes` if it has to be brought in (0 counts as 1). A key
    /// heavier than the capacity is not kept.
    pub fn access(&mut self, key: K, weight_bytes: u64) -> Outcome {
        let hash = self.hasher.hash_one(&key);
        let weight_bytes = weight_bytes.max(1);
        if let Some(verdict) = self.referee.request(hash, weight_bytes) {
            self.cache.set_rule(verdict.rule, verdict.mru_share);
        }
        self.cache.access(hash, key, weight_bytes)
    }

    fn find(&self, key: &K) -> Option<u32> {
        self.cache.directory.find(self.hasher.hash_one(key), key)
    }

    fn find_live(&self, key: &K) -> Option<u32> {
        self.find(key).filter(|&id| !self.cache.directory.node(id).on.is_ghost())
    }

    /// Whether a key is in the cache.
    #[must_use]
    pub fn contains(&self, key: &K) -> bool {
        self.find_live(key).is_some()
    }

    /// Forgets a key, entry or ghost. Returns whether there was one.
    pub fn remove(&mut self, key: &K) -> bool {
        self.find(key).is_some_and(|id| {
            self.cache.remove(id);
            true
        })
    }

    /// Drops the bytes of an entry without a hold and keeps its ghost, as if it had been evicted.
    /// Returns whether there was one.
    pub fn demote(&mut self, key: &K) -> bool {
        self.find_live(key).is_some_and(|id| self.cache.demote(id))
    }

    /// Keeps an entry from being evicted until it is released as often. Returns whether there
    /// is one.
    pub fn hold(&mut self, key: &K) -> bool {
        self.find_live(key).is_some_and(|id| {
            self.cache.hold(id);
            true
        })
    }

    /// Takes a hold away. Returns whether there was one.
    pub fn release(&mut self, key: &K) -> bool {
        let held = self.find_live(key).filter(|&id| self.cache.directory.node(id).holds > 0);
        held.is_some_and(|id| {
            self.cache.release(id);
            true
        })
    }

    /// Changes the capacity; evicts and forgets what does not fit any more.
    pub fn resize(&mut self, capacity_bytes: u64) {
        self.cache.set_capacity(capacity_bytes);
        self.referee.set_capacity(capacity_bytes);
    }

    /// The rule in use.
    #[must_use]
    pub const fn rule(&self) -> Rule {
        self.cache.rule()
    }

    /// The referee.
    #[must_use]
    pub const fn referee(&self) -> &Referee {
        &self.referee
    }

    /// Bytes of all entries.
    #[must_use]
    pub const fn live_bytes(&self) -> u64 {
        self.cache.live_bytes()
    }

    /// Bytes that all ghosts had.
    #[must_use]
    pub const fn ghost_bytes(&self) -> u64 {
        self.cache.ghost_bytes()
    }

    /// Entries evicted so far.
    #[must_use]
    pub const fn evictions(&self) -> u64 {
        self.cache.evictions()
    }

    /// Recounts everything.
    ///
    /// # Errors
    /// The first invariant that does not hold, in words.
    pub fn validate(&self) -> Result<(), String> {
        self.cache.validate()?;
        self.referee.validate()?;
        if self.cache.rule() != self.referee.rule() {
            return Err(format!("the cache goes by {:?}", self.cache.rule()));
        }
        Ok(())
    }
}

/// One rule alone, without a duel: what a shadow plays, over all keys.
#[derive(Debug)]
pub struct Alone<K> {
    cache: RuledCache<K>,
    hasher: FixedState,
}

impl<K: Eq + Hash> Alone<K> {
    /// An empty policy for `capacity_bytes`.
    #[must_use]
    pub fn new(capacity_bytes: u64, rule: Rule) -> Self {
        Self {
            cache: RuledCache::new(capacity_bytes, rule, Constants::DEFAULT),
            hasher: FixedState::with_seed(0),
        }
    }

    /// An access to a key, of `weight_bytes` if it has to be brought in (0 counts as 1).
    pub fn access(&mut self, key: K, weight_bytes: u64) -> Outcome {
        let hash = self.hasher.hash_one(&key);
        self.cache.access(hash, key, weight_bytes.max(1))
    }

    /// Recounts everything.
    ///
    /// # Errors
    /// The first invariant that does not hold, in words.
    pub fn validate(&self) -> Result<(), String> {
        self.cache.validate()
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests;
