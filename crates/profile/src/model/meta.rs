//! Facts about a profile as a whole: what was counted, how often, where, for how long, and what is
//! missing.

use serde::Serialize;

/// What a sample's weight counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum WeightUnit {
    /// Nanoseconds on a CPU.
    Nanoseconds,
    /// Clock cycles.
    Cycles,
    /// Samples: a weight of 1 each, or as many as a folded line says.
    #[default]
    Samples,
    /// Something else that the event counts: bytes, faults, instructions.
    Events,
}

/// How often samples were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Rate {
    /// This many per second on each CPU.
    Hertz(f64),
    /// One in this many events.
    Period(u64),
    /// The source does not say.
    #[default]
    Unknown,
}

/// What a source was recognised as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// perf.data as a file.
    PerfData,
    /// perf.data as `perf record -o -` writes it to a pipe.
    PerfPipe,
    /// The text of `perf script`.
    PerfScript,
    /// Folded stacks, one a line: `a;b;c 42`.
    Folded,
    /// pprof's protocol buffer.
    Pprof,
    /// Sampled by ogive itself.
    #[default]
    Live,
}

/// Why frames have no name. Each says what to do, through [`crate::symbols::advice()`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// /proc/kallsyms shows zeros instead of addresses.
    KallsymsHidden,
    /// The profile was taken by another kernel, and brings no symbols of it.
    OtherKernel,
    /// The symbols at hand have nothing of this kernel module.
    ModuleUnknown,
    /// The module's file is of another build than the one that ran.
    BuildDiffers,
    /// The module's or program's file could not be found or read.
    FileMissing,
    /// The file has no symbol table.
    Stripped,
    /// The address is in no file: generated code, or a stack without frame pointers.
    NoMapping,
    /// The text or folded input had no name here.
    UnnamedInSource,
}

/// Frames of one module that have no name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Unresolved {
    /// The module: `[zfs]`, a path, `[unknown]`.
    pub module: String,
    /// Whether it is kernel code.
    pub kernel: bool,
    /// How many distinct addresses.
    pub addresses: u64,
    /// Weight of the samples whose leaf it is, those of the idle task left out.
    pub self_weight: u64,
    /// Why.
    pub reason: Reason,
}

/// The facts of a profile as a whole. A field that the source does not give is empty or `None`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Meta {
    /// What the source was.
    pub format: Format,
    /// The event sampled: `cpu-clock`, `cycles`.
    pub event: String,
    /// What weights count.
    pub unit: WeightUnit,
    /// How often.
    pub rate: Rate,
    /// When sampling began, in nanoseconds since 1970 (UTC).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began_unix_ns: Option<u64>,
    /// From the first sample to the last, or as long as sampling ran, in nanoseconds.
    pub duration_ns: Option<u64>,
    /// The clock's value at the first sample, in nanoseconds; what it counts from depends on the
    /// clock.
    pub first_time_ns: Option<u64>,
    /// Samples taken by the kernel that did not reach us.
    pub lost_samples: u64,
    /// Samples read, before any merging.
    pub samples: u64,
    /// Samples without any stack.
    pub without_stack: u64,
    /// Times of samples are rounded down to this, when so many came that they had to be merged;
    /// 0 for exact times.
    pub time_step_ns: u64,
    /// Whether the samples have times.
    pub has_times: bool,
    /// Name of the machine.
    pub host: Option<String>,
    /// Kernel release, as `uname -r`.
    pub os_release: Option<String>,
    /// Processor architecture.
    pub arch: Option<String>,
    /// CPUs that were online.
    pub cpus_online: Option<u32>,
    /// The command line that recorded it.
    pub command: Option<String>,
    /// What could not be read or used, one sentence each.
    pub notes: Vec<String>,
    /// What could not be named, most weight first.
    pub unresolved: Vec<Unresolved>,
}

impl Meta {
    /// Whether samples stand for time that threads waited, and not for time that they ran: those of
    /// the tracepoints of locks and of switches. An event is a tracepoint by its group, so that
    /// `cpu-clock:ppp` is none.
    pub fn is_of_waiting(&self) -> bool {
        self.event.split([',', ' ']).any(|event| match event.split_once(':') {
            Some(("lock", _)) => true,
            Some(("sched", name)) => name.starts_with("sched_switch") || name.contains("_stat_"),
            _ => false,
        })
    }

    /// Adds a sentence about what could not be used. Repetitions are left out, and there are at
    /// most a hundred.
    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if self.notes.len() < 100 && !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracepoints_are_told_from_clocks_by_their_group() {
        for (event, is_of_waiting) in [
            ("lock:contention_begin", true),
            ("cycles, lock:lock_acquire", true),
            ("cpu-clock:pppH", false),
            ("sched:sched_switch", true),
            ("sched:sched_wakeup", false),
            ("cpu-clock:ppp", false),
            ("cycles:P", false),
            ("", false),
        ] {
            let meta = Meta { event: event.to_owned(), ..Meta::default() };
            assert_eq!(meta.is_of_waiting(), is_of_waiting, "{event}");
        }
    }
}
