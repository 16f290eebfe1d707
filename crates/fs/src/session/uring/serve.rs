//! The thread of a ring: takes requests, and answers what it may.
//!
//! A read of cached records is answered where it arrived. Its bytes are copied into the payload
//! buffer, and one system call sends the answer and takes the next request. The thread also asks
//! the origin itself, as long as no other request waits for it. That holds under three conditions:
//!
//! - the kernel has no slot of this thread
//! - this thread has no other thread's answer to send
//! - another thread of its queue is free ([`super::queue_threads`])
//!
//! Otherwise it hands the request to the threads that wait for the origin ([`crate::workers`]). If
//! the second level probably has the record, it hands the request to the threads for that. They
//! finish the request in the buffers of its slot. If its queue had no other slot, it gets one.
//!
//! A thread that hung in the origin for too long has lost its slot ([`super::rescue`]).

use super::RingLayout;
use super::answer::Answer;
use super::head;
use super::pinning::Pinning;
use super::queue_threads::QueueThreads;
use super::queue_wakeup;
use super::rescue::LateReply;
use super::ring::{Event, Ring, Slot};
use super::ring_inbox::{Message, RingInbox};
use super::ring_threads::{RingThreads, add_thread};
use crate::counters::Way;
use crate::session::exchange::{Exchange, Work};
use crate::session::operation::Operation;
use crate::session::request::Request;
use ogive_origin::{Errno, Origin};
use rustix::fd::{AsFd, OwnedFd};
use std::io;
use std::sync::Arc;

/// Numbers of the watched descriptors.
const INBOX: u32 = 0;
const MEMORY: u32 = 1;
/// Slots of one ring. When all of them wait for the origin, further requests wait too.
const SLOTS_MAX: usize = 1024;

/// One ring and its requests.
pub(super) struct Server<O: Origin> {
    threads: Arc<RingThreads<O>>,
    /// The threads of its queue; none if it serves processors that do not run.
    queue_threads: Option<Arc<QueueThreads>>,
    layout: RingLayout,
    pinning: Pinning,
    ring: Ring,
    inbox: Arc<RingInbox>,
    /// Signals that memory is wanted back.
    memory: Arc<OwnedFd>,
    /// Slots that other threads have.
    handed_over: usize,
    /// It has no slot, and waits for one or for the end.
    is_waiting: bool,
}

/// The outcome of a request.
enum Outcome {
    /// Its answer stands in its slot.
    Answered(Slot),
    /// Another thread has it.
    HandedOver,
    /// Another thread has answered it and taken its slot.
    Lost,
}

impl<O: Origin> Server<O> {
    pub(super) fn new(
        threads: Arc<RingThreads<O>>,
        queue_threads: Option<Arc<QueueThreads>>,
        layout: RingLayout,
    ) -> io::Result<Self> {
        let ring = Ring::new(threads.payload_bytes)?;
        let inbox = RingInbox::new()?;
        let memory = threads.session.view.memory_bell.event_fd()?;
        let pinning = Pinning::new(&layout, threads.processors);
        let is_rescuer = layout.queues.is_empty();
        if is_rescuer {
            threads.rescue.set_rescuer(inbox.clone());
        }
        let (handed_over, is_waiting) = (0, is_rescuer);
        Ok(Self {
            threads,
            queue_threads,
            layout,
            pinning,
            ring,
            inbox,
            memory,
            handed_over,
            is_waiting,
        })
    }

    /// Gives the kernel a slot for each queue.
    ///
    /// # Errors
    /// The kernel's error if it takes none, or not all.
    pub(super) fn register(&mut self, device: Arc<OwnedFd>) -> io::Result<()> {
        self.ring.watch(self.inbox.as_fd(), INBOX)?;
        self.ring.watch(self.memory.as_fd(), MEMORY)?;
        self.ring.connect(device);
        for queue in self.layout.queues.clone() {
            self.ring.add(queue)?;
        }
        let mut events = Vec::new();
        self.ring.events(&mut events);
        let refused = events.iter().find_map(|event| match event {
            Event::Gone(error) => Some(io::Error::from_raw_os_error(*error)),
            _ => None,
        });
        self.take(&mut events)?;
        refused.map_or(Ok(()), Err)
    }

    /// Serves until the connection has ended and all of its requests are finished.
    ///
    /// # Errors
    /// If the ring fails; no thread serves its slots then.
    pub(super) fn serve(mut self) -> io::Result<()> {
        let mut events = Vec::new();
        while self.ring.slots() > 0 || (self.is_waiting && !self.threads.rescue.is_over()) {
            self.ring.wait()?;
            self.ring.events(&mut events);
            let is_memory = |event: &Event| matches!(event, Event::Readable { number: MEMORY, .. });
            if events.iter().any(is_memory) {
                self.ring.forget_payloads();
            }
            self.take(&mut events)?;
        }
        Ok(())
    }

