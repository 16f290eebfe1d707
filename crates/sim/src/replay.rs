//! Replays traces through many caches at once.
//!
//! The traces are read once, in chunks. Each chunk passes through every cache before the next is
//! read, one cache at a time on each thread. So a cache's tables stay in the processor's caches,
//! and memory is bounded by chunks and caches.
//!
//! Some figures need an earlier pass: the footprint for sizes in percent, and the future for MIN.
//! Standard input can be read only once, so it is spooled to a temporary file then.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::curve::Curve;
use crate::footprint::Footprint;
use crate::policy::{PolicyName, Request};
use crate::sampling::{sample_hash, threshold};
use crate::simulation::Simulation;
use crate::spooled_requests::{Spool, SpoolWriter};
use crate::trace::{Format, ReadCounts, ReadOptions, TraceError, Traces};

/// Requests that pass through one cache before the next one runs.
const CHUNK: usize = 1 << 17;

/// The size of a cache in a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SizeSpec {
    /// Bytes, or entries if every key weighs 1.
    Bytes(u64),
    /// Percent of the footprint.
    Percent(f64),
}

impl SizeSpec {
    /// The size in bytes, given the footprint; at least 1.
    #[must_use]
    pub fn bytes(self, footprint_bytes: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.max(1),
            Self::Percent(percent) => {
                ((footprint_bytes as f64 * percent / 100.0).round() as u64).max(1)
            }
        }
    }
}

/// The kind of the LRU curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CurvePlan {
    /// No curve.
    #[default]
    None,
    /// A curve of every key.
    Exact,
    /// A curve of a sample of this many keys.
    Sampled(usize),
}

/// A plan of a replay.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Trace files, `-` for standard input.
    pub traces: Vec<PathBuf>,
    /// How to read them.
    pub read: ReadOptions,
    /// The policies.
    pub policies: Vec<PolicyName>,
    /// The sizes; every policy runs at each.
    pub sizes: Vec<SizeSpec>,
    /// The curve.
    pub curve: CurvePlan,
    /// Share of the keys to replay, with caches reduced by the same factor; 1 for all.
    pub sample: f64,
    /// Threads that replay.
    pub threads: usize,
}

/// The progress of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The number of the pass over the traces, from 1.
    pub pass: u32,
    /// Compressed bytes read in this pass.
    pub bytes: u64,
    /// Requests read in this pass.
    pub requests: u64,
}

/// The result.
#[derive(Debug)]
pub struct Replay {
    /// Each policy at each size, in the order of the plan.
    pub rows: Vec<Simulation>,
    /// The curve, if the plan has one.
    pub curve: Option<Curve>,
    /// The counts of requests that were read.
    pub counts: ReadCounts,
    /// The format of each trace.
    pub formats: Vec<Format>,
    /// Different keys, their weight, and whether both are exact; `None` if the plan does not need
    /// it.
    pub footprint: Option<(u64, u64, bool)>,
    /// Requests that were in the sample.
    pub replayed: u64,
    /// Their weight, in bytes; equal to `replayed` if every key weighs 1.
    pub replayed_bytes: u64,
}

impl Replay {
    /// Whether sizes mean entries: every key weighs 1.
    #[must_use]
    pub const fn is_in_entries(&self) -> bool {
        self.replayed == self.replayed_bytes
    }
}

/// A replay failed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A trace could not be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The temporary file failed.
    #[error("cannot spool requests to {}: {error}; set TMPDIR to a directory with \
        room", std::env::temp_dir().display())]
    Spool {
        /// The reason.
        error: io::Error,
    },
    /// The caller stopped the replay.
    #[error("interrupted")]
    Interrupted,
    /// The traces have no requests.
    #[error("there are no requests in {0}")]
    Empty(String),
}

impl From<io::Error> for ReplayError {
    fn from(error: io::Error) -> Self {
        Self::Spool { error }
    }
}

/// Called before each chunk; false to stop.
pub type OnProgress<'a> = &'a mut dyn FnMut(Progress) -> bool;

/// A pass over the requests, from the traces or from the temporary file.
struct Feed {
    source: Source,
    threshold: u64,
    pass: u32,
    bytes: Arc<AtomicU64>,
    requests: u64,
}

enum Source {
    Traces(Box<Traces>),
    Spool(Spool),
}

impl Feed {
    fn traces(plan: &Plan, pass: u32) -> Self {
        let bytes = Arc::new(AtomicU64::new(0));
        let traces = Traces::new(&plan.traces, &plan.read, Arc::clone(&bytes));
        let source = Source::Traces(Box::new(traces));
        Self { source, threshold: threshold(plan.sample), pass, bytes, requests: 0 }
    }

    fn progress(&self) -> Progress {
        let bytes = self.bytes.load(Ordering::Relaxed);
        Progress { pass: self.pass, bytes, requests: self.requests }
    }

    /// Refills `chunk` with requests of the sample; empty at the end.
    fn read(&mut self, chunk: &mut Vec<Request>) -> Result<(), ReplayError> {
        chunk.clear();
        loop {
            let before = chunk.len();
            match &mut self.source {
                Source::Traces(traces) => traces.read(chunk, CHUNK)?,
                Source::Spool(spool) => spool.read(chunk, CHUNK)?,
            }
            let read = chunk.len() - before;
            self.requests += read as u64;
            if read == 0 {
                return Ok(());
            }
            if self.threshold == u64::MAX || matches!(self.source, Source::Spool(_)) {
                return Ok(());
            }
            // Even a pass with few requests in the sample returns regularly, for the progress.
            let mut at = 0;
            chunk.retain(|request| {
                at += 1;
                at <= before || sample_hash(request.key) <= self.threshold
            });
            if chunk.len() >= CHUNK / 2 || (!chunk.is_empty() && self.threshold < u64::MAX / 64) {
                return Ok(());
            }
        }
    }
}

