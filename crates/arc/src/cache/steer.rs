//! What the rules of the duel do to single entries: hits that are applied late, arrivals that find
//! their place, and elders that have to go back to the window.
//!
//! All of it happens under the sublist's lock. Only what moves bytes between the window and MRU or
//! MFU by LIRS needs the ledger; a hit that has to empty its ring and does not get it leaves the
//! entry *touched*, for the eviction that meets it.

use super::claim::Ticket;
use super::core::Core;
use super::evict::Leaving;
use crate::counters::Event;
use crate::policy::balance::rules::{LEFTOVERS_PER_ARRIVAL, Lists};
use crate::policy::duel::Rule;
use crate::policy::{Balance, EMPTY, Kind, List, Step, list_index, window_index};
use crate::table::{Demoted, Note, PROMOTED, ShardGuard, TOUCHED, WAITING, WATCHED};

impl<K, V> Lists for Core<K, V> {
    fn any(&self, kind: Kind, list: List) -> bool {
        self.tails.any(list_index(kind, list, false))
    }

    fn any_waiting(&self, kind: Kind) -> bool {
        self.tails.any(window_index(kind))
    }

    fn elder(&self, kind: Kind) -> Option<List> {
        self.elder_of(kind, false)
    }

    fn elder_ghosts(&self, kind: Kind) -> Option<List> {
        self.elder_of(kind, true)
    }
}

impl<K, V> Core<K, V> {
    fn elder_of(&self, kind: Kind, ghosts: bool) -> Option<List> {
        let [mru, mfu] =
            List::ALL.map(|list| self.tails.eldest_stamp(list_index(kind, list, ghosts)));
        let elder = if mru < mfu { List::Mru } else { List::Mfu };
        (mru.min(mfu) != EMPTY).then_some(elder)
    }

    /// When the eldest of MRU and MFU was used: what was used since is in LIRS's stack.
    ///
    /// The eldest in this sublist is meant. A sublist is a sample of the keys, so it is nearly the
    /// eldest of all; and its hits have just been applied, while those of another may still lie in
    /// a ring. In a loop a ghost was used only a little before the eldest, so that matters.
    pub(super) fn horizon(&self, guard: &mut ShardGuard<'_, K, V>, kind: Kind) -> u64 {
        let own = guard.horizon(kind);
        if own != EMPTY {
            return own;
        }
        let [mru, mfu] =
            List::ALL.map(|list| self.tails.eldest_stamp(list_index(kind, list, false)));
        if mru.min(mfu) == EMPTY { 0 } else { mru.min(mfu) }
    }

    /// Applies what hits have noted in a locked sublist: in this thread, or with `all` in every
    /// one. A hit does not wait for other locks.
    pub(crate) fn drain(&self, guard: &mut ShardGuard<'_, K, V>, all: bool, may_wait: bool) {
        let shard = guard.shard;
        shard.recency.drain(all, |note| self.apply(guard, note, may_wait));
        guard.take_uses(all, self.arrivals());
    }

    fn apply(&self, guard: &mut ShardGuard<'_, K, V>, note: Note, may_wait: bool) {
        let Some(word) = guard.noted(note) else {
            return;
        };
        if word.is(WATCHED) && !self.is_watched(word.kind(), guard.entry(note.id).hash()) {
            guard.unwatch(note.id);
        }
        if guard.shard.recency.is_exact() || word.is(TOUCHED) {
            self.used(guard, note.id, note.promote, may_wait);
        }
    }

    /// Gives an entry that has been used its move.
    fn used(&self, guard: &mut ShardGuard<'_, K, V>, id: u32, by_demand: bool, may_wait: bool) {
        let word = guard.word(id);
        if !word.is(WAITING) || self.rule(word.kind()) != Rule::Lirs {
            self.used_simply(guard, id, by_demand);
            return;
        }
        let ledger = if may_wait { Some(self.ledger()) } else { self.try_ledger() };
        match ledger {
            Some(mut ledger) => self.used_beside(guard, &mut ledger.balance, id, by_demand),
            None => self.counters.count(Event::NotesLost),
        }
    }

