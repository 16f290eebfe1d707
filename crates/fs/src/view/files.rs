//! Opening and closing files.

use super::{NodeAttributes, Result, View};
use crate::handle::OpenFile;
use crate::inode::{Inode, KernelSize};
use crate::kernel::Backing;
use crate::prefetch::Streams;
use crate::record::{Key, Version};
use ogive_origin::{Caller, Errno, Identity, Needed, OFlags, Origin, Time};
use parking_lot::Mutex;
use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// A file that was opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenedFile {
    /// Number of the handle.
    pub(crate) handle: u64,
    /// The kernel's pages are still valid.
    pub(crate) keep_pages: bool,
    /// Closing may report errors of earlier writes.
    pub(crate) writable: bool,
    /// The kernel may cache its pages, and its size is reliable.
    pub(crate) size_is_reliable: bool,
    /// The kernel reads and writes it itself.
    pub(crate) backing: Option<Backing>,
}

impl<O: Origin> View<O> {
    /// Opens a regular file for a thread and decides which version of it is current.
    ///
    /// # Errors
    /// `ESTALE` makes the kernel look the path up again and retry once.
    pub(crate) fn open(&self, number: u64, flags: OFlags, thread: u32) -> Result<OpenedFile> {
        if is_writable(flags) {
            self.writable()?;
        }
        let arrived = Instant::now();
        let inode = self.inode(number)?;
        let must_check = self.must_check_name(number, thread);
        // Drawn and read before the identity, so that neither can be later than the identity.
        let ticket = self.versions.ticket();
        let now = Time::now();
        // An origin far away can send the first record with the answer to the open.
        let is_kept = |identity: &Identity| {
            let (version, is_settled) = self.versions.of(identity, now);
            is_settled && (inode.has_pages_of(version) || self.has_first_record(version))
        };
        let opened = self.origin.open_unread(&inode.node, flags, &is_kept);
        let opened = opened.map_err(|errno| match errno {
            // The request has no name, but the source may open by a stored name that leads to
            // another file by now. After another path walk its answer counts.
            Errno::NOENT if !self.estale_retries.revalidates(thread) => Errno::STALE,
            other => other,
        });
        let file = opened.inspect_err(|errno| {
            if *errno == Errno::STALE && self.names_may_be_old() {
                self.estale_retries.expect(
                    thread,
                    (inode.kernel_names.last(), number),
                    !must_check,
                );
            }
        })?;
        let attributes =
            self.origin.attributes_needed(&inode.node, Some(&file), Needed::Version)?;
        if must_check {
            self.check_name(&inode, thread, arrived)?;
        }
        let identity = attributes.identity(inode.generation);
        let opened = inode.open(|known| {
            let opened = self.versions.open(known, &identity, now, ticket);
            (opened.contents, opened)
        });
        let version = opened.contents.version;
        let keep_pages =
            opened.keep_pages && (self.versions.is_sole_writer() || inode.has_pages_of(version));
        if inode.report(&attributes) {
            // The kernel has cached another size or time, and would not ask before its own
            // deadline.
            self.kernel.invalidate_attributes(number);
        }
        let size_is_reliable =
            !is_readable(flags) || self.origin.size_is_reliable(&file, attributes.size_bytes);
        let opened = (version, keep_pages, size_is_reliable);
        Ok(self.add_file(inode, file, flags, attributes.permissions, opened))
    }

    /// Whether the first record of a file is in memory or probably in the second level.
    fn has_first_record(&self, version: Version) -> bool {
        let level = self.second_level.as_ref();
        self.cache.contains(&Key::record(version, 0))
            || level.is_some_and(|level| level.may_have(version, 0))
    }

    /// Creates and opens a regular file.
    pub(crate) fn create(
        &self,
        parent: u64,
        name: &OsStr,
        flags: OFlags,
        mode: u32,
        caller: Caller,
    ) -> Result<(NodeAttributes, OpenedFile)> {
        let (inode, known, file) = self.create_node(parent, name, flags, mode, caller)?;
        let contents = self.versions.replaced(known.attributes.size_bytes);
        inode.open(|_| (contents, ()));
        let permissions = known.attributes.permissions;
        let opened = (contents.version, false, true);
        Ok((known, self.add_file(inode, file, flags, permissions, opened)))
    }

    fn add_file(
        &self,
        inode: Arc<Inode<O>>,
        file: O::File,
        flags: OFlags,
        permissions: u16,
        (version, keep_pages, size_is_reliable): (Version, bool, bool),
    ) -> OpenedFile {
        let writable = is_writable(flags);
        let choose = || self.choose_open_mode(&inode, &file, permissions, writable);
        let backing = size_is_reliable.then(choose).flatten();
        if backing.is_some() {
            // The kernel does not report its own writes.
            inode.update_kernel_size(|size| *size = KernelSize::UNKNOWN);
        }
        // Pages that the kernel cached before do not have its own writes.
        let keep_pages = keep_pages && backing.is_none();
        let open = Arc::new(OpenFile {
            may_be_kept: self.may_be_kept(&inode),
            inode,
            file,
            writable,
            size_is_reliable,
            version,
            drops_pages: AtomicBool::new(!keep_pages),
            append_parts: Mutex::default(),
            streams: Mutex::new(Streams::default()),
        });
        if open.inode.add_file(open.clone()) {
            self.inodes.set_open(&open.inode, true);
        }
        OpenedFile {
            handle: self.files.insert(open),
            keep_pages,
            writable,
            size_is_reliable,
            backing,
        }
    }

    /// Called whenever a descriptor of the handle is closed.
    pub(crate) fn flush(&self, handle: u64) -> Result<()> {
        let open = self.file(handle)?;
        if open.writable { self.origin.flush(&open.file) } else { Ok(()) }
    }

    /// Releases a handle.
    pub(crate) fn release(&self, handle: u64) {
        let Some(open) = self.files.remove(handle) else {
            return;
        };
        open.is_opened();
        self.close(open);
    }

    /// Closes a handle whose number the kernel never got.
    pub(crate) fn undo_open(&self, handle: u64) {
        if let Some(open) = self.files.remove(handle) {
            self.close(open);
        }
    }

    fn close(&self, open: Arc<OpenFile<O>>) {
        self.leave_open_mode(&open.inode);
        if open.inode.remove_file(&open) {
            self.inodes.set_open(&open.inode, false);
        }
        drop(open);
        self.late_releases.note();
    }
}

/// A mount may end with files open, after `umount -l` or when its connection was cut. An open file
/// and its inode refer to each other, so neither would be dropped by itself.
impl<O: Origin> Drop for View<O> {
    fn drop(&mut self) {
        for open in self.files.remove_all() {
            open.inode.remove_file(&open);
        }
    }
}

fn is_writable(flags: OFlags) -> bool {
    flags.intersects(OFlags::WRONLY | OFlags::RDWR)
}

fn is_readable(flags: OFlags) -> bool {
    flags & OFlags::ACCMODE != OFlags::WRONLY
}
