//! Descriptors of objects that lost their last name through this origin.
//!
//! A program may keep a removed object without having it open for reading. It may be its working
//! directory, an `O_PATH` descriptor, or another program's `/proc/PID/fd`. A disk still serves such
//! an object. But a file handle of an object without a name cannot be opened any more, and its
//! place is gone. So a descriptor is opened before the name is removed. It is kept until the view
//! reports that the object is no longer known. The kernel reports that to the view once no program
//! holds the object, for most objects at once. Until then its blocks are not free, as on a disk.
//!
//! File systems that keep open files in their directory, such as NFS, do not need this
//! ([`super::file_systems`]).
//!
//! At most [`KEPT_MAX`] are kept; further removed objects are `ESTALE`. The lock is a leaf;
//! descriptors are closed after it is released.

use super::descriptor_cache::Descriptor;
use super::lookup_descriptors::Key;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Most descriptors kept.
const KEPT_MAX: usize = 1024;

/// Objects without a name.
#[derive(Debug)]
pub(super) struct Unlinked {
    limit: usize,
    /// Their number. Usually it is 0, which this shows without a lock.
    count: AtomicUsize,
    kept: Mutex<HashMap<Key, Arc<Descriptor>>>,
}

impl Unlinked {
    /// For a process that can spare this many descriptors.
    pub(super) fn new(spare: usize) -> Self {
        let limit = spare.min(KEPT_MAX);
        Self { limit, count: AtomicUsize::new(0), kept: Mutex::default() }
    }

    /// Keeps a descriptor of an object that has just lost its last name.
    pub(super) fn keep(&self, key: Key, fd: Arc<Descriptor>) {
        let mut kept = self.kept.lock();
        if kept.len() >= self.limit {
            return;
        }
        let replaced = kept.insert(key, fd);
        self.count.store(kept.len(), Ordering::Relaxed);
        drop(kept);
        drop(replaced);
    }

    /// The descriptor of an object that lost its last name.
    pub(super) fn find(&self, key: impl FnOnce() -> Key) -> Option<Arc<Descriptor>> {
        if self.is_empty() { None } else { self.kept.lock().get(&key()).cloned() }
    }

    /// The kernel has forgotten the object.
    pub(super) fn forget(&self, key: impl FnOnce() -> Key) {
        if self.is_empty() {
            return;
        }
        let mut kept = self.kept.lock();
        let forgotten = kept.remove(&key());
        self.count.store(kept.len(), Ordering::Relaxed);
        drop(kept);
        drop(forgotten);
    }

    /// How many are kept.
    pub(super) fn kept(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Closes them all.
    pub(super) fn clear(&self) {
        let mut kept = self.kept.lock();
        let all = std::mem::take(&mut *kept);
        self.count.store(0, Ordering::Relaxed);
        drop(kept);
        drop(all);
    }

    fn is_empty(&self) -> bool {
        self.kept() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::super::placed_object::ObjectIdentity;
    use super::*;

    #[test]
    fn removed_objects_are_kept_up_to_a_limit_and_until_they_are_forgotten() {
        let removed = Unlinked::new(3);
        let fd = || Descriptor::new(std::fs::File::open("/").unwrap().into());
        let key = |inode| Key::Object(ObjectIdentity { device: 7, inode, generation: 0 });
        (0..9).for_each(|number| removed.keep(key(number), fd()));
        assert_eq!(removed.kept(), 3);
        assert!(removed.find(|| key(2)).is_some() && removed.find(|| key(3)).is_none());
        removed.forget(|| key(2));
        assert!(removed.kept() == 2 && removed.find(|| key(2)).is_none());
        removed.keep(key(8), fd());
        assert!(removed.find(|| key(8)).is_some(), "there is room again");
        removed.clear();
        assert_eq!(removed.kept(), 0);
        assert_eq!(Unlinked::new(1 << 20).limit, KEPT_MAX);
    }
}
