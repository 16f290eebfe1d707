//! The directory origin's implementation of [`Origin`]: one or two system calls for each operation.

use super::descriptor_cache::Descriptor;
use super::file_systems::Sizes;
use super::handle::{extended_flags, set_extended_flags};
use super::node::{PathDescriptor, open_real};
use super::opening;
use super::set_attributes::change;
use super::whole_io::{read_no_more, write_all};
use super::{DirectoryOrigin, Node, OpenDirectory, OpenFile, magic_link};
use crate::{
    Access, Allocation, Attributes, Caller, Changes, DirectoryEntry, FileFlags, FileKind,
    FileSystemStatistics, FlagsForm, Found, Make, Needed, OFlags, Origin, RenameFlags, Result,
    SetTime, Whence, XattrFlags,
};
use parking_lot::Mutex;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Advice, AtFlags, CWD, FallocateFlags, FileType, IFlags, SeekFrom, StatxFlags};
use rustix::io::{Errno, ReadWriteFlags, retry_on_intr};
use std::ffi::{OsStr, OsString};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

/// No file has a byte at or beyond this offset, and pread(2) refuses a range that ends beyond it.
const OFFSET_MAX: u64 = i64::MAX as u64;

/// Bytes per `getdents64(2)`.
const LISTING_BYTES: usize = 32 * 1024;

/// Open flags that must not reach the origin. Creation is a call of its own, truncation is a
/// change of size, and the alignment rules of direct I/O do not suit the cache.
const STRIPPED: OFlags = OFlags::CREATE
    .union(OFlags::EXCL)
    .union(OFlags::TRUNC)
    .union(OFlags::DIRECT)
    .union(OFlags::NOCTTY);

impl DirectoryOrigin {
    fn path_descriptor(&self, node: &Node) -> Result<PathDescriptor> {
        self.nodes.path_descriptor(node)
    }

    fn remove(&self, parent: &Node, name: &OsStr, flags: AtFlags) -> Result<()> {
        self.nodes.within(parent, |directory| {
            let remove = || rustix::fs::unlinkat(directory, name, flags);
            self.nodes.taking_name((parent, directory), name, || self.nodes.rights.run(remove))
        })
    }

    /// Makes a call that allocates space for a file.
    fn spend<T>(&self, file: &OpenFile, call: impl FnOnce() -> Result<T>) -> Result<T> {
        self.nodes.rights.spend(file.opened_for(), call)
    }

    /// A descriptor of an object for everything but reading and writing.
    fn path_of(&self, node: &Node, file: Option<&OpenFile>) -> Result<PathDescriptor> {
        match file {
            Some(file) => Ok(PathDescriptor::Shared(file.path())),
            None => self.path_descriptor(node),
        }
    }
}

impl Origin for DirectoryOrigin {
    type Node = Node;
    type File = OpenFile;
    type Directory = OpenDirectory;

    fn root(&self) -> Result<Found<Node>> {
        let root = self.root.descriptor()?;
        let found = self.nodes.root(root.as_fd())?;
        self.root.check(&found.attributes)?;
        Ok(found)
    }

    fn check_health(&self) -> Result<()> {
        self.root.check_health(|fd| self.nodes.root_replaced(fd.map(AsFd::as_fd)))
    }

    fn lookup(&self, parent: &Node, name: &OsStr) -> Result<Found<Node>> {
        self.nodes.lookup(parent, name)
    }

    fn revalidate_name(&self, parent: &Node, name: &OsStr) -> Result<Found<Node>> {
        self.nodes.revalidate_name(parent, name)
    }

    fn leads_to(&self, parent: &Node, name: &OsStr, node: &Node) -> Result<bool> {
        self.nodes.leads_to(parent, name, node)
    }

    fn lookup_in(&self, parent: &OpenDirectory, name: &OsStr) -> Result<Found<Node>> {
        self.nodes.find((&parent.node, parent.fd.as_fd()), name)
    }

