//! A profile in memory: samples of (time, CPU, thread, stack, weight) over interned names.
//!
//! Invariants: merging keeps the sum of weights, and a stack's caller has a smaller number than the
//! stack. Memory is bounded however long the input. Over [`SAMPLES_MAX`], samples are merged by
//! time step, thread and stack, and the step doubles each time. No locks, no I/O.

mod event;
mod ids;
mod merge;
mod meta;
mod query;
mod stacks;
pub(crate) mod strings;

pub(crate) use event::{event_base, samples_of, samples_of_event};
pub use ids::{FrameId, StackId, StringId, ThreadId};
pub use meta::{Format, Meta, Rate, Reason, Unresolved, WeightUnit};
pub use query::{Share, SymbolShare, View};

use hashbrown::HashMap;
use serde::Serialize;

use stacks::Stacks;
use strings::Strings;

/// More samples than this are merged.
pub const SAMPLES_MAX: usize = if cfg!(test) { 20_000 } else { 2_000_000 };
/// Frames at most; further ones all become "\[too many functions\]".
const FRAMES_MAX: usize = 4_000_000;
/// Threads at most; all further ones become one thread.
const THREADS_MAX: usize = 1_000_000;

pub(crate) type Map<K, V> = HashMap<K, V, foldhash::fast::FixedState>;

/// The CPU of a sample if the source does not give it.
pub const CPU_UNKNOWN: u32 = u32::MAX;

/// OpenZFS's modules as [`Frame::module`] shows them, from before and after they became one.
pub(crate) const ZFS_MODULES: [&str; 10] = [
    "[zfs]",
    "[spl]",
    "[icp]",
    "[zavl]",
    "[znvpair]",
    "[zunicode]",
    "[zcommon]",
    "[zlua]",
    "[zzstd]",
    "[splat]",
];

/// Whether a frame ran in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Kernel or kernel module.
    Kernel,
    /// A program or library.
    User,
    /// The source does not give the mode.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct FrameKey {
    symbol: StringId,
    module: StringId,
    mode: Mode,
    /// Distinguishes frames only where they have no symbol.
    address: u64,
}

/// A frame for display: one function of one module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'p> {
    /// The function; empty when it has no name.
    pub symbol: &'p str,
    /// The module as perf writes it: `[kernel.kallsyms]`, `[zfs]`, a path, `[unknown]`; empty if
    /// the source does not give it.
    pub module: &'p str,
    /// Kernel or user.
    pub mode: Mode,
    /// An address in the frame, in the address space of the sample; 0 when unknown. A frame with a
    /// symbol keeps the first address that was added.
    pub address: u64,
}

impl<'p> Frame<'p> {
    /// The text to show: the function, or the module in brackets.
    pub fn name(&self) -> std::borrow::Cow<'p, str> {
        if !self.symbol.is_empty() {
            return self.symbol.into();
        }
        let short = self.module_name();
        if short.starts_with('[') { short.into() } else { format!("[{short}]").into() }
    }

    /// The module without its directory: `[zfs]`, or the file name of a library.
    pub fn module_name(&self) -> &'p str {
        match self.module.rsplit('/').next() {
            Some(last) if !last.is_empty() => last,
            _ if self.module.is_empty() => "[unknown]",
            _ => self.module,
        }
    }
}

/// A thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thread<'p> {
    /// The process; -1 when unknown.
    pub pid: i32,
    /// The thread; -1 when unknown.
    pub tid: i32,
    /// Its name, at most 15 bytes on Linux.
    pub name: &'p str,
}

/// A sample, or several merged ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// The time in nanoseconds of the source's clock; 0 when unknown.
    pub time_ns: u64,
    /// The weight, in [`Meta::unit`].
    pub weight: u64,
    /// The sampled thread.
    pub thread: ThreadId,
    /// The CPU; [`CPU_UNKNOWN`] when unknown or merged over several.
    pub cpu: u32,
    /// The stack of the thread.
    pub stack: StackId,
    /// How many samples were merged into this one.
    pub count: u32,
}

