//! Threads that wait for the origin, so that those who serve hits need not.
//!
//! A request that has to ask the origin does so on the session thread that received it while
//! another session thread is free: handing over costs two context switches. When all of them but
//! one are out at the origin, further requests are queued for *request threads*, and
//! hits are still answered however slow the origin is.
//!
//! Loads that are claimed ahead of time, prefetch above all, are run by *load threads*. A request
//! may wait for such a load; a load waits for nobody but the origin. Were they to share threads,
//! all of them could come to wait for loads that no thread is left to run. Prefetch stands behind
//! every demanded load and is dropped when its queue is full.
//!
//! What the second level is likely to have is read by threads of that name, and always by them: its
//! device is slow enough for a hand-over not to matter, and people see whose CPU time unsealing is.
//! There, too, requests and loads have threads of their own. They never wait for the origin; what
//! they do not find they queue for those who do.
//!
//! Threads are started when there is work for them, wait on a condition variable, and make no
//! wake-ups while there is nothing to do. The lock guards two queues and is not held while a job
//! runs.

use crate::affinity;
use ogive_l2::READER_NAME;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;

/// Work for another thread.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// Prefetches waiting for a thread; more are dropped and counted.
const PREFETCH_QUEUE_MAX: usize = 256;

/// The threads of a mount that wait for the origin or for the second level.
pub(crate) struct Workers {
    requests: Pool,
    loads: Pool,
    second_level_requests: Pool,
    second_level_loads: Pool,
}

/// How many of a session's threads may wait for the origin: all but one.
#[derive(Debug)]
pub(crate) struct Leave {
    taken: AtomicUsize,
    most: usize,
}

/// Threads that take jobs from two queues, the first before the second.
struct Pool {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    name: &'static str,
    state: Mutex<State>,
    wake: Condvar,
    threads_max: usize,
    queued: AtomicU64,
    prefetch_dropped: AtomicU64,
    wakeups: AtomicU64,
}

#[derive(Default)]
struct State {
    demand: VecDeque<Job>,
    prefetch: VecDeque<Job>,
    idle: usize,
    threads: usize,
    stopped: bool,
}

/// Leave to wait for the origin on the calling thread; given back when dropped.
pub(crate) struct Inline<'a>(&'a AtomicUsize);

impl Drop for Inline<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Leave {
    /// For a session with this many threads.
    pub(crate) fn new(session_threads: usize) -> Arc<Self> {
        Arc::new(Self { taken: AtomicUsize::new(0), most: session_threads.saturating_sub(1) })
    }

    /// Leave to ask the origin on the calling thread, unless too many do so already.
    pub(crate) fn try_take(&self) -> Option<Inline<'_>> {
        if self.taken.fetch_add(1, Ordering::Relaxed) < self.most {
            return Some(Inline(&self.taken));
        }
        self.taken.fetch_sub(1, Ordering::Relaxed);
        None
    }
}

/// What the threads did so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorkerStatistics {
    pub(crate) threads: u64,
    pub(crate) queued: u64,
    pub(crate) prefetch_dropped: u64,
    pub(crate) wakeups: u64,
}

impl Workers {
    /// Up to `threads_max` threads of each kind.
    pub(crate) fn new(threads_max: usize) -> Self {
        Self {
            requests: Pool::new("request", threads_max),
            loads: Pool::new("origin_read", threads_max),
            second_level_requests: Pool::new(READER_NAME, threads_max),
            second_level_loads: Pool::new(READER_NAME, threads_max),
        }
    }

    /// Queues a request, which may wait for loads.
    pub(crate) fn request(&self, job: Job) {
        self.requests.demand(job);
    }

    /// Queues a load that a request is going to wait for. It must not wait for another load.
    pub(crate) fn load(&self, job: Job) {
        self.loads.demand(job);
    }

