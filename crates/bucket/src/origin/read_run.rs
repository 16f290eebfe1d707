//! A run of records that is being read: one request fills many records, and each is handed on when
//! its last byte has arrived.
//!
//! # Threads
//! A store that fetches in the background calls from its own threads. For other stores, and for
//! staged files, whose bytes come from the journal and the object, threads named `bucket_read`
//! wait. Demand reads go before prefetch. Jobs that still wait at the end of the mount are dropped,
//! which ends their runs.

use super::BucketOrigin;
use super::checksum_verify::{ChecksumVerifier, Summing};
use super::messages::Messages;
use super::offline::Offline;
use super::open_file::{File, strong_etag};
use super::writing::Source;
use crate::staged::StagedFile;
use crate::{Bucket, BucketError, Fetch, FetchSink, Object};
use bytes::Bytes;
use ogive_origin::{Errno, Result, Run, RunSink};
use ogive_threads::{Pool, Pushed, Queue};
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// Threads at most that wait for a store which does not fetch in the background.
const THREADS_MAX: usize = 32;

type Job = Box<dyn FnOnce() + Send>;

/// Jobs that wait for a thread.
#[derive(Default)]
pub(super) struct Jobs {
    demanded: VecDeque<Job>,
    ahead: VecDeque<Job>,
}

impl Queue for Jobs {
    type Work = Job;

    fn waiting(&self) -> usize {
        self.demanded.len() + self.ahead.len()
    }

    fn take(&mut self, _: usize) -> Option<Job> {
        self.demanded.pop_front().or_else(|| self.ahead.pop_front())
    }
}

/// Threads that wait for reads.
pub(super) struct Readers(Pool<Jobs>);

impl Default for Readers {
    fn default() -> Self {
        Self(Pool::new("bucket_read", THREADS_MAX, || Box::new(|job: Job| job())))
    }
}

impl Readers {
    /// Has a job done by a thread. Where none can be started the caller does it: late is better
    /// than never.
    pub(super) fn queue(&self, is_demanded: bool, job: Job) {
        let pushed = self.0.push(|jobs| {
            let lane = if is_demanded { &mut jobs.demanded } else { &mut jobs.ahead };
            lane.push_back(job);
            true
        });
        if pushed == Pushed::NoThread {
            let mut jobs = self.0.take_back();
            while let Some(job) = jobs.take(0) {
                job();
            }
        }
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.0.stop(Duration::ZERO, std::mem::take);
    }
}

/// Puts pieces together to records, and hands them on.
struct Records<S> {
    sink: S,
    messages: Arc<Messages>,
    offline: Option<Arc<Offline>>,
    /// The sums to compare with the checksum that the store shows, if it shows one.
    summing: Option<Summing>,
    verifier: Arc<ChecksumVerifier>,
    key: String,
    record_size: usize,
    /// Number of the record that is being put together, and what there is of it.
    index: u64,
    record: Vec<u8>,
    /// Number of the first record that was not asked for.
    last: u64,
    /// Where the range ends.
    end: u64,
    /// Bytes that are to come in all.
    wanted: u64,
    /// No more is wanted.
    has_stopped: bool,
}

impl<S: RunSink> Records<S> {
    fn room(&self, index: u64) -> Vec<u8> {
        let size = self.record_size;
        let left = self.end.saturating_sub(index.saturating_mul(size as u64));
        Vec::with_capacity(usize::try_from(left).map_or(size, |left| left.min(size)))
    }

    fn take(&mut self, mut bytes: &[u8]) -> ControlFlow<()> {
        while !bytes.is_empty() && !self.has_stopped {
            let missing = self.record_size - self.record.len();
            let (part, rest) = bytes.split_at(bytes.len().min(missing));
            self.record.extend_from_slice(part);
            bytes = rest;
            if self.record.len() == self.record_size {
                let room = self.room(self.index + 1);
                let full = std::mem::replace(&mut self.record, room);
                self.sum_up(&full);
                let flow = self.sink.record(self.index, full);
                self.index += 1;
                self.has_stopped = flow.is_break() || self.index == self.last;
            }
        }
        if self.has_stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Sums up a whole record of the object before it is handed on.
    fn sum_up(&self, record: &[u8]) {
        let Some(summing) = self.summing.as_ref().filter(|_| !record.is_empty()) else { return };
        let Summing { object, checksum } = summing;
        let sum = checksum.algorithm.of(record);
        let passed = (*checksum, self.record_size);
        if let Some(found) = self.verifier.passed(object, passed, (self.index, sum)) {
            self.messages.say(format_args!(
                "{}: its bytes have the checksum {found:x}, and the store says {:x}: reads of it \
                 fail until it is overwritten",
                self.key, checksum.value
            ));
        }
    }

    fn finish(mut self, given: crate::Result<u64>) {
        if let Some(reach) = &self.offline {
            reach.note_answer(given.as_ref().map(|_| ()), &self.messages);
        }
        let result = match given {
            Ok(given) if self.has_stopped || given == self.wanted => Ok(()),
            Ok(given) => {
                let message = format!("{given} of {} bytes came", self.wanted);
                let key = self.key.clone();
                Err(self.messages.errno(&BucketError::Failed { key, message }))
            }
            // The object that was opened does not exist any more.
            Err(BucketError::NotFound { .. } | BucketError::OutOfRange { .. }) => Err(Errno::STALE),
            Err(error) => Err(self.messages.errno(&error)),
        };
        // The last of the file, if it is none of whole records only: it may be empty.
        if result.is_ok() && !self.has_stopped && self.index < self.last {
            let last = std::mem::take(&mut self.record);
            self.sum_up(&last);
            let _ = self.sink.record(self.index, last);
        }
        self.sink.end(result);
    }
}

impl<S: RunSink> FetchSink for Records<S> {
    fn piece(&mut self, bytes: Bytes) -> ControlFlow<()> {
        self.take(&bytes)
    }

