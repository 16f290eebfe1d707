//! Promise: one load a key however many callers ask, under no lock. A loader that fails, panics or
//! gives up leaves no waiter stuck. Bytes that were read before an invalidation are not kept.

use crate::eventually::eventually;
use ogive_arc::{Access, Cache, Claim, Joined, Kind, LoadError, Lookup, Source};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;

const DEMAND: Access = Access::Demand;

fn cache() -> Cache<u64, u64> {
    Cache::builder(1000).sublists(4).build()
}

fn load(cache: &Cache<u64, u64>, key: u64, value: u64) -> (u64, Source) {
    let load = || Ok::<_, String>((value, 10));
    let (hold, source) = cache.get_or_load(&key, Kind::Data, DEMAND, load).unwrap();
    (*hold, source)
}

/// Waits until so many wait for a load (as counted when they join).
fn wait_for_joined(cache: &Cache<u64, u64>, count: u64) {
    eventually(&format!("{count} wait for a load"), || cache.stats().iohits >= count);
}

#[test]
fn many_callers_make_one_load() {
    let cache = cache();
    let loads = AtomicU64::new(0);
    let claim = cache.try_claim(&1, Kind::Data, DEMAND).unwrap();
    thread::scope(|scope| {
        let ask = || {
            let load = || {
                loads.fetch_add(1, Ordering::Relaxed);
                Ok::<_, String>((0, 10))
            };
            cache.get_or_load(&1, Kind::Data, DEMAND, load).map(|(hold, source)| (*hold, source))
        };
        let askers: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        wait_for_joined(&cache, 8);
        assert!(cache.get(&1, DEMAND).is_none());
        assert!(cache.get_cached_only(&1, DEMAND).is_none());
        assert!(cache.try_claim(&1, Kind::Data, Access::Prefetch).is_none());
        drop(claim.fill(77, 10));
        for asker in askers {
            assert_eq!(asker.join().unwrap(), Ok((77, Source::Joined)));
        }
    });
    assert_eq!(loads.load(Ordering::Relaxed), 0);
    let stats = cache.stats();
    assert_eq!((stats.iohits, stats.joined_waits, stats.loads), (8, 8, 1));
    assert_eq!((stats.misses, stats.cached_only_in_progress), (2, 1));
    assert_eq!(cache.validate().unwrap().holds, 0);
}

#[test]
fn an_error_goes_to_all_waiters_and_the_next_caller_loads_again() {
    let cache = cache();
    let claim = cache.try_claim(&1, Kind::Data, DEMAND).unwrap();
    thread::scope(|scope| {
        let ask = || {
            let load = || Ok::<_, String>((0, 10));
            cache.get_or_load(&1, Kind::Data, DEMAND, load).map(|(hold, _)| *hold)
        };
        let askers: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
        wait_for_joined(&cache, 4);
        claim.fail("disk on fire".to_owned());
        for asker in askers {
            assert_eq!(asker.join().unwrap(), Err(LoadError::Failed("disk on fire".to_owned())));
        }
    });
    assert_eq!(cache.state(&1), None);
    assert_eq!(load(&cache, 1, 5), (5, Source::Loaded));
    assert_eq!(cache.stats().load_errors, 1);
    cache.validate().unwrap();
}

#[test]
fn an_error_of_another_type_makes_the_waiter_load() {
    let cache = cache();
    let claim = cache.try_claim(&1, Kind::Data, DEMAND).unwrap();
    thread::scope(|scope| {
        let asker = scope.spawn(|| load(&cache, 1, 6));
        wait_for_joined(&cache, 1);
        claim.fail(404_u16);
        assert_eq!(asker.join().unwrap(), (6, Source::Loaded));
    });
}

#[test]
fn a_panic_continues_in_its_caller_and_wakes_the_waiters() {
    let cache = cache();
    let (start, go) = (Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        let loader = scope.spawn(|| {
            let load = || -> Result<(u64, u64), String> {
                start.wait();
                go.wait();
                panic!("in the loader");
            };
            let ask = || cache.get_or_load(&1, Kind::Data, DEMAND, load).map(|(hold, _)| *hold);
            catch_unwind(AssertUnwindSafe(ask)).is_err()
        });
        start.wait();
        let asker = scope.spawn(|| {
            let load = || Ok::<_, String>((0, 1));
            cache.get_or_load(&1, Kind::Data, DEMAND, load).map(|(hold, _)| *hold)
        });
        wait_for_joined(&cache, 1);
        go.wait();
        assert!(loader.join().unwrap());
        assert_eq!(asker.join().unwrap(), Err(LoadError::Panicked));
    });
    assert_eq!(load(&cache, 1, 5), (5, Source::Loaded));
    assert_eq!(cache.stats().load_panics, 1);
    cache.validate().unwrap();
}

