//! How many locks an arrival takes.

use ogive_arc::{Access, Cache, Kind, Policy};

/// Records that never come back, one after the other, into a full cache of this many sublists.
/// Returns the locks for each, with the search before it.
fn locks_per_arrival(sublists: usize, policy: Policy) -> f64 {
    const ENTRIES: u64 = 1 << 15;
    let cache: Cache<u64, ()> = Cache::builder(ENTRIES)
        .sublists(sublists)
        .rings(crate::common::RINGS)
        .policy(policy)
        .build();
    let arrive = |key| {
        if cache.get(&key, Access::Demand).is_none() {
            cache.insert(key, (), 1, Kind::Data, Access::Demand);
        }
    };
    // Until ghosts are as many as they can be, and every hint is of a full cache.
    (0..4 * ENTRIES).for_each(arrive);
    let before = cache.stats().locks;
    (4 * ENTRIES..5 * ENTRIES).for_each(arrive);
    (cache.stats().locks - before) as f64 / ENTRIES as f64
}

/// Its own sublist's and the ledger's; hardly ever that of another sublist, however many there are.
#[test]
fn an_arrival_that_evicts_takes_two_locks() {
    for sublists in [1, 64] {
        let locks = locks_per_arrival(sublists, Policy::Arc);
        assert!((2.0..2.2).contains(&locks), "{locks} with {sublists} sublists");
    }
}

/// Under the duel the referee's lock is taken for sampled arrivals, and now and then another
/// sublist's. But there is none for each entry and each ghost that leaves.
#[test]
fn the_duel_takes_few_more() {
    for sublists in [1, 64] {
        let locks = locks_per_arrival(sublists, Policy::Duel);
        assert!((2.0..3.2).contains(&locks), "{locks} with {sublists} sublists");
    }
}
