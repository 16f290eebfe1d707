//! Reading a directory by `getdents64(2)`, resumable at any cookie.
//!
//! The kernel asks for a directory in pieces and names the cookie of the last entry it took. A
//! listing remembers where its descriptor stands, so that the usual case (the next piece) seeks
//! nowhere and reads nothing twice.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

const BUFFER_BYTES: usize = 64 << 10;
/// Bytes before the name in `struct linux_dirent64`.
const NAME_OFFSET: usize = 19;

/// An open directory and what was read of it but not yet handed on.
pub struct Listing {
    fd: OwnedFd,
    buffer: Vec<u8>,
    position: usize,
    /// Cookie of the entry before `position`.
    cookie: u64,
}

/// One entry, borrowed from the listing.
pub struct Entry<'a> {
    /// The origin's inode number.
    pub ino: u64,
    /// Cookie that resumes after this entry.
    pub cookie: u64,
    /// `DT_*`.
    pub kind: u8,
    /// The name, NUL-terminated.
    pub name: &'a CStr,
}

impl Listing {
    /// A listing at the start of `fd`, which must be open for reading.
    pub fn new(fd: OwnedFd) -> Self {
        Self { fd, buffer: Vec::new(), position: 0, cookie: 0 }
    }

    /// Goes to the entry after `cookie`.
    ///
    /// # Errors
    /// The error of `lseek(2)`.
    pub fn seek(&mut self, cookie: u64) -> io::Result<()> {
        if cookie == self.cookie {
            return Ok(());
        }
        // SAFETY: a plain system call on a descriptor we own.
        if unsafe { libc::lseek64(self.fd.as_raw_fd(), cookie.cast_signed(), libc::SEEK_SET) } < 0 {
            return Err(io::Error::last_os_error());
        }
        self.buffer.clear();
        self.position = 0;
        self.cookie = cookie;
        Ok(())
    }

    /// The entry at hand without taking it; `None` at the end of the directory.
    ///
    /// # Errors
    /// The error of `getdents64(2)`.
    pub fn peek(&mut self) -> io::Result<Option<Entry<'_>>> {
        if self.position == self.buffer.len() && !self.refill()? {
            return Ok(None);
        }
        let record = &self.buffer[self.position..];
        Ok(Some(Entry {
            ino: u64::from_ne_bytes(array(record, 0)),
            cookie: u64::from_ne_bytes(array(record, 8)),
            kind: record[18],
            name: CStr::from_bytes_until_nul(&record[NAME_OFFSET..])
                .map_err(|_| io::Error::from_raw_os_error(libc::EIO))?,
        }))
    }

    /// Takes the entry at hand.
    pub fn advance(&mut self) {
        let record = &self.buffer[self.position..];
        self.cookie = u64::from_ne_bytes(array(record, 8));
        self.position += usize::from(u16::from_ne_bytes(array(record, 16)));
    }

    fn refill(&mut self) -> io::Result<bool> {
        self.buffer.resize(BUFFER_BYTES, 0);
        self.position = 0;
        // SAFETY: the buffer is BUFFER_BYTES long and ours alone.
        let read = unsafe {
            libc::syscall(
                libc::SYS_getdents64,
                self.fd.as_raw_fd(),
                self.buffer.as_mut_ptr(),
                BUFFER_BYTES,
            )
        };
        let Ok(read) = usize::try_from(read) else {
            self.buffer.clear();
            return Err(io::Error::last_os_error());
        };
        self.buffer.truncate(read);
        Ok(read > 0)
    }
}

/// `N` bytes of `record` at `offset`; the kernel's records are never shorter than their header.
fn array<const N: usize>(record: &[u8], offset: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&record[offset..offset + N]);
    bytes
}
