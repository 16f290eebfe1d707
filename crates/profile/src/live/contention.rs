//! Measures waits for the kernel's locks on this machine as they happen. It uses the kernel's
//! contention tracepoints on every CPU through perf_event_open(2).
//!
//! A wait costs two records, and a lock without waiters costs nothing. Nothing is mounted or
//! configured. Memory: two rings per CPU, and a row for each caller.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use perf_event::events::Tracepoint;
use perf_event::{Builder, Clock, SampleFlag, Sampler};
use rustix::event::{Timespec, poll};
use rustix::time::{ClockId, clock_gettime};

use super::{LiveError, event, rights};
use crate::locks::LockTable;
use crate::locks::contention::{Contention, Layout};
use crate::symbols::Kallsyms;

/// Bytes of each ring. A record with a stack has some 300 bytes.
const RING_BYTES: usize = 1 << 20;
/// The time between two drains.
const PAUSE: Duration = Duration::from_millis(50);
/// Kinds of records, of `include/uapi/linux/perf_event.h`.
const LOST: u32 = 2;
const SAMPLE: u32 = 9;

/// Called with the time since the observation began.
pub type Tick<'t> = &'t mut dyn FnMut(Duration);

/// Observes all waits until the time is over or `stop` is set.
///
/// # Errors
///
/// The kernel has no such tracepoints, they are not visible here, or this user may not use them.
pub fn watch(
    duration: Duration,
    stop: &AtomicBool,
    tick: Tick<'_>,
) -> Result<LockTable, LiveError> {
    let folder = folder()?;
    let begin = layout(&folder, "contention_begin")?;
    let end = layout(&folder, "contention_end")?;
    let kallsyms = std::fs::read("/proc/kallsyms").unwrap_or_default();
    let symbols = Kallsyms::parse(&kallsyms);
    let hidden = symbols.is_hidden() || symbols.is_empty();
    let mut contention = Contention::new(begin, end, symbols);
    let mut samplers = Vec::new();
    for cpu in event::cpus() {
        for (layout, stacks) in [(begin, true), (end, false)] {
            match open(cpu, layout, stacks) {
                Ok(sampler) => samplers.push(sampler),
                Err(source) if event::is_denied(&source) => {
                    let what = "waits for locks";
                    return Err(LiveError::Denied { what, source, advice: rights::advice() });
                }
                // The CPU is offline.
                Err(source) if event::is_gone(&source) && !samplers.is_empty() => {}
                Err(source) => {
                    return Err(LiveError::Failed { what: "opening a tracepoint", source });
                }
            }
        }
    }
    for sampler in &mut samplers {
        sampler
            .enable()
            .map_err(|source| LiveError::Failed { what: "starting a tracepoint", source })?;
    }
    let started = Instant::now();
    loop {
        let elapsed = started.elapsed();
        let left = duration.saturating_sub(elapsed);
        if left.is_zero() || stop.load(Ordering::Relaxed) {
            break;
        }
        wait(left.min(PAUSE))?;
        drain(&mut samplers, &mut contention);
        tick(started.elapsed());
    }
    let seconds = started.elapsed().as_secs_f64();
    for sampler in &mut samplers {
        // The rings stay readable, and closing them stops them anyway.
        let _ = sampler.disable();
    }
    drain(&mut samplers, &mut contention);
    let mut table = contention.end(seconds, &kallsyms);
    if hidden {
        table.notes.push(
            "/proc/kallsyms shows no addresses to this user: callers have no names; see \
             kernel.kptr_restrict"
                .to_owned(),
        );
    }
    Ok(table)
}

/// The directory that describes tracepoints: in tracefs, if it is mounted.
fn folder() -> Result<PathBuf, LiveError> {
    for place in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"].map(Path::new) {
        match std::fs::metadata(place.join("events")) {
            Ok(_) => return Ok(place.join("events/lock")),
            Err(source) if event::is_denied(&source) => return Err(denied(source)),
            Err(_) => {}
        }
    }
    Err(LiveError::Missing {
        what: "the kernel's tracepoints are not visible here",
        advice: "as root: mount -t tracefs nodev /sys/kernel/tracing (a kernel without \
                 CONFIG_TRACEPOINTS has none)",
    })
}

fn denied(source: std::io::Error) -> LiveError {
    LiveError::Denied { what: "waits for locks", source, advice: "run it as root".to_owned() }
}

fn layout(folder: &Path, name: &str) -> Result<Layout, LiveError> {
    let path = folder.join(name).join("format");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(source) if event::is_denied(&source) => return Err(denied(source)),
        Err(_) => {
            return Err(LiveError::Missing {
                what: "this kernel has no tracepoints lock:contention_begin and contention_end",
                advice: "Linux has them since 5.19; before, \"ogive profile\" shows who spins below \
                         whom, and a kernel with CONFIG_LOCK_STAT counts in /proc/lock_stat",
            });
        }
    };
    Layout::parse(&text).ok_or(LiveError::Missing {
        what: "this kernel describes its tracepoints of contention in an unknown format",
        advice: "\"perf lock contention -ab\" may work; \"ogive threads --locks\" reads its output",
    })
}

fn open(cpu: usize, layout: Layout, stacks: bool) -> std::io::Result<Sampler> {
    let fields = SampleFlag::TID | SampleFlag::TIME | SampleFlag::CPU;
    let mut builder = Builder::new(Tracepoint::with_id(u64::from(layout.id)));
    builder
        .any_pid()
        .one_cpu(cpu)
        .include_kernel()
        .sample_period(1)
        .sample(fields | SampleFlag::CALLCHAIN | SampleFlag::RAW)
        .exclude_callchain_user(true)
        // The end of a wait needs no stack; the field stays, so both records have one format.
        .exclude_callchain_kernel(!stacks)
        .clockid(Clock::MONOTONIC)
        .wakeup_watermark(RING_BYTES / 2);
    builder.build()?.sampled(RING_BYTES)
}

/// Unlike a sleep, a poll without descriptors ends with a signal.
fn wait(time: Duration) -> Result<(), LiveError> {
    let timeout = Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(1),
        tv_nsec: i64::from(time.subsec_nanos()),
    };
    match poll(&mut [], Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(LiveError::Failed { what: "waiting for records", source: error.into() }),
    }
}

/// Drains the rings. They contain every record from before the call.
fn drain(samplers: &mut [Sampler], contention: &mut Contention) {
    let now = clock_gettime(ClockId::Monotonic);
    let until_ns = (now.tv_sec as u64).saturating_mul(1_000_000_000) + now.tv_nsec as u64;
    for sampler in samplers {
        while let Some(record) = sampler.next_record() {
            let body = record.to_contiguous();
            match record.ty() {
                SAMPLE => contention.add(&body),
                LOST => {
                    let lost = body.get(8..16).and_then(|bytes| bytes.try_into().ok());
                    contention.note_lost(lost.map_or(1, u64::from_ne_bytes));
                }
                _ => {}
            }
        }
    }
    contention.settle(until_ns);
}
