//! A miss: one record on its way into the cache.
//!
//! ```text
//!                       not cached, and not being loaded
//!                                      │
//!                                 ┌─────────┐
//!                                 │ claimed │
//!                                 └────┬────┘
//!            the second level's index ─┴─ the index knows it, and
//!            does not know it         │   nothing was written to it
//!                     ┌───────────────┴───────────────┐
//!                     │                       ┌──────────────┐
//!                     │ ◄──── not there ──────┤ second level │  threads `l2_read`
//!                ┌────────┐                   └───────┬──────┘
//!                │ origin │  threads `origin_read`    │
//!                └────┬───┘  and `request`, or the    │
//!       bytes or an   │      origin's own             │ bytes
//!       error         └───────────────┬───────────────┘
//!                               ┌──────────┐
//!                               │ answered │
//!                               └──────────┘
//! ```
//!
//! A [`Load`] has the engine's claim on its record, so each record is loaded once, and other
//! readers join the load. It goes from state to state by value: its owner must move it on. A load
//! that is dropped leaves the record to the next reader.
//!
//! It *begins* once, when it is claimed. It looks for a change of its bytes in flight, and dooms
//! itself if there is one ([`crate::inode`]). A change that begins later dooms it in any case.
//!
//! A load keeps no other thread waiting: a request leaves a continuation with it
//! ([`Demand::Request`]), or waits itself because it may. Only the states in the middle take a
//! thread, while the device or the origin works. Each state has threads of its own. An origin that
//! reads in the background takes none.
//!
//! Consecutive records are read as one run. From an origin that reads in the background, a run is
//! as long as the request. From another origin, it is as long as one thread can read quickly
//! ([`crate::origin_latency`]). Records that come out of memory are read by the request itself:
//! waking a thread for each would cost more. Slow records have a thread each.

use super::{Result, View};
use crate::handle::OpenFile;
use crate::origin_latency::TimedRead;
use crate::record::{Entry, Key, Version, Worth};
use crate::sampling::Event;
use crate::second_level::SecondLevel;
use crate::workers::{Lane, Place};
use ogive_arc::{Claim, Hold};
use ogive_origin::{Errno, Needed, Origin, Run, RunSink};
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

/// A record with its bytes, as the engine holds it.
pub(super) type Loaded = Hold<Key, Entry>;

/// Continues a request once its record has come or failed. It must not block.
pub(super) type Continuation = Box<dyn FnOnce(Result<Loaded>) + Send>;

/// A record, and the open file that reads it.
pub(super) struct MissingRecord<O: Origin> {
    pub(super) open: Arc<OpenFile<O>>,
    pub(super) version: Version,
    pub(super) index: u64,
    /// Its reader is sequential.
    pub(super) sequential: bool,
}

/// The reason for a load. It decides on which threads the load waits and where an error goes.
pub(super) enum Demand<O: Origin> {
    /// A request, which continues with this.
    Request(Continuation),
    /// A request that joins the load once it has the records before.
    Rest,
    /// No request yet. A request that joins the load later gets its error.
    Prefetch { _counted: PrefetchInFlight<O> },
}

/// Counts a prefetch in flight until it is dropped.
pub(super) struct PrefetchInFlight<O: Origin>(Arc<View<O>>);

/// One record on its way into the cache.
pub(super) struct Load<O: Origin> {
    view: Arc<View<O>>,
    missing: MissingRecord<O>,
    claim: Claim<Key, Entry>,
    demand: Demand<O>,
    /// Nothing was written under this version before the load began.
    pristine: bool,
}

/// Loads to start, in the order of their records. Consecutive ones form runs.
pub(super) struct Start<O: Origin> {
    run: VecDeque<Load<O>>,
    /// The longest run that an origin which reads in the background asks for.
    run_bytes: u64,
}

/// The loads of a run whose records are still to come.
struct Arriving<O: Origin> {
    run: VecDeque<Load<O>>,
    /// How many records of the file are whole.
    whole: u64,
    /// When the origin was asked.
    asked: Instant,
    /// Measures the next record, which the calling thread asks for.
    here: Option<TimedRead>,
}

impl<O: Origin> MissingRecord<O> {
    pub(super) fn key(&self) -> Key {
        Key::record(self.version, self.index)
    }
}

