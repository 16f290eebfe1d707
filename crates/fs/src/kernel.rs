//! Notifications of the daemon to the kernel: invalidations, and requests for a request.
//!
//! Notifications are messages to the device that answer no request (`include/uapi/linux/fuse.h`).
//! `FUSE_NOTIFY_PRUNE` exists since Linux 6.18. An older kernel returns `EINVAL`, and names are
//! invalidated one by one instead. `FUSE_NOTIFY_RETRIEVE` makes the kernel send a request.

mod backing;

pub(crate) use backing::Backing;

use ogive_origin::Errno;
use parking_lot::RwLock;
use rustix::fd::{BorrowedFd, OwnedFd};
use std::ffi::OsStr;
use std::io::IoSlice;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, Ordering};

/// `FUSE_NOTIFY_INVAL_INODE` and `struct fuse_notify_inval_inode_out`.
const NOTIFY_INVAL_INODE: i32 = 2;
const INVAL_INODE_BYTES: usize = 24;
/// `FUSE_NOTIFY_INVAL_ENTRY` and `struct fuse_notify_inval_entry_out`, without the name.
const NOTIFY_INVAL_ENTRY: i32 = 3;
const INVAL_ENTRY_BYTES: usize = 16;
/// `FUSE_NOTIFY_RETRIEVE`.
const NOTIFY_RETRIEVE: i32 = 5;
/// `struct fuse_notify_retrieve_out`.
const RETRIEVE_BYTES: usize = 32;
/// `FUSE_NOTIFY_PRUNE`.
const NOTIFY_PRUNE: i32 = 9;
/// Inodes per notification; the kernel reads them at once.
const PRUNE_BATCH: usize = 256;
/// `struct fuse_out_header`.
const HEADER_BYTES: usize = 16;
/// `struct fuse_notify_prune_out`.
const PRUNE_BYTES: usize = 16;

/// The kernel's side of the session, once it exists. The lock is held only to copy a handle.
#[derive(Default)]
pub(crate) struct Kernel {
    connection: RwLock<Option<Connection>>,
    /// Requests that the kernel was asked to send.
    asked_for: AtomicU64,
}

#[derive(Clone)]
struct Connection {
    device: std::sync::Arc<OwnedFd>,
    prunes: bool,
}

impl Kernel {
    /// Sets the session, and checks whether the kernel can prune by number.
    pub(crate) fn connect(&self, device: std::sync::Arc<OwnedFd>) {
        let prunes = send_prune(&device, &[]).is_ok();
        *self.connection.write() = Some(Connection { device, prunes });
    }

    /// Drops the session, so that its device can be closed.
    pub(crate) fn disconnect(&self) {
        *self.connection.write() = None;
    }

    fn connection(&self) -> Option<Connection> {
        self.connection.read().clone()
    }

    /// Registers a file that the kernel reads and writes itself.
    ///
    /// # Errors
    /// Those of [`Backing::open`], and `ENODEV` after the session ended.
    pub(crate) fn open_backing(&self, file: BorrowedFd<'_>) -> Result<Backing, Errno> {
        let connection = self.connection().ok_or(Errno::NODEV)?;
        Backing::open(&connection.device, file)
    }

    /// Closes such a file. The end of the session closes them all.
    pub(crate) fn close_backing(&self, backing: Backing) {
        let Some(connection) = self.connection() else {
            return;
        };
        if let Err(errno) = backing.close(&connection.device) {
            log::debug!("cannot close a file that the kernel reads itself: {errno}");
        }
    }

    /// Whether inodes can be pruned by number; if not, names have to be kept.
    pub(crate) fn prunes_by_number(&self) -> bool {
        self.connection.read().as_ref().is_some_and(|connection| connection.prunes)
    }

    /// Makes the kernel ask for the attributes of this inode again. Takes no locks that a request
    /// in progress may hold, so it may be called while serving one.
    pub(crate) fn invalidate_attributes(&self, number: u64) {
        self.invalidate(number, -1);
    }

    /// Makes the kernel read the pages of this inode again. Waits for pages that are being read or
    /// written, so it must not be called while serving a request for the same inode.
    pub(crate) fn invalidate_pages(&self, number: u64) {
        self.invalidate(number, 0);
    }

