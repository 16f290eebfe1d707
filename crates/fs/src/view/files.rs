//! Opening and closing files.

use super::{Result, Told, View};
use crate::handle::OpenFile;
use crate::inode::Inode;
use crate::prefetch::Streams;
use ogive_origin::{Caller, Errno, OFlags, Origin, Time};
use parking_lot::Mutex;
use std::ffi::OsStr;
use std::sync::Arc;

/// A file that was opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenedFile {
    /// Number of the handle.
    pub(crate) handle: u64,
    /// The kernel's pages are still true.
    pub(crate) keep_pages: bool,
    /// Closing may bring errors of earlier writes.
    pub(crate) writable: bool,
}

impl<O: Origin> View<O> {
    /// Opens a regular file for a thread and decides which version of it is current.
    ///
    /// # Errors
    /// `ESTALE` makes the kernel look the path up again and come back, once.
    pub(crate) fn open(&self, number: u64, flags: OFlags, thread: u32) -> Result<OpenedFile> {
        if is_writable(flags) {
            self.writable()?;
        }
        let inode = self.inode(number)?;
        let must_check = self.must_check_name(thread);
        // Drawn and read before the identity, so that neither can be later than it.
        let ticket = self.versions.ticket();
        let now = Time::now();
        let file = self.origin.open(&inode.node, flags).inspect_err(|errno| {
            if must_check && *errno == Errno::STALE {
                self.retries.expect(thread);
            }
        })?;
        let attributes = self.origin.attributes(&inode.node, Some(&file))?;
        if must_check {
            self.check_name(&inode, || attributes.links, thread)?;
        }
        let identity = attributes.identity(inode.generation);
        let keep_pages = inode.open(|known| {
            let opened = self.versions.open(known, &identity, now, ticket);
            (opened.contents, opened.keep_pages)
        });
        if inode.tell(&attributes) {
            // The kernel believes in another size or time than the file now has; it would not
            // ask before its own deadline.
            self.kernel.invalidate_attributes(number);
        }
        Ok(self.add_file(inode, file, flags, keep_pages))
    }

    /// Creates and opens a regular file.
    pub(crate) fn create(
        &self,
        parent: u64,
        name: &OsStr,
        flags: OFlags,
        mode: u32,
        caller: Caller,
    ) -> Result<(Told, OpenedFile)> {
        let (inode, told, file) = self.create_node(parent, name, flags, mode, caller)?;
        let contents = self.versions.replaced(told.attributes.size_bytes);
        inode.open(|_| (contents, ()));
        Ok((told, self.add_file(inode, file, flags, false)))
    }

    fn add_file(
        &self,
        inode: Arc<Inode<O>>,
        file: O::File,
        flags: OFlags,
        keep_pages: bool,
    ) -> OpenedFile {
        let writable = is_writable(flags);
        let open = Arc::new(OpenFile {
            inode,
            file,
            append: writable && flags.contains(OFlags::APPEND),
            writable,
            streams: Mutex::new(Streams::default()),
        });
        if open.inode.add_file(open.clone()) {
            self.inodes.set_open(&open.inode, true);
        }
        OpenedFile { handle: self.files.insert(open), keep_pages, writable }
    }

    /// Called whenever a descriptor of the handle is closed.
    pub(crate) fn flush(&self, handle: u64) -> Result<()> {
        let open = self.file(handle)?;
        if open.writable { self.origin.flush(&open.file) } else { Ok(()) }
    }

    /// Lets go of a handle.
    pub(crate) fn release(&self, handle: u64) {
        let Some(open) = self.files.remove(handle) else {
            return;
        };
        if open.inode.remove_file(&open) {
            self.inodes.set_open(&open.inode, false);
        }
    }
}

fn is_writable(flags: OFlags) -> bool {
    flags.intersects(OFlags::WRONLY | OFlags::RDWR)
}