impl<O: Origin> Demand<O> {
    /// Counts a new prefetch.
    pub(super) fn prefetch(view: &Arc<View<O>>) -> Self {
        view.counters.prefetch_issued();
        Self::Prefetch { _counted: PrefetchInFlight(view.clone()) }
    }

    fn lane(&self) -> Lane {
        match self {
            Self::Request(_) => Lane::Request,
            Self::Rest => Lane::Load,
            Self::Prefetch { .. } => Lane::Prefetch,
        }
    }
}

impl<O: Origin> Drop for PrefetchInFlight<O> {
    fn drop(&mut self) {
        self.0.counters.prefetch_ended();
    }
}

impl<O: Origin> View<O> {
    /// Whether to ask the second level: nothing was written to the file, and the index has an entry
    /// that may be this record.
    pub(super) fn may_be_in_second_level(&self, missing: &MissingRecord<O>) -> bool {
        self.second_level.as_ref().is_some_and(|level| {
            self.is_pristine(missing) && level.may_have(missing.version, missing.index)
        })
    }

    fn is_pristine(&self, missing: &MissingRecord<O>) -> bool {
        let contents = missing.open.inode.contents();
        contents.is_some_and(|now| now.version == missing.version && now.pristine)
    }

    /// Whether the bytes that an open file just read belong to its version. They do if the origin
    /// guarantees it, or if the file still has the identity of its version. Times only go forward.
    fn is_still(&self, missing: &MissingRecord<O>) -> bool {
        let OpenFile { inode, file, .. } = &*missing.open;
        let identity = match self.origin.pinned_identity(file) {
            Some(identity) => Some(identity),
            None if self.origin.reads_in_background() => None,
            None => {
                let needed = Needed::Version;
                let attributes = self.origin.attributes_needed(&inode.node, Some(file), needed);
                attributes.ok().map(|now| now.identity(inode.generation))
            }
        };
        identity.is_some_and(|identity| self.versions.stands_for(missing.version, &identity))
    }
}

impl<O: Origin> Load<O> {
    /// *Claimed*.
    pub(super) fn begin(
        view: &Arc<View<O>>,
        missing: MissingRecord<O>,
        claim: Claim<Key, Entry>,
        demand: Demand<O>,
    ) -> Self {
        let record_size = view.settings.record_size_bytes;
        let start = missing.index.saturating_mul(record_size);
        if missing.open.inode.is_changing(&(start..start.saturating_add(record_size))) {
            view.cache.invalidate(&missing.key());
        }
        if !matches!(demand, Demand::Prefetch { .. }) {
            view.observers.loads(missing.version, missing.index, Event::Miss);
        }
        let pristine = view.is_pristine(&missing);
        Self { view: view.clone(), missing, claim, demand, pristine }
    }

    /// Runs a load to its end on the calling thread, which may wait for the second level and the
    /// origin. One run reads `following` as well, the records right behind this one.
    pub(super) fn here(
        view: &Arc<View<O>>,
        missing: MissingRecord<O>,
        claim: Claim<Key, Entry>,
        following: impl Iterator<Item = Self>,
    ) -> Result<Loaded> {
        let (send, receive) = sync_channel(1);
        let then = move |loaded| {
            // The waiting thread may have panicked.
            let _ = send.send(loaded);
        };
        let load = Self::begin(view, missing, claim, Demand::Request(Box::new(then)));
        if let Some(load) = load.ask_second_level(SecondLevel::read) {
            Arriving::read(std::iter::once(load).chain(following).collect());
        }
        receive.recv().unwrap_or(Err(Errno::IO))
    }

    /// Whether the second level is the next state.
    fn may_be_in_second_level(&self) -> bool {
        let MissingRecord { version, index, .. } = self.missing;
        let level = self.view.second_level.as_ref();
        self.pristine && level.is_some_and(|level| level.may_have(version, index))
    }

    /// *Second level*, on a thread of its own. If the record is not there, the load goes on to the
    /// origin, on a thread that may wait.
    fn queue_for_second_level(self) -> bool {
        let (workers, lane) = (self.view.clone(), self.demand.lane());
        workers.workers.queue(Place::SecondLevel, lane, move || {
            if let Some(load) = self.ask_second_level(SecondLevel::read_here) {
                load.go_on_to_origin();
            }
        })
    }

