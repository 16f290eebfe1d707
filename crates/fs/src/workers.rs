//! Threads that wait for the origin, so that the threads that answer hits need not.
//!
//! A request that has to ask the origin does so on the session thread that received it, while
//! another session thread is free. A hand-over would cost two context switches. When all session
//! threads but one wait for the origin, further requests are queued for *request threads*. So hits
//! are answered however slow the origin is.
//!
//! Loads that are claimed ahead of time, mostly prefetch, run on *load threads*. A request may wait
//! for such a load; a load waits only for the origin. If they shared threads, all threads could
//! wait for loads that no thread is left to run. Prefetch is queued behind every demanded load, and
//! is dropped when its queue is full.
//!
//! Threads of the second level read the records that it probably has. Its device is slow enough to
//! make a hand-over cheap, and the threads' names show the CPU time of unsealing. There, too,
//! requests and loads have separate threads. They never wait for the origin: a record that they do
//! not find is queued for the threads that do.
//!
//! The end of a mount waits for the threads with a bound, because a thread may hang in the origin
//! for ever.
//!
//! `ogive_threads` starts, wakes and ends threads. This module has their queues. A demanded job
//! always runs, also at the end and when no thread can be started.

use crate::affinity;
use ogive_l2::READER_NAME;
use ogive_threads::{Pushed, Queue};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Work for another thread.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// Prefetches that may wait for a thread; more are dropped and counted.
const PREFETCH_QUEUE_MAX: usize = 256;

/// The place that a job waits for. It must not wait for the other.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    Origin,
    SecondLevel,
}

/// The kind of a job, by the party that waits for it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lane {
    /// A request waits for this job alone.
    Request,
    /// A request that also waits for other records. The job must not wait for another load.
    Load,
    /// A prefetch, for which no request waits yet.
    Prefetch,
}

/// The threads of a mount that wait for the origin or for the second level.
pub(crate) struct Workers {
    requests: Pool,
    loads: Pool,
    second_level_requests: Pool,
    second_level_loads: Pool,
}

/// How many of a session's threads may wait for the origin: all but one.
#[derive(Debug)]
pub(crate) struct Permits {
    taken: AtomicUsize,
    most: usize,
}

/// Threads that take jobs from two queues, the first queue first.
struct Pool {
    threads: ogive_threads::Pool<Jobs>,
    queued: AtomicU64,
    prefetch_dropped: AtomicU64,
}

#[derive(Default)]
struct Jobs {
    demand: VecDeque<Job>,
    prefetch: VecDeque<Job>,
}

impl Queue for Jobs {
    type Work = Job;

    fn waiting(&self) -> usize {
        self.demand.len() + self.prefetch.len()
    }

    fn take(&mut self, _idle: usize) -> Option<Job> {
        self.demand.pop_front().or_else(|| self.prefetch.pop_front())
    }
}

/// Permission to wait for the origin on the calling thread; given back when dropped.
pub(crate) struct Permit<'a>(&'a AtomicUsize);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Permits {
    /// For a session with this many threads.
    pub(crate) fn new(session_threads: usize) -> Arc<Self> {
        Arc::new(Self { taken: AtomicUsize::new(0), most: session_threads.saturating_sub(1) })
    }

    /// Permission to ask the origin on the calling thread, unless too many do so already.
    pub(crate) fn try_take(&self) -> Option<Permit<'_>> {
        if self.taken.fetch_add(1, Ordering::Relaxed) < self.most {
            return Some(Permit(&self.taken));
        }
        self.taken.fetch_sub(1, Ordering::Relaxed);
        None
    }
}

/// The counters of the threads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorkerStatistics {
    pub(crate) threads: u64,
    pub(crate) queued: u64,
    pub(crate) prefetch_dropped: u64,
    pub(crate) wakeups: u64,
    pub(crate) panics: u64,
}

impl WorkerStatistics {
    /// Counters that are shown unchanged, by name.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("worker_threads", self.threads),
            ("worker_requests", self.queued),
            ("worker_wakeups", self.wakeups),
            ("prefetch_dropped", self.prefetch_dropped),
        ]
        .into_iter()
    }
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

    /// Queues a job that waits for the origin or for the second level. False if it is a prefetch
    /// and the queue is full: it is dropped then.
    pub(crate) fn queue(
        &self,
        place: Place,
        lane: Lane,
        job: impl FnOnce() + Send + 'static,
    ) -> bool {
        let pool = match (place, lane) {
            (Place::Origin, Lane::Request) => &self.requests,
            (Place::Origin, Lane::Load | Lane::Prefetch) => &self.loads,
            (Place::SecondLevel, Lane::Request) => &self.second_level_requests,
            (Place::SecondLevel, Lane::Load | Lane::Prefetch) => &self.second_level_loads,
        };
        match lane {
            Lane::Prefetch => pool.prefetch(Box::new(job)),
            Lane::Request | Lane::Load => {
                pool.demand(Box::new(job));
                true
            }
        }
    }

    /// Runs all queued jobs and ends the threads, but waits no longer than `patience`: an origin
    /// may hang. Returns how many threads have not ended.
    pub(crate) fn stop(&self, patience: Duration) -> usize {
        let until = Instant::now() + patience;
        // Threads of the second level queue jobs for others, and requests may still wait for loads.
        [&self.second_level_requests, &self.second_level_loads, &self.requests, &self.loads]
            .into_iter()
            .map(|pool| pool.stop(until.saturating_duration_since(Instant::now())))
            .sum()
    }

    pub(crate) fn statistics(&self) -> WorkerStatistics {
        let pools =
            [&self.requests, &self.loads, &self.second_level_requests, &self.second_level_loads];
        let sum = |counter: fn(&Pool) -> u64| pools.iter().map(|pool| counter(pool)).sum();
        WorkerStatistics {
            threads: sum(|pool| pool.threads.threads() as u64),
            queued: sum(|pool| pool.queued.load(Ordering::Relaxed)),
            prefetch_dropped: sum(|pool| pool.prefetch_dropped.load(Ordering::Relaxed)),
            wakeups: sum(|pool| pool.threads.wakeups()),
            panics: sum(|pool| pool.threads.panics()),
        }
    }
}

