//! Requests by the device, `/dev/fuse`: one read(2) brings one request, one writev(2) answers it.
//!
//! Each thread has a descriptor of its own, so the kernel need not serialize the threads. A read of
//! cached records is answered where it arrived. A request that has to ask the origin is too, while
//! enough threads are free. Otherwise another thread carries it out ([`crate::workers`]).
//!
//! When the connection ends, every reading thread gets an error. Threads that wait for the origin
//! may never return, so the end of the mount waits for them at most [`PATIENCE`].

#![allow(unsafe_code)]

use super::Session;
use super::exchange::{Exchange, Work};
use super::in_flight::{Pending, ReplyRoute};
use super::negotiation::{self, Agreed, REQUEST_MAX_BYTES};
use super::operation::Operation;
use super::protocol::{ANSWER_HEADER_BYTES, answer_header, error_number};
use super::request::Request;
use crate::view::Result;
use ogive_origin::{Errno, Origin};
use ogive_threads::Alive;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags};
use smallvec::SmallVec;
use std::io::{self, IoSlice};
use std::sync::{Arc, mpsc};
use std::time::Duration;

pub(crate) const PATH: &str = "/dev/fuse";

/// How long the end of a mount waits for threads that wait for the origin.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
/// Parts of an answer that need no allocation: its header, and 1 MiB in records of 128 KiB.
const PARTS: usize = 10;
/// Room for a request's header and fixed arguments.
const HEAD_MAX_BYTES: usize = 4096;

/// Threads that serve a connection.
pub(crate) struct Threads {
    ended: mpsc::Receiver<io::Result<()>>,
    alive: Alive,
}

impl Threads {
    /// Starts a number of threads that answer the requests of a connection.
    ///
    /// # Errors
    /// If a thread or descriptor could not be created. Some threads may be running then, and end
    /// with the connection.
    pub(crate) fn start<O: Origin>(
        session: &Arc<Session<O>>,
        device: &Arc<OwnedFd>,
        agreed: Agreed,
        threads: usize,
    ) -> io::Result<Self> {
        let (report, ended) = mpsc::channel();
        let alive = Alive::default();
        let watching = session.in_flight.clone();
        let view = Arc::downgrade(&session.view);
        spawn("fuse_watch".into(), move || {
            let look_after = || view.upgrade().is_some_and(|view| view.drop_old_names());
            let panicked = || {
                log::error!("the watch over waiting requests panicked, and continues");
                if let Some(view) = view.upgrade() {
                    view.counters.panicked();
                }
            };
            watching.watch(look_after, panicked);
        })?;
        for number in 0..threads {
            let device = if number == 0 { device.clone() } else { Arc::new(duplicate(device)?) };
            let server = Server { session: session.clone(), device, agreed };
            let (report, present) = (report.clone(), alive.enter());
            spawn(format!("fuse-{number}"), move || {
                let ended = server.serve();
                drop(server);
                let _ = report.send(ended);
                drop(present);
            })?;
        }
        Ok(Self { ended, alive })
    }

    /// Waits until the connection has ended, and then for the threads, up to [`PATIENCE`]. Returns
    /// how many of them still wait for the origin.
    ///
    /// # Errors
    /// If a thread cannot read requests any more; then no request is answered.
    pub(crate) fn join(self) -> io::Result<usize> {
        let mut result = self.ended.recv().unwrap_or(Ok(()));
        let left = self.alive.wait(PATIENCE);
        for ended in self.ended.try_iter() {
            result = result.and(ended);
        }
        result.map(|()| left)
    }
}

fn spawn(name: String, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name).spawn(work).map(drop)
}

