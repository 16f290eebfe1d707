//! CAR (Bansal and Modha, "CAR: Clock with Adaptive Replacement", FAST '04, Fig. 2): ARC with
//! clocks instead of lists. A hit sets a bit. The hands move entries that were hit to T2 and demote
//! the others. The ghost lists B1 and B2 move the target `p` of T1, as in ARC.
//!
//! Weights replace the paper's page counts. The front of a list is the clock's tail, where the
//! paper inserts; the back is the position of the hand.

use super::linked_lists::Lists;
use super::{Counts, Policy, Request};

const T1: usize = 0;
const T2: usize = 1;
const B1: usize = 2;
const B2: usize = 3;

/// The cache.
#[derive(Debug)]
pub(crate) struct Car {
    lists: Lists<4>,
    capacity_bytes: u64,
    /// Target of T1, in bytes.
    p: f64,
    evictions: u64,
    ghost_hits: u64,
}

impl Car {
    pub(crate) fn new(capacity_bytes: u64) -> Self {
        Self { lists: Lists::new(), capacity_bytes, p: 0.0, evictions: 0, ghost_hits: 0 }
    }

    fn bytes(&self, list: usize) -> f64 {
        self.lists.list_bytes(list) as f64
    }

    /// One eviction: the hands move until one finds an entry without its bit.
    fn replace(&mut self) {
        loop {
            let t1_first = self.bytes(T1) >= self.p.max(1.0);
            let (from, back) = match (self.lists.back(T1), self.lists.back(T2)) {
                (Some(id), _) if t1_first => (T1, id),
                (_, Some(id)) => (T2, id),
                (Some(id), None) => (T1, id),
                (None, None) => return,
            };
            if self.lists.mark(back) == 0 {
                self.evictions += 1;
                self.lists.move_to_front(if from == T1 { B1 } else { B2 }, back);
                return;
            }
            self.lists.set_mark(back, 0);
            self.lists.move_to_front(T2, back);
        }
    }

    /// Keeps T1 with its ghosts within the cache and all lists within twice the cache.
    fn forget_ghosts(&mut self, bytes: u64) {
        let capacity = self.capacity_bytes;
        let sum = |lists: &Lists<4>, of: &[usize]| -> u64 {
            of.iter().map(|&list| lists.list_bytes(list)).sum()
        };
        while sum(&self.lists, &[T1, B1]) + bytes > capacity {
            let Some(id) = self.lists.back(B1) else { break };
            self.lists.remove(id);
        }
        while sum(&self.lists, &[T1, T2, B1, B2]) + bytes > 2 * capacity {
            let Some(id) = self.lists.back(B2).or_else(|| self.lists.back(B1)) else { break };
            self.lists.remove(id);
        }
    }
}

impl Policy for Car {
    fn access(&mut self, request: &Request) -> bool {
        let found = self.lists.find(request.key);
        let ghost = match found.map(|id| (id, self.lists.list(id))) {
            Some((id, T1 | T2)) => {
                self.lists.set_mark(id, 1);
                return true;
            }
            other => other,
        };
        let weight = request.bytes as f64;
        while self.lists.list_bytes(T1) + self.lists.list_bytes(T2) + request.bytes
            > self.capacity_bytes
        {
            self.replace();
        }
        let Some((id, list)) = ghost else {
            self.forget_ghosts(request.bytes);
            self.lists.push_front(T1, request.key, request.bytes);
            return false;
        };
        self.ghost_hits += 1;
        let ratio = |other: f64, own: f64| (other / own).max(1.0) * weight;
        self.p = if list == B1 {
            (self.p + ratio(self.bytes(B2), self.bytes(B1))).min(self.capacity_bytes as f64)
        } else {
            (self.p - ratio(self.bytes(B1), self.bytes(B2))).max(0.0)
        };
        self.lists.remove(id);
        self.lists.push_front(T2, request.key, request.bytes);
        false
    }

    fn counts(&self) -> Counts {
        Counts { evictions: self.evictions, ghost_hits: Some(self.ghost_hits) }
    }

    fn resident_bytes(&self) -> u64 {
        self.lists.list_bytes(T1) + self.lists.list_bytes(T2)
    }
}
