//! Promise: threads that share out one trace among them have the hits that one thread has which
//! makes their requests in the same order.
//!
//! Threads take chunks of the trace in turn, and none runs ahead of a thread that was put off its
//! processor by more than a few chunks, so that the order changes as much on a busy machine as on
//! an idle one. Each request takes a number right before it is made, and the pure policy is asked
//! in the order of these numbers: another order is another trace, whatever the policy (a loop that
//! is a little too long for LIRS loses points by it). The bound is so many points below the pure
//! policy; above it there is none.
#![cfg(not(shuttle))]
#![allow(clippy::unwrap_used)]

mod common;

use common::{Golden, golden, keys};
use ogive_arc::policy;
use ogive_arc::policy::duel::Duel;
use ogive_arc::{Access, Cache, Kind, Policy, Source};
use std::convert::Infallible;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The longest trace to take.
const REQUESTS_MAX: u64 = if cfg!(debug_assertions) { 100_000 } else { 1_300_000 };

const THREADS: usize = 4;

/// From so many requests on the bound is for each row. In a shorter one, which loop or scan a
/// policy catches hangs on a few requests, and there is a bound for the mean alone.
const REQUESTS_LONG: u64 = 200_000;

/// So many points the mean over all rows may be below. Short traces alone make the debug build's:
/// there the referee of the duel, which hears of each thread's hits in its own time, has few
/// requests to find the right rule in, and one row that it misjudges weighs much.
const MEAN_MAX: f64 = if cfg!(debug_assertions) { 1.0 } else { 0.2 };

/// Requests a thread takes at a time.
const CHUNK: usize = 32;

/// So many chunks a thread may be ahead of the last one.
const AHEAD: usize = 4;

/// So many entries a sublist must have: in a smaller one a chunk is a large part.
const ENTRIES_PER_SUBLIST_MIN: u64 = 256;

/// Hits of threads that share a trace out, and the keys in the order in which they asked.
fn hits(row: &Golden, keys: &[u64], policy: Policy, sublists: usize) -> (u64, Vec<u64>) {
    let cache: Cache<u64, ()> =
        Cache::builder(row.entries).policy(policy).sublists(sublists).build();
    let (next, hits) = (AtomicUsize::new(0), AtomicU64::new(0));
    let numbers = AtomicUsize::new(0);
    let order: Vec<AtomicU32> = keys.iter().map(|_| AtomicU32::new(0)).collect();
    let at: [AtomicUsize; THREADS] = std::array::from_fn(|_| AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for own_at in &at {
            scope.spawn(|| {
                let mut own = 0;
                loop {
                    let from = next.fetch_add(CHUNK, Ordering::Relaxed);
                    own_at.store(from, Ordering::Release);
                    let is_late = |other: &AtomicUsize| {
                        other.load(Ordering::Acquire).saturating_add(AHEAD * CHUNK) < from
                    };
                    while from < keys.len() && at.iter().any(is_late) {
                        std::thread::yield_now();
                    }
                    let Some(rest) = keys.get(from..).filter(|rest| !rest.is_empty()) else {
                        break;
                    };
                    for (at, key) in (from..).zip(&rest[..CHUNK.min(rest.len())]) {
                        let number = numbers.fetch_add(1, Ordering::Relaxed);
                        order[number].store(at as u32, Ordering::Relaxed);
                        let load = || Ok::<_, Infallible>(((), 1));
                        let loaded = cache.get_or_load(key, Kind::Data, Access::Demand, load);
                        own += u64::from(loaded.unwrap().1 != Source::Loaded);
                    }
                }
                hits.fetch_add(own, Ordering::Relaxed);
            });
        }
    });
    let stats = cache.stats();
    assert_eq!(stats.hits + stats.iohits + stats.misses, row.requests);
    cache.validate().unwrap();
    let order = order.into_iter().map(|at| keys[at.into_inner() as usize]).collect();
    (hits.into_inner(), order)
}

/// Checks every row against `expected`, and the mean over all rows.
fn check(policy: Policy, below_max: f64, mean_max: f64, expected: impl Fn(&Golden, &[u64]) -> u64) {
    let (mut rows, mut sum, mut worst) = (0, 0.0, (0.0_f64, String::new()));
    for (trace, of_trace) in golden(REQUESTS_MAX) {
        let keys = keys(&trace);
        for row in of_trace {
            for sublists in [1, 8] {
                if row.entries < ENTRIES_PER_SUBLIST_MIN * sublists as u64 {
                    continue;
                }
                let (together, order) = hits(&row, &keys, policy, sublists);
                let alone = expected(&row, &order);
                let points = 100.0 * (together as f64 - alone as f64) / row.requests as f64;
                (rows, sum) = (rows + 1, sum + points);
                if points < worst.0 {
                    worst = (points, format!("{} at {}", row.trace, row.entries));
                }
                let long = row.requests >= REQUESTS_LONG;
                assert!(
                    !long || points >= -below_max,
                    "{sublists} sublists: {points:+.3}, {row:?}"
                );
            }
        }
    }
    let mean = sum / f64::from(rows);
    eprintln!("{policy:?}, {rows} rows: mean {mean:+.3}, worst {:+.3}, {}", worst.0, worst.1);
    assert!(rows >= 20 && mean >= -mean_max, "{rows} rows, mean {mean:+.3}");
}

#[test]
fn arc_in_several_threads_has_nearly_the_hits_of_the_pure_one() {
    check(Policy::Arc, 0.5, MEAN_MAX, |row, keys| {
        let mut arc = policy::PlainArc::new(row.entries);
        keys.iter().filter(|&&key| arc.access(key, 1, Kind::Data).is_hit()).count() as u64
    });
}

#[test]
fn the_duel_in_several_threads_has_nearly_the_hits_of_the_pure_one() {
    check(Policy::Duel, 1.5, MEAN_MAX, |row, keys| {
        let mut duel = Duel::new(row.entries);
        keys.iter().filter(|&&key| duel.access(key, 1).is_hit()).count() as u64
    });
}
