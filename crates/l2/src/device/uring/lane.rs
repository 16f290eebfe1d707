//! One read that may be given up.
//!
//! A lane is a ring with a buffer of its own. The buffer is registered with the kernel where that
//! is allowed, so its pages are not looked up again for each read. The reader waits in the kernel
//! until the read has ended or its time is up. In the second case the kernel may still write to the
//! buffer. Then the lane is *under way*, and is not used before its completion was seen. A lane
//! that is dropped under way leaves its buffer to the kernel for ever.

#![allow(unsafe_code)]

use crate::device::AlignedBuffer;
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

/// A ring for one read at a time, and where that goes.
pub(super) struct Lane {
    ring: IoUring,
    buffer: AlignedBuffer,
    /// So many bytes of the buffer are registered.
    registered_bytes: usize,
    under_way: bool,
}

impl Lane {
    /// # Errors
    /// The kernel's error; `Unsupported` if it cannot wait for a bounded time (before Linux
    /// 5.11).
    pub(super) fn new() -> io::Result<Self> {
        let ring = IoUring::new(1)?;
        if !ring.params().is_feature_ext_arg() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let buffer = AlignedBuffer::default();
        Ok(Self { ring, buffer, registered_bytes: 0, under_way: false })
    }

    /// Makes room for this many bytes. Where memory may not be locked (`RLIMIT_MEMLOCK`) the buffer
    /// is used without being registered.
    fn make_room(&mut self, len_bytes: usize) {
        if self.buffer.bytes().len() >= len_bytes {
            return;
        }
        if self.registered_bytes > 0 {
            self.registered_bytes = 0;
            // If it fails, the kernel keeps unused pages until the ring ends.
            let _ = self.ring.submitter().unregister_buffers();
        }
        let room = self.buffer.first(len_bytes);
        let vector = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: len_bytes };
        // SAFETY: the memory is the buffer's. It is freed only when the buffer grows, after it was
        // unregistered, or with the lane, after the ring. The kernel has references of its own to
        // registered pages. So even then it writes to no memory of others.
        let registered = unsafe { self.ring.submitter().register_buffers(&[vector]) };
        if registered.is_ok() {
            self.registered_bytes = len_bytes;
        }
    }

    /// Reads exactly `len_bytes`, within `patience`, and runs `meanwhile` while the device works.
    ///
    /// # Errors
    /// The system's error; `TimedOut` when the time is up, `UnexpectedEof` if the file ends.
    pub(super) fn read(
        &mut self,
        file: BorrowedFd<'_>,
        offset: u64,
        len_bytes: usize,
        patience: Duration,
        meanwhile: &mut dyn FnMut(),
    ) -> io::Result<&[u8]> {
        if self.under_way {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        let start = Instant::now();
        let length = u32::try_from(len_bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
        self.make_room(len_bytes);
        let (address, file) = (self.buffer.first(len_bytes).as_mut_ptr(), Fd(file.as_raw_fd()));
        let entry = if len_bytes <= self.registered_bytes {
            opcode::ReadFixed::new(file, address, length, 0).offset(offset).build()
        } else {
            opcode::Read::new(file, address, length).offset(offset).build()
        };
        // SAFETY: the kernel writes to `buffer` from the submission to the completion. All that
        // time the lane is under way: there is no reference to the buffer, which is neither resized
        // nor freed. The buffer has the length, and the entry says no more.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.map_err(|_| io::ErrorKind::QuotaExceeded)?;
        self.under_way = true;
        let submitted = self.ring.submit();
        meanwhile();
        // Waiting submits the entries that were not taken yet.
        submitted
            .map(drop)
            .or_else(|error| if is_passing(&error) { Ok(()) } else { Err(error) })?;
        loop {
            let waited = self.wait(patience.saturating_sub(start.elapsed()));
            if let Some(completion) = self.ring.completion().next() {
                self.under_way = false;
                return match usize::try_from(completion.result()) {
                    Ok(read) if read == len_bytes => Ok(&self.buffer.bytes()[..len_bytes]),
                    Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
                    Err(_) => Err(io::Error::from_raw_os_error(-completion.result())),
                };
            }
            waited?;
            if start.elapsed() >= patience {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }

    /// Submits what was not submitted yet and waits for a completion.
    fn wait(&self, patience: Duration) -> io::Result<()> {
        let patience = Timespec::from(patience);
        let arguments = SubmitArgs::new().timespec(&patience);
        match self.ring.submitter().submit_with_args(1, &arguments) {
            Err(error) if !is_passing(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether the kernel has let go of the buffer.
    pub(super) fn has_ended(&mut self) -> bool {
        if self.under_way && self.ring.completion().next().is_some() {
            self.under_way = false;
        }
        !self.under_way
    }
}

/// The time is up, a signal came, or completions must be taken first.
fn is_passing(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::TIME | Errno::INTR | Errno::AGAIN | Errno::BUSY))
}

impl Drop for Lane {
    fn drop(&mut self) {
        if !self.has_ended() {
            std::mem::forget(std::mem::take(&mut self.buffer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::AsFd;

    const LONG: Duration = Duration::from_secs(60);

    /// A lane, where this machine lets one be made.
    fn lane() -> Option<Lane> {
        let skip = |error: &_| crate::skipped::skipped(format_args!("no io_uring here: {error}"));
        Lane::new().inspect_err(skip).ok()
    }

    #[test]
    fn a_read_that_ends_in_time_is_all_there() {
        let Some(mut lane) = lane() else { return };
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 5000]).unwrap();
        let mut done_meanwhile = 0;
        let read = lane.read(file.as_fd(), 1000, 3000, LONG, &mut || done_meanwhile += 1);
        assert_eq!(read.unwrap(), [7; 3000]);
        assert_eq!(done_meanwhile, 1);
        let short = lane.read(file.as_fd(), 4000, 3000, LONG, &mut || ()).unwrap_err();
        assert_eq!(short.kind(), io::ErrorKind::UnexpectedEof);
        assert!(lane.has_ended());
        let directory = File::open("/").unwrap();
        assert!(
            lane.read(directory.as_fd(), 0, 10, LONG, &mut || ()).is_err(),
            "a directory cannot be read"
        );
        assert_eq!(lane.read(file.as_fd(), 0, 5000, LONG, &mut || ()).unwrap(), [7; 5000]);
    }

    #[test]
    fn a_read_that_takes_too_long_is_given_up_and_its_buffer_left_alone() {
        let Some(mut lane) = lane() else { return };
        let (reader, mut writer) = io::pipe().unwrap();
        let start = Instant::now();
        let late =
            lane.read(reader.as_fd(), 0, 4, Duration::from_millis(20), &mut || ()).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        assert!(start.elapsed() >= Duration::from_millis(20));
        assert!(!lane.has_ended());
        let again = lane.read(reader.as_fd(), 0, 4, LONG, &mut || ()).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::ResourceBusy);
        // The read ends at last, and then the lane is as good as new.
        writer.write_all(b"late").unwrap();
        let deadline = Instant::now() + LONG;
        while !lane.has_ended() {
            assert!(Instant::now() < deadline, "the completion never came");
            std::thread::yield_now();
        }
        assert_eq!(&lane.buffer.bytes()[..4], b"late");
        writer.write_all(b"next").unwrap();
        assert_eq!(lane.read(reader.as_fd(), 0, 4, LONG, &mut || ()).unwrap(), b"next");
    }

    #[test]
    fn a_lane_may_go_before_its_read_has_ended() {
        let Some(mut lane) = lane() else { return };
        let (reader, mut writer) = io::pipe().unwrap();
        lane.read(reader.as_fd(), 0, 4, Duration::ZERO, &mut || ()).unwrap_err();
        drop(lane);
        writer.write_all(b"late").unwrap();
    }
}
