//! Sampling of this machine: the stacks of all CPUs so many times a second, by perf_event_open(2).
//!
//! There is one event and one ring for each CPU. The event is cycles where the processor counts
//! them, else the CPU clock. The caller's thread sleeps for as long as a ring takes to fill by a
//! quarter, half a second at most. Then it drains the rings and gives the records, in the order of
//! time, to the same `Assembler` that reads files. Nothing on the machine is changed. Memory: the
//! rings, and what a profile needs.

pub mod contention;
mod event;
mod rights;
mod snapshot;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use linux_perf_event_reader::Endianness;
use perf_event::Sampler;
use regex::Regex;
use rustix::event::{Timespec, poll};

use crate::assemble::Assembler;
use crate::model::{Format, Meta, Profile};
use crate::read::perf_data::{Record, Rounds};
use crate::symbols::{SymbolOptions, Symbols};

pub use rights::{Rights, rights};

/// Rates at which sampling makes sense.
pub const HERTZ_MAX: u32 = 10_000;
/// Events opened at most: threads times CPUs where the whole machine may not be sampled.
const EVENTS_MAX: usize = 1024;

/// Whose stacks.
#[derive(Debug, Clone, Default)]
pub enum Target {
    /// The whole machine.
    #[default]
    System,
    /// Processes.
    Processes(Vec<i32>),
    /// Threads by name, kernel threads above all.
    Threads(Regex),
}

/// What to sample.
#[derive(Debug, Clone)]
pub struct Request {
    /// Whose stacks.
    pub target: Target,
    /// How often a second on each CPU. Odd rates do not beat with timers: 99.
    pub hertz: u32,
    /// For how long.
    pub duration: Duration,
    /// A process that is left out of the whole machine: who looks does not look at itself.
    pub leave_out: Option<i32>,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            target: Target::System,
            hertz: 99,
            duration: Duration::from_secs(30),
            leave_out: None,
        }
    }
}

/// Why sampling was not possible, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The kernel does not allow it.
    #[error("the kernel does not let this user sample {what}: {source}; {advice}")]
    Denied {
        /// What was asked for.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
        /// The smallest thing that would allow it.
        advice: String,
    },
    /// The kernel lacks what is needed, or hides it.
    #[error("{what}; {advice}")]
    Missing {
        /// What is lacking.
        what: &'static str,
        /// What would help.
        advice: &'static str,
    },
    /// The process is not there.
    #[error("there is no process {pid}")]
    NoProcess {
        /// The process.
        pid: i32,
    },
    /// Something else failed.
    #[error("cannot sample: {what}: {source}")]
    Failed {
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The request makes no sense.
    #[error("cannot sample: {0}")]
    Senseless(String),
}

/// Called with how long sampling has been going on, and how many samples there are.
pub type Tick<'t> = &'t mut dyn FnMut(Duration, u64);

/// Samples until the time is over or `stop` is set. Blocks; a signal that sets `stop` also ends the
/// wait.
///
/// # Errors
///
/// See [`LiveError`].
pub fn sample(request: &Request, stop: &AtomicBool, tick: Tick<'_>) -> Result<Profile, LiveError> {
    if request.hertz == 0 || request.hertz > HERTZ_MAX {
        return Err(LiveError::Senseless(format!(
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
    assembler.add_event(&event::attribute(opened.kind, request.hertz, opened.exclude_kernel));
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
    snapshot::take(&mut assembler, &request.target);
    let watched = match &request.target {
        Target::Processes(pids) => pids.clone(),
        Target::System | Target::Threads(_) => Vec::new(),
    };
    let (samplers, pause) = (opened.samplers, opened.pause);
    let mut live = Live { assembler, rounds: Rounds::default(), samplers, pause, watched };
    live.run(request.duration, started, stop, tick)?;
    let mut profile = live.end();
    let duration_ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
    profile.meta.duration_ns = Some(duration_ns);
    profile.meta.began_unix_ns = u64::try_from(began.as_nanos()).ok();
    Ok(profile)
}

const NATIVE: Endianness =
    if cfg!(target_endian = "big") { Endianness::BigEndian } else { Endianness::LittleEndian };

struct Live {
    assembler: Assembler,
    rounds: Rounds,
    samplers: Vec<Sampler>,
    /// Between two drainings.
    pause: Duration,
    /// Sampling ends when the last of these processes does.
    watched: Vec<i32>,
}

impl Live {
    fn run(
        &mut self,
        duration: Duration,
        started: Instant,
        stop: &AtomicBool,
        tick: Tick<'_>,
    ) -> Result<(), LiveError> {
        loop {
            let elapsed = started.elapsed();
            let left = duration.saturating_sub(elapsed);
            if left.is_zero() || stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let wait = left.min(self.pause);
            let timeout = Timespec {
                tv_sec: i64::try_from(wait.as_secs()).unwrap_or(1),
                tv_nsec: i64::from(wait.subsec_nanos()),
            };
            // Unlike a sleep, a wait for nothing ends with a signal.
            match poll(&mut [], Some(&timeout)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => {
                    let source = error.into();
                    return Err(LiveError::Failed { what: "waiting for samples", source });
                }
            }
            self.drain();
            tick(started.elapsed(), self.assembler.profile_mut().meta.samples);
            if !self.watched.is_empty() && !self.watched.iter().any(|pid| event::exists(*pid)) {
                self.assembler.profile_mut().meta.note("what was sampled has ended");
                return Ok(());
            }
        }
    }

    fn drain(&mut self) {
        let Self { assembler, rounds, samplers, .. } = self;
        for sampler in samplers {
            while let Some(record) = sampler.next_record() {
                let body = record.to_contiguous();
                let record =
                    Record { kind: record.ty(), misc: record.misc(), event: 0, body: &body };
                let time_ns = assembler.time_ns(&record);
                rounds.add(record, time_ns, &mut |record| assembler.record(record));
            }
        }
        rounds.end_round(&mut |record| assembler.record(record));
    }

    fn end(mut self) -> Profile {
        for sampler in &mut self.samplers {
            // The rings stay readable, and closing them stops them anyway.
            let _ = sampler.disable();
        }
        self.drain();
        let Self { mut assembler, mut rounds, .. } = self;
        rounds.end(&mut |record| assembler.record(record));
        assembler.finish()
    }
}
