//! From records of perf_event_open to a profile: which thread a sample is of, what is mapped where,
//! and the names of its addresses at that moment. The same code serves files and the live rings.
//!
//! Addresses are named as they come, each once (a cache by address space). Stacks are kept by
//! function. So memory grows with the number of functions and stacks, never with samples. Records
//! are outside input: everything is checked, nothing is trusted.

mod maps;
mod recent;
mod sample;
mod tasks;

use byteorder::{BigEndian, LittleEndian};
use hashbrown::HashMap;
use linux_perf_event_reader::{
    Endianness, EventRecord, RawData, RawEventRecord, RecordParseInfo, RecordType,
    get_record_timestamp,
};

use crate::model::{
    CPU_UNKNOWN, FrameId, Mode, Profile, Rate, Reason, Sample, StackId, StringId, Unresolved,
    WeightUnit,
};
use crate::read::perf_data::{Attribute, Bytes, Record};
use crate::symbols::Symbols;
use maps::KernelMaps;
pub(crate) use maps::kernel_module_name;
use recent::Recent;
use sample::SampleFields;
use tasks::{Mapping, Tasks};

/// Names of addresses remembered at most; then the cache starts anew: whatever runs a program anew
/// has addresses of its own, and a million of them take 50 MiB.
const CACHE_MAX: usize = 1_000_000;
/// Frames of one stack at most; the kernel gives 127 unless told otherwise, and a record holds
/// 8,000.
const DEPTH_MAX: usize = 1024;

/// `PERF_RECORD_KSYMBOL` and `PERF_RECORD_LOST_SAMPLES` of `include/uapi/linux/perf_event.h`.
const KSYMBOL: u32 = 17;
const LOST_SAMPLES: u32 = 13;
/// `PERF_RECORD_MISC_MMAP_BUILD_ID`.
const MISC_BUILD_ID: u16 = 1 << 14;

type Map<K, V> = HashMap<K, V, foldhash::fast::FixedState>;

/// What is known of an event.
#[derive(Debug, Clone)]
struct Event {
    parse: RecordParseInfo,
    /// A sample's weight where the sample does not say.
    weight: u64,
    unit: WeightUnit,
    rate: Rate,
    name: String,
    /// Whether it only carries records about tasks.
    dummy: bool,
}

/// Why frames of a module have no name.
#[derive(Debug, Clone, Default)]
struct Missing {
    addresses: u64,
    reason: Option<Reason>,
}

/// Whether samples of a process and a thread of this name are kept.
type Keep = dyn Fn(i32, &str) -> bool;

/// Puts a profile together from records.
pub(crate) struct Assembler {
    profile: Profile,
    symbols: Symbols,
    events: Vec<Event>,
    endian: Endianness,
    /// The event whose samples are taken.
    chosen: Option<u16>,
    others: Map<u16, u64>,
    tasks: Tasks,
    kernel: KernelMaps,
    kernel_frames: Map<u64, FrameId>,
    user_frames: Map<(u32, u64), FrameId>,
    /// Of files, whose code is the same in every address space.
    file_frames: Map<(StringId, u64), FrameId>,
    missing: Map<(StringId, bool), Missing>,
    recent: Recent,
    /// Innermost first.
    chain: Vec<(Mode, u64)>,
    frames: Vec<FrameId>,
    damaged: u64,
    /// Only threads for which this holds are kept.
    keep: Option<Box<Keep>>,
}

impl Assembler {
    pub(crate) fn new(profile: Profile, symbols: Symbols, endian: Endianness) -> Self {
        Self {
            profile,
            symbols,
            events: Vec::new(),
            endian,
            chosen: None,
            others: Map::default(),
            tasks: Tasks::default(),
            kernel: KernelMaps::default(),
            kernel_frames: Map::default(),
            user_frames: Map::default(),
            file_frames: Map::default(),
            missing: Map::default(),
            recent: Recent::default(),
            chain: Vec::new(),
            frames: Vec::new(),
            damaged: 0,
            keep: None,
        }
    }

    /// Keeps only samples of threads for which a condition on process and thread name holds.
    pub(crate) fn keep_threads(&mut self, keep: impl Fn(i32, &str) -> bool + 'static) {
        self.keep = Some(Box::new(keep));
    }

    pub(crate) fn symbols_mut(&mut self) -> &mut Symbols {
        &mut self.symbols
    }

