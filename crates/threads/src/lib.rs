//! Threads that are started when there is work for them, and sleep when there is none.
//!
//! A [`Pool`] is up to so many threads of one name and a queue. What a queue is, and how much a
//! thread takes out of it at once, is the owner's to say ([`Queue`]): one job, the urgent before
//! the others, or a batch for one device. What is the same for all is here: when a thread is
//! started, who is woken, what happens to a panic, and how long the end is waited for.
//!
//! # Invariants
//!
//! A thread that finds nothing waits on a condition variable, without a timeout: no work, no
//! wake-up. A push wakes one thread at most. What is queued is run by some thread, also after the
//! end was asked for, unless the owner takes it back ([`Pool::take_back`], [`Pool::stop`]).
//!
//! # Locks
//!
//! One a pool, over the queue. It is a leaf: neither a job nor the owner's own code runs under it,
//! but for the short functions that put something into the queue or take it out.

mod alive;

pub use alive::{Alive, Present};

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What waits for a thread.
pub trait Queue: Default + Send + 'static {
    /// What a thread does before it looks again: a job, or several.
    type Work;

    /// How many jobs wait.
    fn waiting(&self) -> usize;

    /// Takes work out, if there is any. `idle` threads have nothing to do, and should have their
    /// share.
    fn take(&mut self, idle: usize) -> Option<Self::Work>;
}

/// What a thread does with its work. Each thread has one, so it may keep buffers.
pub type Worker<W> = Box<dyn FnMut(W)>;

/// Up to so many threads, and their queue.
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

/// What became of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Pushed {
    /// A thread will come for it.
    Queued,
    /// The pool has been stopped, or there was no room.
    Refused,
    /// It is queued, but there is no thread and none can be started: see [`Pool::take_back`].
    NoThread,
}

impl<Q: Queue> Pool<Q> {
    /// Up to `threads_max` threads of this name, one at least. Each calls `worker` once.
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

    /// Calls a function on the thread that starts another, just before: a new thread inherits some
    /// of its state.
    #[must_use]
    pub fn before_start(self, before_start: fn()) -> Self {
        Self { before_start, ..self }
    }

    /// Puts work into the queue, by a function that says whether there was room for it. The
    /// function is not called once the pool has been stopped.
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

    /// Takes everything out of the queue, for whoever can do without threads.
    #[must_use]
    pub fn take_back(&self) -> Q {
        std::mem::take(&mut self.shared.state.lock().queue)
    }

    /// Ends the threads once the queue is empty. `drop_from` may first take out what nobody waits
    /// for any more. Waits for no longer than `patience`, and returns how many have not ended.
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

    /// How many threads there are.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.shared.state.lock().threads
    }

    /// How often a thread that slept was woken.
    #[must_use]
    pub fn wakeups(&self) -> u64 {
        self.shared.wakeups.load(Ordering::Relaxed)
    }

    /// How many jobs have panicked.
    #[must_use]
    pub fn panics(&self) -> u64 {
        self.shared.panics.load(Ordering::Relaxed)
    }
}

impl<Q: Queue> Shared<Q> {
    fn run(&self) {
        let mut worker = (self.worker)();
        while let Some(work) = self.take() {
            // A panic is a bug of ours. Whoever waits for an answer finds its sender dropped.
            if catch_unwind(AssertUnwindSafe(|| worker(work))).is_err() {
                self.panics.fetch_add(1, Ordering::Relaxed);
                log::error!("a job of a thread called {} panicked", self.name);
                worker = (self.worker)();
            }
        }
    }

    /// Work, once there is any; `None` at the end.
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
