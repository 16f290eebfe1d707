//! Messages of other threads to the thread of a ring: answers to commit, and slots.
//!
//! Only the thread of a ring may commit. So threads that wait for the origin leave their answers
//! here and wake it, once for all messages. The lock is a leaf, held for a push or a swap.

use super::ring::Slot;
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::sync::Arc;

/// A message to the thread of a ring.
pub(super) enum Message {
    /// A slot of this ring, with an answer.
    Answered(Slot),
    /// A slot of another ring, with an answer; this ring owns it from now on.
    Adopted(Slot, u16),
    /// A slot of another ring, with a request; this ring owns it from now on.
    Requested(Slot, u16),
}

/// The inbox of one ring.
pub(super) struct RingInbox {
    left: Mutex<Vec<Message>>,
    event_fd: OwnedFd,
}

impl RingInbox {
    pub(super) fn new() -> io::Result<Arc<Self>> {
        let event_fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Arc::new(Self { left: Mutex::default(), event_fd }))
    }

    pub(super) fn push(&self, message: Message) {
        let first = {
            let mut left = self.left.lock();
            left.push(message);
            left.len() == 1
        };
        if first {
            self.ring();
        }
    }

    /// Wakes the thread of the ring.
    pub(super) fn ring(&self) {
        // The eventfd cannot overflow: it is read before the list is taken.
        if let Err(errno) = rustix::io::write(&self.event_fd, &1u64.to_ne_bytes()) {
            log::error!("cannot wake a ring: {errno}");
        }
    }

    /// Takes all messages; a push after this writes to the eventfd again.
    pub(super) fn take(&self) -> Vec<Message> {
        let _ = rustix::io::read(&self.event_fd, &mut [0u8; 8]);
        std::mem::take(&mut *self.left.lock())
    }
}

impl AsFd for RingInbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event_fd.as_fd()
    }
}
