//! Sampled stacks, and tables of symbols, from any tool.
//!
//! Frames are leaf first. Weights are relative within one profile. The share of a symbol is a part
//! of the samples that were not idle.

use std::sync::Arc;

use super::Source;

/// One profile: stacks, rows of a symbol table, or both.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// Single sampled stacks (perf.data, `perf script`, folded stacks), complete.
    pub stacks: Vec<Stack>,
    /// Rows of a symbol table (`perf report`, `perf top`), percentages as printed.
    pub rows: Vec<SymbolRow>,
    /// Number of samples; `None` if not printed. Few samples are weak evidence.
    pub samples: Option<u64>,
    /// Whether weights have a meaning (folded stacks that all weigh 1 have none).
    pub weighted: bool,
    /// Whether the samples count time off CPU (lock waits, blocked time), not CPU time.
    pub off_cpu: bool,
}

/// One distinct stack.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// Thread name (comm), if known.
    pub thread: Option<String>,
    /// Name of its process, if the profile has process numbers and the name differs from the
    /// thread's.
    pub process: Option<String>,
    /// Frames, leaf first, never empty.
    pub frames: Vec<Frame>,
    /// Weight: samples, or any unit that is the same in the whole profile.
    pub weight: f64,
    /// Where it was read.
    pub source: Source,
}

/// One function on a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Function without offset and without suffixes such as `.isra.0`, `.constprop.1`, `.part.2`.
    pub symbol: Option<String>,
    /// Module or object without brackets and path: `zfs`, `icp`, `kernel`, `libzpool.so.5`.
    /// `[kernel.kallsyms]`, `[kernel]` and `vmlinux` are all `kernel`.
    pub module: Option<String>,
    /// Whether it is kernel code (`[k]`), if printed.
    pub kernel: Option<bool>,
}

/// One row of a symbol table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SymbolRow {
    /// Thread name, if the table has that column.
    pub thread: Option<String>,
    /// The function.
    pub frame: Frame,
    /// Percent of all samples in the function itself.
    pub self_percent: Option<f64>,
    /// Percent of all samples in the function and what it called ("children").
    pub total_percent: Option<f64>,
    /// Call chains shown with this row.
    pub chains: Vec<Chain>,
    /// Where it was read.
    pub source: Source,
}

/// Part of a call graph below a row of a symbol table, flattened by the reader.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    /// Frames, leaf first; the row's own function is one of them. Chains of one graph share them.
    pub frames: Vec<Arc<Frame>>,
    /// Percent of ALL samples that end in exactly this chain; relative percentages are multiplied
    /// out. The chains of a row do not overlap.
    pub percent: f64,
    /// Line of the deepest frame.
    pub source: Source,
}

/// A stack at one moment without a weight: `/proc/PID/stack`, a call trace of the kernel's log.
/// It shows where a thread is, not that it uses CPU there.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelStack {
    /// Thread name, if known.
    pub thread: Option<String>,
    /// Number of threads with this stack.
    pub count: u64,
    /// Frames, leaf first.
    pub frames: Vec<Frame>,
    /// Where it was read.
    pub source: Source,
}

/// Use of one lock, as a lock profiler counted it.
#[derive(Clone, Debug, PartialEq)]
pub struct LockUse {
    /// Lock, as the tool names it; may be an address.
    pub lock: String,
    /// Callers, nearest first.
    pub callers: Vec<Frame>,
    /// Contentions counted.
    pub count: Option<u64>,
    /// Total time that was lost to it, in nanoseconds.
    pub wait_ns: Option<f64>,
    /// Percent of the tool's table, 0 to 100.
    pub percent: Option<f64>,
    /// The tool's description: `adaptive spin`, `adaptive block`, `rwlock:R`, ...
    pub kind: String,
    /// Where it was read.
    pub source: Source,
}