    fn take(&mut self, events: &mut Vec<Event>) -> io::Result<()> {
        for event in events.drain(..) {
            match event {
                Event::Gone(error) => {
                    log::debug!("a slot of a ring is gone: error {error}");
                }
                Event::Request(slot) => self.begin(slot)?,
                Event::Readable { number: MEMORY, watched } => {
                    // Memory was given back before this read, or will be at the next signal.
                    let _ = rustix::io::read(&self.memory, &mut [0u8; 8]);
                    if !watched {
                        self.ring.watch(self.memory.as_fd(), MEMORY)?;
                    }
                }
                Event::Readable { watched, .. } => {
                    if !watched {
                        self.ring.watch(self.inbox.as_fd(), INBOX)?;
                    }
                    for message in self.inbox.take() {
                        self.receive(message)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn receive(&mut self, message: Message) -> io::Result<()> {
        match message {
            Message::Answered(slot) => {
                self.handed_over -= 1;
                self.ring.commit(slot)
            }
            Message::Adopted(slot, queue) => {
                let slot = self.ring.adopt(slot, queue);
                self.ring.commit(slot)
            }
            Message::Requested(slot, queue) => {
                self.is_waiting = false;
                let slot = self.ring.adopt(slot, queue);
                self.begin(slot)
            }
        }
    }

    /// Gives a request to a thread of its queue that has lost its slot, if this is the rescuer.
    fn give_back(&mut self, slot: Slot) -> Option<Slot> {
        let is_rescuer = self.layout.queues.is_empty();
        let queue = self.ring.queue_of(&slot).filter(|_| is_rescuer);
        let Some((queue, waiting)) =
            queue.and_then(|queue| Some((queue, self.threads.rescue.take_waiting(queue)?)))
        else {
            return Some(slot);
        };
        self.ring.give_away(slot.number());
        waiting.push(Message::Requested(slot, queue));
        None
    }

    fn begin(&mut self, slot: Slot) -> io::Result<()> {
        let Some(slot) = self.give_back(slot) else { return Ok(()) };
        let (number, own_queue) = (slot.number(), self.ring.queue_of(&slot));
        let queue = self.ring.closed_queue_of(&slot);
        let answer = Answer::new(slot, self.inbox.clone());
        // After a panic, the dropped answer comes back through the inbox.
        let answered = self.threads.session.guarded(|| Ok(self.answer(answer)));
        let outcome = answered.unwrap_or(Outcome::HandedOver);
        match outcome {
            Outcome::Answered(slot) => self.ring.commit(slot),
            Outcome::HandedOver => {
                self.handed_over += 1;
                match queue {
                    Some(queue)
                        if self.ring.slots() < SLOTS_MAX && !self.layout.queues.is_empty() =>
                    {
                        self.ring.add(queue)?;
                        queue_wakeup::wake(&self.threads.session.view, &[queue]);
                        Ok(())
                    }
                    _ => Ok(()),
                }
            }
            Outcome::Lost => {
                self.ring.give_away(number);
                self.is_waiting = true;
                let queue = own_queue.unwrap_or_default();
                self.threads.rescue.wait_for_slot(queue, self.inbox.clone());
                Ok(())
            }
        }
    }

    /// Answers a request, or hands it over.
    fn answer(&self, mut answer: Answer) -> Outcome {
        let session = &self.threads.session;
        let request =
            answer.slot().and_then(|slot| head::request(slot.head(), slot.payload().len()));
        let Some(request) = request else {
            log::error!("a request whose lengths contradict each other");
            answer.finish(Err(Errno::IO));
            return answered(answer);
        };
        let counters = &session.view.counters;
        let Some(work) = session.at_once(&request, &mut answer) else {
            match request.operation {
                Operation::Read { .. } => {
                    counters.ring(Way::Answered);
                    self.pinning.answered();
                }
                Operation::Wakeup => counters.ring(Way::Nudged),
                _ => {}
            }
            return answered(answer);
        };
        self.pinning.something_else();
        let may_wait = self.ring.is_closed() && self.handed_over == 0;
        let permit = self.queue_threads.as_ref().filter(|_| may_wait).and_then(|queue_threads| {
            queue_threads.permit(|| {
                let device = self.ring.device();
                device.is_some_and(|device| {
                    add_thread(&self.threads, queue_threads, &self.layout, device)
                })
            })
        });
        let work = match work {
            Work::Read(read) if session.view.completes_elsewhere() => {
                self.wait(&request, &mut answer, true);
                match session.complete_elsewhere(read, answer) {
                    // The thread that loads the records has it.
                    None => {
                        counters.ring(Way::Queued);
                        return Outcome::HandedOver;
                    }
                    Some((read, back)) => {
                        answer = back;
                        if !answer.claim() {
                            // It was answered already, and comes back through the inbox.
                            return Outcome::HandedOver;
                        }
                        Work::Read(read)
                    }
                }
            }
            work => work,
        };
        self.wait(&request, &mut answer, permit.is_none());
        if permit.is_some() {
            counters.ring(Way::Waited);
            session.carry_out(&request, work, &mut answer);
            return answered(answer);
        }
        counters.ring(Way::Queued);
        let session = session.clone();
        self.threads.session.view.workers.request(Box::new(move || {
            session.carry_out_late(&request, work, &mut answer);
            answer.send();
        }));
        Outcome::HandedOver
    }

    /// Notes that a request is about to wait. `is_handed_over`: on another thread.
    fn wait(&self, request: &Request, answer: &mut Answer, is_handed_over: bool) {
        let Some(slot) = answer.slot() else { return };
        let late = LateReply {
            region: slot.region().clone(),
            slot_number: slot.number(),
            queue: self.ring.queue_of(slot).unwrap_or_default(),
            commit_number: head::commit_number(slot.head()),
            home: is_handed_over.then(|| self.inbox.clone()),
            rescue: self.threads.rescue.clone(),
        };
        answer.wait(self.threads.session.in_flight.begin(request, Box::new(late)));
    }
}

/// The outcome of a request that the thread of its ring carried out.
fn answered(answer: Answer) -> Outcome {
    answer.into_slot().map_or(Outcome::Lost, Outcome::Answered)
}
