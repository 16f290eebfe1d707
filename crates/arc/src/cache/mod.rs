//! The concurrent cache: the policy behind locks.
//!
//! # Concurrency
//! Keys hash to sublists, each with its own lock; sizes and targets are in
//! one balance, so the cache adapts as one, and an entry can be as large as the cache
//! whatever the number of sublists. The lock order is: a sublist, then the ledger with the
//! balance. A thread has at most one sublist locked.
//!
//! # Replacement
//! Eviction asks the balance for a list and takes from the sublist whose eldest entry on that
//! list is eldest of all, so the order over all sublists is nearly that of one list.
//!
//! # Holds
//! A held entry is on no list. An arrival when everything is held succeeds; the cache is
//! then over its target until holds are released, and says so (`evict_not_enough`).
//!
//! # Loads
//! One load a key at a time, under no lock; those who want the key meanwhile wait for it.
//!
//! # Invalidation
//! [`Cache::invalidate`] forgets a key, ghost included, and dooms the load in flight, so a
//! later caller cannot be given what was read earlier. To forget all keys of one object at
//! once, put a [`Generation`](crate::Generation) into the key.

mod builder;
mod claim;
mod core;
mod evict;
mod flight;
mod hold;
mod load;
mod shard;
mod sizing;
mod snapshot;
mod tails;

pub use builder::Builder;
pub use claim::Claim;
pub use hold::Hold;
pub use load::{LoadError, Source};
pub use sizing::Level;
pub(crate) use sizing::WeakCache;

use self::core::Core;
use self::evict::Leaving;
use self::flight::Flight;
use self::shard::{Shard, ShardGuard};
use crate::counters::Event;
use crate::policy::transition::{self, Arrival};
use crate::policy::{Access, Flags, Kind, List, NodeId, State};
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

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
    /// It was prefetched, and no demand ever asked for it.
    pub prefetched: bool,
    /// Why it left.
    pub reason: Reason,
}

/// What a growth hook ([`Cache::set_growth_hook`]) is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// So many bytes came in since it was told last.
    Added {
        /// Weight of all entries that came in, in bytes.
        bytes: u64,
    },
    /// The target should grow, but growth is denied, and the time it was denied for is over.
    Denied,
}

/// The sublists. The last handle of a cache that goes empties it.
struct Inner<K, V> {
    shards: Box<[Arc<Shard<K, V>>]>,
    core: Arc<Core<K, V>>,
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
    inner: Arc<Inner<K, V>>,
}

impl<K, V> Clone for Cache<K, V> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<K, V> Drop for Inner<K, V> {
    fn drop(&mut self) {
        // Holds keep their sublist; what nobody holds goes now.
        clear(&self.shards, &self.core);
    }
}

/// What a look into a sublist came to.
enum Found<K, V> {
    Entry(Hold<K, V>),
    Loading(Arc<Flight<V>>, NodeId),
    Claimed(Claim<K, V>),
}

impl<K, V> Cache<K, V> {
    fn core(&self) -> &Arc<Core<K, V>> {
        &self.inner.core
    }

