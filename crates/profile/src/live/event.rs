//! Opens the events: it chooses the counter, the threads and the rings, and explains a refusal of
//! the kernel.

use std::io;
use std::path::Path;
use std::time::Duration;

use perf_event::events::{Hardware, Software};
use perf_event::{Builder, Clock, SampleFlag, Sampler};

use super::snapshot::numbers;
use super::{CallGraph, EVENTS_MAX, LiveError, NATIVE, Request, Target, rights};
use crate::read::perf_data::Attribute;
use crate::unwind::Arch;

/// Bytes of a sample with the deepest stack, 127 frames.
const SAMPLE_BYTES: u64 = 1200;
/// Bytes that are copied from the top of a user's stack. Compilers have 30 KiB, most programs 5.
const COPIES_BYTES: [u32; 3] = [32 << 10, 16 << 10, 8 << 10];
/// Bytes that all CPUs together copy in a second at most, unless copies are the shortest.
const COPIED_BYTES_MAX: u64 = 32 << 20;
/// Seconds that fill a ring. They set its size within bounds.
const RING_SECONDS: u64 = 4;
const RING_BYTES_MIN: u64 = 128 << 10;
const RING_BYTES_MAX: u64 = 8 << 20;
/// Memory that every user may lock for each CPU, unless `kernel.perf_event_mlock_kb` differs.
const RING_BYTES_ALLOWED: u64 = 512 << 10;
/// Samples with copies that a ring must have room for.
const RING_SAMPLES_MIN: u64 = 4;
/// Bytes of all rings at most, unless they have the smallest size.
const RINGS_BYTES_MAX: u64 = 128 << 20;

/// The counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Cycles,
    CpuClock,
}

/// Open events.
pub(super) struct Opened {
    pub(super) samplers: Vec<Sampler>,
    /// The attribute for the record decoder.
    pub(super) attribute: Attribute,
    pub(super) cpus: usize,
    /// The time after which the rings must be drained.
    pub(super) pause: Duration,
    pub(super) notes: Vec<String>,
}

/// The threads, the CPUs and the rings of the events.
struct Plan {
    /// `None` for all threads.
    tids: Option<Vec<i32>>,
    cpus: Vec<usize>,
    exclude_kernel: bool,
    /// The processor if user stacks are copied, otherwise `None`.
    copies: Option<Arch>,
    hertz: u32,
    /// Smaller than desirable if this user may not lock more.
    ring_bytes_max: u64,
}

