//! FIFO, LRU and CLOCK: one list. They differ in the effect of a hit and in the entries that
//! eviction spares.
//!
//! - FIFO: a hit has no effect; the oldest entry is evicted.
//! - LRU: a hit makes an entry the youngest; the oldest entry is evicted.
//! - CLOCK (Corbató, "A Paging Experiment with the Multics System", 1968): a hit sets an entry's
//!   bit. If the oldest entry has its bit set, it loses the bit and becomes the youngest; otherwise
//!   it is evicted.

use super::linked_lists::Lists;
use super::{Counts, Policy, Request};

/// The effect of a hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    Fifo,
    Lru,
    Clock,
}

/// The cache.
#[derive(Debug)]
pub(crate) struct OneList {
    rule: Rule,
    lists: Lists<1>,
    capacity_bytes: u64,
    evictions: u64,
}

impl OneList {
    pub(crate) fn new(rule: Rule, capacity_bytes: u64) -> Self {
        Self { rule, lists: Lists::new(), capacity_bytes, evictions: 0 }
    }
}

impl Policy for OneList {
    fn access(&mut self, request: &Request) -> bool {
        if let Some(id) = self.lists.find(request.key) {
            match self.rule {
                Rule::Fifo => {}
                Rule::Lru => self.lists.move_to_front(0, id),
                Rule::Clock => self.lists.set_mark(id, 1),
            }
            return true;
        }
        while self.lists.list_bytes(0) + request.bytes > self.capacity_bytes {
            let Some(oldest) = self.lists.back(0) else { break };
            if self.lists.mark(oldest) == 0 {
                self.lists.remove(oldest);
                self.evictions += 1;
            } else {
                self.lists.set_mark(oldest, 0);
                self.lists.move_to_front(0, oldest);
            }
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
