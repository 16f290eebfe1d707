//! The path of a request that is the same for the device and the rings.
//!
//! An [`Exchange`] is a request in its buffers, with the route of its answer. If the cache or the
//! control directory has the answer, it is given where the request arrived ([`Session::at_once`]).
//! Other requests may wait for the origin. The codec decides where, because it alone knows which of
//! its threads are free. The work itself is the same ([`Session::carry_out`]).

use super::Session;
use super::caller;
use super::in_flight::Pending;
use super::opcodes::Wait;
use super::operation::{Operation, Transfer};
use super::request::Request;
use crate::inode_number::ROOT;
use crate::view::{Read, Result, View};
use ogive_origin::{Errno, OFlags, Origin, on_behalf_of};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A request in its buffers, with the route of its answer. If it is dropped unanswered, it answers
/// `EIO`.
pub(super) trait Exchange: Send + 'static {
    /// The payload of the request, which the answer replaces. It has room for `answer_max_bytes` if
    /// the buffer can grow to that.
    fn buffer(&mut self, answer_max_bytes: usize) -> &mut [u8];

    /// The request is about to wait: from here on another thread may answer it.
    fn wait(&mut self, pending: Pending);

    /// Whether this thread may still answer. If not, this gives up.
    fn claim(&mut self) -> bool;

    /// Answers with this many bytes of the buffer, or with an error. Returns whether the kernel
    /// took the answer.
    fn finish(&mut self, result: Result<usize>) -> bool;

    /// Answers with bytes from elsewhere, in pieces.
    fn finish_with(&mut self, pieces: &[&[u8]]) -> bool;

    /// Another thread has answered.
    fn give_up(&mut self);

    /// Passes the answer to the thread that has to commit it, if any.
    fn send(self);
}

/// The rest of a request that cannot be answered where it arrived.
pub(super) enum Work<O: Origin> {
    /// A read with missing records.
    Read(Read<O>),
    /// A request that has not begun.
    Request,
}

impl<O: Origin> Session<O> {
    /// Answers a request that need not wait; returns the remaining work of any other.
    pub(super) fn at_once(
        &self,
        request: &Request,
        exchange: &mut impl Exchange,
    ) -> Option<Work<O>> {
        if let Operation::Read { from, flags } = request.operation {
            return self.read_at_once(request, (from, flags), exchange);
        }
        let may_wait = match request.rules.wait {
            Wait::Never | Wait::OneWay => false,
            Wait::Outside => !request.is_control(),
            Wait::Unknown => !self.is_known(request, exchange),
            Wait::Always => true,
        };
        if may_wait {
            return Some(Work::Request);
        }
        let result = self.try_perform(request, exchange);
        if request.rules.wait == Wait::OneWay {
            if let Err(errno) = result {
                log::debug!("cannot give references back: {errno}");
            }
            exchange.give_up();
        } else {
            exchange.finish(result);
        }
        None
    }

    /// Whether the answer to a request is known without the origin.
    fn is_known(&self, request: &Request, exchange: &mut impl Exchange) -> bool {
        let is_control = request.is_control();
        let payload = exchange.buffer(0).get(..request.payload_bytes).unwrap_or(&[]);
        let name = OsStr::from_bytes(payload.strip_suffix(b"\0").unwrap_or(payload));
        match request.operation {
            Operation::Lookup if request.node == ROOT => self.control.is_named(name),
            Operation::GetXattr { .. } if !is_control => {
                self.view.is_known_to_lack(request.node, name)
            }
            Operation::Open { .. } => is_control && !self.control.takes_time(request.node),
            Operation::Control => true,
            _ => is_control,
        }
    }

