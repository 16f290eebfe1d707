//! The thread of a ring: takes requests, answers what the cache has, and passes on the rest.
//!
//! It never waits for anything but its ring. A read of cached records is answered where it
//! arrived: a copy into the payload buffer, and the next wait sends the answer and takes the next
//! request in one system call, however many there are. Reads that miss and all writes are finished
//! by the threads that wait for the origin ([`crate::workers`]), straight from and into the
//! buffers of their slot; everything else goes over the bridge.

use super::bridge::{self, ANSWER_MAX_BYTES, Bridge, LISTING_MAX_BYTES};
use super::outbox::{Answer, Done, Outbox, fill};
use super::protocol::{self, Operation, Request, Transfer};
use super::ring::{Event, Ring, Slot};
use crate::counters::Way;
use crate::number::Numbers;
use crate::session::Session;
use crate::view::{Read, View};
use hashbrown::HashMap;
use ogive_origin::{Errno, Origin};
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::SendFlags;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Numbers of what is watched beside slots.
const OUTBOX: u32 = 0;
const BRIDGE: u32 = 1;

/// One ring and what is under way in it.
pub(super) struct Server<O: Origin> {
    session: Session<O>,
    ring: Ring,
    bridge: Bridge,
    outbox: Arc<Outbox>,
    /// Slots whose requests the bridge has, by the number of the request.
    bridged: HashMap<u64, Slot>,
    /// Slots that are not gone.
    slots: usize,
    /// Where answers come in from the bridge.
    message: Box<[u8]>,
}

impl<O: Origin> Server<O> {
    pub(super) fn new(
        session: Session<O>,
        ring: Ring,
        bridge: Bridge,
        slots: usize,
    ) -> io::Result<Self> {
        Ok(Self {
            session,
            ring,
            bridge,
            outbox: Outbox::new()?,
            bridged: HashMap::new(),
            slots,
            message: vec![0; ANSWER_MAX_BYTES].into(),
        })
    }

