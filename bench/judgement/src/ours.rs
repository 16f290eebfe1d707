//! ogive's own policies, as they stand in `ogive-arc`.

use crate::peers::Replacement;
use ogive_arc::Kind;
use ogive_arc::policy::Policy;
use ogive_arc::policy::duel::{Alone, Duel, Rule};

/// The duel.
pub struct Ours(Duel<u32>);

/// One of its rules, alone.
pub struct OneRule(Alone<u32>);

/// The paper's ARC as the engine has it.
pub struct Paper(Policy<u32>);

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

impl Replacement for Paper {
    fn access(&mut self, number: u32) -> bool {
        self.0.access(number, 1, Kind::Data).is_hit()
    }
}

/// A policy by its name.
pub fn make(name: &str, entries: usize) -> Option<Box<dyn Replacement>> {
    let entries = entries as u64;
    let rule = |rule| Some(Box::new(OneRule(Alone::new(entries, rule))) as Box<dyn Replacement>);
    match name {
        "duel" => Some(Box::new(Ours(Duel::new(entries)))),
        "ogive-arc" => Some(Box::new(Paper(Policy::new(entries)))),
        "rule-arc" => rule(Rule::Arc),
        "rule-lirs" => rule(Rule::Lirs),
        "rule-2q" => rule(Rule::TwoQueues),
        "rule-lru" => rule(Rule::Lru),
        _ => None,
    }
}
