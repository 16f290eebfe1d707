//! Promise: threads that share out one trace among them have the hits that one thread has which
//! makes their requests in the same order.
//!
//! A seed draws the thread that takes the next chunk of the trace, and no thread asks out of turn.
//! So the order is that of the trace, and which hits each thread knows of is the same however the
//! machine runs them. The bound is so many points below the pure policy; above it there is none.
//!
//! The long run has the threads go at the same time, too. Then no thread runs ahead of a
//! descheduled one by more than a few chunks. So the order changes as much on a busy machine as on
//! an idle one. Each request takes a number right before it is made, and the pure policy is asked
//! in the order of these numbers. Another order is another trace under any policy: a loop that is a
//! little too long for LIRS loses points by it.
#![cfg(not(shuttle))]
#![allow(clippy::unwrap_used)]

mod common;
#[path = "../../../tests/eventually.rs"]
mod eventually;
#[path = "../../../tests/seed.rs"]
mod seed;
#[path = "../../../tests/skipped.rs"]
mod skipped;

use common::{Golden, Sequence, golden, keys};
use eventually::BOUND;
use ogive_arc::policy;
use ogive_arc::policy::duel::Duel;
use ogive_arc::{Access, Cache, Kind, Policy, Source};
use std::cell::Cell;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

/// The longest trace to take.
const REQUESTS_MAX: u64 = if cfg!(debug_assertions) { 100_000 } else { 1_300_000 };

const THREADS: usize = 4;

/// From so many requests on the bound is for each row. In a shorter one, which loop or scan a
/// policy catches hangs on a few requests, and there is a bound for the mean alone.
const REQUESTS_LONG: u64 = 200_000;

/// So many points the mean over all rows may be below.
const MEAN_MAX: f64 = 0.2;

/// The same of threads that go at the same time. The debug build has only short traces. There the
/// referee gets each thread's hits late, and has few requests to find the right rule. One row that
/// it misjudges weighs much.
const MEAN_MAX_AT_ONCE: f64 = if cfg!(debug_assertions) { 1.0 } else { MEAN_MAX };

/// Requests a thread takes at a time.
const CHUNK: usize = 32;

/// So many chunks a thread may be ahead of the last one.
const AHEAD: usize = 4;

/// So many entries a sublist must have: in a smaller one a chunk is a large part.
const ENTRIES_PER_SUBLIST_MIN: u64 = 256;

/// More rings than there are ever threads in this program, so that each has its own.
const RINGS: usize = 64;

/// Whether a request is a hit.
fn is_hit(cache: &Cache<u64, ()>, key: u64) -> bool {
    let load = || Ok::<_, Infallible>(((), 1));
    let loaded = cache.get_or_load(&key, Kind::Data, Access::Demand, load);
    loaded.unwrap().1 != Source::Loaded
}

/// The thread of each chunk, and the next chunk.
struct Turns {
    of: Vec<usize>,
    next: Mutex<usize>,
    changed: [Condvar; THREADS],
}

impl Turns {
    fn new(chunks: usize, seed: u64) -> Self {
        let mut random = Sequence(seed);
        let of = (0..chunks).map(|_| random.below(THREADS as u64) as usize).collect();
        Self { of, next: Mutex::default(), changed: std::array::from_fn(|_| Condvar::new()) }
    }

    /// Waits until it is the turn of a chunk, which it is until the guard is passed on.
    fn wait(&self, chunk: usize) -> MutexGuard<'_, usize> {
        let changed = &self.changed[self.of[chunk]];
        let is_early = |next: &mut usize| *next != chunk;
        let waited = changed.wait_timeout_while(self.next.lock().unwrap(), BOUND, is_early);
        let (next, timeout) = waited.unwrap();
        assert!(!timeout.timed_out(), "chunk {chunk} has its turn, after {}", *next);
        next
    }

    fn pass(&self, mut next: MutexGuard<'_, usize>) {
        *next += 1;
        if let Some(thread) = self.of.get(*next) {
            self.changed[*thread].notify_one();
        }
    }
}