impl Pool {
    fn new(name: &'static str, threads_max: usize) -> Self {
        // A job that panics drops its reply, which answers with EIO.
        let threads = ogive_threads::Pool::new(name, threads_max, || Box::new(|job: Job| job()));
        Self {
            threads: threads.before_start(affinity::let_go),
            queued: AtomicU64::new(0),
            prefetch_dropped: AtomicU64::new(0),
        }
    }

    /// Queues a job that a request waits for. After [`Pool::stop`] it runs at once instead.
    fn demand(&self, job: Job) {
        let mut job = Some(job);
        let pushed = self.threads.push(|jobs| {
            jobs.demand.extend(job.take());
            true
        });
        match pushed {
            Pushed::Queued => {
                self.queued.fetch_add(1, Ordering::Relaxed);
            }
            Pushed::Refused => job.into_iter().for_each(|job| job()),
            Pushed::NoThread => self.run_here(),
        }
    }

    /// Queues a job that no request waits for; false if the queue is full and it was dropped.
    fn prefetch(&self, job: Job) -> bool {
        let pushed = self.threads.push(|jobs| {
            let has_room = jobs.prefetch.len() < PREFETCH_QUEUE_MAX;
            if has_room {
                jobs.prefetch.push_back(job);
            }
            has_room
        });
        match pushed {
            Pushed::Queued => true,
            Pushed::Refused => {
                self.prefetch_dropped.fetch_add(1, Ordering::Relaxed);
                false
            }
            Pushed::NoThread => {
                self.run_here();
                false
            }
        }
    }

    /// Without any thread the jobs would never run.
    fn run_here(&self) {
        let jobs = self.threads.take_back();
        self.prefetch_dropped.fetch_add(jobs.prefetch.len() as u64, Ordering::Relaxed);
        jobs.demand.into_iter().for_each(|job| job());
    }

    /// Runs all queued jobs and ends the threads. Returns how many have not ended in time.
    fn stop(&self, patience: Duration) -> usize {
        self.threads.stop(patience, |jobs| std::mem::take(&mut jobs.prefetch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eventually::BOUND;
    use std::sync::mpsc;

    #[test]
    fn all_session_threads_but_one_may_wait_for_the_origin() {
        let permits = Permits::new(3);
        let first = permits.try_take().unwrap();
        let second = permits.try_take().unwrap();
        assert!(permits.try_take().is_none());
        drop(first);
        assert!(permits.try_take().is_some());
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
        let order: Vec<i32> = (0..20).map(|_| receive.recv_timeout(BOUND).unwrap()).collect();
        assert_eq!(order, (0..10).chain(100..110).collect::<Vec<_>>());
        assert_eq!(pool.threads.threads(), 1);
        assert_eq!(pool.stop(BOUND), 0);
    }

    #[test]
    fn a_full_queue_drops_prefetch_and_stopping_runs_demanded_jobs() {
        let pool = Pool::new("test", 1);
        let (hold, held) = mpsc::channel::<()>();
        pool.demand(Box::new(move || held.recv().unwrap()));
        let mut dropped = 0;
        for _ in 0..PREFETCH_QUEUE_MAX + 5 {
            dropped += u64::from(!pool.prefetch(Box::new(|| {})));
        }
        // The held job may or may not have left its queue yet; prefetch has its own.
        assert_eq!(dropped, 5);
        assert_eq!(pool.prefetch_dropped.load(Ordering::Relaxed), 5);
        let (send, receive) = mpsc::channel();
        let late = send.clone();
        pool.demand(Box::new(move || send.send(1).unwrap()));
        hold.send(()).unwrap();
        assert_eq!(pool.stop(BOUND), 0);
        pool.demand(Box::new(move || late.send(2).unwrap()));
        assert_eq!(receive.iter().collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn stopping_does_not_wait_for_a_thread_that_does_not_come_back() {
        let pool = Pool::new("test", 1);
        let (hold, held) = mpsc::channel::<()>();
        pool.demand(Box::new(move || held.recv().unwrap_or(())));
        assert_eq!(pool.stop(Duration::from_millis(1)), 1);
        drop(hold);
        assert_eq!(pool.stop(BOUND), 0);
    }
}
