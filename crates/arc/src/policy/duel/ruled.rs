//! A cache directory under one of the four rules, which can be changed at any time.
//!
//! The lists mean the same under every rule, so a change of rule moves nothing: it only changes
//! which tail leaves next. *Main* is MRU and MFU together, merged by the stamps of last use;
//! LIRS's stack needs no list of its own: an entry or a ghost is in the stack if its last use is
//! not before that of the eldest of main. What was main's eldest and went to the window is *stale*:
//! out of the stack until it is used again. So every list is in the order of its stamps.
//!
//! Invariant: live bytes are within the capacity and what is held; ghosts are within twice
//! the capacity. Under ARC they are within one capacity, as printed, but for those a change of
//! rule left, which go a few with each arrival.

use super::directory::{Directory, On};
use super::rule::{Constants, Rule, USES_MAX, USES_TO_ADMIT};
use crate::policy::{List, Outcome};

/// Ghosts and window entries a change of rule left over that one arrival takes away.
const LEFTOVERS_PER_ARRIVAL: usize = 4;

/// Keys and ghosts within a capacity, under a rule.
#[derive(Debug)]
pub(super) struct Ruled<K> {
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

impl<K: Eq> Ruled<K> {
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

    pub(super) const fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
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
        self.make_room(0, On::Mfu, false);
        while self.ghosts_over(0, On::Mfu).is_some_and(|on| self.forget_eldest(on)) {}
        self.bound_ghosts();
    }

    const fn bytes(&self, on: On) -> u64 {
        self.directory.bytes(on)
    }

    const fn main_bytes(&self) -> u64 {
        self.bytes(On::Mru) + self.bytes(On::Mfu)
    }

    pub(super) const fn live_bytes(&self) -> u64 {
        self.bytes(On::Window) + self.main_bytes()
    }

    pub(super) const fn ghost_bytes(&self) -> u64 {
        self.bytes(On::MruGhosts) + self.bytes(On::MfuGhosts)
    }

    /// Entries on lists.
    pub(super) const fn resident(&self) -> usize {
        self.directory.len(On::Window) + self.directory.len(On::Mru) + self.directory.len(On::Mfu)
    }

    /// Whether main has bytes that the rule wants for the window.
    fn main_is_over(&self, more_bytes: u64) -> bool {
        self.constants.window_divisor(self.rule).is_some_and(|divisor| {
            let bytes = self.main_bytes() + more_bytes;
            bytes * divisor > self.capacity_bytes * (divisor - 1)
        })
    }

    /// When the eldest of main was used last: what was used since is in LIRS's stack.
    fn horizon(&self) -> u64 {
        let elder = self.directory.elder(On::Mru, On::Mfu).and_then(|on| self.directory.tail(on));
        elder.map_or(0, |id| self.directory.node(id).stamp)
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

    /// A hit on a live entry, at once or delivered later.
    pub(super) fn touch(&mut self, id: u32) {
        self.clock += 1;
        let clock = self.clock;
        let (on, held) = {
            let node = self.directory.node_mut(id);
            node.uses = (node.uses + 1).min(USES_MAX);
            (node.on, node.holds > 0)
        };
        let to = match (on, self.rule) {
            // Its uses decide when it leaves the window.
            (On::Window, Rule::TwoQueues) => return,
            (On::Window, Rule::Lirs) if !self.is_recent(id) && self.main_is_over(0) => On::Window,
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
            self.demote_elders();
        }
    }

    /// LIRS: what main has too much of goes back to the window, the eldest first.
    fn demote_elders(&mut self) {
        while self.rule == Rule::Lirs
            && self.main_is_over(0)
            && let Some(on) = self.directory.elder(On::Mru, On::Mfu)
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
            to = self.comes_back(id).then_some(On::Mfu);
            self.directory.unlink(id);
            self.directory.drop_key(id);
        }
        if weight_bytes > self.capacity_bytes {
            return;
        }
        let to = to.unwrap_or_else(|| {
            let waits = self.rule.has_window() && self.main_is_over(weight_bytes);
            if waits { On::Window } else { On::Mru }
        });
        self.clear_leftovers(weight_bytes, to);
        self.make_room(weight_bytes, to, was_mfu_ghost);
        self.bound_ghosts();
        let id = self.directory.add(hash, key, weight_bytes, to);
        self.clock += 1;
        self.directory.node_mut(id).stamp = self.clock;
        self.directory.link(id);
        if to == On::Mfu {
            self.demote_elders();
        }
    }

    /// Whether a ghost that is asked for goes to MFU. ARC's `p` moves.
    fn comes_back(&mut self, id: u32) -> bool {
        let node = self.directory.node(id);
        match self.rule {
            Rule::Lru => true,
            Rule::Lirs => self.is_recent(id),
            Rule::TwoQueues => {
                // S3-FIFO: ghosts of the window alone, as many as main has entries.
                let away_bytes = self.left_bytes - node.left_at_bytes;
                node.on == On::MruGhosts && away_bytes <= self.capacity_bytes / 10 * 9
            }
            Rule::Arc => {
                let (on, weight) = (node.on, node.weight_bytes as f64);
                let mru = self.bytes(On::MruGhosts) as f64;
                let mfu = self.bytes(On::MfuGhosts) as f64;
                let p = self.mru_target_bytes;
                self.mru_target_bytes = if on == On::MruGhosts {
                    (p + weight * (mfu / mru).max(1.0)).min(self.capacity_bytes as f64)
                } else {
                    (p - weight * (mru / mfu).max(1.0)).max(0.0)
                };
                true
            }
        }
    }

