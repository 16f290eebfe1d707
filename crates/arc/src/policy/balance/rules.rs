//! The balance of a cache that goes by one of the duel's rules: the same as
//! [`Ruled`](crate::policy::duel), on bytes of all sublists and with two kinds.
//!
//! Each kind has a rule of its own, over the capacity the kind has at the moment. The window of a
//! kind is a part of its MRU bytes, so ARC's arithmetic need not know of it; what is not in the
//! window is *main*. Ghosts of both kinds are within twice the target; under ARC those of the kind
//! within one capacity, but for those a change of rule left, which go a few with each arrival.

use super::{Balance, Incoming, Step};
use crate::policy::duel::{Constants, Rule};
use crate::policy::state::{Kind, List};

/// Ghosts, and entries of the window, left by a change of rule, that one arrival takes away.
pub(crate) const LEFTOVERS_PER_ARRIVAL: u8 = 4;

/// What the balance has to be told of the lists.
pub(crate) trait Lists {
    /// Whether a list of main has an entry.
    fn any(&self, kind: Kind, list: List) -> bool;
    /// Whether the window has one.
    fn any_waiting(&self, kind: Kind) -> bool;
    /// The list of main whose eldest entry is the elder.
    fn elder(&self, kind: Kind) -> Option<List>;
    /// The list whose eldest ghost is the elder.
    fn elder_ghosts(&self, kind: Kind) -> Option<List>;
}

/// What only a cache with rules has.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    of: [Rule; 2],
    /// The part of each kind's MRU bytes that waits.
    window_bytes: [u64; 2],
    /// Bytes that have left the window.
    left_bytes: [u64; 2],
    /// Something came to MFU, so main's eldest have to go back to the window.
    owes: [bool; 2],
    constants: Constants,
}

