//! Opening of the events: which counter, of whom, and what the kernel says when it does not want
//! to.

use std::io;
use std::path::Path;
use std::time::Duration;

use perf_event::events::{Hardware, Software};
use perf_event::{Builder, Clock, SampleFlag, Sampler};

use super::snapshot::numbers;
use super::{EVENTS_MAX, LiveError, NATIVE, Request, Target, rights};
use crate::read::perf_data::Attribute;

/// A sample with the deepest stack, 127 frames, is so long.
const SAMPLE_BYTES: u64 = 1200;
/// Rings are so large that they fill in so many seconds at least.
const RING_SECONDS: u64 = 4;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Cycles,
    CpuClock,
}

/// Events that are open.
pub(super) struct Opened {
    pub(super) samplers: Vec<Sampler>,
    pub(super) kind: Kind,
    pub(super) exclude_kernel: bool,
    pub(super) cpus: usize,
    /// How long the rings can be left alone.
    pub(super) pause: Duration,
    pub(super) notes: Vec<String>,
}

/// Whose events, on which CPUs.
struct Plan {
    /// `None` for everybody.
    tids: Option<Vec<i32>>,
    cpus: Vec<usize>,
    exclude_kernel: bool,
    ring_bytes: usize,
    hertz: u32,
}

/// Whether a process is there.
pub(super) fn exists(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Opens what a request asks for. Where the whole machine may not be sampled, processes are sampled
/// thread by thread, and without the kernel's part where that is not allowed either; both are
/// noted.
pub(super) fn open(request: &Request) -> Result<Opened, LiveError> {
    if let Target::Processes(pids) = &request.target {
        if let Some(pid) = pids.iter().copied().find(|pid| !exists(*pid)) {
            return Err(LiveError::NoProcess { pid });
        }
        if pids.is_empty() {
            return Err(LiveError::Senseless("no process is given".to_owned()));
        }
    }
    let ring = u64::from(request.hertz) * SAMPLE_BYTES * RING_SECONDS;
    let mut plan = Plan {
        tids: None,
        cpus: cpus(),
        exclude_kernel: false,
        ring_bytes: usize::try_from(ring.clamp(128 << 10, 8 << 20)).unwrap_or(128 << 10),
        hertz: request.hertz,
    };
    let denied = match plan.open() {
        Ok(opened) => return Ok(opened),
        Err(error) if is_denied(&error) => error,
        Err(source) => return Err(LiveError::Failed { what: "opening a counter", source }),
    };
    let Target::Processes(pids) = &request.target else {
        return Err(LiveError::Denied {
            what: "the whole machine",
            source: denied,
            advice: rights::advice(),
        });
    };
    plan.tids = Some(pids.iter().flat_map(|pid| numbers(&format!("/proc/{pid}/task"))).collect());
    let events = plan.tids.as_ref().map_or(0, Vec::len) * plan.cpus.len();
    if events > EVENTS_MAX {
        return Err(LiveError::Denied {
            what: "the whole machine, and the process has too many threads to do without",
            source: denied,
            advice: rights::advice(),
        });
    }
    for exclude_kernel in [false, true] {
        plan.exclude_kernel = exclude_kernel;
        // All rings together must fit into what one user may lock.
        for ring_bytes in [plan.ring_bytes, 64 << 10, 16 << 10, 4 << 10] {
            plan.ring_bytes = ring_bytes;
            if let Ok(mut opened) = plan.open() {
                opened.notes.push(
                    "the machine as a whole may not be sampled by this user: threads that \
                     existed at the start are, with those they start"
                        .to_owned(),
                );
                if exclude_kernel {
                    opened.notes.push(format!(
                        "the kernel's part of stacks is missing; {}",
                        rights::advice()
                    ));
                }
                return Ok(opened);
            }
        }
    }
    Err(LiveError::Denied { what: "this process", source: denied, advice: rights::advice() })
}

pub(super) fn is_denied(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error().map(rustix::io::Errno::from_raw_os_error),
        Some(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM)
    )
}

impl Plan {
    fn open(&self) -> io::Result<Opened> {
        match self.open_kind(Kind::Cycles) {
            Ok(samplers) => Ok(self.opened(samplers, Kind::Cycles)),
            Err(error) if is_denied(&error) => Err(error),
            // No counter in this processor, or in this virtual machine.
            Err(_) => {
                let samplers = self.open_kind(Kind::CpuClock)?;
                let mut opened = self.opened(samplers, Kind::CpuClock);
                opened.notes.push(
                    "there is no cycle counter here: the CPU clock samples, and code that runs \
                     with interrupts off is charged to where they come back on"
                        .to_owned(),
                );
                Ok(opened)
            }
        }
    }

