//! The balance of a cache that goes by one of the duel's rules. The rules are in `duel/rules.rs`.
//! This file answers their questions, from the bytes of all sublists, and combines two kinds.
//!
//! Each kind has a rule of its own, over the capacity the kind has at the moment. The window of a
//! kind is a part of its MRU bytes; the rest is *main*. Ghosts of both kinds are
//! within twice the target. Under ARC those of a kind are within one capacity, except for ghosts
//! that a change of rule has left. A few of these go with each arrival.

use super::{Balance, Incoming, Step};
use crate::policy::duel::rules::{self, Arrival, Lists, On, Returning};
use crate::policy::duel::{Constants, Rule};
use crate::policy::state::{Kind, List};

/// The ends of lists, as the sublists have published them.
pub(crate) trait ListEnds {
    /// Whether a list of main has an entry.
    fn any(&self, kind: Kind, list: List) -> bool;
    /// Whether the window has one.
    fn any_waiting(&self, kind: Kind) -> bool;
    /// The list of main with the older tail.
    fn older(&self, kind: Kind) -> Option<List>;
    /// The list whose oldest ghost is the older.
    fn older_ghosts(&self, kind: Kind) -> Option<List>;
}

/// The lists of one kind, as the rules see them.
struct OneKind<'a, T> {
    balance: &'a Balance,
    rules: &'a Rules,
    kind: Kind,
    ends: &'a T,
}

/// Stands for the lists where a question needs sizes alone.
struct NoEnds;

impl ListEnds for NoEnds {
    fn any(&self, _: Kind, _: List) -> bool {
        false
    }

    fn any_waiting(&self, _: Kind) -> bool {
        false
    }

    fn older(&self, _: Kind) -> Option<List> {
        None
    }

    fn older_ghosts(&self, _: Kind) -> Option<List> {
        None
    }
}

impl<T: ListEnds> Lists for OneKind<'_, T> {
    fn rule(&self) -> Rule {
        self.rules.of[self.kind as usize]
    }

    fn constants(&self) -> &Constants {
        &self.rules.constants
    }

    fn capacity_bytes(&self) -> u64 {
        self.balance.capacity_bytes(self.kind) as u64
    }

    fn mru_target_bytes(&self) -> f64 {
        self.balance.mru_target_bytes(self.kind)
    }

    fn bytes(&self, on: On) -> u64 {
        let window_bytes = self.rules.window_bytes[self.kind as usize];
        match on {
            On::Window => window_bytes,
            On::Mru => self.balance.size_bytes(self.kind, List::Mru, false) - window_bytes,
            On::Mfu => self.balance.size_bytes(self.kind, List::Mfu, false),
            On::MruGhosts => self.balance.size_bytes(self.kind, List::Mru, true),
            On::MfuGhosts => self.balance.size_bytes(self.kind, List::Mfu, true),
        }
    }

    fn any(&self, on: On) -> bool {
        match on {
            On::Window => self.ends.any_waiting(self.kind),
            _ => self.ends.any(self.kind, on.list()),
        }
    }

    fn older(&self) -> Option<On> {
        self.ends.older(self.kind).map(On::main)
    }
}

/// The state that only a cache with rules has.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    of: [Rule; 2],
    /// Bytes of each kind's window; MRU's bytes include them.
    window_bytes: [u64; 2],
    /// Bytes that have left the window.
    left_bytes: [u64; 2],
    /// Something came to MFU, so the oldest of main have to go back to the window.
    demotions_due: [bool; 2],
    constants: Constants,
}

impl Balance {
    /// The same, going by rules.
    pub(crate) fn with_rules(self) -> Self {
        let rules = Rules {
            of: [Rule::FIRST; 2],
            window_bytes: [0; 2],
            left_bytes: [0; 2],
            demotions_due: [false; 2],
            constants: Constants::DEFAULT,
        };
        Self { rules: Some(rules), ..self }
    }

    /// The rule of a kind, if the cache goes by rules.
    pub(crate) fn rule(&self, kind: Kind) -> Option<Rule> {
        self.rules.as_ref().map(|rules| rules.of[kind as usize])
    }

