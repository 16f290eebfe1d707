//! The way back from threads that wait for the origin to the ring a request came by.
//!
//! Only the thread of a ring may commit, so answers are left here and it is woken: once for all
//! that are left before it looks. The lock is a leaf, held for a push or a swap.

use super::protocol;
use super::ring::Slot;
use crate::session::refuse;
use ogive_origin::Errno;
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::sync::Arc;

/// What has been done for a ring by another thread.
pub(super) enum Done {
    /// The answer stands in the slot.
    Answered(Slot),
    /// The request of this number could not be handed to the session behind the bridge.
    Unsent(u64, Errno),
}

/// What has been done for a ring by other threads.
pub(super) struct Outbox {
    done: Mutex<Vec<Done>>,
    bell: OwnedFd,
}

impl Outbox {
    pub(super) fn new() -> io::Result<Arc<Self>> {
        let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Arc::new(Self { done: Mutex::default(), bell }))
    }

    pub(super) fn push(&self, done: Done) {
        let first = {
            let mut waiting = self.done.lock();
            waiting.push(done);
            waiting.len() == 1
        };
        // It cannot overflow: it is emptied before the list is.
        if first && let Err(errno) = rustix::io::write(&self.bell, &1u64.to_ne_bytes()) {
            log::error!("cannot wake a ring: {errno}");
        }
    }

    /// All that has been done; whoever pushes after this rings the bell again.
    pub(super) fn take(&self) -> Vec<Done> {
        let _ = rustix::io::read(&self.bell, &mut [0u8; 8]);
        std::mem::take(&mut *self.done.lock())
    }
}

impl AsFd for Outbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// A request that must be answered. One that is dropped, by a panic, is answered with `EIO`.
pub(super) struct Answer {
    slot: Option<Slot>,
    outbox: Arc<Outbox>,
}

impl Answer {
    pub(super) fn new(slot: Slot, outbox: Arc<Outbox>) -> Self {
        Self { slot: Some(slot), outbox }
    }

    /// What follows the fixed arguments of the request.
    pub(super) fn payload(&self, length_bytes: usize) -> &[u8] {
        let payload = self.slot.as_ref().map_or(&[][..], Slot::payload);
        &payload[..length_bytes.min(payload.len())]
    }

    /// Puts an answer into the slot. Bytes beyond its payload buffer are none that were asked for.
    pub(super) fn fill(&mut self, result: Result<&[u8], Errno>) {
        if let Some(slot) = &mut self.slot {
            fill(slot, result);
        }
    }

    /// Leaves the answer for the thread of the ring.
    pub(super) fn send(mut self) {
        if let Some(slot) = self.slot.take() {
            self.outbox.push(Done::Answered(slot));
        }
    }

    /// The slot, for the thread of the ring itself.
    pub(super) fn into_slot(mut self) -> Option<Slot> {
        self.slot.take()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some(mut slot) = self.slot.take() {
            fill(&mut slot, Err(Errno::IO));
            self.outbox.push(Done::Answered(slot));
        }
    }
}

/// Puts an answer into a slot.
pub(super) fn fill(slot: &mut Slot, result: Result<&[u8], Errno>) {
    let result = match result {
        Ok(bytes) => {
            let payload = slot.payload_mut();
            let length = bytes.len().min(payload.len());
            payload[..length].copy_from_slice(&bytes[..length]);
            Ok(length as u32)
        }
        Err(errno) => Err(refuse(errno).code()),
    };
    protocol::answer(slot.head_mut(), result);
}
