//! A request in its slot, which has to be answered exactly once.
//!
//! The answer is put into the slot. The thread of the ring commits the slot itself; another thread
//! leaves it in the ring's inbox ([`super::ring_inbox`]). A request that a panic drops is answered
//! `EIO`.

use super::head;
use super::ring::Slot;
use super::ring_inbox::{Message, RingInbox};
use crate::session::exchange::Exchange;
use crate::session::in_flight::Pending;
use crate::session::protocol::error_number;
use crate::view::Result;
use ogive_origin::Errno;
use std::sync::Arc;

/// A request that must be answered. One that a panic drops is answered `EIO`.
pub(super) struct Answer {
    slot: Option<Slot>,
    inbox: Arc<RingInbox>,
    /// No other thread has answered and taken the slot away ([`super::rescue`]).
    is_ours: bool,
    /// Its entry in flight.
    pending: Option<Pending>,
}

impl Answer {
    pub(super) fn new(slot: Slot, inbox: Arc<RingInbox>) -> Self {
        Self { slot: Some(slot), inbox, is_ours: true, pending: None }
    }

    /// The slot of the request, which gets the answer.
    pub(super) fn slot(&self) -> Option<&Slot> {
        self.slot.as_ref()
    }

    /// The slot, for the thread of the ring itself; `None` if another thread owns it now.
    pub(super) fn into_slot(mut self) -> Option<Slot> {
        self.slot.take().filter(|_| self.is_ours)
    }
}

impl Exchange for Answer {
    fn buffer(&mut self, _answer_max_bytes: usize) -> &mut [u8] {
        self.slot.as_mut().map_or(&mut [], |slot| slot.parts_mut().1)
    }

    fn wait(&mut self, pending: Pending) {
        self.pending = Some(pending);
    }

    fn claim(&mut self) -> bool {
        self.is_ours &= self.pending.take().is_none_or(Pending::claim);
        self.is_ours
    }

    fn finish(&mut self, result: Result<usize>) -> bool {
        if let Some(slot) = &mut self.slot {
            finish(slot, result);
        }
        true
    }

    /// No program asked for bytes beyond the payload buffer.
    fn finish_with(&mut self, pieces: &[&[u8]]) -> bool {
        if let Some(slot) = &mut self.slot {
            fill(slot, Ok(pieces));
        }
        true
    }

    fn give_up(&mut self) {
        self.is_ours = false;
    }

    fn send(mut self) {
        if let Some(slot) = self.slot.take().filter(|_| self.is_ours) {
            self.inbox.push(Message::Answered(slot));
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some(mut slot) = self.slot.take()
            && self.claim()
        {
            finish(&mut slot, Err(Errno::IO));
            self.inbox.push(Message::Answered(slot));
        }
    }
}

/// Puts an answer into a slot.
pub(super) fn fill(slot: &mut Slot, result: Result<&[&[u8]]>) {
    let payload = slot.parts_mut().1;
    let length = result.map(|pieces| {
        pieces.iter().fold(0, |at, bytes| {
            let room = &mut payload[at..];
            let length = bytes.len().min(room.len());
            room[..length].copy_from_slice(&bytes[..length]);
            at + length
        })
    });
    finish(slot, length);
}

/// Writes the head of an answer that already stands in the payload, with its length.
fn finish(slot: &mut Slot, result: Result<usize>) {
    // A payload is never larger than a request, which the kernel counts in 32 bits.
    head::answer(slot.parts_mut().0, result.map(|length| length as u32).map_err(error_number));
}

/// A ring that is not registered with a kernel.
#[cfg(test)]
pub(in crate::session) struct TestRing(Arc<RingInbox>);

#[cfg(test)]
impl TestRing {
    pub(in crate::session) fn new() -> Self {
        Self(RingInbox::new().expect("an eventfd"))
    }

    /// A request with this payload, in a slot of the ring.
    pub(in crate::session) fn answer(&self, payload: &[u8]) -> impl Exchange + use<> {
        let mut slot = super::ring::slots(1, 1 << 17).pop().expect("one slot");
        slot.parts_mut().1[..payload.len()].copy_from_slice(payload);
        Answer::new(slot, self.0.clone())
    }

    /// The error numbers of the answered slots.
    pub(in crate::session) fn answered(&self) -> Vec<i32> {
        let error = |message: &Message| match message {
            Message::Answered(slot) => crate::session::protocol::u32_at(slot.head(), 4) as i32,
            Message::Adopted(..) | Message::Requested(..) => panic!("not an answer"),
        };
        self.0.take().iter().map(error).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::ring::slots;
    use super::*;
    use crate::session::protocol::u32_at;
    use rustix::fd::AsFd;

    fn answer_in(message: &Message) -> std::result::Result<Vec<u8>, i32> {
        let Message::Answered(slot) = message else { panic!("not an answer") };
        let (total, error) = (u32_at(slot.head(), 0) as usize, u32_at(slot.head(), 4) as i32);
        if error == 0 { Ok(slot.payload()[..total - 16].to_vec()) } else { Err(-error) }
    }

    #[test]
    fn the_inbox_wakes_its_ring_once_for_everything_left() {
        let inbox = RingInbox::new().unwrap();
        for slot in slots(3, 64) {
            Answer::new(slot, inbox.clone()).send();
        }
        let mut rung = [0u8; 8];
        rustix::io::read(inbox.as_fd(), &mut rung).unwrap();
        assert_eq!(u64::from_ne_bytes(rung), 1);
        assert_eq!(inbox.take().len(), 3);
        assert!(inbox.take().is_empty());
        drop(Answer::new(slots(1, 64).pop().unwrap(), inbox.clone()));
        rustix::io::read(inbox.as_fd(), &mut rung).unwrap();
        assert_eq!(inbox.take().len(), 1);
    }

    #[test]
    fn a_request_is_answered_even_if_it_is_dropped_or_panics() {
        let inbox = RingInbox::new().unwrap();
        let mut slots = slots(4, 64);
        let mut next = || Answer::new(slots.pop().unwrap(), inbox.clone());
        let (mut good, mut bad, dropped) = (next(), next(), next());
        good.finish_with(&[b"by", b"tes"]);
        good.send();
        bad.finish(Err(Errno::NOTCONN));
        bad.send();
        drop(dropped);
        let panicking = next();
        std::thread::spawn(move || {
            let _answer = panicking;
            panic!("on purpose");
        })
        .join()
        .unwrap_err();
        let answers: Vec<_> = inbox.take().iter().map(answer_in).collect();
        let failed = Err(Errno::IO.raw_os_error());
        // A dead source looks like a failing device, not like a mount that died.
        assert_eq!(answers, [Ok(b"bytes".to_vec()), failed.clone(), failed.clone(), failed]);
    }

    #[test]
    fn a_request_answered_elsewhere_is_not_answered_again() {
        let inbox = RingInbox::new().unwrap();
        for send in [true, false] {
            let mut answer = Answer::new(slots(1, 64).pop().unwrap(), inbox.clone());
            answer.give_up();
            answer.buffer(0)[0] = 1;
            if send { answer.send() } else { assert!(answer.into_slot().is_none()) }
        }
        assert!(inbox.take().is_empty());
    }

    #[test]
    fn no_answer_is_longer_than_its_buffer() {
        let mut slot = slots(1, 8).pop().unwrap();
        fill(&mut slot, Ok(&[b"0123456789"]));
        assert_eq!(slot.payload(), b"01234567");
        assert_eq!(slot.head()[..4], 24u32.to_ne_bytes());
    }
}