    /// Changes the rule of a kind. ARC starts with a `p` of this share.
    pub(crate) fn set_rule(&mut self, kind: Kind, rule: Rule, mru_share: f64) {
        self.mru_target_bytes[kind as usize] =
            mru_share.clamp(0.0, 1.0) * self.capacity_bytes(kind);
        if let Some(rules) = &mut self.rules {
            rules.of[kind as usize] = rule;
        }
    }

    /// Bytes in the window of a kind. They count as MRU's, too.
    pub(crate) fn window_bytes(&self, kind: Kind) -> u64 {
        self.rules.as_ref().map_or(0, |rules| rules.window_bytes[kind as usize])
    }

    /// Bytes that have left the window of a kind so far, to become ghosts.
    pub(crate) fn left_bytes(&self, kind: Kind) -> u64 {
        self.rules.as_ref().map_or(0, |rules| rules.left_bytes[kind as usize])
    }

    /// Counts bytes of MRU into the window.
    pub(crate) fn add_waiting(&mut self, kind: Kind, bytes: u64) {
        if let Some(rules) = &mut self.rules {
            rules.window_bytes[kind as usize] += bytes;
        }
    }

    /// Counts bytes out of the window.
    pub(crate) fn sub_waiting(&mut self, kind: Kind, bytes: u64) {
        if let Some(rules) = &mut self.rules {
            rules.window_bytes[kind as usize] -= bytes;
        }
    }

    /// Bytes have been evicted from the window.
    pub(crate) fn note_left(&mut self, kind: Kind, bytes: u64) {
        if let Some(rules) = &mut self.rules {
            rules.left_bytes[kind as usize] += bytes;
        }
    }

    /// Bytes on MRU and MFU, without the window.
    pub(crate) fn main_bytes(&self, kind: Kind) -> u64 {
        self.live_bytes(kind) - self.window_bytes(kind)
    }

