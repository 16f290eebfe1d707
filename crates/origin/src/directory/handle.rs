//! Kernel file handles: names of objects that survive renames and cost a few bytes.
//!
//! NFS servers are built on `name_to_handle_at(2)` and `open_by_handle_at(2)`. The file system
//! chooses the contents of a handle (mostly inode number and generation); here they are opaque
//! bytes. This is the only module of the crate with unsafe code. These two calls have no safe
//! wrapper. Nor have those that read a file system's identity and the flags of its files.

use super::errno;
use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::ffi::{CStr, CString, OsStr, c_int};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering};

/// `MAX_HANDLE_SZ` of `linux/exportfs.h`.
const HANDLE_MAX_BYTES: usize = 128;
/// Handles of ext4, xfs, tmpfs and btrfs fit; longer ones (NFS) go to the heap.
const INLINE_MAX_BYTES: usize = 22;

/// `AT_HANDLE_MNT_ID_UNIQUE` of `linux/fcntl.h`, since Linux 6.12.
const AT_HANDLE_MNT_ID_UNIQUE: c_int = 0x001;
/// Type and number of `FS_IOC_GETFSUUID` of `linux/fs.h`, since Linux 6.9.
const GET_UUID: (u8, u8) = (0x15, 0);
/// File systems whose `f_fsid` comes from their UUID (`ext4_statfs`, `btrfs_statfs`), by their
/// magic numbers. On others it may be a device number, which another disk may have next time.
const FSID_IS_UUID: [u64; 2] = [0xef53, 0x9123_683e];

/// The mount of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MountId {
    number: u64,
    /// No other mount ever gets this number.
    pub(crate) is_unique: bool,
}

/// An opaque handle of one object on one mounted file system.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileHandle {
    /// `handle_type`, chosen by the file system.
    kind: c_int,
    bytes: Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Bytes {
    Inline { length: u8, bytes: [u8; INLINE_MAX_BYTES] },
    Heap(Box<[u8]>),
}

/// `struct file_handle` with room for the longest handle.
#[repr(C)]
struct RawHandle {
    handle_bytes: u32,
    handle_type: c_int,
    f_handle: [u8; HANDLE_MAX_BYTES],
}

impl FileHandle {
    /// Handle of the object that `fd` (an `O_PATH` descriptor will do) refers to, and the id of
    /// the mount it is on.
    ///
    /// # Errors
    /// `EOPNOTSUPP` if the file system has no handles; `EOVERFLOW` if one is longer than the
    /// kernel allows.
    pub(crate) fn of(fd: BorrowedFd<'_>) -> Result<(Self, MountId), Errno> {
        Self::ask(fd, c"", libc::AT_EMPTY_PATH)
    }

    /// The same for the object that `name` leads to in `directory`; a symbolic link is not
    /// followed.
    ///
    /// # Errors
    /// As [`FileHandle::of`], and `ENOENT`.
    pub(crate) fn at(directory: BorrowedFd<'_>, name: &OsStr) -> Result<(Self, MountId), Errno> {
        let name = CString::new(name.as_bytes()).map_err(|_| Errno::INVAL)?;
        Self::ask(directory, &name, 0)
    }

    /// Reads a handle and a mount id. Since Linux 6.12 no id is given twice. Before that another
    /// mount may get the id of one that has gone.
    fn ask(fd: BorrowedFd<'_>, path: &CStr, flags: c_int) -> Result<(Self, MountId), Errno> {
        static HAS_UNIQUE_IDS: AtomicBool = AtomicBool::new(true);
        if HAS_UNIQUE_IDS.load(Ordering::Relaxed) {
            let mut id: u64 = 0;
            match Self::ask_with(fd, path, flags | AT_HANDLE_MNT_ID_UNIQUE, (&raw mut id).cast()) {
                Err(Errno::INVAL) => {}
                other => {
                    let id = MountId { number: id, is_unique: true };
                    return other.map(|handle| (handle, id));
                }
            }
        }
        let mut id: c_int = 0;
        let handle = Self::ask_with(fd, path, flags, &raw mut id)?;
        HAS_UNIQUE_IDS.store(false, Ordering::Relaxed);
        Ok((handle, MountId { number: id as u64, is_unique: false }))
    }

