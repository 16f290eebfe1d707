//! The thread of a ring: takes requests, and answers what it may.
//!
//! A read of cached records is answered where it arrived: a copy into the payload buffer, and the
//! next wait sends the answer and takes the next request in one system call. So is everything that
//! has to ask the origin, as long as nobody can come to wait with it: no slot of this thread is
//! with the kernel, no answer of another thread is to be sent by it, and another member of its
//! crew is free ([`super::crew`]). Otherwise the request is handed to the threads that wait for the
//! origin ([`crate::workers`]), or to those of the second level if that is likely to have what is
//! missing. They finish it in the buffers of its slot; if its queue had no other slot it gets one.

use super::RingLayout;
use super::crew::Crew;
use super::members::{Members, enlist};
use super::nudge;
use super::outbox::{Answer, Outbox};
use super::perform::{Work, answer_completed};
use super::placement::Placement;
use super::request::{Operation, Request, Transfer};
use super::ring::{Event, Ring, Slot};
use crate::counters::Way;
use crate::number::Numbers;
use crate::view::{Read, Result, View};
use ogive_origin::{Errno, Origin};
use rustix::fd::{AsFd, OwnedFd};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Numbers of what is watched beside slots.
const OUTBOX: u32 = 0;
const MEMORY: u32 = 1;
/// Slots of one ring. When all of them wait for the origin, so does whoever asks for more.
const SLOTS_MAX: usize = 1024;

/// One ring and what is under way in it.
pub(super) struct Server<O: Origin> {
    members: Arc<Members<O>>,
    /// Whose member this is; nobody's if it serves processors that do not run.
    crew: Option<Arc<Crew>>,
    layout: RingLayout,
    placement: Placement,
    ring: Ring,
    outbox: Arc<Outbox>,
    /// Rings when memory is wanted back.
    memory: Arc<OwnedFd>,
    /// Slots that other threads have.
    handed_over: usize,
    /// Slots that are gone.
    gone: usize,
}

impl<O: Origin> Server<O> {
    pub(super) fn new(
        members: Arc<Members<O>>,
        crew: Option<Arc<Crew>>,
        layout: RingLayout,
    ) -> io::Result<Self> {
        let ring = Ring::new(members.payload_bytes)?;
        let outbox = Outbox::new()?;
        let memory = members.performer.session.view.wanted.bell()?;
        let placement = Placement::new(&layout, members.processors);
        let (handed_over, gone) = (0, 0);
        Ok(Self { members, crew, layout, placement, ring, outbox, memory, handed_over, gone })
    }