/// Opens the device.
pub(crate) fn open() -> std::result::Result<OwnedFd, Errno> {
    rustix::fs::openat(CWD, PATH, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
}

/// One more descriptor for a connection, with a queue of its own.
fn duplicate(device: &OwnedFd) -> io::Result<OwnedFd> {
    /// `FUSE_DEV_IOC_CLONE`.
    const CLONE: rustix::ioctl::Opcode = rustix::ioctl::opcode::read::<u32>(229, 0);
    let new = open()?;
    let mut number = device.as_raw_fd() as u32;
    // SAFETY: the operation reads a 32-bit number, the number of a device descriptor
    // (`fuse_dev_ioctl_clone` of the kernel's `fs/fuse/dev.c`). That descriptor is open during the
    // call.
    unsafe {
        let clone = rustix::ioctl::Updater::<CLONE, u32>::new(&mut number);
        rustix::ioctl::ioctl(&new, clone)?;
    }
    Ok(new)
}

/// One thread.
pub(super) struct Server<O: Origin> {
    pub(super) session: Arc<Session<O>>,
    pub(super) device: Arc<OwnedFd>,
    pub(super) agreed: Agreed,
}

impl<O: Origin> Server<O> {
    fn serve(&self) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(HEAD_MAX_BYTES + REQUEST_MAX_BYTES as usize);
        loop {
            bytes.clear();
            match rustix::io::read(&self.device, rustix::buffer::spare_capacity(&mut bytes)) {
                Ok(_) => {}
                // A signal, or the kernel took the request back before the copy.
                Err(Errno::INTR | Errno::AGAIN | Errno::NOENT) => continue,
                Err(Errno::NODEV | Errno::CONNABORTED) => return Ok(()),
                Err(errno) => return Err(errno.into()),
            }
            bytes = self
                .handle(bytes)
                .unwrap_or_else(|| Vec::with_capacity(HEAD_MAX_BYTES + REQUEST_MAX_BYTES as usize));
        }
    }

    /// Answers a request or hands it over, and returns the buffer. After a panic there is no
    /// buffer: the dropped answer has sent `EIO`.
    pub(super) fn handle(&self, bytes: Vec<u8>) -> Option<Vec<u8>> {
        self.session.guarded(|| Ok(self.answer(bytes))).ok().flatten()
    }

    fn answer(&self, bytes: Vec<u8>) -> Option<Vec<u8>> {
        let Some((request, payload_at)) = negotiation::parse(self.agreed, &bytes) else {
            log::error!("a request whose lengths contradict each other");
            return Some(bytes);
        };
        if let Operation::Interrupt { unique } = request.operation {
            self.session.in_flight.interrupt(unique);
            return Some(bytes);
        }
        let mut answer = Answer {
            device: self.device.clone(),
            unique: request.unique,
            bytes,
            payload_at,
            is_due: true,
            pending: None,
        };
        match self.session.at_once(&request, &mut answer) {
            Some(work) => self.wait(request, work, answer),
            None => Some(answer.into_bytes()),
        }
    }

    /// Lets a request wait for the origin, on this thread or another.
    fn wait(&self, request: Request, work: Work<O>, mut answer: Answer) -> Option<Vec<u8>> {
        let session = &self.session;
        answer.wait(session.in_flight.begin(&request, Box::new(LateReply(self.device.clone()))));
        let work = match work {
            Work::Read(read) => {
                // A waiting read needs no buffer, so this thread keeps its own.
                let own_bytes = std::mem::take(&mut answer.bytes);
                match session.complete_elsewhere(read, answer) {
                    None => return Some(own_bytes),
                    Some((read, back)) => {
                        answer = back;
                        answer.bytes = own_bytes;
                        Work::Read(read)
                    }
                }
            }
            work => work,
        };
        if let Some(_permit) = session.permits.try_take() {
            session.carry_out(&request, work, &mut answer);
            return Some(answer.into_bytes());
        }
        let (mut answer, own_bytes) = answer.detach();
        let (session, view) = (session.clone(), &session.view);
        view.workers.request(Box::new(move || {
            session.carry_out_late(&request, work, &mut answer);
            answer.send();
        }));
        Some(own_bytes)
    }
}

