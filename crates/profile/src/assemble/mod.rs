//! Turns records of `perf_event_open` into a profile. It tracks each thread and its mappings, and
//! names the addresses as mapped at the moment of the sample. Files and the live rings use the same
//! code.
//!
//! Each address is named once, on arrival, and cached by address space. Stacks are stored by
//! function, so memory grows with the number of functions and stacks, never with samples. Records
//! are outside input, so everything is checked.

mod counts;
mod events;
mod maps;
mod sample;
mod stack_cache;
mod tasks;
mod unwinding;

use byteorder::{BigEndian, LittleEndian};
use hashbrown::HashMap;
use linux_perf_event_reader::{
    Endianness, EventRecord, Mmap2FileId, RawData, RawEventRecord, RecordParseInfo, RecordType,
    get_record_timestamp,
};

use crate::model::{
    CPU_UNKNOWN, FrameId, Mode, Profile, Reason, Sample, StackId, StringId, Unresolved,
};
use crate::read::perf_data::{Attribute, Bytes, Record};
use crate::symbols::{Mapped, Symbols};
use counts::LastCounts;
use events::{Choice, Events};
use maps::KernelMaps;
pub(crate) use maps::kernel_module_name;
use sample::SampleFields;
use stack_cache::StackCache;
use tasks::{Mapping, Tasks};
use unwinding::{Process, Unwinding, is_file};

/// Names of addresses remembered at most; then the cache is cleared. Each new process has addresses
/// of its own, and a million of them take 50 MiB.
const CACHE_MAX: usize = 1_000_000;
/// Frames of one stack at most. The kernel gives 127 by default, and a record holds 8,000.
const DEPTH_MAX: usize = 1024;

/// `PERF_RECORD_KSYMBOL` and `PERF_RECORD_LOST_SAMPLES` of `include/uapi/linux/perf_event.h`.
const KSYMBOL: u32 = 17;
const LOST_SAMPLES: u32 = 13;
/// `PERF_RECORD_MISC_MMAP_BUILD_ID`.
const MISC_BUILD_ID: u16 = 1 << 14;

type Map<K, V> = HashMap<K, V, foldhash::fast::FixedState>;

/// The reason why frames of a module have no name.
#[derive(Debug, Clone, Default)]
struct Missing {
    addresses: u64,
    reason: Option<Reason>,
}

/// Whether to keep the samples of a process and a thread with this name.
type Keep = dyn Fn(i32, &str) -> bool;

/// Builds a profile from records.
pub(crate) struct Assembler {
    profile: Profile,
    symbols: Symbols,
    events: Events,
    counts: LastCounts,
    endian: Endianness,
    tasks: Tasks,
    kernel: KernelMaps,
    kernel_frames: Map<u64, FrameId>,
    user_frames: Map<(u32, u64), FrameId>,
    /// Frames of files, whose code is the same in every address space.
    file_frames: Map<(StringId, u64, u64), FrameId>,
    missing: Map<(StringId, bool), Missing>,
    recent: StackCache,
    /// The current call chain, innermost first.
    chain: Vec<(Mode, u64)>,
    frames: Vec<FrameId>,
    damaged: u64,
    /// Records that the kernel had no room for, and samples that the recorder reports as lost. The
    /// records include the samples.
    lost: (u64, u64),
    unwinding: Unwinding,
    /// The condition on threads to keep.
    keep: Option<Box<Keep>>,
}

impl Assembler {
    pub(crate) fn new(profile: Profile, symbols: Symbols, endian: Endianness) -> Self {
        Self {
            profile,
            symbols,
            events: Events::default(),
            counts: LastCounts::default(),
            endian,
            tasks: Tasks::default(),
            kernel: KernelMaps::default(),
            kernel_frames: Map::default(),
            user_frames: Map::default(),
            file_frames: Map::default(),
            missing: Map::default(),
            recent: StackCache::default(),
            chain: Vec::new(),
            frames: Vec::new(),
            damaged: 0,
            lost: (0, 0),
            unwinding: Unwinding::default(),
            keep: None,
        }
    }

