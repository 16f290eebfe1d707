//! Samples this machine: the stacks of all CPUs at a fixed rate, by perf_event_open(2).
//!
//! Each CPU has one event and one ring. The event is cycles if the processor counts them, else the
//! CPU clock. A thread drains the rings. It sleeps for the time in which a quarter of a ring fills,
//! at most half a second. The caller's thread passes the records in the order of time to the
//! `Assembler` that also reads files. Nothing on the machine is changed. Memory: the rings, a queue
//! of records, and the profile.

pub mod contention;
mod drain;
mod event;
mod rights;
mod snapshot;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime};

use linux_perf_event_reader::Endianness;
use regex::Regex;

use crate::assemble::Assembler;
use crate::model::{Format, Meta, Profile};
use crate::read::perf_data::TimeOrder;
use crate::symbols::{SymbolOptions, Symbols};
use drain::Batch;

pub use rights::{Rights, rights};

/// The highest useful rate.
pub const HERTZ_MAX: u32 = 10_000;
/// Events opened at most: threads times CPUs if the whole machine may not be sampled.
const EVENTS_MAX: usize = 1024;
/// The time until a request to stop is seen, at most.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// The processes or threads to sample.
#[derive(Debug, Clone, Default)]
pub enum Target {
    /// The whole machine.
    #[default]
    System,
    /// Processes.
    Processes(Vec<i32>),
    /// Threads by name, mostly kernel threads.
    Threads(Regex),
}

/// The method that finds callers in user space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallGraph {
    /// By a copy of the stack and the unwind tables of programs, or by frame pointers where there
    /// is no table. All programs have callers.
    #[default]
    Dwarf,
    /// By frame pointers alone, in the kernel: this costs less CPU and needs programs that have
    /// them.
    FramePointers,
}

/// A request to sample.
#[derive(Debug, Clone)]
pub struct Request {
    /// The processes or threads to sample.
    pub target: Target,
    /// Samples per second on each CPU. An odd rate such as 99 does not beat with timers.
    pub hertz: u32,
    /// The length of sampling.
    pub duration: Duration,
    /// The method that finds callers in user space.
    pub call_graph: CallGraph,
    /// A process that is left out of the whole machine, such as the sampler itself.
    pub leave_out: Option<i32>,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            target: Target::System,
            hertz: 99,
            duration: Duration::from_secs(30),
            call_graph: CallGraph::default(),
            leave_out: None,
        }
    }
}

/// The reason why sampling failed, and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The kernel does not allow it.
    #[error("the kernel does not let this user sample {what}: {source}; {advice}")]
    Denied {
        /// The request that was refused.
        what: &'static str,
        /// The error of the kernel.
        source: io::Error,
        /// The smallest permission that would allow it.
        advice: String,
    },
    /// The kernel lacks or hides a feature.
    #[error("{what}; {advice}")]
    Missing {
        /// The missing feature.
        what: &'static str,
        /// The remedy.
        advice: &'static str,
    },
    /// The process does not exist.
    #[error("there is no process {pid}")]
    NoProcess {
        /// The process.
        pid: i32,
    },
    /// Something else failed.
    #[error("cannot sample: {what}: {source}")]
    Failed {
        /// The operation.
        what: &'static str,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The request is invalid.
    #[error("cannot sample: {0}")]
    InvalidRequest(String),
}

/// Called with the time since sampling began and the number of samples.
pub type Tick<'t> = &'t mut dyn FnMut(Duration, u64);