impl Balance {
    /// The same, going by rules.
    pub(crate) fn with_rules(self) -> Self {
        let rules = Rules {
            of: [Rule::FIRST; 2],
            window_bytes: [0; 2],
            left_bytes: [0; 2],
            owes: [false; 2],
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

    /// Bytes of MRU wait from now on.
    pub(crate) fn add_waiting(&mut self, kind: Kind, bytes: u64) {
        if let Some(rules) = &mut self.rules {
            rules.window_bytes[kind as usize] += bytes;
        }
    }

    /// Bytes do not wait any more.
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

    /// Whether main has bytes that the rule wants for the window.
    pub(crate) fn main_is_over(&self, kind: Kind, more_bytes: u64) -> bool {
        let Some(rules) = &self.rules else {
            return false;
        };
        rules.constants.window_divisor(rules.of[kind as usize]).is_some_and(|divisor| {
            let bytes = u128::from(self.main_bytes(kind).saturating_add(more_bytes));
            let capacity = self.capacity_bytes(kind) as u64;
            bytes * u128::from(divisor) > u128::from(capacity) * u128::from(divisor - 1)
        })
    }

    /// Whether a newcomer waits in the window.
    pub(crate) fn waits(&self, kind: Kind, weight_bytes: u64) -> bool {
        self.main_is_over(kind, weight_bytes)
    }

    /// Whether entries are left in the window although the rule has none.
    pub(crate) fn has_left_over(&self, kind: Kind) -> bool {
        self.window_bytes(kind) > 0 && self.rule(kind).is_some_and(|rule| !rule.has_window())
    }

    /// Whether a ghost of a list that is asked for goes to MFU: `is_recent` says whether it was used
    /// since the eldest of main was, `left_at_bytes` what had left the window when it left.
    pub(crate) fn comes_back(
        &self,
        (kind, list): (Kind, List),
        is_recent: bool,
        left_at_bytes: u64,
    ) -> bool {
        match self.rule(kind) {
            None | Some(Rule::Lru | Rule::Arc) => true,
            Some(Rule::Lirs) => is_recent,
            // S3-FIFO: ghosts of the window alone, as many as main has entries.
            Some(Rule::TwoQueues) => {
                let away_bytes = self.left_bytes(kind).saturating_sub(left_at_bytes);
                list == List::Mru && away_bytes <= self.capacity_bytes(kind) as u64 / 10 * 9
            }
        }
    }

    /// Something went to MFU that was not on main: main's eldest have to make room there.
    pub(crate) fn owe_demotions(&mut self, kind: Kind) {
        if let Some(rules) = &mut self.rules {
            rules.owes[kind as usize] = rules.of[kind as usize] == Rule::Lirs;
        }
    }

    /// Nothing can be demoted.
    pub(crate) fn forgive_demotions(&mut self, kind: Kind) {
        if let Some(rules) = &mut self.rules {
            rules.owes[kind as usize] = false;
        }
    }

    /// Whether main's eldest is to go to the window, under LIRS. Forgets what is paid.
    pub(crate) fn owes_demotion(&self, kind: Kind) -> bool {
        self.rules.as_ref().is_some_and(|rules| {
            rules.owes[kind as usize]
                && rules.of[kind as usize] == Rule::Lirs
                && self.main_is_over(kind, 0)
        })
    }

    /// Demotions that were owed and are made.
    pub(crate) fn settle_demotions(&mut self) {
        for kind in Kind::ALL {
            if !self.owes_demotion(kind) {
                self.forgive_demotions(kind);
            }
        }
    }

    /// Whether ghosts are beyond the bound that holds under every rule.
    pub(super) fn ghosts_are_over(&self) -> bool {
        let ghosts = self.ghost_bytes(Kind::Data) + self.ghost_bytes(Kind::Metadata);
        ghosts > self.target_bytes.saturating_mul(2)
    }

    /// As [`Balance::step`], by the rules.
    pub(crate) fn step_by_rule(&self, incoming: Option<&Incoming>, lists: &impl Lists) -> Step {
        for kind in Kind::ALL {
            if self.owes_demotion(kind)
                && let Some(list) = lists.elder(kind)
            {
                return Step::Demote { kind, list };
            }
        }
        if let Some(entry) = incoming
            && entry.leftovers > 0
            && let Some(list) = self.surplus_ghosts(entry)
        {
            return Step::Forget { kind: entry.kind, list };
        }
        let weight = incoming.map_or(0, |entry| entry.weight_bytes);
        let over = self.used_bytes() + weight > self.target_bytes;
        if over && let Some(step) = self.victim_by_rule(incoming, lists) {
            return step;
        }
        if self.ghosts_are_over() {
            let more_data = self.ghost_bytes(Kind::Data) >= self.ghost_bytes(Kind::Metadata);
            let kind = if more_data { Kind::Data } else { Kind::Metadata };
            if let Some(list) = lists.elder_ghosts(kind) {
                return Step::Forget { kind, list };
            }
        }
        if over { Step::NotEnough } else { Step::Fits }
    }

    /// ARC: the ghosts that have to give for an arrival, if there are too many of its kind.
    fn surplus_ghosts(&self, entry: &Incoming) -> Option<List> {
        let kind = entry.kind;
        if self.rule(kind) != Some(Rule::Arc) {
            return None;
        }
        let capacity = self.capacity_bytes(kind) as u64;
        let ghosts = |list| self.size_bytes(kind, list, true);
        let (mru, mfu) = (ghosts(List::Mru), ghosts(List::Mfu));
        let joins = if entry.list == List::Mfu { 0 } else { entry.weight_bytes };
        let once = self.size_bytes(kind, List::Mru, false) + mru;
        if mru > 0 && once + joins > capacity {
            return Some(List::Mru);
        }
        let often = self.size_bytes(kind, List::Mfu, false) + mfu;
        // These bytes will leave without a ghost.
        let spared = (once + joins).saturating_sub(capacity);
        let all = once + often + entry.weight_bytes;
        if all.saturating_sub(spared) <= capacity.saturating_mul(2) || mru + mfu == 0 {
            return None;
        }
        let take_mru = mfu == 0 || (once > often && mru > 0);
        Some(if take_mru { List::Mru } else { List::Mfu })
    }

    fn victim_by_rule(&self, incoming: Option<&Incoming>, lists: &impl Lists) -> Option<Step> {
        let first = self.first_to_give(incoming);
        let kinds = [first, first.other()];
        kinds.into_iter().find_map(|kind| self.victim_of(kind, incoming, lists))
    }

    fn victim_of(
        &self,
        kind: Kind,
        incoming: Option<&Incoming>,
        lists: &impl Lists,
    ) -> Option<Step> {
        let from = match self.rule(kind)? {
            Rule::Lirs | Rule::TwoQueues => {
                if lists.any_waiting(kind) && !self.main_is_over(kind, 0) {
                    None
                } else {
                    lists.elder(kind)
                }
            }
            Rule::Lru => lists.elder(kind),
            Rule::Arc => {
                let preferred = self.preferred(kind, incoming);
                let waiting = lists.any_waiting(kind);
                let order = [preferred, preferred.other()].into_iter();
                let mut order = order.filter(|&list| lists.any(kind, list));
                match order.next() {
                    // The window counts as MRU's young end.
                    Some(List::Mfu) if preferred == List::Mru && waiting => None,
                    from => from,
                }
            }
        };
        let keep_ghost = self.leaves_a_ghost(kind, from, incoming);
        match from {
            Some(list) => Some(Step::Evict { kind, list, keep_ghost }),
            None if lists.any_waiting(kind) => Some(Step::EvictWaiting { kind, keep_ghost }),
            None => None,
        }
    }

    /// ARC: when MRU alone fills the cache, its eldest leaves without a ghost.
    fn leaves_a_ghost(&self, kind: Kind, from: Option<List>, incoming: Option<&Incoming>) -> bool {
        let Some(entry) = incoming.filter(|entry| entry.kind == kind) else {
            return true;
        };
        let once = self.size_bytes(kind, List::Mru, false) + self.size_bytes(kind, List::Mru, true);
        self.rule(kind) != Some(Rule::Arc)
            || entry.list == List::Mfu
            || from == Some(List::Mfu)
            || once + entry.weight_bytes <= self.capacity_bytes(kind) as u64
    }
}