    fn end(self: Box<Self>, result: crate::Result<u64>) {
        self.finish(result);
    }
}

/// Reads a run of a file that has changes which the store has not.
fn run_of_staged(
    staged: &StagedFile,
    messages: &Messages,
    run: Run,
    sink: &mut impl RunSink,
) -> Result<()> {
    for index in run.first..run.first.saturating_add(run.records) {
        let start = run.start_of(index)?;
        let end = start.saturating_add(run.record_size_bytes as u64);
        let bytes = staged.read(start..end).map_err(|error| match messages.of_staged(&error) {
            // The object that is changed does not exist any more.
            Errno::NOENT => Errno::STALE,
            errno => errno,
        })?;
        let is_last = bytes.len() < run.record_size_bytes;
        if sink.record(index, bytes.into()).is_break() || is_last {
            break;
        }
    }
    Ok(())
}

impl<B: Bucket> BucketOrigin<B> {
    /// Begins to read a run of records.
    pub(super) fn run<S: RunSink>(&self, file: &File, run: Run, mut sink: S) {
        match file.source() {
            Ok(Source::Object(object)) => self.run_of(file, &object, run, sink),
            Ok(Source::Staged(staged)) => {
                let messages = Arc::clone(&self.messages);
                let job = move || {
                    let result = run_of_staged(&staged, &messages, run, &mut sink);
                    sink.end(result);
                };
                self.readers.queue(run.is_demanded, Box::new(job));
            }
            Err(errno) => sink.end(Err(errno)),
        }
    }

    /// One request for a whole run, or none if its bytes are here.
    fn run_of<S: RunSink>(&self, file: &File, object: &Object, run: Run, sink: S) {
        let size = run.record_size_bytes;
        let last = run.first.saturating_add(run.records);
        let end = last.saturating_mul(size as u64).min(object.size_bytes);
        let start = match run.start_of(run.first) {
            Ok(start) if run.records > 0 => start,
            Ok(_) => return sink.end(Ok(())),
            Err(errno) => return sink.end(Err(errno)),
        };
        let taken = if start < end { file.taken(object, start..end) } else { None };
        if taken.is_none() && self.is_offline() {
            return sink.end(Err(Errno::IO));
        }
        let mut records = Records {
            sink,
            messages: Arc::clone(&self.messages),
            offline: self.offline.clone(),
            summing: self
                .bucket
                .checksum_of(object)
                .filter(|_| strong_etag(object).is_some())
                .map(|checksum| Summing { object: object.clone(), checksum }),
            verifier: Arc::clone(&self.verifier),
            key: object.key.clone(),
            record_size: size,
            index: run.first,
            record: Vec::new(),
            last,
            end,
            wanted: end.saturating_sub(start),
            has_stopped: false,
        };
        records.record = records.room(run.first);
        if start >= end || taken.is_some() {
            // Nothing is heard of the store.
            records.offline = None;
            let bytes = taken.unwrap_or_default();
            let _ = records.take(&bytes);
            return records.finish(Ok(bytes.len() as u64));
        }
        let fetch = Fetch {
            key: object.key.clone(),
            range: start..end,
            expected: strong_etag(object).cloned(),
            is_demanded: run.is_demanded,
        };
        if self.bucket.fetches_in_background() {
            return self.bucket.fetch(fetch, Box::new(records));
        }
        let (bucket, is_demanded) = (Arc::clone(&self.bucket), run.is_demanded);
        let job = move || bucket.fetch(fetch, Box::new(records));
        self.readers.queue(is_demanded, Box::new(job));
    }
}