    fn attributes(&self, node: &Node, file: Option<&OpenFile>) -> Result<Attributes> {
        let descriptor = self.path_of(node, file)?;
        let look = || self.nodes.inspector.attributes(descriptor.as_fd());
        self.nodes.rights.own_first(look)
    }

    fn attributes_needed(
        &self,
        node: &Node,
        file: Option<&OpenFile>,
        needed: Needed,
    ) -> Result<Attributes> {
        let descriptor = self.path_of(node, file)?;
        let look = || self.nodes.inspector.attributes_needed(descriptor.as_fd(), needed);
        self.nodes.rights.own_first(look)
    }

    fn flushes_before_times(&self, file: &Node) -> bool {
        self.nodes.kind_of(file).flushes_before_times
    }

    fn set_attributes(
        &self,
        node: &Node,
        file: Option<&OpenFile>,
        changes: &Changes,
    ) -> Result<Attributes> {
        let descriptor = self.path_of(node, file)?;
        let writable = match (changes.size_bytes, file) {
            (None, _) => None,
            (Some(_), Some(file)) => Some(PathDescriptor::Shared(file.changer(&self.nodes)?)),
            (Some(_), None) => {
                let flags = OFlags::WRONLY | OFlags::NONBLOCK;
                Some(PathDescriptor::Owned(self.nodes.open(node, flags)?))
            }
        };
        self.nodes.rights.run(|| change(descriptor.as_fd(), writable.as_ref(), changes))?;
        let inspector = &self.nodes.inspector;
        self.nodes.rights.own_first(|| match changes.modified {
            Some(SetTime::To(_)) => inspector.attributes_once_set(descriptor.as_fd()),
            _ => inspector.attributes(descriptor.as_fd()),
        })
    }

    fn access(&self, node: &Node, file: Option<&OpenFile>, wanted: Access) -> Result<()> {
        if !self.nodes.rights.are_decided_by_source() {
            return Err(Errno::NOSYS);
        }
        let descriptor = self.path_of(node, file)?;
        let path = magic_link(descriptor.as_fd());
        let ask = || rustix::fs::accessat(CWD, path.as_c_str(), wanted, AtFlags::EACCESS);
        self.nodes.rights.run(ask)
    }

    fn read_link(&self, node: &Node) -> Result<OsString> {
        let descriptor = self.path_descriptor(node)?;
        let read = || rustix::fs::readlinkat(descriptor.as_fd(), c"", Vec::new());
        let target = self.nodes.rights.run(read)?;
        Ok(OsString::from_vec(target.into_bytes()))
    }

    fn make(
        &self,
        parent: &Node,
        name: &OsStr,
        what: Make<'_>,
        caller: Caller,
    ) -> Result<Found<Node>> {
        let rights = self.nodes.rights;
        self.nodes.within(parent, |directory| {
            match what {
                Make::Directory { mode } => {
                    rights
                        .create(caller, mode, |mode| rustix::fs::mkdirat(directory, name, mode))?;
                }
                Make::Symlink { target } => {
                    let make = |_| rustix::fs::symlinkat(target, directory, name);
                    rights.create(caller, 0o777, make)?;
                }
                Make::Special { mode, device } => {
                    let kind = FileType::from_raw_mode(mode);
                    rights.create(caller, mode & 0o7777, |mode| {
                        rustix::fs::mknodat(directory, name, kind, mode, device)
                    })?;
                }
            }
            self.nodes.find((parent, directory), name)
        })
    }