/// A request in the buffer it was read to, and the descriptor for its answer.
struct Answer {
    device: Arc<OwnedFd>,
    unique: u64,
    bytes: Vec<u8>,
    payload_at: usize,
    /// The answer is still to be sent.
    is_due: bool,
    /// Its entry in flight.
    pending: Option<Pending>,
}

impl Answer {
    /// Gives the thread's large buffer back, and continues with one just large enough.
    fn detach(mut self) -> (Self, Vec<u8>) {
        let own = self.bytes.clone();
        let own_bytes = std::mem::replace(&mut self.bytes, own);
        (self, own_bytes)
    }

    fn into_bytes(mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}

impl Exchange for Answer {
    fn buffer(&mut self, answer_max_bytes: usize) -> &mut [u8] {
        let needed = self.payload_at + answer_max_bytes.min(REQUEST_MAX_BYTES as usize);
        if self.bytes.len() < needed {
            self.bytes.resize(needed, 0);
        }
        &mut self.bytes[self.payload_at..]
    }

    fn wait(&mut self, pending: Pending) {
        self.pending = Some(pending);
    }

    fn claim(&mut self) -> bool {
        self.is_due &= self.pending.take().is_none_or(Pending::claim);
        self.is_due
    }

    fn finish(&mut self, result: Result<usize>) -> bool {
        self.is_due = false;
        let length = match result {
            Ok(length) => length,
            Err(errno) => return send(&self.device, self.unique, Err(errno)),
        };
        // The request's header, which is longer, leaves room for the answer's. One piece is best:
        // the kernel looks up the pages of each piece.
        let (start, end) = (self.payload_at - ANSWER_HEADER_BYTES, self.payload_at + length);
        let header = answer_header(self.unique, Ok(length as u32));
        self.bytes[start..self.payload_at].copy_from_slice(&header);
        is_taken(rustix::io::write(&self.device, &self.bytes[start..end]))
    }

    fn finish_with(&mut self, pieces: &[&[u8]]) -> bool {
        self.is_due = false;
        send(&self.device, self.unique, Ok(pieces))
    }

    fn give_up(&mut self) {
        self.is_due = false;
    }

    fn send(self) {}
}

impl Drop for Answer {
    fn drop(&mut self) {
        if self.claim() {
            send(&self.device, self.unique, Err(Errno::IO));
        }
    }
}

/// The route of an answer that another thread gives.
struct LateReply(Arc<OwnedFd>);

impl ReplyRoute for LateReply {
    fn answer(self: Box<Self>, unique: u64, result: Result<&[u8]>) {
        match result {
            Ok(bytes) => send(&self.0, unique, Ok(&[bytes])),
            Err(errno) => send(&self.0, unique, Err(errno)),
        };
    }
}

/// Writes an answer; returns whether the kernel took it. It goes through the descriptor that the
/// request was read from, because the kernel keeps waiting requests by descriptor.
fn send(device: &OwnedFd, unique: u64, result: Result<&[&[u8]]>) -> bool {
    let length = |pieces: &[&[u8]]| pieces.iter().map(|bytes| bytes.len() as u32).sum();
    let header = answer_header(unique, result.map(length).map_err(error_number));
    // A request has at most 1 MiB and a record at least 4 KiB, so the parts stay far below the
    // kernel's limit.
    let mut parts = SmallVec::<[_; PARTS]>::new();
    parts.push(IoSlice::new(&header));
    parts.extend(result.unwrap_or(&[]).iter().map(|bytes| IoSlice::new(bytes)));
    is_taken(rustix::io::writev(device, &parts))
}

/// Whether the kernel took the written answer.
fn is_taken(written: rustix::io::Result<usize>) -> bool {
    match written {
        Ok(_) => true,
        // The waiting thread was interrupted, or the connection has ended.
        Err(Errno::NOENT | Errno::NODEV) => false,
        Err(errno) => {
            log::error!("cannot answer a request: {errno}");
            false
        }
    }
}

#[cfg(test)]
mod tests;
