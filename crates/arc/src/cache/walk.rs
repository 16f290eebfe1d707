//! A walk over the entries of the cache, one after the other.
//!
//! This is for rare questions about the contents of the cache. Nothing is counted on behalf of a walk,
//! so entries that come, go and are hit pay nothing for it. It locks one sublist at a time, for
//! [`STEP_SLOTS`] slots. It reports the entries after it has given the lock back.
//!
//! A walk is not a snapshot. An entry that comes or goes during the walk may be reported or not.
//! One that moves because a sublist gives memory back may be reported twice.

use super::Cache;
use crate::policy::{Kind, List};

/// Slots that are looked at under one lock: some ten microseconds. An interpreter has few entries.
const STEP_SLOTS: u32 = if cfg!(miri) { 16 } else { 512 };

/// An entry that a walk has visited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resident<K> {
    /// Its key.
    pub key: K,
    /// Its weight in bytes.
    pub weight_bytes: u64,
    /// Its kind.
    pub kind: Kind,
    /// The list it is on, or will be on once what hits have noted is applied.
    pub list: List,
}

impl<K: Clone, V> Cache<K, V> {
    /// Reports every entry, in no order and under no lock. Counts nothing and moves nothing.
    pub fn walk(&self, mut visit: impl FnMut(Resident<K>)) {
        let core = self.core();
        let mut seen = Vec::with_capacity(STEP_SLOTS as usize);
        for sublist in core.sublists() {
            let mut from = 0_u32;
            loop {
                let slots = from..from.saturating_add(STEP_SLOTS);
                let is_over = {
                    let guard = core.lock(sublist);
                    for id in guard.ids_among(slots.clone()) {
                        let word = guard.word(id);
                        if word.is_live() {
                            seen.push(Resident {
                                key: guard.key(id).clone(),
                                weight_bytes: guard.entry(id).weight_bytes(),
                                kind: word.kind(),
                                list: word.list_due(),
                            });
                        }
                    }
                    guard.slots() <= slots.end
                };
                seen.drain(..).for_each(&mut visit);
                if is_over {
                    break;
                }
                from = slots.end;
            }
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::Access;
    use std::collections::BTreeMap;

    /// So many, or as many as an interpreter gets through: what it does for a reference grows with
    /// the entries around it.
    fn entries(native: u64) -> u64 {
        if cfg!(miri) { 40 } else { native }
    }

    /// Entries, more than are looked at under one lock: their weights, by key.
    fn filled(sublists: usize, entries: u64) -> (Cache<u64, u64>, BTreeMap<u64, u64>) {
        let cache = Cache::builder(1 << 30).sublists(sublists).build();
        let weights: BTreeMap<u64, u64> = (0..entries).map(|key| (key, 100 + key % 7)).collect();
        for (&key, &weight_bytes) in &weights {
            drop(cache.insert(key, key, weight_bytes, Kind::Data, Access::Demand));
        }
        (cache, weights)
    }

    fn walked(cache: &Cache<u64, u64>) -> Vec<Resident<u64>> {
        let mut all = Vec::new();
        cache.walk(|resident| all.push(resident));
        all
    }

    #[test]
    fn a_walk_reports_every_entry_once_with_its_weight_and_its_list() {
        for sublists in [1, 8] {
            let (cache, mut weights) = filled(sublists, entries(1500));
            for key in 0..10 {
                assert!(cache.get(&key, Access::Demand).is_some());
            }
            cache.invalidate(&3);
            weights.remove(&3);
            drop(cache.insert(5000, 0, 77, Kind::Metadata, Access::Demand));
            let uncounted = |cache: &Cache<_, _>| crate::Stats { locks: 0, ..cache.stats() };
            let stats = uncounted(&cache);
            let all = walked(&cache);
            assert_eq!(uncounted(&cache), stats, "nothing is counted but locks");
            assert_eq!(all.len(), weights.len() + 1);
            for resident in all {
                if resident.key == 5000 {
                    assert_eq!((resident.weight_bytes, resident.kind), (77, Kind::Metadata));
                    continue;
                }
                assert_eq!(weights.remove(&resident.key), Some(resident.weight_bytes));
                let is_used_again = resident.key < 10;
                assert_eq!(resident.list == List::Mfu, is_used_again, "{resident:?}");
            }
            assert!(weights.is_empty(), "{weights:?}");
            cache.validate().unwrap();
        }
    }

    #[test]
    fn a_visitor_of_a_walk_may_use_the_cache() {
        let (cache, _) = filled(1, entries(600));
        cache.walk(|resident| assert!(cache.remove(&resident.key).is_some()));
        assert!(walked(&cache).is_empty());
        assert!(walked(&Cache::new(1000)).is_empty());
    }

    /// Ten entries of many that were: the slots have been given back.
    #[test]
    fn a_walk_is_as_long_as_the_entries_in_use() {
        let (cache, _) = filled(1, entries(100_000));
        cache.reclaim(u64::MAX);
        (0..10).for_each(|key| drop(cache.insert(key, 0, 1, Kind::Data, Access::Demand)));
        let locks = || cache.stats().locks;
        // Statistics take locks, too.
        let (first, second) = (locks(), locks());
        assert_eq!(walked(&cache).len(), 10);
        assert_eq!(locks() - second, second - first + 1, "one lock for the one sublist");
    }
}
