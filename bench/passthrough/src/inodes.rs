//! The inode table: what the kernel knows by number, and how to reach it again.
//!
//! The number shown to the kernel is the origin's own inode number (one file system only), so one
//! map is enough. A file is remembered by its handle; a directory also keeps a path-only
//! descriptor, because every lookup and every listed entry goes through it. Entries leave with the
//! kernel's `FORGET`, and a shard that has become mostly empty gives its memory back.
//!
//! Locks: one mutex a shard, held for a map operation only, never across a system call, never two
//! at once.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::handle::Handle;

const SHARDS: usize = 16;
const SHRINK_FLOOR: usize = 1024;

/// How an inode is reached.
#[derive(Clone)]
pub enum Place {
    /// Anything but a directory.
    File(Handle),
    /// A directory, with the descriptor its children are reached through.
    Directory(Arc<OwnedFd>),
}

struct Inode {
    lookups: u64,
    place: Place,
}

/// All inodes the kernel holds a reference to.
pub struct Inodes {
    shards: [Mutex<HashMap<u64, Inode>>; SHARDS],
}

impl Inodes {
    /// A table that knows the root only; the kernel never forgets it.
    pub fn new(root: u64, directory: OwnedFd) -> Self {
        let inodes = Self { shards: std::array::from_fn(|_| Mutex::new(HashMap::new())) };
        inodes.remember(root, || Place::Directory(Arc::new(directory)));
        inodes
    }

    /// Where inode `ino` is, if the kernel still knows it.
    pub fn place(&self, ino: u64) -> Option<Place> {
        self.shard(ino).get(&ino).map(|inode| inode.place.clone())
    }

    /// Counts one more lookup of `ino` and notes its place.
    ///
    /// A known file's place is overwritten: an inode number can come back with another handle
    /// after an unlink, and then the new one is right. A known directory keeps its descriptor.
    pub fn remember(&self, ino: u64, place: impl FnOnce() -> Place) {
        let mut shard = self.shard(ino);
        match shard.get_mut(&ino) {
            Some(inode) => {
                inode.lookups += 1;
                if matches!(inode.place, Place::File(_)) {
                    inode.place = place();
                }
            }
            None => {
                shard.insert(ino, Inode { lookups: 1, place: place() });
            }
        }
    }

    /// Whether `ino` is known as a directory; its descriptor need not be opened again then.
    pub fn knows_directory(&self, ino: u64) -> bool {
        matches!(self.shard(ino).get(&ino), Some(Inode { place: Place::Directory(_), .. }))
    }

    /// Takes back `lookups` of `ino`; at none the entry goes.
    pub fn forget(&self, ino: u64, lookups: u64) {
        let mut shard = self.shard(ino);
        let Some(inode) = shard.get_mut(&ino) else {
            return;
        };
        inode.lookups = inode.lookups.saturating_sub(lookups);
        if inode.lookups > 0 {
            return;
        }
        let gone = shard.remove(&ino);
        if shard.capacity() > SHRINK_FLOOR && shard.len() < shard.capacity() / 8 {
            let twice = shard.len() * 2;
            shard.shrink_to(twice);
        }
        drop(shard);
        drop(gone); // may close a descriptor: outside the lock
    }

    fn shard(&self, ino: u64) -> MutexGuard<'_, HashMap<u64, Inode>> {
        // Fibonacci hashing: neighbours in the origin's inode table spread over the shards.
        let index = (ino.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 59) as usize % SHARDS;
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