#[test]
fn an_abandoned_claim_makes_one_waiter_the_loader() {
    let cache = cache();
    let claim = cache.try_claim(&1, Kind::Data, Access::Prefetch).unwrap();
    thread::scope(|scope| {
        let askers: Vec<_> = (0..6)
            .map(|n| {
                scope.spawn({
                    let cache = &cache;
                    move || load(cache, 1, n)
                })
            })
            .collect();
        wait_for_joined(&cache, 6);
        drop(claim);
        let got: Vec<_> = askers.into_iter().map(|asker| asker.join().unwrap()).collect();
        let loaded: Vec<_> = got.iter().filter(|(_, s)| *s == Source::Loaded).collect();
        assert_eq!(loaded.len(), 1, "{got:?}");
        assert!(got.iter().all(|(value, _)| *value == loaded[0].0), "{got:?}");
    });
    assert_eq!(cache.stats().loads_abandoned, 1);
    cache.validate().unwrap();
}

#[test]
fn a_value_invalidated_while_loading_goes_to_its_waiters_alone() {
    let cache = cache();
    let claim = cache.try_claim(&1, Kind::Data, DEMAND).unwrap();
    thread::scope(|scope| {
        let before = scope.spawn(|| load(&cache, 1, 0));
        wait_for_joined(&cache, 1);
        assert!(cache.invalidate(&1));
        // A later caller must not join.
        assert_eq!(load(&cache, 1, 2), (2, Source::Loaded));
        let old = claim.fill(1, 10);
        assert_eq!(before.join().unwrap(), (1, Source::Joined));
        assert_eq!(*old, 1);
        assert_eq!(cache.get(&1, DEMAND).as_deref(), Some(&2));
    });
    assert_eq!(cache.stats().loads_doomed, 1);
    let stats = cache.stats();
    assert_eq!((stats.anon_size, stats.data_size), (0, 10));
    cache.validate().unwrap();
}

#[test]
fn a_value_put_while_loading_wins_over_the_load() {
    let cache = cache();
    let claim = cache.try_claim(&1, Kind::Data, DEMAND).unwrap();
    drop(cache.insert(1, 2, 10, Kind::Data, DEMAND));
    drop(claim.fill(1, 10));
    assert_eq!(cache.get(&1, DEMAND).as_deref(), Some(&2));
    cache.validate().unwrap();
}

#[test]
fn a_load_runs_under_no_lock() {
    // One sublist, so any lock held would be in the way.
    let cache: Cache<u64, u64> = Cache::builder(1000).sublists(1).build();
    let outer = || {
        assert_eq!(load(&cache, 2, 20), (20, Source::Loaded));
        assert_eq!(load(&cache, 2, 21), (20, Source::Hit));
        cache.invalidate(&3);
        cache.reclaim(1);
        Ok::<_, String>((10, 10))
    };
    let (hold, source) = cache.get_or_load(&1, Kind::Data, DEMAND, outer).unwrap();
    assert_eq!((*hold, source), (10, Source::Loaded));
}

#[test]
fn a_claim_can_be_filled_by_another_thread() {
    let cache = cache();
    let (send, receive) = mpsc::channel::<Claim<u64, u64>>();
    let prefetcher = thread::spawn(move || receive.iter().for_each(|claim| drop(claim.fill(9, 1))));
    send.send(cache.try_claim(&1, Kind::Data, Access::Prefetch).unwrap()).unwrap();
    assert_eq!(load(&cache, 1, 0).0, 9);
    drop(send);
    prefetcher.join().unwrap();
}

#[test]
fn a_cache_lives_as_long_as_its_claims_and_holds() {
    let cache: Cache<u64, Arc<u64>> = Cache::new(1000);
    let value = Arc::new(5);
    let held = cache.insert(1, Arc::clone(&value), 1, Kind::Data, DEMAND);
    drop(cache.insert(2, Arc::clone(&value), 1, Kind::Data, DEMAND));
    let claim = cache.try_claim(&3, Kind::Data, DEMAND).unwrap();
    drop(cache);
    assert_eq!(Arc::strong_count(&value), 3);
    drop(claim);
    // Only what is held is left.
    assert_eq!(Arc::strong_count(&value), 2);
    assert_eq!(**held, 5);
    drop(held);
    assert_eq!(Arc::strong_count(&value), 1);
}

