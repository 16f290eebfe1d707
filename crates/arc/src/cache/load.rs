//! Loading through the cache: one loader a key, however many ask.

use super::claim::Claim;
use super::core::elapsed_ns;
use super::flight::Landing;
use super::{Cache, Found, Hold};
use crate::counters::Event;
use crate::policy::{Access, Flags, Kind};
use std::hash::Hash;
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
    /// The entry of a key; if it is not here, what `load` brings (the value and its weight in
    /// bytes, 0 counts as 1).
    ///
    /// However many ask for a key, one `load` runs at a time, with no lock held; the others
    /// wait for it and get its value, or a clone of its error. If the loader waited for gave
    /// up without a result ([`Claim`] dropped), or had another error type, the next one
    /// loads. A `load` must not ask for its own key: it would wait for itself.
    ///
    /// # Errors
    /// [`LoadError::Failed`] with the loader's error; [`LoadError::Panicked`] if somebody
    /// else's loader panicked. Nothing is cached then, and the next call loads again.
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
            let (flight, id) = match self.find_or_claim(key, kind, access) {
                Found::Entry(hold) => return Ok((hold, Source::Hit)),
                Found::Claimed(claim) => {
                    return run(claim, load).map(|hold| (hold, Source::Loaded));
                }
                Found::Loading(flight, id) => (flight, id),
            };
            let start = Instant::now();
            let landing = flight.wait();
            let counters = &self.core().counters;
            counters.count(Event::JoinedWaits);
            counters.add(Event::JoinedWaitNs, elapsed_ns(start));
            match landing {
                Landing::Loaded(value) => {
                    let shard = Arc::clone(self.shard_of(self.hash(key)));
                    return Ok((Hold::of(shard, id, value), Source::Joined));
                }
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

    fn find_or_claim(&self, key: &K, kind: Kind, access: Access) -> Found<K, V> {
        let hash = self.hash(key);
        let shard = self.shard_of(hash);
        let mut guard = shard.lock();
        let found = guard.sublist.find(hash, key);
        let Some(id) = found else {
            return Found::Claimed(self.claim(shard, guard, (hash, key, None), kind, access));
        };
        let state = guard.sublist.state(id);
        if state.is_live() {
            return Found::Entry(self.hit(shard, guard, id, access));
        }
        let Some(flight) = guard.flights.get(&id).map(Arc::clone) else {
            return Found::Claimed(self.claim(shard, guard, (hash, key, found), kind, access));
        };
        // The loader's hold keeps the node; this one makes it ours when the load lands.
        guard.sublist.hold(id);
        let flags = guard.sublist.flags(id);
        let prefetch_paid = access == Access::Demand && flags.prefetched;
        if prefetch_paid {
            guard.sublist.set_flags(id, Flags { prefetched: false, ..flags });
        }
        drop(guard);
        let counters = &self.core().counters;
        counters.add_at(Event::JoinedHit, access as usize * 2 + kind as usize, 1);
        if prefetch_paid {
            counters.count(Event::DemandIohitPredictivePrefetch);
        }
        Found::Loading(flight, id)
    }
}

/// Lands the flight if the loader panics.
struct PanicGuard<K, V>(Option<Claim<K, V>>);

impl<K, V> Drop for PanicGuard<K, V> {
    fn drop(&mut self) {
        if let Some(claim) = self.0.take() {
            claim.panicked();
        }
    }
}

fn run<K, V, E, F>(claim: Claim<K, V>, load: F) -> Result<Hold<K, V>, LoadError<E>>
where
    E: Clone + Send + Sync + 'static,
    F: FnOnce() -> Result<(V, u64), E>,
{
    let mut guard = PanicGuard(Some(claim));
    let loaded = load();
    let claim = guard.0.take().expect("the claim is there until here");
    match loaded {
        Ok((value, weight_bytes)) => Ok(claim.fill(value, weight_bytes)),
        Err(error) => {
            claim.fail_shared(Arc::new(error.clone()));
            Err(LoadError::Failed(error))
        }
    }
}
