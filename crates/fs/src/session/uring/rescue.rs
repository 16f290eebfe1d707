//! Answers for a thread that hangs in the origin.
//!
//! A request of a ring is answered by committing its slot, and only the thread of a ring commits
//! there. If that thread hangs, another must answer: the *rescuer*. It is a ring of its own without
//! slots, whose thread never waits for the origin. The slot gets fresh memory ([`Slot::replace`]).
//! The rescuer's ring commits the slot, and owns it from then on.
//!
//! When the hanging thread returns, it has no slot any more, and asks for one. The rescuer gives it
//! the next request that arrives in a slot of its queue, with the slot. So the number of slots
//! never grows.

use super::answer::fill;
use super::ring::{Region, Slot};
use super::ring_inbox::{Message, RingInbox};
use crate::session::in_flight::ReplyRoute;
use crate::view::Result;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Matches threads without a slot with slots without a thread.
pub(super) struct Rescue {
    /// The rescuer's inbox, once it runs.
    rescuer: Mutex<Option<Arc<RingInbox>>>,
    /// Threads that wait for a slot, each with its queue. A leaf lock.
    waiting: Mutex<Vec<(u16, Arc<RingInbox>)>>,
    /// The connection has ended: no more slots will come.
    is_over: AtomicBool,
}

impl Rescue {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            rescuer: Mutex::default(),
            waiting: Mutex::default(),
            is_over: AtomicBool::new(false),
        })
    }

    /// Sets the rescuer's inbox.
    pub(super) fn set_rescuer(&self, inbox: Arc<RingInbox>) {
        *self.rescuer.lock() = Some(inbox);
    }

    /// A thread has lost its slot, and waits for one of this queue.
    pub(super) fn wait_for_slot(&self, queue: u16, inbox: Arc<RingInbox>) {
        self.waiting.lock().push((queue, inbox));
    }

    /// Takes a thread that waits for a slot of this queue.
    pub(super) fn take_waiting(&self, queue: u16) -> Option<Arc<RingInbox>> {
        let mut waiting = self.waiting.lock();
        let position = waiting.iter().position(|(wanted, _)| *wanted == queue)?;
        Some(waiting.swap_remove(position).1)
    }

    /// No more slots will come: wakes the threads that wait for one.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        let waiting = std::mem::take(&mut *self.waiting.lock());
        let rescuer = self.rescuer.lock().take();
        waiting.into_iter().map(|(_, inbox)| inbox).chain(rescuer).for_each(|o| o.ring());
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}

/// The route of an answer that another thread gives.
pub(super) struct LateReply {
    pub(super) region: Arc<Region>,
    pub(super) slot_number: usize,
    pub(super) queue: u16,
    pub(super) commit_number: u64,
    /// The inbox of the slot's own ring, if its thread is free to commit because another thread
    /// carries the request out.
    pub(super) home: Option<Arc<RingInbox>>,
    pub(super) rescue: Arc<Rescue>,
}

impl ReplyRoute for LateReply {
    fn answer(self: Box<Self>, unique: u64, result: Result<&[u8]>) {
        let numbers = (unique, self.commit_number);
        let mut slot = match Slot::replace(&self.region, self.slot_number, numbers) {
            Ok(slot) => slot,
            Err(error) => {
                log::error!("no memory to answer a program, which goes on waiting: {error}");
                return;
            }
        };
        match result {
            Ok(bytes) => fill(&mut slot, Ok(&[bytes])),
            Err(errno) => fill(&mut slot, Err(errno)),
        }
        if let Some(home) = &self.home {
            return home.push(Message::Answered(slot));
        }
        match &*self.rescue.rescuer.lock() {
            Some(rescuer) => rescuer.push(Message::Adopted(slot, self.queue)),
            None => log::debug!("the connection has ended before a program could be answered"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ring::slots;
    use super::*;
    use crate::session::protocol::{u32_at, u64_at};
    use ogive_origin::Errno;

    fn late(slot: &Slot, home: Option<Arc<RingInbox>>, rescue: &Arc<Rescue>) -> Box<LateReply> {
        let (region, slot_number) = (slot.region().clone(), slot.number());
        let rescue = rescue.clone();
        Box::new(LateReply { region, slot_number, queue: 3, commit_number: 8, home, rescue })
    }

    #[test]
    fn a_request_that_was_handed_over_is_answered_by_its_own_ring() {
        let (home, rescue) = (RingInbox::new().unwrap(), Rescue::new());
        let slot = slots(1, 64).pop().unwrap();
        late(&slot, Some(home.clone()), &rescue).answer(6, Err(Errno::INTR));
        let left = home.take();
        let [Message::Answered(answered)] = &left[..] else { panic!("not answered") };
        assert_eq!((u64_at(answered.head(), 8), answered.number()), (6, slot.number()));
        assert_eq!(u32_at(answered.head(), 4) as i32, -Errno::INTR.raw_os_error());
    }

    #[test]
    fn the_rescuer_answers_for_a_thread_that_hangs() {
        let (rescuer, rescue) = (RingInbox::new().unwrap(), Rescue::new());
        rescue.set_rescuer(rescuer.clone());
        let slot = slots(1, 64).pop().unwrap();
        late(&slot, None, &rescue).answer(6, Ok(b"bytes"));
        let left = rescuer.take();
        let [Message::Adopted(adopted, 3)] = &left[..] else { panic!("not adopted") };
        assert_eq!(&adopted.payload()[..5], b"bytes");
        rescue.end();
        late(&slots(1, 64).pop().unwrap(), None, &rescue).answer(6, Ok(b"bytes"));
        assert!(rescuer.take().is_empty() && rescue.is_over());
    }

    #[test]
    fn a_thread_gets_a_slot_of_its_queue() {
        let (rescue, inbox) = (Rescue::new(), RingInbox::new().unwrap());
        rescue.wait_for_slot(1, inbox.clone());
        assert!(rescue.take_waiting(2).is_none());
        assert!(Arc::ptr_eq(&rescue.take_waiting(1).unwrap(), &inbox));
        assert!(rescue.take_waiting(1).is_none());
    }
}
