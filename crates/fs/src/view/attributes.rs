//! Operations on attributes, extended attributes and the file system as a whole.

use super::{NodeAttributes, Result, View};
use crate::handle::OpenFile;
use crate::inode::{Inode, KernelSize};
use crate::inode_number::ROOT;
use crate::version::Contents;
use ogive_origin::{
    Access, Changes, Errno, FileFlags, FileKind, FileSystemStatistics, FlagsForm, Needed, Origin,
    XattrFlags,
};
use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Instant;

impl<O: Origin> View<O> {
    /// Attributes for a kernel that asks by a handle and so needs only the size. It does so when it
    /// reads, appends or looks for the end, and never for `stat(2)`. The other attributes may be
    /// older. `None` where all of them are current. This matters while a file is being written: for
    /// current times, an NFS client would send each write to the source at once.
    pub(crate) fn attributes_for_size(
        &self,
        number: u64,
        handle: Option<u64>,
    ) -> Option<Result<NodeAttributes>> {
        let open = self.files.get(handle?)?;
        let inode = self.inodes.get(number)?;
        let is_written = inode.contents().is_some_and(|contents| !contents.pristine);
        if !is_written || !self.origin.flushes_before_times(&inode.node) {
            return None;
        }
        let found = self.origin.attributes_needed(&inode.node, Some(&open.file), Needed::Size);
        Some(found.map(|attributes| {
            self.notice_size(&inode, attributes.size_bytes);
            self.report(&inode, attributes)
        }))
    }

