//! Promise: the work of the duel's referee is in proportion to misses. A run of hits is shown to it
//! while arrivals have given credit. The rest is counted and spared.

use ogive_arc::{Access, Cache, Kind};

const ENTRIES: u64 = 1000;

/// Hits shown for each arrival, and the most that is saved up (`table/hit_rings.rs`).
const CREDIT_PER_ARRIVAL: u64 = 64;
const CREDIT_MAX: u64 = 2048;

/// Hits that lie in the ring of a thread, neither shown nor spared yet, at most.
const RING: u64 = 32;

fn full(exact: bool) -> Cache<u64, ()> {
    let cache =
        Cache::builder(ENTRIES).sublists(1).rings(crate::common::RINGS).exact(exact).build();
    (0..ENTRIES).for_each(|key| insert(&cache, key));
    cache
}

fn insert(cache: &Cache<u64, ()>, key: u64) {
    cache.insert(key, (), 1, Kind::Data, Access::Demand);
}

/// Hits, on keys that stay whatever comes in: those asked for again and again.
fn hits(cache: &Cache<u64, ()>, count: u64) {
    for n in 0..count {
        assert!(cache.get(&(n % 500), Access::Demand).is_some());
    }
}

/// Requests shown and spared.
fn seen(cache: &Cache<u64, ()>) -> (u64, u64) {
    let stats = cache.stats();
    (stats.referee_requests, stats.referee_spared)
}

#[test]
fn hits_in_a_row_are_shown_while_there_is_credit() {
    let cache = full(false);
    let (shown, spared) = seen(&cache);
    assert_eq!((shown, spared), (ENTRIES, 0), "every arrival is shown");
    hits(&cache, 200_000);
    let (shown, spared) = seen(&cache);
    assert!(shown <= ENTRIES + CREDIT_MAX, "{shown} shown");
    assert!(shown >= ENTRIES + CREDIT_MAX - RING, "{shown} shown");
    assert_eq!(spared, 200_000 - CREDIT_MAX);
    hits(&cache, 10_000);
    assert_eq!(seen(&cache), (shown, spared + 10_000), "without arrivals nothing more is shown");
    cache.validate().unwrap();
}

#[test]
fn arrivals_give_credit_again() {
    let cache = full(false);
    hits(&cache, 20_000);
    let before = seen(&cache);
    let arrivals = 20;
    // Each of these comes when the credit is spent, and is not shown itself. Misses without the
    // hits in between would speak against the rule in force.
    for key in 0..arrivals {
        insert(&cache, ENTRIES + key);
        hits(&cache, 1000);
    }
    let (shown, spared) = seen(&cache);
    let (shown, spared) = (shown - before.0, spared - before.1);
    assert!((shown + spared).abs_diff(arrivals * 1001) <= RING, "{shown} and {spared}");
    assert!(shown.abs_diff(arrivals * CREDIT_PER_ARRIVAL) <= RING, "{shown} shown");
}

#[test]
fn a_thread_that_only_hits_is_given_credit_by_the_arrivals_of_others() {
    let cache = full(false);
    std::thread::scope(|scope| {
        let hitting = scope.spawn(|| {
            hits(&cache, 20_000);
            seen(&cache).0
        });
        let before = hitting.join().unwrap();
        scope.spawn(|| (0..5).for_each(|key| insert(&cache, ENTRIES + key))).join().unwrap();
        scope.spawn(|| hits(&cache, 20_000)).join().unwrap();
        let shown = seen(&cache).0 - before;
        assert!(shown > 5, "{shown} shown");
    });
}

#[test]
fn an_exact_cache_spares_no_hit() {
    let cache = full(true);
    hits(&cache, 20_000);
    assert_eq!(seen(&cache), (ENTRIES + 20_000, 0));
}
