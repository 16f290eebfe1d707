//! Asks the kernel to forget inodes.
//!
//! The kernel keeps an inode of ours for every one of its own, and it keeps its own until memory is
//! short. On a machine with much memory that never happens. So the table has its own limit
//! ([`crate::inode_limit`]). When the cache has to give memory back, it asks here, too. Either way
//! the kernel is asked to forget inodes that no program has open, least recently looked up first.
//! It is asked once for each ([`crate::inode::InodeTable::take_idle`]). Forgotten inodes come back
//! as FORGET requests, and those count as freed.
//!
//! A kernel before 6.18 can only drop names, and drops a directory's name even while a program is
//! inside. So directories are left alone there.

use crate::statistics::INODE_BYTES;
use crate::view::View;
use ogive_arc::{Prune, PruneResult};
use ogive_origin::{Errno, FileKind, Origin};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Inodes per batch; then the prune waits to see how many the kernel forgets.
const BATCH: usize = 4096;
/// How long to wait for the kernel to answer a batch.
const PATIENCE: Duration = Duration::from_millis(500);

impl<O: Origin> View<O> {
    /// Prunes inodes if there are too many, on another thread, because the kernel answers through
    /// the session.
    pub(crate) fn keep_inode_limit(self: &Arc<Self>) {
        if self.inode_limit.is_due(self.inodes.len()) {
            let view = self.clone();
            self.workers.request(Box::new(move || {
                let wanted = view.inode_limit.excess(view.inodes.len());
                let freed = view.prune_inodes(wanted).freed_objects;
                if freed * 2 < wanted as u64 {
                    log::debug!("asked for {wanted} inodes, got {freed} back");
                }
                view.inode_limit.pruned_to(view.inodes.len());
            }));
        }
    }

    /// Asks the kernel to forget `wanted` inodes, and counts it.
    pub(crate) fn prune_inodes(&self, wanted: usize) -> PruneResult {
        let result = prune(self, wanted);
        self.inode_limit.count(&result);
        result
    }
}

/// The inode table as an owner of memory that the engine may prune.
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

/// Asks for these inodes; returns for how many of them the kernel could be asked.
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
