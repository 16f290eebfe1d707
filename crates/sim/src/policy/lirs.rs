//! LIRS (Jiang and Zhang, "LIRS: An Efficient Low Inter-reference Recency Set Replacement Policy to
//! Improve Buffer Cache Performance", SIGMETRICS '02).
//!
//! 99% of the cache are for blocks of low inter-reference recency (LIR), 1% for the others (HIR).
//! Stack S holds all LIR blocks, and the HIR blocks, resident or not, that were requested after the
//! LIR block at its bottom. Queue Q holds the resident HIR blocks. The oldest of Q is evicted
//! first. A HIR block that is requested while it is in S replaces the LIR block at the bottom.
//! Non-resident blocks in S are bounded to twice the cache, as the authors advise: the oldest is
//! dropped.
//!
//! Where the paper leaves a choice, ogive follows Caffeine's simulator, which has the same counts.
//! While the cache fills, a HIR block enters Q only. A HIR block on top of S that is requested
//! again stays HIR.
//!
//! A block is LIR if it is in S and on no list of `resident`.

use super::linked_lists::{Id, Lists};
use super::{Counts, Policy, Request};

/// The share of the cache for LIR blocks.
const LIR_SHARE: f64 = 0.99;

const QUEUE: usize = 0;
const GONE: usize = 1;

/// The cache.
#[derive(Debug)]
pub(crate) struct Lirs {
    /// S: the front is its top.
    stack: Lists<1>,
    /// HIR blocks: Q, and the non-resident ones in S, in the order of their eviction.
    others: Lists<2>,
    capacity_bytes: u64,
    lir_bytes_max: u64,
    lir_bytes: u64,
    evictions: u64,
    ghost_hits: u64,
}

impl Lirs {
    pub(crate) fn new(capacity_bytes: u64) -> Self {
        let lir_bytes_max = (capacity_bytes as f64 * LIR_SHARE) as u64;
        Self {
            stack: Lists::new(),
            others: Lists::new(),
            capacity_bytes,
            lir_bytes_max: lir_bytes_max.min(capacity_bytes.saturating_sub(1)),
            lir_bytes: 0,
            evictions: 0,
            ghost_hits: 0,
        }
    }

    /// Removes all blocks other than LIR from the bottom of the stack.
    fn prune(&mut self) {
        while let Some(bottom) = self.stack.back(0) {
            let Some(other) = self.others.find(self.stack.key(bottom)) else { return };
            if self.others.list(other) == GONE {
                self.others.remove(other);
            }
            self.stack.remove(bottom);
        }
    }

    /// Turns the LIR block at the bottom into a resident HIR block. False if there is none.
    fn demote_bottom(&mut self) -> bool {
        let Some(bottom) = self.stack.back(0) else { return false };
        let (key, bytes) = (self.stack.key(bottom), self.stack.bytes(bottom));
        self.stack.remove(bottom);
        self.lir_bytes -= bytes;
        self.others.push_front(QUEUE, key, bytes);
        self.prune();
        true
    }

    /// Moves a key to the top of the stack, or inserts it there.
    fn push_stack(&mut self, key: u64, bytes: u64) {
        match self.stack.find(key) {
            Some(id) => self.stack.move_to_front(0, id),
            None => {
                self.stack.push_front(0, key, bytes);
            }
        }
    }

    fn make_room(&mut self, bytes: u64) {
        while self.resident_bytes() + bytes > self.capacity_bytes {
            let Some(oldest) = self.others.back(QUEUE) else {
                if self.demote_bottom() {
                    continue;
                }
                return;
            };
            self.evictions += 1;
            if self.stack.find(self.others.key(oldest)).is_some() {
                self.others.move_to_front(GONE, oldest);
            } else {
                self.others.remove(oldest);
            }
        }
        while self.others.list_bytes(GONE) > self.capacity_bytes.saturating_mul(2) {
            let Some(oldest) = self.others.back(GONE) else { return };
            if let Some(in_stack) = self.stack.find(self.others.key(oldest)) {
                self.stack.remove(in_stack);
            }
            self.others.remove(oldest);
        }
    }

    /// Makes room among the LIR blocks.
    fn limit_lir(&mut self) {
        while self.lir_bytes > self.lir_bytes_max && self.demote_bottom() {}
    }

    /// Turns a block in S into a LIR block.
    fn become_lir(&mut self, key: u64, bytes: u64) {
        self.push_stack(key, bytes);
        self.lir_bytes += bytes;
        self.limit_lir();
    }

    fn hit_hir(&mut self, key: u64, other: Id) {
        let bytes = self.others.bytes(other);
        let in_stack = self.stack.find(key);
        let is_top = in_stack.is_some_and(|id| self.stack.newer(id).is_none());
        if in_stack.is_some() && !is_top {
            self.others.remove(other);
            self.become_lir(key, bytes);
        } else {
            self.push_stack(key, bytes);
            self.others.move_to_front(QUEUE, other);
        }
        self.prune();
    }
}

impl Policy for Lirs {
    fn access(&mut self, request: &Request) -> bool {
        let (key, bytes) = (request.key, request.bytes);
        let other = self.others.find(key);
        match other.map(|id| (id, self.others.list(id))) {
            Some((id, QUEUE)) => {
                self.hit_hir(key, id);
                return true;
            }
            None => {
                if let Some(id) = self.stack.find(key) {
                    self.stack.move_to_front(0, id);
                    self.prune();
                    return true;
                }
                let filling = self.resident_bytes() + bytes <= self.capacity_bytes;
                self.make_room(bytes);
                if self.lir_bytes + bytes <= self.lir_bytes_max {
                    self.become_lir(key, bytes);
                } else if filling {
                    self.others.push_front(QUEUE, key, bytes);
                } else {
                    self.push_stack(key, bytes);
                    self.others.push_front(QUEUE, key, bytes);
                    self.prune();
                }
            }
            Some((id, _)) => {
                // It was requested after the LIR block at the bottom, so it becomes LIR.
                self.ghost_hits += 1;
                self.others.remove(id);
                if let Some(in_stack) = self.stack.find(key) {
                    self.stack.remove(in_stack);
                }
                self.make_room(bytes);
                self.become_lir(key, bytes);
            }
        }
        false
    }

    fn counts(&self) -> Counts {
        Counts { evictions: self.evictions, ghost_hits: Some(self.ghost_hits) }
    }

    fn resident_bytes(&self) -> u64 {
        self.lir_bytes + self.others.list_bytes(QUEUE)
    }
}