    /// Keeps only samples of threads that meet a condition on process and thread name.
    pub(crate) fn keep_threads(&mut self, keep: impl Fn(i32, &str) -> bool + 'static) {
        self.keep = Some(Box::new(keep));
    }

    pub(crate) fn symbols_mut(&mut self) -> &mut Symbols {
        &mut self.symbols
    }

    pub(crate) fn profile_mut(&mut self) -> &mut Profile {
        &mut self.profile
    }

    /// Adds an event; events are numbered from 0.
    pub(crate) fn add_event(&mut self, attribute: &Attribute) {
        self.events.add(attribute, self.endian, &mut self.profile.meta);
    }

    /// Gives an event a name that arrived later.
    pub(crate) fn rename_event(&mut self, index: usize, name: &str) {
        self.events.rename(index, name, &mut self.profile.meta);
    }

    /// Counts a sample of an event that was not added.
    pub(crate) fn unknown_sample(&mut self) {
        self.events.add_unknown();
    }

    /// The time at which a record was written, if the record has it.
    pub(crate) fn time_ns(&self, record: &Record<'_>) -> Option<u64> {
        let parse = &self.events.get(record.event)?.parse;
        let (kind, data) = (RecordType(record.kind), RawData::Single(record.body));
        match self.endian {
            Endianness::LittleEndian => get_record_timestamp::<LittleEndian>(kind, data, parse),
            Endianness::BigEndian => get_record_timestamp::<BigEndian>(kind, data, parse),
        }
    }

    /// Adds a thread that existed before sampling began.
    pub(crate) fn add_thread(&mut self, pid: i32, tid: i32, name: &str) {
        self.tasks.name(pid, tid, name, false, &mut self.profile);
    }

    /// Adds a mapping of a part of a file, also one from before sampling began. Process -1 is the
    /// kernel.
    pub(crate) fn map(&mut self, mapped: &Mapped<'_>, offset: u64) {
        let Mapped { pid, path, inode, start, len } = *mapped;
        if pid == -1 {
            return self.kernel_map(start, len, offset, path);
        }
        let path = self.profile.intern(path);
        self.tasks.map(pid, Mapping { start, len, offset, path, inode });
    }

    /// Processes one record.
    pub(crate) fn record(&mut self, record: Record<'_>) {
        let Some(event) = self.events.get(record.event) else { return };
        let taken = if record.kind == RecordType::SAMPLE.0 {
            self.sample(record)
        } else {
            let parse = event.parse;
            self.other(record, parse)
        };
        if taken.is_none() {
            self.damaged += 1;
        }
    }

