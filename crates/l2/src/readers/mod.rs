//! Threads that read, unseal and decompress: `l2_read` in `top -H`.
//!
//! Whoever has threads of that name reads on them ([`Readers::read_here`]), and waits for the
//! device alone. Everybody else has them read: a miss of the first level that the
//! index knows an answer to is queued here, and its thread waits. Both wait for a bounded time, so that
//! no device can hang a reader. A thread of the pool takes as many
//! reads at once as its device can do at once. Threads are started when there is work and wait on
//! a condition variable when there is none.

mod here;

use crate::counters::{Counters, Stopwatch, add};
use crate::device::{AlignedBuffer, ReadRequest};
use crate::index::Slot;
use crate::store::{Plan, Store, Unsealer};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What threads are called that read a second level.
pub const READER_NAME: &str = "l2_read";

/// Reads that wait for a thread; with more, a read is a miss.
const QUEUE_MAX: usize = 4096;

/// A read on its way.
struct Job {
    store: Arc<Store>,
    key: [u8; 16],
    slot: Slot,
    reply: SyncSender<Option<Vec<u8>>>,
}

/// The pool.
pub(crate) struct Readers {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    patience: Duration,
}

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    threads_max: usize,
    counters: Arc<Counters>,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    idle: usize,
    threads: usize,
    stopped: bool,
}

/// What a thread reuses from batch to batch.
#[derive(Default)]
struct Desk {
    buffers: Vec<AlignedBuffer>,
    unsealer: Unsealer,
}

impl Readers {
    pub(crate) fn new(threads_max: usize, patience: Duration, counters: Arc<Counters>) -> Self {
        let shared = Shared {
            state: Mutex::default(),
            wake: Condvar::new(),
            threads_max: threads_max.max(1),
            counters,
        };
        Self { shared: Arc::new(shared), threads: Mutex::default(), patience }
    }

    /// Reads a record; `None` is a miss, for whatever reason.
    pub(crate) fn read(&self, store: &Arc<Store>, key: [u8; 16], slot: Slot) -> Option<Vec<u8>> {
        let counters = &self.shared.counters;
        let start = Instant::now();
        let (reply, answer) = sync_channel(1);
        if !self.push(Job { store: store.clone(), key, slot, reply }) {
            add(&counters.l2_busy, 1);
            return None;
        }
        match answer.recv_timeout(self.patience) {
            Ok(bytes) => {
                counters.read_answered(start.elapsed());
                bytes
            }
            Err(_) => {
                add(&counters.l2_timeouts, 1);
                store.note_failure();
                None
            }
        }
    }

    fn push(&self, job: Job) -> bool {
        let mut state = self.shared.state.lock();
        if state.stopped || state.jobs.len() >= QUEUE_MAX {
            drop(state);
            return false;
        }
        state.jobs.push_back(job);
        if state.idle >= state.jobs.len() || state.threads >= self.shared.threads_max {
            drop(state);
            self.shared.wake.notify_one();
            return true;
        }
        state.threads += 1;
        drop(state);
        let shared = self.shared.clone();
        let thread =
            std::thread::Builder::new().name(READER_NAME.into()).spawn(move || shared.run());
        match thread {
            Ok(thread) => self.threads.lock().push(thread),
            Err(error) => {
                log::warn!("cannot start another thread to read the second level: {error}");
                self.shared.state.lock().threads -= 1;
            }
        }
        true
    }

    /// Ends the threads; what is queued is a miss. A thread that hangs in its device is left.
    pub(crate) fn stop(&self) {
        let jobs = {
            let mut state = self.shared.state.lock();
            state.stopped = true;
            std::mem::take(&mut state.jobs)
        };
        drop(jobs);
        self.shared.wake.notify_all();
        let deadline = Instant::now() + self.patience;
        for thread in std::mem::take(&mut *self.threads.lock()) {
            while !thread.is_finished() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(1));
            }
            if thread.is_finished() && thread.join().is_err() {
                log::error!("a thread that reads the second level panicked");
            }
        }
    }
}

impl Shared {
    fn run(&self) {
        let mut desk = Desk::default();
        let mut batch = Vec::new();
        while self.take(&mut batch) {
            self.read(&mut desk, &mut batch);
        }
    }

    /// Takes jobs for one device; false at the end.
    fn take(&self, batch: &mut Vec<Job>) -> bool {
        let mut state = self.state.lock();
        let first = loop {
            if let Some(job) = state.jobs.pop_front() {
                break job;
            }
            if state.stopped {
                state.threads -= 1;
                return false;
            }
            state.idle += 1;
            self.wake.wait(&mut state);
            state.idle -= 1;
        };
        // Threads that have nothing to do shall have their share.
        let share = state.jobs.len() / (state.idle + 1);
        let more = first.store.device().depth().saturating_sub(1).min(share);
        batch.push(first);
        while batch.len() <= more {
            let same =
                state.jobs.front().is_some_and(|job| Arc::ptr_eq(&job.store, &batch[0].store));
            match state.jobs.pop_front() {
                Some(job) if same => batch.push(job),
                Some(job) => {
                    state.jobs.push_front(job);
                    break;
                }
                None => break,
            }
        }
        true
    }

    fn read(&self, desk: &mut Desk, batch: &mut Vec<Job>) {
        let store = batch[0].store.clone();
        let plans: Vec<Option<Plan>> = batch.iter().map(|job| store.plan(job.slot)).collect();
        desk.buffers.resize_with(batch.len().max(desk.buffers.len()), AlignedBuffer::default);
        let mut reads: Vec<ReadRequest<'_>> = plans
            .iter()
            .zip(&mut desk.buffers)
            .filter_map(|(plan, buffer)| {
                let plan = plan.as_ref()?;
                let buffer = buffer.first(plan.length);
                Some(ReadRequest { offset: plan.offset, buffer, result: Ok(()) })
            })
            .collect();
        let mut watch = Stopwatch::start();
        let started = Instant::now();
        store.device().read_many(&mut reads);
        watch.lap(&self.counters.l2_read_cpu_ns);
        store.note_time(started.elapsed(), reads.iter().any(|read| read.result.is_ok()));
        let mut reads = reads.into_iter();
        for (job, plan) in batch.drain(..).zip(plans) {
            let read = plan.and_then(|plan| Some((plan, reads.next()?)));
            let bytes = match read {
                Some((plan, read)) => {
                    let bytes = read.result.map(|()| &*read.buffer);
                    finish(&job.store, &job.key, job.slot, &plan, bytes, &mut desk.unsealer)
                }
                None => None,
            };
            // Whoever asked may have lost patience.
            let _ = job.reply.send(bytes);
        }
    }
}

/// From what was read to the record, if it is that.
fn finish(
    store: &Store,
    key: &[u8; 16],
    slot: Slot,
    plan: &Plan,
    read: io::Result<&[u8]>,
    unsealer: &mut Unsealer,
) -> Option<Vec<u8>> {
    let counters = store.counters();
    let bytes = match read {
        Ok(bytes) => bytes,
        Err(error) => {
            log::debug!("a read of the second level failed: {error}");
            add(&counters.l2_io_error, 1);
            store.note_failure();
            return None;
        }
    };
    add(&counters.l2_read_bytes, plan.length as u64);
    match store.unseal(plan, bytes, key, unsealer) {
        Ok(bytes) => {
            store.note_hit(key);
            Some(bytes)
        }
        Err(fault) => {
            store.note_fault(key, slot, fault);
            None
        }
    }
}
