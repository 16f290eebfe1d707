//! A miss: a ticket for a key that has no entry, the place of the arrival, and its value.
//!
//! 1. `begin` makes a loading entry, out of a ghost or out of nothing, under the sublist's lock.
//! 2. The load runs under no lock (`load.rs`); other callers that ask for the key wait for it.
//! 3. `put` shows the request to the referee, finds the place (`place`) and the room (`find_room`),
//!    and gives the entry its value (`settle`). `evict.rs` makes the room if that takes more than a
//!    few evictions.
//! 4. `fail` and `land` end a load without a value.

use super::Growth;
use super::core::{Core, GrowthHook};
use super::evict::{FEW, Leaving};
use super::hold::Hold;
use crate::counters::Event;
use crate::flight::{Flight, Landing};
use crate::policy::duel::rules::LEFTOVERS_PER_ARRIVAL;
use crate::policy::transition::Arrival;
use crate::policy::{Access, Balance, Kind, List, Step};
use crate::sync::elapsed_ns;
use crate::table::{
    DEAD, DOOMED, Ghost, MFU, MRU, OVERSIZE, PREFETCHED, RETURNED, SublistGuard, WAITING, WATCHED,
};
use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

/// A loading entry. The owner of the ticket must end it, in [`Core::land`] or [`Core::put`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    pub(crate) sublist: usize,
    pub(crate) id: u32,
    pub(crate) hash: u64,
    pub(crate) arrival: Arrival,
    pub(crate) kind: Kind,
    pub(crate) access: Access,
    /// The ghost that the key had, if the rules have to judge it.
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

/// Work for an arrival that waits until all locks are released.
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

/// Counts a load that ended with a value, and its time.
pub(crate) fn count_load<K, V>(core: &Core<K, V>, start: Instant) {
    core.counters.count(Event::Loads);
    core.counters.add(Event::LoadNs, elapsed_ns(start));
}

impl<K, V> Core<K, V> {
    /// Makes a loading entry out of a ghost or out of nothing, for a key that has no entry.
    pub(super) fn begin(
        &self,
        guard: &mut SublistGuard<'_, K, V>,
        (hash, key): (u64, K),
        kind: Kind,
        access: Access,
    ) -> Ticket {
        let mut arrival = Arrival::NEW;
        let ghost = guard.take_ghost(hash);
        if let Some(ghost) = ghost {
            let balance = &mut self.ledger().balance;
            guard.flush(balance);
            if !self.goes_by_rules() {
                balance.ghost_hit(ghost.kind, ghost.list, ghost.weight_bytes);
            }
            balance.sub(ghost.kind, ghost.list, true, ghost.weight_bytes);
            arrival = Arrival::of_ghost(ghost.kind, ghost.list, ghost.prefetched);
        }
        let flags = if access == Access::Prefetch { PREFETCHED } else { 0 };
        let id = guard.occupy(hash, key, kind, flags);
        let ghost = ghost.filter(|_| self.goes_by_rules());
        let sublist = guard.sublist.number();
        Ticket { sublist, id, hash, arrival, kind, access, ghost, waits: false }
    }

    pub(super) fn count_ghost_hit(&self, arrival: &Arrival) {
        match arrival.ghost {
            Some((_, List::Mru)) => self.counters.count(Event::MruGhostHit),
            Some((_, List::Mfu)) => self.counters.count(Event::MfuGhostHit),
            None => {}
        }
    }

    /// Brings a value into the entry of a ticket, and hands it out.
    pub(crate) fn put(&self, ticket: Ticket, value: V, weight_bytes: u64) -> Hold<K, V> {
        let weight_bytes = weight_bytes.max(1);
        if ticket.access == Access::Demand {
            self.show(ticket.kind, ticket.hash, weight_bytes);
        }
        let guard = self.lock_drained(&self.sublists()[ticket.sublist]);
        self.put_locked(guard, ticket, Arc::new(value), weight_bytes)
    }