    fn shard_of(&self, hash: u64) -> &Arc<Shard<K, V>> {
        // Bits that the index of the sublist uses least.
        &self.inner.shards[(hash >> 32) as usize & (self.inner.shards.len() - 1)]
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

    fn hash(&self, key: &K) -> u64 {
        self.core().hasher.hash_one(key)
    }

    /// The entry of a key, if it is here. Counts a hit or a miss; a key that is being loaded
    /// is a miss. Never waits for a load.
    ///
    /// Whoever goes on to load the key should call [`Cache::get_or_load`] at once instead,
    /// which looks and counts once.
    #[must_use]
    pub fn get(&self, key: &K, access: Access) -> Option<Hold<K, V>> {
        let found = self.look(key, access);
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
        let found = self.look(key, access);
        if let Err(Some(_)) = found {
            self.core().counters.count(Event::CachedOnlyInProgress);
        }
        found.ok()
    }

    /// The entry, or the kind of the load in flight.
    fn look(&self, key: &K, access: Access) -> Result<Hold<K, V>, Option<Kind>> {
        let hash = self.hash(key);
        let shard = self.shard_of(hash);
        let guard = shard.lock();
        let id = guard.sublist.find(hash, key).ok_or(None)?;
        let state = guard.sublist.state(id);
        if state.is_live() {
            return Ok(self.hit(shard, guard, id, access));
        }
        Err((state == State::Loading).then(|| guard.sublist.kind(id)))
    }

    /// Takes a hold for a hit.
    ///
    /// # Panics
    /// Never: a live entry has a value.
    fn hit(
        &self,
        shard: &Arc<Shard<K, V>>,
        mut guard: ShardGuard<'_, K, V>,
        id: NodeId,
        access: Access,
    ) -> Hold<K, V> {
        let core = self.core();
        let sublist = &mut guard.sublist;
        let touch = transition::touch(sublist, id, access);
        sublist.hold(id);
        if touch.promote {
            transition::promote(sublist, &mut core.ledger().balance, id);
        }
        let kind = sublist.kind(id);
        let value = sublist.payload(id).map(Arc::clone).expect("a live entry has a value");
        drop(guard);
        let place = access as usize * 4 + kind as usize * 2 + touch.list as usize;
        core.counters.add_at(Event::Hit, place, 1);
        if touch.prefetch_paid {
            core.counters.count(Event::DemandHitPredictivePrefetch);
        }
        Hold::of(Arc::clone(shard), id, value)
    }

    fn count_miss(&self, kind: Kind, access: Access) {
        self.core().counters.add_at(Event::Miss, access as usize * 2 + kind as usize, 1);
    }

    /// Claims a key to load it, if there is neither an entry nor a load in flight. Never
    /// waits. Counts a miss if the claim is given.
    pub fn try_claim(&self, key: &K, kind: Kind, access: Access) -> Option<Claim<K, V>> {
        let hash = self.hash(key);
        let shard = self.shard_of(hash);
        let guard = shard.lock();
        let found = guard.sublist.find(hash, key);
        if let Some(id) = found
            && !guard.sublist.state(id).is_ghost()
        {
            return None;
        }
        Some(self.claim(shard, guard, (hash, key, found), kind, access))
    }

    /// Makes a loading node out of a ghost or out of nothing.
    fn claim(
        &self,
        shard: &Arc<Shard<K, V>>,
        mut guard: ShardGuard<'_, K, V>,
        (hash, key, ghost): (u64, &K, Option<NodeId>),
        kind: Kind,
        access: Access,
    ) -> Claim<K, V> {
        let core = self.core();
        let owned = ghost.is_none().then(|| key.clone());
        let flight = Arc::new(Flight::new());
        let sublist = &mut guard.sublist;
        let (id, arrival) = match (ghost, owned) {
            (None, Some(key)) => (sublist.add(hash, key, kind), Arrival::NEW),
            (Some(id), _) => (id, transition::take_ghost(sublist, &mut core.ledger().balance, id)),
            (None, None) => unreachable!("the key was cloned"),
        };
        sublist.set_kind(id, kind);
        let prefetched = access == Access::Prefetch;
        sublist.set_flags(id, Flags { prefetched, ..Flags::default() });
        sublist.hold(id);
        guard.flights.insert(id, Arc::clone(&flight));
        drop(guard);
        self.count_miss(kind, access);
        if access == Access::Prefetch {
            core.counters.count(Event::PredictivePrefetch);
        }
        match arrival.ghost {
            Some((_, List::Mru)) => core.counters.count(Event::MruGhostHit),
            Some((_, List::Mfu)) => core.counters.count(Event::MfuGhostHit),
            None => {}
        }
        Claim::new(self.clone(), Arc::clone(shard), flight, id, arrival, (kind, access))
    }

    /// Puts a value in, with its weight in bytes (0 counts as 1), and holds it.
    ///
    /// If the key has a value it is replaced, in its list; those who hold the old value keep
    /// it. A load of the key in flight is doomed as by [`Cache::invalidate`]. Counts neither
    /// a hit nor a miss; a ghost of the key counts as a ghost hit.
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
        let shard = self.shard_of(hash);
        let flight = Arc::new(Flight::new());
        let mut leaving = Leaving::default();
        let mut guard = shard.lock();
        let mut arrival = Arrival::NEW;
        let found = guard.sublist.find(hash, &key);
        let id = match found {
            Some(id) if guard.sublist.state(id).is_ghost() => {
                let balance = &mut core.ledger().balance;
                arrival = transition::take_ghost(&mut guard.sublist, balance, id);
                guard.sublist.set_kind(id, kind);
                id
            }
            Some(id) => {
                if let Some(list) = guard.sublist.list_of(id) {
                    arrival.list = list;
                }
                forget_key(core, &mut guard, id, &mut leaving);
                guard.sublist.add(hash, key, kind)
            }
            None => guard.sublist.add(hash, key, kind),
        };
        let prefetched = access == Access::Prefetch;
        guard.sublist.set_flags(id, Flags { prefetched, ..Flags::default() });
        guard.sublist.hold(id);
        guard.flights.insert(id, Arc::clone(&flight));
        drop(guard);
        match arrival.ghost {
            Some((_, List::Mru)) => core.counters.count(Event::MruGhostHit),
            Some((_, List::Mfu)) => core.counters.count(Event::MfuGhostHit),
            None => {}
        }
        leaving.let_go(core);
        let shard = Arc::clone(shard);
        Claim::new(self.clone(), shard, flight, id, arrival, (kind, access))
            .put(value, weight_bytes)
    }

