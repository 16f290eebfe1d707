//! The FUSE operations: each calls the origin and passes its answer on.
//!
//! Invariants:
//!
//! - Nothing is cached except how to reach an inode.
//! - A read is one `pread(2)` into the worker thread's buffer and one reply out of it. The library
//!   cannot send file pages, so any passthrough on it pays this one copy.
//! - No lock is held across a system call, except that of an open directory listing, which belongs
//!   to that listing alone.

use std::cell::RefCell;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyDirectoryPlus,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, Request,
};

use crate::counters::{self, Class};
use crate::directory::Listing;
use crate::handle::Handle;
use crate::inodes::{Inodes, Place};

/// Inode number of the counters' hidden file; no origin hands out this one.
const COUNTERS_INO: u64 = u64::MAX - 1;
const COUNTERS_HANDLE: u64 = u64::MAX;
/// Set in a file's handle if its reads count as [`Class::Large`]; below it stands the descriptor.
const LARGE_BIT: u64 = 1 << 32;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The options of the command line.
pub struct Options {
    /// Ask for every read; the kernel keeps no pages of file data.
    pub direct_io: bool,
    /// Answer small reads with arbitrary bytes out of this memory, without the origin. Large ones
    /// find the end of the file, so that files can be read through.
    pub memory: Option<Vec<u8>>,
    /// How long the kernel may use an entry or attributes without asking.
    pub ttl: Duration,
    /// Additional time of each request that the kernel waits for.
    pub delay: Duration,
}

/// Largest read that is answered from memory alone, in bytes.
const FROM_MEMORY_MAX_BYTES: usize = 64 << 10;

/// A place in `memory` for each place in each file, so that reading all over a set of files reads
/// all over the memory: what a processor's caches hold anyway would be answered too fast.
fn somewhere(memory: &[u8], handle: u64, offset: u64, size: usize) -> &[u8] {
    let pages = ((memory.len() - FROM_MEMORY_MAX_BYTES) / 4096) as u64;
    let page = handle.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(offset / 4096) % pages;
    let start = page as usize * 4096;
    &memory[start..start + size]
}

/// A read-only view of one directory tree on one file system.
pub struct Passthrough {
    options: Options,
    /// Also the descriptor that says which file system a handle belongs to.
    root: OwnedFd,
    device: u64,
    inodes: Inodes,
}

impl Passthrough {
    /// A passthrough of the directory `root` is open on.
    ///
    /// # Errors
    /// If the directory cannot be examined or its descriptor not be doubled.
    pub fn new(root: OwnedFd, options: Options) -> io::Result<Self> {
        let stat = stat_at(root.as_fd(), c"")?;
        let inodes = Inodes::new(INodeNo::ROOT.0, root.try_clone()?);
        Ok(Self { options, root, device: stat.st_dev, inodes })
    }

    /// Takes as long as a source far away does. Requests that come together wait together, as many
    /// as there are threads.
    fn delay(&self) {
        if !self.options.delay.is_zero() {
            std::thread::sleep(self.options.delay);
        }
    }

    fn directory(&self, ino: INodeNo) -> io::Result<Arc<OwnedFd>> {
        match self.inodes.place(ino.0) {
            Some(Place::Directory(fd)) => Ok(fd),
            Some(Place::File(_)) => Err(io::Error::from_raw_os_error(libc::ENOTDIR)),
            None => Err(io::Error::from_raw_os_error(libc::ESTALE)),
        }
    }

    fn open_inode(&self, ino: INodeNo, flags: i32) -> io::Result<OwnedFd> {
        match self.inodes.place(ino.0) {
            Some(Place::Directory(fd)) => open_at(fd.as_fd(), c".", flags),
            Some(Place::File(handle)) => handle.open(self.root.as_fd(), flags),
            None => Err(io::Error::from_raw_os_error(libc::ESTALE)),
        }
    }

    /// Looks `name` up in `parent` and counts the lookup.
    ///
    /// The attributes and the handle are two system calls; if the name changes hands between them
    /// the kernel sees one old set of attributes, which the next `getattr` mends.
    fn enter(&self, parent: BorrowedFd<'_>, name: &CStr) -> io::Result<FileAttr> {
        let stat = stat_at(parent, name)?;
        if stat.st_dev != self.device || stat.st_ino == INodeNo::ROOT.0 {
            return Err(io::Error::from_raw_os_error(libc::EXDEV));
        }
        let ino = stat.st_ino;
        if stat.st_mode & libc::S_IFMT != libc::S_IFDIR {
            let handle = Handle::of(parent, name)?;
            self.inodes.remember(ino, || Place::File(handle));
        } else if self.inodes.knows_directory(ino) {
            // Forgotten in between is possible only if the kernel forgets what it now asks for.
            let fd = self.directory(INodeNo(ino))?;
            self.inodes.remember(ino, || Place::Directory(fd));
        } else {
            let fd = open_at(parent, name, libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW)?;
            self.inodes.remember(ino, || Place::Directory(Arc::new(fd)));
        }
        Ok(attributes(&stat, ino))
    }

