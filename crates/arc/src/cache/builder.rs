//! How to make a cache.

use super::core::{Core, EvictHook, Parts};
use super::{Cache, Eviction, Policy};
use crate::policy::Balance;
use crate::table::SUBLISTS_MAX;
use crate::threads;
use std::fmt;
use std::hash::Hash;

/// How many entries a sublist should have at least. With fewer, the split into sublists shows in
/// the hit ratio.
const ENTRIES_PER_SUBLIST_MIN: u64 = 512;

/// The expected weight of an entry, in bytes, unless the owner gives another.
const EXPECTED_WEIGHT_BYTES: u64 = 128 << 10;

/// The options of a new [`Cache`]. Get one from [`Cache::builder`].
#[must_use = "a builder makes a cache with build()"]
pub struct Builder<K, V> {
    max_bytes: u64,
    min_bytes: u64,
    start_bytes: Option<u64>,
    sublists: Option<usize>,
    expected_weight_bytes: u64,
    hash_seed: u64,
    exact: bool,
    rings: usize,
    policy: Policy,
    evict_hook: Option<EvictHook<K, V>>,
}

impl<K: Eq + Hash + Clone, V> Builder<K, V> {
    pub(crate) fn new(max_bytes: u64) -> Self {
        Self {
            max_bytes,
            min_bytes: 0,
            start_bytes: None,
            sublists: None,
            expected_weight_bytes: EXPECTED_WEIGHT_BYTES,
            hash_seed: 0,
            exact: false,
            rings: threads::rings(),
            policy: Policy::default(),
            evict_hook: None,
        }
    }

    /// The least the target can be lowered to by [`Cache::reclaim`] (OpenZFS: `c_min`). By
    /// default 0. At most the capacity.
    pub const fn min_bytes(mut self, min_bytes: u64) -> Self {
        self.min_bytes = min_bytes;
        self
    }

    /// The target to start with; it grows up to the capacity when entries need it. By default
    /// the capacity.
    pub const fn start_bytes(mut self, start_bytes: u64) -> Self {
        self.start_bytes = Some(start_bytes);
        self
    }

    /// The number of sublists: rounded up to a power of two, at most 64. By default as many
    /// as leave each at least 512 entries of the expected weight when the cache is full.
    pub const fn sublists(mut self, sublists: usize) -> Self {
        self.sublists = Some(sublists);
        self
    }

    /// The weight entries are expected to have, in bytes, from which the number of sublists
    /// follows. By default 128 KiB.
    pub const fn expected_weight_bytes(mut self, weight_bytes: u64) -> Self {
        self.expected_weight_bytes = weight_bytes;
        self
    }

    /// A seed for the hashes of keys. By default 0: the same keys go to the same sublists in every
    /// run. Give a secret one if an attacker can choose the keys.
    pub const fn hash_seed(mut self, hash_seed: u64) -> Self {
        self.hash_seed = hash_seed;
        self
    }

    /// Has every hit move its entry to the head of its list, as in the paper. By default a hit on
    /// MFU moves nothing. It only notes in which 16th of the list's turnover it was, and evictions
    /// go by that.
    ///
    /// With this, one sublist and one thread the cache is [`Policy::Arc`] as printed, hit for hit,
    /// or [`policy::duel::Duel`](crate::policy::duel::Duel).
    pub const fn exact(mut self, exact: bool) -> Self {
        self.exact = exact;
        self
    }

    /// How many rings each sublist notes its hits in, each for some of the threads: rounded up to a
    /// power of two, at most 64. By default as many as there are processors, but two at least.
    ///
    /// The hit ratio depends a little on when a ring is emptied. So give a number if the hits must
    /// be the same on every machine.
    pub const fn rings(mut self, rings: usize) -> Self {
        self.rings = rings;
        self
    }

    /// Which entry leaves when room is needed.
    pub const fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Calls `hook` for every entry that is evicted or demoted (not for removed ones), in the
    /// thread that made the room, with no lock held. It should be quick and must not panic.
    pub fn on_evict(mut self, hook: impl Fn(Eviction<K, V>) + Send + Sync + 'static) -> Self {
        self.evict_hook = Some(Box::new(hook));
        self
    }

    /// Makes the cache.
    #[must_use]
    pub fn build(self) -> Cache<K, V> {
        let start_bytes = self.start_bytes.unwrap_or(self.max_bytes);
        let balance = Balance::new(self.min_bytes, start_bytes, self.max_bytes);
        let count = self.sublists.unwrap_or_else(|| {
            let entries = self.max_bytes / self.expected_weight_bytes.max(1);
            let full = entries / ENTRIES_PER_SUBLIST_MIN;
            // Rounded down, so that each has its entries.
            1 << full.max(1).ilog2().min(SUBLISTS_MAX.ilog2())
        });
        let count = count.clamp(1, SUBLISTS_MAX).next_power_of_two();
        let rings = self.rings.clamp(1, threads::RINGS_MAX).next_power_of_two();
        let Self { hash_seed, exact, evict_hook, .. } = self;
        let by_rules = self.policy == Policy::Duel;
        let parts =
            Parts { balance, sublists: count, rings, exact, by_rules, hash_seed, evict_hook };
        Cache { core: Core::new(parts) }
    }
}

impl<K, V> fmt::Debug for Builder<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("max_bytes", &self.max_bytes)
            .field("min_bytes", &self.min_bytes)
            .field("sublists", &self.sublists)
            .finish_non_exhaustive()
    }
}
