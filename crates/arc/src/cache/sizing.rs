//! The target: resizing, giving memory back, growing again, pruning.

use super::core::Core;
use super::{Cache, Growth};
use crate::counters::Event;
use crate::policy::{Kind, LISTS, List, list_index};
use crate::prune::{Prune, PruneResult, Registration};
use crate::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Instant;

/// Target and size of a cache, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Weight of all entries, on lists, held, on their way in, or removed and still held.
    pub size_bytes: u64,
    /// The target (`c`).
    pub target_bytes: u64,
    /// The least the target can be (`c_min`).
    pub min_bytes: u64,
    /// The most the target can be (`c_max`).
    pub max_bytes: u64,
    /// The target may rise: memory is not short at present.
    pub may_grow: bool,
}

impl Level {
    /// The highest target that is allowed now, in bytes.
    #[must_use]
    pub fn room_bytes(&self) -> u64 {
        if self.may_grow { self.max_bytes } else { self.target_bytes }
    }
}

impl<K, V> Cache<K, V> {
    /// Target and size, from one moment.
    #[must_use]
    pub fn level(&self) -> Level {
        let ledger = self.core().ledger();
        let balance = &ledger.balance;
        Level {
            size_bytes: balance.used_bytes(),
            target_bytes: balance.target_bytes(),
            min_bytes: balance.min_bytes(),
            max_bytes: balance.max_bytes(),
            may_grow: !balance.no_grow(),
        }
    }

