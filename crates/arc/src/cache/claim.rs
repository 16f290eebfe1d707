//! A claim: the right, and the duty, to bring one key into the cache.

use super::core::{Core, GrowthHook};
use super::evict::{FEW, Leaving};
use super::flight::{Flight, Landing};
use super::hold::Hold;
use super::{Cache, Growth};
use crate::counters::Event;
use crate::policy::duel::Rule;
use crate::policy::transition::Arrival;
use crate::policy::{Access, Balance, Kind, List, Step};
use crate::sync::elapsed_ns;
use crate::table::{
    DEAD, DOOMED, Ghost, MFU, MRU, OVERSIZE, PREFETCHED, ShardGuard, WAITING, WATCHED,
};
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
    cache: Cache<K, V>,
    ticket: Option<Ticket>,
}

/// A loading entry: whose it is must end it, in [`Core::land`] or [`Core::put`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    pub(crate) sublist: usize,
    pub(crate) id: u32,
    pub(crate) hash: u64,
    pub(crate) arrival: Arrival,
    pub(crate) kind: Kind,
    pub(crate) access: Access,
    /// The ghost there was, if the rules have to judge of it.
    pub(crate) ghost: Option<Ghost>,
    /// It goes to the window.
    pub(crate) waits: bool,
}

impl Ticket {
    /// Counts the bytes of the arrival in where it goes.
    fn count_in(&self, balance: &mut Balance, weight_bytes: u64) {
        balance.add(self.kind, self.arrival.list, false, weight_bytes);
        if self.waits {
            balance.add_waiting(self.kind, weight_bytes);
        }
    }
}

/// What is done about an arrival after all locks are released.
#[derive(Default)]
pub(crate) struct After {
    growth: Option<(GrowthHook, Growth)>,
    denied: Option<GrowthHook>,
    flight: Option<Arc<Flight>>,
}

impl After {
    fn run(self) {
        if let Some(flight) = self.flight {
            flight.land(Landing::Loaded);
        }
        if let Some((hook, growth)) = self.growth {
            hook(growth);
        }
        if let Some(hook) = self.denied {
            hook(Growth::Denied);
        }
    }
}

