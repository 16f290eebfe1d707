//! Facts about a whole profile: the event, the rate, the machine, the duration and what is missing.

use serde::Serialize;

/// The unit of a sample's weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum WeightUnit {
    /// Nanoseconds on a CPU.
    Nanoseconds,
    /// Clock cycles.
    Cycles,
    /// Samples: a weight of 1 each, or the number in a folded line.
    #[default]
    Samples,
    /// Another quantity that the event counts: bytes, faults, instructions.
    Events,
}

/// The sampling rate that was requested.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Rate {
    /// This many per second on each CPU.
    Hertz(f64),
    /// One sample for this many events.
    Period(u64),
    /// The source does not give it.
    #[default]
    Unknown,
}

/// The recognised format of a source.
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

/// Why frames have no name. [`crate::symbols::advice()`] has the remedy for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// /proc/kallsyms shows zeros instead of addresses.
    KallsymsHidden,
    /// The profile was taken by another kernel and contains no symbols of it.
    OtherKernel,
    /// The available symbols contain none of this kernel module.
    ModuleUnknown,
    /// The file of the module is of another build than the module that ran.
    BuildDiffers,
    /// The module's or program's file could not be found or read.
    FileMissing,
    /// The file has no symbol table.
    Stripped,
    /// The address is in no file: generated code, or a stack without frame pointers.
    NoMapping,
    /// The text or folded input has no name here.
    UnnamedInSource,
}

/// Frames of one module that have no name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Unresolved {
    /// The module: `[zfs]`, a path, `[unknown]`.
    pub module: String,
    /// Whether it is kernel code.
    pub kernel: bool,
    /// The number of distinct addresses.
    pub addresses: u64,
    /// Weight of the samples whose leaf is such a frame, without those of the idle task.
    pub self_weight: u64,
    /// The reason.
    pub reason: Reason,
}

/// The facts about a whole profile. A field that the source does not give is empty or `None`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Meta {
    /// The format of the source.
    pub format: Format,
    /// The event sampled: `cpu-clock`, `cycles`.
    pub event: String,
    /// The unit of weights.
    pub unit: WeightUnit,
    /// The sampling rate.
    pub rate: Rate,
    /// When sampling began, in nanoseconds since 1970 (UTC).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began_unix_ns: Option<u64>,
    /// The time from the first sample to the last, or the length of sampling, in nanoseconds.
    pub duration_ns: Option<u64>,
    /// The clock's value at the first sample, in nanoseconds; its zero depends on the clock.
    pub first_time_ns: Option<u64>,
    /// Samples that the kernel took and did not deliver.
    pub lost_samples: u64,
    /// Samples read, before any merging.
    pub samples: u64,
    /// Samples without any stack.
    pub without_stack: u64,
    /// The step to which times of samples are rounded down after merging; 0 for exact times.
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
    /// Sentences about parts that could not be read or used.
    pub notes: Vec<String>,
    /// Frames without a name, most weight first.
    pub unresolved: Vec<Unresolved>,
}

impl Meta {
    /// Whether samples count the time that threads waited instead of the time that they ran, as the
    /// tracepoints of locks and of context switches do. A tracepoint's name begins with its group,
    /// which distinguishes it from `cpu-clock:ppp`.
    pub fn is_of_waiting(&self) -> bool {
        self.event.split([',', ' ']).any(|event| match event.split_once(':') {
            Some(("lock", _)) => true,
            Some(("sched", name)) => name.starts_with("sched_switch") || name.contains("_stat_"),
            _ => false,
        })
    }

    /// Adds a sentence about a part that could not be used. Repetitions are left out, and the
    /// number is at most a hundred.
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
    fn tracepoints_are_distinguished_from_clocks_by_their_group() {
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