    /// Gives the slots to the kernel.
    ///
    /// # Errors
    /// What the kernel says if it takes none, or not all.
    pub(super) fn register(&mut self, device: OwnedFd) -> io::Result<()> {
        self.ring.watch(self.outbox.as_fd(), OUTBOX)?;
        self.ring.watch(self.bridge.as_fd(), BRIDGE)?;
        self.ring.register(device)?;
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
    /// If the ring does not work any more; nobody serves its queues then.
    pub(super) fn serve(mut self) -> io::Result<()> {
        let mut events = Vec::new();
        while self.slots > 0 {
            self.ring.wait()?;
            self.ring.events(&mut events);
            self.take(&mut events)?;
        }
        self.bridge.close();
        Ok(())
    }

    /// Ends without having served.
    pub(super) fn abandon(self) {
        self.bridge.close();
    }

    fn take(&mut self, events: &mut Vec<Event>) -> io::Result<()> {
        for event in events.drain(..) {
            match event {
                Event::Gone(error) => {
                    log::debug!("a slot of a ring is gone: error {error}");
                    self.slots -= 1;
                }
                Event::Request(slot) => self.begin(slot)?,
                Event::Readable { number: OUTBOX, watched } => {
                    if !watched {
                        self.ring.watch(self.outbox.as_fd(), OUTBOX)?;
                    }
                    self.empty_outbox()?;
                }
                Event::Readable { watched, .. } => {
                    if !watched {
                        self.ring.watch(self.bridge.as_fd(), BRIDGE)?;
                    }
                    self.empty_bridge()?;
                }
            }
        }
        Ok(())
    }

    fn empty_outbox(&mut self) -> io::Result<()> {
        for done in self.outbox.take() {
            match done {
                Done::Answered(slot) => self.ring.commit(slot)?,
                Done::Unsent(unique, errno) => self.finish_bridged(unique, Err(errno))?,
            }
        }
        Ok(())
    }

    fn empty_bridge(&mut self) -> io::Result<()> {
        let mut message = std::mem::take(&mut self.message);
        while let Some(answer) = self.bridge.receive(&mut message)? {
            match protocol::parse_answer(answer) {
                Some((unique, result)) => {
                    let result = result.map_err(Errno::from_raw_os_error);
                    self.finish_bridged(unique, result)?;
                }
                None => log::error!("an answer that came over the bridge makes no sense"),
            }
        }
        self.message = message;
        Ok(())
    }

    fn finish_bridged(&mut self, unique: u64, result: Result<&[u8], Errno>) -> io::Result<()> {
        let Some(mut slot) = self.bridged.remove(&unique) else {
            log::debug!("an answer to request {unique}, which nobody waits for");
            return Ok(());
        };
        fill(&mut slot, result);
        self.ring.commit(slot)
    }

    fn begin(&mut self, slot: Slot) -> io::Result<()> {
        let request = Request::parse(slot.head(), slot.payload().len());
        let answer = Answer::new(slot, self.outbox.clone());
        // A panic is a bug of ours; the program that asked gets EIO by the answer that is dropped.
        let begun = catch_unwind(AssertUnwindSafe(|| match request {
            Some(Request { node, operation: Operation::Read(transfer), .. }) => {
                self.read(node, transfer, answer)
            }
            Some(Request { node, operation: Operation::Write(transfer), .. }) => {
                self.write(node, transfer, answer);
                None
            }
            Some(request) => answer.into_slot().and_then(|slot| self.pass_on(slot, request)),
            None => {
                log::error!("a request whose lengths contradict each other");
                None
            }
        }));
        match begun {
            Ok(Some(slot)) => self.ring.commit(slot),
            Ok(None) => Ok(()),
            Err(_) => {
                log::error!("a request panicked");
                Ok(())
            }
        }
    }

    /// Answers a read at once if the cache can: returns the slot then.
    fn read(&self, node: u64, transfer: Transfer, mut answer: Answer) -> Option<Slot> {
        let Transfer { handle, offset, length_bytes } = transfer;
        let view = &self.session.view;
        if Numbers::is_control(node) {
            let bytes = self.session.control.read(handle, offset, length_bytes);
            answer.fill(bytes.as_deref().map_err(|errno| *errno));
            return answer.into_slot();
        }
        match view.begin_read(handle, offset, u64::from(length_bytes)) {
            Err(errno) => answer.fill(Err(errno)),
            Ok(read) if read.is_complete() => {
                view.counters.ring(Way::Answered);
                view.finish_read(&read, |bytes| answer.fill(Ok(bytes)));
            }
            Ok(read) => {
                view.counters.ring(Way::Queued);
                let left = view.complete_from_second_level(read, answer, answer_read);
                let (mut read, answer) = left?;
                let waiting = view.clone();
                view.workers.request(Box::new(move || {
                    let completed = waiting.complete_read(&mut read);
                    answer_read(&waiting, &read, completed, answer);
                }));
                return None;
            }
        }
        answer.into_slot()
    }

    fn write(&self, node: u64, transfer: Transfer, mut answer: Answer) {
        let Transfer { handle, offset, length_bytes } = transfer;
        self.session.view.counters.ring(Way::Queued);
        let (view, control) = (self.session.view.clone(), self.session.control.clone());
        self.session.view.workers.request(Box::new(move || {
            let bytes = answer.payload(length_bytes as usize);
            let written = if Numbers::is_control(node) {
                control.write(handle, bytes)
            } else {
                view.write(handle, offset, bytes)
            };
            match written {
                // Never more than was asked for, which the kernel counts in 32 bits.
                Ok(written) => answer.fill(Ok(&protocol::written(written as u32))),
                Err(errno) => answer.fill(Err(errno)),
            }
            answer.send();
        }));
    }

    /// Hands a request to the session behind the bridge; returns the slot if it must be answered
    /// with an error instead.
    fn pass_on(&mut self, mut slot: Slot, request: Request) -> Option<Slot> {
        self.session.view.counters.ring(Way::Bridged);
        if request.operation == Operation::List {
            protocol::limit_listing(slot.head_mut(), LISTING_MAX_BYTES);
        }
        let [header, arguments] = request.pieces(slot.head());
        let pieces = [header, arguments, &slot.payload()[..request.payload_bytes]];
        let unique = request.unique;
        match self.bridge.try_send(&pieces) {
            Ok(true) => {}
            Ok(false) => {
                let (message, outbox) = (pieces.concat(), self.outbox.clone());
                let socket = self.bridge.socket();
                self.session.view.workers.request(Box::new(move || {
                    let sent = socket.map_err(|_| Errno::NFILE).and_then(|socket| {
                        bridge::send(socket.as_fd(), &[&message], SendFlags::empty())
                    });
                    if let Err(errno) = sent {
                        outbox.push(Done::Unsent(unique, errno));
                    }
                }));
            }
            Err(errno) => {
                log::error!("cannot pass a request on: {errno}");
                fill(&mut slot, Err(Errno::IO));
                return Some(slot);
            }
        }
        self.bridged.insert(unique, slot);
        None
    }
}

fn answer_read<O: Origin>(
    view: &Arc<View<O>>,
    read: &Read<O>,
    completed: Result<(), Errno>,
    mut answer: Answer,
) {
    match completed {
        Ok(()) => view.finish_read(read, |bytes| answer.fill(Ok(bytes))),
        Err(errno) => answer.fill(Err(errno)),
    }
    answer.send();
}