    fn attributes_of(&self, ino: INodeNo, fh: Option<FileHandle>) -> io::Result<FileAttr> {
        if ino.0 == COUNTERS_INO {
            return Ok(counters_attributes());
        }
        if let Some(fh) = fh {
            return Ok(attributes(&stat_at(borrow_file(fh), c"")?, ino.0));
        }
        let stat = match self.inodes.place(ino.0) {
            Some(Place::Directory(fd)) => stat_at(fd.as_fd(), c"")?,
            Some(Place::File(handle)) => {
                stat_at(handle.open(self.root.as_fd(), libc::O_PATH)?.as_fd(), c"")?
            }
            None => return Err(io::Error::from_raw_os_error(libc::ESTALE)),
        };
        Ok(attributes(&stat, ino.0))
    }

    fn list_plus(
        &self,
        fh: FileHandle,
        offset: u64,
        out: &mut ReplyDirectoryPlus,
    ) -> io::Result<()> {
        let (parent, listing) = borrow_listing(fh);
        let mut listing = listing.lock().unwrap_or_else(PoisonError::into_inner);
        listing.seek(offset)?;
        while let Some(entry) = listing.peek()? {
            let name = entry.name;
            let dots = name == c"." || name == c"..";
            let attr = if dots {
                // The kernel takes no reference on these two.
                attributes(&stat_at(parent.as_fd(), c"")?, entry.ino)
            } else {
                match self.enter(parent.as_fd(), name) {
                    Ok(attr) => attr,
                    // Gone since it was listed, or another file system is mounted there.
                    Err(_) => {
                        listing.advance();
                        continue;
                    }
                }
            };
            let name = OsStr::from_bytes(name.to_bytes());
            if out.add(attr.ino, entry.cookie, name, &self.options.ttl, &attr, Generation(0)) {
                if !dots {
                    self.inodes.forget(attr.ino.0, 1);
                }
                break;
            }
            listing.advance();
        }
        Ok(())
    }
}