    /// Takes a few of the ghosts and of the window's entries that a change of rule has left.
    fn clear_leftovers(&mut self, weight_bytes: u64, to: On) {
        if !self.rule.has_window() {
            for _ in 0..LEFTOVERS_PER_ARRIVAL {
                let Some(id) = self.directory.tail(On::Window) else { break };
                self.put_first(id, On::Mru, false);
            }
        }
        for _ in 0..LEFTOVERS_PER_ARRIVAL {
            let Some(on) = self.ghosts_over(weight_bytes, to) else { break };
            self.forget_eldest(on);
        }
    }

    /// The list of ghosts that has to give, if there are too many.
    fn ghosts_over(&self, weight_bytes: u64, to: On) -> Option<On> {
        let (mru, mfu) = (self.bytes(On::MruGhosts), self.bytes(On::MfuGhosts));
        let capacity = self.capacity_bytes;
        if self.rule != Rule::Arc {
            let over = mru + mfu > capacity.saturating_mul(2);
            return over.then(|| self.directory.elder(On::MruGhosts, On::MfuGhosts)).flatten();
        }
        let joins = if to == On::Mfu { 0 } else { weight_bytes };
        let once = self.bytes(On::Window) + self.bytes(On::Mru) + mru;
        if mru > 0 && once + joins > capacity {
            return Some(On::MruGhosts);
        }
        let often = self.bytes(On::Mfu) + mfu;
        // These bytes will leave without a ghost.
        let spared = (once + joins).saturating_sub(capacity);
        if once + often + weight_bytes - spared <= capacity.saturating_mul(2) || mru + mfu == 0 {
            return None;
        }
        let take_mru = mfu == 0 || (once > often && mru > 0);
        Some(if take_mru { On::MruGhosts } else { On::MfuGhosts })
    }

    /// The bound under every rule, however many entries one arrival or a smaller capacity evicts.
    fn bound_ghosts(&mut self) {
        while self.ghost_bytes() > self.capacity_bytes.saturating_mul(2)
            && let Some(on) = self.directory.elder(On::MruGhosts, On::MfuGhosts)
        {
            self.forget_eldest(on);
        }
    }

    fn forget_eldest(&mut self, on: On) -> bool {
        let Some(id) = self.directory.tail(on) else { return false };
        self.directory.unlink(id);
        self.directory.drop_key(id);
        true
    }

    /// Evicts until `weight_bytes` fit, or everything is held.
    fn make_room(&mut self, weight_bytes: u64, to: On, was_mfu_ghost: bool) {
        while self.live_bytes() + weight_bytes > self.capacity_bytes {
            let from = match self.rule {
                Rule::Lirs | Rule::TwoQueues => self.victim_beside_window(),
                Rule::Lru => self.directory.elder(On::Mru, On::Mfu),
                Rule::Arc => self.victim_by_target(was_mfu_ghost),
            };
            let any = [On::Window, On::Mru, On::Mfu].into_iter();
            let from = from.or_else(|| any.into_iter().find(|&on| self.directory.len(on) > 0));
            let Some(from) = from else { return };
            // ARC: when MRU alone fills the cache, its eldest leaves without a ghost.
            let once = self.bytes(On::Window) + self.bytes(On::Mru) + self.bytes(On::MruGhosts);
            let keeps_ghost = self.rule != Rule::Arc
                || to == On::Mfu
                || from == On::Mfu
                || once + weight_bytes <= self.capacity_bytes;
            self.evict_eldest(from, keeps_ghost);
        }
    }

    /// LIRS and 2Q: main if it has too much, else the window. 2Q lets what was used twice into
    /// main, and gives what was used in MFU another round.
    fn victim_beside_window(&mut self) -> Option<On> {
        loop {
            let on = if self.main_is_over(0) || self.directory.len(On::Window) == 0 {
                self.directory.elder(On::Mru, On::Mfu)?
            } else {
                On::Window
            };
            let id = self.directory.tail(on)?;
            let uses = self.directory.node(id).uses;
            let left = match on {
                _ if self.rule != Rule::TwoQueues => return Some(on),
                On::Window if uses >= USES_TO_ADMIT => 0,
                On::Mfu if uses > 0 => uses - 1,
                _ => return Some(on),
            };
            self.directory.node_mut(id).uses = left;
            self.put_first(id, On::Mfu, false);
        }
    }

    /// REPLACE of ARC.
    fn victim_by_target(&self, was_mfu_ghost: bool) -> Option<On> {
        let mru = (self.bytes(On::Mru) + self.bytes(On::Window)) as f64;
        let p = self.mru_target_bytes;
        let takes_mru = mru > 0.0 && (mru > p || (was_mfu_ghost && mru >= p));
        let order =
            if takes_mru { [On::Mru, On::Window, On::Mfu] } else { [On::Mfu, On::Mru, On::Window] };
        order.into_iter().find(|&on| self.directory.len(on) > 0)
    }

    fn evict_eldest(&mut self, from: On, keeps_ghost: bool) {
        if let Some(id) = self.directory.tail(from) {
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
            self.make_room(0, On::Mfu, false);
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
