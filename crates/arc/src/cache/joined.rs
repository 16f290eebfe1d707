//! A load in flight in another thread: wait for it, or say what to do when it ends.

use super::hold::Hold;
use super::load::LoadError;
use super::{Cache, Claim, Found};
use crate::counters::Event;
use crate::flight::{Flight, Landing};
use crate::policy::{Access, Kind};
use crate::sync::elapsed_ns;
use std::fmt;
use std::hash::Hash;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::Instant;

/// What [`Cache::get_or_claim`] found of a key.
#[derive(Debug)]
pub enum Lookup<K: Send + Sync + 'static, V: Send + Sync + 'static> {
    /// Its entry.
    Hit(Hold<K, V>),
    /// Nothing: it is the caller's to load.
    Claimed(Claim<K, V>),
    /// A load in flight.
    Loading(Joined<K, V>),
}

/// A share in a load in flight. Dropping it gives it up.
#[must_use = "it is there to be waited for"]
pub struct Joined<K: Send + Sync + 'static, V: Send + Sync + 'static> {
    parts: Option<Parts<K, V>>,
}

struct Parts<K, V> {
    cache: Cache<K, V>,
    flight: Arc<Flight>,
    /// A pin of the loading entry. It becomes a hold if a value comes; if none comes, the slot goes
    /// with it.
    hold: ManuallyDrop<Hold<K, V>>,
    since: Instant,
}

impl<K: Eq + Hash + Clone + Send + Sync + 'static, V: Send + Sync + 'static> Cache<K, V> {
    /// The entry of a key, the right to load it, or a share in the load in flight. Never waits;
    /// looks and counts as [`Cache::get_or_load`], which is this and a load on the calling thread.
    pub fn get_or_claim(&self, key: &K, kind: Kind, access: Access) -> Lookup<K, V> {
        match self.find_or_claim(key, kind, access) {
            Found::Entry(hold) => Lookup::Hit(hold),
            Found::Claimed(ticket) => Lookup::Claimed(Claim::new(self.clone(), ticket).timed()),
            Found::Loading(flight, hold) => {
                let since = Instant::now();
                let parts = Parts { cache: self.clone(), flight, hold, since };
                Lookup::Loading(Joined { parts: Some(parts) })
            }
        }
    }
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static> Joined<K, V> {
    /// Waits for the end of the load. `None`: the load was given up, or its error is of another
    /// type. A caller that still wants the key asks again.
    ///
    /// # Errors
    /// As of [`Cache::get_or_load`].
    ///
    /// # Panics
    /// Never: it is waited for once.
    pub fn wait<E>(mut self) -> Result<Option<Hold<K, V>>, LoadError<E>>
    where
        E: Clone + Send + Sync + 'static,
    {
        let parts = self.parts.take().expect("a share is used once");
        let landing = parts.flight.wait();
        parts.end(landing)
    }

    /// Runs `then` when the load has ended: on the thread that ends it, or on this one if it has
    /// ended already. `then` must not block, because others wait for what that thread does next. It
    /// gets what [`Joined::wait`] returns.
    ///
    /// # Panics
    /// Never: it is waited for once.
    pub fn then<E>(
        mut self,
        then: impl FnOnce(Result<Option<Hold<K, V>>, LoadError<E>>) + Send + 'static,
    ) where
        E: Clone + Send + Sync + 'static,
    {
        let parts = self.parts.take().expect("a share is used once");
        let flight = Arc::clone(&parts.flight);
        flight.then(Box::new(move |landing| then(parts.end(landing))));
    }
}

impl<K, V> Parts<K, V> {
    fn end<E>(self, landing: Landing) -> Result<Option<Hold<K, V>>, LoadError<E>>
    where
        E: Clone + Send + Sync + 'static,
    {
        let counters = &self.cache.core().counters;
        counters.count(Event::JoinedWaits);
        counters.add(Event::JoinedWaitNs, elapsed_ns(self.since));
        match landing {
            Landing::Loaded => Ok(Some(ManuallyDrop::into_inner(self.hold))),
            Landing::Failed(error) => match error.downcast_ref::<E>() {
                Some(error) => Err(LoadError::Failed(error.clone())),
                None => Ok(None),
            },
            Landing::Panicked => Err(LoadError::Panicked),
            Landing::Abandoned => Ok(None),
        }
    }
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static> Drop for Joined<K, V> {
    fn drop(&mut self) {
        if let Some(parts) = self.parts.take() {
            let flight = Arc::clone(&parts.flight);
            // The pin becomes a hold only if a value comes, and cannot be let go of before.
            flight.then(Box::new(move |landing| {
                if matches!(landing, Landing::Loaded) {
                    drop(ManuallyDrop::into_inner(parts.hold));
                }
            }));
        }
    }
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static> fmt::Debug for Joined<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flight = self.parts.as_ref().map(|parts| &parts.flight);
        f.debug_struct("Joined").field("flight", &flight).finish_non_exhaustive()
    }
}
