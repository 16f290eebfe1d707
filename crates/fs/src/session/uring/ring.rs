//! One io_uring and the slots in which the kernel hands it requests. Nearly all unsafe code of the
//! mount is here.
//! A slot is a head and a payload buffer, and always has exactly one owner:
//!
//! - The kernel owns it from [`Ring::add`] or [`Ring::commit`] until the completion that brings a
//!   request.
//! - From then on a [`Slot`] value owns it until it is committed. At most one `Slot` exists for
//!   each buffer. So references to the buffers are sound, and a slot can go to another thread.
//!
//! Only the thread that made the ring waits on it and commits.
//!
//! The kernel knows a buffer by its address, and needs it back before it releases the waiting
//! program. A thread that hangs in a call of the origin may still use it. So a buffer is mapped
//! twice: the kernel has the *window*, and we have another view of the same memory.
//! [`Slot::replace`] puts fresh memory behind the window, while the old memory stays with the
//! hanging thread. Another ring than the one that brought the request may commit the slot, because
//! the kernel identifies the request by its commit number.

#![allow(unsafe_code)]

use super::head::{self, HEAD_BYTES, Head};
use io_uring::squeue::Entry128;
use io_uring::{IoUring, cqueue, opcode, types};
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd};
use rustix::mm::{
    Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap_anonymous, mremap, munmap,
};
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A head has a page of its own, so that payloads begin at a page boundary.
const HEAD_STRIDE_BYTES: usize = 4096;
/// Completions of polls have numbers from here on; those of slots have the slot's number.
const POLL_FIRST: u64 = 1 << 32;
/// Entries of the submission queue. More entries take several calls.
const ENTRIES: u32 = 32;
/// `POLLIN`.
const POLL_READABLE: u32 = 1;
/// Offset of `len` in `struct io_uring_sqe`.
const ENTRY_LENGTH_AT: usize = 24;
const EINTR: i32 = rustix::io::Errno::INTR.raw_os_error();
const EAGAIN: i32 = rustix::io::Errno::AGAIN.raw_os_error();
const EBUSY: i32 = rustix::io::Errno::BUSY.raw_os_error();

/// A completion of the ring.
pub(super) enum Event {
    /// This slot has a request.
    Request(Slot),
    /// A slot is gone. The connection ended, or (only after [`Ring::add`]) the kernel refused the
    /// slot with this error number.
    Gone(i32),
    /// The descriptor with this number in [`Ring::watch`] is readable. `watched`: the poll
    /// continues.
    Readable { number: u32, watched: bool },
}

/// The buffers of a slot: memory that is mapped twice.
pub(super) struct Region {
    /// Where the kernel writes requests and reads answers.
    window: NonNull<u8>,
    /// Where this process reads and writes.
    start: NonNull<u8>,
    payload_bytes: usize,
    /// Another region has the window now.
    is_replaced: AtomicBool,
}

// SAFETY: the pointers lead to memory that the region alone owns and that has no thread affinity.
unsafe impl Send for Region {}
// SAFETY: a shared region only computes addresses. Bytes are reached through `Slot`, of which at
// most one exists. The flag is atomic.
unsafe impl Sync for Region {}

impl Region {
    fn new(payload_bytes: usize) -> io::Result<Self> {
        let length = HEAD_STRIDE_BYTES + payload_bytes;
        // SAFETY: a new mapping at an address that the kernel chooses disturbs no other mapping.
        let window = unsafe { map(std::ptr::null_mut(), length, MapFlags::empty())? };
        // SAFETY: the window was just mapped, is shared, and has this length.
        unsafe { Self::behind(window, payload_bytes) }
    }