    /// Forgets a key: its entry, its ghost, and the load in flight, whose result goes to
    /// those who wait for it already and to nobody else. Returns whether there was any.
    ///
    /// After it has returned, no value that was loaded from an earlier state of the origin
    /// can be found under this key.
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
        let mut guard = self.shard_of(hash).lock();
        let id = guard.sublist.find(hash, key)?;
        let value = guard.sublist.payload(id).map(Arc::clone);
        forget_key(core, &mut guard, id, &mut leaving);
        drop(guard);
        core.counters.count(Event::Invalidations);
        leaving.let_go(core);
        Some(value)
    }

    /// Drops the bytes of an entry but remembers its key as a ghost, as if it had been
    /// evicted: for an owner of a cache above, which has the bytes now. A held entry is
    /// demoted with its last release, unless a demand asks for it before. Returns whether
    /// there was an entry.
    pub fn demote(&self, key: &K) -> bool {
        let core = self.core();
        let hash = self.hash(key);
        let mut leaving = Leaving::default();
        let mut guard = self.shard_of(hash).lock();
        let stamp = guard.stamp(core);
        let sublist = &mut guard.sublist;
        let Some(id) = sublist.find(hash, key).filter(|&id| sublist.state(id).is_live()) else {
            return false;
        };
        if sublist.holds(id) > 0 {
            let flags = Flags { demote: true, ..sublist.flags(id) };
            sublist.set_flags(id, flags);
        } else {
            sublist.unlink(id);
            leaving.demote(core, sublist, id, stamp);
        }
        drop(guard);
        leaving.let_go(core);
        core.trim_if_over();
        true
    }

    /// Whether there is an entry for a key. Counts nothing and moves nothing.
    #[must_use]
    pub fn contains(&self, key: &K) -> bool {
        self.state(key).is_some_and(State::is_live)
    }

    /// What the cache has of a key. Counts nothing and moves nothing.
    #[must_use]
    pub fn state(&self, key: &K) -> Option<State> {
        let hash = self.hash(key);
        let guard = self.shard_of(hash).lock();
        guard.sublist.find(hash, key).map(|id| guard.sublist.state(id))
    }

    /// Recounts every list, index and size of the cache. Meant for tests, with the cache at
    /// rest: it locks one sublist after the other.
    ///
    /// # Errors
    /// The first invariant that does not hold, in words.
    pub fn validate(&self) -> Result<crate::policy::Census, String> {
        snapshot::validate(&self.inner.shards, &self.inner.core)
    }
}

impl<K, V> Cache<K, V> {
    /// Forgets everything that is not held, ghosts too, and dooms all loads in flight. Held
    /// entries are forgotten too, and freed with their last hold.
    pub fn clear(&self) {
        clear(&self.inner.shards, &self.inner.core);
    }
}

fn clear<K, V>(shards: &[Arc<Shard<K, V>>], core: &Core<K, V>) {
    for shard in shards {
        let mut leaving = Leaving::default();
        let mut guard = shard.lock();
        let ids: Vec<_> = guard.sublist.ids().collect();
        for id in ids {
            if !matches!(guard.sublist.state(id), State::Dead) && !guard.sublist.flags(id).doomed {
                forget_key(core, &mut guard, id, &mut leaving);
            }
        }
        guard.sublist.shrink();
        drop(guard);
        leaving.let_go(core);
    }
}

/// Takes a key out of the index, whatever its node is.
fn forget_key<K, V>(
    core: &Core<K, V>,
    guard: &mut ShardGuard<'_, K, V>,
    id: NodeId,
    leaving: &mut Leaving<K, V>,
) {
    let sublist = &mut guard.sublist;
    match sublist.state(id) {
        State::Mru | State::Mfu => {
            let freed = transition::remove(sublist, &mut core.ledger().balance, id);
            core.counters.count(Event::Deleted);
            leaving.freed(freed);
        }
        State::MruGhost | State::MfuGhost => {
            let key = transition::forget(sublist, &mut core.ledger().balance, id);
            leaving.freed((key, None));
        }
        State::Loading => {
            sublist.unindex(id);
            let flags = Flags { doomed: true, ..sublist.flags(id) };
            sublist.set_flags(id, flags);
        }
        State::Dead | State::Vacant => {}
    }
}

impl<K, V> fmt::Debug for Cache<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let core = self.core();
        f.debug_struct("Cache")
            .field("sublists", &self.inner.shards.len())
            .field("target_bytes", &core.target_bytes())
            .finish_non_exhaustive()
    }
}
