//! Evidence: typed facts, each with its source.
//!
//! Readers (`crate::read`) write it, and rules read it through the functions of
//! `crate::expression`. No field has a default that stands for a fact. An empty list means "not
//! shown", never "there are none".

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

/// All facts of all inputs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// The host.
    pub host: Host,
    /// Use of the CPUs, one entry per interval.
    pub cpu: Vec<CpuUse>,
    /// Use of single CPUs, if a tool lists them.
    pub single_cpus: Vec<OneCpu>,
    /// Threads and processes.
    pub threads: Vec<Thread>,
    /// Threads and processes as the kernel counts them; a second reading follows the first.
    pub tasks: Vec<Task>,
    /// Commands that were timed.
    pub timings: Vec<Timing>,
    /// Profiles.
    pub profiles: Vec<Profile>,
    /// Stacks without weight.
    pub kernel_stacks: Vec<KernelStack>,
    /// Lock use.
    pub locks: Vec<LockUse>,
    /// Figures; two tables of one name and scope with different times are two readings.
    pub tables: Vec<Table>,
    /// Properties of datasets and pools.
    pub properties: Vec<Property>,
    /// Parameters.
    pub parameters: Vec<Parameter>,
    /// `zpool status` in words.
    pub pools: Vec<PoolLine>,
    /// Lines of the kernel's log, and of ZFS's own (`dbgmsg`), without their time stamp.
    pub log: Vec<Statement<String>>,
    /// Times of lines of the kernel's log, in seconds since boot.
    pub log_stamps: Vec<(Source, f64)>,
    /// The inputs and their formats.
    pub inputs: Vec<Input>,
    /// Lines that no format claims: sentences and damage. They are counted and shown. Rules match
    /// them only through their `words`, as a hint for a cause.
    pub not_understood: Vec<Statement<String>>,
}

/// One input, and how it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Input {
    /// Its name.
    pub name: std::sync::Arc<str>,
    /// The formats that were recognised, such as `top`, `perf report`, `arcstats`; a paste may have
    /// several.
    pub formats: Vec<String>,
    /// Facts taken from it.
    pub facts: usize,
    /// Number of its non-empty lines.
    pub lines: usize,
    /// Number of those that no format claims.
    pub unread: usize,
    /// Number of the first unread line.
    pub first_unread: Option<u32>,
    /// Its problems (truncated, binary, too large), as a sentence.
    pub trouble: Option<String>,
    /// Whether it ends early, so that only its beginning was read.
    pub in_part: bool,
}
