//! What all sublists share: the balance, the clock, the published tails, the counters.
//!
//! Locks, in the order in which they may be taken: a sublist's lock, then the ledger's (the
//! balance). Never two sublists' at once. The ledger's lock is taken on misses, ghost hits,
//! promotions, removals and evictions, never on a hit in MFU.

use super::shard::Shard;
use super::tails::Tails;
use super::{Eviction, Growth};
use crate::counters::{Counters, Event};
use crate::policy::Balance;
use crate::prune::Registry;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use crate::sync::{Mutex, MutexGuard, lock, try_lock};
use foldhash::quality::FixedState;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

/// All sublists, not kept alive: they keep this.
type WeakShards<K, V> = Box<[Weak<Shard<K, V>>]>;

pub(crate) type EvictHook<K, V> = Box<dyn Fn(Eviction<K, V>) + Send + Sync>;
pub(crate) type GrowthHook = Arc<dyn Fn(Growth) + Send + Sync>;

/// The balance and who wants to hear of its growth.
pub(crate) struct Ledger {
    pub(crate) balance: Balance,
    /// Growth is denied at least until then.
    pub(crate) denied_until: Option<Instant>,
    /// Somebody has been told that growth was wanted since.
    pub(crate) denied_told: bool,
    pub(crate) growth_hook: Option<GrowthHook>,
    pub(crate) growth_every_bytes: u64,
    pub(crate) grown_bytes: u64,
    /// What reclaim could not free at its last try.
    pub(crate) need_free_bytes: u64,
}

impl Ledger {
    /// Notes bytes that came in; returns whom to tell, outside all locks.
    pub(crate) fn note_growth(&mut self, bytes: u64) -> Option<(GrowthHook, Growth)> {
        let hook = self.growth_hook.as_ref()?;
        self.grown_bytes += bytes;
        if self.grown_bytes < self.growth_every_bytes {
            return None;
        }
        let added_bytes = std::mem::take(&mut self.grown_bytes);
        Some((Arc::clone(hook), Growth::Added { bytes: added_bytes }))
    }

    /// Notes that growth was wanted and denied; returns whom to tell, outside all locks,
    /// once after each time that growth was denied for.
    pub(crate) fn note_denied(&mut self, bytes: u64) -> Option<GrowthHook> {
        if self.denied_told || !self.balance.no_grow() || !self.balance.wants_growth(bytes) {
            return None;
        }
        let hook = self.growth_hook.as_ref()?;
        if self.denied_until.is_some_and(|until| Instant::now() < until) {
            return None;
        }
        self.denied_told = true;
        Some(Arc::clone(hook))
    }
}

/// What all sublists share.
pub(crate) struct Core<K, V> {
    ledger: Mutex<Ledger>,
    /// Entries or ghosts are beyond their bounds: whoever releases a hold, trims.
    over: AtomicBool,
    /// The target, for those who only look.
    target_bytes: AtomicU64,
    /// Advances with every arrival, so that hits only read it.
    pub(crate) clock: AtomicU64,
    pub(crate) tails: Tails,
    pub(crate) counters: Counters,
    pub(crate) hasher: FixedState,
    pub(crate) shards: OnceLock<WeakShards<K, V>>,
    pub(crate) evict_hook: Option<EvictHook<K, V>>,
    pub(crate) clone_key: fn(&K) -> K,
    pub(crate) registry: Registry,
}

impl<K, V> Core<K, V> {
    pub(crate) fn new(balance: Balance, hash_seed: u64, evict_hook: Option<EvictHook<K, V>>) -> Self
    where
        K: Clone,
    {
        Self {
            over: AtomicBool::new(false),
            target_bytes: AtomicU64::new(balance.target_bytes()),
            ledger: Mutex::new(Ledger {
                balance,
                denied_until: None,
                denied_told: false,
                growth_hook: None,
                growth_every_bytes: 0,
                grown_bytes: 0,
                need_free_bytes: 0,
            }),
            clock: AtomicU64::new(1),
            tails: Tails::new(),
            counters: Counters::new(),
            hasher: FixedState::with_seed(hash_seed),
            shards: OnceLock::new(),
            evict_hook,
            clone_key: K::clone,
            registry: Registry::default(),
        }
    }

    /// Takes the ledger's lock.
    pub(crate) fn ledger(&self) -> LedgerGuard<'_> {
        LedgerGuard {
            guard: lock_counted(&self.ledger, &self.counters),
            over: &self.over,
            target_bytes: &self.target_bytes,
        }
    }

    /// Whether entries or ghosts are beyond their bounds.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Relaxed)
    }

    /// The target at this moment.
    pub(crate) fn target_bytes(&self) -> u64 {
        self.target_bytes.load(Relaxed)
    }

    /// Arrivals so far.
    pub(crate) fn arrivals(&self) -> u64 {
        self.clock.load(Relaxed)
    }

    /// The sublist of a number, unless the cache is gone.
    pub(crate) fn shard(&self, number: usize) -> Option<Arc<Shard<K, V>>> {
        self.shards.get()?.get(number)?.upgrade()
    }
}

/// Takes a lock; counts and times the wait, if there is one.
pub(crate) fn lock_counted<'a, T>(mutex: &'a Mutex<T>, counters: &Counters) -> MutexGuard<'a, T> {
    if let Some(guard) = try_lock(mutex) {
        return guard;
    }
    let start = Instant::now();
    let guard = lock(mutex);
    counters.count(Event::LockWaits);
    counters.add(Event::LockWaitNs, elapsed_ns(start));
    guard
}

/// Nanoseconds since `start`.
pub(crate) fn elapsed_ns(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// The ledger, locked. Publishes what lock-free readers want to know when it is unlocked.
pub(crate) struct LedgerGuard<'a> {
    guard: MutexGuard<'a, Ledger>,
    over: &'a AtomicBool,
    target_bytes: &'a AtomicU64,
}

impl Deref for LedgerGuard<'_> {
    type Target = Ledger;

    fn deref(&self) -> &Ledger {
        &self.guard
    }
}

impl DerefMut for LedgerGuard<'_> {
    fn deref_mut(&mut self) -> &mut Ledger {
        &mut self.guard
    }
}

impl Drop for LedgerGuard<'_> {
    fn drop(&mut self) {
        // Written only when they change, so that readers keep their copy of the line.
        let over = self.guard.balance.is_over();
        if self.over.load(Relaxed) != over {
            self.over.store(over, Relaxed);
        }
        let target_bytes = self.guard.balance.target_bytes();
        if self.target_bytes.load(Relaxed) != target_bytes {
            self.target_bytes.store(target_bytes, Relaxed);
        }
    }
}
