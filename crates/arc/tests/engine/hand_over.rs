//! Promise: an entry that was handed over to a cache above is the first to leave, and only when
//! room is needed. If it comes back, it stays as any other entry.

use ogive_arc::policy::State;
use ogive_arc::{Access, Cache, Kind, Policy};

const DEMAND: Access = Access::Demand;

fn cache(capacity_bytes: u64, policy: Policy) -> Cache<u64, u64> {
    Cache::builder(capacity_bytes).policy(policy).sublists(1).build()
}

/// Reads an entry as a cache above does that has not got it, and hands it over. Returns whether it
/// had to be loaded.
fn read(cache: &Cache<u64, u64>, key: u64, weight_bytes: u64) -> bool {
    let load = || Ok::<_, ()>((key, weight_bytes));
    let (hold, source) = cache.get_or_load(&key, Kind::Data, DEMAND, load).unwrap();
    drop(hold);
    cache.hand_over(&key);
    source == ogive_arc::Source::Loaded
}

#[test]
fn handed_over_entries_leave_first_and_only_for_room() {
    for policy in [Policy::Arc, Policy::Duel] {
        let cache = cache(40, policy);
        for key in 0..4 {
            drop(cache.insert(key, key, 10, Kind::Data, DEMAND));
        }
        assert!(cache.hand_over(&3) && cache.hand_over(&1));
        assert!(!cache.hand_over(&3) && !cache.hand_over(&9), "already; there is none");
        assert_eq!((cache.handed_bytes(), cache.stats().handed_size), (20, 20));
        assert_eq!(cache.len(), 4, "the room is not needed");
        drop(cache.insert(4, 4, 10, Kind::Data, DEMAND));
        assert!(!cache.contains(&3), "the first that was handed over");
        assert!((0..=2).all(|key| cache.contains(&key)), "not the oldest");
        drop(cache.insert(5, 5, 10, Kind::Data, DEMAND));
        assert!(!cache.contains(&1) && cache.handed_bytes() == 0);
        assert!(cache.contains(&0) && cache.contains(&2) && cache.contains(&4));
        drop(cache.insert(6, 6, 10, Kind::Data, DEMAND));
        assert_eq!((cache.len(), cache.stats().demotions), (4, 2), "now as ever");
        cache.validate().unwrap();
    }
}

#[test]
fn an_entry_that_came_back_is_not_handed_over_again() {
    for policy in [Policy::Arc, Policy::Duel] {
        let cache = cache(100, policy);
        for key in 0..2 {
            drop(cache.insert(key, key, 10, Kind::Data, DEMAND));
            assert!(cache.hand_over(&key));
        }
        // One is found here still, the other has left.
        drop(cache.get(&0, DEMAND).unwrap());
        assert_eq!(cache.handed_bytes(), 10);
        assert!(!cache.hand_over(&0));
        cache.limit_handed(0);
        assert_eq!((cache.state(&0), cache.contains(&1)), (Some(State::Mfu), false));
        cache.limit_handed(u64::MAX);
        assert!(read(&cache, 1, 10), "its ghost");
        assert!(!cache.hand_over(&1) && cache.contains(&1));
        assert_eq!(cache.handed_bytes(), 0);
        // A new value under the key has not come back.
        cache.invalidate(&1);
        drop(cache.insert(1, 1, 10, Kind::Data, DEMAND));
        assert!(cache.hand_over(&1));
        // A prefetch does not take it back.
        assert!(cache.get(&1, Access::Prefetch).is_some() && cache.handed_bytes() == 10);
        cache.validate().unwrap();
    }
}

#[test]
fn entries_over_the_limit_leave_at_once() {
    let cache = cache(1000, Policy::Duel);
    for key in 0..10 {
        assert!(read(&cache, key, 10));
    }
    cache.limit_handed(35);
    assert_eq!((cache.handed_bytes(), cache.len()), (30, 3), "the last three");
    assert!((7..10).all(|key| cache.contains(&key)));
    assert!(read(&cache, 10, 10));
    assert_eq!((cache.handed_bytes(), cache.contains(&7)), (30, false));
    // A reader still holds it: it leaves with the last hold.
    let held = cache.get(&8, Access::Prefetch).unwrap();
    cache.limit_handed(0);
    assert_eq!((cache.len(), cache.handed_bytes()), (1, 10));
    drop(held);
    assert_eq!((cache.len(), cache.handed_bytes()), (0, 0));
    cache.validate().unwrap();
}

#[test]
fn a_shrinking_cache_evicts_handed_over_entries_first() {
    let cache = Cache::builder(100).min_bytes(0).sublists(4).build();
    for key in 0..10_u64 {
        drop(cache.insert(key, key, 10, Kind::Data, DEMAND));
    }
    (5..10).for_each(|key| assert!(cache.hand_over(&key)));
    assert_eq!(cache.reclaim(50), 50);
    assert!((0..5).all(|key| cache.contains(&key)));
    assert_eq!(cache.handed_bytes(), 0);
    cache.clear();
    cache.validate().unwrap();
}

/// Passes over a set in one order, each after the cache above has dropped everything; returns the
/// loads of each. With `limit_bytes` that is all that what is handed over may weigh.
fn loads_of_passes(policy: Policy, set: u64, capacity: u64, limit_bytes: u64) -> Vec<u64> {
    // As small as can be at first: it grows for what it knows.
    let builder = Cache::builder(capacity).min_bytes(10).start_bytes(10);
    let cache = builder.policy(policy).sublists(4).build();
    cache.limit_handed(limit_bytes);
    let pass = |_| (0..set).map(|key| u64::from(read(&cache, key, 1))).sum();
    let loads = (0..5).map(pass).collect();
    cache.validate().unwrap();
    loads
}

#[test]
fn passes_over_a_set_that_fits_load_it_once_or_at_most_twice() {
    for policy in [Policy::Arc, Policy::Duel] {
        for capacity in [1000, 4000] {
            assert_eq!(loads_of_passes(policy, 1000, capacity, u64::MAX), [1000, 0, 0, 0, 0]);
            // There is no memory to spare: what the cache above drops is loaded once more.
            let loads = loads_of_passes(policy, 1000, capacity, 0);
            assert_eq!(loads, [1000, 1000, 0, 0, 0], "{policy:?}, {capacity}");
        }
        for limit_bytes in [0, 500, u64::MAX] {
            let loads = loads_of_passes(policy, 1000, 500, limit_bytes);
            assert!(loads.iter().all(|&loads| loads <= 1000), "{loads:?}");
            assert!(loads[4] < 1000 || policy == Policy::Arc, "{policy:?}: {loads:?}");
        }
    }
}
