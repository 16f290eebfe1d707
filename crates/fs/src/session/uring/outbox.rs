//! The way back from threads that wait for the origin to the ring a request came by.
//!
//! Only the thread of a ring may commit, so answers are left here and it is woken: once for all
//! that are left before it looks. The lock is a leaf, held for a push or a swap.

use super::protocol::{self, Head};
use super::ring::Slot;
use crate::session::refuse;
use ogive_origin::Errno;
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::sync::Arc;

/// Slots in which other threads have put an answer.
pub(super) struct Outbox {
    done: Mutex<Vec<Slot>>,
    bell: OwnedFd,
}

impl Outbox {
    pub(super) fn new() -> io::Result<Arc<Self>> {
        let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Arc::new(Self { done: Mutex::default(), bell }))
    }

    fn push(&self, slot: Slot) {
        let first = {
            let mut waiting = self.done.lock();
            waiting.push(slot);
            waiting.len() == 1
        };
        // It cannot overflow: it is emptied before the list is.
        if first && let Err(errno) = rustix::io::write(&self.bell, &1u64.to_ne_bytes()) {
            log::error!("cannot wake a ring: {errno}");
        }
    }

    /// All that has been answered; whoever pushes after this rings the bell again.
    pub(super) fn take(&self) -> Vec<Slot> {
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

    /// Where the request stands, and the answer is to be put.
    pub(super) fn slot(&mut self) -> Option<&mut Slot> {
        self.slot.as_mut()
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
            self.outbox.push(slot);
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
            self.outbox.push(slot);
        }
    }
}

/// Puts an answer into a slot.
pub(super) fn fill(slot: &mut Slot, result: Result<&[u8], Errno>) {
    let (head, payload) = slot.parts_mut();
    let length = result.map(|bytes| {
        let length = bytes.len().min(payload.len());
        payload[..length].copy_from_slice(&bytes[..length]);
        length
    });
    finish(head, length);
}

/// Heads an answer that stands in the payload already, with its length.
pub(super) fn finish(head: &mut Head, result: Result<usize, Errno>) {
    // A payload is never larger than a request, which the kernel counts in 32 bits.
    let result = result.map(|length| length as u32);
    protocol::answer(head, result.map_err(|errno| refuse(errno).code()));
}

#[cfg(test)]
mod tests {
    use super::super::protocol::{parse_answer, u32_at};
    use super::super::ring::slots;
    use super::*;

    fn answer_in(slot: &Slot) -> Result<Vec<u8>, i32> {
        let header = slot.head().first_chunk().unwrap();
        let total_bytes = u32_at(header, 0) as usize;
        let (_, result) = parse_answer(header, total_bytes).unwrap();
        result.map(|length| slot.payload()[..length].to_vec())
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
        drop(Answer::new(slots(1, 64).pop().unwrap(), outbox.clone()));
        rustix::io::read(&outbox.bell, &mut rung).unwrap();
        assert_eq!(outbox.take().len(), 1);
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