    /// If the kernel above checks permissions, the creation is exclusive. If the name turns out to
    /// exist, the kernel has not checked whether the file may be opened, and `ESTALE` makes it look
    /// again. If the source checks them, the file is made or opened as the program asks. An NFS
    /// client would set the attributes of an exclusively made file by a separate request.
    fn create(
        &self,
        parent: &Node,
        name: &OsStr,
        flags: OFlags,
        mode: u32,
        caller: Caller,
    ) -> Result<(Found<Node>, OpenFile)> {
        let rights = self.nodes.rights;
        let how = match rights.are_decided_by_source() {
            // The new object with that name may be a pipe.
            true => (flags & (OFlags::EXCL | OFlags::TRUNC)) | OFlags::NONBLOCK | OFlags::NOFOLLOW,
            false => OFlags::EXCL,
        };
        let flags_here = (flags - STRIPPED) | how | OFlags::CREATE | OFlags::CLOEXEC;
        let created = self.nodes.within(parent, |directory| {
            self.nodes.with_room(|| {
                rights.create(caller, mode & 0o7777, |mode| {
                    rustix::fs::openat(directory, name, flags_here, mode)
                })
            })
        });
        let fd = match created {
            Err(Errno::EXIST | Errno::LOOP | Errno::NXIO) if !flags.contains(OFlags::EXCL) => {
                return Err(Errno::STALE);
            }
            other => other?,
        };
        if self.spares_times.0 {
            // An access time that cannot be protected is no reason to fail.
            let _ = rustix::fs::fcntl_setfl(&fd, rustix::fs::fcntl_getfl(&fd)? | OFlags::NOATIME);
        }
        let found = self.nodes.found((parent, name), fd.as_fd())?;
        if found.attributes.kind != FileKind::Regular {
            return Err(Errno::STALE);
        }
        let file = OpenFile::new(&found.node, fd, flags_here);
        Ok((found, file))
    }

    fn link(
        &self,
        node: &Node,
        file: Option<&OpenFile>,
        parent: &Node,
        name: &OsStr,
    ) -> Result<Found<Node>> {
        let source = self.path_of(node, file)?;
        let source = magic_link(source.as_fd());
        let source = source.as_c_str();
        self.nodes.within(parent, |directory| {
            self.nodes.rights.run(|| {
                rustix::fs::linkat(CWD, source, directory, name, AtFlags::SYMLINK_FOLLOW)
            })?;
            self.nodes.find((parent, directory), name)
        })
    }

    fn unlink(&self, parent: &Node, name: &OsStr) -> Result<()> {
        self.remove(parent, name, AtFlags::empty())
    }

    fn remove_directory(&self, parent: &Node, name: &OsStr) -> Result<()> {
        self.remove(parent, name, AtFlags::REMOVEDIR)
    }

    fn has_only_hidden_files(&self, parent: &Node, name: &OsStr) -> bool {
        self.nodes.has_only_hidden_files(parent, name).unwrap_or(false)
    }

    fn rename(
        &self,
        (from, old_name): (&Node, &OsStr),
        (to, new_name): (&Node, &OsStr),
        flags: RenameFlags,
    ) -> Result<()> {
        self.nodes.within(from, |from| {
            self.nodes.within(to, |directory| {
                let rename =
                    || rustix::fs::renameat_with(from, old_name, directory, new_name, flags);
                self.nodes.taking_name((to, directory), new_name, || self.nodes.rights.run(rename))
            })
        })
    }

    fn open(&self, node: &Node, flags: OFlags) -> Result<OpenFile> {
        let flags = flags - STRIPPED - OFlags::NOFOLLOW;
        let executes =
            flags.contains(opening::EXECUTES) && self.nodes.rights.are_decided_by_source();
        let fd = match executes {
            true => self.open_to_execute(node, flags)?,
            false => self.open_sparing(self.spares_times.0, node, flags)?,
        };
        Ok(OpenFile::new(node, fd, flags))
    }

