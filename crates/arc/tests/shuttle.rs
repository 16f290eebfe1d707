//! Promise: whatever the schedule, holds, eviction, invalidation and single flight agree.
//!
//! Explores random schedules with shuttle. Only in builds with `--cfg shuttle`, for then the
//! engine's locks and atomics are shuttle's:
//!
//! ```text
//! RUSTFLAGS="--cfg shuttle" cargo test --release -p ogive-arc --test shuttle
//! ```
//!
//! `SHUTTLE_SCHEDULES` sets how many for each policy (500 by default); a failure prints its
//! schedule.
#![cfg(shuttle)]
#![allow(clippy::unwrap_used)]

use ogive_arc::{Access, Cache, Hold, Kind, LoadError, Lookup, Policy, Source};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::{Config, Runner, thread};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

const DEMAND: Access = Access::Demand;

/// Explores schedules of a test, under both policies.
fn explore(test: impl Fn(Policy) + Send + Sync + 'static) {
    let test = Arc::new(test);
    for policy in [Policy::Arc, Policy::Duel] {
        let test = Arc::clone(&test);
        explore_one(move || test(policy));
    }
}

fn explore_one(test: impl Fn() + Send + Sync + 'static) {
    let schedules = std::env::var("SHUTTLE_SCHEDULES").ok().and_then(|n| n.parse().ok());
    let schedules = schedules.unwrap_or(500);
    // A cache under construction does not fit on shuttle's usual stack of 32 KiB.
    let mut config = Config::new();
    config.stack_size = 256 << 10;
    let test = Arc::new(test);
    let random = Arc::clone(&test);
    Runner::new(RandomScheduler::new(schedules), config.clone()).run(move || random());
    Runner::new(PctScheduler::new(3, schedules), config).run(move || test());
}

fn run_all(threads: Vec<Box<dyn FnOnce() + Send>>) {
    let threads: Vec<_> = threads.into_iter().map(thread::spawn).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

fn at_rest<V: Send + Sync + 'static>(cache: &Cache<u64, V>) {
    let census = cache.validate().unwrap();
    assert_eq!((census.holds, census.loading), (0, 0));
    let level = cache.level();
    assert!(level.size_bytes <= level.target_bytes, "{level:?}");
    assert_eq!(cache.stats().anon_size, 0);
}

#[test]
fn holds_against_eviction_removal_and_demotion() {
    explore(|policy| {
        let cache: Cache<u64, u64> = Cache::builder(3).policy(policy).sublists(2).build();
        let (a, b, c) = (cache.clone(), cache.clone(), cache.clone());
        run_all(vec![
            Box::new(move || {
                let held = a.insert(1, 1, 1, Kind::Data, DEMAND);
                drop(a.insert(2, 2, 2, Kind::Metadata, DEMAND));
                let again = held.clone();
                drop(held);
                assert_eq!(*again, 1);
            }),
            Box::new(move || {
                for key in 2..5 {
                    let load = || Ok::<_, ()>((key, 1));
                    let (hold, _) = b.get_or_load(&key, Kind::Data, DEMAND, load).unwrap();
                    assert_eq!(*hold, key);
                    if let Some(hold) = b.get(&1, DEMAND) {
                        assert_eq!(*hold, 1);
                    }
                }
            }),
            Box::new(move || {
                c.hand_over(&4);
                c.demote(&2);
                c.hand_over(&1);
                c.limit_handed(1);
                c.invalidate(&1);
                assert!(c.remove(&3).is_none_or(|value| *value == 3));
                c.reclaim(1);
                c.resize(3);
            }),
        ]);
        at_rest(&cache);
        cache.clear();
        assert_eq!(cache.validate().unwrap(), Default::default());
    });
}

#[test]
fn one_load_at_a_time_with_failures_and_panics() {
    explore(|policy| {
        let cache: Cache<u64, u64> = Cache::builder(10).policy(policy).sublists(1).build();
        let (loading, loads) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let ask = || -> Box<dyn FnOnce() + Send> {
            let (cache, loading, loads) = (cache.clone(), Arc::clone(&loading), Arc::clone(&loads));
            Box::new(move || {
                let load = || {
                    assert_eq!(loading.fetch_add(1, Ordering::SeqCst), 0, "one at a time");
                    let nth = loads.fetch_add(1, Ordering::SeqCst);
                    thread::yield_now();
                    loading.fetch_sub(1, Ordering::SeqCst);
                    match nth {
                        0 => Err("the first fails"),
                        1 => std::panic::resume_unwind(Box::new("the second panics")),
                        _ => Ok((nth, 1)),
                    }
                };
                let ask = || cache.get_or_load(&7, Kind::Data, DEMAND, load);
                match catch_unwind(AssertUnwindSafe(ask)) {
                    Ok(Ok((hold, _))) => assert!(*hold >= 2),
                    Ok(Err(LoadError::Failed(error))) => assert_eq!(error, "the first fails"),
                    Ok(Err(LoadError::Panicked)) | Err(_) => {}
                }
            })
        };
        run_all(vec![ask(), ask(), ask(), ask()]);
        at_rest(&cache);
        // A later caller loads, or finds it.
        let load = || Ok::<_, ()>((9, 1));
        let (_, source) = cache.get_or_load(&7, Kind::Data, DEMAND, load).unwrap();
        assert_ne!(source, Source::Joined);
    });
}

