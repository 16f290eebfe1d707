//! The candidates behind one trait: each with its own recommended settings, all with room for the
//! same number of entries, all with `u64` keys and values behind a count.

use lru::LruCache;
use ogive_arc::{Access, Cache, Kind, Policy};
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

/// What is cached: 8 KiB, or 64 bytes where the bytes themselves are not read.
pub type Page = Box<[u8]>;

/// A cache under test.
pub trait Candidate: Send + Sync {
    /// Its name in tables.
    fn name(&self) -> &'static str;
    /// Looks a key up as its users do, and lets `read` see the value while it is held.
    fn get(&self, key: u64, read: &mut dyn FnMut(&[u8])) -> bool;
    /// Puts a value in.
    fn insert(&self, key: u64, value: Page);
    /// Locks taken so far, where the candidate counts them.
    fn locks(&self) -> Option<u64> {
        None
    }
    /// Whether entries ever leave.
    fn evicts(&self) -> bool {
        true
    }
}

struct Ogive(&'static str, Cache<u64, Page>);

impl Ogive {
    fn new(name: &'static str, policy: Policy, entries: usize) -> Self {
        let builder = Cache::builder(entries as u64).expected_weight_bytes(1).policy(policy);
        Self(name, builder.build())
    }
}

impl Candidate for Ogive {
    fn name(&self) -> &'static str {
        self.0
    }
    fn get(&self, key: u64, read: &mut dyn FnMut(&[u8])) -> bool {
        self.1.get(&key, Access::Demand).map(|hold| read(&hold)).is_some()
    }
    fn insert(&self, key: u64, value: Page) {
        drop(self.1.insert(key, value, 1, Kind::Data, Access::Demand));
    }
    fn locks(&self) -> Option<u64> {
        Some(self.1.stats().locks)
    }
}

struct Quick(&'static str, quick_cache::sync::Cache<u64, Arc<Page>>);

impl Candidate for Quick {
    fn name(&self) -> &'static str {
        self.0
    }
    fn get(&self, key: u64, read: &mut dyn FnMut(&[u8])) -> bool {
        self.1.get(&key).map(|value| read(&value)).is_some()
    }
    fn insert(&self, key: u64, value: Page) {
        self.1.insert(key, Arc::new(value));
    }
}

struct Moka(moka::sync::Cache<u64, Arc<Page>>);

impl Candidate for Moka {
    fn name(&self) -> &'static str {
        "moka"
    }
    fn get(&self, key: u64, read: &mut dyn FnMut(&[u8])) -> bool {
        self.0.get(&key).map(|value| read(&value)).is_some()
    }
    fn insert(&self, key: u64, value: Page) {
        self.0.insert(key, Arc::new(value));
    }
}

struct MiniMoka(mini_moka::sync::Cache<u64, Arc<Page>>);

impl Candidate for MiniMoka {
    fn name(&self) -> &'static str {
        "mini-moka"
    }
    fn get(&self, key: u64, read: &mut dyn FnMut(&[u8])) -> bool {
        self.0.get(&key).map(|value| read(&value)).is_some()
    }
    fn insert(&self, key: u64, value: Page) {
        self.0.insert(key, Arc::new(value));
    }
}

struct Foyer(foyer_memory::Cache<u64, Arc<Page>>);

impl Candidate for Foyer {
    fn name(&self) -> &'static str {
        "foyer-memory"
    }
    fn get(&self, key: u64, read: &mut dyn FnMut(&[u8])) -> bool {
        self.0.get(&key).map(|entry| read(entry.value())).is_some()
    }
    fn insert(&self, key: u64, value: Page) {
        self.0.insert(key, Arc::new(value));
    }
}

