//! Reads through io_uring: many at once from one thread.
//!
//! A ring is taken from a pool for the length of one [`Device::read_many`], which returns only when
//! every read that the kernel took has ended. So the buffers, borrowed for the call, outlive the
//! reads into them, and that is the whole of what the unsafe block below relies on.

#![allow(unsafe_code)]

use super::{Device, FileDevice, ReadRequest};
use io_uring::{IoUring, Probe, opcode, types};
use parking_lot::Mutex;
use std::io;
use std::os::fd::AsRawFd;

/// Reads in flight in one ring.
const DEPTH: u32 = 32;
/// Rings that are kept; one for each thread that reads at the same time.
const RINGS_MAX: usize = 16;

/// A file or block device that is read through io_uring and written as [`FileDevice`] does it.
pub struct UringDevice {
    file: FileDevice,
    /// A leaf lock, held for a push or a pop.
    rings: Mutex<Vec<IoUring>>,
}

impl std::fmt::Debug for UringDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("UringDevice").field(&self.file).finish()
    }
}

impl UringDevice {
    /// # Errors
    /// The file back, where the kernel has no io_uring, forbids it or does not know its reads.
    pub fn new(file: FileDevice) -> Result<Self, FileDevice> {
        let Ok(ring) = IoUring::new(DEPTH) else {
            return Err(file);
        };
        let mut probe = Probe::new();
        let known = ring.submitter().register_probe(&mut probe).is_ok()
            && probe.is_supported(opcode::Read::CODE);
        if !known {
            return Err(file);
        }
        Ok(Self { file, rings: Mutex::new(vec![ring]) })
    }

    /// Reads at most [`DEPTH`] requests at once.
    fn read_batch(&self, ring: &mut IoUring, reads: &mut [ReadRequest<'_>]) -> io::Result<()> {
        let descriptor = types::Fd(self.file.file().as_raw_fd());
        for (number, read) in reads.iter_mut().enumerate() {
            let length = u32::try_from(read.buffer.len()).unwrap_or(u32::MAX);
            let entry = opcode::Read::new(descriptor, read.buffer.as_mut_ptr(), length)
                .offset(read.offset)
                .build()
                .user_data(number as u64);
            read.result = Err(io::ErrorKind::Interrupted.into());
            // SAFETY: the kernel may write to `read.buffer` from the submission until the
            // completion. The buffer is borrowed mutably for the whole call, nobody looks at it
            // meanwhile, and this function does not return before the completion of every entry
            // that the kernel has accepted was seen; entries it has not accepted are dropped with
            // the ring. The length is the buffer's or less.
            let pushed = unsafe { ring.submission().push(&entry) };
            if pushed.is_err() {
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
        }
        let (mut accepted, mut ended) = (0, 0);
        let mut failed = None;
        while ended < reads.len() {
            match ring.submit_and_wait(reads.len() - ended) {
                Ok(submitted) => accepted += submitted,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => failed = Some(error),
            }
            loop {
                for completion in ring.completion() {
                    ended += 1;
                    if let Some(read) = reads.get_mut(completion.user_data() as usize) {
                        read.result = self.judge(read, completion.result());
                    }
                }
                // After an error, what the kernel has taken is waited for all the same.
                if failed.is_none() || ended >= accepted {
                    break;
                }
                std::thread::yield_now();
            }
            if let Some(error) = failed {
                return Err(error);
            }
        }
        Ok(())
    }

    /// What a completion means. A short read is finished in the common way, which tells the end
    /// of the device from an interruption.
    fn judge(&self, read: &mut ReadRequest<'_>, result: i32) -> io::Result<()> {
        match usize::try_from(result) {
            Ok(length) if length == read.buffer.len() => Ok(()),
            Ok(_) => self.file.read_at(read.offset, read.buffer),
            Err(_) => Err(io::Error::from_raw_os_error(-result)),
        }
    }
}

impl Device for UringDevice {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(offset, bytes)
    }

    fn flush(&self) -> io::Result<()> {
        self.file.flush()
    }

    fn len_bytes(&self) -> io::Result<u64> {
        self.file.len_bytes()
    }

    fn set_len_bytes(&self, len_bytes: u64) -> io::Result<()> {
        self.file.set_len_bytes(len_bytes)
    }

    fn discard(&self) -> io::Result<()> {
        self.file.discard()
    }

    fn alignment_bytes(&self) -> usize {
        self.file.alignment_bytes()
    }

    fn depth(&self) -> usize {
        DEPTH as usize
    }

    fn read_many(&self, reads: &mut [ReadRequest<'_>]) {
        // A single read gains nothing from a ring.
        if let [read] = reads {
            read.result = self.read_at(read.offset, read.buffer);
            return;
        }
        let ring = self.rings.lock().pop().map_or_else(|| IoUring::new(DEPTH), Ok);
        let Ok(mut ring) = ring else {
            for read in reads {
                read.result = self.read_at(read.offset, read.buffer);
            }
            return;
        };
        for batch in reads.chunks_mut(DEPTH as usize) {
            if self.read_batch(&mut ring, batch).is_err() {
                // The ring may hold entries that were never submitted: it is not used again.
                for read in batch.iter_mut().filter(|read| read.result.is_err()) {
                    read.result = self.file.read_at(read.offset, read.buffer);
                }
                let Ok(another) = IoUring::new(DEPTH) else { continue };
                ring = another;
            }
        }
        let mut rings = self.rings.lock();
        if rings.len() < RINGS_MAX {
            rings.push(ring);
        }
    }

    fn engine(&self) -> &'static str {
        "O_DIRECT, io_uring"
    }
}
