//! One io_uring and the slots in which the kernel hands it requests. All unsafe code of the mount
//! is here.
//!
//! A slot is a head and a payload buffer, and is always in one of two hands. The kernel has it from
//! [`Ring::register`] or [`Ring::commit`] until the completion that brings a request; from then on
//! whoever holds the [`Slot`] value has it, alone, until it is committed. There is one `Slot` for
//! each buffer, or none: that is what makes references to the buffers sound, and a slot free to go
//! to another thread. Only the thread that made the ring waits on it and commits.

#![allow(unsafe_code)]

use super::protocol::{self, HEAD_BYTES, Head};
use io_uring::squeue::Entry128;
use io_uring::{IoUring, cqueue, opcode, types};
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

/// A head has a page of its own, so that payloads begin at one.
const HEAD_STRIDE_BYTES: usize = 4096;
/// Completions of polls have these numbers; those of slots have the slot's.
const POLL_FIRST: u64 = 1 << 32;
/// What is waited for beside slots.
const POLLS_MAX: u32 = 2;
/// `POLLIN`.
const POLL_READABLE: u32 = 1;
/// Offset of `len` in `struct io_uring_sqe`.
const ENTRY_LENGTH_AT: usize = 24;
const EINTR: i32 = rustix::io::Errno::INTR.raw_os_error();
const EAGAIN: i32 = rustix::io::Errno::AGAIN.raw_os_error();
const EBUSY: i32 = rustix::io::Errno::BUSY.raw_os_error();

/// Something that happened.
pub(super) enum Event {
    /// A request is in this slot.
    Request(Slot),
    /// A slot is gone: the connection ended, or (only after [`Ring::register`]) the kernel refused
    /// it, with this error number.
    Gone(i32),
    /// The descriptor that was given this number to [`Ring::watch`] can be read, and goes on being
    /// watched or not.
    Readable { number: u32, watched: bool },
}

/// The buffers of a ring.
struct Region {
    start: NonNull<u8>,
    slots: usize,
    payload_bytes: usize,
}

// SAFETY: the pointer is to memory that belongs to the region alone and has no thread affinity.
unsafe impl Send for Region {}
// SAFETY: a shared region only computes addresses; bytes are reached through `Slot`, of which there
// is at most one for each part.
unsafe impl Sync for Region {}

impl Region {
    fn new(slots: usize, payload_bytes: usize) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let length = slots * (HEAD_STRIDE_BYTES + payload_bytes);
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address that the kernel chooses disturbs no other.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), length, protection, flags)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, slots, payload_bytes })
    }

    fn head(&self, slot: usize) -> *mut Head {
        assert!(slot < self.slots, "slots are numbered by the ring");
        // SAFETY: the offset is inside the mapping, whose length is that of all slots.
        unsafe { self.start.as_ptr().add(slot * (HEAD_STRIDE_BYTES + self.payload_bytes)).cast() }
    }

    fn payload(&self, slot: usize) -> *mut u8 {
        // SAFETY: the payload stands behind its head in the same mapping.
        unsafe { self.head(slot).cast::<u8>().add(HEAD_STRIDE_BYTES) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let length = self.slots * (HEAD_STRIDE_BYTES + self.payload_bytes);
        // SAFETY: the mapping was made by `new` with this length. Slots hold the region, so there
        // is no reference into it, and `Ring` keeps it for ever while the kernel may write to it.
        if let Err(errno) = unsafe { munmap(self.start.as_ptr().cast(), length) } {
            log::debug!("cannot unmap the buffers of a ring: {errno}");
        }
    }
}

/// A request's buffers, in our hands.
pub(super) struct Slot {
    region: Arc<Region>,
    number: usize,
}

impl Slot {
    pub(super) fn head(&self) -> &Head {
        // SAFETY: the kernel has given this slot away and there is no other `Slot` of its number,
        // so nobody writes; the memory is mapped, initialised by the system, and bytes need no
        // alignment.
        unsafe { &*self.region.head(self.number) }
    }

    pub(super) fn head_mut(&mut self) -> &mut Head {
        // SAFETY: as in `head`; the slot is borrowed mutably, so this is the only reference.
        unsafe { &mut *self.region.head(self.number) }
    }

    pub(super) fn payload(&self) -> &[u8] {
        let start = self.region.payload(self.number);
        // SAFETY: as in `head`; the length is that of the payload's part of the mapping.
        unsafe { std::slice::from_raw_parts(start, self.region.payload_bytes) }
    }