    /// Queues a load that nobody waits for; false if there are too many and it was dropped.
    pub(crate) fn prefetch(&self, job: Job) -> bool {
        self.loads.prefetch(job)
    }

    /// Queues a request that the second level is likely to answer. It must not wait for the origin.
    pub(crate) fn second_level_request(&self, job: Job) {
        self.second_level_requests.demand(job);
    }

    /// Queues a load from the second level that a request is going to wait for.
    pub(crate) fn second_level_load(&self, job: Job) {
        self.second_level_loads.demand(job);
    }

    /// Queues a load from the second level that nobody waits for; false if it was dropped.
    pub(crate) fn second_level_prefetch(&self, job: Job) -> bool {
        self.second_level_loads.prefetch(job)
    }

    /// Runs what is queued and ends the threads.
    pub(crate) fn stop(&self) {
        // Those of the second level queue for others, and requests may still wait for loads.
        self.second_level_requests.stop();
        self.second_level_loads.stop();
        self.requests.stop();
        self.loads.stop();
    }

    pub(crate) fn statistics(&self) -> WorkerStatistics {
        let pools =
            [&self.requests, &self.loads, &self.second_level_requests, &self.second_level_loads];
        let sum = |counter: fn(&Shared) -> &AtomicU64| {
            pools.iter().map(|pool| counter(&pool.shared).load(Ordering::Relaxed)).sum()
        };
        WorkerStatistics {
            threads: pools.iter().map(|pool| pool.shared.state.lock().threads as u64).sum(),
            queued: sum(|shared| &shared.queued),
            prefetch_dropped: sum(|shared| &shared.prefetch_dropped),
            wakeups: sum(|shared| &shared.wakeups),
        }
    }
}

impl Pool {
    fn new(name: &'static str, threads_max: usize) -> Self {
        Self {
            shared: Arc::new(Shared {
                name,
                state: Mutex::default(),
                wake: Condvar::new(),
                threads_max: threads_max.max(1),
                queued: AtomicU64::new(0),
                prefetch_dropped: AtomicU64::new(0),
                wakeups: AtomicU64::new(0),
            }),
            threads: Mutex::default(),
        }
    }

    /// Queues work that somebody waits for. After [`Pool::stop`] it runs at once instead.
    fn demand(&self, job: Job) {
        let mut state = self.shared.state.lock();
        if state.stopped {
            drop(state);
            return job();
        }
        state.demand.push_back(job);
        self.shared.queued.fetch_add(1, Ordering::Relaxed);
        self.wake_or_start(state);
    }

