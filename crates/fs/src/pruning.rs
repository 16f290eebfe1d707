//! Letting go of inodes.
//!
//! The kernel keeps an inode of ours for every one of its own, and it keeps those until memory is
//! short, which a machine with much memory never is. So the table has a limit of its own, and
//! when the cache has to give memory back it asks here too. Either way the kernel is asked to
//! forget inodes that nobody has open, those looked up least recently first, each once
//! ([`crate::inode::InodeTable::take_idle`]). What it does forget comes back as FORGET requests,
//! which is how the freed are counted.
//!
//! A kernel before 6.18 can be asked only to drop names, and drops a directory's even while a
//! program is inside. There directories are left alone.

use crate::statistics::INODE_BYTES;
use crate::view::View;
use ogive_arc::{Prune, PruneResult};
use ogive_origin::{Errno, FileKind, Origin};
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Inodes asked for before waiting to see how many the kernel forgets.
const BATCH: usize = 4096;
/// How long to wait for the kernel to answer a batch.
const PATIENCE: Duration = Duration::from_millis(500);

/// Keeps the table of inodes within its limit.
pub(crate) struct InodeLimit {
    limit: usize,
    /// Prune when the table has grown to this.
    prune_at: AtomicUsize,
    pruning: AtomicBool,
    release_memory: fn(),
    tally: Tally,
}

/// What was asked for outside of the engine's requests, which count for themselves.
#[derive(Default)]
struct Tally {
    requests: AtomicU64,
    examined: AtomicU64,
    freed: AtomicU64,
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

    /// Whether it is this caller's turn to prune a table of `length` inodes.
    pub(crate) fn is_due(&self, length: usize) -> bool {
        length > self.prune_at.load(Ordering::Relaxed)
            && !self.pruning.swap(true, Ordering::Relaxed)
    }

    /// Prunes down to seven eighths of the limit.
    pub(crate) fn prune<O: Origin>(&self, view: &View<O>) {
        let target = self.limit - self.limit / 8;
        let wanted = view.inodes.len().saturating_sub(target);
        let result = self.ask(view, wanted);
        if result.freed_objects * 2 < wanted as u64 {
            log::debug!("asked for {wanted} inodes, got {} back", result.freed_objects);
        }
        // If the kernel keeps them there is no point in asking again before there are more.
        let next = self.limit.max(view.inodes.len() + self.limit / 8);
        self.prune_at.store(next, Ordering::Relaxed);
        (self.release_memory)();
        self.pruning.store(false, Ordering::Relaxed);
    }
}

impl InodeLimit {
    /// Prunes and counts it.
    pub(crate) fn ask<O: Origin>(&self, view: &View<O>, wanted: usize) -> PruneResult {
        let result = prune(view, wanted);
        self.tally.requests.fetch_add(1, Ordering::Relaxed);
        self.tally.examined.fetch_add(result.examined, Ordering::Relaxed);
        self.tally.freed.fetch_add(result.freed_objects, Ordering::Relaxed);
        self.tally.held.fetch_add(result.held, Ordering::Relaxed);
        result
    }

    /// How many inodes there may be.
    pub(crate) fn limit(&self) -> u64 {
        self.limit as u64
    }

    /// How often it was asked so far.
    pub(crate) fn requests(&self) -> u64 {
        self.tally.requests.load(Ordering::Relaxed)
    }

    /// What came of it so far.
    pub(crate) fn pruned(&self) -> PruneResult {
        let freed_objects = self.tally.freed.load(Ordering::Relaxed);
        PruneResult {
            examined: self.tally.examined.load(Ordering::Relaxed),
            freed_objects,
            freed_bytes: freed_objects * INODE_BYTES,
            held: self.tally.held.load(Ordering::Relaxed),
        }
    }

    /// Gives memory to the system of which much was freed: the kernel has forgotten inodes of its own
    /// accord, or programs have closed directories.
    pub(crate) fn give_memory_back(&self) {
        (self.release_memory)();
    }
}

/// The inode table as an owner of memory that the engine may ask.
pub(crate) struct InodePruner<O: Origin> {
    pub(crate) view: Weak<View<O>>,
}

impl<O: Origin> Prune for InodePruner<O> {
    fn prune(&self, want_bytes: u64) -> PruneResult {
        let Some(view) = self.view.upgrade() else {
            return PruneResult::default();
        };
        let wanted = usize::try_from(want_bytes.div_ceil(INODE_BYTES)).unwrap_or(usize::MAX);
        prune(&view, wanted)
    }
}

/// Asks the kernel to forget `wanted` inodes, in batches, for as long as it does.
pub(crate) fn prune<O: Origin>(view: &View<O>, wanted: usize) -> PruneResult {
    let mut result = PruneResult::default();
    while result.freed_objects < wanted as u64 {
        let left = wanted - result.freed_objects as usize;
        let numbers = view.inodes.take_idle(left.min(BATCH));
        if numbers.is_empty() {
            break;
        }
        let before = view.inodes.forgotten();
        let asked = ask(view, &numbers);
        let after = view.inodes.wait_forgotten(before + asked, PATIENCE);
        let freed = (after - before).min(numbers.len() as u64);
        result.examined += numbers.len() as u64;
        result.freed_objects += freed;
        result.held += numbers.len() as u64 - freed;
        if freed * 8 < numbers.len() as u64 {
            break;
        }
    }
    result.freed_bytes = result.freed_objects * INODE_BYTES;
    result
}

/// Asks for these inodes and returns for how many the kernel could be asked.
fn ask<O: Origin>(view: &View<O>, numbers: &[u64]) -> u64 {
    if view.kernel.prunes_by_number() {
        return match view.kernel.prune(numbers) {
            Ok(()) => numbers.len() as u64,
            Err(Errno::NODEV) => 0,
            Err(errno) => {
                log::debug!("cannot prune inodes: {errno}");
                0
            }
        };
    }
    let mut asked = 0;
    for number in numbers {
        let Some(inode) = view.inodes.get(*number) else {
            continue;
        };
        if inode.kind == FileKind::Directory {
            continue;
        }
        let name = inode.kernel_names.last();
        view.kernel.invalidate_name(name.parent, &name.name);
        asked += 1;
    }
    asked
}