    fn other(&mut self, record: Record<'_>, parse: RecordParseInfo) -> Option<()> {
        let mut bytes = Bytes::new(record.body, self.endian);
        match record.kind {
            KSYMBOL => {
                let (address, len) = (bytes.u64()?, bytes.u32()?);
                let (_kind, flags) = (bytes.u16()?, bytes.u16()?);
                let name = bytes.text();
                // Flag 1 means that the symbol was removed.
                if flags & 1 == 0 {
                    self.symbols.add_kernel_symbol(address, u64::from(len), &name);
                }
                self.forget_kernel_frames();
                return Some(());
            }
            LOST_SAMPLES => {
                self.lost.1 = self.lost.1.saturating_add(bytes.u64()?);
                return Some(());
            }
            _ => {}
        }
        // The decoder requires a valid length of the build-id, which is outside input. The length
        // follows process, thread, address, length and offset.
        let is_mmap2 = record.kind == RecordType::MMAP2.0;
        if is_mmap2 && record.misc & MISC_BUILD_ID != 0 && *record.body.get(32)? > 20 {
            return None;
        }
        let raw = RawEventRecord::new(
            RecordType(record.kind),
            record.misc,
            RawData::Single(record.body),
            parse,
        );
        match raw.parse().ok()? {
            EventRecord::Comm(comm) => {
                let name = text(comm.name);
                self.tasks.name(comm.pid, comm.tid, &name, comm.is_execve, &mut self.profile);
            }
            EventRecord::Fork(fork) => {
                self.tasks.fork(fork.pid, fork.ppid, fork.tid, fork.ptid);
            }
            EventRecord::Exit(exit) => self.tasks.exit(exit.pid, exit.tid),
            EventRecord::Lost(lost) => self.lost.0 = self.lost.0.saturating_add(lost.count),
            EventRecord::Mmap(map) => {
                let (start, len, path) = (map.address, map.length, &text(map.path));
                let mapped = Mapped { pid: map.pid, path, inode: 0, start, len };
                self.map(&mapped, map.page_offset);
            }
            EventRecord::Mmap2(map) => {
                let (start, len, path) = (map.address, map.length, &text(map.path));
                let inode = match &map.file_id {
                    Mmap2FileId::BuildId(id) => {
                        self.symbols.add_build_id(path, id);
                        0
                    }
                    Mmap2FileId::InodeAndVersion(file) => file.inode,
                };
                let mapped = Mapped { pid: map.pid, path, inode, start, len };
                self.map(&mapped, map.page_offset);
            }
            _ => {}
        }
        Some(())
    }

    /// Adds a mapping of the kernel or of a module.
    pub(crate) fn kernel_map(&mut self, start: u64, len: u64, offset: u64, path: &str) {
        let name = maps::kernel_module_name(path);
        if name == maps::KERNEL {
            self.symbols.set_kernel_reference(path, start, offset);
        }
        self.kernel.add(start, len, &name, path);
        self.forget_kernel_frames();
    }

    /// Drops the cached frames after a change of kernel symbols.
    fn forget_kernel_frames(&mut self) {
        self.kernel_frames.clear();
        self.recent.clear();
    }

    fn sample(&mut self, record: Record<'_>) -> Option<()> {
        let event = self.events.get(record.event)?;
        let fields = SampleFields::parse(record, event)?;
        let Some(counts) = &fields.counts else {
            let weight = fields.period.unwrap_or(event.weight);
            self.deliver(record.event, weight, &fields);
            return Some(());
        };
        let period = fields.period.unwrap_or(event.weight);
        let thread = event.inherit.then_some(fields.tid);
        let mut is_own = None;
        // One sample of a group is one sample of each of its events whose count grew.
        for (count, id) in counts.iter() {
            let Some(index) = self.events.by_id(id) else {
                self.events.add_unknown();
                continue;
            };
            let counted = self.counts.take(id, thread, count);
            // The first event is the one that samples.
            let is_own = *is_own.get_or_insert_with(|| counted.is_own(period));
            let weight = counted.own.filter(|_| is_own).unwrap_or(counted.whole);
            if weight > 0 {
                self.deliver(index, weight, &fields);
            }
        }
        Some(())
    }

    fn deliver(&mut self, event: u16, weight: u64, fields: &SampleFields<'_>) {
        match self.events.choose(event, &mut self.profile.meta) {
            Choice::Shown => {}
            Choice::LeftOut => return,
            Choice::Instead => self.forget_samples(),
        }
        let thread = self.tasks.thread(fields.pid, fields.tid, &mut self.profile);
        if let Some(keep) = &self.keep
            && !keep(fields.pid, self.profile.thread(thread).name)
        {
            return;
        }
        let stack = self.stack(fields);
        self.profile.push(Sample {
            time_ns: fields.time_ns.unwrap_or(0),
            weight,
            thread,
            cpu: fields.cpu.unwrap_or(CPU_UNKNOWN),
            stack,
            count: 1,
        });
    }

    /// Drops the samples and the notes about missing symbols.
    fn forget_samples(&mut self) {
        self.profile.forget_samples();
        self.missing.clear();
        self.user_frames.clear();
        self.file_frames.clear();
        self.forget_kernel_frames();
        self.unwinding.forget();
    }