/// Samples until the time is over or `stop` is set. It blocks; a signal that sets `stop` also ends
/// the wait.
///
/// # Errors
///
/// See [`LiveError`].
pub fn sample(request: &Request, stop: &AtomicBool, tick: Tick<'_>) -> Result<Profile, LiveError> {
    if request.hertz == 0 || request.hertz > HERTZ_MAX {
        return Err(LiveError::InvalidRequest(format!(
            "{} samples a second; between 1 and {HERTZ_MAX} make sense",
            request.hertz
        )));
    }
    let mut opened = event::open(request)?;
    let uname = rustix::system::uname();
    let text = |text: &std::ffi::CStr| Some(text.to_string_lossy().into_owned());
    let mut meta = Meta {
        format: Format::Live,
        host: text(uname.nodename()),
        os_release: text(uname.release()),
        arch: text(uname.machine()),
        cpus_online: u32::try_from(opened.cpus).ok(),
        ..Meta::default()
    };
    for note in opened.notes.drain(..) {
        meta.note(note);
    }
    let release = meta.os_release.clone().unwrap_or_default();
    let options = SymbolOptions { local: true, live: true, ..SymbolOptions::default() };
    let mut symbols = Symbols::new(options);
    symbols.set_release(&release);
    let mut assembler = Assembler::new(Profile::new(meta), symbols, NATIVE);
    assembler.add_event(&opened.attribute);
    match &request.target {
        Target::System => {
            if let Some(left_out) = request.leave_out {
                assembler.keep_threads(move |pid, _| pid != left_out);
            }
        }
        Target::Processes(pids) => {
            let pids = pids.clone();
            assembler.keep_threads(move |pid, _| pids.contains(&pid));
        }
        Target::Threads(name) => {
            let name = name.clone();
            assembler.keep_threads(move |_, thread| name.is_match(thread));
        }
    }
    for sampler in &mut opened.samplers {
        sampler
            .enable()
            .map_err(|source| LiveError::Failed { what: "starting a counter", source })?;
    }
    let started = Instant::now();
    let began = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let watched = match &request.target {
        Target::Processes(pids) => pids.clone(),
        Target::System | Target::Threads(_) => Vec::new(),
    };
    let mut live = Live { assembler, rounds: TimeOrder::default(), watched };
    let event::Opened { samplers, pause, .. } = opened;
    let done = AtomicBool::new(false);
    let duration = std::thread::scope(|scope| {
        let (sender, batches) = drain::queue();
        let done = &done;
        let drainer = scope.spawn(move || drain::run(samplers, pause, done, &sender));
        snapshot::take(&mut live.assembler, &request.target);
        live.run(&batches, request.duration, started, stop, tick);
        let duration = started.elapsed();
        done.store(true, Ordering::Release);
        drainer.thread().unpark();
        batches.iter().for_each(|batch| live.take(&batch));
        duration
    });
    let mut profile = live.end();
    profile.meta.duration_ns = u64::try_from(duration.as_nanos()).ok();
    profile.meta.began_unix_ns = u64::try_from(began.as_nanos()).ok();
    Ok(profile)
}

const NATIVE: Endianness =
    if cfg!(target_endian = "big") { Endianness::BigEndian } else { Endianness::LittleEndian };

struct Live {
    assembler: Assembler,
    rounds: TimeOrder,
    /// Sampling ends when the last of these processes ends.
    watched: Vec<i32>,
}

impl Live {
    fn run(
        &mut self,
        batches: &Receiver<Batch>,
        duration: Duration,
        started: Instant,
        stop: &AtomicBool,
        tick: Tick<'_>,
    ) {
        loop {
            let left = duration.saturating_sub(started.elapsed());
            if left.is_zero() || stop.load(Ordering::Relaxed) {
                return;
            }
            match batches.recv_timeout(left.min(PAUSE_MAX)) {
                Ok(batch) => self.take(&batch),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            tick(started.elapsed(), self.assembler.profile_mut().meta.samples);
            if !self.watched.is_empty() && !self.watched.iter().any(|pid| event::exists(*pid)) {
                self.assembler.profile_mut().meta.note("the sampled processes have ended");
                return;
            }
        }
    }

    fn take(&mut self, batch: &Batch) {
        let Self { assembler, rounds, .. } = self;
        batch.each(|record| {
            let time_ns = assembler.time_ns(&record);
            rounds.add(record, time_ns, &mut |record| assembler.record(record));
        });
        if batch.is_round {
            rounds.end_round(&mut |record| assembler.record(record));
        }
    }

    fn end(self) -> Profile {
        let Self { mut assembler, mut rounds, .. } = self;
        rounds.end(&mut |record| assembler.record(record));
        assembler.finish()
    }
}
