//! The policies by name: those of `ogive sim`, and parts of `ogive-arc` with constants to vary.

use ogive_arc::policy::duel::{Alone, Constants, Duel, Rule};
use ogive_arc::{Access, Cache, Kind, Source};
use ogive_sim::{PolicyName, Request, Simulation};
use std::convert::Infallible;

/// A replacement policy over dense numbers, entries of one size.
pub trait Replacement {
    /// A request: whether it was a hit.
    fn access(&mut self, number: u32) -> bool;

    /// A policy's figures about itself at the end of a replay.
    fn tell(&self) -> String {
        String::new()
    }
}

impl Replacement for Simulation {
    fn access(&mut self, number: u32) -> bool {
        self.access(&Request::new(u64::from(number), 1))
    }
}

/// The duel.
pub struct Ours(Duel<u32>);

/// One of its rules, alone.
pub struct OneRule(Alone<u32>);

/// The engine that ships.
pub struct Engine(Cache<u32, ()>);

impl Replacement for Ours {
    fn access(&mut self, number: u32) -> bool {
        self.0.access(number, 1).is_hit()
    }

    fn tell(&self) -> String {
        let referee = self.0.referee();
        format!(
            "{} now, {} changes, one key in {} sampled, {} KiB of shadows",
            referee.rule().name(),
            referee.changes(),
            referee.sampled_one_in(),
            referee.heap_bytes() >> 10
        )
    }
}

impl Replacement for OneRule {
    fn access(&mut self, number: u32) -> bool {
        self.0.access(number, 1).is_hit()
    }
}

impl Replacement for Engine {
    fn access(&mut self, number: u32) -> bool {
        let load = || Ok::<_, Infallible>(((), 1));
        let loaded = self.0.get_or_load(&number, Kind::Data, Access::Demand, load);
        loaded.is_ok_and(|(_, source)| source == Source::Hit)
    }

    fn tell(&self) -> String {
        let stats = self.0.stats();
        format!(
            "{} changes of rule, {} shown, {} ghosts too late, {} admitted, {} demoted",
            stats.rule_changes,
            stats.referee_requests,
            stats.ghosts_too_late,
            stats.window_admitted,
            stats.window_demoted
        )
    }
}

fn engine(entries: u64, policy: ogive_arc::Policy, sublists: &str) -> Box<dyn Replacement> {
    let sublists = sublists.parse().expect("a number of sublists");
    Box::new(Engine(Cache::builder(entries).policy(policy).sublists(sublists).build()))
}

/// A policy by its name, as `ogive sim` has it. `engine/8` is the engine with 8 sublists,
/// `engine-arc/8` the same under ARC alone. `duel` may be followed by other constants, as in
/// `duel:change_cost=0.5:shadow_entries=512`.
///
/// # Panics
/// If there is no such policy.
pub fn make(name: &str, entries: usize) -> Box<dyn Replacement> {
    let entries = entries as u64;
    let rule = |rule| Box::new(OneRule(Alone::new(entries, rule)));
    if let Some(sublists) = name.strip_prefix("engine/") {
        return engine(entries, ogive_arc::Policy::Duel, sublists);
    }
    if let Some(sublists) = name.strip_prefix("engine-arc/") {
        return engine(entries, ogive_arc::Policy::Arc, sublists);
    }
    match name {
        "rule-arc" => rule(Rule::Arc),
        "rule-lirs" => rule(Rule::Lirs),
        "rule-2q" => rule(Rule::TwoQueues),
        "rule-lru" => rule(Rule::Lru),
        duel if duel.split(':').next() == Some("duel") => {
            Box::new(Ours(Duel::with_constants(entries, constants(duel))))
        }
        other => {
            let policy: PolicyName = other.parse().expect("a policy");
            Box::new(Simulation::new(policy, entries, 1))
        }
    }
}

/// Hits of Belady's MIN, for traces that have no golden count.
pub fn min_hits(keys: &[u32], numbers: usize, entries: usize) -> u64 {
    let mut next_use = vec![u64::MAX; keys.len()];
    let mut last = vec![u64::MAX; numbers];
    for (at, &key) in keys.iter().enumerate().rev() {
        next_use[at] = std::mem::replace(&mut last[key as usize], at as u64);
    }
    let mut cache = Simulation::new(PolicyName::Min, entries as u64, 1);
    let requests = keys.iter().zip(next_use);
    for (&key, next_use) in requests {
        cache.access(&Request { next_use, ..Request::new(u64::from(key), 1) });
    }
    cache.tally().hits
}

fn constants(name: &str) -> Constants {
    let mut constants = Constants::DEFAULT;
    let mut parts = name.split(':');
    assert_eq!(parts.next(), Some("duel"), "no policy {name}");
    for part in parts {
        let (constant, value) = part.split_once('=').expect("constant=value");
        let number: f64 = value.parse().expect("a number");
        match constant {
            "lirs_window" => constants.lirs_window_divisor = number as u64,
            "2q_window" => constants.two_queues_window_divisor = number as u64,
            "shadow_entries" => constants.shadow_entries = number as usize,
            "change_cost" => constants.change_cost = number,
            "half_life" => constants.half_life_cachefuls = number as u64,
            other => panic!("no constant {other}"),
        }
    }
    constants
}