    fn stack(&mut self, fields: &SampleFields<'_>) -> StackId {
        let mut chain = std::mem::take(&mut self.chain);
        chain.clear();
        let process = Process {
            pid: fields.pid,
            tasks: &self.tasks,
            symbols: &self.symbols,
            profile: &self.profile,
        };
        let mut unwound = self.unwinding.unwind(fields, process);
        let mut mode = fields.mode;
        let mut is_return = false;
        for address in fields.chain() {
            match sample::context(address) {
                Some(next) => {
                    mode = next;
                    is_return = false;
                    if mode == Mode::User
                        && let Some(calls) = fields.recorded_calls()
                    {
                        chain.extend(calls.map(|address| (mode, address)).take(DEPTH_MAX));
                        unwound = None;
                        break;
                    }
                    if mode == Mode::User && unwound.is_some() {
                        break;
                    }
                }
                None if chain.len() < DEPTH_MAX => {
                    // A caller's address is the one after its call, which may be in another
                    // function.
                    let at = address.saturating_sub(u64::from(is_return));
                    chain.push((mode, at));
                    is_return = true;
                }
                None => break,
            }
        }
        if let Some((addresses, goes_on)) = unwound {
            chain.extend(addresses.iter().map(|address| (Mode::User, *address)));
            // The kernel may have found the frames beyond the copy by frame pointers.
            let last = addresses.last().filter(|_| goes_on);
            let rest = last.into_iter().flat_map(|last| fields.chain_after(*last));
            chain.extend(rest.map(|address| (Mode::User, address.saturating_sub(1))));
            chain.truncate(DEPTH_MAX);
        }
        if chain.is_empty()
            && let Some(ip) = fields.ip
        {
            chain.push((fields.mode, ip));
        }
        let stack = self.stack_of(&chain, fields);
        self.chain = chain;
        stack
    }

    fn stack_of(&mut self, chain: &[(Mode, u64)], fields: &SampleFields<'_>) -> StackId {
        let (tid, cpu) = (fields.tid, fields.cpu.unwrap_or(0));
        let space = self.tasks.space(fields.pid);
        let outermost_first = chain.iter().rev().copied();
        let (shared, mut stack) = self.recent.of(tid, cpu).keep(space, outermost_first);
        let new = &chain[..chain.len() - shared];
        let mut frames = std::mem::take(&mut self.frames);
        frames.clear();
        frames.extend(new.iter().map(|(mode, at)| self.frame(fields.pid, space, *mode, *at)));
        let path = self.recent.of(tid, cpu);
        for ((mode, at), frame) in new.iter().zip(&frames).rev() {
            stack = self.profile.push_frame(stack, *frame);
            path.push(*mode, *at, stack);
        }
        self.frames = frames;
        stack
    }

    fn frame(&mut self, pid: i32, space: u32, mode: Mode, address: u64) -> FrameId {
        if mode == Mode::Kernel {
            if let Some(frame) = self.kernel_frames.get(&address) {
                return *frame;
            }
            let frame = self.kernel_frame(address);
            forget_when_full(&mut self.kernel_frames);
            self.kernel_frames.insert(address, frame);
            return frame;
        }
        if let Some(frame) = self.user_frames.get(&(space, address)) {
            return *frame;
        }
        let frame = self.user_frame(pid, mode, address);
        forget_when_full(&mut self.user_frames);
        self.user_frames.insert((space, address), frame);
        frame
    }

    fn kernel_frame(&mut self, address: u64) -> FrameId {
        let map = self.kernel.find(address);
        let known = map.map(|map| (map.name.as_str(), map.path.as_str(), map.start));
        match self.symbols.kernel(address, known) {
            Ok(named) => {
                let symbol = self.profile.intern(&named.symbol);
                let module = self.profile.intern(&named.module);
                self.profile.add_frame(symbol, module, Mode::Kernel, address)
            }
            Err(reason) => {
                let module = map.map_or("[unknown]", |map| map.name.as_str());
                let module = self.profile.intern(module);
                self.miss(module, true, reason);
                self.profile.add_frame(StringId::EMPTY, module, Mode::Kernel, address)
            }
        }
    }