    fn read_at(
        &self,
        file: &OpenFile,
        offset: u64,
        length_bytes: usize,
        into: &mut Vec<u8>,
    ) -> Result<()> {
        let fd = file.reader(&self.nodes)?;
        let start = into.len();
        let furthest = usize::try_from(OFFSET_MAX.saturating_sub(offset)).unwrap_or(usize::MAX);
        let length_bytes = length_bytes.min(furthest);
        while into.len() - start < length_bytes {
            let left = length_bytes - (into.len() - start);
            if into.len() == into.capacity() {
                into.reserve_exact(left);
            }
            let at = offset + (into.len() - start) as u64;
            let room = (into.capacity() - into.len()) as u64;
            let read = if at.saturating_add(room) > OFFSET_MAX {
                read_no_more(&*fd, at, left, into)
            } else {
                rustix::io::pread(&*fd, rustix::buffer::spare_capacity(into), at)
            };
            match read {
                Ok(0) => break,
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => {
                    into.truncate(start);
                    return Err(errno);
                }
            }
        }
        // The vector may have had room for more than the requested length.
        into.truncate(start + length_bytes);
        Ok(())
    }

    fn size_is_reliable(&self, file: &OpenFile, size_bytes: u64) -> bool {
        match self.nodes.kind_of(file.node()).sizes {
            Sizes::True => true,
            Sizes::MadeUp => false,
            Sizes::Doubted if size_bytes > 0 => true,
            // A file that cannot be read has only its size.
            Sizes::Doubted => self.read_some(file, 0, &mut [0]).unwrap_or(0) == 0,
        }
    }

    fn read_some(&self, file: &OpenFile, offset: u64, into: &mut [u8]) -> Result<usize> {
        let fd = file.reader(&self.nodes)?;
        retry_on_intr(|| rustix::io::pread(&*fd, &mut *into, offset))
    }

    fn write_at(&self, file: &OpenFile, offset: u64, bytes: &[u8]) -> Result<usize> {
        let fd = file.writer(&self.nodes)?;
        let write = |rest: &[u8], written| rustix::io::pwrite(&*fd, rest, offset + written as u64);
        self.spend(file, || write_all(bytes, write))
    }

    fn append(&self, file: &OpenFile, bytes: &[u8]) -> Result<usize> {
        let fd = file.changer(&self.nodes)?;
        // Whatever flags the file has by now. The offset is ignored.
        let append = |rest: &[u8], _| {
            rustix::io::pwritev2(&*fd, &[IoSlice::new(rest)], 0, ReadWriteFlags::APPEND)
        };
        self.spend(file, || write_all(bytes, append))
    }

