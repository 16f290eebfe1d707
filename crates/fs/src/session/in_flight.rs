//! Requests that may wait for the origin, and which side answers them.
//!
//! Each has one entry here, and its answer is claimed exactly once. Its own work claims it, or
//! another thread that answers instead because the work takes too long. The work keeps its claim
//! next to its reply route ([`Pending`]), so a panic ends both. After such an answer the work
//! continues, because a call of the origin cannot be cancelled. Its result is then taken back
//! ([`Session::take_back`](super::Session::take_back)).
//!
//! An answer is claimed by:
//!
//! - the work, when it is done: the result
//! - an interrupt, when the waiting thread is dying: `EINTR`
//! - the watch, in the same case, if no interrupt came or it came before the killing signal:
//!   `EINTR`
//! - the watch, after `--origin-timeout`: `EIO`
//! - the watch, for attributes of the root that do not come quickly: the last known ones
//!
//! The kernel sends one interrupt per request, whatever the signal was. Over io_uring it sends none
//! before the request has reached a slot (`fuse_uring_prepare_send` of `fs/fuse/dev_uring.c`). So
//! the watch, a thread of its own, checks every [`TICK`] the requests that wait longer than that.
//! It sleeps without a timeout while no request waits.
//!
//! Locks: those of the shards and of the watch are leaves. No request is answered under a lock.

use super::caller::{self, Fate};
use super::operation::Operation;
use super::reply::Reply;
use super::request::Request;
use crate::inode_number::ROOT;
use crate::view::NodeAttributes;
use hashbrown::HashMap;
use ogive_origin::Errno;
use parking_lot::{Condvar, Mutex};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The interval of the watch's checks, and the delay of the first.
const TICK: Duration = Duration::from_millis(500);
const SHARDS: usize = 16;

/// The route of an answer that another thread gives.
pub(super) trait ReplyRoute: Send + 'static {
    /// Answers a request of this number, with bytes or an error.
    fn answer(self: Box<Self>, unique: u64, result: Result<&[u8], Errno>);
}

/// The claim of a request's work to its answer.
pub(super) struct Pending {
    in_flight: Arc<InFlight>,
    unique: u64,
}

impl Pending {
    /// The work has an answer or has failed. Returns whether it may answer.
    pub(super) fn claim(self) -> bool {
        self.in_flight.end(self.unique)
    }
}

/// All requests that wait.
pub(crate) struct InFlight {
    shards: [Mutex<HashMap<u64, Waiting>>; SHARDS],
    watch: Mutex<Watch>,
    wake: Condvar,
    /// The watch sleeps until a request waits.
    is_parked: AtomicBool,
    /// A request has waited for longer than a moment.
    is_hanging: AtomicBool,
    timeout: Option<Duration>,
    /// The root's attributes of the latest reply.
    root: Mutex<Option<NodeAttributes>>,
}

#[derive(Default)]
struct Watch {
    has_ended: bool,
}

struct Waiting {
    since: Instant,
    /// The waiting thread.
    thread: u32,
    interrupted: bool,
    is_root_asked_for: bool,
    /// `None` once the answer is claimed. The work continues, and its result is dropped.
    back: Option<Box<dyn ReplyRoute>>,
}

/// Why another thread answers a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerReason {
    Interrupted,
    TimedOut,
    Root,
}