    /// *Origin*: on a thread of its own, or on none if the origin reads in the background.
    fn go_on_to_origin(self) -> bool {
        if self.view.origin.reads_in_background() {
            self.ask_origin();
            return true;
        }
        let (workers, lane) = (self.view.clone(), self.demand.lane());
        workers.workers.queue(Place::Origin, lane, move || self.ask_origin())
    }

    /// Asks the second level. Answers the load, or returns it if the record is not there.
    fn ask_second_level(
        self,
        read: impl FnOnce(&SecondLevel, Version, u64, bool) -> Option<Vec<u8>>,
    ) -> Option<Self> {
        let MissingRecord { version, index, sequential, .. } = self.missing;
        let found = self.view.second_level.as_ref().and_then(|level| {
            let bytes = read(level, version, index, self.pristine)?;
            let may_be_kept = self.missing.open.may_be_kept;
            let worth = may_be_kept.then(|| level.worth(self.start_bytes(), sequential));
            Some((bytes, worth.unwrap_or_default()))
        });
        let Some((bytes, worth)) = found else { return Some(self) };
        self.view.counters.second_level_read(bytes.len() as u64);
        let event = Event::SecondLevel(bytes.len() as u64);
        self.view.observers.loads(version, index, event);
        let entry = self.entry(bytes, worth);
        self.answer(Ok(entry));
        None
    }

    /// Asks the origin, and answers the load.
    fn ask_origin(self) {
        Arriving::read(VecDeque::from([self]));
    }

    /// The origin has sent the record, after this time.
    fn arrived(self, bytes: Vec<u8>, took: Duration) {
        self.view.counters.origin_read(bytes.len() as u64, took);
        let event = Event::Origin(bytes.len() as u64);
        self.view.observers.loads(self.missing.version, self.missing.index, event);
        let worth = match &self.view.second_level {
            Some(level) if !self.missing.open.may_be_kept => {
                level.note_refused_path();
                Worth::Fleeting
            }
            Some(level) if self.pristine && self.view.is_still(&self.missing) => {
                level.worth(self.start_bytes(), self.missing.sequential)
            }
            _ => Worth::Fleeting,
        };
        let entry = self.entry(bytes, worth);
        self.answer(Ok(entry));
    }

    /// *Answered*: the record is in the cache, or the load has failed.
    fn answer(self, result: Result<Entry>) {
        let Self { claim, demand, .. } = self;
        let result = match result {
            Ok(entry) => {
                let weight_bytes = entry.weight_bytes();
                Ok(claim.fill(entry, weight_bytes))
            }
            Err(errno) => {
                match demand {
                    Demand::Prefetch { .. } => drop(claim),
                    Demand::Request(_) | Demand::Rest => claim.fail(errno),
                }
                Err(errno)
            }
        };
        if let Demand::Request(then) = demand {
            then(result);
        }
    }

    /// First byte of the record. No read asks for a record that begins beyond a `u64`.
    fn start_bytes(&self) -> u64 {
        self.missing.index * self.view.settings.record_size_bytes
    }

    /// The cache entry of a record.
    fn entry(&self, mut bytes: Vec<u8>, worth: Worth) -> Entry {
        let end = self.start_bytes() + bytes.len() as u64;
        if (bytes.len() as u64) < self.view.settings.record_size_bytes {
            // Before the record can be found in the cache: a write beyond this end has to
            // invalidate this record.
            self.missing.open.inode.update_contents(|contents| {
                if contents.version == self.missing.version {
                    contents.size_bytes = contents.size_bytes.min(end);
                }
            });
            bytes.shrink_to_fit();
        }
        Entry::Record(bytes, worth)
    }
}

impl<O: Origin> Start<O> {
    /// For an origin that asks for runs of at most this many bytes.
    pub(super) fn new(run_bytes: u64) -> Self {
        Self { run: VecDeque::new(), run_bytes }
    }

    /// Starts a load that a request waits for.
    pub(super) fn demanded(&mut self, load: Load<O>) {
        let is_started = self.prefetch(load);
        debug_assert!(is_started, "no demanded load is dropped");
    }

