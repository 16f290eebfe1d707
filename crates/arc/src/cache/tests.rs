//! The unsafe parts at work with several threads, small enough for an interpreter that checks
//! every access (`cargo +nightly miri test -p ogive-arc --lib`).

use super::{Cache, Hold};
use crate::policy::{Access, Kind};
use std::sync::Arc;

/// A value that names its key.
type Value = Box<(u64, u64)>;

fn work(cache: &Cache<String, Value>, thread: u64, steps: u64) {
    let mut held: Vec<Hold<String, Value>> = Vec::new();
    for step in 0..steps {
        let number = (step * 7 + thread * 3) % 9;
        let key = number.to_string();
        match step % 11 {
            0 | 5 => held.push(cache.insert(
                key,
                Box::new((number, step)),
                1 + number % 3,
                Kind::Data,
                Access::Demand,
            )),
            1 => drop(cache.remove(&key)),
            2 => drop(cache.demote(&key)),
            3 => held.truncate(1),
            4 => cache.resize(4 + step % 5),
            6 => {
                let load = || Ok::<_, ()>((Box::new((number, step)), 1));
                let loaded = cache.get_or_load(&key, Kind::Metadata, Access::Prefetch, load);
                assert_eq!(loaded.map(|(hold, _)| hold.0), Ok(number));
            }
            _ => {
                if let Some(hold) = cache.get(&key, Access::Demand) {
                    assert_eq!(hold.0, number);
                    held.push(hold.clone());
                }
            }
        }
    }
    held.iter().for_each(|hold| assert!(hold.0 < 9));
}

#[test]
fn threads_that_do_everything_read_no_freed_value() {
    let steps = if cfg!(miri) { 40 } else { 20_000 };
    for (sublists, exact) in [(1, false), (2, true)] {
        let cache = Cache::<String, Value>::builder(8).sublists(sublists).exact(exact).build();
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let cache = &cache;
                scope.spawn(move || work(cache, thread, steps));
            }
        });
        assert_eq!(cache.validate().map(|census| census.holds), Ok(0));
    }
}

#[test]
fn the_last_hold_of_a_cache_that_is_gone_frees_it_all() {
    let value = Arc::new(());
    let cache: Cache<String, Arc<()>> = Cache::builder(100).sublists(2).build();
    let put =
        |key: &str| cache.insert(key.to_owned(), Arc::clone(&value), 1, Kind::Data, Access::Demand);
    let (one, two) = (put("one"), put("two"));
    drop(put("three"));
    let again = one.clone();
    drop(cache);
    assert_eq!(Arc::strong_count(&value), 3);
    std::thread::scope(|scope| {
        scope.spawn(move || drop(one));
        scope.spawn(move || drop((again, two)));
    });
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn a_sublist_that_shrinks_keeps_its_entries() {
    // An interpreter takes longer than in proportion for a large table.
    let count = if cfg!(miri) { 120 } else { 400 };
    let cache: Cache<u64, u64> = Cache::builder(count).sublists(1).build();
    for key in 0..count {
        drop(cache.insert(key, key, 1, Kind::Data, Access::Demand));
    }
    let held = cache.get(&(count - 1), Access::Demand);
    cache.reclaim(count - 10);
    assert_eq!(cache.validate().map(|census| (census.resident, census.holds)), Ok((10, 1)));
    drop(held);
    cache.reclaim(0);
    let left: Vec<_> = (0..count).filter(|key| cache.contains(key)).collect();
    assert_eq!(left.len(), 10);
    assert!(left.iter().all(|key| cache.get(key, Access::Demand).as_deref() == Some(key)));
    assert!(cache.validate().is_ok());
    (1000..1000 + count * 3 / 4)
        .for_each(|key| drop(cache.insert(key, key, 1, Kind::Data, Access::Demand)));
    assert!(cache.validate().is_ok());
}