    /// Gives the kernel a slot for each queue.
    ///
    /// # Errors
    /// What the kernel says if it takes none, or not all.
    pub(super) fn register(&mut self, device: Arc<OwnedFd>) -> io::Result<()> {
        self.ring.watch(self.outbox.as_fd(), OUTBOX)?;
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

    /// Serves until the connection has ended and everything under way was finished.
    ///
    /// # Errors
    /// If the ring does not work any more; nobody serves its slots then.
    pub(super) fn serve(mut self) -> io::Result<()> {
        let mut events = Vec::new();
        while self.gone < self.ring.slots() {
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
                    self.gone += 1;
                }
                Event::Request(slot) => self.begin(slot)?,
                Event::Readable { number: MEMORY, watched } => {
                    // It was done before anything else, or will be when memory is wanted again.
                    let _ = rustix::io::read(&self.memory, &mut [0u8; 8]);
                    if !watched {
                        self.ring.watch(self.memory.as_fd(), MEMORY)?;
                    }
                }
                Event::Readable { watched, .. } => {
                    if !watched {
                        self.ring.watch(self.outbox.as_fd(), OUTBOX)?;
                    }
                    for slot in self.outbox.take() {
                        self.handed_over -= 1;
                        self.ring.commit(slot)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn begin(&mut self, slot: Slot) -> io::Result<()> {
        let queue = self.ring.closed_queue_of(&slot);
        let answer = Answer::new(slot, self.outbox.clone());
        // A panic is a bug of ours; the program that asked gets EIO by the answer that is dropped.
        let answered =
            catch_unwind(AssertUnwindSafe(|| self.answer(answer))).unwrap_or_else(|_| {
                log::error!("a request panicked");
                None
            });
        match answered.and_then(Answer::into_slot) {
            Some(slot) => self.ring.commit(slot),
            None => {
                self.handed_over += 1;
                match queue {
                    Some(queue) if self.ring.slots() < SLOTS_MAX => {
                        self.ring.add(queue)?;
                        nudge::queues(&self.members.performer.session.view, &[queue]);
                        Ok(())
                    }
                    _ => Ok(()),
                }
            }
        }
    }

    /// Answers a request, or hands it over.
    fn answer(&self, mut answer: Answer) -> Option<Answer> {
        let request = answer.slot().map(|slot| Request::parse(slot.head(), slot.payload().len()));
        let Some(Some(request)) = request else {
            log::error!("a request whose lengths contradict each other");
            answer.fill(Err(Errno::IO));
            return Some(answer);
        };
        let counters = &self.members.performer.session.view.counters;
        let work = match request.operation {
            Operation::Read(transfer) => match self.read(request.node, transfer, &mut answer) {
                None => return Some(answer),
                Some(work) => work,
            },
            Operation::Nudge => {
                counters.ring(Way::Nudged);
                answer.fill(Ok(&[]));
                return Some(answer);
            }
            // There is none that a file here has. Programs ask whether it is a terminal.
            Operation::Control => {
                answer.fill(Err(Errno::NOTTY));
                return Some(answer);
            }
            _ => Work::Request(request),
        };
        self.placement.something_else();
        let work = match work {
            Work::Read(read) => {
                let view = &self.members.performer.session.view;
                match view.complete_from_second_level(read, answer, answer_read) {
                    // A thread of the second level has it.
                    None => {
                        counters.ring(Way::Queued);
                        return None;
                    }
                    Some((read, back)) => {
                        answer = back;
                        Work::Read(read)
                    }
                }
            }
            other => other,
        };
        let may_wait = self.ring.is_closed() && self.handed_over == 0;
        let leave = self.crew.as_ref().filter(|_| may_wait).and_then(|crew| {
            crew.leave(|| {
                let device = self.ring.device();
                device.is_some_and(|device| enlist(&self.members, crew, &self.layout, device))
            })
        });
        if leave.is_some() {
            counters.ring(Way::Waited);
            self.members.performer.perform(work, &mut answer);
            return Some(answer);
        }
        counters.ring(Way::Queued);
        let members = self.members.clone();
        self.members.performer.session.view.workers.request(Box::new(move || {
            members.performer.perform(work, &mut answer);
            answer.send();
        }));
        None
    }

    /// Answers a read if that takes no waiting; returns what is left to be done otherwise.
    fn read(&self, node: u64, transfer: Transfer, answer: &mut Answer) -> Option<Work<O>> {
        let Transfer { handle, offset, length_bytes } = transfer;
        let session = &self.members.performer.session;
        if Numbers::is_control(node) {
            let bytes = session.control.read(handle, offset, length_bytes);
            answer.fill(bytes.as_deref().map_err(|errno| *errno));
            return None;
        }
        match session.view.begin_read(handle, offset, u64::from(length_bytes)) {
            Err(errno) => answer.fill(Err(errno)),
            Ok(read) if read.is_complete() => {
                session.view.counters.ring(Way::Answered);
                self.placement.answered();
                session.view.finish_read(&read, |bytes| answer.fill(Ok(bytes)));
            }
            Ok(read) => return Some(Work::Read(read)),
        }
        None
    }
}

/// Answers a read that another thread has completed.
fn answer_read<O: Origin>(
    view: &Arc<View<O>>,
    read: &Read<O>,
    completed: Result<()>,
    mut answer: Answer,
) {
    answer_completed(view, read, completed, &mut answer);
    answer.send();
}