    pub(crate) fn profile_mut(&mut self) -> &mut Profile {
        &mut self.profile
    }

    /// Adds an event; events count from 0.
    pub(crate) fn add_event(&mut self, attribute: &Attribute) {
        let event = Event::new(attribute, self.endian);
        if self.chosen.is_none() && !event.dummy && self.events.len() < usize::from(u16::MAX) {
            self.chosen = Some(self.events.len() as u16);
            self.profile.meta.event = event.name.clone();
            self.profile.meta.unit = event.unit;
            self.profile.meta.rate = event.rate;
        }
        self.events.push(event);
    }

    /// Gives the chosen event a name that came after it.
    pub(crate) fn rename_event(&mut self, index: usize, name: &str) {
        if let Some(event) = self.events.get_mut(index) {
            name.clone_into(&mut event.name);
            if self.chosen == Some(index as u16) {
                name.clone_into(&mut self.profile.meta.event);
            }
        }
    }

    /// When a record was written, if it says.
    pub(crate) fn time_ns(&self, record: &Record<'_>) -> Option<u64> {
        let parse = &self.events.get(usize::from(record.event))?.parse;
        let (kind, data) = (RecordType(record.kind), RawData::Single(record.body));
        match self.endian {
            Endianness::LittleEndian => get_record_timestamp::<LittleEndian>(kind, data, parse),
            Endianness::BigEndian => get_record_timestamp::<BigEndian>(kind, data, parse),
        }
    }

    /// A thread that was there before sampling began.
    pub(crate) fn add_thread(&mut self, pid: i32, tid: i32, name: &str) {
        self.tasks.name(pid, tid, name, false, &mut self.profile);
    }

    /// A part of a file that was mapped before sampling began.
    pub(crate) fn add_mapping(&mut self, pid: i32, start: u64, len: u64, offset: u64, path: &str) {
        let path = self.profile.intern(path);
        self.tasks.map(pid, Mapping { start, len, offset, path });
    }