    fn invalidate(&self, number: u64, offset: i64) {
        let Some(connection) = self.connection() else {
            return;
        };
        // The inode or the session may have gone meanwhile; then nothing is left to do.
        let mut message = notification(NOTIFY_INVAL_INODE, INVAL_INODE_BYTES);
        message.extend_from_slice(&number.to_ne_bytes());
        message.extend_from_slice(&offset.to_ne_bytes());
        // Up to the end of the file.
        message.extend_from_slice(&0i64.to_ne_bytes());
        if let Err(errno) = send(&connection.device, &message) {
            log::debug!("cannot invalidate inode {number}: {errno}");
        }
    }

    /// Asks the kernel to forget these inodes unless they are in use.
    ///
    /// # Errors
    /// `EINVAL` if the kernel cannot prune by number, `ENODEV` after the session ended.
    pub(crate) fn prune(&self, numbers: &[u64]) -> Result<(), Errno> {
        let connection = self.connection().ok_or(Errno::NODEV)?;
        numbers.chunks(PRUNE_BATCH).try_for_each(|batch| send_prune(&connection.device, batch))
    }

    /// Makes the kernel send a request, from the processor of the caller. The request has to return
    /// no bytes of the page cache of a regular file. Never waits.
    ///
    /// # Errors
    /// `ENOENT` if the kernel does not know the file, `ENODEV` after the session ended.
    pub(crate) fn ask_for_a_request(&self, number: u64) -> Result<(), Errno> {
        let connection = self.connection().ok_or(Errno::NODEV)?;
        // The request carries this number. It must not be one of the kernel's own, which count up
        // from zero, nor odd, which means an interrupt.
        let unique = (1 << 63) | (2 * self.asked_for.fetch_add(1, Ordering::Relaxed));
        send_retrieve(&connection.device, unique, number)
    }

    /// Makes the kernel forget a name, in use or not.
    pub(crate) fn invalidate_name(&self, parent: u64, name: &OsStr) {
        let Some(connection) = self.connection() else {
            return;
        };
        let length = name.len() + 1;
        let mut message = notification(NOTIFY_INVAL_ENTRY, INVAL_ENTRY_BYTES + length);
        message.extend_from_slice(&parent.to_ne_bytes());
        message.extend_from_slice(&(name.len() as u32).to_ne_bytes());
        message.extend_from_slice(&0u32.to_ne_bytes());
        message.extend_from_slice(name.as_bytes());
        message.push(0);
        if let Err(errno) = send(&connection.device, &message) {
            log::debug!("cannot invalidate a name in inode {parent}: {errno}");
        }
    }
}

fn send_retrieve(device: &OwnedFd, unique: u64, number: u64) -> Result<(), Errno> {
    let mut message = notification(NOTIFY_RETRIEVE, RETRIEVE_BYTES);
    message.extend_from_slice(&unique.to_ne_bytes());
    message.extend_from_slice(&number.to_ne_bytes());
    // From the start of the file, no bytes.
    message.extend_from_slice(&[0; 16]);
    send(device, &message)
}

fn send_prune(device: &OwnedFd, numbers: &[u64]) -> Result<(), Errno> {
    let mut message = notification(NOTIFY_PRUNE, PRUNE_BYTES + size_of_val(numbers));
    message.extend_from_slice(&(numbers.len() as u32).to_ne_bytes());
    message.extend_from_slice(&[0; 12]);
    for number in numbers {
        message.extend_from_slice(&number.to_ne_bytes());
    }
    send(device, &message)
}

/// The start of a message that answers no request and has `length_bytes` more.
fn notification(code: i32, length_bytes: usize) -> Vec<u8> {
    let total_bytes = HEADER_BYTES + length_bytes;
    let mut message = Vec::with_capacity(total_bytes);
    message.extend_from_slice(&(total_bytes as u32).to_ne_bytes());
    message.extend_from_slice(&code.to_ne_bytes());
    message.extend_from_slice(&0u64.to_ne_bytes());
    message
}

/// The device takes a message whole, or refuses it.
fn send(device: &OwnedFd, message: &[u8]) -> Result<(), Errno> {
    rustix::io::writev(device, &[IoSlice::new(message)]).map(|_| ())
}
