//! The concurrent cache: the policy over a table that is read without locks.
//!
//! # Hits
//! A hit looks its key up in the sublist's index. It pins the entry with one atomic step on the
//! entry's own word, and compares the key. That is all if the entry was moved on its list lately.
//! Otherwise the hit leaves a note in a ring, for the next thread that has the sublist's lock. A
//! hit waits for no lock; when its ring is full it tries to take one.
//!
//! # Concurrency
//! Keys hash to sublists, each with its own lock for lists and ghosts. Sizes and targets are in one
//! balance. So the cache adapts as one, and an entry can be as large as the cache, whatever the
//! number of sublists. The lock order is: a sublist, then the ledger with the balance. With one
//! sublist locked, a thread may try to lock another, and never waits for it.
//!
//! # Replacement
//! An arrival evicts the oldest entry over all sublists, as if there were one list. With more than
//! eight sublists it may evict from its own instead, if the oldest there is nearly as old.
//!
//! # Holds
//! A held entry stays on its list until an eviction meets it, which takes it off; the last release
//! puts it back. When everything is held, an arrival still succeeds. The cache is then over its
//! target until holds are released, and says so (`evict_not_enough`).
//!
//! # Loads
//! One load runs for a key at a time, under no lock. Other callers that ask for the key wait for
//! it, or leave a continuation ([`Joined`]).
//!
//! # Invalidation
//! [`Cache::invalidate`] forgets a key, ghost included, and dooms the load in flight. So a later
//! caller cannot get bytes that were read earlier. To forget all keys of one object at once, put a
//! [`Generation`](crate::Generation) into the key.

mod apply_hits;
mod builder;
mod core;
mod duel;
mod evict;
mod hand_over;
mod hit;
mod hold;
mod load;
mod miss;
#[cfg(all(test, not(any(shuttle, miri))))]
mod pin_overflow;
mod referee_ring;
mod sizing;
mod snapshot;
#[cfg(all(test, not(shuttle)))]
mod tests;
mod walk;

pub use builder::Builder;
pub use hold::Hold;
pub use load::{Claim, Joined, LoadError, Lookup, Source};
pub use sizing::Level;
pub(crate) use sizing::WeakCache;
pub use walk::Resident;

use self::core::Core;
use self::evict::Leaving;
use self::miss::Ticket;
use crate::counters::Event;
use crate::policy::{Access, Kind, List, State};
use crate::sync::atomic::Ordering;
use crate::table::{DOOMED, LOADING, MRU, SublistGuard, WAITING};
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

/// Which entry leaves when room is needed (`docs/policy.md`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// ARC as printed, with two kinds.
    Arc,
    /// LIRS, LRU, 2Q or ARC, whichever does best at the moment (see
    /// [`policy::duel`](crate::policy::duel)), for each kind.
    #[default]
    Duel,
}

impl Policy {
    /// Its name, as in options and statistics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Arc => "arc",
            Self::Duel => "duel",
        }
    }
}

/// Why an entry left the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Others needed its room, or the target was lowered.
    Capacity,
    /// It was demoted.
    Demoted,
}

/// An entry that has left the cache, for the eviction hook ([`Builder::on_evict`]).
#[derive(Debug)]
pub struct Eviction<K, V> {
    /// Its key.
    pub key: K,
    /// Its value.
    pub value: Arc<V>,
    /// Its weight in bytes.
    pub weight_bytes: u64,
    /// Its kind.
    pub kind: Kind,
    /// The list it was on.
    pub list: List,
    /// It was prefetched, and never demanded.
    pub prefetched: bool,
    /// Why it left.
    pub reason: Reason,
}

/// The reason for a call of the growth hook ([`Cache::set_growth_hook`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// This many bytes came in since the last call.
    Added {
        /// Weight of all entries that came in, in bytes.
        bytes: u64,
    },
    /// The target should grow, but growth is denied, and the time it was denied for is over.
    Denied,
}

