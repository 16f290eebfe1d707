//! The candidates behind one trait.
//!
//! Each has its own default settings, room for the same number of entries, `u64` keys, and values
//! behind a count. All hash keys with foldhash, as ours does internally, because the hash function
//! of a cache is not compared. Only HyperClockCache gets hashes from its users.

use crate::locked::LockedArc;
use foldhash::quality::RandomState;
use lru::LruCache;
use ogive_arc::{Access, Cache, Kind, Policy};
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

/// The cached value: 8 KiB, or 64 bytes where the bytes themselves are not read. Each cache has it
/// behind one pointer, with a separate count if the cache has none of its own.
pub type Page<const BYTES: usize> = [u8; BYTES];

/// A new one.
pub const fn page<const BYTES: usize>() -> Page<BYTES> {
    [1; BYTES]
}

/// A cache under test.
pub trait Candidate: Send + Sync {
    /// Its name in tables.
    fn name(&self) -> &'static str;
    /// Looks a key up as its users do, and lets `read` see the value while it is held.
    fn get(&self, key: u64, read: &mut dyn FnMut(&[u8])) -> bool;
    /// Makes a value and puts it in.
    fn insert(&self, key: u64);
    /// Locks taken so far, where the candidate counts them.
    fn locks(&self) -> Option<u64> {
        None
    }
    /// Whether entries ever leave.
    fn evicts(&self) -> bool {
        true
    }
}

struct Ogive<const BYTES: usize>(&'static str, Cache<u64, Page<BYTES>>);

impl<const BYTES: usize> Ogive<BYTES> {
    fn new(name: &'static str, policy: Policy, entries: usize) -> Self {
        let builder = Cache::builder(entries as u64).expected_weight_bytes(1).policy(policy);
        Self(name, builder.build())
    }
}

impl<const BYTES: usize> Candidate for Ogive<BYTES> {
    fn name(&self) -> &'static str {
        self.0
    }
    fn get(&self, key: u64, read: &mut dyn FnMut(&[u8])) -> bool {
        self.1.get(&key, Access::Demand).map(|hold| read(&hold[..])).is_some()
    }
    fn insert(&self, key: u64) {
        drop(self.1.insert(key, page(), 1, Kind::Data, Access::Demand));
    }
    fn locks(&self) -> Option<u64> {
        Some(self.1.stats().locks)
    }
}

type QuickCache<const BYTES: usize> =
    quick_cache::sync::Cache<u64, Arc<Page<BYTES>>, quick_cache::UnitWeighter, RandomState>;

struct Quick<const BYTES: usize>(&'static str, QuickCache<BYTES>);

impl<const BYTES: usize> Quick<BYTES> {
    /// With so many shards, or as many as it takes by itself.
    fn new(name: &'static str, entries: usize, shards: Option<usize>) -> Self {
        let mut options = quick_cache::OptionsBuilder::new();
        options.estimated_items_capacity(entries).weight_capacity(entries as u64);
        if let Some(shards) = shards {
            options.shards(shards);
        }
        let cache = quick_cache::sync::Cache::with_options(
            options.build().expect("complete options"),
            quick_cache::UnitWeighter,
            RandomState::default(),
            quick_cache::sync::DefaultLifecycle::default(),
        );
        Self(name, cache)
    }
}

impl<const BYTES: usize> Candidate for Quick<BYTES> {
    fn name(&self) -> &'static str {
        self.0
    }
    fn get(&self, key: u64, read: &mut dyn FnMut(&[u8])) -> bool {
        self.1.get(&key).map(|value| read(&value[..])).is_some()
    }
    fn insert(&self, key: u64) {
        self.1.insert(key, Arc::new(page()));
    }
}

struct Moka<const BYTES: usize>(moka::sync::Cache<u64, Arc<Page<BYTES>>, RandomState>);

impl<const BYTES: usize> Candidate for Moka<BYTES> {
    fn name(&self) -> &'static str {
        "moka"
    }
    fn get(&self, key: u64, read: &mut dyn FnMut(&[u8])) -> bool {
        self.0.get(&key).map(|value| read(&value[..])).is_some()
    }
    fn insert(&self, key: u64) {
        self.0.insert(key, Arc::new(page()));
    }
}

struct MiniMoka<const BYTES: usize>(mini_moka::sync::Cache<u64, Arc<Page<BYTES>>, RandomState>);

impl<const BYTES: usize> Candidate for MiniMoka<BYTES> {
    fn name(&self) -> &'static str {
        "mini-moka"
    }
    fn get(&self, key: u64, read: &mut dyn FnMut(&[u8])) -> bool {
        self.0.get(&key).map(|value| read(&value[..])).is_some()
    }
    fn insert(&self, key: u64) {
        self.0.insert(key, Arc::new(page()));
    }
}

struct Foyer<const BYTES: usize>(foyer_memory::Cache<u64, Arc<Page<BYTES>>, RandomState>);

impl<const BYTES: usize> Candidate for Foyer<BYTES> {
    fn name(&self) -> &'static str {
        "foyer-memory"
    }
    fn get(&self, key: u64, read: &mut dyn FnMut(&[u8])) -> bool {
        self.0.get(&key).map(|entry| read(&entry.value()[..])).is_some()
    }
    fn insert(&self, key: u64) {
        self.0.insert(key, Arc::new(page()));
    }
}

struct Lru<const BYTES: usize>(
    &'static str,
    Vec<Mutex<LruCache<u64, Arc<Page<BYTES>>, RandomState>>>,
);

