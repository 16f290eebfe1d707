//! Open files and directories, and the kernel's numbers for them.
//!
//! A handle's number is looked up on every read. So the table is sharded, and a shard is
//! read-locked for one probe. Numbers are never reused.

use crate::append_parts::AppendParts;
use crate::dir_cookies::{self, DirCookies};
use crate::held_names::{HeldListing, HeldNames};
use crate::inode::{Inode, Sharing};
use crate::prefetch::Streams;
use crate::record::Version;
use hashbrown::HashMap;
use ogive_origin::Origin;
use parking_lot::{Mutex, RwLock};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// A file that a program has open.
pub(crate) struct OpenFile<O: Origin> {
    pub(crate) inode: Arc<Inode<O>>,
    pub(crate) file: O::File,
    pub(crate) writable: bool,
    /// Its size says how much can be read. If not, each read goes to the origin.
    pub(crate) size_is_reliable: bool,
    /// Its records may go to the second level.
    pub(crate) may_be_kept: bool,
    /// The version at its open.
    pub(crate) version: Version,
    /// The kernel drops the file's pages while it opens this handle, and may not have done so yet.
    pub(crate) drops_pages: AtomicBool,
    /// Its appends past the page cache. Their parts take turns: the lock is held while one is
    /// written.
    pub(crate) append_parts: Mutex<AppendParts>,
    /// Sequential streams through this handle. A leaf lock, held for a few comparisons.
    pub(crate) streams: Mutex<Streams>,
}

impl<O: Origin> OpenFile<O> {
    /// A request by this handle has arrived. So the kernel has opened it, and has dropped its old
    /// pages.
    pub(crate) fn is_opened(&self) {
        if self.drops_pages.load(Ordering::Relaxed)
            && self.drops_pages.swap(false, Ordering::AcqRel)
        {
            self.inode.pages_were_dropped(self.version);
        }
    }
}

/// A directory that a program has open.
pub(crate) struct OpenDirectory<O: Origin> {
    pub(crate) inode: Arc<Inode<O>>,
    /// Opened when the origin is needed.
    pub(crate) directory: OnceLock<O::Directory>,
    /// The device of the directory, and of its entries' numbers.
    pub(crate) device: u64,
    /// It shares the kernel's cached names.
    pub(crate) sharing: Option<Sharing>,
    pub(crate) view: Mutex<DirectoryView>,
    /// The table of its offsets, if it is too large for a listing.
    pub(crate) dir_cookies: OnceLock<Arc<DirCookies>>,
}

impl<O: Origin> OpenDirectory<O> {
    /// The table of its offsets, if it is too large for a listing.
    pub(crate) fn dir_cookies(&self, held: &Arc<HeldNames>) -> &DirCookies {
        self.dir_cookies.get_or_init(|| match self.sharing {
            Some(_) => self.inode.dir_cache.dir_cookies(held),
            None => Arc::new(DirCookies::new(held)),
        })
    }
}

/// A handle keeps the names of this many earlier passes, so that their offsets stay valid.
const EARLIER_MAX: usize = 4;

/// The names that a directory handle reads, in one pass after another.
pub(crate) struct DirectoryView {
    pub(crate) pass: Pass,
    /// The names of earlier passes, the latest at the end.
    earlier: Vec<HeldListing>,
}

/// One pass over an open directory.
pub(crate) enum Pass {
    /// Nothing was read yet.
    Fresh {
        /// Version of the directory, and whether the cache may have a listing for it.
        version: (Version, bool),
    },
    /// It reads these names.
    Reads(Names),
}

/// The names of a pass.
#[derive(Clone)]
pub(crate) enum Names {
    /// The names when reading began.
    Listed(HeldListing),
    /// Too many to keep: each read goes to the origin.
    Through,
}

impl DirectoryView {
    /// Before the first read of a directory of this version.
    pub(crate) fn fresh(version: (Version, bool)) -> Self {
        Self { pass: Pass::Fresh { version }, earlier: Vec::new() }
    }

    /// The names that an offset belongs to; `None` at the start of a pass.
    pub(crate) fn read_on(&self, offset: u64) -> Option<Names> {
        if offset == 0 {
            return None;
        }
        if dir_cookies::is_through(offset) {
            return Some(Names::Through);
        }
        let Pass::Reads(Names::Listed(present)) = &self.pass else {
            let earlier = self.earlier.iter().find(|listing| listing.gave_out(offset));
            return earlier.cloned().map(Names::Listed);
        };
        let mut all = self.earlier.iter().chain([present]);
        let listing = all.find(|listing| listing.gave_out(offset)).unwrap_or(present);
        Some(Names::Listed(listing.clone()))
    }

    /// Begins a pass over these names.
    pub(crate) fn begin(&mut self, names: Names) {
        let before = std::mem::replace(&mut self.pass, Pass::Reads(names));
        if let Pass::Reads(Names::Listed(before)) = before
            && !self.earlier.iter().any(|listing| listing.is(&before))
        {
            if self.earlier.len() == EARLIER_MAX {
                self.earlier.remove(0);
            }
            self.earlier.push(before);
        }
    }
}

const SHARDS: usize = 16;

/// Handles by number.
pub(crate) struct Handles<T> {
    shards: Vec<RwLock<HashMap<u64, Arc<T>>>>,
    next: AtomicU64,
}

impl<T> Handles<T> {
    pub(crate) fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RwLock::new(HashMap::new())).collect(),
            next: AtomicU64::new(1),
        }
    }

    fn shard(&self, number: u64) -> &RwLock<HashMap<u64, Arc<T>>> {
        &self.shards[number as usize % SHARDS]
    }

    /// Adds a handle and returns its number.
    pub(crate) fn insert(&self, handle: Arc<T>) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.shard(number).write().insert(number, handle);
        number
    }

    /// The handle of this number.
    pub(crate) fn get(&self, number: u64) -> Option<Arc<T>> {
        self.shard(number).read().get(&number).cloned()
    }

    /// One of the handles, whichever is found first.
    pub(crate) fn any(&self) -> Option<Arc<T>> {
        self.shards.iter().find_map(|shard| shard.read().values().next().cloned())
    }

    /// Takes the handle of this number away.
    pub(crate) fn remove(&self, number: u64) -> Option<Arc<T>> {
        self.shard(number).write().remove(&number)
    }

    /// Takes all handles away.
    pub(crate) fn remove_all(&mut self) -> impl Iterator<Item = Arc<T>> {
        self.shards.iter_mut().flat_map(|shard| std::mem::take(shard.get_mut()).into_values())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_names_its_handle_until_it_is_removed() {
        let mut handles = Handles::new();
        assert_eq!(handles.any(), None);
        let numbers: Vec<u64> = (0..100).map(|i| handles.insert(Arc::new(i))).collect();
        assert_eq!(handles.get(numbers[42]).as_deref(), Some(&42));
        assert_eq!(handles.remove(numbers[42]).as_deref(), Some(&42));
        assert!(handles.get(numbers[42]).is_none());
        assert!(handles.remove(numbers[42]).is_none());
        assert!(handles.any().is_some_and(|some| *some < 100 && *some != 42));
        assert!(!numbers.contains(&handles.insert(Arc::new(7))));
        assert_eq!(handles.remove_all().count(), 100);
        assert_eq!(handles.any(), None);
    }
}