struct Lru(&'static str, Vec<Mutex<LruCache<u64, Arc<Page>, foldhash::fast::RandomState>>>);

impl Lru {
    fn new(name: &'static str, parts: usize, entries: usize) -> Self {
        let each = NonZeroUsize::new((entries / parts).max(1)).expect("at least one");
        let part =
            |_| Mutex::new(LruCache::with_hasher(each, foldhash::fast::RandomState::default()));
        Self(name, (0..parts).map(part).collect())
    }
    fn part(&self, key: u64) -> &Mutex<LruCache<u64, Arc<Page>, foldhash::fast::RandomState>> {
        &self.1[(key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize % self.1.len()]
    }
}

impl Candidate for Lru {
    fn name(&self) -> &'static str {
        self.0
    }
    fn get(&self, key: u64, read: &mut dyn FnMut(&[u8])) -> bool {
        let value = self.part(key).lock().expect("no panic").get(&key).map(Arc::clone);
        value.map(|value| read(&value)).is_some()
    }
    fn insert(&self, key: u64, value: Page) {
        let value = Arc::new(value);
        let out = self.part(key).lock().expect("no panic").push(key, value);
        drop(out);
    }
}

/// A hash table that is never written after it was filled: the limit of any cache with keys.
struct Frozen(HashMap<u64, Arc<Page>, foldhash::fast::RandomState>);

impl Candidate for Frozen {
    fn name(&self) -> &'static str {
        "HashMap, read only"
    }
    fn get(&self, key: u64, read: &mut dyn FnMut(&[u8])) -> bool {
        self.0.get(&key).map(Arc::clone).map(|value| read(&value)).is_some()
    }
    fn insert(&self, _: u64, _: Page) {}
    fn evicts(&self) -> bool {
        false
    }
}

/// Keys are places: the limit of anything that counts references.
struct Places(Vec<Arc<Page>>);

impl Candidate for Places {
    fn name(&self) -> &'static str {
        "Vec<Arc>, read only"
    }
    fn get(&self, key: u64, read: &mut dyn FnMut(&[u8])) -> bool {
        self.0.get(key as usize).map(Arc::clone).map(|value| read(&value)).is_some()
    }
    fn insert(&self, _: u64, _: Page) {}
    fn evicts(&self) -> bool {
        false
    }
}

/// Every candidate of this name, or all, with room for `entries`; the read-only limits are
/// filled with pages of `page_bytes`.
pub fn candidates(
    only: Option<&str>,
    entries: usize,
    page_bytes: usize,
) -> Vec<Box<dyn Candidate>> {
    let page = || -> Page { vec![1; page_bytes].into_boxed_slice() };
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    let mut all: Vec<Box<dyn Candidate>> = Vec::new();
    if wanted("ogive-arc") {
        all.push(Box::new(Ogive::new("ogive-arc", Policy::Duel, entries)));
    }
    if wanted("ogive-arc, ARC alone") {
        all.push(Box::new(Ogive::new("ogive-arc, ARC alone", Policy::Arc, entries)));
    }
    #[cfg(feature = "hyperclock")]
    if wanted("HyperClockCache") {
        all.push(Box::new(crate::hyperclock::HyperClock::new(entries, page_bytes)));
    }
    if wanted("quick_cache") {
        all.push(Box::new(Quick("quick_cache", quick_cache::sync::Cache::new(entries))));
    }
    if wanted("quick_cache, 64 shards") {
        let options = quick_cache::OptionsBuilder::new()
            .estimated_items_capacity(entries)
            .weight_capacity(entries as u64)
            .shards(64)
            .build()
            .expect("complete options");
        let cache = quick_cache::sync::Cache::with_options(
            options,
            quick_cache::UnitWeighter,
            quick_cache::DefaultHashBuilder::default(),
            quick_cache::sync::DefaultLifecycle::default(),
        );
        all.push(Box::new(Quick("quick_cache, 64 shards", cache)));
    }
    if wanted("moka") {
        all.push(Box::new(Moka(moka::sync::Cache::new(entries as u64))));
    }
    if wanted("mini-moka") {
        all.push(Box::new(MiniMoka(mini_moka::sync::Cache::new(entries as u64))));
    }
    if wanted("foyer-memory") {
        let builder = foyer_memory::CacheBuilder::new(entries).with_shards(64);
        all.push(Box::new(Foyer(builder.build())));
    }
    if wanted("lru, one mutex") {
        all.push(Box::new(Lru::new("lru, one mutex", 1, entries)));
    }
    if wanted("lru, 64 mutexes") {
        all.push(Box::new(Lru::new("lru, 64 mutexes", 64, entries)));
    }
    if wanted("HashMap, read only") {
        let map = (0..entries as u64).map(|key| (key, Arc::new(page()))).collect();
        all.push(Box::new(Frozen(map)));
    }
    if wanted("Vec<Arc>, read only") {
        all.push(Box::new(Places((0..entries).map(|_| Arc::new(page())).collect())));
    }
    all
}
