//! Inodes that the kernel knows: their identity, their open files, and the order of pruning.

mod changes_in_flight;
mod dir_cache;
mod kernel_names;
mod kernel_size;
mod no_xattrs;
mod open_mode;
mod table;

pub(crate) use changes_in_flight::Changing;
pub(crate) use dir_cache::Sharing;
pub(crate) use kernel_names::{KernelName, KernelNames, Name};
pub(crate) use kernel_size::KernelSize;
pub(crate) use no_xattrs::Mark;
pub(crate) use table::{InodeTable, Leaves};

use crate::handle::OpenFile;
use crate::kernel::Backing;
use crate::record::Version;
use crate::version::Contents;
use dir_cache::DirCache;
use kernel_size::KernelSizes;
use no_xattrs::NoXattrs;
use ogive_origin::{Attributes, FileKind, Found, Origin};
use open_mode::OpenMode;
use parking_lot::Mutex;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// One object of the origin that the kernel has looked up.
///
/// A mount over millions of files keeps millions of these, so the state of open files is in a box
/// of its own. The lock is a leaf: nothing is called while it is held.
pub(crate) struct Inode<O: Origin> {
    /// Its node id, the kernel's name for it.
    pub(crate) number: u64,
    /// Its number in `st_ino`.
    pub(crate) shown: u64,
    /// Distinguishes it from earlier objects with that number.
    pub(crate) generation: u64,
    /// The origin's name for it.
    pub(crate) node: O::Node,
    /// Kind of object; an object of another kind is another object.
    pub(crate) kind: FileKind,
    /// Fingerprint of the attributes in the latest reply.
    reported: AtomicU64,
    reported_sizes: KernelSizes,
    no_xattrs: NoXattrs,
    /// The kernel's cached names of a directory.
    pub(crate) dir_cache: DirCache,
    opened: Mutex<Option<Box<OpenState<O>>>>,
    /// The names by which the kernel may come to it.
    pub(crate) kernel_names: KernelNames,
}

/// The state of an inode that has been opened.
struct OpenState<O: Origin> {
    contents: Contents,
    kernel_size: KernelSize,
    /// The kernel has no pages of an earlier version than this.
    pages_of: Option<Version>,
    files: Vec<Arc<OpenFile<O>>>,
    /// The mode of its open files: served by the kernel itself or by this process.
    open_mode: OpenMode,
    /// Ranges of changes in flight through the mount, in bytes.
    changing: Vec<Range<u64>>,
}

impl<O: Origin> OpenState<O> {
    fn new(contents: Contents, kernel_size: KernelSize) -> Self {
        Self {
            contents,
            kernel_size,
            pages_of: None,
            files: Vec::new(),
            open_mode: OpenMode::Free,
            changing: Vec::new(),
        }
    }
}

impl<O: Origin> Inode<O> {
    pub(crate) fn new(number: u64, shown: u64, found: Found<O::Node>) -> Self {
        Self {
            number,
            shown,
            generation: found.generation,
            kind: found.attributes.kind,
            node: found.node,
            reported: AtomicU64::new(0),
            reported_sizes: KernelSizes::default(),
            no_xattrs: NoXattrs::default(),
            dir_cache: DirCache::default(),
            opened: Mutex::new(None),
            kernel_names: KernelNames::default(),
        }
    }

    /// The same for an object that replaces another of the same number, unnoticed by the kernel.
    pub(crate) fn in_place_of_another(number: u64, shown: u64, found: Found<O::Node>) -> Self {
        Self { dir_cache: DirCache::never(), ..Self::new(number, shown, found) }
    }

    /// Notes attributes that a reply is about to give the kernel. Returns whether they differ from
    /// those in the reply before.
    pub(crate) fn report(&self, attributes: &Attributes) -> bool {
        match self.opened.lock().as_mut() {
            Some(opened) => opened.kernel_size.may_be(attributes.size_bytes),
            None => self.reported_sizes.report(attributes.size_bytes),
        }
        let fingerprint = attributes.identity(self.generation).fingerprint() | 1;
        self.reported.swap(fingerprint, Ordering::Relaxed) != fingerprint
    }

    /// Whether it is known to have no extended attributes.
    pub(crate) fn lacks_xattrs(&self) -> bool {
        self.no_xattrs.is_known()
    }

    /// To be taken before the request to the origin for all extended attributes.
    pub(crate) fn xattr_mark(&self) -> Mark {
        self.no_xattrs.mark()
    }