    /// The same, for a caller that has the lock already. The pins of the loading entry, the
    /// loader's and the waiters', become holds of the entry.
    pub(crate) fn put_locked(
        &self,
        mut guard: SublistGuard<'_, K, V>,
        mut ticket: Ticket,
        value: Arc<V>,
        weight_bytes: u64,
    ) -> Hold<K, V> {
        let (sublist, id) = (guard.sublist, ticket.id);
        let mut leaving = Leaving::default();
        let mut after = After::default();
        let mut settled = None;
        if !guard.word(id).is(DOOMED) {
            let (leaving, after) = (&mut leaving, &mut after);
            settled = self.find_room(&mut guard, &mut ticket, weight_bytes, leaving, after);
        }
        if let Some(oversize) = settled {
            self.settle(&mut guard, &ticket, (value, weight_bytes), oversize);
            after.flight = guard.locked.flights.remove(&id);
            drop(guard);
        } else {
            drop(guard);
            let mut incoming = ticket.arrival.incoming(ticket.kind, weight_bytes);
            incoming.leftovers = 0;
            let oversize = self.make_room(Some(&incoming)).oversize;
            let mut guard = self.lock_drained(sublist);
            if !oversize && !guard.word(id).is(DOOMED) {
                let mut ledger = self.ledger();
                ledger.balance.sub_anon(ticket.kind, weight_bytes);
                ticket.count_in(&mut ledger.balance, weight_bytes);
                self.note_arrival(&ledger);
                after.growth = ledger.note_growth(weight_bytes);
            }
            self.settle(&mut guard, &ticket, (value, weight_bytes), oversize);
            after.flight = guard.locked.flights.remove(&id);
        }
        let hold = Hold::of(self, sublist.entry(id).expect("a ticket has an entry"));
        leaving.finish(self);
        after.run();
        hold
    }

    /// Makes room for an arrival and counts it in. It evicts only a few, none of them handed over,
    /// and does not wait. Returns whether the arrival is oversize; `None` if room has to be made
    /// without the lock.
    fn find_room(
        &self,
        guard: &mut SublistGuard<'_, K, V>,
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
        if self.goes_by_rules() {
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
            if step.evicts() && self.handed.any() {
                return None;
            }
            let balance = &mut ledger.balance;
            if taken == FEW || !self.take_at_oldest(guard, balance, step, leaving) {
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

    /// Finds the place of an arrival: MFU for a ghost that comes back in time, else MRU or the
    /// window. Also evicts a few of the entries that a change of rule has left in the window.
    fn place(
        &self,
        guard: &mut SublistGuard<'_, K, V>,
        balance: &mut Balance,
        ticket: &mut Ticket,
        weight_bytes: u64,
    ) {
        if let Some(ghost) = ticket.ghost {
            let (kind, bytes) = (ghost.kind, ghost.weight_bytes);
            let recent = !ghost.stale && ghost.mark.stamp >= self.horizon(guard, kind);
            if ticket.arrival.list == List::Mfu
                && !balance.returns_to_mfu((kind, ghost.list), recent, ghost.mark.left_bytes)
            {
                ticket.arrival.list = List::Mru;
                self.counters.count(Event::GhostsTooLate);
            }
            // The ghost still counts while it moves `p` and the metadata fraction.
            balance.add(kind, ghost.list, true, bytes);
            balance.ghost_hit(kind, ghost.list, bytes);
            balance.sub(kind, ghost.list, true, bytes);
        }
        let kind = ticket.kind;
        ticket.waits = ticket.arrival.list == List::Mru && balance.waits(kind, weight_bytes);
        if balance.has_left_over(kind) {
            for _ in 0..LEFTOVERS_PER_ARRIVAL {
                if !guard.readmit(kind, balance, self.arrivals()) {
                    break;
                }
            }
            guard.publish();
        }
    }

    /// Gives the loading entry its value. The balance knows of its bytes already.
    fn settle(
        &self,
        guard: &mut SublistGuard<'_, K, V>,
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
            let returned = ticket.arrival.ghost.is_some();
            let flags =
                flag(ticket.waits, WAITING) | flag(watched, WATCHED) | flag(returned, RETURNED);
            (state, word.only(PREFETCHED) | flags)
        };
        guard.settle(ticket.id, as_what, (value, weight_bytes), stamp);
        let kind = ticket.kind;
        if as_what.0 == MFU && self.rule(kind).demotes() {
            let mut ledger = self.ledger();
            guard.flush(&mut ledger.balance);
            ledger.balance.require_demotions(kind);
            self.demote_oldest(guard, &mut ledger.balance, kind);
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
            let mut guard = self.lock(&self.sublists()[ticket.sublist]);
            let flight = guard.locked.flights.remove(&ticket.id);
            if !guard.word(ticket.id).is(DOOMED) {
                guard.unindex(ticket.id);
            }
            // Each waiter has a pin. No value comes, so all pins are taken away here.
            let pins = guard.word(ticket.id).pins();
            if let Ok(stored) = guard.vacate(ticket.id, pins) {
                leaving.freed(stored);
            }
            flight
        };
        if let Some(flight) = flight {
            flight.land(landing);
        }
        leaving.finish(self);
    }
}