impl Filesystem for Passthrough {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        for wanted in [
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_READDIRPLUS_AUTO,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_AUTO_INVAL_DATA,
            InitFlags::FUSE_ASYNC_DIO,
            InitFlags::FUSE_CACHE_SYMLINKS,
            InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP,
        ] {
            // An older kernel without one of these still mounts; it is only slower.
            let _ = config.add_capabilities(wanted);
        }
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.delay();
        if parent == INodeNo::ROOT && name == counters::FILE_NAME {
            return reply.entry(&Duration::ZERO, &counters_attributes(), Generation(0));
        }
        let found = self.directory(parent).and_then(|directory| {
            let name = CString::new(name.as_bytes())?;
            self.enter(directory.as_fd(), &name)
        });
        match found {
            Ok(attr) => reply.entry(&self.options.ttl, &attr, Generation(0)),
            Err(error) => reply.error(error.into()),
        }
    }

    fn forget(&self, _req: &Request, ino: INodeNo, nlookup: u64) {
        self.inodes.forget(ino.0, nlookup);
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, fh: Option<FileHandle>, reply: ReplyAttr) {
        self.delay();
        match self.attributes_of(ino, fh) {
            Ok(attr) => reply.attr(&self.options.ttl, &attr),
            Err(error) => reply.error(error.into()),
        }
    }

    fn readlink(&self, _req: &Request, ino: INodeNo, reply: ReplyData) {
        self.delay();
        let mut target = [0_u8; libc::PATH_MAX as usize];
        let read = self.open_inode(ino, libc::O_PATH | libc::O_NOFOLLOW).and_then(|link| {
            // SAFETY: the buffer is as long as stated; an empty name means the descriptor itself.
            let read = unsafe {
                libc::readlinkat(
                    link.as_raw_fd(),
                    c"".as_ptr(),
                    target.as_mut_ptr().cast(),
                    target.len(),
                )
            };
            usize::try_from(read).map_err(|_| io::Error::last_os_error())
        });
        match read {
            Ok(length) => reply.data(&target[..length]),
            Err(error) => reply.error(error.into()),
        }
    }

    fn open(&self, _req: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        self.delay();
        if ino.0 == COUNTERS_INO {
            return reply.opened(FileHandle(COUNTERS_HANDLE), FopenFlags::FOPEN_DIRECT_IO);
        }
        let keep = libc::O_ACCMODE | libc::O_NOATIME;
        let opened = self
            .open_inode(ino, flags.0 & keep)
            .and_then(|fd| Ok((stat_at(fd.as_fd(), c"")?.st_size, fd)));
        match opened {
            Ok((size, fd)) => {
                let large =
                    u64::try_from(size).is_ok_and(|size| size >= counters::LARGE_FILE_BYTES);
                let handle =
                    u64::from(fd.into_raw_fd().cast_unsigned()) | if large { LARGE_BIT } else { 0 };
                let mode = if self.options.direct_io {
                    FopenFlags::FOPEN_DIRECT_IO
                } else {
                    FopenFlags::FOPEN_KEEP_CACHE
                };
                reply.opened(FileHandle(handle), mode | FopenFlags::FOPEN_NOFLUSH);
            }
            Err(error) => reply.error(error.into()),
        }
    }

    fn read(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.delay();
        if fh.0 == COUNTERS_HANDLE {
            let text = counters::render();
            let from = usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
            let to = from.saturating_add(size as usize).min(text.len());
            return reply.data(&text.as_bytes()[from..to]);
        }
        let size = size as usize;
        BUFFER.with_borrow_mut(|buffer| {
            if buffer.len() < size {
                buffer.resize(size, 0);
            }
            if let Some(memory) = &self.options.memory
                && size <= FROM_MEMORY_MAX_BYTES
            {
                return reply.data(somewhere(memory, fh.0, offset, size));
            }
            match read_at(borrow_file(fh), &mut buffer[..size], offset) {
                Ok(read) => {
                    let class = if fh.0 & LARGE_BIT != 0 { Class::Large } else { Class::Small };
                    counters::count_read(class, read);
                    reply.data(&buffer[..read]);
                }
                Err(error) => reply.error(error.into()),
            }
        });
    }

    fn release(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        if fh.0 != COUNTERS_HANDLE {
            // SAFETY: `open` gave this descriptor away with the handle, and the kernel releases a
            // handle once, after its last use.
            drop(unsafe { OwnedFd::from_raw_fd(descriptor(fh)) });
        }
        reply.ok();
    }

    fn opendir(&self, _req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        self.delay();
        let opened = self.directory(ino).and_then(|directory| {
            let fd = open_at(directory.as_fd(), c".", libc::O_RDONLY | libc::O_DIRECTORY)?;
            Ok(Box::new((directory, Mutex::new(Listing::new(fd)))))
        });
        match opened {
            Ok(listing) => {
                reply.opened(FileHandle(Box::into_raw(listing) as u64), FopenFlags::empty());
            }
            Err(error) => reply.error(error.into()),
        }
    }

    fn readdir(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        self.delay();
        let mut list = || -> io::Result<()> {
            let mut listing = borrow_listing(fh).1.lock().unwrap_or_else(PoisonError::into_inner);
            listing.seek(offset)?;
            while let Some(entry) = listing.peek()? {
                let name = OsStr::from_bytes(entry.name.to_bytes());
                let kind = kind_of_entry(entry.kind);
                if reply.add(INodeNo(entry.ino), entry.cookie, kind, name) {
                    break;
                }
                listing.advance();
            }
            Ok(())
        };
        match list() {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error.into()),
        }
    }

    fn readdirplus(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        self.delay();
        match self.list_plus(fh, offset, &mut reply) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error.into()),
        }
    }

    fn releasedir(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        // SAFETY: `opendir` made this pointer with `Box::into_raw`, and the kernel releases a
        // handle once, after its last use.
        drop(unsafe { Box::from_raw(fh.0 as *mut OpenDirectory) });
        reply.ok();
    }

    fn statfs(&self, _req: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        self.delay();
        // SAFETY: all zeroes is a valid `statvfs`.
        let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
        // SAFETY: the descriptor is ours and `stat` is where the call may write.
        if unsafe { libc::fstatvfs(self.root.as_raw_fd(), &raw mut stat) } < 0 {
            return reply.error(io::Error::last_os_error().into());
        }
        reply.statfs(
            stat.f_blocks,
            stat.f_bfree,
            stat.f_bavail,
            stat.f_files,
            stat.f_ffree,
            stat.f_bsize as u32,
            stat.f_namemax as u32,
            stat.f_frsize as u32,
        );
    }

    fn getxattr(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _name: &OsStr,
        _size: u32,
        reply: fuser::ReplyXattr,
    ) {
        self.delay();
        // The kernel remembers ENOSYS and asks no more.
        reply.error(Errno::ENOSYS);
    }
}

