//! A cache directory under one of the four rules, which can be changed at any time.
//!
//! The lists mean the same under every rule. So a change of rule moves nothing; it only changes
//! which tail leaves next. *Main* is MRU and MFU together, merged by the stamps of last use.
//!
//! LIRS's stack needs no list of its own. An entry or a ghost is in the stack if its last use is
//! not before that of the oldest of main. An entry that was the oldest of main and went to the
//! window is *stale*: out of the stack until it is used again. So every list is in the order of its
//! stamps.
//!
//! Invariant: live bytes are within the capacity, or held. Ghosts are within twice the capacity.
//! Under ARC they are within one capacity, as printed. A change of rule may leave more; a few of
//! these go with each arrival.

use super::directory::Directory;
use super::rules::{
    self, Arrival, Constants, LEFTOVERS_PER_ARRIVAL, Lists, On, Returning, Rule, Used,
};
use crate::policy::{List, Outcome};

/// Keys and ghosts within a capacity, under a rule.
#[derive(Debug)]
pub(super) struct RuledCache<K> {
    pub(super) directory: Directory<K>,
    constants: Constants,
    rule: Rule,
    capacity_bytes: u64,
    /// ARC's `p`.
    mru_target_bytes: f64,
    clock: u64,
    /// Bytes that have left the window.
    left_bytes: u64,
    evictions: u64,
}

impl<K: Eq> Lists for RuledCache<K> {
    fn rule(&self) -> Rule {
        self.rule
    }

    fn constants(&self) -> &Constants {
        &self.constants
    }

    fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    fn mru_target_bytes(&self) -> f64 {
        self.mru_target_bytes
    }

    fn bytes(&self, on: On) -> u64 {
        self.directory.bytes(on)
    }

    fn any(&self, on: On) -> bool {
        self.directory.len(on) > 0
    }

    fn older(&self) -> Option<On> {
        self.directory.older(On::Mru, On::Mfu)
    }
}

impl<K: Eq> RuledCache<K> {
    pub(super) fn new(capacity_bytes: u64, rule: Rule, constants: Constants) -> Self {
        Self {
            directory: Directory::new(),
            constants,
            rule,
            capacity_bytes,
            mru_target_bytes: 0.0,
            clock: 0,
            left_bytes: 0,
            evictions: 0,
        }
    }

    pub(super) const fn rule(&self) -> Rule {
        self.rule
    }

    pub(super) const fn evictions(&self) -> u64 {
        self.evictions
    }

    /// ARC's `p` as a share of the capacity.
    pub(super) fn mru_share(&self) -> f64 {
        self.mru_target_bytes / self.capacity_bytes.max(1) as f64
    }

    /// Changes the rule. ARC starts from the `p` it would have had.
    pub(super) fn set_rule(&mut self, rule: Rule, mru_share: f64) {
        self.rule = rule;
        self.mru_target_bytes = mru_share.clamp(0.0, 1.0) * self.capacity_bytes as f64;
    }

    pub(super) fn set_capacity(&mut self, capacity_bytes: u64) {
        let share = self.mru_share();
        self.capacity_bytes = capacity_bytes;
        self.mru_target_bytes = share * capacity_bytes as f64;
        self.make_room(None);
        let nothing = Arrival { weight_bytes: 0, to_mfu: true, was_mfu_ghost: false };
        while rules::surplus_ghosts(self, nothing).is_some_and(|on| self.forget_oldest(on)) {}
        self.bound_ghosts();
    }

    const fn main_bytes(&self) -> u64 {
        self.directory.bytes(On::Mru) + self.directory.bytes(On::Mfu)
    }

    pub(super) const fn live_bytes(&self) -> u64 {
        self.directory.bytes(On::Window) + self.main_bytes()
    }

    pub(super) const fn ghost_bytes(&self) -> u64 {
        self.directory.bytes(On::MruGhosts) + self.directory.bytes(On::MfuGhosts)
    }

    /// Entries on lists.
    pub(super) const fn resident(&self) -> usize {
        self.directory.len(On::Window) + self.directory.len(On::Mru) + self.directory.len(On::Mfu)
    }

    /// When the oldest of main was used last: what was used since is in LIRS's stack.
    fn horizon(&self) -> u64 {
        let older = self.older().and_then(|on| self.directory.tail(on));
        older.map_or(0, |id| self.directory.node(id).stamp)
    }

