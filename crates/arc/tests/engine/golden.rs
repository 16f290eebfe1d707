//! Promise: the policy is ARC as printed, hit for hit. The concurrent cache is that policy: it has
//! the same hits with one sublist, and nearly the same with many.
//!
//! Counts come from `golden.csv`; those of the paper's traces agree with two published
//! implementations, the rest with libCacheSim. Debug builds leave the largest traces out.

use crate::common::{Golden, golden, keys};
use ogive_arc::policy;
use ogive_arc::{Access, Cache, Kind, Policy, Source};
use std::convert::Infallible;
use std::sync::Mutex;

/// The longest trace that is quick to run: in a debug build, or several times in a release
/// build.
const SHORT: u64 = if cfg!(debug_assertions) { 100_000 } else { 1_300_000 };

/// The longest trace that does not take minutes in a release build.
const MEDIUM: u64 = if cfg!(debug_assertions) { SHORT } else { 6_000_000 };

/// The longest trace to take: all of them in a release build.
const ALL: u64 = if cfg!(debug_assertions) { SHORT } else { u64::MAX };

/// Runs `check` for every row, on as many threads as there are processors.
fn for_all_rows(requests_max: u64, check: impl Fn(&Golden, &[u64]) + Sync) -> usize {
    let mut rows = 0;
    for (trace, of_trace) in golden(requests_max) {
        let keys = keys(&trace);
        assert_eq!(keys.len() as u64, of_trace[0].requests, "requests of {trace}");
        rows += of_trace.len();
        let todo = Mutex::new(of_trace);
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some(row) = { todo.lock().unwrap().pop() } {
                        check(&row, &keys);
                    }
                });
            }
        });
    }
    eprintln!("{rows} rows");
    rows
}

fn cache_hits(row: &Golden, keys: &[u64], sublists: usize, exact: bool) -> u64 {
    let builder = Cache::<u64, ()>::builder(row.entries).policy(Policy::Arc).sublists(sublists);
    let cache = builder.exact(exact).rings(crate::common::RINGS).build();
    let mut hits = 0;
    for key in keys {
        let load = || Ok::<_, Infallible>(((), 1));
        let (_, source) = cache.get_or_load(key, Kind::Data, Access::Demand, load).unwrap();
        hits += u64::from(source == Source::Hit);
    }
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.hits + stats.misses), (hits, row.requests));
    cache.validate().unwrap();
    hits
}

#[test]
fn the_policy_has_exactly_the_published_hits() {
    let check = |row: &Golden, keys: &[u64], kind| {
        let mut policy = policy::PlainArc::new(row.entries);
        let mut hits = 0;
        for &key in keys {
            hits += u64::from(policy.access(key, 1, kind).is_hit());
        }
        assert_eq!(hits, row.hits, "{row:?}, {kind:?}");
        policy.validate().unwrap();
    };
    assert!(for_all_rows(ALL, |row, keys| check(row, keys, Kind::Data)) >= 50);
    assert!(for_all_rows(SHORT, |row, keys| check(row, keys, Kind::Metadata)) >= 50);
}

#[test]
fn the_cache_with_one_sublist_has_exactly_the_published_hits() {
    let check = |row: &Golden, keys: &[u64]| {
        assert_eq!(cache_hits(row, keys, 1, true), row.hits, "{row:?}");
    };
    assert!(for_all_rows(ALL, check) >= 50);
}

/// So many entries a sublist must have for the promise; by default they have 512.
const ENTRIES_PER_SUBLIST_MIN: u64 = 128;

#[test]
fn the_cache_with_many_sublists_is_near_the_published_hits() {
    let runs: &[_] = if cfg!(debug_assertions) {
        &[(1, SHORT), (8, SHORT), (16, SHORT)]
    } else {
        &[(1, ALL), (2, ALL), (8, ALL), (16, MEDIUM), (32, MEDIUM), (64, ALL)]
    };
    for &(sublists, requests_max) in runs {
        let worst = Mutex::new([(0.0_f64, String::new()), (0.0_f64, String::new())]);
        let rows = for_all_rows(requests_max, |row, keys| {
            let hits = cache_hits(row, keys, sublists, false);
            let points = 100.0 * (hits as f64 - row.hits as f64) / row.requests as f64;
            let promised = row.entries >= ENTRIES_PER_SUBLIST_MIN * sublists as u64;
            let worst = &mut worst.lock().unwrap()[usize::from(promised)];
            if promised {
                assert!(points >= -0.3, "{sublists} sublists: {points:+.3} points, {row:?}");
            }
            if points.abs() > worst.0.abs() {
                *worst = (points, format!("{} at {} entries", row.trace, row.entries));
            }
        });
        assert!(rows >= 50);
        let [(tiny, tiny_at), (points, at)] = worst.into_inner().unwrap();
        eprintln!("{sublists} sublists: worst {points:+.3} points, {at}");
        eprintln!("{sublists} sublists of few entries: worst {tiny:+.3} points, {tiny_at}");
        assert!(points.abs() <= 0.5, "{sublists} sublists: {points:+.3} points, {at}");
    }
}
