//! Making room. The balance chooses the list, and the published tails the sublist. Evicted keys and
//! values are dropped after all locks are released.
//!
//! The victim is the oldest of its list over all sublists, for entries and ghosts alike. With many
//! sublists it may be one that is nearly as old (`table/published_tails.rs`). So the cache evicts
//! nearly as if it had one sublist.
//!
//! An arrival first evicts a few while it has the lock of its own sublist. It tries the lock of the
//! sublist with the oldest entry, and never waits for it. If that lock is taken, or more than a few
//! entries have to go, it gives its own lock back. Then it evicts batches from the sublists with
//! the oldest entries, and reserves its bytes.
//!
//! An entry that was handed over to a cache above leaves before any other (`hand_over.rs`).
//!
//! Work is proportional to the bytes that it frees. An eviction looks at a held entry once and
//! takes it off its list. If there is nothing to evict, one load for each list shows it.

use super::core::Core;
use super::{Eviction, Growth, Reason};
use crate::counters::Event;
use crate::policy::balance::by_rules::ListEnds;
use crate::policy::duel::Rule;
use crate::policy::duel::rules::{self, On};
use crate::policy::{Balance, EMPTY, Incoming, Kind, List, Step, list_index, window_index};
use crate::sync::elapsed_ns;
use crate::table::{
    Ghost, LiveList, Mark, PREFETCHED, Pick, RemovedEntry, Stored, Sublist, SublistGuard, Taken,
    Unpinned, WAITING,
};
use smallvec::SmallVec;
use std::time::Instant;

/// The most entries evicted under one hold of a sublist's lock.
const BATCH: usize = 16;

/// The most an arrival evicts under the lock of its own sublist.
pub(super) const FEW: usize = 4;

/// An eviction gives up after this many sublists in a row that other threads emptied first.
const FRUITLESS_MAX: u32 = 64;

/// Entries that leave the cache: collected under locks, dropped after them.
pub(crate) struct Leaving<K, V> {
    stored: SmallVec<[Stored<K, V>; FEW]>,
    evictions: SmallVec<[Eviction<K, V>; 1]>,
    evicted_bytes: u64,
    evicted: u64,
    forgotten: u64,
}

impl<K, V> Default for Leaving<K, V> {
    fn default() -> Self {
        Self {
            stored: SmallVec::new(),
            evictions: SmallVec::new(),
            evicted_bytes: 0,
            evicted: 0,
            forgotten: 0,
        }
    }
}

impl<K, V> Leaving<K, V> {
    /// With room for this many entries, so that nothing is allocated under the locks.
    pub(super) fn with_room(core: &Core<K, V>, entries: usize) -> Self {
        let mut leaving = Self::default();
        if core.evict_hook.is_some() {
            leaving.evictions.reserve_exact(entries);
        } else if entries > FEW {
            leaving.stored.reserve_exact(entries);
        }
        leaving
    }

    /// Takes the key and the value of a freed slot.
    pub(crate) fn freed(&mut self, stored: Stored<K, V>) {
        self.stored.push(stored);
    }

    /// Takes an entry that was evicted or demoted.
    fn evicted(
        &mut self,
        core: &Core<K, V>,
        (key, value): Stored<K, V>,
        gone: &RemovedEntry,
        reason: Reason,
    ) {
        let (word, weight_bytes) = (gone.word, gone.weight_bytes);
        self.evicted += 1;
        self.evicted_bytes += weight_bytes;
        match value {
            Some(value) if core.evict_hook.is_some() => self.evictions.push(Eviction {
                key,
                value,
                weight_bytes,
                kind: word.kind(),
                list: word.list(),
                prefetched: word.is(PREFETCHED),
                reason,
            }),
            value => self.freed((key, value)),
        }
    }

    /// Counts, calls the hook and drops everything. Only with no lock held.
    pub(crate) fn finish(self, core: &Core<K, V>) {
        if self.evicted > 0 {
            core.counters.add(Event::Deleted, self.evicted);
            core.counters.add(Event::EvictBytes, self.evicted_bytes);
        }
        if self.forgotten > 0 {
            core.counters.add(Event::GhostsForgotten, self.forgotten);
        }
        if let Some(hook) = &core.evict_hook {
            self.evictions.into_iter().for_each(hook);
        }
    }
}

/// The outcome of making room.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Room {
    /// The arrival is heavier than the whole target: no room was made.
    pub(crate) oversize: bool,
}

impl<K, V> Core<K, V> {
    /// Gets back within bounds after a release or a demotion. One load if there is nothing
    /// to do.
    pub(crate) fn trim_if_over(&self) {
        if self.is_over() {
            self.make_room(None);
        }
    }