    pub(super) fn payload_mut(&mut self) -> &mut [u8] {
        let start = self.region.payload(self.number);
        // SAFETY: as in `payload`; the slot is borrowed mutably, so this is the only reference.
        unsafe { std::slice::from_raw_parts_mut(start, self.region.payload_bytes) }
    }
}

/// Slots that no kernel has heard of.
#[cfg(test)]
pub(super) fn slots(count: usize, payload_bytes: usize) -> Vec<Slot> {
    let region = Arc::new(Region::new(count, payload_bytes).expect("memory"));
    (0..count).map(|number| Slot { region: region.clone(), number }).collect()
}

/// `struct iovec`.
#[repr(C)]
struct IoVector {
    start: *mut u8,
    length: usize,
}

/// An io_uring with 128-byte entries, which the thread that made it waits on.
pub(super) struct Ring {
    uring: IoUring<Entry128>,
    device: Option<OwnedFd>,
    region: Arc<Region>,
    /// The queue of each slot.
    queues: Vec<u16>,
    /// Slots that the kernel has.
    with_kernel: usize,
}

impl Ring {
    /// A ring for slots of these queues. Nothing is asked of the FUSE device yet.
    ///
    /// # Errors
    /// Where the kernel has no io_uring, forbids it, or is older than 6.1.
    pub(super) fn new(queues: &[u16], payload_bytes: usize) -> io::Result<Self> {
        let entries = u32::try_from(queues.len()).unwrap_or(u32::MAX).saturating_add(POLLS_MAX);
        let uring = IoUring::<Entry128, cqueue::Entry>::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .build(entries.next_power_of_two())?;
        let region = Arc::new(Region::new(queues.len(), payload_bytes)?);
        Ok(Self { uring, device: None, region, queues: queues.to_vec(), with_kernel: 0 })
    }

    /// Gives all slots to the kernel, for requests of the connection that `device` belongs to. What
    /// the kernel refuses comes back as [`Event::Gone`] at once.
    ///
    /// # Errors
    /// If the ring does not work.
    pub(super) fn register(&mut self, device: OwnedFd) -> io::Result<()> {
        let length = self.region.payload_bytes;
        let vectors: Vec<[IoVector; 2]> = (0..self.queues.len())
            .map(|slot| {
                let head = IoVector { start: self.region.head(slot).cast(), length: HEAD_BYTES };
                [head, IoVector { start: self.region.payload(slot), length }]
            })
            .collect();
        self.device = Some(device);
        for (slot, pair) in vectors.iter().enumerate() {
            let command = protocol::command(0, self.queues[slot]);
            self.push_command(protocol::COMMAND_REGISTER, command, pair, slot)?;
        }
        // The kernel has read the vectors when this returns.
        self.enter(0)
    }

    /// Gives a slot back with the answer that stands in it, to be sent by the next [`Ring::wait`].
    ///
    /// # Errors
    /// If the ring does not work.
    pub(super) fn commit(&mut self, slot: Slot) -> io::Result<()> {
        let number = slot.number;
        let command = protocol::command(protocol::commit_number(slot.head()), self.queues[number]);
        drop(slot);
        self.push_command(protocol::COMMAND_COMMIT_AND_FETCH, command, &[], number)
    }

    /// Reports whenever `descriptor`, which must stay open while the ring is used, can be read.
    /// Whoever is told reads until there is nothing left.
    ///
    /// # Errors
    /// If the ring does not work.
    pub(super) fn watch(&mut self, descriptor: BorrowedFd<'_>, number: u32) -> io::Result<()> {
        let entry = opcode::PollAdd::new(types::Fd(descriptor.as_raw_fd()), POLL_READABLE)
            .multi(true)
            .build()
            .user_data(POLL_FIRST + u64::from(number));
        self.push(&entry.into())
    }

    /// Sends what was committed and waits for something to happen.
    ///
    /// # Errors
    /// If the ring does not work.
    pub(super) fn wait(&mut self) -> io::Result<()> {
        self.enter(1)
    }