    /// A region behind this window.
    ///
    /// # Safety
    /// The window is a shared mapping, large enough for such a payload, and belongs to no other
    /// region. If this fails, the window is unmapped.
    unsafe fn behind(window: NonNull<u8>, payload_bytes: usize) -> io::Result<Self> {
        let length = HEAD_STRIDE_BYTES + payload_bytes;
        // SAFETY: for a shared mapping, an old length of zero makes one more view, which disturbs
        // no other mapping (mremap(2)).
        let start = unsafe { mremap(window.as_ptr().cast(), 0, length, MremapFlags::MAYMOVE) };
        let start = start.map_err(io::Error::from).and_then(|start| {
            NonNull::new(start.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
        });
        match start {
            Ok(start) => {
                Ok(Self { window, start, payload_bytes, is_replaced: AtomicBool::new(false) })
            }
            Err(error) => {
                unmap(window, length);
                Err(error)
            }
        }
    }

    fn head(&self) -> *mut Head {
        self.start.as_ptr().cast()
    }

    /// Gives the memory of the payload back to the system; its bytes are zero then.
    ///
    /// # Safety
    /// No reference to the payload exists, and its bytes are not needed any more.
    unsafe fn forget_payload(&self) {
        // SAFETY: the range is the end of this mapping, which is shared and anonymous. Its bytes
        // become zero, which the caller allows.
        let given =
            unsafe { madvise(self.payload().cast(), self.payload_bytes, Advice::LinuxRemove) };
        if let Err(errno) = given {
            log::debug!("cannot give back the memory of a slot: {errno}");
        }
    }

    fn payload(&self) -> *mut u8 {
        // SAFETY: the payload follows its head in the same mapping.
        unsafe { self.start.as_ptr().add(HEAD_STRIDE_BYTES) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let length = HEAD_STRIDE_BYTES + self.payload_bytes;
        // No reference into our view exists, because a `Slot` holds its region. While the kernel
        // may write to the window, `Ring` keeps the region for ever.
        unmap(self.start, length);
        if !*self.is_replaced.get_mut() {
            unmap(self.window, length);
        }
    }
}

/// Maps shared memory of this process.
///
/// # Safety
/// With `MapFlags::FIXED`, the range holds nothing but the mapping to be replaced.
unsafe fn map(address: *mut u8, length: usize, flags: MapFlags) -> io::Result<NonNull<u8>> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let flags = flags | MapFlags::SHARED | MapFlags::NORESERVE;
    // SAFETY: without a fixed address it disturbs no other mapping; otherwise the caller guarantees
    // it.
    let start = unsafe { mmap_anonymous(address.cast(), length, protection, flags)? };
    NonNull::new(start.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

fn unmap(start: NonNull<u8>, length: usize) {
    // SAFETY: the caller owns the mapping, of this length, and no reference into it exists.
    if let Err(errno) = unsafe { munmap(start.as_ptr().cast(), length) } {
        log::debug!("cannot unmap the buffers of a ring: {errno}");
    }
}

/// A request's buffers, owned by this process.
pub(super) struct Slot {
    region: Arc<Region>,
    number: usize,
}

impl Slot {
    /// The region, for [`Slot::replace`].
    pub(super) fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// Takes a slot away from its present owner and gives it fresh memory. The kernel knows the
    /// returned slot from now on; the old one is only memory. The returned slot has the numbers of
    /// the old slot's request, for an answer.
    ///
    /// # Errors
    /// If there is no memory; the slot is unchanged then.
    ///
    /// # Panics
    /// Never. But the caller must not commit the old slot any more, and must not call this twice
    /// for one request.
    pub(super) fn replace(
        region: &Arc<Region>,
        number: usize,
        (unique, commit_number): (u64, u64),
    ) -> io::Result<Self> {
        let (window, payload_bytes) = (region.window, region.payload_bytes);
        let length = HEAD_STRIDE_BYTES + payload_bytes;
        // SAFETY: the window belongs to the region and has this length. The kernel does not access
        // it while this process has the request, and this process never does: its references are to
        // the other view.
        unsafe { map(window.as_ptr(), length, MapFlags::FIXED)? };
        region.is_replaced.store(true, Ordering::Release);
        // SAFETY: as above; the old region has given up the window.
        let region = Arc::new(unsafe { Region::behind(window, payload_bytes)? });
        let mut slot = Self { region, number };
        head::identify(slot.parts_mut().0, unique, commit_number);
        Ok(slot)
    }

    /// Its number in the ring that owns it.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    pub(super) fn head(&self) -> &Head {
        // SAFETY: the kernel has handed this slot over, and no other `Slot` of its region exists,
        // so no thread writes to it. The memory is mapped and initialised by the system, and bytes
        // need no alignment.
        unsafe { &*self.region.head() }
    }

    pub(super) fn payload(&self) -> &[u8] {
        // SAFETY: as in `head`; the length is that of the payload's part of the mapping.
        unsafe { std::slice::from_raw_parts(self.region.payload(), self.region.payload_bytes) }
    }

    /// Head and payload, for writing.
    pub(super) fn parts_mut(&mut self) -> (&mut Head, &mut [u8]) {
        let (head, payload) = (self.region.head(), self.region.payload());
        // SAFETY: as in `head` and `payload`. The slot is borrowed mutably, so these are the only
        // references, and the two parts do not overlap.
        unsafe { (&mut *head, std::slice::from_raw_parts_mut(payload, self.region.payload_bytes)) }
    }
}

/// Slots that are not registered with a kernel.
#[cfg(test)]
pub(super) fn slots(count: usize, payload_bytes: usize) -> Vec<Slot> {
    (0..count)
        .map(|number| Slot {
            region: Arc::new(Region::new(payload_bytes).expect("memory")),
            number,
        })
        .collect()
}

/// `struct iovec`.
#[repr(C)]
struct IoVector {
    start: *mut u8,
    length: usize,
}

/// A slot as its ring keeps it.
struct Place {
    region: Arc<Region>,
    queue: u16,
    with_kernel: bool,
    /// The connection has ended, or another ring has the slot.
    is_gone: bool,
}

/// An io_uring with 128-byte entries. The thread that made it waits on it.
pub(super) struct Ring {
    uring: IoUring<Entry128>,
    device: Option<Arc<OwnedFd>>,
    payload_bytes: usize,
    places: Vec<Place>,
    /// Slots that the kernel has.
    with_kernel: usize,
}

impl Ring {
    /// A ring without slots. It does not use the FUSE device yet.
    ///
    /// # Errors
    /// Where the kernel has no io_uring, forbids it, or is older than 6.1.
    pub(super) fn new(payload_bytes: usize) -> io::Result<Self> {
        let uring = IoUring::<Entry128, cqueue::Entry>::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .build(ENTRIES)?;
        Ok(Self { uring, device: None, payload_bytes, places: Vec::new(), with_kernel: 0 })
    }

    /// Sets the connection of slots that are added from now on.
    pub(super) fn connect(&mut self, device: Arc<OwnedFd>) {
        self.device = Some(device);
    }

    /// The connection.
    pub(super) fn device(&self) -> Option<Arc<OwnedFd>> {
        self.device.clone()
    }

    /// Makes a slot and gives it to the kernel for requests of this queue. If the kernel refuses
    /// it, [`Event::Gone`] follows at once.
    ///
    /// # Errors
    /// If there is no memory for it or the ring does not work.
    pub(super) fn add(&mut self, queue: u16) -> io::Result<()> {
        let region = Arc::new(Region::new(self.payload_bytes)?);
        let head = IoVector { start: region.window.as_ptr(), length: HEAD_BYTES };
        // SAFETY: the payload follows its head in the same mapping.
        let start = unsafe { region.window.as_ptr().add(HEAD_STRIDE_BYTES) };
        let payload = IoVector { start, length: self.payload_bytes };
        let number = self.places.len();
        self.places.push(Place { region, queue, with_kernel: false, is_gone: false });
        let command = head::command(0, queue);
        let vectors = [head, payload];
        self.push_command(head::COMMAND_REGISTER, command, &vectors, number)?;
        // The kernel has read the vectors when this returns.
        self.enter(0)
    }

    /// How many slots there are.
    pub(super) fn slots(&self) -> usize {
        self.places.iter().filter(|place| !place.is_gone).count()
    }

    /// Takes over a slot of another ring, with its contents.
    pub(super) fn adopt(&mut self, slot: Slot, queue: u16) -> Slot {
        let Slot { region, .. } = slot;
        let place = Place { region: region.clone(), queue, with_kernel: false, is_gone: false };
        let number = match self.places.iter().position(|place| place.is_gone) {
            Some(number) => {
                self.places[number] = place;
                number
            }
            None => {
                self.places.push(place);
                self.places.len() - 1
            }
        };
        Slot { region, number }
    }

    /// Gives a slot to another ring.
    pub(super) fn give_away(&mut self, number: usize) {
        if let Some(place) = self.places.get_mut(number) {
            place.is_gone = true;
        }
    }

    /// The queue of a slot.
    pub(super) fn queue_of(&self, slot: &Slot) -> Option<u16> {
        self.places.get(slot.number).map(|place| place.queue)
    }

    /// Whether the kernel has no slot of this ring, so that no request can come.
    pub(super) fn is_closed(&self) -> bool {
        self.with_kernel == 0
    }

    /// The queue of a slot, if the kernel has no slot of that queue.
    pub(super) fn closed_queue_of(&self, slot: &Slot) -> Option<u16> {
        let queue = self.places.get(slot.number)?.queue;
        let open = self.places.iter().any(|place| place.with_kernel && place.queue == queue);
        (!open).then_some(queue)
    }

    /// Gives a slot back with the answer in it. The next [`Ring::wait`] sends it.
    ///
    /// # Errors
    /// If the ring does not work.
    pub(super) fn commit(&mut self, slot: Slot) -> io::Result<()> {
        let number = slot.number;
        let place = self.places.get_mut(number).ok_or(io::ErrorKind::InvalidInput)?;
        // It may have fresh memory.
        if !Arc::ptr_eq(&place.region, &slot.region) {
            place.region = slot.region.clone();
        }
        let command = head::command(head::commit_number(slot.head()), place.queue);
        drop(slot);
        self.push_command(head::COMMAND_COMMIT_AND_FETCH, command, &[], number)
    }

    /// Reports whenever `descriptor` is readable. The descriptor must stay open while the ring is
    /// used. The thread that gets the report reads until nothing is left.
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

    /// Sends the committed slots and waits for an event.
    ///
    /// # Errors
    /// If the ring does not work.
    pub(super) fn wait(&mut self) -> io::Result<()> {
        self.enter(1)
    }

    /// Takes the new events; never waits.
    pub(super) fn events(&mut self, events: &mut Vec<Event>) {
        for completion in self.uring.completion() {
            if let Some(number) = completion.user_data().checked_sub(POLL_FIRST) {
                // The kernel may end a poll when it is short of memory. The thread that drains the
                // descriptor starts it again.
                events.push(Event::Readable {
                    number: number as u32,
                    watched: cqueue::more(completion.flags()),
                });
                continue;
            }
            let number = completion.user_data() as usize;
            let Some(place) = self.places.get_mut(number) else {
                log::error!("a completion for an unknown slot");
                continue;
            };
            place.with_kernel = false;
            self.with_kernel -= 1;
            events.push(match completion.result() {
                0 => Event::Request(Slot { region: place.region.clone(), number }),
                error => {
                    place.is_gone = true;
                    Event::Gone(-error)
                }
            });
        }
    }

    /// Gives back the payload memory of slots that the kernel has and has not filled. Does nothing
    /// unless every commit is sent and every event is reported.
    pub(super) fn forget_payloads(&mut self) {
        let submission = self.uring.submission();
        if !submission.is_empty() || submission.cq_overflow() {
            return;
        }
        drop(submission);
        if !self.uring.completion().is_empty() {
            return;
        }
        for place in self.places.iter().filter(|place| place.with_kernel) {
            // SAFETY: the kernel has the slot, so no `Slot` of it exists, and no reference. Its old
            // answer was copied when the kernel took the entry that commits it, and no entry is
            // left. With deferred task work, the kernel fills a slot only while this thread, which
            // made the ring, is in a call of it. A completion reports that, and there is none.
            unsafe { place.region.forget_payload() };
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
        // SAFETY: an entry is `struct io_uring_sqe`, in which `len` is a 32-bit number at this
        // offset (`include/uapi/linux/io_uring.h`). The library has no setter for it in commands.
        unsafe { (&raw mut entry).cast::<u8>().add(ENTRY_LENGTH_AT).cast::<u32>().write(length) };
        self.push(&entry)?;
        self.places[slot].with_kernel = true;
        self.with_kernel += 1;
        Ok(())
    }

    fn push(&mut self, entry: &Entry128) -> io::Result<()> {
        if self.uring.submission().is_full() {
            self.enter(0)?;
        }
        // SAFETY: the kernel writes only to the buffers of the slot that the entry names. They are
        // mapped as long as it may. `add` and `commit` give up every reference to them. `drop`
        // keeps the region of a slot that the kernel still has. `add` keeps the vectors of its
        // entry until the kernel has read them. A poll touches no memory.
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
        for place in self.places.iter().filter(|place| place.with_kernel) {
            // The kernel may still write to the buffers of this slot.
            std::mem::forget(place.region.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};
    use rustix::fd::AsFd;

    /// A ring, if this machine allows one.
    fn ring() -> Option<Ring> {
        let skip = |error: &_| crate::skipped::skipped(format_args!("no io_uring here: {error}"));
        Ring::new(8192).inspect_err(skip).ok()
    }

    #[test]
    fn slots_are_apart_and_writable_from_end_to_end() {
        let mut slots = slots(3, 8192);
        for (value, slot) in (1..).zip(&mut slots) {
            let (head, payload) = slot.parts_mut();
            head.fill(value);
            payload.fill(value + 10);
        }
        for (value, slot) in (1..).zip(&slots) {
            assert!(slot.head().iter().all(|byte| *byte == value));
            assert!(slot.payload().iter().all(|byte| *byte == value + 10));
            assert_eq!(slot.payload().len(), 8192);
        }
    }

    #[test]
    fn a_payload_that_was_given_back_takes_no_memory() {
        let mut slots = slots(2, 3 * 4096);
        for slot in &mut slots {
            let (head, payload) = slot.parts_mut();
            head.fill(1);
            payload.fill(1);
        }
        // SAFETY: no reference is left, and only the lines below read these bytes.
        unsafe { slots[0].region.forget_payload() };
        assert!(slots[0].head().iter().all(|byte| *byte == 1));
        assert!(slots[0].payload().iter().all(|byte| *byte == 0));
        assert!(slots[1].payload().iter().all(|byte| *byte == 1));
    }

    #[test]
    fn an_eventfd_reports_each_time_it_can_be_read() {
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
    fn a_replaced_slot_leaves_its_memory_to_its_owner() {
        let mut old = slots(1, 8192).pop().unwrap();
        let (head, payload) = old.parts_mut();
        head.fill(1);
        payload.fill(2);
        let mut new = Slot::replace(old.region(), 7, (3, 4)).unwrap();
        assert_eq!(new.number(), 7);
        assert_eq!(new.region.window, old.region.window);
        assert_eq!((crate::session::protocol::u64_at(new.head(), 8)), 3);
        assert_eq!(head::commit_number(new.head()), 4);
        assert!(new.payload().iter().all(|byte| *byte == 0));
        new.parts_mut().1.fill(5);
        old.parts_mut().1[0] = 6;
        assert!(old.head().iter().all(|byte| *byte == 1));
        assert!(old.payload()[1..].iter().all(|byte| *byte == 2));
        drop(old);
        assert!(new.payload().iter().all(|byte| *byte == 5));
    }

    #[test]
    fn a_device_that_is_not_fuse_refuses_every_slot() {
        let Some(mut ring) = ring() else { return };
        let other = std::fs::File::open("/dev/zero").unwrap();
        ring.connect(Arc::new(other.into()));
        for queue in [0, 0, 1] {
            ring.add(queue).unwrap();
        }
        let mut events = Vec::new();
        while events.len() < 3 {
            ring.wait().unwrap();
            ring.events(&mut events);
        }
        assert!(events.iter().all(|event| matches!(event, Event::Gone(error) if *error > 0)));
        assert!(ring.is_closed());
    }
}