    /// Weight of all entries, held ones included, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.level().size_bytes
    }

    /// The capacity, in bytes: the most the target can be.
    #[must_use]
    pub fn max_bytes(&self) -> u64 {
        self.level().max_bytes
    }

    /// The number of entries, without ghosts, loads in flight and removed entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.core().sublists().iter().map(|sublist| self.core().lock(sublist).resident()).sum()
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let ledger = self.core().ledger();
        Kind::ALL.iter().all(|&kind| ledger.balance.live_bytes(kind) == 0)
    }

    /// Changes the capacity, and the target to it; evicts what does not fit any more.
    pub fn resize(&self, max_bytes: u64) {
        self.core().ledger().balance.set_max_bytes(max_bytes);
        self.core().follow_target();
        self.core().make_room(None);
    }

    /// Gives memory back: lowers the target by `bytes` from the size the cache has, never
    /// below `min_bytes`, and does as [`Cache::reclaim_to`]. Returns the bytes
    /// freed.
    pub fn reclaim(&self, bytes: u64) -> u64 {
        let to_bytes = {
            let balance = &self.core().ledger().balance;
            let size_bytes = balance.used_bytes().max(balance.min_bytes());
            balance.target_bytes().min(size_bytes).saturating_sub(bytes)
        };
        self.reclaim_to(to_bytes)
    }

    /// Lowers the target to `to_bytes` (at least `min_bytes`) and evicts down to it. If
    /// pinned metadata stand in the way, asks their owners ([`Cache::register_prune`]), whose
    /// releases evict the rest. Stops when nothing more can be freed. Returns the bytes by
    /// which the cache has become smaller.
    pub fn reclaim_to(&self, to_bytes: u64) -> u64 {
        let core = self.core();
        let (before_bytes, wanted_bytes) = {
            let balance = &mut core.ledger().balance;
            balance.set_target_bytes(to_bytes.min(balance.target_bytes()));
            (balance.used_bytes(), balance.excess_bytes())
        };
        core.counters.count(Event::ReclaimCalls);
        core.follow_target();
        core.make_room(None);
        let left_bytes = core.ledger().balance.excess_bytes();
        if left_bytes > 0 && self.pinned_metadata_bytes() > 0 {
            self.prune(left_bytes);
            core.make_room(None);
        }
        let freed_bytes = {
            let mut ledger = core.ledger();
            let freed_bytes = before_bytes.saturating_sub(ledger.balance.used_bytes());
            ledger.need_free_bytes = wanted_bytes.saturating_sub(freed_bytes);
            freed_bytes
        };
        if freed_bytes > 0 {
            core.counters.add(Event::ReclaimBytes, freed_bytes);
        }
        for sublist in core.sublists() {
            core.lock(sublist).shrink();
        }
        freed_bytes
    }

    /// Metadata which cannot be evicted because they are held.
    fn pinned_metadata_bytes(&self) -> u64 {
        let listed: u64 = listed_bytes(self.core())
            .iter()
            .skip(list_index(Kind::Metadata, List::Mru, false))
            .take(List::ALL.len())
            .sum();
        self.core().ledger().balance.live_bytes(Kind::Metadata).saturating_sub(listed)
    }

    /// Asks the owners of pinned metadata to release `want_bytes`; returns the sum of their
    /// results. Owners that recently freed little of a request are left alone for a while.
    pub fn prune(&self, want_bytes: u64) -> PruneResult {
        let core = self.core();
        core.registry.prune(want_bytes, Instant::now(), &core.counters)
    }

    /// Registers an owner of memory that pins entries, or that should release memory when the cache
    /// has to shrink. It is asked until the registration is dropped.
    pub fn register_prune(&self, name: &str, prune: Arc<dyn Prune>) -> Registration {
        self.core().registry.register(name, prune)
    }

    /// Denies growth of the target. After `until`, the growth hook is called once if the cache
    /// would have grown; growth stays denied until [`Cache::allow_growth`].
    pub fn deny_growth(&self, until: Instant) {
        let mut ledger = self.core().ledger();
        ledger.balance.set_no_grow(true);
        ledger.denied_until = Some(until);
        ledger.denied_reported = false;
    }

    /// Allows the target to grow when entries need it.
    pub fn allow_growth(&self) {
        let mut ledger = self.core().ledger();
        ledger.balance.set_no_grow(false);
        ledger.denied_until = None;
        ledger.denied_reported = false;
    }

    /// Calls `hook` each time `every_bytes` have come in, and when denied growth is wanted again.
    /// So a host can look at its memory in proportion to the cache's work. Called with no lock
    /// held, by the thread that brought the entry; it should be quick and must not panic. Replaces
    /// the hook there was.
    pub fn set_growth_hook(&self, every_bytes: u64, hook: impl Fn(Growth) + Send + Sync + 'static) {
        let mut hook: Option<super::core::GrowthHook> = Some(Arc::new(hook));
        let mut ledger = self.core().ledger();
        std::mem::swap(&mut ledger.growth_hook, &mut hook);
        ledger.growth_every_bytes = every_bytes.max(1);
        ledger.grown_bytes = 0;
        drop(ledger);
        drop(hook);
    }

    /// Removes the growth hook.
    pub fn clear_growth_hook(&self) {
        let hook = self.core().ledger().growth_hook.take();
        drop(hook);
    }

    pub(crate) fn weak(&self) -> WeakCache<K, V> {
        WeakCache(Arc::downgrade(&self.core))
    }
}

/// A handle that does not keep the cache.
pub(crate) struct WeakCache<K, V>(Weak<Core<K, V>>);

impl<K, V> WeakCache<K, V> {
    pub(crate) fn upgrade(&self) -> Option<Cache<K, V>> {
        let core = self.0.upgrade()?;
        // Not if the last handle has gone and holds alone keep the core.
        let more = |handles: usize| (handles > 0).then(|| handles + 1);
        core.handles.fetch_update(Ordering::AcqRel, Ordering::Relaxed, more).ok()?;
        Some(Cache { core })
    }
}

/// Bytes on each list, over all sublists.
pub(crate) fn listed_bytes<K, V>(core: &Core<K, V>) -> [u64; LISTS] {
    let mut bytes = [0; LISTS];
    for sublist in core.sublists() {
        let listed = core.lock_settled(sublist).listed_bytes();
        bytes.iter_mut().zip(listed).for_each(|(sum, bytes)| *sum += bytes);
    }
    bytes
}
