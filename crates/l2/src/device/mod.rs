//! Where the bytes go: one trait, and what implements it.
//!
//! | device | meaning |
//! |---|---|
//! | [`FileDevice`] | a file or block device, around the page cache where the system allows it |
//! | [`UringDevice`] | the same, read through io_uring where the kernel gives it |
//! | [`MemoryDevice`] | memory, which forgets |
//! | [`FaultyDevice`] | for tests: loses, tears, reorders, flips, refuses, dawdles and hangs |
//!
//! A device promises only to try: a read may return any bytes
//! (`docs/l2-format.md`, "Assumptions about the medium").

mod aligned;
mod faulty;
mod file;
mod memory;
mod signature;
mod uring;

pub use aligned::AlignedBuffer;
pub use faulty::{Faults, FaultyDevice};
pub use file::{FileDevice, OpenError, OpenMode};
pub use memory::MemoryDevice;
pub use signature::foreign_contents;
pub use uring::UringDevice;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// One read of [`Device::read_many`].
#[derive(Debug)]
pub struct ReadRequest<'a> {
    /// First byte.
    pub offset: u64,
    /// Destination of the bytes: all of them or none.
    pub buffer: &'a mut [u8],
    /// The outcome.
    pub result: io::Result<()>,
}

/// Something with bytes that can be lost.
///
/// Offsets, lengths and addresses of buffers are multiples of [`Device::alignment_bytes`].
pub trait Device: Send + Sync + fmt::Debug {
    /// Fills the buffer.
    ///
    /// # Errors
    /// The system's error; `UnexpectedEof` if the device ends before.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Writes all bytes. They are safe after the next [`Device::flush`] and not before.
    ///
    /// # Errors
    /// The system's error; part of the bytes may have been written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Makes everything written so far outlive a power cut.
    ///
    /// # Errors
    /// The system's error.
    fn flush(&self) -> io::Result<()>;

    /// Length now, in bytes.
    ///
    /// # Errors
    /// The system's error.
    fn len_bytes(&self) -> io::Result<u64>;

    /// Gives it another length; a block device has the one it has.
    ///
    /// # Errors
    /// The system's error; `StorageFull` if there is no room.
    fn set_len_bytes(&self, len_bytes: u64) -> io::Result<()>;

    /// Makes the whole device read as zeroes without writing them, and discards it on an SSD.
    ///
    /// # Errors
    /// `Unsupported` where that cannot be had, and for files, whose room is to stay taken.
    fn discard(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Makes a range read as zeroes, and discards it on an SSD or in a file system.
    ///
    /// # Errors
    /// `Unsupported` where that cannot be had.
    fn discard_range(&self, offset: u64, len_bytes: u64) -> io::Result<()> {
        let _ = (offset, len_bytes);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Offsets, lengths and buffers must be multiples of this.
    fn alignment_bytes(&self) -> usize {
        1
    }

    /// How many reads are worth asking for at once.
    fn depth(&self) -> usize {
        1
    }

    /// Reads at once what can be.
    fn read_many(&self, reads: &mut [ReadRequest<'_>]) {
        for read in reads {
            read.result = self.read_at(read.offset, read.buffer);
        }
    }

    /// Reads `len_bytes` at `offset` on the calling thread, for about `patience` at most. Passes
    /// the bytes to `take`, or the error, which is `TimedOut` if they took longer. While the device
    /// works, `meanwhile` is done. Returns false, having done nothing, where a read that takes too
    /// long cannot be given up.
    fn read_within(
        &self,
        offset: u64,
        len_bytes: usize,
        patience: Duration,
        meanwhile: &mut dyn FnMut(),
        take: &mut dyn FnMut(io::Result<&[u8]>),
    ) -> bool {
        let _ = (offset, len_bytes, patience, meanwhile, take);
        false
    }

    /// How it is read and written, for people.
    fn engine(&self) -> &'static str;
}

/// How to do input and output on a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// io_uring and O_DIRECT where the system gives them.
    #[default]
    Probe,
    /// O_DIRECT where the system gives it, with preadv(2) and pwritev(2).
    Pread,
    /// Through the page cache.
    Buffered,
}

/// Opens a path by the best way there is.
///
/// # Errors
/// See [`OpenError`].
pub fn open(
    path: &std::path::Path,
    mode: OpenMode,
    engine: Engine,
) -> Result<Arc<dyn Device>, OpenError> {
    let file = FileDevice::open(path, mode, engine != Engine::Buffered)?;
    if engine != Engine::Probe || !file.is_direct() {
        return Ok(Arc::new(file));
    }
    Ok(match UringDevice::new(file) {
        Ok(device) => Arc::new(device),
        Err(file) => Arc::new(file),
    })
}
