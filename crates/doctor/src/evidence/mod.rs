//! Evidence: typed facts, each with its source.
//!
//! Readers (`crate::read`) write it, and rules read it through the functions of
//! `crate::expression`. A missing fact is missing: no field has a default with a meaning, and an
//! empty list means "not shown", never "none there".

mod host;
mod profile;
mod settings;
mod source;
mod table;
mod task;

pub use host::{CpuUse, Host, OneCpu, Statement, Thread, Timing};
pub use profile::{Chain, Frame, KernelStack, LockUse, Profile, Stack, SymbolRow};
pub use settings::{Parameter, PoolLine, Property};
pub use source::Source;
pub use table::{Figure, Number, Table};
pub use task::Task;

/// Everything that was given, understood.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// The host.
    pub host: Host,
    /// Use of the CPUs, one entry an interval.
    pub cpu: Vec<CpuUse>,
    /// Use of single CPUs, where a tool lists them.
    pub single_cpus: Vec<OneCpu>,
    /// Threads and processes.
    pub threads: Vec<Thread>,
    /// Threads and processes as the kernel counts them; those of two readings stand behind each
    /// other.
    pub tasks: Vec<Task>,
    /// Commands that were timed.
    pub timings: Vec<Timing>,
    /// Profiles.
    pub profiles: Vec<Profile>,
    /// Stacks without weight.
    pub kernel_stacks: Vec<KernelStack>,
    /// Lock use.
    pub locks: Vec<LockUse>,
    /// Figures; two tables of one name and scope with different times are two snapshots.
    pub tables: Vec<Table>,
    /// Properties of datasets and pools.
    pub properties: Vec<Property>,
    /// Parameters.
    pub parameters: Vec<Parameter>,
    /// `zpool status` in words.
    pub pools: Vec<PoolLine>,
    /// Lines of the kernel's log, and of ZFS's own (`dbgmsg`), without their time stamp.
    pub log: Vec<Statement<String>>,
    /// When lines of the kernel's log were written, seconds since the start of the machine.
    pub log_stamps: Vec<(Source, f64)>,
    /// The inputs and their formats.
    pub inputs: Vec<Input>,
    /// Lines that no format claims: sentences and damage. They are counted and shown; rules match
    /// them through their `words` alone, as a hint for a cause.
    pub not_understood: Vec<Statement<String>>,
}

/// One input and how it was understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Input {
    /// Its name.
    pub name: std::sync::Arc<str>,
    /// What it was taken for: `top`, `perf report`, `arcstats`; several are possible in one paste.
    pub formats: Vec<String>,
    /// Facts taken from it.
    pub facts: usize,
    /// Its lines that are not empty.
    pub lines: usize,
    /// Those of them that no format claims.
    pub unread: usize,
    /// Number of the first of these.
    pub first_unread: Option<u32>,
    /// Its trouble (truncated, binary, too large), as a sentence.
    pub trouble: Option<String>,
    /// Whether it ends early, so that its beginning alone was read.
    pub in_part: bool,
}