impl InFlight {
    /// With a `timeout`, if any, after which a request gets `EIO`.
    pub(crate) fn new(timeout: Option<Duration>) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            watch: Mutex::default(),
            wake: Condvar::new(),
            is_parked: AtomicBool::new(true),
            is_hanging: AtomicBool::new(false),
            timeout,
            root: Mutex::default(),
        }
    }

    fn shard(&self, unique: u64) -> &Mutex<HashMap<u64, Waiting>> {
        // The kernel counts by twos.
        &self.shards[(unique / 2) as usize % SHARDS]
    }

    /// A request is about to wait. Its work must claim its answer.
    #[must_use]
    pub(super) fn begin(self: &Arc<Self>, request: &Request, back: Box<dyn ReplyRoute>) -> Pending {
        let waiting = Waiting {
            since: Instant::now(),
            thread: request.thread,
            interrupted: false,
            is_root_asked_for: request.node == ROOT
                && matches!(request.operation, Operation::Attributes { .. }),
            back: Some(back),
        };
        self.shard(request.unique).lock().insert(request.unique, waiting);
        if self.is_parked.load(Ordering::Relaxed) && self.is_parked.swap(false, Ordering::AcqRel) {
            let _watch = self.watch.lock();
            self.wake.notify_one();
        }
        // A dying thread need not wait for the next check.
        if self.is_hanging.load(Ordering::Relaxed) && caller::fate(request.thread) == Fate::Dying {
            self.answer_instead(request.unique, AnswerReason::Interrupted);
        }
        Pending { in_flight: self.clone(), unique: request.unique }
    }

    /// The work for a request has ended. Returns whether it may answer.
    pub(super) fn end(&self, unique: u64) -> bool {
        self.shard(unique).lock().remove(&unique).is_some_and(|waiting| waiting.back.is_some())
    }

    /// Whether a request in flight still has to be answered.
    pub(super) fn is_waited_for(&self, unique: u64) -> bool {
        self.shard(unique).lock().get(&unique).is_some_and(|waiting| waiting.back.is_some())
    }

    /// The thread that waits for a request has got a signal.
    pub(super) fn interrupt(&self, unique: u64) {
        let thread = {
            let mut shard = self.shard(unique).lock();
            // The request was answered, or is about to be, where it arrived.
            let Some(waiting) = shard.get_mut(&unique) else { return };
            waiting.interrupted = true;
            waiting.thread
        };
        if caller::fate(thread) == Fate::Dying {
            self.answer_instead(unique, AnswerReason::Interrupted);
        }
    }

    /// Notes the root's attributes of a reply.
    pub(super) fn remember_root(&self, known: &NodeAttributes) {
        *self.root.lock() = Some(*known);
    }

    /// Whether a request has been waiting since this time.
    pub(crate) fn waits_since(&self, time: Instant) -> bool {
        self.shards.iter().any(|shard| shard.lock().values().any(|one| one.since <= time))
    }

    fn answer_instead(&self, unique: u64, why: AnswerReason) {
        let claimed = self.shard(unique).lock().get_mut(&unique).and_then(|w| w.back.take());
        let Some(back) = claimed else { return };
        let mut bytes = [0; 128];
        match why {
            AnswerReason::Interrupted => back.answer(unique, Err(Errno::INTR)),
            AnswerReason::TimedOut => back.answer(unique, Err(Errno::IO)),
            AnswerReason::Root => {
                let known = *self.root.lock();
                let length = known.map(|known| {
                    let mut reply = Reply::new(&mut bytes);
                    reply.attributes(Duration::ZERO, &known);
                    reply.length()
                });
                back.answer(unique, length.map(|length| &bytes[..length]).ok_or(Errno::IO));
            }
        }
    }

    /// Checks the waiting requests until [`InFlight::stop`], on a thread of its own. At each check
    /// it also calls `look_after`, as long as that returns that more is to do. Only a request in
    /// flight may start such work, because it wakes the watch. A panic of either is reported to
    /// `panicked`, and the watch continues.
    pub(super) fn watch(&self, look_after: impl Fn() -> bool, panicked: impl Fn()) {
        let mut watch = self.watch.lock();
        while !watch.has_ended {
            if self.is_parked.load(Ordering::Acquire) {
                self.wake.wait(&mut watch);
                continue;
            }
            self.wake.wait_for(&mut watch, TICK);
            drop(watch);
            let look = || {
                self.look(Instant::now());
                // Called even when the watch parks: later work wakes it.
                look_after()
            };
            let goes_on = catch_unwind(AssertUnwindSafe(look));
            if goes_on.is_err() {
                panicked();
            }
            if goes_on.unwrap_or(true) {
                self.is_parked.store(false, Ordering::Release);
            }
            watch = self.watch.lock();
        }
    }

    /// Ends the watch.
    pub(crate) fn stop(&self) {
        self.watch.lock().has_ended = true;
        self.wake.notify_all();
    }

    fn look(&self, now: Instant) {
        let mut is_empty = true;
        let mut is_hanging = false;
        let mut late = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock();
            is_empty &= shard.is_empty();
            for (unique, waiting) in shard.iter() {
                let age = now.saturating_duration_since(waiting.since);
                is_hanging |= age >= TICK;
                if age >= TICK && waiting.back.is_some() {
                    let Waiting { thread, interrupted, is_root_asked_for, .. } = *waiting;
                    late.push((*unique, age, thread, interrupted, is_root_asked_for));
                }
            }
        }
        self.is_hanging.store(is_hanging, Ordering::Relaxed);
        if is_empty {
            self.is_parked.store(true, Ordering::Release);
            // A request that began just before sends no wake-up.
            if self.shards.iter().any(|shard| !shard.lock().is_empty()) {
                self.is_parked.store(false, Ordering::Release);
            }
        }
        let has_root = self.root.lock().is_some();
        for (unique, age, thread, interrupted, is_root_asked_for) in late {
            let is_over = || match caller::fate(thread) {
                Fate::Dying => true,
                Fate::Unknown => interrupted,
                Fate::Living => false,
            };
            if is_root_asked_for && has_root {
                self.answer_instead(unique, AnswerReason::Root);
            } else if is_over() {
                self.answer_instead(unique, AnswerReason::Interrupted);
            } else if self.timeout.is_some_and(|timeout| age >= timeout) {
                self.answer_instead(unique, AnswerReason::TimedOut);
            }
        }
    }
}

#[cfg(test)]
mod tests;