    fn local_size(&self, file: &OpenFile) -> Option<u64> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let statx = rustix::fs::statx(&*file.path(), c"", flags, StatxFlags::SIZE).ok()?;
        Some(statx.stx_size)
    }

    fn flush(&self, file: &OpenFile) -> Result<()> {
        file.close(&self.nodes)
    }

    fn sync(&self, file: &OpenFile, data_only: bool) -> Result<()> {
        let fd = file.reader(&self.nodes)?;
        retry_on_intr(
            || {
                if data_only { rustix::fs::fdatasync(&*fd) } else { rustix::fs::fsync(&*fd) }
            },
        )
    }

    fn allocate(&self, file: &OpenFile, allocation: Allocation) -> Result<()> {
        let Allocation { mode, offset, length_bytes } = allocation;
        let flags = FallocateFlags::from_bits_retain(mode);
        let fd = file.changer(&self.nodes)?;
        let allocate = || rustix::fs::fallocate(&*fd, flags, offset, length_bytes);
        self.spend(file, || retry_on_intr(allocate))
    }

    fn seek(&self, file: &OpenFile, offset: u64, whence: Whence) -> Result<u64> {
        let offset = i64::try_from(offset).map_err(|_| Errno::OVERFLOW)? as u64;
        rustix::fs::seek(
            &*file.reader(&self.nodes)?,
            match whence {
                Whence::Data => SeekFrom::Data(offset),
                Whence::Hole => SeekFrom::Hole(offset),
            },
        )
    }

    fn copy_range(
        &self,
        (from, from_offset): (&OpenFile, u64),
        (to, to_offset): (&OpenFile, u64),
        length_bytes: usize,
    ) -> Result<usize> {
        let (mut from_offset, mut to_offset) = (from_offset, to_offset);
        let (reader, writer) = (from.reader(&self.nodes)?, to.writer(&self.nodes)?);
        self.spend(to, || {
            rustix::fs::copy_file_range(
                &*reader,
                Some(&mut from_offset),
                &*writer,
                Some(&mut to_offset),
                length_bytes,
            )
        })
    }

    fn open_directory(&self, node: &Node) -> Result<OpenDirectory> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let fd = Descriptor::new(self.open_sparing(self.spares_times.1, node, flags)?);
        node.is_open(&fd);
        Ok(OpenDirectory { fd, node: node.clone(), position: Mutex::new(()) })
    }

    fn read_directory(
        &self,
        directory: &OpenDirectory,
        cookie: u64,
        visit: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Result<()> {
        let _turn = directory.position.lock();
        let cookie = i64::try_from(cookie).map_err(|_| Errno::INVAL)? as u64;
        rustix::fs::seek(&directory.fd, SeekFrom::Start(cookie))?;
        let mut buffer = [MaybeUninit::uninit(); LISTING_BYTES];
        let mut entries = rustix::fs::RawDir::new(&directory.fd, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            let proceed = visit(DirectoryEntry {
                name: OsStr::from_bytes(name),
                inode: entry.ino(),
                kind: FileKind::from_file_type(entry.file_type()),
                cookie: entry.next_entry_cookie(),
            });
            if !proceed {
                break;
            }
        }
        Ok(())
    }

    fn descriptor(&self, file: &OpenFile) -> Option<Result<OwnedFd>> {
        let path = file.path();
        Some(self.nodes.with_room(|| open_real(path.as_fd(), OFlags::PATH)))
    }

    fn lists_with_attributes(&self, device: u64) -> bool {
        self.nodes.inspector.lists_with_attributes(device)
    }

    fn attribute_ttl(&self) -> Duration {
        let client = self.nfs_client();
        let seconds = client.map_or(0, |client| *client.files_seconds.start());
        Duration::from_secs(seconds.into())
    }

    fn invalidate_names(&self, directory: &OpenDirectory) {
        if self.nodes.kind_of(&directory.node).keeps_names {
            // The names of a directory are cached as its pages. If they stay, reading is only
            // slower.
            let _ = rustix::fs::fadvise(&directory.fd, 0, None, Advice::DontNeed);
        }
    }

    fn folds_case(&self, device: u64) -> bool {
        self.nodes.inspector.kind(device).folds_case
    }

    fn folds_case_in(&self, directory: &Node) -> bool {
        self.nodes.kind_of(directory).folds_case
    }

    fn lacks_capabilities(&self, file: &Node) -> bool {
        self.nodes.kind_of(file).lacks_capabilities
    }

    fn directory_attributes(&self, directory: &OpenDirectory) -> Result<Attributes> {
        self.nodes.inspector.attributes_needed(directory.fd.as_fd(), Needed::Version)
    }

    fn sync_directory(&self, directory: &OpenDirectory) -> Result<()> {
        retry_on_intr(|| rustix::fs::fsync(&directory.fd))
    }

    fn get_xattr(&self, node: &Node, name: &OsStr, into: &mut [u8]) -> Result<usize> {
        let descriptor = self.path_descriptor(node)?;
        let path = magic_link(descriptor.as_fd());
        self.nodes.rights.run(|| match into.is_empty() {
            true => rustix::fs::getxattr_query(path.as_c_str(), name),
            false => rustix::fs::getxattr(path.as_c_str(), name, into),
        })
    }

    fn set_xattr(&self, node: &Node, name: &OsStr, value: &[u8], flags: XattrFlags) -> Result<()> {
        let descriptor = self.path_descriptor(node)?;
        let path = magic_link(descriptor.as_fd());
        let set = || rustix::fs::setxattr(path.as_c_str(), name, value, flags);
        self.nodes.rights.run(|| self.nodes.rights.spend(None, set))
    }

    fn list_xattrs(&self, node: &Node, into: &mut [u8]) -> Result<usize> {
        let descriptor = self.path_descriptor(node)?;
        let path = magic_link(descriptor.as_fd());
        self.nodes.rights.run(|| match into.is_empty() {
            true => rustix::fs::listxattr_query(path.as_c_str()),
            false => rustix::fs::listxattr(path.as_c_str(), into),
        })
    }

    fn remove_xattr(&self, node: &Node, name: &OsStr) -> Result<()> {
        let descriptor = self.path_descriptor(node)?;
        let path = magic_link(descriptor.as_fd());
        self.nodes.rights.run(|| rustix::fs::removexattr(path.as_c_str(), name))
    }

    fn flags(&self, node: &Node, form: FlagsForm) -> Result<FileFlags> {
        let fd = self.nodes.open(node, OFlags::RDONLY | OFlags::NONBLOCK)?;
        match form {
            FlagsForm::Plain => Ok(FileFlags::Plain(rustix::fs::ioctl_getflags(fd)?.bits())),
            FlagsForm::Extended => extended_flags(fd.as_fd()).map(FileFlags::Extended),
        }
    }

    fn set_flags(&self, node: &Node, flags: FileFlags) -> Result<()> {
        let fd = self.nodes.open(node, OFlags::RDONLY | OFlags::NONBLOCK)?;
        self.nodes.rights.run(|| match flags {
            FileFlags::Plain(bits) => {
                rustix::fs::ioctl_setflags(&fd, IFlags::from_bits_retain(bits))
            }
            FileFlags::Extended(flags) => set_extended_flags(fd.as_fd(), flags),
        })
    }

    fn statistics(&self, node: &Node) -> Result<FileSystemStatistics> {
        let descriptor = self.path_descriptor(node)?;
        let ask = || rustix::fs::fstatvfs(descriptor.as_fd());
        let statistics = self.nodes.rights.own_first(ask)?;
        Ok(FileSystemStatistics {
            block_size_bytes: u32::try_from(statistics.f_bsize).unwrap_or(4096),
            fragment_size_bytes: u32::try_from(statistics.f_frsize).unwrap_or(4096),
            blocks: statistics.f_blocks,
            blocks_free: statistics.f_bfree,
            blocks_available: statistics.f_bavail,
            inodes: statistics.f_files,
            inodes_free: statistics.f_ffree,
            name_max_bytes: u32::try_from(statistics.f_namemax).unwrap_or(255),
        })
    }

    fn counters(&self, tell: &mut dyn FnMut(&str, u64)) {
        tell("descriptors_kept", self.nodes.descriptors.kept() as u64);
        tell("descriptors_recent", self.nodes.lookup_descriptors.kept() as u64);
        tell("descriptors_removed", self.nodes.unlinked.kept() as u64);
    }

    fn untrusted_times(&self, tell: &mut dyn FnMut(&str, &str)) {
        self.nodes.inspector.untrusted_times(tell);
    }

    fn keeps_places(&self) -> bool {
        self.nodes.keeps_places()
    }

    fn met_again(&self, known: &Node, found: &Node) {
        known.met_again(found);
    }

    fn forgotten(&self, node: &Node) {
        self.nodes.forgotten(node);
    }

    fn expect_at(&self, node: &Node, (directory, name): (&Node, &OsStr)) {
        node.expect_at(directory, name);
    }

    fn has_moved(&self, node: &Node, from: (&Node, &OsStr), to: (&Node, &OsStr)) {
        node.has_moved(from, to);
    }

    fn has_access_control_lists(&self) -> bool {
        self.access_control_lists
    }
}
