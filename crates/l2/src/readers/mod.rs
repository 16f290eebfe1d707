//! Threads that read, unseal and decompress: `l2_read` in `top -H`.
//!
//! A caller that has threads of that name reads on them ([`Readers::read_here`]), and waits for the
//! device alone. For other callers the pool reads: a miss of the first level that the index knows
//! is queued here, and its thread waits. Both wait for a bounded time, so that no device can hang a
//! reader. A thread of the pool takes as many reads at once as its device can do at once. Threads
//! are started when there is work and wait on a condition variable when there is none.
//!
//! `ogive_threads` starts, wakes and ends the threads. Here jobs are reads, and a read that cannot
//! run is a miss.

mod on_caller;

use crate::counters::{Counters, Stopwatch, add};
use crate::device::{AlignedBuffer, ReadRequest};
use crate::index::Slot;
use crate::store::{Plan, Store, Unsealer};
use ogive_threads::{Pool, Pushed, Queue};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

/// The name of threads that read a second level.
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
    threads: Pool<Jobs>,
    counters: Arc<Counters>,
    patience: Duration,
}

#[derive(Default)]
struct Jobs(VecDeque<Job>);

impl Queue for Jobs {
    /// Reads of one device, one at least.
    type Work = Vec<Job>;

    fn waiting(&self) -> usize {
        self.0.len()
    }

    fn take(&mut self, idle: usize) -> Option<Vec<Job>> {
        let first = self.0.pop_front()?;
        // Threads that have nothing to do shall have their share.
        let share = self.0.len() / (idle + 1);
        let more = first.store.device().depth().saturating_sub(1).min(share);
        let is_same = |job: &&Job| Arc::ptr_eq(&job.store, &first.store);
        let more = self.0.iter().take(more).take_while(is_same).count();
        Some(std::iter::once(first).chain(self.0.drain(..more)).collect())
    }
}

/// Memory that a thread reuses from batch to batch.
#[derive(Default)]
struct Scratch {
    buffers: Vec<AlignedBuffer>,
    unsealer: Unsealer,
}

impl Readers {
    pub(crate) fn new(threads_max: usize, patience: Duration, counters: Arc<Counters>) -> Self {
        let counted = counters.clone();
        let threads = Pool::new(READER_NAME, threads_max, move || {
            let (counters, mut scratch) = (counted.clone(), Scratch::default());
            Box::new(move |batch| read(&counters, &mut scratch, batch))
        });
        Self { threads, counters, patience }
    }

    /// Reads a record; `None` is a miss, for whatever reason.
    pub(crate) fn read(&self, store: &Arc<Store>, key: [u8; 16], slot: Slot) -> Option<Vec<u8>> {
        let counters = &self.counters;
        let start = store.now();
        let (reply, answer) = sync_channel(1);
        if !self.push(Job { store: store.clone(), key, slot, reply }) {
            add(&counters.l2_busy, 1);
            return None;
        }
        match answer.recv_timeout(self.patience) {
            Ok(bytes) => {
                counters.read_answered(store.now() - start);
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
        let pushed = self.threads.push(|jobs| {
            let has_room = jobs.0.len() < QUEUE_MAX;
            if has_room {
                jobs.0.push_back(job);
            }
            has_room
        });
        if pushed == Pushed::NoThread {
            // No thread would come for them: the waiters get a miss at once.
            drop(self.threads.take_back());
        }
        pushed == Pushed::Queued
    }

    /// Ends the threads; queued reads are misses. A thread that hangs in its device is left.
    pub(crate) fn stop(&self) {
        let left = self.threads.stop(self.patience, std::mem::take);
        if left > 0 {
            let threads = ogive_text::counted(left, "thread still waits", "threads still wait");
            log::warn!("{threads} for a device of the second level");
        }
    }
}

/// The work of a thread on its batch.
fn read(counters: &Counters, scratch: &mut Scratch, mut batch: Vec<Job>) {
    let store = batch[0].store.clone();
    let plans: Vec<Option<Plan>> = batch.iter().map(|job| store.plan(job.slot)).collect();
    scratch.buffers.resize_with(batch.len().max(scratch.buffers.len()), AlignedBuffer::default);
    let mut reads: Vec<ReadRequest<'_>> = plans
        .iter()
        .zip(&mut scratch.buffers)
        .filter_map(|(plan, buffer)| {
            let plan = plan.as_ref()?;
            let buffer = buffer.first(plan.length);
            Some(ReadRequest { offset: plan.offset, buffer, result: Ok(()) })
        })
        .collect();
    let mut watch = Stopwatch::start();
    let started = store.now();
    store.device().read_many(&mut reads);
    watch.lap(&counters.l2_read_cpu_ns);
    store.note_time(started, reads.iter().any(|read| read.result.is_ok()));
    let mut reads = reads.into_iter();
    for (job, plan) in batch.drain(..).zip(plans) {
        let read = plan.and_then(|plan| Some((plan, reads.next()?)));
        let bytes = match read {
            Some((plan, read)) => {
                let bytes = read.result.map(|()| &*read.buffer);
                finish(&job.store, &job.key, job.slot, &plan, bytes, &mut scratch.unsealer)
            }
            None => None,
        };
        // The caller may have given up.
        let _ = job.reply.send(bytes);
    }
}

/// Makes the record of the bytes that were read, if they are that record.
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