    /// Starts a load. False if the prefetch queue is full: then this load was dropped, or those
    /// before it.
    pub(super) fn prefetch(&mut self, load: Load<O>) -> bool {
        if load.may_be_in_second_level() {
            return load.queue_for_second_level();
        }
        if let Some(level) = &load.view.second_level {
            level.note_miss();
        }
        let records = self.run.len() as u64;
        let is_long = match load.view.origin.reads_in_background() {
            true => records * load.view.settings.record_size_bytes >= self.run_bytes,
            false => records >= load.view.records_at_once(),
        };
        let last = self.run.back().map(|last| last.missing.index);
        let is_gap = last.is_some_and(|last| last.checked_add(1) != Some(load.missing.index));
        let is_started = if is_long || is_gap { self.send() } else { true };
        self.run.push_back(load);
        is_started
    }

    /// Whether the next request can bring this record too.
    pub(super) fn has_room_for(&self, index: u64) -> bool {
        let Some(last) = self.run.back() else { return false };
        let bytes = self.run.len() as u64 * last.view.settings.record_size_bytes;
        last.missing.index.checked_add(1) == Some(index) && bytes < self.run_bytes
    }

    /// Starts the gathered loads.
    pub(super) fn finish(mut self) {
        self.send();
    }

    /// Starts the gathered loads, on a thread that may wait or on none. Either requests wait for
    /// all of them in the same way, or a request waits for the first and thereby for the others.
    fn send(&mut self) -> bool {
        let run = std::mem::take(&mut self.run);
        let Some(first) = run.front() else { return true };
        let (view, lane) = (first.view.clone(), first.demand.lane());
        if view.origin.reads_in_background() {
            Arriving::read(run);
            return true;
        }
        view.workers.queue(Place::Origin, lane, move || Arriving::read(run))
    }
}

impl<O: Origin> Arriving<O> {
    /// Reads consecutive records of one open file.
    fn read(run: VecDeque<Load<O>>) {
        let Some(first) = run.front() else { return };
        let (view, open) = (first.view.clone(), first.missing.open.clone());
        let records = Run {
            first: first.missing.index,
            records: run.len() as u64,
            record_size_bytes: view.settings.record_size_bytes as usize,
            size_bytes: open.inode.contents().map_or(u64::MAX, |contents| contents.size_bytes),
            is_demanded: run.iter().any(|load| !matches!(load.demand, Demand::Prefetch { .. })),
        };
        let whole = records.size_bytes / view.settings.record_size_bytes;
        let sink = Self { run, whole, asked: Instant::now(), here: None };
        view.origin.read_run(&open.file, records, sink);
    }
}

impl<O: Origin> RunSink for Arriving<O> {
    fn asks(&mut self) {
        // The time of a partial record says little about a whole one, and most files are small and
        // have no other.
        if self.run.front().is_some_and(|load| load.missing.index < self.whole) {
            let timed = TimedRead::begin();
            self.asked = timed.since();
            self.here = Some(timed);
        } else {
            self.asked = Instant::now();
        }
    }

    fn record(&mut self, index: u64, bytes: Vec<u8>) -> ControlFlow<()> {
        let took = self.asked.elapsed();
        if let (Some(timed), Some(load)) = (self.here.take(), self.run.front()) {
            load.view.origin_latency.note(&timed, took);
        }
        let is_next = self.run.front().is_some_and(|load| load.missing.index == index);
        if is_next && let Some(load) = self.run.pop_front() {
            load.arrived(bytes, took);
        }
        if is_next && !self.run.is_empty() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }

    /// Without an error, the records that did not come are beyond the end of the file: a reader
    /// asks for such a record alone. After an error, an origin that reads record by record has
    /// failed at the first of them only; the others are dropped without an answer.
    fn end(self, result: Result<()>) {
        let mut is_first = true;
        for load in self.run {
            let is_its = std::mem::take(&mut is_first) || load.view.origin.reads_in_background();
            match (result, &load.demand) {
                (Err(errno), _) if is_its => load.answer(Err(errno)),
                (Err(_), _) => drop(load),
                (Ok(()), Demand::Request(_)) => load.answer(Err(Errno::IO)),
                (Ok(()), Demand::Rest | Demand::Prefetch { .. }) => drop(load),
            }
        }
    }
}

#[cfg(test)]
mod tests;
