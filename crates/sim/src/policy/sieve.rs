//! SIEVE (Zhang et al., "SIEVE is Simpler than LRU", NSDI '24). A list has the order of arrival,
//! and a hand moves from old to young. It clears the bits of entries that were hit, and evicts the
//! first entry without its bit.

use super::linked_lists::{Id, Lists};
use super::{Counts, Policy, Request};

/// The cache.
#[derive(Debug)]
pub(crate) struct Sieve {
    lists: Lists<1>,
    hand: Option<Id>,
    capacity_bytes: u64,
    evictions: u64,
}

impl Sieve {
    pub(crate) fn new(capacity_bytes: u64) -> Self {
        Self { lists: Lists::new(), hand: None, capacity_bytes, evictions: 0 }
    }

    fn evict(&mut self) {
        let mut at = self.hand.or_else(|| self.lists.back(0));
        while let Some(id) = at {
            if self.lists.mark(id) == 0 {
                self.hand = self.lists.newer(id);
                self.lists.remove(id);
                self.evictions += 1;
                return;
            }
            self.lists.set_mark(id, 0);
            at = self.lists.newer(id).or_else(|| self.lists.back(0));
        }
    }
}

impl Policy for Sieve {
    fn access(&mut self, request: &Request) -> bool {
        if let Some(id) = self.lists.find(request.key) {
            self.lists.set_mark(id, 1);
            return true;
        }
        while self.lists.list_bytes(0) + request.bytes > self.capacity_bytes {
            self.evict();
        }
        self.lists.push_front(0, request.key, request.bytes);
        false
    }

    fn counts(&self) -> Counts {
        Counts { evictions: self.evictions, ghost_hits: None }
    }

    fn resident_bytes(&self) -> u64 {
        self.lists.list_bytes(0)
    }
}
