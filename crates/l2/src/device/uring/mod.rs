//! Reads through io_uring: many at once from one thread, or one that may be given up.
//!
//! A ring is taken from a pool for the length of one [`Device::read_many`], which returns only when
//! every read that the kernel took has ended. So the buffers, borrowed for the call, outlive the
//! reads into them. The unsafe block below relies on that alone.
//!
//! [`Device::read_within`] takes a lane from another pool, with a buffer of its own. Lanes whose
//! read was given up wait aside until that read ends.

#![allow(unsafe_code)]

mod lane;

use super::{Device, FileDevice, ReadRequest};
use io_uring::{IoUring, Probe, opcode, types};
use lane::Lane;
use parking_lot::Mutex;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// Reads in flight in one ring.
const DEPTH: u32 = 32;
/// Rings that are kept; one for each thread that reads at the same time.
const RINGS_MAX: usize = 16;
/// Lanes that are kept for the next reads.
const LANES_MAX: usize = 32;
/// Reads that were given up and have not ended; with more nothing is read in this way.
const LATE_MAX: usize = 64;

/// A file or block device that is read through io_uring and written as [`FileDevice`] does it.
pub struct UringDevice {
    file: FileDevice,
    /// A leaf lock, held for a push or a pop.
    rings: Mutex<Vec<IoUring>>,
    /// Lanes for the taking; a leaf lock as well.
    lanes: Mutex<Vec<Lane>>,
    /// Lanes whose reads were given up; a leaf lock, held for a search.
    late: Mutex<Vec<Lane>>,
    /// The kernel can bound a wait.
    has_lanes: bool,
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
        let has_lanes = ring.params().is_feature_ext_arg();
        let rings = Mutex::new(vec![ring]);
        Ok(Self { file, rings, lanes: Mutex::default(), late: Mutex::default(), has_lanes })
    }

    /// A lane that nothing is under way in. `None` if too many reads were given up already.
    ///
    /// # Errors
    /// The kernel's error if there is none and none can be made.
    fn lane(&self) -> io::Result<Option<Lane>> {
        if let Some(lane) = self.lanes.lock().pop() {
            return Ok(Some(lane));
        }
        let mut late = self.late.lock();
        if let Some(ended) = late.iter_mut().position(Lane::has_ended) {
            return Ok(Some(late.swap_remove(ended)));
        }
        if late.len() >= LATE_MAX {
            return Ok(None);
        }
        drop(late);
        Lane::new().map(Some)
    }

    /// Keeps a lane for later. A lane that is neither free nor late is dropped.
    fn put_back(&self, mut lane: Lane, is_late: bool) {
        let pool = if is_late { &self.late } else { &self.lanes };
        let most = if is_late { LATE_MAX } else { LANES_MAX };
        if is_late || lane.has_ended() {
            let mut pool = pool.lock();
            if pool.len() < most {
                pool.push(lane);
            }
        }
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
            // completion. The buffer is borrowed mutably for the whole call, so no other code looks
            // at it. This function returns only after the completion of every entry that the kernel
            // has accepted. Entries it has not accepted are dropped with the ring. The length is
            // the buffer's or less.
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

    /// The meaning of a completion. A short read is finished in the common way, which distinguishes
    /// the end of the device from an interruption.
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

    fn discard_range(&self, offset: u64, len_bytes: u64) -> io::Result<()> {
        self.file.discard_range(offset, len_bytes)
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

    fn read_within(
        &self,
        offset: u64,
        len_bytes: usize,
        patience: Duration,
        meanwhile: &mut dyn FnMut(),
        take: &mut dyn FnMut(io::Result<&[u8]>),
    ) -> bool {
        if !self.has_lanes {
            return false;
        }
        let mut lane = match self.lane() {
            Ok(Some(lane)) => lane,
            Ok(None) => {
                take(Err(io::ErrorKind::TimedOut.into()));
                return true;
            }
            // No memory or no descriptors for another ring.
            Err(_) => return false,
        };
        let read = lane.read(self.file.file().as_fd(), offset, len_bytes, patience, meanwhile);
        let is_late = read.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut);
        take(read);
        self.put_back(lane, is_late);
        true
    }

    fn engine(&self) -> &'static str {
        "O_DIRECT, io_uring"
    }
}
