//! Answers in the stead of a thread that is caught in the origin.
//!
//! A request of a ring is answered by committing its slot, and only the thread of a ring commits
//! there. If that thread is the one that waits, another must: the *rescuer*, a ring of its own
//! without slots, whose thread never waits for the origin. The slot gets fresh memory
//! ([`Slot::replace`]), the rescuer's ring commits it, and it belongs to that ring from then on.
//!
//! When the caught thread comes back it has no slot any more, and asks for one. The rescuer gives
//! it the next request that comes into a slot of its queue, slot and all. So there are never more
//! slots than there were.

use super::answer::fill;
use super::ring::{Region, Slot};
use super::ring_inbox::{Message, RingInbox};
use crate::session::in_flight::ReplyRoute;
use crate::view::Result;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where threads without a slot and slots without a thread find each other.
pub(super) struct Rescue {
    /// The rescuer's, once there is one.
    rescuer: Mutex<Option<Arc<RingInbox>>>,
    /// Threads that wait for a slot of this queue. A leaf lock.
    waiting: Mutex<Vec<(u16, Arc<RingInbox>)>>,
    /// The connection has ended: no slot will ever come.
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

    /// Names the rescuer.
    pub(super) fn set_rescuer(&self, inbox: Arc<RingInbox>) {
        *self.rescuer.lock() = Some(inbox);
    }

    /// A thread has lost its slot, and waits for one of this queue.
    pub(super) fn wait_for_slot(&self, queue: u16, inbox: Arc<RingInbox>) {
        self.waiting.lock().push((queue, inbox));
    }

    /// A thread that waits for a slot of this queue.
    pub(super) fn take_waiting(&self, queue: u16) -> Option<Arc<RingInbox>> {
        let mut waiting = self.waiting.lock();
        let position = waiting.iter().position(|(wanted, _)| *wanted == queue)?;
        Some(waiting.swap_remove(position).1)
    }

    /// No slot will come any more: wakes the threads that wait for one.
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

/// The return path of an answer that does not come from the work.
pub(super) struct LateReply {
    pub(super) region: Arc<Region>,
    pub(super) slot_number: usize,
    pub(super) queue: u16,
    pub(super) commit_number: u64,
    /// The ring's own, if its thread is free to commit: another thread has the request.
    pub(super) home: Option<Arc<RingInbox>>,
    pub(super) rescue: Arc<Rescue>,
}

impl ReplyRoute for LateReply {
    fn answer(self: Box<Self>, unique: u64, result: Result<&[u8]>) {
        let numbers = (unique, self.commit_number);
        let mut slot = match Slot::replace(&self.region, self.slot_number, numbers) {
            Ok(slot) => slot,
            Err(error) => {
                log::error!(
                    "a program waits on that should have got its answer, for want of memory: {error}"
                );
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
    fn the_rescuer_answers_for_a_thread_that_is_caught() {
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
