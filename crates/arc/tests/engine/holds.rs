//! Promise: a held entry stays as it is and costs eviction nothing. A reader is never refused. The
//! excess over the target goes as holds are released. Values are dropped and hooks called outside
//! all locks.

use ogive_arc::policy::State;
use ogive_arc::{Access, Cache, Hold, Kind, List, Policy, Reason};
use std::sync::{Arc, Mutex};

const DEMAND: Access = Access::Demand;

fn put(cache: &Cache<u64, u64>, key: u64, weight_bytes: u64) -> Hold<u64, u64> {
    cache.insert(key, key, weight_bytes, Kind::Data, DEMAND)
}

#[test]
fn handles_can_go_to_other_threads() {
    fn is_send_sync<T: Send + Sync>() {}
    fn is_send<T: Send>() {}
    is_send_sync::<Cache<u64, Vec<u8>>>();
    is_send_sync::<Hold<u64, Vec<u8>>>();
    is_send::<ogive_arc::Claim<u64, Vec<u8>>>();
    is_send_sync::<ogive_arc::Registration>();
}

#[test]
fn held_entries_are_not_evicted_and_not_looked_at() {
    // Under the duel those that wait would leave, and no eviction would meet the held ones.
    let cache = Cache::builder(1000).policy(Policy::Arc).sublists(4).build();
    let held: Vec<_> = (0..90).map(|key| put(&cache, key, 10)).collect();
    for key in 1000..2000 {
        drop(put(&cache, key, 10));
    }
    assert!(held.iter().enumerate().all(|(key, hold)| **hold == key as u64));
    let stats = cache.stats();
    assert_eq!((stats.evict_skip, stats.evict_not_enough), (0, 0));
    assert_eq!(stats.mru_size - stats.mru_evictable_data, 900);
    assert_eq!(cache.size_bytes(), 1000);
    cache.validate().unwrap();
}

#[test]
fn with_everything_held_arrivals_succeed_and_the_excess_goes_with_the_holds() {
    let cache = Cache::builder(1000).sublists(8).build();
    let mut held: Vec<_> = (0..150).map(|key| put(&cache, key, 10)).collect();
    assert_eq!(cache.size_bytes(), 1500);
    assert_eq!(cache.stats().evict_not_enough, 50);
    assert_eq!(cache.len(), 150);
    cache.validate().unwrap();
    for left in (0..150).rev() {
        held.pop();
        let level = cache.level();
        assert!(level.size_bytes <= level.target_bytes.max(left * 10), "{level:?}, {left} held");
    }
    assert_eq!(cache.size_bytes(), 1000);
    cache.validate().unwrap();
}

#[test]
fn an_entry_heavier_than_the_cache_is_handed_out_and_displaces_nothing() {
    let cache = Cache::builder(1000).sublists(2).build();
    for key in 0..100 {
        drop(put(&cache, key, 10));
    }
    let heavy = put(&cache, 500, 1001);
    assert_eq!((*heavy, cache.contains(&500), cache.len()), (500, false, 100));
    drop(put(&cache, 0, 10));
    let stats = cache.stats();
    assert_eq!((stats.oversize, stats.oversize_size, cache.len()), (1, 1001, 100));
    drop(heavy);
    assert_eq!(cache.stats().anon_size, 0);
    cache.validate().unwrap();
}

#[test]
fn an_entry_can_be_as_large_as_the_cache_whatever_the_number_of_sublists() {
    let cache = Cache::builder(1000).sublists(64).build();
    for key in 0..100 {
        drop(put(&cache, key, 10));
    }
    drop(put(&cache, 500, 1000));
    assert!(cache.contains(&500));
    assert_eq!((cache.len(), cache.size_bytes()), (1, 1000));
    cache.validate().unwrap();
}

#[test]
fn holders_keep_the_value_they_have() {
    let cache = Cache::builder(1000).sublists(2).build();
    let old = put(&cache, 1, 10);
    let again = old.clone();
    drop(cache.insert(1, 100, 20, Kind::Data, DEMAND));
    assert_eq!((*old, *again), (1, 1));
    assert_eq!(cache.get(&1, DEMAND).as_deref(), Some(&100));
    assert_eq!(cache.stats().anon_size, 10);
    assert_eq!(cache.remove(&1).as_deref(), Some(&100));
    drop(old);
    assert_eq!(cache.stats().anon_size, 10);
    drop(again);
    assert_eq!((cache.stats().anon_size, cache.size_bytes()), (0, 0));
    cache.validate().unwrap();
}