/// An adaptive replacement cache, to be shared between threads. Cloning gives another handle
/// of the same cache.
///
/// ```
/// use ogive_arc::{Access, Cache, Kind};
///
/// let cache: Cache<u64, Vec<u8>> = Cache::new(1 << 20);
/// let load = || Ok::<_, std::io::ErrorKind>((vec![7; 4096], 4096));
/// let (hold, _) = cache.get_or_load(&1, Kind::Data, Access::Demand, load)?;
/// assert_eq!(hold[0], 7);
/// assert!(cache.get(&1, Access::Demand).is_some());
/// # Ok::<(), ogive_arc::LoadError<std::io::ErrorKind>>(())
/// ```
pub struct Cache<K, V> {
    core: Arc<Core<K, V>>,
}

impl<K, V> Clone for Cache<K, V> {
    fn clone(&self) -> Self {
        self.core.handles.fetch_add(1, Ordering::Relaxed);
        Self { core: Arc::clone(&self.core) }
    }
}

impl<K, V> Drop for Cache<K, V> {
    fn drop(&mut self) {
        if self.core.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            // Entries without a hold are freed now. Held ones become dead and keep the core.
            clear(&self.core);
        }
    }
}

impl<K, V> Cache<K, V> {
    #[inline(always)]
    fn core(&self) -> &Core<K, V> {
        &self.core
    }
}

impl<K: Eq + Hash + Clone, V> Cache<K, V> {
    /// A cache for `capacity_bytes` with everything else as [`Builder`] has it by default.
    #[must_use]
    pub fn new(capacity_bytes: u64) -> Self {
        Builder::new(capacity_bytes).build()
    }

    /// Starts building a cache for `capacity_bytes`.
    pub fn builder(capacity_bytes: u64) -> Builder<K, V> {
        Builder::new(capacity_bytes)
    }

    #[inline(always)]
    fn hash(&self, key: &K) -> u64 {
        self.core.hasher.hash_one(key)
    }

    /// The entry of a key, if it is here. Counts a hit or a miss; a key that is being loaded
    /// is a miss. Never waits for a load.
    ///
    /// A caller that would go on to load the key should call [`Cache::get_or_load`] instead, which
    /// looks and counts once.
    #[must_use]
    #[inline]
    pub fn get(&self, key: &K, access: Access) -> Option<Hold<K, V>> {
        let hash = self.hash(key);
        match self.find_near(hash, key, access) {
            Some(hold) => Some(hold),
            None => self.get_beyond(hash, key, access),
        }
    }

    /// The look-up near the key's home found nothing.
    #[inline(never)]
    fn get_beyond(&self, hash: u64, key: &K, access: Access) -> Option<Hold<K, V>> {
        let found = self.look_beyond(hash, key, access);
        if let Err(loading) = found {
            let kind = loading.unwrap_or(Kind::Data);
            self.count_miss(kind, access);
        }
        found.ok()
    }

    /// The entry of a key, if it is here. Counts a hit, but never a miss (OpenZFS:
    /// `ARC_FLAG_CACHED_ONLY`).
    #[must_use]
    pub fn get_cached_only(&self, key: &K, access: Access) -> Option<Hold<K, V>> {
        let hash = self.hash(key);
        if let Some(hold) = self.find_near(hash, key, access) {
            return Some(hold);
        }
        let found = self.look_beyond(hash, key, access);
        if let Err(Some(_)) = found {
            self.core().counters.count(Event::CachedOnlyInProgress);
        }
        found.ok()
    }

    /// After a look that found nothing near: the entry, or the kind of the load in flight. Takes
    /// the lock, unless the entry is found without it or the key is certainly absent.
    fn look_beyond(&self, hash: u64, key: &K, access: Access) -> Result<Hold<K, V>, Option<Kind>> {
        match self.find_unlocked(hash, key, access) {
            Ok(hold) => return Ok(hold),
            Err(not_found) if not_found.for_sure => return Err(None),
            Err(_) => {}
        }
        let core = self.core();
        let sublist = core.sublist_of(hash);
        let guard = core.lock_drained(sublist);
        let id = guard.find(hash, key).ok_or(None)?;
        if let Some((hold, word)) = Hold::pin(core, sublist, id) {
            drop(guard);
            return Ok(self.hit((sublist, id), hold, word, access));
        }
        Err(Some(guard.word(id).kind()))
    }