    /// Takes one record.
    pub(crate) fn record(&mut self, record: Record<'_>) {
        let Some(event) = self.events.get(usize::from(record.event)) else { return };
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
                // Flag 1: the symbol is gone.
                if flags & 1 == 0 {
                    self.symbols.add_kernel_symbol(address, u64::from(len), &name);
                }
                self.forget_kernel_frames();
                return Some(());
            }
            LOST_SAMPLES => {
                let lost = bytes.u64()?;
                let meta = &mut self.profile.meta;
                meta.lost_samples = meta.lost_samples.saturating_add(lost);
                return Some(());
            }
            _ => {}
        }
        // The decoder insists on a length of build-ids, which is outside input. It stands behind
        // process, thread, address, length and offset.
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
            EventRecord::Lost(lost) => {
                let meta = &mut self.profile.meta;
                meta.lost_samples = meta.lost_samples.saturating_add(lost.count);
            }
            EventRecord::Mmap(map) => {
                let (start, len, path) = (map.address, map.length, text(map.path));
                if map.pid == -1 {
                    self.kernel_map(start, len, map.page_offset, &path);
                } else {
                    let path = self.profile.intern(&path);
                    let mapping = Mapping { start, len, offset: map.page_offset, path };
                    self.tasks.map(map.pid, mapping);
                }
            }
            EventRecord::Mmap2(map) => {
                let (start, len, path) = (map.address, map.length, text(map.path));
                if let linux_perf_event_reader::Mmap2FileId::BuildId(id) = &map.file_id {
                    self.symbols.add_build_id(&path, id);
                }
                let path = self.profile.intern(&path);
                self.tasks.map(map.pid, Mapping { start, len, offset: map.page_offset, path });
            }
            _ => {}
        }
        Some(())
    }

    /// The kernel or one of its modules is mapped.
    pub(crate) fn kernel_map(&mut self, start: u64, len: u64, offset: u64, path: &str) {
        let name = maps::kernel_module_name(path);
        if name == maps::KERNEL {
            self.symbols.set_kernel_reference(path, start, offset);
        }
        self.kernel.add(start, len, &name, path);
        self.forget_kernel_frames();
    }

    /// What kernel addresses are called has changed.
    fn forget_kernel_frames(&mut self) {
        self.kernel_frames.clear();
        self.recent.clear();
    }

    fn sample(&mut self, record: Record<'_>) -> Option<()> {
        let event = &self.events[usize::from(record.event)];
        if self.chosen != Some(record.event) {
            *self.others.entry(record.event).or_default() += 1;
            return Some(());
        }
        let default_weight = event.weight;
        let fields = SampleFields::parse(record, &event.parse)?;
        let thread = self.tasks.thread(fields.pid, fields.tid, &mut self.profile);
        if let Some(keep) = &self.keep
            && !keep(fields.pid, self.profile.thread(thread).name)
        {
            return Some(());
        }
        let stack = self.stack(&fields);
        self.profile.push(Sample {
            time_ns: fields.time_ns.unwrap_or(0),
            weight: fields.period.unwrap_or(default_weight),
            thread,
            cpu: fields.cpu.unwrap_or(CPU_UNKNOWN),
            stack,
            count: 1,
        });
        Some(())
    }

    fn stack(&mut self, fields: &SampleFields<'_>) -> StackId {
        let mut chain = std::mem::take(&mut self.chain);
        chain.clear();
        let mut mode = fields.mode;
        let mut is_return = false;
        for address in fields.chain() {
            match sample::context(address) {
                Some(next) => {
                    mode = next;
                    is_return = false;
                }
                None if chain.len() < DEPTH_MAX => {
                    // A caller's address is that after its call, which may be another function's.
                    let at = address.saturating_sub(u64::from(is_return));
                    chain.push((mode, at));
                    is_return = true;
                }
                None => break,
            }
        }
        if chain.is_empty()
            && let Some(ip) = fields.ip
        {
            chain.push((mode, ip));
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
        let is_file =
            path.starts_with('/') && !path.starts_with("//") && !path.starts_with("/memfd:");
        if let Some(frame) = self.file_frames.get(&(mapping.path, offset)).filter(|_| is_file) {
            return *frame;
        }
        let frame = match self.symbols.user(pid, path, offset, address) {
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
            self.file_frames.insert((mapping.path, offset), frame);
        }
        frame
    }

    fn miss(&mut self, module: StringId, kernel: bool, reason: Reason) {
        let missing = self.missing.entry((module, kernel)).or_default();
        missing.addresses += 1;
        missing.reason = Some(reason);
    }

    /// The profile, when all records were taken.
    pub(crate) fn finish(mut self) -> Profile {
        if self.damaged > 0 {
            let damaged = self.damaged;
            self.profile.meta.note(format!("{damaged} records are damaged and were left out"));
        }
        for (event, samples) in std::mem::take(&mut self.others) {
            let name = &self.events[usize::from(event)].name;
            self.profile.meta.note(format!(
                "{samples} samples of the event {name} were left out; those of {} are shown",
                self.profile.meta.event
            ));
        }
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

impl Event {
    fn new(attribute: &Attribute, endian: Endianness) -> Self {
        // PERF_TYPE_HARDWARE 0, PERF_TYPE_SOFTWARE 1; of the latter, 9 is the dummy.
        let (known, unit) = match (attribute.kind, attribute.config) {
            (0, 0) => ("cycles", WeightUnit::Cycles),
            (1, 0) => ("cpu-clock", WeightUnit::Nanoseconds),
            (1, 1) => ("task-clock", WeightUnit::Nanoseconds),
            (1, 9) => ("dummy", WeightUnit::Events),
            _ => ("", WeightUnit::Events),
        };
        let name = match &attribute.name {
            Some(name) if !name.is_empty() => name.clone(),
            _ if known.is_empty() => {
                format!("type {} config {:#x}", attribute.kind, attribute.config)
            }
            _ => known.to_owned(),
        };
        let cycles = unit == WeightUnit::Events && name.contains("cycles");
        let unit = if cycles { WeightUnit::Cycles } else { unit };
        let rate = match (attribute.period, attribute.frequency) {
            (0, _) => Rate::Unknown,
            (hertz, true) => Rate::Hertz(hertz as f64),
            (ns, false) if unit == WeightUnit::Nanoseconds => Rate::Hertz(1e9 / ns as f64),
            (period, false) => Rate::Period(period),
        };
        let weight = match (rate, unit) {
            (Rate::Hertz(hertz), WeightUnit::Nanoseconds) => (1e9 / hertz).round() as u64,
            (Rate::Period(period), _) => period,
            _ => 1,
        };
        Self {
            parse: RecordParseInfo::new(&attribute.attr, endian),
            weight,
            unit,
            rate,
            dummy: (attribute.kind, attribute.config) == (1, 9),
            name,
        }
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
