//! The core of a cache, which all sublists share: the balance, the clock, the published tails, the
//! counters.
//!
//! Lock order: a sublist, then the ledger (the balance). A thread that holds one or both may try
//! the lock of another sublist, and never waits for it. Arrivals, ghost hits, removals and
//! evictions take the ledger's lock; a hit never waits for it. A referee's lock is taken alone, and
//! the ledger's within it.

use super::duel::Referees;
use super::{Eviction, Growth};
use crate::counters::{Counters, Event};
use crate::policy::Balance;
use crate::prune::Registry;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use crate::sync::{Mutex, MutexGuard, lock_counted, try_lock};
use crate::table::{Blocks, HandOverQueue, Marks, Sublist, SublistGuard, Tails};
use foldhash::quality::FixedState;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Weak};
use std::time::Instant;

pub(crate) type EvictHook<K, V> = Box<dyn Fn(Eviction<K, V>) + Send + Sync>;
pub(crate) type GrowthHook = Arc<dyn Fn(Growth) + Send + Sync>;

/// The balance, and the hook that its growth calls.
pub(crate) struct Ledger {
    pub(crate) balance: Balance,
    /// Growth is denied at least until then.
    pub(crate) denied_until: Option<Instant>,
    /// The hook has reported a denied growth since then.
    pub(crate) denied_reported: bool,
    pub(crate) growth_hook: Option<GrowthHook>,
    pub(crate) growth_every_bytes: u64,
    pub(crate) grown_bytes: u64,
    /// Bytes that the last reclaim could not free.
    pub(crate) need_free_bytes: u64,
}

impl Ledger {
    /// Notes bytes that came in; returns the hook to call, outside all locks.
    pub(crate) fn note_growth(&mut self, bytes: u64) -> Option<(GrowthHook, Growth)> {
        let hook = self.growth_hook.as_ref()?;
        self.grown_bytes += bytes;
        if self.grown_bytes < self.growth_every_bytes {
            return None;
        }
        let added_bytes = std::mem::take(&mut self.grown_bytes);
        Some((Arc::clone(hook), Growth::Added { bytes: added_bytes }))
    }

    /// Notes that growth was wanted and denied. Returns the hook to call, outside all locks; once
    /// for each time of denial.
    pub(crate) fn note_denied(&mut self, bytes: u64) -> Option<GrowthHook> {
        if self.denied_reported || !self.balance.no_grow() || !self.balance.wants_growth(bytes) {
            return None;
        }
        let hook = self.growth_hook.as_ref()?;
        if self.denied_until.is_some_and(|until| Instant::now() < until) {
            return None;
        }
        self.denied_reported = true;
        Some(Arc::clone(hook))
    }
}

/// The part of a cache that all its handles, claims and holds share. A hit reads the first fields.
/// They are one cache line, which is rarely written.
#[repr(C, align(64))]
pub(crate) struct Core<K, V> {
    sublists: Box<[Sublist<K, V>]>,
    pub(crate) hasher: FixedState,
    pub(crate) counters: Counters,
    /// Entries or ghosts are beyond their bounds: the next release of a hold trims.
    over: AtomicBool,
    /// A copy of the target, to be read without the ledger's lock.
    target_bytes: AtomicU64,
    pub(crate) this: Weak<Self>,
    /// `None` if the policy is ARC.
    pub(crate) referees: Option<Referees>,
    pub(crate) evict_hook: Option<EvictHook<K, V>>,
    pub(crate) tails: Tails,
    /// Entries that a cache above has as well.
    pub(crate) handed: Arc<HandOverQueue>,
    /// Advances with every arrival, so that hits only read it.
    clock: AtomicU64,
    ledger: Mutex<Ledger>,
    /// Handles of the cache.
    pub(crate) handles: AtomicUsize,
    /// One reference for each dead entry, so that its holder can free it after the cache has gone.
    keepers: Mutex<Vec<Arc<Self>>>,
    pub(crate) registry: Registry,
}

#[cfg(all(target_pointer_width = "64", not(shuttle)))]
const _: () = assert!(std::mem::offset_of!(Core<u64, u64>, referees) == 64);

/// The parts that a core is made from.
pub(crate) struct Parts<K, V> {
    pub(crate) balance: Balance,
    pub(crate) sublists: usize,
    /// In each sublist, and for each referee: a power of two.
    pub(crate) rings: usize,
    pub(crate) exact: bool,
    /// Go by the rule that does best, not by ARC alone.
    pub(crate) by_rules: bool,
    pub(crate) hash_seed: u64,
    pub(crate) evict_hook: Option<EvictHook<K, V>>,
}

