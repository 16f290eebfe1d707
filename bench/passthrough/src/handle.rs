//! File handles: an inode's identity that survives renames and costs no file descriptor.
//!
//! `name_to_handle_at(2)` gives a short opaque name for an inode (8 bytes on ext4), and
//! `open_by_handle_at(2)` opens it again. One descriptor per known inode would run into the
//! descriptor limit; a path would break with the first rename. Opening by handle needs
//! `CAP_DAC_READ_SEARCH`, so the passthrough runs as root.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Longest handle the table stores, in bytes. ext4 uses 8, xfs 12 (24 with parents), btrfs 20.
pub const HANDLE_BYTES_MAX: usize = 24;

/// A file handle: the kernel's own type number and its bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Handle {
    kind: i32,
    length: u32,
    bytes: [u8; HANDLE_BYTES_MAX],
}

/// `struct file_handle` with room for the bytes behind it.
#[repr(C)]
struct RawHandle {
    length: u32,
    kind: i32,
    bytes: [u8; HANDLE_BYTES_MAX],
}

impl Handle {
    /// The handle of `name` in `directory`, the link itself if it is one.
    ///
    /// # Errors
    /// The error of `name_to_handle_at(2)`: `EOVERFLOW` if the handle is longer than
    /// [`HANDLE_BYTES_MAX`], `EOPNOTSUPP` if the file system has no handles.
    pub fn of(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<Self> {
        let mut raw =
            RawHandle { length: HANDLE_BYTES_MAX as u32, kind: 0, bytes: [0; HANDLE_BYTES_MAX] };
        let mut mount_id = 0;
        // SAFETY: `raw` is laid out as `struct file_handle` and `length` states its true room;
        // `name` is NUL-terminated; the descriptor is borrowed for the call.
        let outcome = unsafe {
            libc::name_to_handle_at(
                directory.as_raw_fd(),
                name.as_ptr(),
                (&raw mut raw).cast(),
                &raw mut mount_id,
                0,
            )
        };
        if outcome < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { kind: raw.kind, length: raw.length, bytes: raw.bytes })
    }

    /// Opens the inode. `mount` is any descriptor on the same file system.
    ///
    /// # Errors
    /// The error of `open_by_handle_at(2)`: `ESTALE` if the inode is gone, `EPERM` without
    /// `CAP_DAC_READ_SEARCH`.
    pub fn open(&self, mount: BorrowedFd<'_>, flags: i32) -> io::Result<OwnedFd> {
        let mut raw = RawHandle { length: self.length, kind: self.kind, bytes: self.bytes };
        // SAFETY: as in `of`; the kernel reads `length` bytes, which fit.
        let fd = unsafe {
            libc::open_by_handle_at(
                mount.as_raw_fd(),
                (&raw mut raw).cast(),
                flags | libc::O_CLOEXEC,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel just gave us this descriptor, so it has no other owner.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}