    fn opened(&self, samplers: Vec<Sampler>, kind: Kind) -> Opened {
        let per_second = u64::from(self.hertz) * SAMPLE_BYTES;
        let quarter_ms = self.ring_bytes as u64 * 250 / per_second.max(1);
        Opened {
            samplers,
            kind,
            exclude_kernel: self.exclude_kernel,
            cpus: self.cpus.len(),
            pause: Duration::from_millis(quarter_ms.clamp(20, 500)),
            notes: Vec::new(),
        }
    }

    fn open_kind(&self, kind: Kind) -> io::Result<Vec<Sampler>> {
        let mut samplers = Vec::new();
        for cpu in &self.cpus {
            let everybody = [None];
            let some: Vec<Option<i32>>;
            let whose = match &self.tids {
                None => &everybody[..],
                Some(tids) => {
                    some = tids.iter().copied().map(Some).collect();
                    &some
                }
            };
            for tid in whose {
                match self.open_one(kind, *cpu, *tid) {
                    Ok(sampler) => samplers.push(sampler),
                    // A thread that has ended, a CPU that went offline.
                    Err(error) if is_gone(&error) && !samplers.is_empty() => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(samplers)
    }

    fn open_one(&self, kind: Kind, cpu: usize, tid: Option<i32>) -> io::Result<Sampler> {
        let mut builder = match kind {
            Kind::Cycles => Builder::new(Hardware::CPU_CYCLES),
            Kind::CpuClock => Builder::new(Software::CPU_CLOCK),
        };
        match tid {
            Some(tid) => builder.observe_pid(tid).inherit(true),
            None => builder.any_pid(),
        };
        builder
            .one_cpu(cpu)
            .exclude_kernel(self.exclude_kernel)
            .exclude_hv(self.exclude_kernel)
            .exclude_callchain_kernel(self.exclude_kernel)
            .sample_frequency(u64::from(self.hertz))
            .sample(fields())
            .sample_id_all(true)
            .mmap(true)
            .mmap2(true)
            .comm(true)
            .comm_exec(true)
            .task(true)
            .ksymbol(!self.exclude_kernel && tid.is_none())
            .clockid(Clock::MONOTONIC)
            .wakeup_watermark(self.ring_bytes / 2);
        builder.build()?.sampled(self.ring_bytes)
    }
}

pub(super) fn is_gone(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(rustix::io::Errno::from_raw_os_error);
    matches!(errno, Some(rustix::io::Errno::SRCH | rustix::io::Errno::NODEV))
}

fn fields() -> SampleFlag {
    SampleFlag::IP
        | SampleFlag::TID
        | SampleFlag::TIME
        | SampleFlag::CPU
        | SampleFlag::PERIOD
        | SampleFlag::CALLCHAIN
}

/// The same description as the kernel has, for the decoder of records: a `perf_event_attr` of
/// `include/uapi/linux/perf_event.h`.
pub(super) fn attribute(kind: Kind, hertz: u32, exclude_kernel: bool) -> Attribute {
    const FREQUENCY: u64 = 1 << 10;
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    const SAMPLE_ID_ALL: u64 = 1 << 18;
    let type_number: u32 = match kind {
        Kind::Cycles => 0,
        Kind::CpuClock => 1,
    };
    let kernel = if exclude_kernel { EXCLUDE_KERNEL } else { 0 };
    let mut bytes = Vec::new();
    bytes.extend(type_number.to_ne_bytes());
    bytes.extend(64u32.to_ne_bytes());
    for number in
        [0, u64::from(hertz), fields().bits(), 0, FREQUENCY | SAMPLE_ID_ALL | kernel, 0, 0]
    {
        bytes.extend(number.to_ne_bytes());
    }
    Attribute::parse(&bytes, NATIVE).expect("64 bytes are a whole description of version 0")
}

/// CPUs that are online: `0-3,8`.
pub(super) fn cpus() -> Vec<usize> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let listed = parse_cpus(text.trim());
    if !listed.is_empty() {
        return listed;
    }
    (0..std::thread::available_parallelism().map_or(1, std::num::NonZero::get)).collect()
}

fn parse_cpus(text: &str) -> Vec<usize> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>())
            && last < 65_536
        {
            cpus.extend(first..=last);
        }
    }
    cpus
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(parse_cpus("0-3,8"), [0, 1, 2, 3, 8]);
        assert_eq!(parse_cpus("0"), [0]);
        assert_eq!(parse_cpus("nonsense"), Vec::<usize>::new());
    }

    #[test]
    fn the_description_says_what_was_asked_for() {
        let attribute = attribute(Kind::CpuClock, 99, false);
        assert_eq!((attribute.kind, attribute.config), (1, 0));
        assert!(attribute.frequency && attribute.period == 99);
        assert_eq!(attribute.attr.sample_format.bits(), fields().bits());
    }
}