    fn count_miss(&self, kind: Kind, access: Access) {
        self.core().counters.add_at(Event::Miss, access as usize * 2 + kind as usize, 1);
    }

    fn count_claim(&self, ticket: &Ticket) {
        let core = self.core();
        self.count_miss(ticket.kind, ticket.access);
        if ticket.access == Access::Prefetch {
            core.counters.count(Event::PredictivePrefetch);
        }
        core.count_ghost_hit(&ticket.arrival);
    }

    /// Claims a key to load it, if there is neither an entry nor a load in flight. Never
    /// waits. Counts a miss if the claim is given.
    pub fn try_claim(&self, key: &K, kind: Kind, access: Access) -> Option<Claim<K, V>> {
        let core = self.core();
        let hash = self.hash(key);
        let owned = key.clone();
        let ticket = {
            let mut guard = core.lock_drained(core.sublist_of(hash));
            if guard.find(hash, key).is_some() {
                return None;
            }
            core.begin(&mut guard, (hash, owned), kind, access)
        };
        self.count_claim(&ticket);
        Some(Claim::new(self.clone(), ticket))
    }

    /// Puts a value in, with its weight in bytes (0 counts as 1), and holds it.
    ///
    /// If the key has a value it is replaced, in its list; holds of the old value keep it. A load
    /// of the key in flight is doomed as by [`Cache::invalidate`]. Counts neither a hit nor a miss;
    /// a ghost of the key counts as a ghost hit.
    pub fn insert(
        &self,
        key: K,
        value: V,
        weight_bytes: u64,
        kind: Kind,
        access: Access,
    ) -> Hold<K, V> {
        let core = self.core();
        let hash = self.hash(&key);
        let (value, weight_bytes) = (Arc::new(value), weight_bytes.max(1));
        let mut leaving = Leaving::default();
        if access == Access::Demand {
            core.show(kind, hash, weight_bytes);
        }
        let mut guard = core.lock_drained(core.sublist_of(hash));
        let mut list = None;
        if let Some(id) = guard.find(hash, &key) {
            let word = guard.word(id);
            list = word.is_live().then(|| word.list_due());
            guard.begin_replacing();
            core.forget_entry(&mut guard, id, &mut leaving);
        }
        let mut ticket = core.begin(&mut guard, (hash, key), kind, access);
        if let Some(list) = list {
            ticket.arrival.list = list;
        }
        core.count_ghost_hit(&ticket.arrival);
        let hold = core.put_locked(guard, ticket, value, weight_bytes);
        leaving.finish(core);
        hold
    }

    /// Forgets a key: its entry, its ghost, and the load in flight. The result of that load goes
    /// only to callers that wait for it already. Returns whether there was any.
    ///
    /// After it has returned, no value that was loaded from an earlier state of the origin can be
    /// found under this key.
    pub fn invalidate(&self, key: &K) -> bool {
        self.forget(key).is_some()
    }

    /// As [`Cache::invalidate`]; returns the value, if there was an entry.
    pub fn remove(&self, key: &K) -> Option<Arc<V>> {
        self.forget(key).flatten()
    }

    fn forget(&self, key: &K) -> Option<Option<Arc<V>>> {
        let core = self.core();
        let hash = self.hash(key);
        let mut leaving = Leaving::default();
        let mut guard = core.lock_drained(core.sublist_of(hash));
        let value = match guard.find(hash, key) {
            Some(id) => {
                let value = guard.value(id).map(Arc::clone);
                core.forget_entry(&mut guard, id, &mut leaving);
                value
            }
            None => {
                let ghost = guard.take_ghost(hash)?;
                let balance = &mut core.ledger().balance;
                balance.sub(ghost.kind, ghost.list, true, ghost.weight_bytes);
                None
            }
        };
        drop(guard);
        core.counters.count(Event::Invalidations);
        leaving.finish(core);
        Some(value)
    }

