//! 2Q, the full version (Johnson and Shasha, "2Q: A Low Overhead High Performance Buffer Management
//! Replacement Algorithm", VLDB '94). New entries pass through a FIFO of a quarter of the cache
//! (Kin). Keys that leave it are remembered for half a cache (Kout). A remembered key that is
//! requested again enters an LRU.

use super::linked_lists::Lists;
use super::{Counts, Policy, Request};

const IN: usize = 0;
const OUT: usize = 1;
const MAIN: usize = 2;

/// The cache.
#[derive(Debug)]
pub(crate) struct TwoQueue {
    lists: Lists<3>,
    capacity_bytes: u64,
    in_bytes: u64,
    out_bytes: u64,
    evictions: u64,
    ghost_hits: u64,
}

impl TwoQueue {
    pub(crate) fn new(capacity_bytes: u64) -> Self {
        Self {
            lists: Lists::new(),
            capacity_bytes,
            in_bytes: capacity_bytes / 4,
            out_bytes: capacity_bytes / 2,
            evictions: 0,
            ghost_hits: 0,
        }
    }

    fn make_room(&mut self, bytes: u64) {
        while self.resident_bytes() + bytes > self.capacity_bytes {
            self.evictions += 1;
            let from_in = self.lists.list_bytes(IN) > self.in_bytes;
            let oldest = if from_in { None } else { self.lists.back(MAIN) };
            if let Some(oldest) = oldest {
                self.lists.remove(oldest);
                continue;
            }
            let Some(oldest) = self.lists.back(IN) else { break };
            self.lists.move_to_front(OUT, oldest);
            while self.lists.list_bytes(OUT) > self.out_bytes {
                let Some(forgotten) = self.lists.back(OUT) else { break };
                self.lists.remove(forgotten);
            }
        }
    }
}

impl Policy for TwoQueue {
    fn access(&mut self, request: &Request) -> bool {
        let found = self.lists.find(request.key);
        match found.map(|id| (id, self.lists.list(id))) {
            Some((id, MAIN)) => {
                self.lists.move_to_front(MAIN, id);
                return true;
            }
            Some((_, IN)) => return true,
            Some((id, _)) => {
                self.ghost_hits += 1;
                self.lists.remove(id);
                self.make_room(request.bytes);
                self.lists.push_front(MAIN, request.key, request.bytes);
            }
            None => {
                self.make_room(request.bytes);
                self.lists.push_front(IN, request.key, request.bytes);
            }
        }
        false
    }

    fn counts(&self) -> Counts {
        Counts { evictions: self.evictions, ghost_hits: Some(self.ghost_hits) }
    }

    fn resident_bytes(&self) -> u64 {
        self.lists.list_bytes(IN) + self.lists.list_bytes(MAIN)
    }
}