/// The limit of the sum of all weights.
const WEIGHT_MAX: u64 = u64::MAX >> 8;

/// A profile: see the module's head.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    /// The facts about the whole profile.
    pub meta: Meta,
    /// The sum of all weights.
    pushed_weight: u64,
    strings: Strings,
    frames: Vec<FrameKey>,
    frame_addresses: Vec<u64>,
    frame_index: Map<FrameKey, FrameId>,
    stacks: Stacks,
    threads: Vec<(i32, i32, StringId)>,
    thread_index: Map<(i32, i32, StringId), ThreadId>,
    samples: Vec<Sample>,
}

impl Profile {
    /// An empty profile.
    pub fn new(meta: Meta) -> Self {
        Self { meta, ..Self::default() }
    }

    /// Interns a text.
    pub fn intern(&mut self, text: &str) -> StringId {
        self.strings.intern(text)
    }

    /// The text with this number.
    pub fn string(&self, id: StringId) -> &str {
        self.strings.get(id)
    }

    /// Interns a frame. Frames without a symbol are distinguished by `address`; with address 0 they
    /// are one frame per module.
    pub fn add_frame(
        &mut self,
        symbol: StringId,
        module: StringId,
        mode: Mode,
        address: u64,
    ) -> FrameId {
        let apart = if symbol == StringId::EMPTY { address } else { 0 };
        let key = FrameKey { symbol, module, mode, address: apart };
        if let Some(&found) = self.frame_index.get(&key) {
            return found;
        }
        if self.frames.len() >= FRAMES_MAX {
            let symbol = self.strings.intern("[too many functions]");
            let key = FrameKey { symbol, module: StringId::EMPTY, mode, address: 0 };
            if let Some(&found) = self.frame_index.get(&key) {
                return found;
            }
            return self.insert_frame(key, 0);
        }
        self.insert_frame(key, address)
    }

    fn insert_frame(&mut self, key: FrameKey, address: u64) -> FrameId {
        let id = FrameId(u32::try_from(self.frames.len()).expect("FRAMES_MAX is below 2^32"));
        self.frames.push(key);
        self.frame_addresses.push(address);
        self.frame_index.insert(key, id);
        id
    }

