//! Promise: after any operations in any order, every list, index and size is right. A key never has
//! another value than the one put last. Without holds the cache is within its target.

use ogive_arc::{Access, Cache, Claim, Hold, Kind, Policy, Source};
use proptest::prelude::*;
use std::collections::HashMap;

#[derive(Clone, Debug)]
enum Op {
    Get(u8, Access),
    Load(u8, u64, Kind, Access),
    LoadAndHold(u8, u64, Kind),
    Fail(u8),
    Insert(u8, u64, Kind, Access),
    Invalidate(u8),
    Remove(u8),
    Demote(u8),
    HandOver(u8),
    LimitHanded(u64),
    Claim(u8, Kind, Access),
    Fill(u64),
    Abandon,
    CloneHold,
    Release,
    Resize(u64),
    Reclaim(u64),
    Clear,
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![3 => Just(Kind::Data), 1 => Just(Kind::Metadata)]
}

fn accesses() -> impl Strategy<Value = Access> {
    prop_oneof![3 => Just(Access::Demand), 1 => Just(Access::Prefetch)]
}

/// Mostly small, some as large as the cache or larger.
fn weights() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 1_u64..200, 1 => 0_u64..1200]
}

fn ops() -> impl Strategy<Value = Op> {
    let key = 0_u8..40;
    prop_oneof![
        6 => (key.clone(), accesses()).prop_map(|(k, a)| Op::Get(k, a)),
        12 => (key.clone(), weights(), kinds(), accesses())
            .prop_map(|(k, w, kind, a)| Op::Load(k, w, kind, a)),
        3 => (key.clone(), weights(), kinds()).prop_map(|(k, w, kind)| Op::LoadAndHold(k, w, kind)),
        1 => key.clone().prop_map(Op::Fail),
        3 => (key.clone(), weights(), kinds(), accesses())
            .prop_map(|(k, w, kind, a)| Op::Insert(k, w, kind, a)),
        2 => key.clone().prop_map(Op::Invalidate),
        1 => key.clone().prop_map(Op::Remove),
        2 => key.clone().prop_map(Op::Demote),
        4 => key.clone().prop_map(Op::HandOver),
        1 => (0_u64..1000).prop_map(Op::LimitHanded),
        2 => (key, kinds(), accesses()).prop_map(|(k, kind, a)| Op::Claim(k, kind, a)),
        2 => weights().prop_map(Op::Fill),
        1 => Just(Op::Abandon),
        1 => Just(Op::CloneHold),
        4 => Just(Op::Release),
        1 => (0_u64..1200).prop_map(Op::Resize),
        1 => (0_u64..300).prop_map(Op::Reclaim),
        1 => prop::bool::weighted(0.2).prop_map(|yes| if yes { Op::Clear } else { Op::Release }),
    ]
}

type Value = (u8, u64);

/// The cache and what must be true of it.
struct Model {
    cache: Cache<u8, Value>,
    /// The value put last, of keys not forgotten since.
    values: HashMap<u8, Value>,
    /// Claims, and whether their key was forgotten since.
    claims: Vec<(u8, Claim<u8, Value>, bool)>,
    holds: Vec<(Value, Hold<u8, Value>)>,
    serial: u64,
}

impl Model {
    fn value(&mut self, key: u8) -> Value {
        self.serial += 1;
        (key, self.serial)
    }

    fn is_claimed(&self, key: u8) -> bool {
        self.claims.iter().any(|(k, _, forgotten)| *k == key && !forgotten)
    }

    /// The key has no value any more, and claims of it must not give it one.
    fn forget(&mut self, key: u8) {
        self.values.remove(&key);
        for (k, _, forgotten) in &mut self.claims {
            *forgotten |= *k == key;
        }
    }

    fn load(&mut self, key: u8, weight: u64, kind: Kind, by: Access) -> Option<Hold<u8, Value>> {
        if self.is_claimed(key) {
            // This thread would wait for itself.
            return None;
        }
        let value = self.value(key);
        let load = || Ok::<_, u8>((value, weight));
        let (hold, source) = self.cache.get_or_load(&key, kind, by, load).unwrap();
        if source == Source::Loaded {
            self.values.insert(key, value);
        }
        assert_eq!(Some(&*hold), self.values.get(&key), "{source:?}");
        Some(hold)
    }

