//! MIN (Belady, "A Study of Replacement Algorithms for a Virtual-Storage Computer", 1966): evicts
//! the entry whose next request is latest. It needs the future: [`Request::next_use`] must be set.
//!
//! Every requested key is inserted; none bypasses the cache. With equal weights no policy that
//! inserts every key has more hits. With unequal weights the optimum is NP-hard, and MIN is a good
//! lower bound of it.

use std::collections::BinaryHeap;
use std::hash::BuildHasher as _;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::{Counts, Policy, Request};

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u64,
    bytes: u64,
    next_use: u64,
}

/// The cache.
#[derive(Debug)]
pub(crate) struct Min {
    entries: HashTable<Entry>,
    hasher: FixedState,
    /// Next uses, the latest on top. An item that differs from its entry is outdated.
    heap: BinaryHeap<(u64, u64)>,
    capacity_bytes: u64,
    resident_bytes: u64,
    evictions: u64,
}

impl Min {
    pub(crate) fn new(capacity_bytes: u64) -> Self {
        Self {
            entries: HashTable::new(),
            hasher: FixedState::with_seed(0),
            heap: BinaryHeap::new(),
            capacity_bytes,
            resident_bytes: 0,
            evictions: 0,
        }
    }

    fn evict(&mut self) {
        while let Some((next_use, key)) = self.heap.pop() {
            let current = |entry: &Entry| entry.key == key && entry.next_use == next_use;
            if let Ok(found) = self.entries.find_entry(self.hasher.hash_one(key), current) {
                self.resident_bytes -= found.remove().0.bytes;
                self.evictions += 1;
                return;
            }
        }
    }

    /// Drops outdated items when they are most of the heap.
    fn compact(&mut self) {
        if self.heap.len() > 2 * self.entries.len() + 1024 {
            self.heap = self.entries.iter().map(|entry| (entry.next_use, entry.key)).collect();
        }
    }
}

impl Policy for Min {
    fn access(&mut self, request: &Request) -> bool {
        let &Request { key, bytes, next_use } = request;
        let hash = self.hasher.hash_one(key);
        let found = self.entries.find_mut(hash, |entry| entry.key == key);
        let hit = found.is_some();
        match found {
            Some(entry) => entry.next_use = next_use,
            None => {
                while self.resident_bytes + bytes > self.capacity_bytes {
                    self.evict();
                }
                let hasher = &self.hasher;
                let rehash = |entry: &Entry| hasher.hash_one(entry.key);
                self.entries.insert_unique(hash, Entry { key, bytes, next_use }, rehash);
                self.resident_bytes += bytes;
            }
        }
        self.heap.push((next_use, key));
        self.compact();
        hit
    }

    fn counts(&self) -> Counts {
        Counts { evictions: self.evictions, ghost_hits: None }
    }

    fn resident_bytes(&self) -> u64 {
        self.resident_bytes
    }
}
