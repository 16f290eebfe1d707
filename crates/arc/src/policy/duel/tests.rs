//! Promise: under any operations, holds and changes of rule or size the duel keeps its bounds. On
//! loops and scans it has the hits that it exists for.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::seed::seeded;
use proptest::prelude::*;
use std::collections::HashMap;

#[derive(Clone, Debug)]
enum Operation {
    Access(u16, u64),
    Remove(u16),
    Demote(u16),
    Hold(u16),
    Release(u16),
    Resize(u64),
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let key = || 0_u16..64;
    let one = prop_oneof![
        20 => (key(), prop_oneof![Just(1_u64), 0_u64..9, Just(200_u64)])
            .prop_map(|(key, weight)| Operation::Access(key, weight)),
        1 => key().prop_map(Operation::Remove),
        1 => key().prop_map(Operation::Demote),
        1 => key().prop_map(Operation::Hold),
        2 => key().prop_map(Operation::Release),
        1 => (0_u64..100).prop_map(Operation::Resize),
    ];
    proptest::collection::vec(one, 1..400)
}

/// The invariants of any policy. A hit is on a key that was brought in and not removed. Held keys
/// stay. Bytes without holds are within the capacity.
struct Model {
    holds: HashMap<u16, u32>,
    capacity_bytes: u64,
}

impl Model {
    fn step(&mut self, duel: &mut Duel<u16>, operation: &Operation) {
        match *operation {
            Operation::Access(key, weight_bytes) => {
                let was_in = duel.contains(&key);
                assert_eq!(duel.access(key, weight_bytes).is_hit(), was_in);
                let fits = weight_bytes.max(1) <= self.capacity_bytes;
                assert_eq!(duel.contains(&key), was_in || fits, "what fits is taken in");
            }
            Operation::Remove(key) => {
                duel.remove(&key);
                self.holds.remove(&key);
                assert!(!duel.contains(&key));
            }
            Operation::Demote(key) => {
                let held = self.holds.contains_key(&key);
                let was_in = duel.contains(&key);
                assert_eq!(duel.demote(&key), was_in && !held);
                assert_eq!(duel.contains(&key), held);
            }
            Operation::Hold(key) => {
                if duel.hold(&key) {
                    *self.holds.entry(key).or_default() += 1;
                }
            }
            Operation::Release(key) => {
                assert_eq!(duel.release(&key), self.holds.contains_key(&key));
                if let Some(holds) = self.holds.get_mut(&key) {
                    *holds -= 1;
                    if *holds == 0 {
                        self.holds.remove(&key);
                    }
                }
            }
            Operation::Resize(capacity_bytes) => {
                duel.resize(capacity_bytes);
                self.capacity_bytes = capacity_bytes;
            }
        }
        for key in self.holds.keys() {
            assert!(duel.contains(key), "{key} is held");
        }
        duel.validate().unwrap();
    }
}

proptest! {
    #![proptest_config(seeded())]

    #[test]
    fn any_operations_keep_the_invariants(operations in operations(), capacity_bytes in 0_u64..80) {
        let mut duel = Duel::new(capacity_bytes);
        let mut model = Model { holds: HashMap::new(), capacity_bytes };
        for operation in &operations {
            model.step(&mut duel, operation);
        }
    }

    #[test]
    fn any_changes_of_rule_keep_the_invariants(
        accesses in proptest::collection::vec((0_u16..48, 1_u64..5, 0_usize..60), 1..600),
    ) {
        let mut cache = RuledCache::new(30, Rule::FIRST, Constants::DEFAULT);
        for (key, weight_bytes, rule) in accesses {
            if let Some(&rule) = Rule::ALL.get(rule) {
                cache.set_rule(rule, f64::from(key) / 48.0);
            }
            cache.access(u64::from(key), key, weight_bytes);
            cache.validate().unwrap();
            prop_assert!(cache.live_bytes() <= 30);
        }
    }

    #[test]
    fn the_rule_of_arc_alone_is_the_papers_arc(
        keys in proptest::collection::vec(0_u16..80, 1..1500),
        capacity in 1_u64..40,
    ) {
        let mut rule = Alone::new(capacity, Rule::Arc);
        let mut paper = super::super::PlainArc::new(capacity);
        for key in keys {
            prop_assert_eq!(rule.access(key, 1), paper.access(key, 1, super::super::Kind::Data));
        }
        rule.validate().unwrap();
    }
}

#[test]
fn a_loop_larger_than_the_cache_is_kept_in_part() {
    let mut duel = Duel::new(400);
    let hits = (0..20_000_u64).filter(|n| duel.access(n % 1000, 1).is_hit()).count();
    // Belady's optimum is 399 of each 999.
    assert!(hits > 7_400, "{hits}");
    assert_eq!(duel.rule(), Rule::Lirs);
    duel.validate().unwrap();
}

#[test]
fn a_sawtooth_makes_it_go_by_recency() {
    let mut duel = Duel::new(400);
    let sweep = || (0..1000_u64).chain((0..1000).rev());
    let keys = sweep().chain(sweep()).chain(sweep()).chain(sweep());
    let hits = keys.filter(|&key| duel.access(key, 1).is_hit()).count();
    assert!(hits > 1_700, "{hits}");
    assert_eq!(duel.rule(), Rule::Lru);
}

#[test]
fn shadows_stay_small_however_large_the_cache_is() {
    let mut duel = Duel::new(100_000);
    for n in 0..300_000_u64 {
        duel.access(n * n % 150_001, 1);
        if n % 50_000 == 0 {
            duel.validate().unwrap();
        }
    }
    assert!(duel.referee().sampled_one_in() >= 32);
    assert!(duel.referee().heap_bytes() < 5 << 19, "{}", duel.referee().heap_bytes());
}

#[test]
fn two_queues_keep_a_loop_that_was_out_of_order_for_a_time() {
    let mut cache = Alone::new(400, Rule::TwoQueues);
    let mut rounds = |count: u64, step: u64| {
        let keys = (0..count * 1000).map(|at| at * step % 1000);
        let hits = keys.filter(|&key| cache.access(key, 1).is_hit()).count() as u64 / count;
        cache.validate().unwrap();
        hits
    };
    assert!(rounds(10, 1) >= 300);
    // Keys come back sooner than they did, so those that left the window go to MFU. They would push
    // out of MFU the keys that the loop asks for next. If that came back to MFU too, it would take
    // the place of the next, and so on for ever.
    for step in [7, 993, 457, 543] {
        rounds(1, step);
    }
    rounds(2, 1);
    assert!(rounds(10, 1) >= 300, "and not one in ten of that");
}
