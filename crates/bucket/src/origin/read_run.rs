//! A run of records: one request fills many records, and each is delivered when its last byte
//! arrives.
//!
//! # Threads
//! A store that fetches in the background calls back from its own threads. For other stores, and
//! for staged files, threads named `bucket_read` block instead. Demand reads go before prefetch.
//! Jobs still queued at the end of the mount are dropped, which ends their runs.

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

/// How many threads may block on a store that does not fetch in the background.
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

/// The threads that read for stores without background fetches.
pub(super) struct ReadThreads(Pool<Jobs>);

impl Default for ReadThreads {
    fn default() -> Self {
        Self(Pool::new("bucket_read", THREADS_MAX, || Box::new(|job: Job| job())))
    }
}

impl ReadThreads {
    /// Runs a job on a thread. If no thread can be started, the caller runs the queued jobs itself.
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

impl Drop for ReadThreads {
    fn drop(&mut self) {
        self.0.stop(Duration::ZERO, std::mem::take);
    }
}

/// Assembles pieces into records, and delivers them.
struct Records<S> {
    sink: S,
    messages: Arc<Messages>,
    offline: Option<Arc<Offline>>,
    /// How to verify the records, if the store shows a checksum.
    summing: Option<Summing>,
    verifier: Arc<ChecksumVerifier>,
    key: String,
    record_size: usize,
    /// The number of the record being assembled, and its bytes so far.
    index: u64,
    record: Vec<u8>,
    /// The number of the first record that was not requested.
    last: u64,
    /// Where the requested range ends.
    end: u64,
    /// How many bytes the store must deliver in all.
    wanted: u64,
    /// The receiver wants no more.
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

    /// Adds a complete record to the object's checksum.
    fn sum_up(&self, record: &[u8]) {
        let Some(summing) = self.summing.as_ref().filter(|_| !record.is_empty()) else { return };
        let Summing { object, checksum } = summing;
        let sum = checksum.algorithm.of(record);
        let passed = (*checksum, self.record_size);
        if let Some(found) = self.verifier.passed(object, passed, (self.index, sum)) {
            self.messages.warn(format_args!(
                "{}: the bytes have checksum {found:x}, but the store reports {:x}: reads of this \
                 object fail until it is overwritten",
                self.key, checksum.value
            ));
        }
    }

    fn finish(mut self, given: crate::Result<u64>) {
        if let Some(offline) = &self.offline {
            offline.note_answer(given.as_ref().map(|_| ()), &self.messages);
        }
        let result = match given {
            Ok(given) if self.has_stopped || given == self.wanted => Ok(()),
            Ok(given) => {
                let message = format!("received {given} of {} bytes", self.wanted);
                let key = self.key.clone();
                Err(self.messages.errno(&BucketError::Failed { key, message }))
            }
            // The opened object no longer exists.
            Err(BucketError::NotFound { .. } | BucketError::OutOfRange { .. }) => Err(Errno::STALE),
            Err(error) => Err(self.messages.errno(&error)),
        };
        // The file's last record, unless it is a full one. It may be empty.
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

/// Reads a run of a file with changes that are not uploaded yet.
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
            // The changed object no longer exists.
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
    /// Starts to read a run of records.
    pub(super) fn run<S: RunSink>(&self, file: &File, run: Run, mut sink: S) {
        match file.source() {
            Ok(Source::Object(object)) => self.run_of(file, &object, run, sink),
            Ok(Source::Staged(staged)) => {
                let messages = Arc::clone(&self.messages);
                let job = move || {
                    let result = run_of_staged(&staged, &messages, run, &mut sink);
                    sink.end(result);
                };
                self.read_threads.queue(run.is_demanded, Box::new(job));
            }
            Err(errno) => sink.end(Err(errno)),
        }
    }

    /// Makes one request for a run, or none if its bytes arrived with the open.
    fn run_of<S: RunSink>(&self, file: &File, object: &Object, run: Run, sink: S) {
        let size = run.record_size_bytes;
        let last = run.first.saturating_add(run.records);
        let end = last.saturating_mul(size as u64).min(object.size_bytes);
        let start = match run.start_of(run.first) {
            Ok(start) if run.records > 0 => start,
            Ok(_) => return sink.end(Ok(())),
            Err(errno) => return sink.end(Err(errno)),
        };
        let early_bytes = if start < end { file.taken(object, start..end) } else { None };
        if early_bytes.is_none() && self.is_offline() {
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
        if start >= end || early_bytes.is_some() {
            // This says nothing about whether the store answers.
            records.offline = None;
            let bytes = early_bytes.unwrap_or_default();
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
        self.read_threads.queue(is_demanded, Box::new(job));
    }
}