type OpenDirectory = (Arc<OwnedFd>, Mutex<Listing>);

fn descriptor(fh: FileHandle) -> i32 {
    (fh.0 as u32).cast_signed()
}

fn borrow_file<'a>(fh: FileHandle) -> BorrowedFd<'a> {
    // SAFETY: the descriptor lives in the handle from `open` to `release`, and the kernel sends
    // nothing for a handle outside of that.
    unsafe { BorrowedFd::borrow_raw(descriptor(fh)) }
}

fn borrow_listing<'a>(fh: FileHandle) -> &'a OpenDirectory {
    // SAFETY: the pointer is `opendir`'s and lives until `releasedir`; only shared references are
    // made of it before that.
    unsafe { &*(fh.0 as *const OpenDirectory) }
}

fn open_at(directory: BorrowedFd<'_>, name: &CStr, flags: i32) -> io::Result<OwnedFd> {
    // SAFETY: the name is NUL-terminated, the descriptor borrowed for the call.
    let fd = unsafe { libc::openat(directory.as_raw_fd(), name.as_ptr(), flags | libc::O_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave us this descriptor, so it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// `fstatat(2)`; the empty name means `directory` itself, whatever it is.
fn stat_at(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<libc::stat64> {
    // SAFETY: all zeroes is a valid `stat64`.
    let mut stat: libc::stat64 = unsafe { std::mem::zeroed() };
    let flags = libc::AT_SYMLINK_NOFOLLOW | libc::AT_EMPTY_PATH;
    // SAFETY: the name is NUL-terminated, `stat` is where the call may write.
    let outcome =
        unsafe { libc::fstatat64(directory.as_raw_fd(), name.as_ptr(), &raw mut stat, flags) };
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(stat) }
}

/// Reads until `buffer` is full or the file ends.
fn read_at(file: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        let rest = &mut buffer[filled..];
        let position = (offset + filled as u64).cast_signed();
        // SAFETY: `rest` is ours alone and as long as stated.
        let read = unsafe {
            libc::pread64(file.as_raw_fd(), rest.as_mut_ptr().cast(), rest.len(), position)
        };
        match usize::try_from(read) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(filled)
}

fn kind_of_entry(kind: u8) -> FileType {
    match kind {
        libc::DT_DIR => FileType::Directory,
        libc::DT_LNK => FileType::Symlink,
        libc::DT_FIFO => FileType::NamedPipe,
        libc::DT_CHR => FileType::CharDevice,
        libc::DT_BLK => FileType::BlockDevice,
        libc::DT_SOCK => FileType::Socket,
        _ => FileType::RegularFile,
    }
}

fn attributes(stat: &libc::stat64, ino: u64) -> FileAttr {
    let kind = match stat.st_mode & libc::S_IFMT {
        libc::S_IFDIR => FileType::Directory,
        libc::S_IFLNK => FileType::Symlink,
        libc::S_IFIFO => FileType::NamedPipe,
        libc::S_IFCHR => FileType::CharDevice,
        libc::S_IFBLK => FileType::BlockDevice,
        libc::S_IFSOCK => FileType::Socket,
        _ => FileType::RegularFile,
    };
    FileAttr {
        ino: INodeNo(ino),
        size: stat.st_size.cast_unsigned(),
        blocks: stat.st_blocks.cast_unsigned(),
        atime: time(stat.st_atime, stat.st_atime_nsec),
        mtime: time(stat.st_mtime, stat.st_mtime_nsec),
        ctime: time(stat.st_ctime, stat.st_ctime_nsec),
        crtime: UNIX_EPOCH,
        kind,
        perm: (stat.st_mode & 0o7777) as u16,
        nlink: stat.st_nlink as u32,
        uid: stat.st_uid,
        gid: stat.st_gid,
        rdev: stat.st_rdev as u32,
        blksize: stat.st_blksize as u32,
        flags: 0,
    }
}

fn time(seconds: i64, nanoseconds: i64) -> SystemTime {
    let nanoseconds = Duration::from_nanos(nanoseconds.unsigned_abs());
    match u64::try_from(seconds) {
        Ok(seconds) => UNIX_EPOCH + Duration::from_secs(seconds) + nanoseconds,
        Err(_) => UNIX_EPOCH - Duration::from_secs(seconds.unsigned_abs()) + nanoseconds,
    }
}

fn counters_attributes() -> FileAttr {
    FileAttr {
        ino: INodeNo(COUNTERS_INO),
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: FileType::RegularFile,
        perm: 0o444,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}