/// A consumer of every chunk.
enum Job<'a> {
    Simulation(&'a mut Simulation),
    Curve(&'a mut Curve),
}

/// Runs every cache over a chunk while `read` fetches the next one.
fn run_chunk<T>(
    rows: &mut [Simulation],
    curve: Option<&mut Curve>,
    chunk: &[Request],
    threads: usize,
    read: impl FnOnce() -> T,
) -> T {
    let jobs = rows.iter_mut().map(Job::Simulation).chain(curve.map(Job::Curve));
    let run = |job: Job<'_>| match job {
        Job::Simulation(simulation) => simulation.run(chunk),
        Job::Curve(curve) => curve.add(chunk),
    };
    if threads <= 1 {
        jobs.for_each(run);
        return read();
    }
    let jobs = Mutex::new(jobs);
    let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(job) = next() {
                    run(job);
                }
            });
        }
        read()
    })
}

/// Replays traces.
///
/// # Errors
/// [`ReplayError`]: a trace that cannot be read, a temporary file that cannot be written, or an
/// interruption.
pub fn replay(plan: &Plan, on_progress: OnProgress<'_>) -> Result<Replay, ReplayError> {
    let needs_future = !plan.sizes.is_empty() && plan.policies.iter().any(|p| p.needs_future());
    let needs_footprint = plan.sizes.iter().any(|size| matches!(size, SizeSpec::Percent(_)));
    let mut feed = Feed::traces(plan, 1);
    let mut footprint = Footprint::default();
    let mut counts = None;
    if needs_future || needs_footprint {
        let is_once = plan.traces.iter().any(|path| path == Path::new("-"));
        let spool = (needs_future || is_once).then(SpoolWriter::new).transpose()?;
        let (spool, read) = first_pass(&mut feed, &mut footprint, spool, on_progress)?;
        counts = Some(read);
        feed = match spool {
            Some(writer) => {
                let source = Source::Spool(writer.finish(needs_future)?);
                Feed { source, pass: 2, requests: 0, ..feed }
            }
            None => Feed::traces(plan, 2),
        };
    }
    let sampled = plan.sample.clamp(f64::MIN_POSITIVE, 1.0);
    let footprint_bytes = footprint.bytes() as f64 / sampled;
    let entry_bytes = footprint.bytes() / footprint.keys().max(1);
    let mut rows = Vec::new();
    for &policy in &plan.policies {
        for &size in &plan.sizes {
            let bytes = size.bytes(footprint_bytes as u64) as f64 * sampled;
            rows.push(Simulation::new(policy, (bytes as u64).max(1), entry_bytes.max(1)));
        }
    }
    let mut curve = match plan.curve {
        CurvePlan::None => None,
        CurvePlan::Exact => Some(Curve::exact()),
        CurvePlan::Sampled(keys_max) => Some(Curve::sampled(keys_max)),
    };
    let keep_footprint = counts.is_none() && plan.curve != CurvePlan::None;
    let (mut chunk, mut next) = (Vec::with_capacity(CHUNK), Vec::with_capacity(CHUNK));
    let (mut replayed, mut replayed_bytes) = (0, 0_u64);
    feed.read(&mut chunk)?;
    while !chunk.is_empty() {
        if !on_progress(feed.progress()) {
            return Err(ReplayError::Interrupted);
        }
        replayed += chunk.len() as u64;
        replayed_bytes += chunk.iter().map(|request| request.bytes).sum::<u64>();
        if keep_footprint {
            footprint.add(&chunk);
        }
        let read = || feed.read(&mut next);
        run_chunk(&mut rows, curve.as_mut(), &chunk, plan.threads, read)?;
        std::mem::swap(&mut chunk, &mut next);
    }
    on_progress(feed.progress());
    let (formats, read) = match &feed.source {
        Source::Traces(traces) => (traces.formats().to_vec(), traces.counts()),
        Source::Spool(_) => (Vec::new(), ReadCounts::default()),
    };
    let (read, formats) = match counts {
        Some((read, formats)) => (read, formats),
        None => (read, formats),
    };
    if read.requests == 0 {
        let names: Vec<String> =
            plan.traces.iter().map(|path| path.display().to_string()).collect();
        return Err(ReplayError::Empty(names.join(", ")));
    }
    let known = needs_future || needs_footprint || keep_footprint;
    let footprint = known.then(|| {
        let keys = (footprint.keys() as f64 / sampled) as u64;
        (keys, (footprint.bytes() as f64 / sampled) as u64, footprint.is_exact() && sampled >= 1.0)
    });
    Ok(Replay { rows, curve, counts: read, formats, footprint, replayed, replayed_bytes })
}

/// The pass that measures the footprint, and spools requests if they are needed again.
#[allow(clippy::type_complexity, reason = "used once, right above")]
fn first_pass(
    feed: &mut Feed,
    footprint: &mut Footprint,
    mut spool: Option<SpoolWriter>,
    on_progress: OnProgress<'_>,
) -> Result<(Option<SpoolWriter>, (ReadCounts, Vec<Format>)), ReplayError> {
    let mut chunk = Vec::with_capacity(CHUNK);
    loop {
        feed.read(&mut chunk)?;
        if chunk.is_empty() {
            break;
        }
        if !on_progress(feed.progress()) {
            return Err(ReplayError::Interrupted);
        }
        footprint.add(&chunk);
        if let Some(spool) = &mut spool {
            spool.write(&chunk)?;
        }
    }
    let read = match &feed.source {
        Source::Traces(traces) => (traces.counts(), traces.formats().to_vec()),
        Source::Spool(_) => (ReadCounts::default(), Vec::new()),
    };
    Ok((spool, read))
}