    /// The frame with this number.
    pub fn frame(&self, id: FrameId) -> Frame<'_> {
        let key = self.frames[id.index()];
        Frame {
            symbol: self.strings.get(key.symbol),
            module: self.strings.get(key.module),
            mode: key.mode,
            address: self.frame_addresses[id.index()],
        }
    }

    /// Symbol, module and mode of a frame, by number.
    pub(crate) fn frame_ids(&self, id: FrameId) -> (StringId, StringId, Mode) {
        let key = self.frames[id.index()];
        (key.symbol, key.module, key.mode)
    }

    /// All frames in the order of their numbers.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = (FrameId, Frame<'_>)> {
        (0..self.frames.len() as u32).map(|id| (FrameId(id), self.frame(FrameId(id))))
    }

    /// The stack in which `caller` called `frame`.
    pub fn push_frame(&mut self, caller: StackId, frame: FrameId) -> StackId {
        self.stacks.push(caller, frame)
    }

    /// The frames of a stack, leaf first.
    pub fn stack(&self, stack: StackId) -> impl Iterator<Item = FrameId> {
        let mut at = stack;
        std::iter::from_fn(move || {
            let (frame, caller) = self.stacks.split(at)?;
            at = caller;
            Some(frame)
        })
    }

    /// The leaf frame of a stack and the stack that called it; `None` for the empty one.
    pub fn split_stack(&self, stack: StackId) -> Option<(FrameId, StackId)> {
        self.stacks.split(stack)
    }

    /// The number of stacks, including those that are only callers.
    pub fn stacks_len(&self) -> usize {
        self.stacks.len()
    }

    /// Interns a thread.
    pub fn add_thread(&mut self, pid: i32, tid: i32, name: &str) -> ThreadId {
        let key = (pid, tid, self.strings.intern(name));
        if let Some(&found) = self.thread_index.get(&key) {
            return found;
        }
        let last = u32::try_from(self.threads.len()).expect("THREADS_MAX is below 2^32");
        if self.threads.len() >= THREADS_MAX {
            return ThreadId(last - 1);
        }
        self.threads.push(key);
        self.thread_index.insert(key, ThreadId(last));
        ThreadId(last)
    }

    /// The thread with this number.
    pub fn thread(&self, id: ThreadId) -> Thread<'_> {
        let (pid, tid, name) = self.threads[id.index()];
        Thread { pid, tid, name: self.strings.get(name) }
    }

    /// All threads in the order of their numbers.
    pub fn threads(&self) -> impl ExactSizeIterator<Item = Thread<'_>> {
        (0..self.threads.len() as u32).map(|id| self.thread(ThreadId(id)))
    }

    /// Adds a sample. A weight that would bring the sum above `WEIGHT_MAX` is cut, so no sum
    /// overflows. Only a damaged or hostile source has such weights.
    pub fn push(&mut self, mut sample: Sample) {
        sample.weight = sample.weight.min(WEIGHT_MAX - self.pushed_weight);
        self.pushed_weight += sample.weight;
        self.meta.samples = self.meta.samples.saturating_add(u64::from(sample.count));
        if sample.stack == StackId::EMPTY {
            self.meta.without_stack =
                self.meta.without_stack.saturating_add(u64::from(sample.count));
        }
        if self.samples.len() >= SAMPLES_MAX {
            merge::merge(&mut self.samples, &mut self.meta.time_step_ns);
        }
        self.samples.push(sample);
    }

    /// Removes all samples; names, stacks and threads stay.
    pub(crate) fn forget_samples(&mut self) {
        self.samples.clear();
        self.pushed_weight = 0;
        let meta = &mut self.meta;
        (meta.samples, meta.without_stack, meta.time_step_ns) = (0, 0, 0);
    }

    /// The samples in the order in which they were added.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Must be called after the last sample. Computes the duration and notes the frames that were
    /// dropped.
    pub fn finish(&mut self) {
        let times = self.samples.iter().map(|sample| sample.time_ns).filter(|time| *time > 0);
        let span = times.fold(None, |span: Option<(u64, u64)>, time| {
            let (first, last) = span.unwrap_or((time, time));
            Some((first.min(time), last.max(time)))
        });
        self.meta.has_times = span.is_some();
        if let Some((first, last)) = span {
            self.meta.first_time_ns.get_or_insert(first);
            self.meta.duration_ns.get_or_insert(last - first);
        }
        if self.stacks.refused() > 0 {
            let refused = self.stacks.refused();
            self.meta.note(format!(
                "{refused} frames were left off, because there are too many different stacks"
            ));
        }
        if self.meta.time_step_ns > 0 {
            let step = std::time::Duration::from_nanos(self.meta.time_step_ns);
            self.meta.note(format!(
                "more than {SAMPLES_MAX} samples: those of the same thread and stack within \
                 {step:?} were merged, with their weights added"
            ));
        }
        self.frame_index = Map::default();
        self.thread_index = Map::default();
        self.samples.shrink_to_fit();
    }

    /// A view of all samples.
    pub fn view(&self) -> View<'_> {
        View::all(self)
    }

    /// The samples of busy CPUs: [`Profile::view`] without the idle task.
    pub fn busy(&self) -> View<'_> {
        self.view().busy()
    }

    /// CPU seconds of a weight. `None` if the source does not allow to compute them, such as folded
    /// stacks without a rate or cycles at a fixed period.
    pub fn cpu_seconds(&self, weight: u64, samples: u64) -> Option<f64> {
        match (self.meta.unit, self.meta.rate) {
            (WeightUnit::Nanoseconds, _) => Some(weight as f64 / 1e9),
            (_, Rate::Hertz(hertz)) if hertz > 0.0 => Some(samples as f64 / hertz),
            _ => None,
        }
    }
}

/// A string's number for tests that need no text.
#[cfg(test)]
pub(crate) fn test_string(number: u32) -> StringId {
    StringId(number)
}
