//! S3-FIFO (Yang et al., "FIFO Queues are All You Need for Cache Eviction", SOSP '23). A small FIFO
//! of a tenth of the cache filters keys that are requested once. In the main FIFO, an entry gets
//! another round for each of its hits, three at most. A ghost FIFO holds the keys that left the
//! small one.
//!
//! The two flavours exist because the authors changed it. As printed, every new key enters the
//! small queue. Since libCacheSim 0.3.2, a cache that has not evicted yet puts keys into the main
//! queue when the small one is full. So a loop finds the main queue full.

use super::linked_lists::Lists;
use super::{Counts, Policy, Request};

const SMALL: usize = 0;
const MAIN: usize = 1;
const GHOST: usize = 2;

/// Hits are counted in two bits.
const HITS_MAX: u8 = 3;
/// An entry of the small queue with this many hits moves to the main one.
const HITS_TO_MAIN: u8 = 2;

/// The cache.
#[derive(Debug)]
pub(crate) struct S3Fifo {
    lists: Lists<3>,
    capacity_bytes: u64,
    small_bytes: u64,
    ghost_bytes: u64,
    /// Whether keys may fill the main queue before the first eviction.
    fills_main: bool,
    evictions: u64,
    ghost_hits: u64,
}

impl S3Fifo {
    /// `fills_main`: keys that do not fit into the small queue enter the main one until the first
    /// eviction.
    pub(crate) fn new(capacity_bytes: u64, fills_main: bool) -> Self {
        let small_bytes = capacity_bytes / 10;
        Self {
            lists: Lists::new(),
            capacity_bytes,
            small_bytes,
            // Nine tenths, without overflow.
            ghost_bytes: capacity_bytes - capacity_bytes.div_ceil(10),
            fills_main,
            evictions: 0,
            ghost_hits: 0,
        }
    }

    fn evict(&mut self) {
        let small = self.lists.list_bytes(SMALL);
        if small > 0 && (small >= self.small_bytes || self.lists.list_len(MAIN) == 0) {
            self.evict_from_small();
        } else {
            self.evict_from_main();
        }
    }

    fn evict_from_small(&mut self) {
        while let Some(oldest) = self.lists.back(SMALL) {
            let hits = self.lists.mark(oldest);
            self.lists.set_mark(oldest, 0);
            if hits >= HITS_TO_MAIN {
                self.lists.move_to_front(MAIN, oldest);
                continue;
            }
            self.evictions += 1;
            self.lists.move_to_front(GHOST, oldest);
            while self.lists.list_bytes(GHOST) > self.ghost_bytes {
                let Some(forgotten) = self.lists.back(GHOST) else { break };
                self.lists.remove(forgotten);
            }
            return;
        }
    }

    fn evict_from_main(&mut self) {
        while let Some(oldest) = self.lists.back(MAIN) {
            let hits = self.lists.mark(oldest);
            if hits == 0 {
                self.evictions += 1;
                self.lists.remove(oldest);
                return;
            }
            self.lists.set_mark(oldest, hits - 1);
            self.lists.move_to_front(MAIN, oldest);
        }
    }
}

impl Policy for S3Fifo {
    fn access(&mut self, request: &Request) -> bool {
        let found = self.lists.find(request.key);
        let mut queue = SMALL;
        if let Some(id) = found {
            if self.lists.list(id) != GHOST {
                self.lists.set_mark(id, (self.lists.mark(id) + 1).min(HITS_MAX));
                return true;
            }
            self.ghost_hits += 1;
            self.lists.remove(id);
            queue = MAIN;
        }
        while self.resident_bytes() + request.bytes > self.capacity_bytes {
            self.evict();
        }
        let filling = self.fills_main && self.evictions == 0;
        if filling && self.lists.list_bytes(SMALL) >= self.small_bytes {
            queue = MAIN;
        }
        self.lists.push_front(queue, request.key, request.bytes);
        false
    }

    fn counts(&self) -> Counts {
        Counts { evictions: self.evictions, ghost_hits: Some(self.ghost_hits) }
    }

    fn resident_bytes(&self) -> u64 {
        self.lists.list_bytes(SMALL) + self.lists.list_bytes(MAIN)
    }
}