    fn clear(&mut self) {
        (0..40).for_each(|key| self.forget(key));
        self.cache.clear();
        assert_eq!((self.cache.is_empty(), self.cache.len()), (true, 0));
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Get(key, by) => {
                if let Some(hold) = self.cache.get(&key, by) {
                    assert_eq!(Some(&*hold), self.values.get(&key));
                }
            }
            Op::Load(key, weight, kind, by) => drop(self.load(key, weight, kind, by)),
            Op::LoadAndHold(key, weight, kind) => {
                let hold = self.load(key, weight, kind, Access::Demand);
                self.holds.extend(hold.map(|hold| (*hold, hold)));
            }
            Op::Fail(key) if !self.is_claimed(key) => {
                let was_here = self.cache.contains(&key);
                let by = Access::Demand;
                let got = self.cache.get_or_load(&key, Kind::Data, by, || Err(7_u8));
                assert_eq!(got.is_ok(), was_here);
            }
            Op::Insert(key, weight, kind, by) => {
                self.forget(key);
                let value = self.value(key);
                self.values.insert(key, value);
                let hold = self.cache.insert(key, value, weight, kind, by);
                assert_eq!(*hold, value);
            }
            Op::Invalidate(key) => {
                self.cache.invalidate(&key);
                self.forget(key);
                assert_eq!(self.cache.state(&key), None);
            }
            Op::Remove(key) => {
                let value = self.cache.remove(&key);
                assert!(value.is_none_or(|value| self.values.get(&key) == Some(&*value)));
                self.forget(key);
            }
            Op::Demote(key) => {
                let was_here = self.cache.contains(&key);
                assert_eq!(self.cache.demote(&key), was_here);
            }
            Op::HandOver(key) => {
                let was_here = self.cache.contains(&key);
                assert!(!self.cache.hand_over(&key) || was_here);
                assert!(!self.cache.hand_over(&key), "a second time");
            }
            Op::LimitHanded(bytes) => {
                self.cache.limit_handed(bytes);
                let is_held = !self.holds.is_empty();
                assert!(is_held || self.cache.handed_bytes() <= bytes);
            }
            Op::Claim(key, kind, by) => {
                if let Some(claim) = self.cache.try_claim(&key, kind, by) {
                    assert!(!self.is_claimed(key));
                    self.claims.push((key, claim, false));
                }
            }
            Op::Fill(weight) => {
                if let Some((key, claim, forgotten)) = self.claims.pop() {
                    let value = self.value(key);
                    if !forgotten {
                        self.values.insert(key, value);
                    }
                    assert_eq!(*claim.fill(value, weight), value);
                }
            }
            Op::Abandon | Op::Fail(_) => drop(self.claims.pop()),
            Op::CloneHold => {
                let again = self.holds.last().cloned();
                self.holds.extend(again);
            }
            Op::Release if !self.holds.is_empty() => drop(self.holds.remove(0)),
            Op::Release => {}
            Op::Resize(bytes) => self.cache.resize(bytes),
            Op::Reclaim(bytes) => {
                self.cache.reclaim(bytes);
            }
            Op::Clear => self.clear(),
        }
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let census = self.cache.validate().map_err(TestCaseError::fail)?;
        let claims = self.claims.len() as u64;
        prop_assert_eq!(census.loading, claims);
        prop_assert_eq!(census.holds, self.holds.len() as u64 + claims);
        for (value, hold) in &self.holds {
            prop_assert_eq!(value, &**hold, "a hold keeps its value");
        }
        let level = self.cache.level();
        if self.holds.is_empty() {
            prop_assert!(level.size_bytes <= level.target_bytes, "{:?}", level);
        }
        let stats = self.cache.stats();
        prop_assert!(stats.mru_ghost_size + stats.mfu_ghost_size <= 2 * level.target_bytes);
        prop_assert_eq!(stats.entries, self.cache.len() as u64);
        Ok(())
    }
}

/// So many cases, more in the long run, few under Miri; a failure is printed and not written to a
/// file.
fn cases(cases: u32, in_the_long_run: u32) -> ProptestConfig {
    let cases = match crate::skipped::is_nightly() {
        _ if cfg!(miri) => 4,
        true => in_the_long_run,
        false => cases,
    };
    ProptestConfig { cases, failure_persistence: None, ..crate::seed::seeded() }
}

proptest! {
    #![proptest_config(cases(200, 800))]

    #[test]
    fn everything_counts_up_after_every_operation(
        capacity in 0_u64..1000,
        min_bytes in 0_u64..300,
        start_bytes in 0_u64..1000,
        sublists in 1_usize..9,
        policy in prop_oneof![Just(Policy::Arc), Just(Policy::Duel)],
        ops in prop::collection::vec(ops(), 1..200),
    ) {
        let builder = Cache::builder(capacity).min_bytes(min_bytes).start_bytes(start_bytes);
        let cache = builder.sublists(sublists).policy(policy).build();
        let (claims, holds) = (Vec::new(), Vec::new());
        let mut model = Model { cache, values: HashMap::new(), claims, holds, serial: 0 };
        for op in ops {
            model.apply(op);
            model.check()?;
        }
        model.claims.clear();
        model.holds.clear();
        model.check()?;
        model.cache.clear();
        let stats = model.cache.stats();
        prop_assert_eq!((stats.entries, stats.ghosts, stats.size - stats.hdr_size), (0, 0, 0));
    }
}