impl<const BYTES: usize> Lru<BYTES> {
    fn new(name: &'static str, parts: usize, entries: usize) -> Self {
        let each = NonZeroUsize::new((entries / parts).max(1)).expect("at least one");
        let part = |_| Mutex::new(LruCache::with_hasher(each, RandomState::default()));
        Self(name, (0..parts).map(part).collect())
    }
    fn part(&self, key: u64) -> &Mutex<LruCache<u64, Arc<Page<BYTES>>, RandomState>> {
        &self.1[(key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize % self.1.len()]
    }
}

impl<const BYTES: usize> Candidate for Lru<BYTES> {
    fn name(&self) -> &'static str {
        self.0
    }
    fn get(&self, key: u64, read: &mut dyn FnMut(&[u8])) -> bool {
        let value = self.part(key).lock().expect("no panic").get(&key).map(Arc::clone);
        value.map(|value| read(&value[..])).is_some()
    }
    fn insert(&self, key: u64) {
        let value = Arc::new(page());
        let out = self.part(key).lock().expect("no panic").push(key, value);
        drop(out);
    }
}

/// A hash table that is never written after it was filled: the limit of any cache with keys.
struct Frozen<const BYTES: usize>(HashMap<u64, Arc<Page<BYTES>>, RandomState>);

impl<const BYTES: usize> Candidate for Frozen<BYTES> {
    fn name(&self) -> &'static str {
        "HashMap, read only"
    }
    fn get(&self, key: u64, read: &mut dyn FnMut(&[u8])) -> bool {
        self.0.get(&key).map(Arc::clone).map(|value| read(&value[..])).is_some()
    }
    fn insert(&self, _: u64) {}
    fn evicts(&self) -> bool {
        false
    }
}

/// Keys are places: the limit of anything that counts references.
struct Places<const BYTES: usize>(Vec<Arc<Page<BYTES>>>);

impl<const BYTES: usize> Candidate for Places<BYTES> {
    fn name(&self) -> &'static str {
        "Vec<Arc>, read only"
    }
    fn get(&self, key: u64, read: &mut dyn FnMut(&[u8])) -> bool {
        self.0.get(key as usize).map(Arc::clone).map(|value| read(&value[..])).is_some()
    }
    fn insert(&self, _: u64) {}
    fn evicts(&self) -> bool {
        false
    }
}

/// Every candidate of this name, or all, with room for `entries`; the read-only limits are
/// filled with pages of `page_bytes`.
///
/// # Panics
/// If no workload has pages of so many bytes.
pub fn candidates(
    only: Option<&str>,
    entries: usize,
    page_bytes: usize,
) -> Vec<Box<dyn Candidate>> {
    match page_bytes {
        1 => candidates_of::<1>(only, entries),
        64 => candidates_of::<64>(only, entries),
        8192 => candidates_of::<8192>(only, entries),
        _ => panic!("pages of {page_bytes} bytes"),
    }
}

fn candidates_of<const BYTES: usize>(
    only: Option<&str>,
    entries: usize,
) -> Vec<Box<dyn Candidate>> {
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    let mut all: Vec<Box<dyn Candidate>> = Vec::new();
    if wanted("ogive-arc") {
        all.push(Box::new(Ogive::<BYTES>::new("ogive-arc", Policy::Duel, entries)));
    }
    if wanted("ogive-arc, ARC alone") {
        all.push(Box::new(Ogive::<BYTES>::new("ogive-arc, ARC alone", Policy::Arc, entries)));
    }
    #[cfg(feature = "hyperclock")]
    if wanted("HyperClockCache") {
        all.push(Box::new(crate::hyperclock::HyperClock::new(entries, BYTES)));
    }
    if wanted("quick_cache") {
        all.push(Box::new(Quick::<BYTES>::new("quick_cache", entries, None)));
    }
    if wanted("quick_cache, 64 shards") {
        all.push(Box::new(Quick::<BYTES>::new("quick_cache, 64 shards", entries, Some(64))));
    }
    if wanted("moka") {
        let builder = moka::sync::Cache::builder().max_capacity(entries as u64);
        let cache = builder.initial_capacity(entries).build_with_hasher(RandomState::default());
        all.push(Box::new(Moka::<BYTES>(cache)));
    }
    if wanted("mini-moka") {
        let builder = mini_moka::sync::Cache::builder().max_capacity(entries as u64);
        let cache = builder.initial_capacity(entries).build_with_hasher(RandomState::default());
        all.push(Box::new(MiniMoka::<BYTES>(cache)));
    }
    if wanted("foyer-memory") {
        let builder = foyer_memory::CacheBuilder::new(entries);
        let builder = builder.with_hash_builder(RandomState::default());
        all.push(Box::new(Foyer::<BYTES>(builder.build())));
    }
    if wanted("lru, one mutex") {
        all.push(Box::new(Lru::<BYTES>::new("lru, one mutex", 1, entries)));
    }
    if wanted("lru, 64 mutexes") {
        all.push(Box::new(Lru::<BYTES>::new("lru, 64 mutexes", 64, entries)));
    }
    if wanted("ARC, one mutex") {
        all.push(Box::new(LockedArc::<BYTES>::new("ARC, one mutex", 1, entries)));
    }
    if wanted("ARC, 64 mutexes") {
        all.push(Box::new(LockedArc::<BYTES>::new("ARC, 64 mutexes", 64, entries)));
    }
    if wanted("HashMap, read only") {
        let map = (0..entries as u64).map(|key| (key, Arc::new(page()))).collect();
        all.push(Box::new(Frozen::<BYTES>(map)));
    }
    if wanted("Vec<Arc>, read only") {
        all.push(Box::new(Places::<BYTES>((0..entries).map(|_| Arc::new(page())).collect())));
    }
    all
}
