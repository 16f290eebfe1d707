//! The second half of a hit: what hits have noted is applied to the lists, by the next thread that
//! has the sublist's lock. Under LIRS, an entry that goes to MFU then sends the oldest back to the
//! window.
//!
//! Only LIRS's moves between the window and MRU or MFU need the ledger. If a hit that empties its
//! ring cannot get the ledger, its entry stays *touched*. The eviction that meets the entry moves
//! it then.

use super::core::Core;
use super::evict::Leaving;
use crate::counters::Event;
use crate::policy::balance::by_rules::ListEnds;
use crate::policy::duel::rules::{self, Used};
use crate::policy::{Balance, Kind, List, Step};
use crate::table::{Demoted, Note, PROMOTED, SublistGuard, TOUCHED, WAITING, WATCHED, Word};

impl<K, V> Core<K, V> {
    /// Applies what hits have noted in a locked sublist: in this thread, or with `all` in every
    /// one. A hit does not wait for other locks.
    pub(crate) fn drain(&self, guard: &mut SublistGuard<'_, K, V>, all: bool, may_wait: bool) {
        let sublist = guard.sublist;
        sublist.hit_rings.drain(all, |note| self.apply(guard, note, may_wait));
        guard.take_uses(all, self.arrivals());
    }

    fn apply(&self, guard: &mut SublistGuard<'_, K, V>, note: Note, may_wait: bool) {
        let Some(word) = guard.noted(note) else {
            return;
        };
        if word.is(WATCHED) && !self.is_watched(word.kind(), guard.entry(note.id).hash()) {
            guard.unwatch(note.id);
        }
        if guard.sublist.hit_rings.is_exact() || word.is(TOUCHED) {
            self.used(guard, note.id, note.promote, may_wait);
        }
    }

    /// Moves an entry that has been used to where the use puts it.
    fn used(&self, guard: &mut SublistGuard<'_, K, V>, id: u32, by_demand: bool, may_wait: bool) {
        if let Some(used) = self.used_by_rule(guard.word(id)) {
            self.move_used(guard, id, by_demand, used);
            return;
        }
        let ledger = if may_wait { Some(self.ledger()) } else { self.try_ledger() };
        match ledger {
            Some(mut ledger) => self.move_used_by_stack(guard, &mut ledger.balance, id, by_demand),
            None => self.counters.count(Event::NotesLost),
        }
    }

    /// The same, for a caller that has the ledger.
    pub(super) fn use_with_ledger(
        &self,
        guard: &mut SublistGuard<'_, K, V>,
        balance: &mut Balance,
        id: u32,
    ) {
        match self.used_by_rule(guard.word(id)) {
            Some(used) => self.move_used(guard, id, false, used),
            None => self.move_used_by_stack(guard, balance, id, false),
        }
        guard.flush(balance);
    }

    /// The move of a used entry with this word, if the rule needs no ledger for it. An entry that
    /// does not wait goes to the head of its list, or of MFU if its word says so.
    fn used_by_rule(&self, word: Word) -> Option<Used> {
        if word.is(WAITING) {
            rules::used_in_window_by_rule(self.rule(word.kind()))
        } else {
            Some(Used::Mfu)
        }
    }

    fn move_used(&self, guard: &mut SublistGuard<'_, K, V>, id: u32, by_demand: bool, used: Used) {
        match used {
            Used::Stays => guard.count_use(id, by_demand),
            Used::Mfu if by_demand && guard.word(id).is(WAITING) => {
                guard.admit(id, self.arrivals());
            }
            Used::Mfu | Used::Window => guard.move_up(id, self.arrivals()),
        }
    }

    /// LIRS, an entry of the window: to MFU if it is in the stack, else to the window's head.
    fn move_used_by_stack(
        &self,
        guard: &mut SublistGuard<'_, K, V>,
        balance: &mut Balance,
        id: u32,
        by_demand: bool,
    ) {
        guard.publish();
        guard.flush(balance);
        let word = guard.word(id);
        let kind = word.kind();
        let entry = guard.entry(id);
        let recent = !entry.is_stale() && entry.stamp() >= self.horizon(guard, kind);
        let by_demand = by_demand || word.is(PROMOTED);
        if by_demand && balance.used_in_window(kind, recent) == Used::Mfu {
            guard.admit(id, self.arrivals());
            guard.flush(balance);
            self.counters.count(Event::WindowAdmitted);
            balance.require_demotions(kind);
            self.demote_oldest(guard, balance, kind);
        } else {
            guard.entry(id).meta.lower(PROMOTED);
            guard.move_up(id, self.arrivals());
        }
    }

    /// LIRS: moves the oldest of main to the window while main has too much, as far as that takes
    /// no waiting. The rest is for the next arrival.
    pub(super) fn demote_oldest(
        &self,
        guard: &mut SublistGuard<'_, K, V>,
        balance: &mut Balance,
        kind: Kind,
    ) {
        while balance.demotion_is_due(kind) {
            guard.publish();
            let Some(list) = self.older(kind) else {
                break;
            };
            let step = Step::Demote { kind, list };
            if !self.take_at_oldest(guard, balance, step, &mut Leaving::default()) {
                return;
            }
        }
        balance.settle_demotions();
    }

    /// Moves the oldest of a list in this sublist to the window. Returns whether anything changed.
    pub(super) fn demote_one(
        &self,
        guard: &mut SublistGuard<'_, K, V>,
        balance: &mut Balance,
        at: (Kind, List),
    ) -> bool {
        match guard.demote_oldest(at, balance, self.arrivals()) {
            Demoted::Moved => {
                self.counters.count(Event::WindowDemoted);
                balance.settle_demotions();
                true
            }
            Demoted::Used(id) => {
                guard.move_up(id, self.arrivals());
                guard.flush(balance);
                true
            }
            // The demotion may have been cancelled.
            Demoted::Nothing => !balance.demotion_is_due(at.0),
        }
    }
}
