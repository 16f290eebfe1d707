//! Loading through the cache: one load a key, however many ask. It runs under no lock.
//!
//! The first caller that asks for a key without an entry gets a [`Claim`]: the right, and the duty,
//! to bring the value. The others join that load ([`Joined`]): they wait for it, or leave a
//! continuation. [`Cache::get_or_load`] is both in one call.
//!
//! A claim ends in one of four ways (`flight.rs`): a value, an error, a panic, or abandoned. After
//! the last one, the next caller that asks for the key loads it.

use super::Cache;
use super::core::Core;
use super::hold::Hold;
use super::miss::{Ticket, count_load};
use crate::counters::{Counters, Event};
use crate::flight::{Flight, Landing};
use crate::policy::{Access, Kind};
use crate::sync::elapsed_ns;
use crate::table::PREFETCHED;
use std::fmt;
use std::hash::Hash;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::Instant;

/// Where a value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// It was in the cache.
    Hit,
    /// Another caller was loading it (OpenZFS: `iohits`).
    Joined,
    /// The caller's loader loaded it.
    Loaded,
}

/// The reason for no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError<E> {
    /// The loader, the caller's own or the one the caller waited for, gave this error.
    #[error("the load failed: {0}")]
    Failed(E),
    /// The loader the caller waited for panicked.
    #[error("the load failed: the thread that did it panicked")]
    Panicked,
}

/// The result of [`Cache::get_or_claim`].
#[derive(Debug)]
pub enum Lookup<K: Send + Sync + 'static, V: Send + Sync + 'static> {
    /// Its entry.
    Hit(Hold<K, V>),
    /// Nothing: it is the caller's to load.
    Claimed(Claim<K, V>),
    /// A load in flight.
    Loading(Joined<K, V>),
}

impl<K: Eq + Hash + Clone, V> Cache<K, V> {
    /// The entry of a key. If there is none, `load` gives the value and its weight in bytes (0 counts
    /// as 1).
    ///
    /// However many ask for a key, one `load` runs at a time, with no lock held. The others wait
    /// for it and get its value, or a clone of its error. If that loader gave up without a result
    /// ([`Claim`] dropped), or had another error type, the next one loads. A `load` must not ask
    /// for its own key: it would wait for itself.
    ///
    /// # Errors
    /// [`LoadError::Failed`] with the loader's error; [`LoadError::Panicked`] if another caller's
    /// loader panicked. Nothing is cached then, and the next call loads again.
    ///
    /// # Panics
    /// If `load` panics, the panic continues to its caller.
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
            let share = match self.find_or_claim(key, kind, access) {
                Found::Entry(hold) => return Ok((hold, Source::Hit)),
                Found::Claimed(ticket) => {
                    let since = Some(Instant::now());
                    // A panic drops it, and so wakes the waiters with an error.
                    let pending = Pending { core: self.core(), ticket: Some(ticket), since };
                    return match load() {
                        Ok((value, weight_bytes)) => {
                            Ok((pending.fill(value, weight_bytes), Source::Loaded))
                        }
                        Err(error) => {
                            pending.fail(error.clone());
                            Err(LoadError::Failed(error))
                        }
                    };
                }
                Found::Loading(share) => share,
            };
            let landing = share.flight.wait();
            if let Some(hold) = share.end(&self.core().counters, landing)? {
                return Ok((hold, Source::Joined));
            }
        }
    }

    #[inline]
    fn find_or_claim(&self, key: &K, kind: Kind, access: Access) -> Found<K, V> {
        let hash = self.hash(key);
        if let Some(hold) = self.find_near(hash, key, access) {
            return Found::Entry(hold);
        }
        self.claim_or_join(hash, key, kind, access)
    }

    /// The look-up near the key's home found nothing.
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
        let flight = Arc::clone(guard.locked.flights.entry(id).or_default());
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
        let hold = ManuallyDrop::new(Hold::of(core, entry));
        Found::Loading(Share { flight, hold, since: Instant::now() })
    }
}

impl<K: Eq + Hash + Clone + Send + Sync + 'static, V: Send + Sync + 'static> Cache<K, V> {
    /// The entry of a key, the right to load it, or a share in the load in flight. Never waits. It
    /// looks and counts as [`Cache::get_or_load`] does.
    pub fn get_or_claim(&self, key: &K, kind: Kind, access: Access) -> Lookup<K, V> {
        match self.find_or_claim(key, kind, access) {
            Found::Entry(hold) => Lookup::Hit(hold),
            Found::Claimed(ticket) => Lookup::Claimed(Claim::new(self.clone(), ticket).timed()),
            Found::Loading(share) => Lookup::Loading(Joined { share: Some((self.clone(), share)) }),
        }
    }
}