    fn read_at_once(
        &self,
        request: &Request,
        (from, flags): (Transfer, OFlags),
        exchange: &mut impl Exchange,
    ) -> Option<Work<O>> {
        let Transfer { handle, offset, length_bytes } = from;
        if request.is_control() {
            match self.control.read(handle, offset, length_bytes) {
                Ok(bytes) => exchange.finish_with(&[&bytes]),
                Err(errno) => exchange.finish(Err(errno)),
            };
            return None;
        }
        let past_pages = flags.contains(OFlags::DIRECT);
        match self.view.begin_read(handle, offset, u64::from(length_bytes), past_pages) {
            Err(errno) => {
                exchange.finish(Err(errno));
            }
            Ok(None) => return Some(Work::Request),
            Ok(Some(read)) if read.is_complete() => {
                self.view.finish_read(&read, |pieces| {
                    exchange.finish_with(pieces);
                });
            }
            Ok(Some(read)) => return Some(Work::Read(read)),
        }
        None
    }

    /// Carries out a request in flight, on a thread that may wait, and answers it unless another
    /// thread has.
    pub(super) fn carry_out(&self, request: &Request, work: Work<O>, exchange: &mut impl Exchange) {
        match work {
            Work::Read(read) => {
                let completed = self.guarded(|| self.view.complete_read(read));
                self.answer_read(completed, exchange);
            }
            Work::Request => {
                let result = self.try_perform(request, exchange);
                if !(exchange.claim() && exchange.finish(result))
                    && let Ok(length) = result
                {
                    // No thread waits for this result.
                    let _ = self.guarded(|| {
                        self.take_back(request, &exchange.buffer(0)[..length]);
                        Ok(())
                    });
                }
            }
        }
    }

    /// The same for a request that had to wait for a thread. If it was answered meanwhile, because
    /// its sender died or it took too long, it is dropped. A change that no program waits for must
    /// not be made long after.
    pub(super) fn carry_out_late(
        &self,
        request: &Request,
        work: Work<O>,
        exchange: &mut impl Exchange,
    ) {
        let may_be_dropped = matches!(work, Work::Request) && !request.ends_something();
        if may_be_dropped && !self.in_flight.is_waited_for(request.unique) {
            exchange.claim();
            return exchange.give_up();
        }
        self.carry_out(request, work, exchange);
    }

    /// Answers a completed read, unless another thread has.
    fn answer_read(&self, completed: Result<Read<O>>, exchange: &mut impl Exchange) {
        if !exchange.claim() {
            return;
        }
        match completed {
            Ok(read) => self.view.finish_read(&read, |pieces| {
                exchange.finish_with(pieces);
            }),
            Err(errno) => {
                exchange.finish(Err(errno));
            }
        }
    }

    /// Lets the thread that loads the missing records complete a read, if no thread need wait for
    /// them. Returns the read otherwise.
    pub(super) fn complete_elsewhere<E: Exchange>(
        self: &Arc<Self>,
        read: Read<O>,
        exchange: E,
    ) -> Option<(Read<O>, E)> {
        let session = self.clone();
        let done = move |_: &Arc<View<O>>, completed, mut exchange: E| {
            session.answer_read(completed, &mut exchange);
            exchange.send();
        };
        self.view.complete_elsewhere(read, exchange, done)
    }

    fn try_perform(&self, request: &Request, exchange: &mut impl Exchange) -> Result<usize> {
        let buffer = exchange.buffer(request.answer_max_bytes());
        let requester = caller::requester(request);
        // No other function carries out a request, so every operation of the source has a
        // requester.
        let perform = || on_behalf_of(requester, || self.perform(request, buffer));
        let result = self.guarded(perform);
        if result == Err(Errno::STALE) {
            self.view.met_stale(request.thread);
        }
        result
    }

    /// A panic is our bug; the program gets `EIO`.
    pub(super) fn guarded<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
            self.view.counters.panicked();
            log::error!("a request panicked, and its program got EIO");
            Err(Errno::IO)
        })
    }
}

#[cfg(not(panic = "unwind"))]
compile_error!("a panic must end one request and not the mount: build with panic = \"unwind\"");