/// Whether a process exists.
pub(super) fn exists(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Opens the events of a request. If the user may not sample the whole machine, processes are
/// sampled thread by thread, and without the kernel's part if that is not permitted either. Both
/// are noted.
pub(super) fn open(request: &Request) -> Result<Opened, LiveError> {
    if let Target::Processes(pids) = &request.target {
        if let Some(pid) = pids.iter().copied().find(|pid| !exists(*pid)) {
            return Err(LiveError::NoProcess { pid });
        }
        if pids.is_empty() {
            return Err(LiveError::InvalidRequest("no process is given".to_owned()));
        }
    }
    let mut plan = Plan {
        tids: None,
        cpus: cpus(),
        exclude_kernel: false,
        copies: Arch::native().filter(|_| request.call_graph == CallGraph::Dwarf),
        hertz: request.hertz,
        ring_bytes_max: RING_BYTES_MAX,
    };
    let denied = match plan.open_without_need_of_copies() {
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
        // The sum of all rings must not exceed the memory that one user may lock.
        for ring_bytes_max in [RING_BYTES_MAX, 128 << 10, 64 << 10, 16 << 10, 4 << 10] {
            plan.ring_bytes_max = ring_bytes_max;
            if let Ok(mut opened) = plan.open_without_need_of_copies() {
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
    /// With copies of stacks, or else without, because rings with copies exceed what some users may
    /// lock.
    fn open_without_need_of_copies(&mut self) -> io::Result<Opened> {
        if self.copies.is_none() {
            return self.open();
        }
        let (copies, most) = (self.copies, self.ring_bytes_max);
        for ring_bytes_max in [most, most.min(RING_BYTES_ALLOWED)] {
            self.ring_bytes_max = ring_bytes_max;
            if self.ring_bytes() as u64 >= RING_SAMPLES_MIN * self.sample_bytes()
                && let Ok(opened) = self.open()
            {
                return Ok(opened);
            }
        }
        (self.copies, self.ring_bytes_max) = (None, most);
        let opened = self.open();
        self.copies = copies;
        let mut opened = opened?;
        opened.notes.push(
            "this user may not lock as much memory as copies of stacks need: callers in programs \
             without frame pointers are missing"
                .to_owned(),
        );
        Ok(opened)
    }

    /// Bytes of a sample at most.
    fn sample_bytes(&self) -> u64 {
        SAMPLE_BYTES + u64::from(self.copy_bytes())
    }

    /// Bytes that are copied of a user's stack.
    fn copy_bytes(&self) -> u32 {
        let [.., shortest] = COPIES_BYTES;
        let samples = u64::from(self.hertz) * self.cpus.len() as u64;
        let fits = |copy: &u32| samples * u64::from(*copy) <= COPIED_BYTES_MAX;
        let copy = COPIES_BYTES.into_iter().find(fits).unwrap_or(shortest);
        self.copies.map_or(0, |_| copy)
    }

    fn ring_bytes(&self) -> usize {
        let desired = u64::from(self.hertz) * self.sample_bytes() * RING_SECONDS;
        let rings = self.cpus.len() * self.tids.as_ref().map_or(1, Vec::len);
        let share = RINGS_BYTES_MAX / (rings.max(1) as u64);
        // A ring has a power of two of pages. Rounding up stays within the bound.
        let most = self.ring_bytes_max.min(share.max(RING_BYTES_MIN));
        let most = if most.is_power_of_two() { most } else { most.next_power_of_two() / 2 };
        let least = RING_BYTES_MIN.min(most);
        usize::try_from(desired.clamp(least, most)).unwrap_or(usize::MAX)
    }

    fn open(&self) -> io::Result<Opened> {
        match self.open_kind(Kind::Cycles) {
            Ok(samplers) => Ok(self.opened(samplers, Kind::Cycles)),
            Err(error) if is_denied(&error) => Err(error),
            // This processor or virtual machine has no counter.
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
        let per_second = u64::from(self.hertz) * self.sample_bytes();
        let quarter_ms = self.ring_bytes() as u64 * 250 / per_second.max(1);
        Opened {
            samplers,
            attribute: self.attribute(kind),
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
            let tids = match &self.tids {
                None => &everybody[..],
                Some(tids) => {
                    some = tids.iter().copied().map(Some).collect();
                    &some
                }
            };
            for tid in tids {
                match self.open_one(kind, *cpu, *tid) {
                    Ok(sampler) => samplers.push(sampler),
                    // The thread has ended or the CPU is offline.
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
            .sample(self.fields())
            .sample_id_all(true)
            .mmap(true)
            .mmap2(true)
            .comm(true)
            .comm_exec(true)
            .task(true)
            .ksymbol(!self.exclude_kernel && tid.is_none())
            .clockid(Clock::MONOTONIC)
            .wakeup_watermark(self.ring_bytes() / 2);
        if let Some(arch) = self.copies {
            builder.sample_regs_user(arch.sampled()).sample_stack_user(self.copy_bytes());
        }
        builder.build()?.sampled(self.ring_bytes())
    }

    fn fields(&self) -> SampleFlag {
        let copies = SampleFlag::REGS_USER | SampleFlag::STACK_USER;
        SampleFlag::IP
            | SampleFlag::TID
            | SampleFlag::TIME
            | SampleFlag::CPU
            | SampleFlag::PERIOD
            | SampleFlag::CALLCHAIN
            | self.copies.map_or(SampleFlag::empty(), |_| copies)
    }

    /// The attribute as the kernel has it, for the record decoder: a `perf_event_attr` of
    /// `include/uapi/linux/perf_event.h`.
    fn attribute(&self, kind: Kind) -> Attribute {
        const FREQUENCY: u64 = 1 << 10;
        const EXCLUDE_KERNEL: u64 = 1 << 5;
        const SAMPLE_ID_ALL: u64 = 1 << 18;
        let type_number: u32 = match kind {
            Kind::Cycles => 0,
            Kind::CpuClock => 1,
        };
        let kernel = if self.exclude_kernel { EXCLUDE_KERNEL } else { 0 };
        let (hertz, fields) = (u64::from(self.hertz), self.fields().bits());
        let registers = self.copies.map_or(0, Arch::sampled);
        let mut bytes = Vec::new();
        bytes.extend(type_number.to_ne_bytes());
        bytes.extend(96u32.to_ne_bytes());
        let flags = FREQUENCY | SAMPLE_ID_ALL | kernel;
        for number in [0, hertz, fields, 0, flags, 0, 0, 0, 0, registers] {
            bytes.extend(u64::to_ne_bytes(number));
        }
        bytes.extend(self.copy_bytes().to_ne_bytes());
        bytes.extend(0u32.to_ne_bytes());
        Attribute::parse(&bytes, NATIVE).expect("96 bytes are a whole description of version 3")
    }
}

pub(super) fn is_gone(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(rustix::io::Errno::from_raw_os_error);
    matches!(errno, Some(rustix::io::Errno::SRCH | rustix::io::Errno::NODEV))
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
    fn the_attribute_matches_the_request() {
        for copies in [None, Some(Arch::X86_64)] {
            let plan = Plan {
                tids: None,
                cpus: vec![0, 1],
                exclude_kernel: false,
                copies,
                hertz: 99,
                ring_bytes_max: RING_BYTES_MAX,
            };
            let attribute = plan.attribute(Kind::CpuClock);
            assert_eq!((attribute.kind, attribute.config), (1, 0));
            assert!(attribute.frequency && attribute.period == 99);
            assert_eq!(attribute.attr.sample_format.bits(), plan.fields().bits());
            let copied = attribute.attr.sample_stack_user;
            assert_eq!(copied, copies.map_or(0, |_| 32 << 10));
            let registers = attribute.attr.sample_regs_user.count_ones();
            assert_eq!(registers, copies.map_or(0, |_| 17));
        }
    }

    #[test]
    fn any_number_of_rings_is_bounded() {
        let mut plan = Plan {
            tids: None,
            cpus: vec![0, 1],
            exclude_kernel: false,
            copies: Some(Arch::X86_64),
            hertz: 99,
            ring_bytes_max: RING_BYTES_MAX,
        };
        assert_eq!(plan.ring_bytes() as u64, RING_BYTES_MAX);
        for (cpus, copy) in [(10, 32), (20, 16), (128, 8), (512, 8), (1000, 8)] {
            plan.cpus = (0..cpus).collect();
            assert_eq!(plan.copy_bytes(), copy << 10);
            let all = plan.ring_bytes().next_power_of_two() * cpus;
            assert!(all as u64 <= RINGS_BYTES_MAX, "{cpus}: {all}");
        }
        plan.ring_bytes_max = 4 << 10;
        assert_eq!(plan.ring_bytes(), 4 << 10);
    }
}