    /// Evicts and forgets until `incoming` fits, and reserves its bytes. They are reserved even if
    /// there is not enough to evict: a reader is never refused. With `None`, evicts until the cache
    /// is within its target.
    pub(crate) fn make_room(&self, incoming: Option<&Incoming>) -> Room {
        if let Some(incoming) = incoming
            && self.grow_for(incoming)
        {
            return Room { oversize: true };
        }
        let mut incoming = incoming.copied();
        let mut start = None;
        let mut fruitless = 0;
        loop {
            let step = {
                let mut ledger = self.ledger();
                let mut step = self.next_step(&ledger.balance, incoming.as_ref());
                if fruitless == FRUITLESS_MAX {
                    step = Step::NotEnough;
                }
                if matches!(step, Step::Fits | Step::NotEnough)
                    && let Some(incoming) = incoming
                {
                    ledger.balance.add_anon(incoming.kind, incoming.weight_bytes);
                }
                step
            };
            let Some(list) = step.list_index() else {
                if step == Step::NotEnough && incoming.is_some() {
                    self.counters.count(Event::EvictNotEnough);
                }
                break;
            };
            start.get_or_insert_with(Instant::now);
            if step.evicts() && self.evict_handed_over() {
                continue;
            }
            let picked = self.tails.oldest(list);
            let progress = picked.is_some_and(|pick| self.take_batch(list, pick, &mut incoming));
            fruitless = if progress { 0 } else { fruitless + 1 };
        }
        if let Some(start) = start {
            self.counters.count(Event::EvictCalls);
            self.counters.add(Event::EvictNs, elapsed_ns(start));
        }
        Room::default()
    }

    /// Lets the target grow for an entry on its way in, where that is allowed. Returns whether the
    /// entry is still heavier than the whole target; then it is counted as oversize.
    fn grow_for(&self, incoming: &Incoming) -> bool {
        let (oversize, denied) = {
            let mut ledger = self.ledger();
            let weight_bytes = incoming.weight_bytes;
            ledger.balance.grow_for(weight_bytes);
            let denied = ledger.note_denied(weight_bytes);
            let oversize = weight_bytes > ledger.balance.target_bytes();
            if oversize {
                ledger.balance.add_oversize(incoming.kind, weight_bytes);
            }
            (oversize, denied)
        };
        if let Some(hook) = denied {
            hook(Growth::Denied);
        }
        oversize
    }

    pub(super) fn next_step(&self, balance: &Balance, incoming: Option<&Incoming>) -> Step {
        if self.goes_by_rules() {
            return balance.step_by_rule(incoming, self);
        }
        balance.step(incoming, |kind, list| self.tails.any(list_index(kind, list, false)))
    }

    /// Carries out one step of the balance where the oldest of its list is: in a locked sublist, or
    /// in another whose lock is free. Returns whether it did anything.
    pub(super) fn take_at_oldest(
        &self,
        guard: &mut SublistGuard<'_, K, V>,
        balance: &mut Balance,
        step: Step,
        leaving: &mut Leaving<K, V>,
    ) -> bool {
        let Some(list) = step.list_index() else {
            return false;
        };
        guard.publish();
        let Some(sublist) = self.sublist_to_take_from(guard, list) else {
            return false;
        };
        if sublist == guard.sublist.number() {
            let done = self.take_step(guard, balance, step, leaving);
            guard.publish();
            return done;
        }
        // To wait here, with two locks held, could deadlock.
        let there = self.sublists()[sublist].try_lock(&self.tails, &self.counters);
        there.is_some_and(|mut there| {
            there.flush(balance);
            self.take_step(&mut there, balance, step, leaving)
        })
    }

    /// The sublist with the oldest of a list; this one, if its oldest is nearly as old.
    fn sublist_to_take_from(&self, guard: &SublistGuard<'_, K, V>, list: usize) -> Option<usize> {
        let oldest = self.tails.oldest_stamp(list);
        if guard.has_nearly_oldest(list, oldest) {
            return Some(guard.sublist.number());
        }
        (oldest != EMPTY).then(|| self.tails.sublist_with(list, oldest)).flatten()
    }