#[test]
fn an_abandoned_claim_passes_to_a_waiter() {
    explore(|policy| {
        let cache: Cache<u64, u64> = Cache::builder(10).policy(policy).sublists(1).build();
        let ask = |value| -> Box<dyn FnOnce() + Send> {
            let cache = cache.clone();
            Box::new(move || {
                let load = || Ok::<_, ()>((value, 1));
                let (hold, _) = cache.get_or_load(&7, Kind::Data, DEMAND, load).unwrap();
                assert!(*hold == 1 || *hold == 2);
            })
        };
        let claim = cache.try_claim(&7, Kind::Data, Access::Prefetch).unwrap();
        run_all(vec![ask(1), ask(2), Box::new(move || drop(claim))]);
        at_rest(&cache);
        assert!(cache.contains(&7));
    });
}

#[test]
fn continuations_of_a_load_run_once_and_hold_its_value() {
    explore(|policy| {
        let cache: Cache<u64, u64> = Cache::builder(10).policy(policy).sublists(1).build();
        let ran = Arc::new(AtomicU64::new(0));
        let ask = |gives_up: bool| -> Box<dyn FnOnce() + Send> {
            let (cache, ran) = (cache.clone(), Arc::clone(&ran));
            Box::new(move || match cache.get_or_claim(&7, Kind::Data, DEMAND) {
                Lookup::Hit(hold) => {
                    assert_eq!(*hold, 1);
                    ran.fetch_add(1, Ordering::SeqCst);
                }
                Lookup::Claimed(claim) => {
                    thread::yield_now();
                    drop(claim.fill(1, 1));
                    ran.fetch_add(1, Ordering::SeqCst);
                }
                Lookup::Loading(joined) if gives_up => {
                    drop(joined);
                    ran.fetch_add(1, Ordering::SeqCst);
                }
                Lookup::Loading(joined) => joined.then(move |end: Result<_, LoadError<()>>| {
                    assert_eq!(end.unwrap().map(|hold: Hold<_, _>| *hold), Some(1));
                    ran.fetch_add(1, Ordering::SeqCst);
                }),
            })
        };
        run_all(vec![ask(false), ask(true), ask(false), ask(false)]);
        assert_eq!(ran.load(Ordering::SeqCst), 4);
        at_rest(&cache);
    });
}

#[test]
fn nothing_read_before_an_invalidation_is_found_after_it() {
    explore(|policy| {
        let cache: Cache<u64, u64> = Cache::builder(10).policy(policy).sublists(1).build();
        let origin = Arc::new(AtomicU64::new(1));
        let read = |cache: &Cache<u64, u64>, origin: &AtomicU64| {
            let at_least = origin.load(Ordering::SeqCst);
            let load = || {
                let version = origin.load(Ordering::SeqCst);
                thread::yield_now();
                Ok::<_, ()>((version, 1))
            };
            let (hold, _) = cache.get_or_load(&7, Kind::Data, DEMAND, load).unwrap();
            (*hold, at_least)
        };
        let reader = || -> Box<dyn FnOnce() + Send> {
            let (cache, origin) = (cache.clone(), Arc::clone(&origin));
            Box::new(move || {
                for _ in 0..2 {
                    read(&cache, &origin);
                }
            })
        };
        let (writer, written) = (cache.clone(), Arc::clone(&origin));
        run_all(vec![
            reader(),
            reader(),
            Box::new(move || {
                for _ in 0..2 {
                    written.fetch_add(1, Ordering::SeqCst);
                    writer.invalidate(&7);
                    // A written value is read back at once.
                    let (version, at_least) = read(&writer, &written);
                    assert!(version >= at_least, "{version} read, {at_least} written");
                }
            }),
        ]);
        at_rest(&cache);
        let (version, at_least) = read(&cache, &origin);
        assert_eq!(version, at_least);
    });
}

#[test]
fn everything_held_is_trimmed_with_the_last_holds() {
    explore(|policy| {
        let cache: Cache<u64, u64> = Cache::builder(2).policy(policy).sublists(2).build();
        let hold = |key| -> Box<dyn FnOnce() + Send> {
            let cache = cache.clone();
            Box::new(move || {
                let one = cache.insert(key, key, 1, Kind::Data, DEMAND);
                let other = cache.insert(key + 10, key, 1, Kind::Data, DEMAND);
                drop(one);
                drop(other);
            })
        };
        run_all(vec![hold(1), hold(2), hold(3)]);
        at_rest(&cache);
    });
}

#[test]
fn the_cache_may_be_dropped_while_holds_stay() {
    explore(|policy| {
        let value = Arc::new(());
        let cache: Cache<u64, Arc<()>> = Cache::builder(10).policy(policy).sublists(2).build();
        let held = cache.insert(1, Arc::clone(&value), 1, Kind::Data, DEMAND);
        drop(cache.insert(2, Arc::clone(&value), 1, Kind::Data, DEMAND));
        let claim = cache.try_claim(&3, Kind::Data, DEMAND).unwrap();
        let filled = Arc::clone(&value);
        run_all(vec![
            Box::new(move || drop(cache)),
            Box::new(move || drop(held)),
            Box::new(move || drop(claim.fill(filled, 1))),
        ]);
        assert_eq!(Arc::strong_count(&value), 1);
    });
}