    /// The same, by somebody who has the ledger.
    pub(super) fn used_with(
        &self,
        guard: &mut ShardGuard<'_, K, V>,
        balance: &mut Balance,
        id: u32,
    ) {
        let word = guard.word(id);
        if word.is(WAITING) && self.rule(word.kind()) == Rule::Lirs {
            self.used_beside(guard, balance, id, false);
        } else {
            self.used_simply(guard, id, false);
        }
        guard.flush(balance);
    }

    fn used_simply(&self, guard: &mut ShardGuard<'_, K, V>, id: u32, by_demand: bool) {
        let word = guard.word(id);
        if !word.is(WAITING) {
            guard.move_up(id, self.arrivals());
        } else if self.rule(word.kind()) == Rule::TwoQueues {
            // Its uses decide when it leaves the window.
            guard.count_use(id, by_demand);
        } else if by_demand {
            guard.admit(id, self.arrivals());
        } else {
            guard.move_up(id, self.arrivals());
        }
    }

    /// LIRS, an entry of the window: to MFU if it is in the stack, else to the window's head.
    fn used_beside(
        &self,
        guard: &mut ShardGuard<'_, K, V>,
        balance: &mut Balance,
        id: u32,
        by_demand: bool,
    ) {
        guard.publish();
        guard.flush(balance);
        let word = guard.word(id);
        let kind = word.kind();
        let recent = !guard.is_stale(id) && guard.entry(id).stamp() >= self.horizon(guard, kind);
        let by_demand = by_demand || word.is(PROMOTED);
        if by_demand && (recent || !balance.main_is_over(kind, 0)) {
            guard.admit(id, self.arrivals());
            guard.flush(balance);
            self.counters.count(Event::WindowAdmitted);
            balance.owe_demotions(kind);
            self.demote_elders(guard, balance, kind);
        } else {
            guard.entry(id).meta.lower(PROMOTED);
            guard.move_up(id, self.arrivals());
        }
    }

    /// LIRS: what main has too much of goes back to the window, the eldest first; as far as
    /// that takes no waiting. The rest is for the next arrival.
    pub(super) fn demote_elders(
        &self,
        guard: &mut ShardGuard<'_, K, V>,
        balance: &mut Balance,
        kind: Kind,
    ) {
        while balance.owes_demotion(kind) {
            guard.publish();
            let Some(list) = self.elder(kind) else {
                break;
            };
            let step = Step::Demote { kind, list };
            if !self.take_here_or_there(guard, balance, step, &mut Leaving::default()) {
                return;
            }
        }
        balance.settle_demotions();
    }

    /// Moves the eldest of a list in this sublist to the window. Returns whether anything changed.
    pub(super) fn demote_one(
        &self,
        guard: &mut ShardGuard<'_, K, V>,
        balance: &mut Balance,
        at: (Kind, List),
    ) -> bool {
        match guard.demote_eldest(at, balance, self.arrivals()) {
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
            // Everything may have been forgiven.
            Demoted::Nothing => !balance.owes_demotion(at.0),
        }
    }

    /// Finds the place of an arrival: MFU for a ghost that comes back in time, else MRU or the
    /// window. Takes a few of the entries away that a change of rule has left in the window.
    pub(super) fn place(
        &self,
        guard: &mut ShardGuard<'_, K, V>,
        balance: &mut Balance,
        ticket: &mut Ticket,
        weight_bytes: u64,
    ) {
        if let Some(ghost) = ticket.ghost {
            let (kind, bytes) = (ghost.kind, ghost.weight_bytes);
            let recent = !ghost.stale && ghost.mark.stamp >= self.horizon(guard, kind);
            if ticket.arrival.list == List::Mfu
                && !balance.comes_back((kind, ghost.list), recent, ghost.mark.left_bytes)
            {
                ticket.arrival.list = List::Mru;
                self.counters.count(Event::GhostsTooLate);
            }
            // It counts as long as it moves `p` and the metadata fraction.
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
}