#[test]
fn a_replaced_entry_stays_on_its_list() {
    let cache = Cache::builder(1000).sublists(1).build();
    drop(put(&cache, 1, 10));
    drop(cache.get(&1, DEMAND));
    assert_eq!(cache.state(&1), Some(State::Mfu));
    drop(put(&cache, 1, 30));
    assert_eq!(cache.state(&1), Some(State::Mfu));
    drop(put(&cache, 2, 10));
    drop(put(&cache, 2, 10));
    assert_eq!(cache.state(&2), Some(State::Mru));
    assert_eq!(cache.size_bytes(), 40);
}

#[test]
fn a_demoted_entry_leaves_its_ghost() {
    let cache = Cache::builder(1000).sublists(1).build();
    drop(put(&cache, 1, 10));
    assert!(cache.demote(&1) && !cache.demote(&1));
    assert_eq!((cache.state(&1), cache.size_bytes()), (Some(State::MruGhost), 0));
    let held = put(&cache, 1, 10);
    assert_eq!(cache.stats().mru_ghost_hits, 1);
    assert!(cache.demote(&1));
    assert_eq!(cache.state(&1), Some(State::Mfu), "not while it is held");
    drop(held);
    assert_eq!(cache.state(&1), Some(State::MfuGhost));
    let held = put(&cache, 1, 10);
    assert!(cache.demote(&1));
    drop(cache.get(&1, DEMAND));
    drop(held);
    assert_eq!(cache.state(&1), Some(State::Mfu), "a demand has asked for it since");
    assert_eq!(cache.stats().demotions, 2);
    cache.validate().unwrap();
}

#[test]
fn the_eviction_hook_gets_evicted_entries_outside_all_locks() {
    type Heard = Vec<(u64, u64, u64, List, bool, Reason)>;
    let heard: Arc<Mutex<Heard>> = Arc::default();
    let this: Arc<Mutex<Option<Cache<u64, u64>>>> = Arc::default();
    let (log, cell) = (Arc::clone(&heard), Arc::clone(&this));
    let cache = Cache::builder(30).policy(Policy::Arc).sublists(1).on_evict(move |eviction| {
        // It would wait for itself if a lock were held.
        let cache = cell.lock().unwrap().clone().unwrap();
        assert!(!cache.contains(&eviction.key));
        let weight_bytes = eviction.weight_bytes;
        let (list, prefetched) = (eviction.list, eviction.prefetched);
        let value = Arc::into_inner(eviction.value).unwrap();
        let row = (eviction.key, value, weight_bytes, list, prefetched, eviction.reason);
        log.lock().unwrap().push(row);
    });
    let cache = cache.build();
    *this.lock().unwrap() = Some(cache.clone());
    for key in 0..3 {
        drop(cache.insert(key, key + 100, 10, Kind::Data, Access::Prefetch));
    }
    drop(cache.get(&1, DEMAND));
    drop(cache.get(&1, DEMAND));
    drop(put(&cache, 3, 10));
    drop(cache.remove(&2));
    cache.demote(&1);
    this.lock().unwrap().take();
    let heard = std::mem::take(&mut *heard.lock().unwrap());
    let capacity = (0, 100, 10, List::Mru, true, Reason::Capacity);
    assert_eq!(heard, [capacity, (1, 101, 10, List::Mfu, false, Reason::Demoted)]);
}

/// A value that uses the cache when it is dropped.
struct Nosy(Arc<Mutex<Option<Cache<u64, Self>>>>);

impl Drop for Nosy {
    fn drop(&mut self) {
        let cache = self.0.lock().unwrap().clone();
        cache.unwrap().validate().unwrap();
    }
}

#[test]
fn values_are_dropped_outside_all_locks() {
    let cache: Cache<u64, Nosy> = Cache::builder(50).sublists(1).build();
    let this = Arc::new(Mutex::new(Some(cache.clone())));
    for round in 0..3 {
        for key in 0..20 {
            drop(cache.insert(key, Nosy(Arc::clone(&this)), 10, Kind::Data, DEMAND));
        }
        let held = cache.get(&(19 - round), DEMAND);
        cache.invalidate(&(19 - round));
        drop(held);
        cache.demote(&15);
        cache.resize(40);
        cache.reclaim(10);
        cache.clear();
    }
    cache.validate().unwrap();
    let last = this.lock().unwrap().take();
    drop(last);
}