    /// Current attributes.
    pub(crate) fn attributes(&self, number: u64, handle: Option<u64>) -> Result<NodeAttributes> {
        if number == ROOT {
            return self.root_attributes();
        }
        let inode = self.inode(number)?;
        let open = handle.and_then(|handle| self.files.get(handle));
        let open = open.or_else(|| self.open_file_of(&inode));
        let file = open.as_ref().map(|open| &open.file);
        if let Some(open) = &open
            && self.origin.pinned_identity(&open.file).is_some()
        {
            // These attributes date from the open, and do not show a later change.
            self.contents_read_by(open)?;
            let attributes = self.origin.attributes(&inode.node, file)?;
            return Ok(self.report(&inode, attributes));
        }
        let attributes = match self.origin.attributes(&inode.node, file) {
            // The last name is gone, but a program has the file open.
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
        Ok(self.report(&inode, attributes))
    }

    /// An open file of an inode through which current attributes can be read without another open.
    fn open_file_of(&self, inode: &Inode<O>) -> Option<Arc<OpenFile<O>>> {
        inode.any_file().filter(|open| self.origin.pinned_identity(&open.file).is_none())
    }

    /// Changes attributes for a thread. A change of size gives the file a unique version.
    ///
    /// # Errors
    /// `ESTALE` for a change of size by a name that may lead to another file by now. The kernel
    /// then looks the path up again and retries once.
    pub(crate) fn set_attributes(
        &self,
        number: u64,
        handle: Option<u64>,
        changes: &Changes,
        thread: u32,
    ) -> Result<NodeAttributes> {
        self.writable()?;
        let inode = self.inode(number)?;
        let by_name = handle.is_none() && inode.any_file().is_none();
        if changes.size_bytes.is_some() && by_name && self.must_check_name(number, thread) {
            self.check_name(&inode, thread, Instant::now())?;
        }
        let mut open = handle.and_then(|handle| self.files.get(handle));
        if changes.size_bytes.is_none() {
            open = open.or_else(|| self.open_file_of(&inode));
        }
        // Records that are loaded while a size is being set are not kept.
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
                Some(open) => {
                    self.may_resize(&inode, &open, changes).and_then(|()| set(Some(&open.file)))
                }
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
        let attributes = result?;
        if changes.size_bytes.is_some() {
            let size = KernelSize::exactly(attributes.size_bytes);
            inode.update_kernel_size(|kernel| *kernel = size);
        }
        Ok(self.report(&inode, attributes))
    }

    /// Checks that the requester may cut a file that another program has open.
    fn may_resize(&self, inode: &Inode<O>, open: &OpenFile<O>, changes: &Changes) -> Result<()> {
        if changes.size_bytes.is_none() || !self.settings.permissions.are_of_source() {
            return Ok(());
        }
        self.origin.access(&inode.node, Some(&open.file), Access::WRITE_OK)
    }

    /// Asks the source whether the requester may do this with an object.
    pub(crate) fn access(&self, number: u64, wanted: Access) -> Result<()> {
        let inode = match number {
            ROOT => self.refresh_root()?.0,
            number => self.inode(number)?,
        };
        match self.origin.access(&inode.node, None, wanted) {
            // The last name is gone, but a program has the file open.
            Err(errno @ (Errno::STALE | Errno::NOENT)) => match inode.any_file() {
                Some(open) => self.origin.access(&inode.node, Some(&open.file), wanted),
                None => Err(errno),
            },
            other => other,
        }
    }

    /// Whether the origin need not be asked because an extended attribute is known to be missing.
    pub(crate) fn is_known_to_lack(&self, number: u64, name: &OsStr) -> bool {
        let Some(inode) = self.inodes.get(number).filter(|_| is_listed(name)) else {
            return false;
        };
        self.can_have_none(&inode, name)
            || (!self.settings.metadata_ttl.is_zero() && inode.lacks_xattrs())
    }

    /// Whether no file of this kind, or of this source, can have the attribute.
    fn can_have_none(&self, inode: &Inode<O>, name: &OsStr) -> bool {
        // A link or a special file has no use for this attribute, and asking costs as much as for
        // any other file.
        name == CAPABILITY
            && (inode.kind != FileKind::Regular || self.origin.lacks_capabilities(&inode.node))
    }

    /// Length of an extended attribute's value, and the value if `into` has room for it.
    pub(crate) fn get_xattr(&self, number: u64, name: &OsStr, into: &mut [u8]) -> Result<usize> {
        let inode = self.inode(number)?;
        if self.can_have_none(&inode, name) || (is_listed(name) && self.lacks_xattrs(&inode)) {
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
        let inode = self.inode(number)?;
        let result = self.origin.set_xattr(&inode.node, name, value, flags);
        inode.xattrs_may_exist();
        result?;
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

    /// Flags of a file in its file system (`lsattr(1)`).
    pub(crate) fn flags(&self, number: u64, form: FlagsForm) -> Result<FileFlags> {
        self.origin.flags(&self.with_flags(number)?.node, form)
    }

    /// Sets them for a user after the kernel has checked the rights.
    ///
    /// # Errors
    /// `EPERM` for flags that the origin's file system reserves for root, as ext4 does for
    /// journaling data: this process may be root.
    pub(crate) fn set_flags(&self, number: u64, flags: FileFlags, user: u32) -> Result<()> {
        /// `FS_JOURNAL_DATA_FL` of `linux/fs.h`.
        const JOURNAL_DATA: u32 = 0x4000;
        self.writable()?;
        let inode = self.with_flags(number)?;
        if let FileFlags::Plain(wanted) = flags
            && user != 0
            && let FileFlags::Plain(known) = self.origin.flags(&inode.node, FlagsForm::Plain)?
            && (wanted ^ known) & JOURNAL_DATA != 0
        {
            return Err(Errno::PERM);
        }
        self.origin.set_flags(&inode.node, flags)?;
        self.kernel.invalidate_attributes(number);
        Ok(())
    }

    /// An inode that can have flags. Others are not opened for that.
    fn with_flags(&self, number: u64) -> Result<Arc<Inode<O>>> {
        let inode = self.inode(number)?;
        match inode.kind {
            FileKind::Regular | FileKind::Directory => Ok(inode),
            _ => Err(Errno::NOTTY),
        }
    }

    /// Whether an inode has no extended attributes, by a recent answer or a new one.
    fn lacks_xattrs(&self, inode: &Inode<O>) -> bool {
        let memory = self.settings.metadata_ttl;
        if memory.is_zero() {
            return false;
        }
        if inode.lacks_xattrs() {
            return true;
        }
        let mark = inode.xattr_mark();
        let lacks_xattrs = matches!(self.origin.list_xattrs(&inode.node, &mut []), Ok(0));
        if lacks_xattrs {
            inode.learn_no_xattrs(mark, memory);
        }
        lacks_xattrs
    }

    /// Space and inodes.
    pub(crate) fn statistics(&self, number: u64) -> Result<FileSystemStatistics> {
        self.origin.statistics(&self.inode(number)?.node)
    }
}

/// The capabilities of a program that is executed from the file. The kernel asks for them before
/// each write, because a write removes them.
const CAPABILITY: &str = "security.capability";

/// Whether a file with this extended attribute lists its name. Some file systems have others that
/// are in no list.
fn is_listed(name: &OsStr) -> bool {
    let listed =
        [CAPABILITY, "security.selinux", "system.posix_acl_access", "system.posix_acl_default"];
    listed.iter().any(|listed| name == *listed)
}
