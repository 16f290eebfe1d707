//! Kernel file handles: an object's name that survives renames and costs a few bytes.
//!
//! `name_to_handle_at(2)` and `open_by_handle_at(2)` are what NFS servers are built on. The
//! contents of a handle are the file system's business (inode number and generation, mostly);
//! here they are opaque bytes. This is the only module of the crate with unsafe code: no safe
//! wrapper of the two calls exists.

use super::errno;
use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::ffi::{CStr, CString, OsStr, c_int};
use std::os::unix::ffi::OsStrExt;

/// `MAX_HANDLE_SZ` of `linux/exportfs.h`.
const HANDLE_MAX_BYTES: usize = 128;
/// Handles of ext4, xfs, tmpfs and btrfs fit; longer ones (NFS) go to the heap.
const INLINE_MAX_BYTES: usize = 22;

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
    /// `EOPNOTSUPP` where the file system has no handles; `EOVERFLOW` if one were longer than the
    /// kernel allows.
    pub(crate) fn of(fd: BorrowedFd<'_>) -> Result<(Self, c_int), Errno> {
        Self::ask(fd, c"", libc::AT_EMPTY_PATH)
    }

    /// The same for the object that `name` leads to in `directory`; a symbolic link is not
    /// followed.
    ///
    /// # Errors
    /// As [`FileHandle::of`], and `ENOENT`.
    pub(crate) fn at(directory: BorrowedFd<'_>, name: &OsStr) -> Result<(Self, c_int), Errno> {
        let name = CString::new(name.as_bytes()).map_err(|_| Errno::INVAL)?;
        Self::ask(directory, &name, 0)
    }

    fn ask(fd: BorrowedFd<'_>, path: &CStr, flags: c_int) -> Result<(Self, c_int), Errno> {
        let mut raw = RawHandle {
            handle_bytes: HANDLE_MAX_BYTES as u32,
            handle_type: 0,
            f_handle: [0; HANDLE_MAX_BYTES],
        };
        let mut mount_id: c_int = 0;
        // SAFETY: `raw` starts with the two fields of `struct file_handle` and is followed by
        // `handle_bytes` writable bytes, as the call requires; the path is NUL-terminated; both
        // out-pointers live until the call returns; `fd` is open while borrowed.
        let result = unsafe {
            libc::syscall(
                libc::SYS_name_to_handle_at,
                fd.as_raw_fd(),
                path.as_ptr(),
                &raw mut raw,
                &raw mut mount_id,
                flags,
            )
        };
        if result < 0 {
            return Err(errno());
        }
        let length = raw.handle_bytes as usize;
        let bytes = raw.f_handle.get(..length).ok_or(Errno::OVERFLOW)?;
        Ok((Self { kind: raw.handle_type, bytes: Bytes::new(bytes) }, mount_id))
    }

    /// Opens the object on the mounted file system that `mount` lies on.
    ///
    /// # Errors
    /// `ESTALE` if the object no longer exists, `EPERM` without `CAP_DAC_READ_SEARCH`, and
    /// whatever `open(2)` says.
    pub(crate) fn open(&self, mount: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd, Errno> {
        let bytes = self.bytes.as_slice();
        let mut raw = RawHandle {
            handle_bytes: bytes.len() as u32,
            handle_type: self.kind,
            f_handle: [0; HANDLE_MAX_BYTES],
        };
        raw.f_handle[..bytes.len()].copy_from_slice(bytes);
        let flags = (flags | OFlags::CLOEXEC).bits() as c_int;
        // SAFETY: `raw` is a valid `struct file_handle` whose `handle_bytes` bytes are
        // initialised; the kernel copies it in and keeps no pointer; `mount` is open while
        // borrowed.
        let fd = unsafe {
            libc::syscall(libc::SYS_open_by_handle_at, mount.as_raw_fd(), &raw mut raw, flags)
        };
        if fd < 0 {
            return Err(errno());
        }
        // SAFETY: the call succeeded, so it returned a new descriptor that nobody else owns.
        Ok(unsafe { OwnedFd::from_raw_fd(fd as c_int) })
    }

    /// A number that differs between objects that shared an inode number one after the other.
    pub(crate) fn generation(&self) -> u64 {
        xxhash_rust::xxh3::xxh3_64_with_seed(self.bytes.as_slice(), self.kind as u64)
    }
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
            eprintln!("skipped: no file handles on {}", directory.path().display());
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
            Err(Errno::PERM) => eprintln!("half skipped: may not open by handle"),
            Err(error) => panic!("{error}"),
        }
    }
}