    /// `mount_id` points to 64 bits if the flags ask for a unique id, to an `int` otherwise.
    fn ask_with(
        fd: BorrowedFd<'_>,
        path: &CStr,
        flags: c_int,
        mount_id: *mut c_int,
    ) -> Result<Self, Errno> {
        let mut raw = RawHandle {
            handle_bytes: HANDLE_MAX_BYTES as u32,
            handle_type: 0,
            f_handle: [0; HANDLE_MAX_BYTES],
        };
        // SAFETY: `raw` starts with the two fields of `struct file_handle` and has `handle_bytes`
        // writable bytes after them, as the call requires. The path is NUL-terminated. Both
        // out-pointers live until the call returns; the callers above pass one to 64 bits exactly
        // if they ask for 64. `fd` is open while borrowed.
        let result = unsafe {
            libc::syscall(
                libc::SYS_name_to_handle_at,
                fd.as_raw_fd(),
                path.as_ptr(),
                &raw mut raw,
                mount_id,
                flags,
            )
        };
        if result < 0 {
            return Err(errno());
        }
        let length = raw.handle_bytes as usize;
        let bytes = raw.f_handle.get(..length).ok_or(Errno::OVERFLOW)?;
        Ok(Self { kind: raw.handle_type, bytes: Bytes::new(bytes) })
    }

