//! A claim: the right, and the duty, to bring one key into the cache.

use super::Cache;
use super::hold::Hold;
use super::miss::{Ticket, count_load};
use crate::counters::Event;
use crate::flight::Landing;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// The exclusive right to load one key.
///
/// Those who ask for the key with [`Cache::get_or_load`] meanwhile wait for this claim. It ends
/// with [`Claim::fill`] or [`Claim::fail`]. A claim that is dropped is abandoned, and the next who
/// wants the key loads it. If a panic drops it, those who wait get
/// [`LoadError::Panicked`](crate::LoadError).
#[must_use = "those who want the key wait for this claim"]
pub struct Claim<K, V> {
    /// Keeps the cache alive until the load has ended.
    cache: Cache<K, V>,
    ticket: Option<Ticket>,
    /// Since when somebody waits for it.
    since: Option<Instant>,
}

impl<K, V> Claim<K, V> {
    pub(crate) const fn new(cache: Cache<K, V>, ticket: Ticket) -> Self {
        Self { cache, ticket: Some(ticket), since: None }
    }

    /// The time until it is filled counts as that of a load.
    pub(crate) fn timed(mut self) -> Self {
        self.since = Some(Instant::now());
        self
    }

    /// Brings the value in, with its weight in bytes (0 counts as 1), and wakes all who wait.
    ///
    /// If the key was invalidated since the claim, or is heavier than the cache, the value is
    /// handed out but not kept.
    ///
    /// # Panics
    /// Never: a claim is filled once.
    pub fn fill(mut self, value: V, weight_bytes: u64) -> Hold<K, V> {
        let ticket = self.ticket.take().expect("a claim has its ticket until it ends");
        let core = self.cache.core();
        match self.since {
            Some(since) => count_load(core, since),
            None => core.counters.count(Event::Loads),
        }
        core.put(ticket, value, weight_bytes)
    }

    /// Gives up with an error, which those who wait with the same error type get.
    pub fn fail<E: Send + Sync + 'static>(mut self, error: E) {
        if let Some(ticket) = self.ticket.take() {
            self.cache.core().fail(ticket, Arc::new(error));
        }
    }
}

impl<K, V> Drop for Claim<K, V> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            let core = self.cache.core();
            if std::thread::panicking() {
                core.counters.count(Event::LoadPanics);
                return core.land(ticket, Landing::Panicked);
            }
            core.counters.count(Event::LoadsAbandoned);
            core.land(ticket, Landing::Abandoned);
        }
    }
}

impl<K, V> fmt::Debug for Claim<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}
