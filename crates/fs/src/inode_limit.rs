//! The limit of inodes, and the results of asking the kernel to forget some.
//!
//! [`crate::pruning`] asks. Only one thread at a time prunes for the limit. If the kernel keeps its
//! inodes, the next prune waits until there are more.

use ogive_arc::PruneResult;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Keeps the table of inodes within its limit.
pub(crate) struct InodeLimit {
    limit: usize,
    /// Prune when the table has grown to this.
    prune_at: AtomicUsize,
    pruning: AtomicBool,
    release_memory: fn(),
    tally: Tally,
}

/// Requests for inodes, without the engine's own, which it counts itself.
#[derive(Default)]
struct Tally {
    requests: AtomicU64,
    examined: AtomicU64,
    freed_objects: AtomicU64,
    freed_bytes: AtomicU64,
    held: AtomicU64,
}

impl InodeLimit {
    /// A table of up to `limit` inodes; `release_memory` gives freed memory to the system.
    pub(crate) fn new(limit: usize, release_memory: fn()) -> Self {
        Self {
            limit,
            prune_at: AtomicUsize::new(limit),
            pruning: AtomicBool::new(false),
            release_memory,
            tally: Tally::default(),
        }
    }

    /// Whether this caller has to prune a table of `length` inodes now. If so, it must report the
    /// end of the prune ([`Self::pruned_to`]).
    pub(crate) fn is_due(&self, length: usize) -> bool {
        length > self.prune_at.load(Ordering::Relaxed)
            && !self.pruning.swap(true, Ordering::Relaxed)
    }

    /// How many inodes a table of `length` has to lose: down to seven eighths of the limit.
    pub(crate) fn excess(&self, length: usize) -> usize {
        length.saturating_sub(self.limit - self.limit / 8)
    }

    /// The table was pruned, and has `length` inodes now.
    pub(crate) fn pruned_to(&self, length: usize) {
        // If the kernel keeps them, asking again before there are more is pointless.
        self.prune_at.store(self.limit.max(length + self.limit / 8), Ordering::Relaxed);
        self.give_memory_back();
        self.pruning.store(false, Ordering::Relaxed);
    }

    /// Counts a request and its result.
    pub(crate) fn count(&self, result: &PruneResult) {
        self.tally.requests.fetch_add(1, Ordering::Relaxed);
        self.tally.examined.fetch_add(result.examined, Ordering::Relaxed);
        self.tally.freed_objects.fetch_add(result.freed_objects, Ordering::Relaxed);
        self.tally.freed_bytes.fetch_add(result.freed_bytes, Ordering::Relaxed);
        self.tally.held.fetch_add(result.held, Ordering::Relaxed);
    }

    /// How many inodes there may be.
    pub(crate) fn limit(&self) -> u64 {
        self.limit as u64
    }

    /// How many requests there were so far.
    pub(crate) fn requests(&self) -> u64 {
        self.tally.requests.load(Ordering::Relaxed)
    }

    /// Their results so far.
    pub(crate) fn pruned(&self) -> PruneResult {
        PruneResult {
            examined: self.tally.examined.load(Ordering::Relaxed),
            freed_objects: self.tally.freed_objects.load(Ordering::Relaxed),
            freed_bytes: self.tally.freed_bytes.load(Ordering::Relaxed),
            held: self.tally.held.load(Ordering::Relaxed),
        }
    }

    /// Gives memory back to the system after much was freed: the kernel has forgotten inodes on its
    /// own, or programs have closed directories.
    pub(crate) fn give_memory_back(&self) {
        (self.release_memory)();
    }
}