    /// What has happened and was not told yet; never waits.
    pub(super) fn events(&mut self, events: &mut Vec<Event>) {
        for completion in self.uring.completion() {
            if let Some(number) = completion.user_data().checked_sub(POLL_FIRST) {
                // A poll that ended for good (the kernel may do so when it is short of memory) is
                // begun again by whoever drains the descriptor.
                events.push(Event::Readable {
                    number: number as u32,
                    watched: cqueue::more(completion.flags()),
                });
                continue;
            }
            self.with_kernel -= 1;
            events.push(match completion.result() {
                0 => Event::Request(Slot {
                    region: self.region.clone(),
                    number: completion.user_data() as usize,
                }),
                error => Event::Gone(-error),
            });
        }
    }

    fn push_command(
        &mut self,
        operation: u32,
        command: [u8; 80],
        vectors: &[IoVector],
        slot: usize,
    ) -> io::Result<()> {
        let device = self.device.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let mut entry = opcode::UringCmd80::new(types::Fd(device.as_raw_fd()), operation)
            .cmd(command)
            .addr(Some(vectors.as_ptr() as u64))
            .build()
            .user_data(slot as u64);
        let length = vectors.len() as u32;
        // SAFETY: an entry is `struct io_uring_sqe`, in which `len` is a number of 32 bits at this
        // offset (`include/uapi/linux/io_uring.h`); the library has no name for it in commands.
        unsafe { (&raw mut entry).cast::<u8>().add(ENTRY_LENGTH_AT).cast::<u32>().write(length) };
        self.with_kernel += 1;
        self.push(&entry).inspect_err(|_| self.with_kernel -= 1)
    }

    fn push(&mut self, entry: &Entry128) -> io::Result<()> {
        if self.uring.submission().is_full() {
            self.enter(0)?;
        }
        // SAFETY: the kernel writes only to the buffers of the slot that the entry names, which are
        // mapped as long as it may: `register` and `commit` give up what could refer to them, and
        // `drop` keeps the region if a slot is still out. The vectors that an entry points to are
        // kept by `register` until they were read. A poll touches no memory.
        let pushed = unsafe { self.uring.submission().push(entry) };
        pushed.map_err(|_| io::Error::other("the submission queue is full"))
    }

    fn enter(&self, wanted: usize) -> io::Result<()> {
        match self.uring.submit_and_wait(wanted) {
            Ok(_) => Ok(()),
            // Signals, and completions that must be taken first.
            Err(error) if matches!(error.raw_os_error(), Some(EINTR | EAGAIN | EBUSY)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.with_kernel > 0 {
            // The kernel may yet write to the buffers of these slots.
            std::mem::forget(self.region.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};
    use rustix::fd::AsFd;

    /// A ring, where this machine lets one be made.
    fn ring() -> Option<Ring> {
        Ring::new(&[0, 0, 1], 8192)
            .inspect_err(|error| eprintln!("not tested, no io_uring here: {error}"))
            .ok()
    }

    #[test]
    fn slots_are_apart_and_writable_from_end_to_end() {
        let mut slots = slots(3, 8192);
        for (value, slot) in (1..).zip(&mut slots) {
            slot.head_mut().fill(value);
            slot.payload_mut().fill(value + 10);
        }
        for (value, slot) in (1..).zip(&slots) {
            assert!(slot.head().iter().all(|byte| *byte == value));
            assert!(slot.payload().iter().all(|byte| *byte == value + 10));
            assert_eq!(slot.payload().len(), 8192);
        }
    }

    #[test]
    fn what_can_be_read_is_told_each_time() {
        let Some(mut ring) = ring() else { return };
        let counter = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).unwrap();
        ring.watch(counter.as_fd(), 1).unwrap();
        for _ in 0..3 {
            rustix::io::write(&counter, &1u64.to_ne_bytes()).unwrap();
            let mut events = Vec::new();
            while events.is_empty() {
                ring.wait().unwrap();
                ring.events(&mut events);
            }
            assert!(matches!(events[..], [Event::Readable { number: 1, watched: true }]));
            rustix::io::read(&counter, &mut [0u8; 8]).unwrap();
        }
    }

    #[test]
    fn a_device_that_is_not_fuse_refuses_every_slot() {
        let Some(mut ring) = ring() else { return };
        let other = std::fs::File::open("/dev/zero").unwrap();
        ring.register(other.into()).unwrap();
        let mut events = Vec::new();
        while events.len() < 3 {
            ring.wait().unwrap();
            ring.events(&mut events);
        }
        assert!(events.iter().all(|event| matches!(event, Event::Gone(error) if *error > 0)));
        assert_eq!(ring.with_kernel, 0);
    }
}
