//! Operations on attributes, extended attributes and the file system as a whole.

use super::{Result, Told, View};
use crate::number::ROOT;
use crate::version::Contents;
use ogive_origin::{Changes, Errno, FileKind, FileSystemStatistics, Origin, XattrFlags};
use std::ffi::OsStr;

impl<O: Origin> View<O> {
    /// Current attributes.
    pub(crate) fn attributes(&self, number: u64, handle: Option<u64>) -> Result<Told> {
        if number == ROOT {
            return self.refresh_root().map(|(_, told)| told);
        }
        let inode = self.inode(number)?;
        let file = handle.and_then(|handle| self.files.get(handle));
        let file = file.as_ref().map(|open| &open.file);
        let attributes = match self.origin.attributes(&inode.node, file) {
            // The last name is gone, but somebody has the file open.
            Err(errno @ (Errno::STALE | Errno::NOENT)) => match inode.any_file() {
                Some(open) => self.origin.attributes(&inode.node, Some(&open.file))?,
                None => return Err(errno),
            },
            other => other?,
        };
        if attributes.kind != inode.kind {
            return Err(Errno::STALE);
        }
        self.notice_size(&inode, attributes.size_bytes);
        Ok(self.tell(&inode, attributes))
    }

    /// Changes attributes for a thread. A change of size gives the file a version of a kind.
    ///
    /// # Errors
    /// `ESTALE` for a change of size by a name that may mean another file by now: the kernel
    /// looks the path up again and comes back, once.
    pub(crate) fn set_attributes(
        &self,
        number: u64,
        handle: Option<u64>,
        changes: &Changes,
        thread: u32,
    ) -> Result<Told> {
        self.writable()?;
        let inode = self.inode(number)?;
        let by_name = handle.is_none() && inode.any_file().is_none();
        if changes.size_bytes.is_some() && by_name && self.must_check_name(thread) {
            let attributes = || self.origin.attributes(&inode.node, None);
            self.check_name(&inode, || attributes().map_or(0, |known| known.links), thread)?;
        }
        let open = handle.and_then(|handle| self.files.get(handle));
        // What is loaded while a size is being set is not kept.
        let changing = changes.size_bytes.map(|size_bytes| {
            let changing = inode.begin_change(0..u64::MAX);
            let replaced = self.versions.replaced(size_bytes);
            inode.update_contents(|known| {
                *known = Contents { size_bytes: known.size_bytes, ..replaced };
            });
            changing
        });
        let set = |file| self.origin.set_attributes(&inode.node, file, changes);
        let result = match set(open.as_ref().map(|open| &open.file)) {
            Err(errno @ (Errno::STALE | Errno::NOENT)) => match inode.any_file() {
                Some(open) => set(Some(&open.file)),
                None => Err(errno),
            },
            other => other,
        };
        if let Some(size_bytes) = changes.size_bytes {
            // Also after an error: some of the changes may have been made.
            let contents = self.versions.replaced(size_bytes);
            inode.update_contents(|known| *known = contents);
        }
        drop(changing);
        Ok(self.tell(&inode, result?))
    }

    /// Length of an extended attribute's value, and the value if `into` has room for it.
    pub(crate) fn get_xattr(&self, number: u64, name: &OsStr, into: &mut [u8]) -> Result<usize> {
        let inode = self.inode(number)?;
        // What a link or a special file could carry in this name is nothing; asking costs as much
        // as for any other file.
        if inode.kind != FileKind::Regular && name == "security.capability" {
            return Err(Errno::NODATA);
        }
        self.origin.get_xattr(&inode.node, name, into)
    }

    /// Sets an extended attribute.
    pub(crate) fn set_xattr(
        &self,
        number: u64,
        name: &OsStr,
        value: &[u8],
        flags: XattrFlags,
    ) -> Result<()> {
        self.writable()?;
        self.origin.set_xattr(&self.inode(number)?.node, name, value, flags)?;
        // An access control list also changes the mode.
        self.kernel.invalidate_attributes(number);
        Ok(())
    }

    /// Length of the list of extended attributes, and the list if `into` has room for it.
    pub(crate) fn list_xattrs(&self, number: u64, into: &mut [u8]) -> Result<usize> {
        self.origin.list_xattrs(&self.inode(number)?.node, into)
    }

    /// Removes an extended attribute.
    pub(crate) fn remove_xattr(&self, number: u64, name: &OsStr) -> Result<()> {
        self.writable()?;
        self.origin.remove_xattr(&self.inode(number)?.node, name)?;
        self.kernel.invalidate_attributes(number);
        Ok(())
    }

    /// Space and inodes.
    pub(crate) fn statistics(&self, number: u64) -> Result<FileSystemStatistics> {
        self.origin.statistics(&self.inode(number)?.node)
    }
}
