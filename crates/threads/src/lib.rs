//! Threads that are started on demand and sleep without work.
//!
//! A [`Pool`] is a bounded number of threads with one name, and a queue. The owner defines the
//! queue and how much a thread takes at once ([`Queue`]): one job, urgent jobs first, or a batch
//! for one device. The pool decides when to start a thread and which one to wake. It handles panics
//! and limits the wait for the end.
//!
//! # Invariants
//!
//! An idle thread waits on a condition variable without a timeout: without work there is no
//! wake-up. A push wakes at most one thread. Queued jobs are run, even after a stop, unless the
//! owner takes them back ([`Pool::take_back`], [`Pool::stop`]).
//!
//! # Locks
//!
//! Each pool has one lock, over its queue. It is a leaf: no job runs under it. Of the owner's code,
//! only the short functions that fill and empty the queue do.

mod alive;

pub use alive::{Alive, Present};

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A queue of jobs.
pub trait Queue: Default + Send + 'static {
    /// The unit that a thread takes at once: a job, or several.
    type Work;

    /// The number of waiting jobs.
    fn waiting(&self) -> usize;

    /// Takes work out of the queue. `idle` threads have no work and should get their share.
    fn take(&mut self, idle: usize) -> Option<Self::Work>;
}

/// The function that runs work. Each thread has its own, which may keep buffers.
pub type Worker<W> = Box<dyn FnMut(W)>;

/// A bounded number of threads, and their queue.
pub struct Pool<Q: Queue> {
    shared: Arc<Shared<Q>>,
    alive: Alive,
    before_start: fn(),
}

struct Shared<Q: Queue> {
    name: &'static str,
    threads_max: usize,
    worker: Box<dyn Fn() -> Worker<Q::Work> + Send + Sync>,
    state: Mutex<State<Q>>,
    wake: Condvar,
    wakeups: AtomicU64,
    panics: AtomicU64,
}

#[derive(Default)]
struct State<Q> {
    queue: Q,
    idle: usize,
    threads: usize,
    stopped: bool,
}

/// The result of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Pushed {
    /// The job is queued, and a thread will run it.
    Queued,
    /// The pool is stopped, or the queue is full.
    Refused,
    /// The job is queued, but no thread exists or can be started: see [`Pool::take_back`].
    NoThread,
}

impl<Q: Queue> Pool<Q> {
    /// A pool of up to `threads_max` threads with this name, at least one. Each calls `worker`
    /// once.
    pub fn new(
        name: &'static str,
        threads_max: usize,
        worker: impl Fn() -> Worker<Q::Work> + Send + Sync + 'static,
    ) -> Self {
        let shared = Shared {
            name,
            threads_max: threads_max.max(1),
            worker: Box::new(worker),
            state: Mutex::default(),
            wake: Condvar::new(),
            wakeups: AtomicU64::new(0),
            panics: AtomicU64::new(0),
        };
        Self { shared: Arc::new(shared), alive: Alive::default(), before_start: || {} }
    }

    /// Calls a function on the starting thread just before it starts another, because a new thread
    /// inherits some of its state.
    #[must_use]
    pub fn before_start(self, before_start: fn()) -> Self {
        Self { before_start, ..self }
    }

    /// Puts work into the queue with a function that returns whether it had room. The function is
    /// not called after a stop.
    pub fn push(&self, put: impl FnOnce(&mut Q) -> bool) -> Pushed {
        let mut state = self.shared.state.lock();
        if state.stopped || !put(&mut state.queue) {
            return Pushed::Refused;
        }
        if state.idle >= state.queue.waiting() || state.threads >= self.shared.threads_max {
            drop(state);
            self.shared.wake.notify_one();
            return Pushed::Queued;
        }
        self.start(state)
    }

    fn start(&self, mut state: MutexGuard<'_, State<Q>>) -> Pushed {
        state.threads += 1;
        drop(state);
        (self.before_start)();
        let (shared, present) = (self.shared.clone(), self.alive.enter());
        let started = std::thread::Builder::new().name(shared.name.into()).spawn(move || {
            shared.run();
            drop(present);
        });
        let Err(error) = started else { return Pushed::Queued };
        log::warn!("cannot start another thread ({}): {error}", self.shared.name);
        let mut state = self.shared.state.lock();
        state.threads -= 1;
        if state.threads == 0 { Pushed::NoThread } else { Pushed::Queued }
    }

    /// Takes all jobs out of the queue, for a caller that can run them itself.
    #[must_use]
    pub fn take_back(&self) -> Q {
        std::mem::take(&mut self.shared.state.lock().queue)
    }

    /// Ends the threads once the queue is empty. `drop_from` may first remove jobs that have no
    /// waiter any more. Waits at most for `patience`, and returns how many threads have not ended.
    pub fn stop<T>(&self, patience: Duration, drop_from: impl FnOnce(&mut Q) -> T) -> usize {
        let dropped = {
            let mut state = self.shared.state.lock();
            state.stopped = true;
            drop_from(&mut state.queue)
        };
        drop(dropped);
        self.shared.wake.notify_all();
        self.alive.wait(patience)
    }

    /// The number of threads.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.shared.state.lock().threads
    }

    /// How often a sleeping thread was woken.
    #[must_use]
    pub fn wakeups(&self) -> u64 {
        self.shared.wakeups.load(Ordering::Relaxed)
    }

    /// The number of jobs that panicked.
    #[must_use]
    pub fn panics(&self) -> u64 {
        self.shared.panics.load(Ordering::Relaxed)
    }
}

impl<Q: Queue> Shared<Q> {
    fn run(&self) {
        let mut worker = (self.worker)();
        while let Some(work) = self.take() {
            // A panic is a bug in ogive. A caller that waits for the result finds its sender
            // dropped.
            if catch_unwind(AssertUnwindSafe(|| worker(work))).is_err() {
                self.panics.fetch_add(1, Ordering::Relaxed);
                log::error!("a job of a thread called {} panicked", self.name);
                worker = (self.worker)();
            }
        }
    }

    /// Waits for work; `None` after a stop.
    fn take(&self) -> Option<Q::Work> {
        let mut state = self.state.lock();
        loop {
            let idle = state.idle;
            if let Some(work) = state.queue.take(idle) {
                return Some(work);
            }
            if state.stopped {
                state.threads -= 1;
                return None;
            }
            state.idle += 1;
            self.wake.wait(&mut state);
            state.idle -= 1;
            self.wakeups.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
