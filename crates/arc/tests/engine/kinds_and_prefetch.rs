//! Promise: data and metadata each keep their share, won by ghost hits. A prefetch has to prove
//! itself. A scan does not push out the working set.

use crate::common::Sequence;
use crate::eventually::eventually;
use ogive_arc::policy::{Outcome, PlainArc, State};
use ogive_arc::{Access, Cache, Generation, Kind, List};

#[test]
fn a_scan_does_not_push_out_the_working_set() {
    let mut policy = PlainArc::new(1000);
    for _ in 0..2 {
        for key in 0..500_u64 {
            policy.access(key, 1, Kind::Data);
        }
    }
    for key in 10_000..60_000_u64 {
        policy.access(key, 1, Kind::Data);
    }
    let hits = (0..500).filter(|&key| policy.access(key, 1, Kind::Data).is_hit()).count();
    assert_eq!(hits, 500);
}

#[test]
fn metadata_survive_a_flood_of_data_within_their_share() {
    let mut policy = PlainArc::new(1000);
    for round in 0..400_u64 {
        for key in 0..200 {
            policy.access((1, key), 1, Kind::Metadata);
        }
        for key in 0..1000 {
            policy.access((0, round * 1000 + key), 1, Kind::Data);
        }
    }
    let balance = policy.balance();
    assert_eq!(balance.live_bytes(Kind::Metadata), 200);
    let hits = (0..200).filter(|&key| policy.access((1, key), 1, Kind::Metadata).is_hit());
    assert_eq!(hits.count(), 200);
}

#[test]
fn metadata_ghost_hits_win_a_larger_share_and_data_ghost_hits_win_it_back() {
    let mut policy = PlainArc::new(1000);
    let mut next = Sequence(1);
    // Metadata want 600, data are never seen again.
    for scan in 0..200_000_u64 {
        policy.access((0, scan), 1, Kind::Data);
        policy.access((1, next.below(600)), 1, Kind::Metadata);
    }
    let fraction = policy.balance().metadata_fraction();
    assert!(fraction > 0.5, "metadata's share is {fraction}");
    assert!(policy.balance().live_bytes(Kind::Metadata) > 500);
    // Now data want 900, and metadata are never seen again.
    for scan in 0..200_000_u64 {
        policy.access((0, next.below(900)), 1, Kind::Data);
        policy.access((1, 1_000_000 + scan), 1, Kind::Metadata);
    }
    let fraction = policy.balance().metadata_fraction();
    assert!(fraction < 0.25, "metadata's share is {fraction}");
    policy.validate().unwrap();
}

#[test]
fn one_kind_alone_has_the_whole_cache_and_leaves_the_shares_alone() {
    for kind in Kind::ALL {
        let mut policy = PlainArc::new(1000);
        let mut next = Sequence(2);
        for _ in 0..50_000 {
            policy.access(next.below(1500), 1, kind);
        }
        assert_eq!(policy.balance().live_bytes(kind), 1000);
        assert!((policy.balance().metadata_fraction() - 0.25).abs() < 1e-12);
    }
}

#[test]
fn weights_of_any_size_stay_within_the_capacity() {
    let mut policy = PlainArc::new(1 << 20);
    let mut next = Sequence(3);
    for _ in 0..20_000 {
        let key = next.below(400);
        // From one byte to more than the cache, the same for the same key.
        let weight = 1 << (key % 22);
        let kind = if key.is_multiple_of(3) { Kind::Metadata } else { Kind::Data };
        let outcome = policy.access(key, weight, kind);
        assert!(weight <= 1 << 20 || outcome == Outcome::Miss);
        assert!(policy.balance().used_bytes() <= 1 << 20);
    }
    policy.validate().unwrap();
    assert!(policy.evictions() > 100);
}