    /// Whether a key is in LIRS's stack.
    fn is_recent(&self, id: u32) -> bool {
        let node = self.directory.node(id);
        !node.stale && node.stamp >= self.horizon()
    }

    /// Moves a node to the head of a list, as if it had just come.
    fn put_first(&mut self, id: u32, on: On, stale: bool) {
        self.clock += 1;
        let clock = self.clock;
        let node = self.directory.node_mut(id);
        (node.stamp, node.stale) = (clock, stale);
        self.directory.move_to(id, on);
    }

    /// An access. `key` is used if it has to be added.
    pub(super) fn access(&mut self, hash: u64, key: K, weight_bytes: u64) -> Outcome {
        let found = self.directory.find(hash, &key);
        match found.map(|id| (id, self.directory.node(id).on)) {
            Some((id, on)) if !on.is_ghost() => {
                self.touch(id);
                Outcome::Hit(if on == On::Mfu { List::Mfu } else { List::Mru })
            }
            Some((id, on)) => {
                self.arrive((hash, key), weight_bytes, Some(id));
                Outcome::GhostHit(if on == On::MfuGhosts { List::Mfu } else { List::Mru })
            }
            None => {
                self.arrive((hash, key), weight_bytes, None);
                Outcome::Miss
            }
        }
    }

    /// A hit on a live entry, now or delivered later.
    pub(super) fn touch(&mut self, id: u32) {
        self.clock += 1;
        let clock = self.clock;
        let (on, held) = {
            let node = self.directory.node_mut(id);
            node.uses = rules::one_use_more(node.uses);
            (node.on, node.holds > 0)
        };
        let to = match on {
            On::Window => match rules::used_in_window(self, || self.is_recent(id)) {
                Used::Stays => return,
                Used::Window => On::Window,
                Used::Mfu => On::Mfu,
            },
            _ => On::Mfu,
        };
        let node = self.directory.node_mut(id);
        (node.stamp, node.stale) = (clock, false);
        if held {
            self.directory.assign(id, to);
        } else {
            self.directory.move_to(id, to);
        }
        if on == On::Window && to == On::Mfu {
            self.demote_oldest();
        }
    }

    /// LIRS: moves the oldest of main to the window while main has too much.
    fn demote_oldest(&mut self) {
        while rules::demotes(self)
            && let Some(on) = self.older()
            && let Some(id) = self.directory.tail(on)
            && self.main_bytes() > self.directory.node(id).weight_bytes
        {
            self.put_first(id, On::Window, true);
        }
    }

    fn arrive(&mut self, (hash, key): (u64, K), weight_bytes: u64, ghost: Option<u32>) {
        self.clock += 1;
        let (mut to, mut was_mfu_ghost) = (None, false);
        if let Some(id) = ghost {
            was_mfu_ghost = self.directory.node(id).on == On::MfuGhosts;
            to = self.returns_to_mfu(id).then_some(On::Mfu);
            self.directory.unlink(id);
            self.directory.drop_key(id);
        }
        if weight_bytes > self.capacity_bytes {
            return;
        }
        let to = to
            .unwrap_or_else(|| if rules::waits(self, weight_bytes) { On::Window } else { On::Mru });
        let arrival = Arrival { weight_bytes, to_mfu: to == On::Mfu, was_mfu_ghost };
        self.clear_leftovers(arrival);
        self.make_room(Some(arrival));
        self.bound_ghosts();
        let id = self.directory.add(hash, key, weight_bytes, to);
        self.clock += 1;
        self.directory.node_mut(id).stamp = self.clock;
        self.directory.link(id);
        if to == On::Mfu {
            self.demote_oldest();
        }
    }

    /// Whether a ghost that is asked for goes to MFU. ARC's `p` moves.
    fn returns_to_mfu(&mut self, id: u32) -> bool {
        let node = self.directory.node(id);
        let (list, weight_bytes) = (node.on.list(), node.weight_bytes);
        let ghost = Returning { list, away_bytes: self.left_bytes - node.left_at_bytes };
        let returns_to_mfu = rules::returns_to_mfu(self, ghost, || self.is_recent(id));
        if let Some(target) = rules::adapted_target(self, (list, weight_bytes)) {
            self.mru_target_bytes = target;
        }
        returns_to_mfu
    }