impl<K, V> Claim<K, V> {
    pub(crate) const fn new(cache: Cache<K, V>, ticket: Ticket) -> Self {
        Self { cache, ticket: Some(ticket) }
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
        core.counters.count(Event::Loads);
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

/// Counts a load that ended with a value, and its time.
pub(crate) fn count_load<K, V>(core: &Core<K, V>, start: Instant) {
    core.counters.count(Event::Loads);
    core.counters.add(Event::LoadNs, elapsed_ns(start));
}

impl<K, V> Core<K, V> {
    /// Brings a value into the entry of a ticket, and hands it out.
    pub(crate) fn put(&self, ticket: Ticket, value: V, weight_bytes: u64) -> Hold<K, V> {
        let weight_bytes = weight_bytes.max(1);
        if ticket.access == Access::Demand {
            self.show(ticket.kind, ticket.hash, weight_bytes);
        }
        let guard = self.lock_drained(&self.shards()[ticket.sublist]);
        self.put_locked(guard, ticket, Arc::new(value), weight_bytes)
    }

    /// The same, by somebody who has the lock already. The pins of the loading entry, the
    /// loader's and the waiters', become holds of the entry.
    pub(crate) fn put_locked(
        &self,
        mut guard: ShardGuard<'_, K, V>,
        mut ticket: Ticket,
        value: Arc<V>,
        weight_bytes: u64,
    ) -> Hold<K, V> {
        let (shard, id) = (guard.shard, ticket.id);
        let mut leaving = Leaving::default();
        let mut after = After::default();
        let mut settled = None;
        if !guard.word(id).is(DOOMED) {
            let (leaving, after) = (&mut leaving, &mut after);
            settled = self.find_room(&mut guard, &mut ticket, weight_bytes, leaving, after);
        }
        if let Some(oversize) = settled {
            self.settle(&mut guard, &ticket, (value, weight_bytes), oversize);
            after.flight = guard.inside.flights.remove(&id);
            drop(guard);
        } else {
            drop(guard);
            let mut incoming = ticket.arrival.incoming(ticket.kind, weight_bytes);
            incoming.leftovers = 0;
            let oversize = self.make_room(Some(&incoming)).oversize;
            let mut guard = self.lock_drained(shard);
            if !oversize && !guard.word(id).is(DOOMED) {
                let mut ledger = self.ledger();
                ledger.balance.sub_anon(ticket.kind, weight_bytes);
                ticket.count_in(&mut ledger.balance, weight_bytes);
                self.note_arrival(&ledger);
                after.growth = ledger.note_growth(weight_bytes);
            }
            self.settle(&mut guard, &ticket, (value, weight_bytes), oversize);
            after.flight = guard.inside.flights.remove(&id);
        }
        let hold = Hold::of(self, shard.entry(id).expect("a ticket has an entry"));
        leaving.let_go(self);
        after.run();
        hold
    }

    /// Makes room for an arrival, if that takes evicting a few and no waiting, and counts it in.
    /// Returns whether it is oversize; or nothing, when room has to be made without the lock.
    fn find_room(
        &self,
        guard: &mut ShardGuard<'_, K, V>,
        ticket: &mut Ticket,
        weight_bytes: u64,
        leaving: &mut Leaving<K, V>,
        after: &mut After,
    ) -> Option<bool> {
        guard.publish();
        let mut ledger = self.ledger();
        guard.flush(&mut ledger.balance);
        ledger.balance.grow_for(weight_bytes);
        after.denied = ledger.note_denied(weight_bytes);
        if self.referees.is_some() {
            self.place(guard, &mut ledger.balance, ticket, weight_bytes);
        }
        let mut incoming = ticket.arrival.incoming(ticket.kind, weight_bytes);
        if weight_bytes > ledger.balance.target_bytes() {
            ledger.balance.add_oversize(ticket.kind, weight_bytes);
            return Some(true);
        }
        let mut taken = 0;
        loop {
            let step = self.next_step(&ledger.balance, Some(&incoming));
            match step {
                Step::Fits => break,
                Step::NotEnough => {
                    self.counters.count(Event::EvictNotEnough);
                    break;
                }
                Step::Forget { .. }
                | Step::Evict { .. }
                | Step::EvictWaiting { .. }
                | Step::Demote { .. } => {}
            }
            let balance = &mut ledger.balance;
            if taken == FEW || !self.take_here_or_there(guard, balance, step, leaving) {
                return None;
            }
            incoming.note(step);
            taken += 1;
        }
        if taken > 0 {
            self.counters.count(Event::EvictCalls);
        }
        ticket.count_in(&mut ledger.balance, weight_bytes);
        self.note_arrival(&ledger);
        after.growth = ledger.note_growth(weight_bytes);
        Some(false)
    }

    /// Gives the loading entry its value. The balance knows of its bytes already.
    fn settle(
        &self,
        guard: &mut ShardGuard<'_, K, V>,
        ticket: &Ticket,
        (value, weight_bytes): (Arc<V>, u64),
        oversize: bool,
    ) {
        let word = guard.word(ticket.id);
        let stamp = guard.stamp(self.arrivals());
        let as_what = if word.is(DOOMED) || oversize {
            self.add_keeper();
            if word.is(DOOMED) {
                self.counters.count(Event::LoadsDoomed);
            } else {
                guard.unindex(ticket.id);
            }
            if oversize {
                self.counters.count(Event::Oversize);
            }
            (DEAD, if oversize { OVERSIZE } else { 0 })
        } else {
            self.counters.count(Event::Inserts);
            self.counters.add(Event::InsertBytes, weight_bytes);
            let state = if ticket.arrival.list == List::Mfu { MFU } else { MRU };
            let watched = self.is_watched(ticket.kind, ticket.hash);
            let flag = |set: bool, flag: u64| if set { flag } else { 0 };
            let flags = flag(ticket.waits, WAITING) | flag(watched, WATCHED);
            (state, word.only(PREFETCHED) | flags)
        };
        guard.settle(ticket.id, as_what, (value, weight_bytes), stamp);
        let kind = ticket.kind;
        if as_what.0 == MFU && self.rule(kind) == Rule::Lirs && self.referees.is_some() {
            let mut ledger = self.ledger();
            guard.flush(&mut ledger.balance);
            ledger.balance.owe_demotions(kind);
            self.demote_elders(guard, &mut ledger.balance, kind);
        }
    }

    /// Ends a load with an error.
    pub(crate) fn fail(&self, ticket: Ticket, error: Arc<dyn Any + Send + Sync>) {
        self.counters.count(Event::LoadErrors);
        self.land(ticket, Landing::Failed(error));
    }

    /// Ends a load without a value.
    pub(crate) fn land(&self, ticket: Ticket, landing: Landing) {
        let mut leaving = Leaving::default();
        let flight = {
            let mut guard = self.lock(&self.shards()[ticket.sublist]);
            let flight = guard.inside.flights.remove(&ticket.id);
            if !guard.word(ticket.id).is(DOOMED) {
                guard.unindex(ticket.id);
            }
            // Waiters have a pin each, of which they let go unseen: no value ever comes.
            let pins = guard.word(ticket.id).pins();
            if let Ok(stored) = guard.vacate(ticket.id, pins) {
                leaving.freed(stored);
            }
            flight
        };
        if let Some(flight) = flight {
            flight.land(landing);
        }
        leaving.let_go(self);
    }
}