    /// Opens the object on the mounted file system of `mount`.
    ///
    /// # Errors
    /// `ESTALE` if the object no longer exists, `EPERM` without `CAP_DAC_READ_SEARCH`, and the
    /// errors of `open(2)`.
    pub(crate) fn open(&self, mount: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd, Errno> {
        let bytes = self.bytes.as_slice();
        let mut raw = RawHandle {
            handle_bytes: bytes.len() as u32,
            handle_type: self.kind,
            f_handle: [0; HANDLE_MAX_BYTES],
        };
        raw.f_handle[..bytes.len()].copy_from_slice(bytes);
        let flags = (flags | OFlags::CLOEXEC).bits() as c_int;
        // SAFETY: `raw` is a valid `struct file_handle` whose `handle_bytes` bytes are initialised.
        // The kernel copies it in and keeps no pointer. `mount` is open while borrowed.
        let fd = unsafe {
            libc::syscall(libc::SYS_open_by_handle_at, mount.as_raw_fd(), &raw mut raw, flags)
        };
        if fd < 0 {
            return Err(errno());
        }
        // SAFETY: the call succeeded, so it returned a new descriptor without another owner.
        Ok(unsafe { OwnedFd::from_raw_fd(fd as c_int) })
    }

    /// A number that differs between objects that shared an inode number one after the other.
    pub(crate) fn generation(&self) -> u64 {
        twox_hash::XxHash3_64::oneshot_with_seed(self.kind as u64, self.bytes.as_slice())
    }
}

/// `struct fsuuid2` of `linux/fs.h`.
#[repr(C)]
struct FsUuid {
    length: u8,
    uuid: [u8; 16],
}

/// The identity that a file system got when it was made and keeps at every mount; `None` if it has
/// none. `fd` is open for reading.
pub(crate) fn file_system_uuid(fd: BorrowedFd<'_>) -> Option<[u8; 16]> {
    const OPCODE: rustix::ioctl::Opcode =
        rustix::ioctl::opcode::read::<FsUuid>(GET_UUID.0, GET_UUID.1);
    // SAFETY: the operation of this opcode writes a `struct fsuuid2`, which is the layout of
    // `FsUuid`, and any bytes are a valid one. The call keeps no pointer.
    let asked = unsafe { rustix::ioctl::ioctl(fd, rustix::ioctl::Getter::<OPCODE, FsUuid>::new()) };
    if let Ok(FsUuid { length: 16, uuid }) = asked {
        return (uuid != [0; 16]).then_some(uuid);
    }
    let magic = rustix::fs::fstatfs(fd).ok()?.f_type as u64;
    let fsid = rustix::fs::fstatvfs(fd).ok()?.f_fsid;
    let mut uuid = [0; 16];
    uuid[..8].copy_from_slice(&fsid.to_le_bytes());
    (FSID_IS_UUID.contains(&magic) && fsid != 0).then_some(uuid)
}

/// `struct fsxattr` of a file (`FS_IOC_FSGETXATTR` of `linux/fs.h`).
///
/// # Errors
/// `ENOTTY` or `EOPNOTSUPP` where the file system has none.
pub(super) fn extended_flags(fd: BorrowedFd<'_>) -> Result<[u32; 7], Errno> {
    const OPCODE: rustix::ioctl::Opcode = rustix::ioctl::opcode::read::<[u32; 7]>(b'X', 31);
    // SAFETY: the operation of this opcode writes a `struct fsxattr`, 28 bytes of which any are
    // valid. The call keeps no pointer.
    unsafe { rustix::ioctl::ioctl(fd, rustix::ioctl::Getter::<OPCODE, [u32; 7]>::new()) }
}

/// Sets them (`FS_IOC_FSSETXATTR`).
///
/// # Errors
/// As [`extended_flags`], and what the file system refuses.
pub(super) fn set_extended_flags(fd: BorrowedFd<'_>, flags: [u32; 7]) -> Result<(), Errno> {
    const OPCODE: rustix::ioctl::Opcode = rustix::ioctl::opcode::write::<[u32; 7]>(b'X', 32);
    // SAFETY: the operation of this opcode reads a `struct fsxattr`, 28 bytes, and keeps no
    // pointer.
    unsafe { rustix::ioctl::ioctl(fd, rustix::ioctl::Setter::<OPCODE, [u32; 7]>::new(flags)) }
}

impl Bytes {
    fn new(handle: &[u8]) -> Self {
        if handle.len() > INLINE_MAX_BYTES {
            return Self::Heap(handle.into());
        }
        let mut bytes = [0; INLINE_MAX_BYTES];
        bytes[..handle.len()].copy_from_slice(handle);
        Self::Inline { length: handle.len() as u8, bytes }
    }

    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Inline { length, bytes } => &bytes[..usize::from(*length)],
            Self::Heap(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::AsFd;

    #[test]
    fn bytes_keep_handles_of_every_length() {
        for length in 0..=HANDLE_MAX_BYTES {
            let handle: Vec<u8> = (0..length as u8).collect();
            assert_eq!(Bytes::new(&handle).as_slice(), handle);
        }
    }

    #[test]
    fn a_handle_names_the_file_after_a_rename_but_not_its_successor() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        std::fs::write(&path, "first").unwrap();
        let file = std::fs::File::open(&path).unwrap();
        let Ok((handle, mount_id)) = FileHandle::of(file.as_fd()) else {
            crate::skipped::skipped(format_args!(
                "no file handles on {}",
                directory.path().display()
            ));
            return;
        };
        std::fs::rename(&path, directory.path().join("b")).unwrap();
        assert_eq!(FileHandle::of(file.as_fd()).unwrap(), (handle.clone(), mount_id));
        std::fs::write(&path, "second").unwrap();
        let second = std::fs::File::open(&path).unwrap();
        assert_ne!(FileHandle::of(second.as_fd()).unwrap().0, handle);

        let mount = std::fs::File::open(directory.path()).unwrap();
        match handle.open(mount.as_fd(), OFlags::RDONLY) {
            Ok(fd) => {
                let text = std::io::read_to_string(std::fs::File::from(fd)).unwrap();
                assert_eq!(text, "first");
            }
            Err(Errno::PERM) => crate::skipped::skipped("may not open by handle"),
            Err(error) => panic!("{error}"),
        }
    }
}