fn claim(cache: &Cache<u64, u64>, key: u64) -> Claim<u64, u64> {
    match cache.get_or_claim(&key, Kind::Data, DEMAND) {
        Lookup::Claimed(claim) => claim,
        other => panic!("{other:?}"),
    }
}

fn join(cache: &Cache<u64, u64>, key: u64) -> Joined<u64, u64> {
    match cache.get_or_claim(&key, Kind::Data, DEMAND) {
        Lookup::Loading(joined) => joined,
        other => panic!("{other:?}"),
    }
}

/// The end of a load, as a continuation gets it.
type End = Result<Option<u64>, LoadError<String>>;

fn go_on(joined: Joined<u64, u64>) -> mpsc::Receiver<End> {
    let (send, receive) = mpsc::channel();
    joined.then(move |end| {
        send.send(end.map(|hold| hold.map(|hold| *hold))).unwrap();
    });
    receive
}

#[test]
fn a_continuation_runs_when_the_load_ends_in_any_way() {
    let cache = cache();
    let loading = claim(&cache, 1);
    let (early, other) = (go_on(join(&cache, 1)), go_on(join(&cache, 1)));
    assert!(early.try_recv().is_err());
    drop(loading.fill(7, 10));
    assert_eq!((early.try_recv(), other.try_recv()), (Ok(Ok(Some(7))), Ok(Ok(Some(7)))));
    assert!(matches!(cache.get_or_claim(&1, Kind::Data, DEMAND), Lookup::Hit(hold) if *hold == 7));

    let loading = claim(&cache, 2);
    let late = join(&cache, 2);
    drop(loading.fill(8, 10));
    assert_eq!(go_on(late).try_recv(), Ok(Ok(Some(8))), "it had ended before");

    let loading = claim(&cache, 3);
    let failed = go_on(join(&cache, 3));
    loading.fail("no".to_owned());
    assert_eq!(failed.try_recv(), Ok(Err(LoadError::Failed("no".to_owned()))));

    let loading = claim(&cache, 3);
    let other_type = go_on(join(&cache, 3));
    loading.fail(5_u8);
    assert_eq!(other_type.try_recv(), Ok(Ok(None)));

    let loading = claim(&cache, 3);
    let given_up = go_on(join(&cache, 3));
    drop(loading);
    assert_eq!(given_up.try_recv(), Ok(Ok(None)));

    let loading = claim(&cache, 3);
    let panicked = go_on(join(&cache, 3));
    let panic = || {
        let _loading = loading;
        std::panic::resume_unwind(Box::new("a loader panics"));
    };
    assert!(catch_unwind(AssertUnwindSafe(panic)).is_err());
    assert_eq!(panicked.try_recv(), Ok(Err(LoadError::Panicked)));

    let stats = cache.stats();
    assert_eq!((stats.iohits, stats.joined_waits), (7, 7));
    assert_eq!((stats.loads, stats.load_errors, stats.loads_abandoned), (2, 2, 1));
    assert_eq!(stats.load_panics, 1);
    assert_eq!(cache.validate().unwrap().holds, 0);
}

#[test]
fn a_share_in_a_load_that_is_given_up_holds_nothing() {
    let cache = cache();
    let loading = claim(&cache, 1);
    drop(join(&cache, 1));
    let waiting = join(&cache, 1);
    drop(loading.fill(7, 10));
    assert_eq!(waiting.wait::<String>().unwrap().map(|hold| *hold), Some(7));
    let loading = claim(&cache, 2);
    drop(join(&cache, 2));
    drop(loading);
    assert_eq!(cache.validate().unwrap().holds, 0);
    assert!(cache.demote(&1));
}

#[test]
fn a_continuation_may_ask_for_the_key_again_and_the_cache_may_end() {
    let cache = cache();
    let loading = claim(&cache, 1);
    let (send, receive) = mpsc::channel();
    let again = cache.clone();
    join(&cache, 1).then(move |end: Result<_, LoadError<String>>| {
        assert!(end.unwrap().is_none());
        send.send(matches!(again.get_or_claim(&1, Kind::Data, DEMAND), Lookup::Claimed(_)))
            .unwrap();
    });
    drop(loading);
    assert_eq!(receive.try_recv(), Ok(true));
    let loading = claim(&cache, 2);
    let held = Arc::new(std::sync::Mutex::new(None));
    let keep = Arc::clone(&held);
    join(&cache, 2).then(move |end: Result<_, LoadError<String>>| {
        *keep.lock().unwrap() = end.unwrap();
    });
    drop(cache);
    drop(loading.fill(9, 10));
    assert_eq!(held.lock().unwrap().take().map(|hold| *hold), Some(9));
}