    /// A question about the lists of a kind, if the cache goes by rules.
    fn ask<T: ListEnds, R>(
        &self,
        kind: Kind,
        ends: &T,
        question: impl FnOnce(&OneKind<'_, T>) -> R,
    ) -> Option<R> {
        let rules = self.rules.as_ref()?;
        Some(question(&OneKind { balance: self, rules, kind, ends }))
    }

    /// Whether a newcomer waits in the window.
    pub(crate) fn waits(&self, kind: Kind, weight_bytes: u64) -> bool {
        self.ask(kind, &NoEnds, |lists| rules::waits(lists, weight_bytes)).unwrap_or(false)
    }

    /// The move of an entry that is used in the window (see [`rules::used_in_window`]).
    pub(crate) fn used_in_window(&self, kind: Kind, is_recent: bool) -> rules::Used {
        let used = self.ask(kind, &NoEnds, |lists| rules::used_in_window(lists, || is_recent));
        used.unwrap_or(rules::Used::Mfu)
    }

    /// Whether entries are left in the window although the rule has none.
    pub(crate) fn has_left_over(&self, kind: Kind) -> bool {
        self.window_bytes(kind) > 0 && self.rule(kind).is_some_and(|rule| !rule.has_window())
    }

    /// Whether a ghost that is asked for goes to MFU. `is_recent` says whether it was used since
    /// the oldest of main was. `left_at_bytes` is how many bytes had left the window when it left.
    pub(crate) fn returns_to_mfu(
        &self,
        (kind, list): (Kind, List),
        is_recent: bool,
        left_at_bytes: u64,
    ) -> bool {
        let away_bytes = self.left_bytes(kind).saturating_sub(left_at_bytes);
        let ghost = Returning { list, away_bytes };
        let answer = |lists: &OneKind<'_, _>| rules::returns_to_mfu(lists, ghost, || is_recent);
        self.ask(kind, &NoEnds, answer).unwrap_or(true)
    }

    /// Something went to MFU that was not on main: main's oldest have to make room there.
    pub(crate) fn require_demotions(&mut self, kind: Kind) {
        if let Some(rules) = &mut self.rules {
            rules.demotions_due[kind as usize] = rules.of[kind as usize].demotes();
        }
    }

    /// Nothing can be demoted, so nothing is due.
    pub(crate) fn cancel_demotions(&mut self, kind: Kind) {
        if let Some(rules) = &mut self.rules {
            rules.demotions_due[kind as usize] = false;
        }
    }

    /// Whether main's oldest has to go to the window, under LIRS.
    pub(crate) fn demotion_is_due(&self, kind: Kind) -> bool {
        self.rules.as_ref().is_some_and(|rules| rules.demotions_due[kind as usize])
            && self.ask(kind, &NoEnds, |lists| rules::demotes(lists)) == Some(true)
    }

    /// Notes where no more demotions are due.
    pub(crate) fn settle_demotions(&mut self) {
        for kind in Kind::ALL {
            if !self.demotion_is_due(kind) {
                self.cancel_demotions(kind);
            }
        }
    }

    /// Whether ghosts are beyond the bound that holds under every rule.
    pub(super) fn ghosts_are_over(&self) -> bool {
        let ghosts = self.ghost_bytes(Kind::Data) + self.ghost_bytes(Kind::Metadata);
        ghosts > self.target_bytes.saturating_mul(2)
    }

    /// As [`Balance::step`], by the rules.
    pub(crate) fn step_by_rule(&self, incoming: Option<&Incoming>, ends: &impl ListEnds) -> Step {
        for kind in Kind::ALL {
            if self.demotion_is_due(kind)
                && let Some(list) = ends.older(kind)
            {
                return Step::Demote { kind, list };
            }
        }
        if let Some(entry) = incoming
            && entry.leftovers > 0
            && let Some(on) = self.surplus_ghosts(entry)
        {
            return Step::Forget { kind: entry.kind, list: on.list() };
        }
        let weight = incoming.map_or(0, |entry| entry.weight_bytes);
        let over = self.used_bytes() + weight > self.target_bytes;
        if over && let Some(step) = self.victim_by_rule(incoming, ends) {
            return step;
        }
        if self.ghosts_are_over() {
            let kind = self.kind_with_more_ghosts();
            if let Some(list) = ends.older_ghosts(kind) {
                return Step::Forget { kind, list };
            }
        }
        if over { Step::NotEnough } else { Step::Fits }
    }

    /// ARC: the ghosts that have to go for an arrival, if there are too many of its kind.
    fn surplus_ghosts(&self, entry: &Incoming) -> Option<On> {
        let surplus = |lists: &OneKind<'_, _>| rules::surplus_ghosts(lists, entry.as_arrival());
        self.ask(entry.kind, &NoEnds, surplus).flatten()
    }

    fn victim_by_rule(&self, incoming: Option<&Incoming>, ends: &impl ListEnds) -> Option<Step> {
        let first = self.first_to_give(incoming);
        let kinds = [first, first.other()];
        kinds.into_iter().find_map(|kind| self.victim_of(kind, incoming, ends))
    }

    fn victim_of(
        &self,
        kind: Kind,
        incoming: Option<&Incoming>,
        ends: &impl ListEnds,
    ) -> Option<Step> {
        let own = incoming.filter(|entry| entry.kind == kind).map(Incoming::as_arrival);
        let was_mfu_ghost = own.is_some_and(|arrival| arrival.was_mfu_ghost);
        let victim = |lists: &OneKind<'_, _>| {
            let from = rules::victim(lists, was_mfu_ghost)?;
            Some((from, rules::leaves_a_ghost(lists, from, own)))
        };
        let (from, keep_ghost) = self.ask(kind, ends, victim)??;
        Some(match from {
            On::Window => Step::EvictWaiting { kind, keep_ghost },
            _ => Step::Evict { kind, list: from.list(), keep_ghost },
        })
    }
}

impl Incoming {
    fn as_arrival(&self) -> Arrival {
        Arrival {
            weight_bytes: self.weight_bytes,
            to_mfu: self.list == List::Mfu,
            was_mfu_ghost: self.was_mfu_ghost,
        }
    }
}