#[test]
fn the_first_demand_on_a_prefetched_entry_is_its_first_use() {
    let cache: Cache<u64, ()> = Cache::builder(100).sublists(1).build();
    let get = |access| assert!(cache.get(&1, access).is_some());
    drop(cache.insert(1, (), 1, Kind::Data, Access::Prefetch));
    get(Access::Prefetch);
    assert_eq!(cache.state(&1), Some(State::Mru));
    get(Access::Demand);
    assert_eq!(cache.state(&1), Some(State::Mru));
    assert_eq!(cache.stats().demand_hit_predictive_prefetch, 1);
    get(Access::Prefetch);
    assert_eq!(cache.state(&1), Some(State::Mru), "a prefetch never promotes");
    get(Access::Demand);
    assert_eq!(cache.state(&1), Some(State::Mfu));
    let stats = cache.stats();
    assert_eq!(stats.demand_hit_predictive_prefetch, 1);
    assert_eq!((stats.demand_data_hits, stats.prefetch_data_hits), (2, 2));
    assert_eq!((stats.mru_hits, stats.mfu_hits), (4, 0));
}

#[test]
fn a_demand_that_joins_a_prefetch_is_its_first_use() {
    let cache: Cache<u64, ()> = Cache::builder(100).sublists(1).build();
    let claim = cache.try_claim(&1, Kind::Data, Access::Prefetch).unwrap();
    std::thread::scope(|scope| {
        let joined = scope.spawn(|| {
            let load = || Ok::<_, String>(((), 1));
            cache.get_or_load(&1, Kind::Data, Access::Demand, load).map(drop)
        });
        eventually("a demand joins the load", || cache.stats().iohits > 0);
        drop(claim.fill((), 1));
        joined.join().unwrap().unwrap();
    });
    let stats = cache.stats();
    assert_eq!((stats.predictive_prefetch, stats.demand_iohit_predictive_prefetch), (1, 1));
    drop(cache.get(&1, Access::Demand));
    assert_eq!(cache.state(&1), Some(State::Mfu));
    assert_eq!(cache.stats().demand_hit_predictive_prefetch, 0);
}

#[test]
fn a_prefetched_entry_evicted_unused_comes_back_as_new() {
    let mut policy = PlainArc::new(4);
    policy.access_as(1, 1, Kind::Data, Access::Prefetch);
    for key in [10, 10, 11, 11, 20, 21] {
        policy.access(key, 1, Kind::Data);
    }
    assert_eq!(policy.state(&1), Some(State::MruGhost));
    assert_eq!(policy.access(1, 1, Kind::Data), Outcome::GhostHit(List::Mru));
    assert_eq!(policy.state(&1), Some(State::Mru));
}

#[test]
fn a_generation_in_the_key_forgets_an_object_at_once() {
    let cache: Cache<(u64, u64, u64), u64> = Cache::builder(10_000).sublists(2).build();
    let generation = Generation::default();
    let load = |record: u64, value| {
        let key = (7, generation.current(), record);
        let load = || Ok::<_, String>((value, 1));
        *cache.get_or_load(&key, Kind::Data, Access::Demand, load).unwrap().0
    };
    (0..1000).for_each(|record| assert_eq!(load(record, record), record));
    let in_flight = cache.try_claim(&(7, generation.current(), 5000), Kind::Data, Access::Demand);
    generation.advance();
    drop(in_flight.unwrap().fill(0, 1));
    (0..1000).for_each(|record| assert_eq!(load(record, record + 1), record + 1));
    assert_eq!(load(5000, 9), 9);
}

#[test]
fn every_statistic_has_a_name() {
    let cache: Cache<u64, ()> = Cache::new(1 << 20);
    drop(cache.insert(1, (), 100, Kind::Metadata, Access::Demand));
    let stats = cache.stats();
    let fields: Vec<_> = stats.fields().collect();
    let value = |name| fields.iter().find(|(n, _)| *n == name).unwrap().1;
    assert_eq!((value("metadata_size"), value("c_max"), value("meta")), (100, 1 << 20, 1 << 30));
    assert_eq!(stats.size, 100 + stats.hdr_size);
}