    /// Carries out one step of the balance in a locked sublist. Returns whether it did anything.
    pub(super) fn take_step(
        &self,
        guard: &mut SublistGuard<'_, K, V>,
        balance: &mut Balance,
        step: Step,
        leaving: &mut Leaving<K, V>,
    ) -> bool {
        match step {
            Step::Fits | Step::NotEnough => false,
            Step::Forget { kind, list } => guard.forget_ghost(kind, list).is_some_and(|bytes| {
                balance.sub(kind, list, true, bytes);
                leaving.forgotten += 1;
                true
            }),
            Step::Evict { kind, list, keep_ghost } => {
                let at = LiveList { kind, list, waits: false };
                self.evict_oldest(guard, balance, (at, keep_ghost), leaving)
            }
            Step::EvictWaiting { kind, keep_ghost } => {
                self.evict_oldest(guard, balance, (LiveList::window(kind), keep_ghost), leaving)
            }
            Step::Demote { kind, list } => self.demote_one(guard, balance, (kind, list)),
        }
    }

    /// Evicts the oldest entry of a list, or gives it its move if it has been used. Returns whether
    /// anything changed.
    fn evict_oldest(
        &self,
        guard: &mut SublistGuard<'_, K, V>,
        balance: &mut Balance,
        (at, keep_ghost): (LiveList, bool),
        leaving: &mut Leaving<K, V>,
    ) -> bool {
        if at.list == List::Mfu && balance.rule(at.kind).is_some_and(Rule::merges_lists) {
            // The published stamp of MFU may be too old. Then MRU may have the older entry.
            let published = guard.tail_stamp(at.index());
            guard.sort(at);
            if guard.tail_stamp(at.index()) != published {
                return true;
            }
        }
        if let Some(rule) = balance.rule(at.kind)
            && rule.gives_second_chance()
            && self.second_chance(guard, (at, rule))
        {
            guard.flush(balance);
            return true;
        }
        match guard.take_oldest(at, &self.counters) {
            Taken::Nothing => false,
            Taken::Parked => true,
            Taken::Used(id) => {
                self.use_with_ledger(guard, balance, id);
                true
            }
            Taken::Entry(stored, gone) => {
                self.leave(balance, &gone);
                if keep_ghost {
                    self.remember(guard, balance, &gone);
                }
                leaving.evicted(self, stored, &gone, Reason::Capacity);
                true
            }
        }
    }

    /// 2Q: an entry used twice in the window goes to MFU, and one used on MFU stays there. Returns
    /// whether the oldest of a list was such an entry.
    fn second_chance(
        &self,
        guard: &mut SublistGuard<'_, K, V>,
        (at, rule): (LiveList, Rule),
    ) -> bool {
        let Some(id) = guard.oldest(at) else {
            return false;
        };
        let on = if at.waits { On::Window } else { On::main(at.list) };
        let Some(left) = rules::second_chance(rule, on, guard.entry(id).uses()) else {
            return false;
        };
        let event = if at.waits { Event::WindowAdmitted } else { Event::SecondChances };
        self.counters.count(event);
        guard.second_chance(id, left, self.arrivals());
        true
    }

    /// Counts the bytes of a live entry out that is evicted.
    fn leave(&self, balance: &mut Balance, gone: &RemovedEntry) {
        let (word, bytes) = (gone.word, gone.weight_bytes);
        balance.sub(word.kind(), word.list(), false, bytes);
        if word.is(WAITING) {
            balance.sub_waiting(word.kind(), bytes);
            balance.note_left(word.kind(), bytes);
        }
    }

    /// Makes the ghost of an entry that has just left.
    fn remember(
        &self,
        guard: &mut SublistGuard<'_, K, V>,
        balance: &mut Balance,
        gone: &RemovedEntry,
    ) {
        let (kind, list) = (gone.word.kind(), gone.word.list());
        let (mut stale, mut stamp) = (gone.stale, gone.stamp);
        if !self.goes_by_rules() {
            // ARC asks only which ghost is the oldest.
            stamp = guard.stamp(self.arrivals());
        } else if !stale {
            stale = stamp < self.horizon(guard, kind);
        }
        let ghost = Ghost {
            kind,
            list,
            weight_bytes: gone.weight_bytes,
            prefetched: gone.word.is(PREFETCHED),
            stale,
            mark: Mark { stamp, left_bytes: balance.left_bytes(kind) },
        };
        let remembered_bytes = guard.remember(gone.hash, ghost);
        balance.add(kind, list, true, remembered_bytes);
    }