    fn user_frame(&mut self, pid: i32, mode: Mode, address: u64) -> FrameId {
        let Some(mapping) = self.tasks.find(pid, address) else {
            let module = self.profile.intern("[unknown]");
            self.miss(module, false, Reason::NoMapping);
            return self.profile.add_frame(StringId::EMPTY, module, mode, 0);
        };
        let offset = (address - mapping.start).saturating_add(mapping.offset);
        let path = self.profile.string(mapping.path);
        let is_file = is_file(path);
        let key = (mapping.path, mapping.inode, offset);
        if let Some(frame) = self.file_frames.get(&key).filter(|_| is_file) {
            return *frame;
        }
        let Mapping { start, len, inode, .. } = mapping;
        let mapped = Mapped { pid, path, inode, start, len };
        let frame = match self.symbols.user(&mapped, offset, address) {
            Ok(symbol) => {
                let symbol = self.profile.intern(symbol);
                self.profile.add_frame(symbol, mapping.path, mode, address)
            }
            Err(reason) => {
                self.miss(mapping.path, false, reason);
                self.profile.add_frame(StringId::EMPTY, mapping.path, mode, 0)
            }
        };
        if is_file {
            forget_when_full(&mut self.file_frames);
            self.file_frames.insert(key, frame);
        }
        frame
    }

    fn miss(&mut self, module: StringId, kernel: bool, reason: Reason) {
        let missing = self.missing.entry((module, kernel)).or_default();
        missing.addresses += 1;
        missing.reason = Some(reason);
    }

    /// Finishes the profile after the last record.
    pub(crate) fn finish(mut self) -> Profile {
        let meta = &mut self.profile.meta;
        if self.damaged > 0 {
            meta.note(format!(
                "{} damaged and left out",
                ogive_text::counted(self.damaged, "record was", "records were")
            ));
        }
        meta.lost_samples = self.lost.0.max(self.lost.1);
        self.events.note(meta);
        self.unwinding.note(self.symbols.is_live(), meta);
        let unresolved = self.unresolved();
        self.profile.meta.unresolved = unresolved;
        for note in self.symbols.notes() {
            self.profile.meta.note(note);
        }
        self.profile.finish();
        self.profile
    }

    fn unresolved(&self) -> Vec<Unresolved> {
        let mut weights: Map<(StringId, bool), u64> = Map::default();
        for (stack, weight) in self.profile.busy().by_stack() {
            if let Some((leaf, _)) = self.profile.split_stack(stack) {
                let (symbol, module, mode) = self.profile.frame_ids(leaf);
                if symbol == StringId::EMPTY {
                    *weights.entry((module, mode == Mode::Kernel)).or_default() += weight;
                }
            }
        }
        let mut all: Vec<Unresolved> = self
            .missing
            .iter()
            .filter_map(|((module, kernel), missing)| {
                Some(Unresolved {
                    module: self.profile.string(*module).to_owned(),
                    kernel: *kernel,
                    addresses: missing.addresses,
                    self_weight: weights.get(&(*module, *kernel)).copied().unwrap_or(0),
                    reason: missing.reason?,
                })
            })
            .collect();
        all.sort_by(|a, b| {
            b.self_weight
                .cmp(&a.self_weight)
                .then(b.addresses.cmp(&a.addresses))
                .then_with(|| a.module.cmp(&b.module))
        });
        all
    }
}

fn text(data: RawData<'_>) -> String {
    String::from_utf8_lossy(&data.as_slice()).into_owned()
}

fn forget_when_full<K: std::hash::Hash + Eq, V>(cache: &mut Map<K, V>) {
    if cache.len() >= CACHE_MAX {
        cache.clear();
    }
}