/// Hits of threads that take turns, drawn by a seed.
fn hits_in_turns(
    row: &Golden,
    keys: &[u64],
    (policy, sublists): (Policy, usize),
    seed: u64,
) -> u64 {
    let cache = Cache::builder(row.entries).policy(policy).sublists(sublists).rings(RINGS);
    let (cache, hits) = (cache.build(), AtomicU64::new(0));
    let turns = Turns::new(keys.len().div_ceil(CHUNK), seed);
    std::thread::scope(|scope| {
        let ask = |thread| {
            let (cache, hits, turns) = (&cache, &hits, &turns);
            move || {
                let mut own = 0;
                for (at, chunk) in keys.chunks(CHUNK).enumerate() {
                    if turns.of[at] == thread {
                        let turn = turns.wait(at);
                        own += chunk.iter().filter(|&&key| is_hit(cache, key)).count();
                        turns.pass(turn);
                    }
                }
                hits.fetch_add(own as u64, Ordering::Relaxed);
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(ask(thread))).collect();
        // A thread that has been joined has given its number back.
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    let stats = cache.stats();
    assert_eq!(stats.hits + stats.misses, row.requests);
    cache.validate().unwrap();
    hits.into_inner()
}

/// Hits of threads that share a trace out, and the keys in the order in which they asked.
fn hits_at_once(row: &Golden, keys: &[u64], policy: Policy, sublists: usize) -> (u64, Vec<u64>) {
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
                        own += u64::from(is_hit(&cache, *key));
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

/// One test at a time, by a thread that has ended before the next. Threads have numbers, the least
/// that is free, and rings are emptied in the order of these numbers.
fn alone(test: impl FnOnce() + Send) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock();
    std::thread::scope(|scope| scope.spawn(test).join().unwrap());
}

/// Checks every row against `expected`, and the mean over all rows. The threads take turns; in the
/// long run also threads that do not.
fn check(policy: Policy, below_max: f64, expected: impl Fn(&Golden, &[u64]) -> u64) {
    let (is_first, seed) = (Cell::new(true), seed::seed());
    let in_turns = |row: &Golden, keys: &[u64], sublists| {
        let hits = hits_in_turns(row, keys, (policy, sublists), seed);
        if is_first.take() {
            let again = hits_in_turns(row, keys, (policy, sublists), seed);
            assert_eq!(again, hits, "the same turns, the same hits");
        }
        (hits, expected(row, keys))
    };
    check_rows(policy, below_max, MEAN_MAX, in_turns);
    if skipped::is_nightly() {
        check_rows(policy, below_max, MEAN_MAX_AT_ONCE, |row, keys, sublists| {
            let (together, order) = hits_at_once(row, keys, policy, sublists);
            (together, expected(row, &order))
        });
    }
}

/// Checks hits of many and of one for every row, and the mean over all rows.
fn check_rows(
    policy: Policy,
    below_max: f64,
    mean_max: f64,
    hits: impl Fn(&Golden, &[u64], usize) -> (u64, u64),
) {
    let (mut rows, mut sum, mut worst) = (0, 0.0, (0.0_f64, String::new()));
    for (trace, of_trace) in golden(REQUESTS_MAX) {
        let keys = keys(&trace);
        for row in of_trace {
            for sublists in [1, 8] {
                if row.entries < ENTRIES_PER_SUBLIST_MIN * sublists as u64 {
                    continue;
                }
                let (together, alone) = hits(&row, &keys, sublists);
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
    let alone_hits = |row: &Golden, keys: &[u64]| {
        let mut arc = policy::PlainArc::new(row.entries);
        keys.iter().filter(|&&key| arc.access(key, 1, Kind::Data).is_hit()).count() as u64
    };
    alone(|| check(Policy::Arc, 0.5, alone_hits));
}

#[test]
fn the_duel_in_several_threads_has_nearly_the_hits_of_the_pure_one() {
    let alone_hits = |row: &Golden, keys: &[u64]| {
        let mut duel = Duel::new(row.entries);
        keys.iter().filter(|&&key| duel.access(key, 1).is_hit()).count() as u64
    };
    alone(|| check(Policy::Duel, 1.5, alone_hits));
}
