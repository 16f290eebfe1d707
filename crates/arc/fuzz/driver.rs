//! Bytes as a sequence of operations on a cache, which is recounted after every one of them. The
//! fuzz target and `tests/engine/operations.rs` both drive this.

use ogive_arc::{Access, Cache, Claim, Hold, Kind, Policy};
use std::collections::HashMap;

/// Keys there are.
const KEYS: u8 = 24;

/// The most holds and claims at one time.
const HELD_MAX: usize = 12;

type Value = (u8, u32);

struct Run {
    cache: Cache<u8, Value>,
    /// The value put last, of keys not forgotten since.
    values: HashMap<u8, Value>,
    holds: Vec<(Value, Hold<u8, Value>)>,
    /// Claims, and whether their key was forgotten since.
    claims: Vec<(u8, Claim<u8, Value>, bool)>,
    serial: u32,
}

impl Run {
    fn next_value(&mut self, key: u8) -> Value {
        self.serial += 1;
        (key, self.serial)
    }

    fn forget(&mut self, key: u8) {
        self.values.remove(&key);
        for (claimed, _, forgotten) in &mut self.claims {
            *forgotten |= *claimed == key;
        }
    }

    fn keep(&mut self, hold: Hold<u8, Value>) {
        if self.holds.len() < HELD_MAX {
            self.holds.push((*hold, hold));
        }
    }

    fn step(&mut self, op: u8, key: u8, weight_bytes: u64, kind: Kind, access: Access) {
        match op {
            0..=3 => {
                if let Some(hold) = self.cache.get(&key, access) {
                    assert_eq!(Some(&*hold), self.values.get(&key), "a get");
                    if op == 0 {
                        self.keep(hold);
                    }
                }
            }
            4..=6 => {
                self.forget(key);
                let value = self.next_value(key);
                self.values.insert(key, value);
                let hold = self.cache.insert(key, value, weight_bytes, kind, access);
                assert_eq!(*hold, value, "an insert");
                if op == 4 {
                    self.keep(hold);
                }
            }
            7..=8 if !self.claims.iter().any(|(claimed, ..)| *claimed == key) => {
                let value = self.next_value(key);
                let load = || Ok::<_, ()>((value, weight_bytes));
                let Ok((hold, source)) = self.cache.get_or_load(&key, kind, access, load) else {
                    panic!("the load gave a value");
                };
                if source == ogive_arc::Source::Loaded {
                    self.values.insert(key, value);
                }
                assert_eq!(Some(&*hold), self.values.get(&key), "a load");
            }
            9 => {
                let removed = self.cache.remove(&key);
                assert!(removed.is_none_or(|value| Some(&*value) == self.values.get(&key)));
                self.forget(key);
            }
            10 => drop(self.cache.demote(&key)),
            11 if self.claims.len() < HELD_MAX => {
                let claim = self.cache.try_claim(&key, kind, access);
                self.claims.extend(claim.map(|claim| (key, claim, false)));
            }
            12 => {
                if let Some((key, claim, forgotten)) = self.claims.pop() {
                    let value = self.next_value(key);
                    if !forgotten {
                        self.values.insert(key, value);
                    }
                    assert_eq!(*claim.fill(value, weight_bytes), value, "a fill");
                }
            }
            13 => drop(self.claims.pop()),
            14 if !self.holds.is_empty() => {
                let at = key as usize % self.holds.len();
                let (value, hold) = self.holds.swap_remove(at);
                assert_eq!(*hold.clone(), value, "a hold keeps its value");
            }
            15 => self.cache.resize(weight_bytes * 8),
            16 => drop(self.cache.reclaim(weight_bytes)),
            18 => drop(self.cache.hand_over(&key)),
            19 => self.cache.limit_handed(weight_bytes * 8),
            17 if key == 0 => {
                (0..KEYS).for_each(|key| self.forget(key));
                self.cache.clear();
            }
            _ => drop(self.cache.get_cached_only(&key, access)),
        }
    }

    fn check(&self) {
        let census = self.cache.validate().unwrap_or_else(|wrong| panic!("{wrong}"));
        assert_eq!(census.loading, self.claims.len() as u64);
        assert_eq!(census.holds, (self.holds.len() + self.claims.len()) as u64);
        for (value, hold) in &self.holds {
            assert_eq!(*value, **hold, "a hold keeps its value");
        }
        let level = self.cache.level();
        assert!(!self.holds.is_empty() || level.size_bytes <= level.target_bytes, "{level:?}");
    }
}

/// Runs the operations that bytes spell: capacity, sublists, order and policy first, then three
/// bytes an operation.
pub fn run(bytes: &[u8]) {
    let [capacity, shape, rest @ ..] = bytes else {
        return;
    };
    let builder = Cache::builder(u64::from(*capacity) * 4)
        .min_bytes(u64::from(shape >> 4))
        .sublists(1 << (shape & 3))
        .exact(shape & 4 != 0)
        .policy(if shape & 8 == 0 { Policy::Duel } else { Policy::Arc });
    let (values, holds, claims) = (HashMap::new(), Vec::new(), Vec::new());
    let mut run = Run { cache: builder.build(), values, holds, claims, serial: 0 };
    for step in rest.chunks_exact(3) {
        let kind = if step[1] & 64 == 0 { Kind::Data } else { Kind::Metadata };
        let access = if step[1] & 128 == 0 { Access::Demand } else { Access::Prefetch };
        run.step(step[0] % 21, step[1] % 64 % KEYS, u64::from(step[2]), kind, access);
        run.check();
    }
    run.claims.clear();
    run.holds.clear();
    run.check();
}