impl<K, V> Core<K, V> {
    pub(crate) fn new(parts: Parts<K, V>) -> Arc<Self> {
        let Parts { balance, sublists, rings, exact, by_rules, hash_seed, evict_hook } = parts;
        let marks = match (by_rules, exact) {
            (true, true) => Marks::Each,
            _ => Marks::Some,
        };
        let balance = if by_rules { balance.with_rules() } else { balance };
        let blocks = Arc::new(Blocks::new(sublists));
        let handed = Arc::new(HandOverQueue::new());
        let sublist = |number| Sublist::new((&blocks, &handed), number, (exact, rings), marks);
        Arc::new_cyclic(|this| Self {
            sublists: (0..sublists).map(sublist).collect(),
            handed: Arc::clone(&handed),
            referees: by_rules.then(|| Referees::new(balance.target_bytes(), rings)),
            over: AtomicBool::new(false),
            target_bytes: AtomicU64::new(balance.target_bytes()),
            ledger: Mutex::new(Ledger {
                balance,
                denied_until: None,
                denied_reported: false,
                growth_hook: None,
                growth_every_bytes: 0,
                grown_bytes: 0,
                need_free_bytes: 0,
            }),
            clock: AtomicU64::new(1),
            tails: Tails::new(sublists, exact),
            counters: Counters::new(),
            hasher: FixedState::with_seed(hash_seed),
            handles: AtomicUsize::new(1),
            keepers: Mutex::new(Vec::new()),
            this: this.clone(),
            evict_hook,
            registry: Registry::default(),
        })
    }

    /// Takes the ledger's lock.
    pub(crate) fn ledger(&self) -> LedgerGuard<'_> {
        LedgerGuard {
            guard: lock_counted(&self.ledger, &self.counters),
            over: &self.over,
            target_bytes: &self.target_bytes,
        }
    }

    /// Takes the ledger's lock if it is free.
    pub(crate) fn try_ledger(&self) -> Option<LedgerGuard<'_>> {
        let guard = try_lock(&self.ledger)?;
        self.counters.count(Event::Locks);
        Some(LedgerGuard { guard, over: &self.over, target_bytes: &self.target_bytes })
    }

    /// Whether entries or ghosts are beyond their bounds.
    #[inline]
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

    /// Counts an arrival. Only under the ledger's lock.
    pub(crate) fn note_arrival(&self, _: &LedgerGuard<'_>) {
        self.clock.store(self.clock.load(Relaxed) + 1, Relaxed);
    }

    pub(crate) fn sublists(&self) -> &[Sublist<K, V>] {
        &self.sublists
    }

    /// The sublist of a hash.
    #[inline(always)]
    pub(crate) fn sublist_of(&self, hash: u64) -> &Sublist<K, V> {
        // Bits that neither the sublist's index nor its ghosts go by.
        &self.sublists[(hash >> 48) as usize & (self.sublists.len() - 1)]
    }

    /// Takes the lock of a sublist.
    pub(crate) fn lock<'a>(&'a self, sublist: &'a Sublist<K, V>) -> SublistGuard<'a, K, V> {
        sublist.lock(&self.tails, &self.counters)
    }

    /// Takes the lock of a sublist and applies what this thread's hits have noted there.
    pub(crate) fn lock_drained<'a>(&'a self, sublist: &'a Sublist<K, V>) -> SublistGuard<'a, K, V> {
        let mut guard = self.lock(sublist);
        self.drain(&mut guard, false, true);
        guard
    }

    /// Takes the lock of a sublist and applies the notes of all threads. Lists and balance are then
    /// as they should be after every access so far.
    pub(crate) fn lock_settled<'a>(&'a self, sublist: &'a Sublist<K, V>) -> SublistGuard<'a, K, V> {
        let mut guard = self.lock(sublist);
        self.drain(&mut guard, true, true);
        guard.flush(&mut self.ledger().balance);
        guard
    }

    /// Keeps the core alive until [`Core::keeper`], for an entry that has become dead.
    pub(crate) fn add_keeper(&self) {
        if let Some(this) = self.this.upgrade() {
            crate::sync::lock(&self.keepers).push(this);
        }
    }

    /// Gives back the reference of one [`Core::add_keeper`]. Drop it outside all locks, after the
    /// last use of the core.
    pub(crate) fn keeper(&self) -> Option<Arc<Self>> {
        crate::sync::lock(&self.keepers).pop()
    }
}

/// The ledger, locked. When it is unlocked, it publishes the figures that readers without a lock
/// need.
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
        // Written only on a change, so that readers keep their copy of the line.
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
