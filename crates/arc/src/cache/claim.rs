//! A claim: the right, and the duty, to bring one key into the cache.

use super::core::elapsed_ns;
use super::evict::Leaving;
use super::flight::{Flight, Landing};
use super::hold::Hold;
use super::shard::Shard;
use super::{Cache, Growth};
use crate::counters::Event;
use crate::policy::transition::{self, Arrival};
use crate::policy::{Access, Flags, Kind, NodeId, State};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// The right to load one key, and nobody else has it at the same time.
///
/// Those who ask for the key with [`Cache::get_or_load`] meanwhile wait for this claim. It
/// ends with [`Claim::fill`] or [`Claim::fail`]; a claim that is dropped is abandoned, and
/// the next who wants the key loads it.
#[must_use = "those who want the key wait for this claim"]
pub struct Claim<K, V> {
    /// Keeps the cache alive until the load has ended.
    _cache: Cache<K, V>,
    shard: Arc<Shard<K, V>>,
    flight: Arc<Flight<V>>,
    id: NodeId,
    arrival: Arrival,
    kind: Kind,
    access: Access,
    start: Instant,
    open: bool,
}

impl<K, V> Claim<K, V> {
    pub(crate) fn new(
        cache: Cache<K, V>,
        shard: Arc<Shard<K, V>>,
        flight: Arc<Flight<V>>,
        id: NodeId,
        arrival: Arrival,
        (kind, access): (Kind, Access),
    ) -> Self {
        let start = Instant::now();
        Self { _cache: cache, shard, flight, id, arrival, kind, access, start, open: true }
    }

    /// Brings the value in, with its weight in bytes (0 counts as 1), and wakes all who wait.
    ///
    /// If the key was invalidated since the claim, or is heavier than the cache, the value is
    /// handed out but not kept.
    pub fn fill(self, value: V, weight_bytes: u64) -> Hold<K, V> {
        let counters = &self.shard.core.counters;
        counters.count(Event::Loads);
        counters.add(Event::LoadNs, elapsed_ns(self.start));
        self.put(value, weight_bytes)
    }

    /// [`Claim::fill`] for what was not loaded.
    pub(crate) fn put(mut self, value: V, weight_bytes: u64) -> Hold<K, V> {
        let value = Arc::new(value);
        let weight_bytes = weight_bytes.max(1);
        let core = Arc::clone(&self.shard.core);
        let incoming = self.arrival.incoming(self.kind, weight_bytes);
        let oversize = core.make_room(Some(&incoming)).oversize;
        if oversize {
            core.counters.count(Event::Oversize);
        }
        let growth = self.arrive(&value, weight_bytes, oversize);
        self.open = false;
        self.flight.land(Landing::Loaded(Arc::clone(&value)));
        let hold = Hold::of(Arc::clone(&self.shard), self.id, value);
        if let Some((hook, growth)) = growth {
            hook(growth);
        }
        hold
    }

    /// Puts the value into the node, under the locks. The holds of the loading node, the
    /// loader's and the waiters', become holds of the entry.
    fn arrive(
        &self,
        value: &Arc<V>,
        weight_bytes: u64,
        oversize: bool,
    ) -> Option<(super::core::GrowthHook, Growth)> {
        let core = &self.shard.core;
        let mut guard = self.shard.lock();
        let flight = guard.flights.remove(&self.id);
        debug_assert!(flight.is_some(), "a claim has a flight");
        let sublist = &mut guard.sublist;
        let flags = sublist.flags(self.id);
        if flags.doomed || oversize {
            if !flags.doomed {
                sublist.unindex(self.id);
            }
            // Its bytes are counted as in flight already, and stay so until it is released.
            sublist.set_state(self.id, State::Dead);
            sublist.set_weight_bytes(self.id, weight_bytes);
            sublist.set_payload(self.id, Some(Arc::clone(value)));
            sublist.set_flags(self.id, Flags { oversize, ..Flags::default() });
            if flags.doomed {
                core.counters.count(Event::LoadsDoomed);
            }
            return None;
        }
        let kept = Flags { prefetched: flags.prefetched, ..Flags::default() };
        sublist.set_flags(self.id, kept);
        core.clock.fetch_add(1, crate::sync::atomic::Ordering::Relaxed);
        core.counters.count(Event::Inserts);
        core.counters.add(Event::InsertBytes, weight_bytes);
        let mut ledger = core.ledger();
        let (list, value) = (self.arrival.list, Arc::clone(value));
        transition::arrive(sublist, &mut ledger.balance, self.id, list, weight_bytes, value);
        ledger.note_growth(weight_bytes)
    }

    /// Gives up with an error, which those who wait with the same error type get.
    pub fn fail<E: Send + Sync + 'static>(self, error: E) {
        self.fail_shared(Arc::new(error));
    }

    pub(crate) fn fail_shared(mut self, error: Arc<dyn Any + Send + Sync>) {
        self.shard.core.counters.count(Event::LoadErrors);
        self.end(Landing::Failed(error));
    }

    pub(crate) fn panicked(mut self) {
        self.shard.core.counters.count(Event::LoadPanics);
        self.end(Landing::Panicked);
    }

    fn end(&mut self, landing: Landing<V>) {
        self.open = false;
        let mut leaving = Leaving::default();
        {
            let mut guard = self.shard.lock();
            guard.flights.remove(&self.id);
            if !guard.sublist.flags(self.id).doomed {
                guard.sublist.unindex(self.id);
            }
            leaving.freed(guard.sublist.free(self.id));
        }
        self.flight.land(landing);
        leaving.let_go(&self.shard.core);
    }
}

impl<K, V> Drop for Claim<K, V> {
    fn drop(&mut self) {
        if self.open {
            self.shard.core.counters.count(Event::LoadsAbandoned);
            self.end(Landing::Abandoned);
        }
    }
}

impl<K, V> fmt::Debug for Claim<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim").field("kind", &self.kind).field("access", &self.access).finish()
    }
}