    /// Queues work that nobody waits for; false if there is too much of it and it was dropped.
    fn prefetch(&self, job: Job) -> bool {
        let mut state = self.shared.state.lock();
        if state.stopped || state.prefetch.len() >= PREFETCH_QUEUE_MAX {
            drop(state);
            self.shared.prefetch_dropped.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        state.prefetch.push_back(job);
        self.wake_or_start(state);
        true
    }

    fn wake_or_start(&self, mut state: parking_lot::MutexGuard<'_, State>) {
        let waiting = state.demand.len() + state.prefetch.len();
        if state.idle >= waiting || state.threads >= self.shared.threads_max {
            drop(state);
            self.shared.wake.notify_one();
            return;
        }
        state.threads += 1;
        drop(state);
        let shared = self.shared.clone();
        affinity::let_go();
        let started =
            std::thread::Builder::new().name(shared.name.into()).spawn(move || shared.run());
        match started {
            Ok(thread) => self.threads.lock().push(thread),
            Err(error) => {
                log::warn!("cannot start another thread: {error}");
                let mut state = self.shared.state.lock();
                state.threads -= 1;
                // With no thread at all nobody would ever come for the job.
                if state.threads == 0 {
                    let jobs: Vec<Job> = state.demand.drain(..).collect();
                    state.prefetch.clear();
                    drop(state);
                    jobs.into_iter().for_each(|job| job());
                }
            }
        }
    }

    /// Runs what is queued and ends the threads.
    fn stop(&self) {
        {
            let mut state = self.shared.state.lock();
            state.stopped = true;
            state.prefetch.clear();
        }
        self.shared.wake.notify_all();
        for thread in std::mem::take(&mut *self.threads.lock()) {
            if thread.join().is_err() {
                log::error!("a thread panicked");
            }
        }
    }
}

impl Shared {
    fn run(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.demand.pop_front().or_else(|| state.prefetch.pop_front()) {
                drop(state);
                // A panic is a bug of ours, but the reader it would strand is not to blame: the
                // reply that is dropped with the job answers with EIO.
                if std::panic::catch_unwind(std::panic::AssertUnwindSafe(job)).is_err() {
                    log::error!("a request panicked");
                }
                state = self.state.lock();
                continue;
            }
            if state.stopped {
                state.threads -= 1;
                return;
            }
            state.idle += 1;
            self.wake.wait(&mut state);
            state.idle -= 1;
            self.wakeups.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn all_session_threads_but_one_may_wait_for_the_origin() {
        let leave = Leave::new(3);
        let first = leave.try_take().unwrap();
        let second = leave.try_take().unwrap();
        assert!(leave.try_take().is_none());
        drop(first);
        assert!(leave.try_take().is_some());
        drop(second);
    }

    #[test]
    fn demand_runs_before_prefetch_and_everything_demanded_runs() {
        let pool = Pool::new("test", 1);
        let (send, receive) = mpsc::channel();
        let (hold, held) = mpsc::channel::<()>();
        pool.demand(Box::new(move || held.recv().unwrap()));
        for number in 0..10 {
            let send = send.clone();
            assert!(pool.prefetch(Box::new(move || send.send(100 + number).unwrap())));
        }
        for number in 0..10 {
            let send = send.clone();
            pool.demand(Box::new(move || send.send(number).unwrap()));
        }
        hold.send(()).unwrap();
        let order: Vec<i32> = receive.iter().take(20).collect();
        assert_eq!(order, (0..10).chain(100..110).collect::<Vec<_>>());
        assert_eq!(pool.shared.state.lock().threads, 1);
        pool.stop();
    }

    #[test]
    fn a_full_queue_drops_prefetch_and_stopping_runs_what_is_demanded() {
        let pool = Pool::new("test", 1);
        let (hold, held) = mpsc::channel::<()>();
        pool.demand(Box::new(move || held.recv().unwrap()));
        let mut dropped = 0;
        for _ in 0..PREFETCH_QUEUE_MAX + 5 {
            dropped += u64::from(!pool.prefetch(Box::new(|| {})));
        }
        // The held job may or may not have been taken off its queue yet; prefetch is its own.
        assert_eq!(dropped, 5);
        assert_eq!(pool.shared.prefetch_dropped.load(Ordering::Relaxed), 5);
        let (send, receive) = mpsc::channel();
        let late = send.clone();
        pool.demand(Box::new(move || send.send(1).unwrap()));
        hold.send(()).unwrap();
        pool.stop();
        pool.demand(Box::new(move || late.send(2).unwrap()));
        assert_eq!(receive.iter().collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn threads_are_woken_at_most_once_a_job() {
        let pool = Pool::new("test", 4);
        let (send, receive) = mpsc::channel();
        let mut jobs = 0;
        for _ in 0..50 {
            for _ in 0..4 {
                let send = send.clone();
                pool.demand(Box::new(move || send.send(()).unwrap()));
                jobs += 1;
            }
            receive.iter().take(4).for_each(drop);
        }
        // Nothing is left to do, and however long that goes on nobody is woken for it.
        std::thread::sleep(std::time::Duration::from_millis(200));
        let wakeups = pool.shared.wakeups.load(Ordering::Relaxed);
        assert!(wakeups <= jobs, "{wakeups} wake-ups for {jobs} jobs");
        pool.stop();
    }
}
