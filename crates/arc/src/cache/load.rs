//! Loading through the cache: one loader a key, however many ask.

use super::core::Core;
use super::miss::{Ticket, count_load};
use super::{Cache, Found, Hold};
use crate::counters::Event;
use crate::flight::Landing;
use crate::policy::{Access, Kind};
use crate::sync::elapsed_ns;
use crate::table::PREFETCHED;
use std::hash::Hash;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::Instant;

/// Where a value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// It was in the cache.
    Hit,
    /// Somebody else was loading it (OpenZFS: `iohits`).
    Joined,
    /// The caller's loader loaded it.
    Loaded,
}

/// Why there is no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError<E> {
    /// The loader, the caller's own or the one the caller waited for, gave this error.
    #[error("the load failed: {0}")]
    Failed(E),
    /// The loader the caller waited for panicked.
    #[error("the load failed: the thread that did it panicked")]
    Panicked,
}

impl<K: Eq + Hash + Clone, V> Cache<K, V> {
    /// The entry of a key; if there is none, what `load` brings: the value and its weight in bytes
    /// (0 counts as 1).
    ///
    /// However many ask for a key, one `load` runs at a time, with no lock held. The others wait
    /// for it and get its value, or a clone of its error. If that loader gave up without a result
    /// ([`Claim`](crate::Claim) dropped), or had another error type, the next one loads. A `load`
    /// must not ask for its own key: it would wait for itself.
    ///
    /// # Errors
    /// [`LoadError::Failed`] with the loader's error; [`LoadError::Panicked`] if somebody else's
    /// loader panicked. Nothing is cached then, and the next call loads again.
    ///
    /// # Panics
    /// If `load` panics, the panic goes on to its caller.
    pub fn get_or_load<E, F>(
        &self,
        key: &K,
        kind: Kind,
        access: Access,
        load: F,
    ) -> Result<(Hold<K, V>, Source), LoadError<E>>
    where
        E: Clone + Send + Sync + 'static,
        F: FnOnce() -> Result<(V, u64), E>,
    {
        loop {
            let (flight, hold) = match self.find_or_claim(key, kind, access) {
                Found::Entry(hold) => return Ok((hold, Source::Hit)),
                Found::Claimed(ticket) => {
                    return run(self.core(), ticket, load).map(|hold| (hold, Source::Loaded));
                }
                Found::Loading(flight, hold) => (flight, hold),
            };
            let start = Instant::now();
            let landing = flight.wait();
            let counters = &self.core().counters;
            counters.count(Event::JoinedWaits);
            counters.add(Event::JoinedWaitNs, elapsed_ns(start));
            match landing {
                Landing::Loaded => return Ok((ManuallyDrop::into_inner(hold), Source::Joined)),
                Landing::Failed(error) => {
                    if let Some(error) = error.downcast_ref::<E>() {
                        return Err(LoadError::Failed(error.clone()));
                    }
                }
                Landing::Panicked => return Err(LoadError::Panicked),
                Landing::Abandoned => {}
            }
        }
    }

    #[inline]
    pub(super) fn find_or_claim(&self, key: &K, kind: Kind, access: Access) -> Found<K, V> {
        let hash = self.hash(key);
        if let Some(hold) = self.find_near(hash, key, access) {
            return Found::Entry(hold);
        }
        self.claim_or_join(hash, key, kind, access)
    }

    /// After a look that found nothing near.
    fn claim_or_join(&self, hash: u64, key: &K, kind: Kind, access: Access) -> Found<K, V> {
        if let Ok(hold) = self.find_unlocked(hash, key, access) {
            return Found::Entry(hold);
        }
        let core = self.core();
        let owned = key.clone();
        let sublist = core.sublist_of(hash);
        let mut guard = core.lock_drained(sublist);
        let Some(id) = guard.find(hash, key) else {
            let ticket = core.begin(&mut guard, (hash, owned), kind, access);
            drop(guard);
            self.count_claim(&ticket);
            return Found::Claimed(ticket);
        };
        if let Some((hold, word)) = Hold::pin(core, sublist, id) {
            drop(guard);
            return Found::Entry(self.hit((sublist, id), hold, word, access));
        }
        // The loader's pin keeps the entry; this one makes it ours when the load lands.
        let entry = guard.entry(id);
        entry.meta.pin_again();
        let flight = Arc::clone(guard.inside.flights.entry(id).or_default());
        let word = match access {
            Access::Demand => entry.meta.lower(PREFETCHED),
            Access::Prefetch => entry.meta.load(),
        };
        let prefetch_paid = access == Access::Demand && word.is(PREFETCHED);
        drop(guard);
        let counters = &core.counters;
        counters.add_at(Event::JoinedHit, access as usize * 2 + word.kind() as usize, 1);
        if prefetch_paid {
            counters.count(Event::DemandIohitPredictivePrefetch);
        }
        // Not a hold before there is a value. If none comes, the slot goes with this pin.
        Found::Loading(flight, ManuallyDrop::new(Hold::of(core, entry)))
    }
}

/// Lands the flight if the loader panics.
struct PanicGuard<'a, K, V>(&'a Core<K, V>, Option<Ticket>);

impl<K, V> Drop for PanicGuard<'_, K, V> {
    fn drop(&mut self) {
        if let Some(ticket) = self.1.take() {
            self.0.counters.count(Event::LoadPanics);
            self.0.land(ticket, Landing::Panicked);
        }
    }
}

fn run<K, V, E, F>(core: &Core<K, V>, ticket: Ticket, load: F) -> Result<Hold<K, V>, LoadError<E>>
where
    E: Clone + Send + Sync + 'static,
    F: FnOnce() -> Result<(V, u64), E>,
{
    let mut guard = PanicGuard(core, Some(ticket));
    let start = Instant::now();
    let loaded = load();
    guard.1 = None;
    match loaded {
        Ok((value, weight_bytes)) => {
            count_load(core, start);
            Ok(core.put(ticket, value, weight_bytes))
        }
        Err(error) => {
            core.fail(ticket, Arc::new(error.clone()));
            Err(LoadError::Failed(error))
        }
    }
}
