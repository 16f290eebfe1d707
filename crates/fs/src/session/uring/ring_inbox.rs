//! What other threads leave for the thread of a ring: answers to commit, and slots.
//!
//! Only the thread of a ring may commit. So threads that wait for the origin leave their answers
//! here and wake it, once for all that it finds. The lock is a leaf, held for a push or a swap.

use super::ring::Slot;
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::sync::Arc;

/// What other threads leave for the thread of a ring.
pub(super) enum Message {
    /// A slot of this ring in which an answer stands.
    Answered(Slot),
    /// A slot of another ring, in which an answer stands; it is this ring's from now on.
    Adopted(Slot, u16),
    /// A slot of another ring, in which a request stands; it is this ring's from now on.
    Requested(Slot, u16),
}

/// Where they leave it.
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
        // It cannot overflow: it is emptied before the list is.
        if let Err(errno) = rustix::io::write(&self.event_fd, &1u64.to_ne_bytes()) {
            log::error!("cannot wake a ring: {errno}");
        }
    }

    /// Everything that was left; a push after this writes to the eventfd again.
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