    /// Takes a few of the ghosts and of the window's entries that a change of rule has left.
    fn clear_leftovers(&mut self, arrival: Arrival) {
        if !self.rule.has_window() {
            for _ in 0..LEFTOVERS_PER_ARRIVAL {
                let Some(id) = self.directory.tail(On::Window) else { break };
                self.put_first(id, On::Mru, false);
            }
        }
        for _ in 0..LEFTOVERS_PER_ARRIVAL {
            let Some(on) = rules::surplus_ghosts(self, arrival) else { break };
            self.forget_oldest(on);
        }
    }

    /// The bound under every rule, however many entries one arrival or a smaller capacity evicts.
    fn bound_ghosts(&mut self) {
        while self.ghost_bytes() > self.capacity_bytes.saturating_mul(2)
            && let Some(on) = self.directory.older(On::MruGhosts, On::MfuGhosts)
        {
            self.forget_oldest(on);
        }
    }

    fn forget_oldest(&mut self, on: On) -> bool {
        let Some(id) = self.directory.tail(on) else { return false };
        self.directory.unlink(id);
        self.directory.drop_key(id);
        true
    }

    /// Evicts until an arrival fits, or everything is held.
    fn make_room(&mut self, arrival: Option<Arrival>) {
        let weight_bytes = arrival.map_or(0, |arrival| arrival.weight_bytes);
        let was_mfu_ghost = arrival.is_some_and(|arrival| arrival.was_mfu_ghost);
        while self.live_bytes() + weight_bytes > self.capacity_bytes {
            let Some(from) = rules::victim(self, was_mfu_ghost) else { return };
            let Some(id) = self.directory.tail(from) else { return };
            let uses = self.directory.node(id).uses;
            if let Some(left) = rules::second_chance(self.rule, from, uses) {
                self.directory.node_mut(id).uses = left;
                self.put_first(id, On::Mfu, false);
                continue;
            }
            let keeps_ghost = rules::leaves_a_ghost(self, from, arrival);
            self.directory.unlink(id);
            self.evict(id, keeps_ghost);
        }
    }

    /// Makes an entry that is on no list a ghost, or nothing.
    fn evict(&mut self, id: u32, keeps_ghost: bool) {
        self.evictions += 1;
        let from = self.directory.node(id).on;
        if from == On::Window {
            self.left_bytes += self.directory.node(id).weight_bytes;
        }
        if keeps_ghost {
            let left = self.left_bytes;
            let node = self.directory.node_mut(id);
            (node.left_at_bytes, node.uses) = (left, 0);
            self.directory.assign(id, from.ghosts());
            self.directory.link(id);
        } else {
            self.directory.drop_key(id);
        }
    }

    /// Forgets a key, entry or ghost.
    pub(super) fn remove(&mut self, id: u32) {
        if self.directory.node(id).holds == 0 {
            self.directory.unlink(id);
        }
        self.directory.drop_key(id);
    }

    /// Evicts an entry at its owner's wish; not while it is held.
    pub(super) fn demote(&mut self, id: u32) -> bool {
        let node = self.directory.node(id);
        if node.holds > 0 || node.on.is_ghost() {
            return false;
        }
        self.directory.unlink(id);
        self.evict(id, true);
        self.bound_ghosts();
        true
    }

    /// Takes an entry off its list until it is released.
    pub(super) fn hold(&mut self, id: u32) {
        if self.directory.node(id).holds == 0 {
            self.directory.unlink(id);
        }
        self.directory.node_mut(id).holds += 1;
    }

    /// Puts an entry back at the head of its list with the last release.
    pub(super) fn release(&mut self, id: u32) {
        let node = self.directory.node_mut(id);
        node.holds -= 1;
        if node.holds == 0 {
            self.directory.link(id);
            self.make_room(None);
            self.bound_ghosts();
        }
    }

    pub(super) fn validate(&self) -> Result<(), String> {
        self.directory.validate()?;
        let (live, ghosts) = (self.live_bytes(), self.ghost_bytes());
        let held = self.directory.held_bytes();
        if live > self.capacity_bytes + held {
            return Err(format!("{live} bytes, {held} held, in {} bytes", self.capacity_bytes));
        }
        if !(0.0..=self.capacity_bytes as f64).contains(&self.mru_target_bytes) {
            return Err(format!("p is {} in {}", self.mru_target_bytes, self.capacity_bytes));
        }
        if ghosts > self.capacity_bytes.saturating_mul(2) {
            return Err(format!("{ghosts} bytes of ghosts for {} bytes", self.capacity_bytes));
        }
        Ok(())
    }
}
