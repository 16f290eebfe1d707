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

#[cfg(test)]
mod tests {
    use super::super::protocol::parse_answer;
    use super::super::ring::slots;
    use super::*;

    fn answer_in(done: &Done) -> Result<Vec<u8>, i32> {
        let Done::Answered(slot) = done else { panic!("no answer") };
        let mut message = slot.head()[..16].to_vec();
        let length = u32::from_ne_bytes(message[..4].try_into().unwrap()) as usize - 16;
        message.extend_from_slice(&slot.payload()[..length]);
        parse_answer(&message).unwrap().1.map(<[u8]>::to_vec)
    }

    #[test]
    fn the_bell_rings_once_for_all_that_is_left() {
        let outbox = Outbox::new().unwrap();
        for slot in slots(3, 64) {
            Answer::new(slot, outbox.clone()).send();
        }
        let mut rung = [0u8; 8];
        rustix::io::read(&outbox.bell, &mut rung).unwrap();
        assert_eq!(u64::from_ne_bytes(rung), 1);
        assert_eq!(outbox.take().len(), 3);
        assert!(outbox.take().is_empty());
        outbox.push(Done::Unsent(1, Errno::PIPE));
        rustix::io::read(&outbox.bell, &mut rung).unwrap();
        assert!(matches!(outbox.take()[..], [Done::Unsent(1, Errno::PIPE)]));
    }

    #[test]
    fn a_request_is_answered_whatever_becomes_of_it() {
        let outbox = Outbox::new().unwrap();
        let mut slots = slots(4, 64);
        let mut next = || Answer::new(slots.pop().unwrap(), outbox.clone());
        let (mut good, mut bad, dropped) = (next(), next(), next());
        good.fill(Ok(b"bytes"));
        good.send();
        bad.fill(Err(Errno::NOTCONN));
        bad.send();
        drop(dropped);
        let panicking = next();
        std::thread::spawn(move || {
            let _answer = panicking;
            panic!("on purpose");
        })
        .join()
        .unwrap_err();
        let answers: Vec<_> = outbox.take().iter().map(answer_in).collect();
        let failed = Err(Errno::IO.raw_os_error());
        // A dead source reads as a device that fails, not as a mount that died.
        assert_eq!(answers, [Ok(b"bytes".to_vec()), failed.clone(), failed.clone(), failed]);
    }

    #[test]
    fn no_answer_is_longer_than_its_buffer() {
        let mut slot = slots(1, 8).pop().unwrap();
        fill(&mut slot, Ok(b"0123456789"));
        assert_eq!(slot.payload(), b"01234567");
        assert_eq!(slot.head()[..4], 24u32.to_ne_bytes());
    }
}