    /// The origin has no extended attributes for it.
    pub(crate) fn learn_no_xattrs(&self, mark: Mark, memory: Duration) {
        self.no_xattrs.learn(mark, memory);
    }

    /// An extended attribute may have been set.
    pub(crate) fn xattrs_may_exist(&self) {
        self.no_xattrs.forget();
    }

    /// The bounds of the size that the kernel has cached.
    pub(crate) fn kernel_size(&self) -> KernelSize {
        let opened = self.opened.lock();
        opened.as_ref().map_or(KernelSize::UNKNOWN, |opened| opened.kernel_size)
    }

    /// Updates the kernel's size of a file that has been opened; `change` must not block.
    pub(crate) fn update_kernel_size(&self, change: impl FnOnce(&mut KernelSize)) {
        if let Some(opened) = self.opened.lock().as_mut() {
            change(&mut opened.kernel_size);
        }
    }

    /// Version and size of the contents, if the file has been opened.
    pub(crate) fn contents(&self) -> Option<Contents> {
        self.opened.lock().as_ref().map(|opened| opened.contents)
    }

    /// Changes the contents' version and size; `change` must not block.
    pub(crate) fn update_contents(&self, change: impl FnOnce(&mut Contents)) {
        if let Some(opened) = self.opened.lock().as_mut() {
            change(&mut opened.contents);
        }
    }

    /// Decides the contents on opening; returns the other result of `decide`.
    pub(crate) fn open<T>(&self, decide: impl FnOnce(Option<Contents>) -> (Contents, T)) -> T {
        let mut opened = self.opened.lock();
        let (contents, result) = decide(opened.as_ref().map(|opened| opened.contents));
        match opened.as_mut() {
            Some(opened) => opened.contents = contents,
            None => {
                *opened = Some(Box::new(OpenState::new(contents, self.reported_sizes.on_open())))
            }
        }
        result
    }

    /// Whether the kernel has certainly dropped the pages of all versions before this one. Replies
    /// to two opens can overtake each other. Before the drop is certain, a second open that kept
    /// the pages would read those that the first is about to drop.
    pub(crate) fn has_pages_of(&self, version: Version) -> bool {
        self.opened.lock().as_ref().is_some_and(|opened| opened.pages_of == Some(version))
    }

    /// The kernel has dropped them while it opened a file at this version.
    pub(crate) fn pages_were_dropped(&self, version: Version) {
        if let Some(opened) = self.opened.lock().as_mut()
            && opened.contents.version == version
        {
            opened.pages_of = Some(version);
        }
    }

    /// Any open file of this inode. On some origins that is the only way to an object without a
    /// name.
    pub(crate) fn any_file(&self) -> Option<Arc<OpenFile<O>>> {
        self.opened.lock().as_ref().and_then(|opened| opened.files.first().cloned())
    }

    /// Whether a file that is opened now may be served by the kernel itself or by this process.
    pub(crate) fn may_choose_open_mode(&self) -> bool {
        self.opened.lock().as_ref().is_none_or(|opened| opened.open_mode.is_free())
    }

    /// Adds an open file that asks for this backing, so that the kernel serves it itself. Returns
    /// the backing for the reply, if any.
    pub(crate) fn join_open_mode(&self, requested: Option<Backing>) -> Option<Backing> {
        self.opened.lock().as_mut().and_then(|opened| opened.open_mode.join(requested))
    }

    /// Removes an open file. Returns a backing that no file needs any more.
    pub(crate) fn leave_open_mode(&self) -> Option<Backing> {
        self.opened.lock().as_mut().and_then(|opened| opened.open_mode.leave())
    }

    /// Adds an open file; true if it is the first one.
    pub(crate) fn add_file(&self, file: Arc<OpenFile<O>>) -> bool {
        let mut opened = self.opened.lock();
        let Some(opened) = opened.as_mut() else {
            return false;
        };
        opened.files.push(file);
        opened.files.len() == 1
    }

    /// Takes an open file away; true if it was the last one.
    pub(crate) fn remove_file(&self, file: &Arc<OpenFile<O>>) -> bool {
        let mut opened = self.opened.lock();
        let Some(opened) = opened.as_mut() else {
            return false;
        };
        let Some(position) = opened.files.iter().position(|other| Arc::ptr_eq(other, file)) else {
            return false;
        };
        opened.files.swap_remove(position);
        opened.files.is_empty()
    }
}