    /// Evicts from one list of one sublist, as long as the balance wants it from that list and no
    /// other sublist has an older entry. Returns whether anything left.
    fn take_batch(&self, list: usize, pick: Pick, incoming: &mut Option<Incoming>) -> bool {
        let sublist = &self.sublists()[pick.sublist];
        let mut leaving = Leaving::with_room(self, BATCH);
        let mut taken = 0;
        {
            let mut guard = self.lock_to_evict(sublist);
            self.drain(&mut guard, false, true);
            let mut ledger = self.ledger();
            guard.flush(&mut ledger.balance);
            while taken < BATCH {
                guard.publish();
                if taken > 0 && guard.tail_stamp(list) > pick.next_stamp {
                    break;
                }
                let step = self.next_step(&ledger.balance, incoming.as_ref());
                if step.list_index() != Some(list)
                    || !self.take_step(&mut guard, &mut ledger.balance, step, &mut leaving)
                {
                    break;
                }
                if let Some(incoming) = incoming {
                    incoming.note(step);
                }
                taken += 1;
            }
        }
        if taken == 0 {
            self.counters.count(Event::EvictSkip);
        }
        leaving.finish(self);
        taken > 0
    }

    /// Takes the lock to evict; counts if it has to wait.
    fn lock_to_evict<'a>(&'a self, sublist: &'a Sublist<K, V>) -> SublistGuard<'a, K, V> {
        if let Some(guard) = sublist.try_lock(&self.tails, &self.counters) {
            return guard;
        }
        self.counters.count(Event::MutexMiss);
        self.lock(sublist)
    }

    /// Takes a pin away under the lock. With the last pin, a parked entry goes back to the head of
    /// its list. A demoted one becomes a ghost, and a dead one is freed.
    pub(crate) fn release(&self, sublist: &Sublist<K, V>, id: u32) {
        let mut leaving = Leaving::with_room(self, 1);
        let mut keeper = None;
        {
            let mut guard = self.lock_drained(sublist);
            let weight_bytes = guard.entry(id).weight_bytes();
            match guard.unpin(id, self.arrivals()) {
                Unpinned::Held => {}
                Unpinned::Buried(stored, word) => {
                    let balance = &mut self.ledger().balance;
                    if word.is(crate::table::OVERSIZE) {
                        balance.sub_oversize(word.kind(), weight_bytes);
                    } else {
                        balance.sub_anon(word.kind(), weight_bytes);
                    }
                    leaving.freed(stored);
                    keeper = self.keeper();
                }
                Unpinned::Demoted(stored, gone) => {
                    self.demoted(&mut guard, &mut leaving, stored, &gone);
                }
            }
        }
        leaving.finish(self);
        self.trim_if_over();
        drop(keeper);
    }

    /// Turns an entry that has just left at its owner's wish into a ghost.
    pub(crate) fn demoted(
        &self,
        guard: &mut SublistGuard<'_, K, V>,
        leaving: &mut Leaving<K, V>,
        stored: Stored<K, V>,
        gone: &RemovedEntry,
    ) {
        {
            let balance = &mut self.ledger().balance;
            guard.flush(balance);
            self.leave(balance, gone);
            self.remember(guard, balance, gone);
        }
        leaving.evicted(self, stored, gone, Reason::Demoted);
        self.counters.count(Event::Demotions);
    }
}

impl<K, V> ListEnds for Core<K, V> {
    fn any(&self, kind: Kind, list: List) -> bool {
        self.tails.any(list_index(kind, list, false))
    }

    fn any_waiting(&self, kind: Kind) -> bool {
        self.tails.any(window_index(kind))
    }

    fn older(&self, kind: Kind) -> Option<List> {
        self.older_of(kind, false)
    }

    fn older_ghosts(&self, kind: Kind) -> Option<List> {
        self.older_of(kind, true)
    }
}

impl<K, V> Core<K, V> {
    fn older_of(&self, kind: Kind, ghosts: bool) -> Option<List> {
        let [mru, mfu] =
            List::ALL.map(|list| self.tails.oldest_stamp(list_index(kind, list, ghosts)));
        let older = if mru < mfu { List::Mru } else { List::Mfu };
        (mru.min(mfu) != EMPTY).then_some(older)
    }

    /// When the oldest of MRU and MFU was last used. Every entry that was used since then is in
    /// LIRS's stack.
    ///
    /// This is the oldest of one sublist. A sublist is a sample of the keys, so its oldest is
    /// nearly the oldest of all. Its hits have just been applied, while those of another sublist
    /// may still lie in a ring. That matters in a loop, where a ghost was used only a little before
    /// the oldest.
    pub(super) fn horizon(&self, guard: &mut SublistGuard<'_, K, V>, kind: Kind) -> u64 {
        let own = guard.horizon(kind);
        if own != EMPTY {
            return own;
        }
        let [mru, mfu] =
            List::ALL.map(|list| self.tails.oldest_stamp(list_index(kind, list, false)));
        if mru.min(mfu) == EMPTY { 0 } else { mru.min(mfu) }
    }
}