    /// Drops the bytes of an entry and remembers its key as a ghost, as if it had been evicted. It
    /// is for the owner of a cache above, which has the bytes now. A held entry is demoted with its
    /// last release, unless a demand asks for it before. Returns whether there was an entry.
    pub fn demote(&self, key: &K) -> bool {
        let core = self.core();
        let hash = self.hash(key);
        let mut leaving = Leaving::with_room(core, 1);
        {
            let mut guard = core.lock_drained(core.sublist_of(hash));
            let Some(id) = guard.find(hash, key).filter(|&id| guard.word(id).is_live()) else {
                return false;
            };
            core.demote_locked(&mut guard, id, &mut leaving);
        }
        leaving.finish(core);
        core.trim_if_over();
        true
    }

    /// Whether there is an entry for a key. Counts nothing and moves nothing.
    #[must_use]
    pub fn contains(&self, key: &K) -> bool {
        self.state(key).is_some_and(State::is_live)
    }

    /// The state of a key. Counts nothing and moves nothing.
    #[must_use]
    pub fn state(&self, key: &K) -> Option<State> {
        let core = self.core();
        let hash = self.hash(key);
        let guard = core.lock_settled(core.sublist_of(hash));
        if let Some(id) = guard.find(hash, key) {
            return Some(match guard.word(id).state() {
                LOADING => State::Loading,
                MRU => State::Mru,
                _ => State::Mfu,
            });
        }
        guard.ghost(hash).map(|ghost| State::ghost(ghost.list))
    }

    /// Recounts every list, index and size of the cache. Meant for tests, with the cache at
    /// rest: it locks one sublist after the other.
    ///
    /// # Errors
    /// The first invariant that does not hold, in words.
    pub fn validate(&self) -> Result<crate::policy::Census, String> {
        snapshot::validate(self.core())
    }
}

impl<K, V> Cache<K, V> {
    /// Forgets everything that is not held, ghosts too, and dooms all loads in flight. Held
    /// entries are forgotten too, and freed with their last hold.
    pub fn clear(&self) {
        clear(self.core());
    }
}

fn clear<K, V>(core: &Core<K, V>) {
    for sublist in core.sublists() {
        let mut leaving = Leaving::default();
        let mut guard = core.lock_settled(sublist);
        for id in guard.ids() {
            core.forget_entry(&mut guard, id, &mut leaving);
        }
        {
            let balance = &mut core.ledger().balance;
            let bytes = guard.listed_bytes();
            for kind in Kind::ALL {
                for list in List::ALL {
                    let ghosts = bytes[crate::policy::list_index(kind, list, true)];
                    balance.sub(kind, list, true, ghosts);
                }
            }
        }
        guard.forget_all_ghosts();
        guard.shrink();
        drop(guard);
        leaving.finish(core);
    }
}

impl<K, V> Core<K, V> {
    /// Takes an entry out of the index, whatever it is.
    fn forget_entry(
        &self,
        guard: &mut SublistGuard<'_, K, V>,
        id: u32,
        leaving: &mut Leaving<K, V>,
    ) {
        let word = guard.word(id);
        if word.state() == LOADING && !word.is(DOOMED) {
            guard.doom(id);
        }
        if !word.is_live() {
            return;
        }
        let weight_bytes = guard.entry(id).weight_bytes();
        let (stored, word) = guard.remove(id);
        {
            let balance = &mut self.ledger().balance;
            guard.flush(balance);
            balance.sub(word.kind(), word.list(), false, weight_bytes);
            if word.is(WAITING) {
                balance.sub_waiting(word.kind(), weight_bytes);
            }
            if stored.is_none() {
                balance.add_anon(word.kind(), weight_bytes);
            }
        }
        self.counters.count(Event::Deleted);
        match stored {
            Some(stored) => leaving.freed(stored),
            None => self.add_keeper(),
        }
    }
}

impl<K, V> fmt::Debug for Cache<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let core = self.core();
        f.debug_struct("Cache")
            .field("sublists", &core.sublists().len())
            .field("target_bytes", &core.target_bytes())
            .finish_non_exhaustive()
    }
}