/// The exclusive right to load one key.
///
/// Callers that ask for the key with [`Cache::get_or_load`] wait for this claim. It ends with
/// [`Claim::fill`] or [`Claim::fail`]. A claim that is dropped is abandoned, and the next caller
/// loads the key. If a panic drops it, the waiters get [`LoadError::Panicked`].
#[must_use = "other callers wait for this claim"]
pub struct Claim<K, V> {
    /// Keeps the cache alive until the load has ended.
    cache: Cache<K, V>,
    ticket: Option<Ticket>,
    /// When the load began, if its time counts.
    since: Option<Instant>,
}

impl<K, V> Claim<K, V> {
    pub(super) const fn new(cache: Cache<K, V>, ticket: Ticket) -> Self {
        Self { cache, ticket: Some(ticket), since: None }
    }

    /// Counts the time until it is filled as that of a load.
    fn timed(mut self) -> Self {
        self.since = Some(Instant::now());
        self
    }

    /// Brings the value in, with its weight in bytes (0 counts as 1), and wakes all waiters.
    ///
    /// If the key was invalidated since the claim, or is heavier than the cache, the value is
    /// handed out but not kept.
    ///
    /// # Panics
    /// Never: a claim is filled once.
    pub fn fill(mut self, value: V, weight_bytes: u64) -> Hold<K, V> {
        self.pending().fill(value, weight_bytes)
    }

    /// Gives up with an error, which the waiters with the same error type get.
    pub fn fail<E: Send + Sync + 'static>(mut self, error: E) {
        self.pending().fail(error);
    }

    fn pending(&mut self) -> Pending<'_, K, V> {
        Pending { core: self.cache.core(), ticket: self.ticket.take(), since: self.since }
    }
}

impl<K, V> Drop for Claim<K, V> {
    fn drop(&mut self) {
        drop(self.pending());
    }
}

impl<K, V> fmt::Debug for Claim<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}

/// A load that has to end, for a caller that keeps the cache. Without an end it is abandoned.
struct Pending<'a, K, V> {
    core: &'a Core<K, V>,
    ticket: Option<Ticket>,
    since: Option<Instant>,
}

impl<K, V> Pending<'_, K, V> {
    fn fill(mut self, value: V, weight_bytes: u64) -> Hold<K, V> {
        let ticket = self.ticket.take().expect("a load has its ticket until it ends");
        match self.since {
            Some(since) => count_load(self.core, since),
            None => self.core.counters.count(Event::Loads),
        }
        self.core.put(ticket, value, weight_bytes)
    }

    fn fail<E: Send + Sync + 'static>(mut self, error: E) {
        if let Some(ticket) = self.ticket.take() {
            self.core.fail(ticket, Arc::new(error));
        }
    }
}

impl<K, V> Drop for Pending<'_, K, V> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            if std::thread::panicking() {
                self.core.counters.count(Event::LoadPanics);
                return self.core.land(ticket, Landing::Panicked);
            }
            self.core.counters.count(Event::LoadsAbandoned);
            self.core.land(ticket, Landing::Abandoned);
        }
    }
}

/// A share in a load in flight. Dropping it gives it up.
#[must_use = "it is there to be waited for"]
pub struct Joined<K: Send + Sync + 'static, V: Send + Sync + 'static> {
    share: Option<(Cache<K, V>, Share<K, V>)>,
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
        let (cache, share) = self.share.take().expect("a share is used once");
        let landing = share.flight.wait();
        share.end(&cache.core().counters, landing)
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
        let (cache, share) = self.share.take().expect("a share is used once");
        let flight = Arc::clone(&share.flight);
        flight.then(Box::new(move |landing| then(share.end(&cache.core().counters, landing))));
    }
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static> Drop for Joined<K, V> {
    fn drop(&mut self) {
        if let Some((cache, share)) = self.share.take() {
            let flight = Arc::clone(&share.flight);
            // The pin becomes a hold only if a value comes, and cannot be released before.
            flight.then(Box::new(move |landing| {
                if matches!(landing, Landing::Loaded) {
                    drop(ManuallyDrop::into_inner(share.hold));
                }
                drop(cache);
            }));
        }
    }
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static> fmt::Debug for Joined<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flight = self.share.as_ref().map(|(_, share)| &share.flight);
        f.debug_struct("Joined").field("flight", &flight).finish_non_exhaustive()
    }
}

/// A caller's share in another's load.
pub(super) struct Share<K, V> {
    flight: Arc<Flight>,
    /// A pin of the loading entry. It becomes a hold if a value comes; if none comes, the slot goes
    /// with it.
    hold: ManuallyDrop<Hold<K, V>>,
    since: Instant,
}

impl<K, V> Share<K, V> {
    fn end<E>(
        self,
        counters: &Counters,
        landing: Landing,
    ) -> Result<Option<Hold<K, V>>, LoadError<E>>
    where
        E: Clone + Send + Sync + 'static,
    {
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

/// The result of a look-up.
enum Found<K, V> {
    Entry(Hold<K, V>),
    Loading(Share<K, V>),
    Claimed(Ticket),
}
