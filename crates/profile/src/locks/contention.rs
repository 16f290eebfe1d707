//! Waits for kernel locks, from the records of the tracepoints `lock:contention_begin` and
//! `lock:contention_end`.
//!
//! A wait begins and ends in the same thread, for the same lock, perhaps on another CPU. A mutex
//! may begin twice: it spins first, then sleeps; this is one wait, which slept. A wait may contain
//! others. The records of several CPUs are sorted by time before they are matched.
//! [`Contention::settle`] takes the records up to a moment after which no older ones can arrive.
//!
//! A row is a kind of lock, a caller, and the lock by its name if it has one. OpenZFS's many locks
//! of one kind share a row. The caller is the innermost function outside locking.

use std::collections::BTreeSet;

use serde::Serialize;

use super::lock_functions;
use super::{LockRow, LockTable, Source};
use crate::model::Map;
use crate::symbols::Kallsyms;

/// Open waits at most: the threads of a machine, times the locks that each can wait for at once.
const OPEN_MAX: usize = 1 << 18;
/// Rows at most.
const ROWS_MAX: usize = 100_000;
/// Addresses counted for one row at most.
const ADDRESSES_MAX: usize = 1000;
/// Frames examined for a caller at most.
const FRAMES_MAX: u64 = 127;
/// Addresses from here up are context marks instead of functions.
const MARKS: u64 = u64::MAX - 4095;

/// The layout of a tracepoint, from its file `format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// The number that opens it.
    pub id: u16,
    /// The offset of the lock's address.
    lock_at: usize,
    /// The offset of the flags, if it has any.
    flags_at: Option<usize>,
}

impl Layout {
    /// Parses the file; `None` if it belongs to another tracepoint.
    pub fn parse(text: &str) -> Option<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        let place = |name: &str| {
            let of = |line: &&str| {
                line.split(';')
                    .next()
                    .is_some_and(|field| field.split([' ', '*']).next_back() == Some(name))
            };
            let line = text.lines().find(|line| line.contains("field:") && of(line))?;
            let offset = line.split("offset:").nth(1)?.split(';').next()?;
            offset.trim().parse::<usize>().ok().filter(|offset| *offset < 4096)
        };
        Some(Self { id, lock_at: place("lock_addr")?, flags_at: place("flags") })
    }
}

/// The kind of a wait, in the terms of lockstat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A mutex whose holder slept or held it too long, so the thread slept.
    MutexBlock,
    /// A mutex that became free while the thread spun.
    MutexSpin,
    /// A lock for which threads only spin.
    Spin,
    /// A writer's wait for a reader-writer lock.
    Writer,
    /// A reader's wait for a reader-writer lock.
    Reader,
    /// A semaphore, or a lock of unknown kind.
    Other,
}

impl Kind {
    /// The kind by the flags of `contention_begin`: 1 spin, 2 read, 4 write, 8 real time, 16 per
    /// CPU, 32 mutex.
    fn of(flags: u32) -> Self {
        match flags {
            _ if flags & 2 != 0 => Self::Reader,
            _ if flags & 4 != 0 => Self::Writer,
            _ if flags & 32 != 0 && flags & 1 != 0 => Self::MutexSpin,
            _ if flags & (32 | 8) != 0 => Self::MutexBlock,
            _ if flags & 1 != 0 => Self::Spin,
            _ => Self::Other,
        }
    }

    /// The heading of its table.
    pub fn title(self) -> &'static str {
        match self {
            Self::MutexBlock => "Adaptive mutex block",
            Self::MutexSpin => "Adaptive mutex spin",
            Self::Spin => "Spin lock spin",
            Self::Writer => "R/W writer blocked",
            Self::Reader => "R/W reader blocked",
            Self::Other => "Semaphore blocked",
        }
    }
}

/// The fields of a record that matter.
struct Event {
    time_ns: u64,
    /// The thread; an idle CPU counts as a thread of its own.
    thread: (u32, u32),
    lock: u64,
    /// Flags and caller, if it is the begin of a wait.
    begins: Option<(u32, Option<u64>)>,
}

struct Open {
    since_ns: u64,
    flags: u32,
    caller: Option<u64>,
}

/// The key of a row: the kind, the caller and its module, and OpenZFS's name of the lock.
type Key = (Kind, String, String, Option<&'static str>);

#[derive(Default)]
struct Count {
    waits: u64,
    total_ns: u64,
    max_ns: u64,
    locks: BTreeSet<u64>,
}

/// Counts waits.
pub struct Contention {
    begin: Layout,
    end: Layout,
    symbols: Kallsyms,
    /// By return address: the start of the function, if it is a caller outside locking.
    callers: Map<u64, bool>,
    waiting: Vec<Event>,
    open: Map<((u32, u32), u64), Open>,
    rows: Map<Key, Count>,
    lost: u64,
    ends_without_begin: u64,
    not_read: u64,
}

impl Contention {
    /// An empty count. `symbols` name functions of the kernel.
    pub fn new(begin: Layout, end: Layout, symbols: Kallsyms) -> Self {
        Self {
            begin,
            end,
            symbols,
            callers: Map::default(),
            waiting: Vec::new(),
            open: Map::default(),
            rows: Map::default(),
            lost: 0,
            ends_without_begin: 0,
            not_read: 0,
        }
    }

    /// Adds a record that was sampled with thread, time, CPU, stack and raw bytes, in this order.
    pub fn add(&mut self, body: &[u8]) {
        match self.parse(body) {
            Some(event) => self.waiting.push(event),
            None => self.not_read += 1,
        }
    }

    /// Counts records that the kernel lost because a ring was full.
    pub fn note_lost(&mut self, records: u64) {
        self.lost += records;
    }

    fn parse(&mut self, body: &[u8]) -> Option<Event> {
        let mut bytes = Bytes(body);
        let (_, tid) = (bytes.u32()?, bytes.u32()?);
        let time_ns = bytes.u64()?;
        let (cpu, _) = (bytes.u32()?, bytes.u32()?);
        let frames = bytes.u64()?;
        let stack = bytes.take(usize::try_from(frames).ok()?.checked_mul(8)?)?;
        let size = bytes.u32()?;
        let raw = bytes.take(usize::try_from(size).ok()?)?;
        let id = u16::from_ne_bytes(raw.get(..2)?.try_into().ok()?);
        let at =
            |place: usize| Some(u64::from_ne_bytes(raw.get(place..place + 8)?.try_into().ok()?));
        let thread = if tid == 0 { (0, cpu) } else { (tid, 0) };
        if id == self.end.id {
            return Some(Event { time_ns, thread, lock: at(self.end.lock_at)?, begins: None });
        }
        if id != self.begin.id {
            return None;
        }
        let flags = match self.begin.flags_at {
            Some(place) => u32::from_ne_bytes(raw.get(place..place + 4)?.try_into().ok()?),
            None => 0,
        };
        let caller = self.caller(stack, frames.min(FRAMES_MAX));
        let lock = at(self.begin.lock_at)?;
        Some(Event { time_ns, thread, lock, begins: Some((flags, caller)) })
    }

    /// The innermost kernel frame outside locking.
    fn caller(&mut self, stack: &[u8], frames: u64) -> Option<u64> {
        let mut bytes = Bytes(stack);
        for _ in 0..frames {
            let address = bytes.u64()?;
            if address >= MARKS {
                continue;
            }
            let symbols = &self.symbols;
            let is_caller = *self.callers.entry(address).or_insert_with(|| {
                symbols.find(address).is_some_and(|(name, _)| !lock_functions::is_locking(name))
            });
            if is_caller {
                return Some(address);
            }
        }
        None
    }

    /// Matches all records up to a moment. No older record may arrive later.
    pub fn settle(&mut self, until_ns: u64) {
        self.waiting.sort_by_key(|event| event.time_ns);
        let settled = self.waiting.partition_point(|event| event.time_ns <= until_ns);
        let rest = self.waiting.split_off(settled);
        for event in std::mem::replace(&mut self.waiting, rest) {
            self.take(event);
        }
    }

    fn take(&mut self, event: Event) {
        let key = (event.thread, event.lock);
        let Some((flags, caller)) = event.begins else {
            match self.open.remove(&key) {
                Some(open) => self.count(event.lock, &open, event.time_ns),
                None => self.ends_without_begin += 1,
            }
            return;
        };
        if let Some(open) = self.open.get_mut(&key) {
            // It spun, and now it sleeps: this is the same wait.
            open.flags = flags;
            return;
        }
        if self.open.len() < OPEN_MAX {
            self.open.insert(key, Open { since_ns: event.time_ns, flags, caller });
        }
    }

    fn count(&mut self, lock: u64, open: &Open, end_ns: u64) {
        let waited_ns = end_ns.saturating_sub(open.since_ns);
        let found = open.caller.and_then(|address| self.symbols.find(address));
        let (caller, module) = found.unwrap_or_default();
        let module = module.trim_matches(['[', ']']);
        let named = lock_functions::zfs_lock(caller, module);
        let key = (Kind::of(open.flags), caller.to_owned(), module.to_owned(), named);
        if self.rows.len() >= ROWS_MAX && !self.rows.contains_key(&key) {
            return;
        }
        let count = self.rows.entry(key).or_default();
        count.waits += 1;
        count.total_ns = count.total_ns.saturating_add(waited_ns);
        count.max_ns = count.max_ns.max(waited_ns);
        if count.locks.len() < ADDRESSES_MAX {
            count.locks.insert(lock);
        }
    }

    /// The table, longest total wait first. `kallsyms` is the text of /proc/kallsyms, for locks
    /// that are variables of the kernel.
    pub fn end(mut self, seconds: f64, kallsyms: &[u8]) -> LockTable {
        self.settle(u64::MAX);
        let variables = lock_functions::Variables::parse(kallsyms);
        let mut table = LockTable::new(Source::Tracepoints);
        table.seconds = Some(seconds);
        for ((kind, caller, module, named), count) in self.rows {
            let lock = match (named, count.locks.len(), count.locks.first()) {
                (Some(name), _, _) => name.to_owned(),
                (None, 1, Some(address)) => {
                    variables.find(*address).unwrap_or_else(|| format!("{address:#x}"))
                }
                (None, locks @ ADDRESSES_MAX.., _) => format!("({locks} locks or more)"),
                (None, locks, _) => format!("({locks} locks)"),
            };
            table.add(LockRow {
                lock,
                caller,
                module,
                kind: kind.title().to_owned(),
                waits: count.waits,
                total_wait_ns: Some(count.total_ns),
                max_wait_ns: Some(count.max_ns),
                mean_wait_ns: None,
                ..LockRow::default()
            });
        }
        table.rows = table.ranked().into_iter().cloned().collect();
        for (number, what) in [
            (
                self.lost,
                "records were lost because a ring was full: there were more waits than these",
            ),
            (self.open.len() as u64, "waits had not ended at the end, and are not counted"),
            (self.ends_without_begin, "waits had begun before the start, and are not counted"),
            (self.not_read, "records were not understood"),
        ] {
            if number > 0 {
                table.notes.push(format!("{number} {what}"));
            }
        }
        table
    }
}

/// Reads numbers from the front of bytes.
struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.take(8)?.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::seeded;
    use proptest::prelude::*;

    const BEGIN: &str = "name: contention_begin
ID: 408
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:void * lock_addr;\toffset:8;\tsize:8;\tsigned:0;
\tfield:unsigned int flags;\toffset:16;\tsize:4;\tsigned:0;
";
    const KALLSYMS: &str = "\
ffffffff81000000 T _text
ffffffff81001000 T __mutex_lock
ffffffff81002000 T mutex_lock
ffffffff81003000 T native_queued_spin_lock_slowpath
ffffffff81004000 T do_unlinkat
ffffffff82000000 D rename_lock
ffffffffc0001000 t dbuf_find\t[zfs]
ffffffffc0002000 t arc_evict_state\t[zfs]
";
    const MUTEX: u32 = 32;
    const SPIN: u32 = 1;

    fn begin() -> Layout {
        Layout::parse(BEGIN).expect("the layout of a kernel")
    }

    fn end() -> Layout {
        Layout { id: 407, flags_at: None, ..begin() }
    }

    /// A record as the kernel writes it.
    fn record(id: u16, tid: u32, time_ns: u64, stack: &[u64], lock: u64, flags: u32) -> Vec<u8> {
        let mut body = Vec::new();
        for number in [tid, tid] {
            body.extend(number.to_ne_bytes());
        }
        body.extend(time_ns.to_ne_bytes());
        body.extend(1u32.to_ne_bytes());
        body.extend(0u32.to_ne_bytes());
        body.extend((stack.len() as u64).to_ne_bytes());
        stack.iter().for_each(|address| body.extend(address.to_ne_bytes()));
        let mut raw = Vec::new();
        raw.extend(id.to_ne_bytes());
        raw.extend([0u8; 6]);
        raw.extend(lock.to_ne_bytes());
        raw.extend(flags.to_ne_bytes());
        body.extend(((raw.len() + 4) as u32).to_ne_bytes());
        body.extend(raw);
        body.extend([0u8; 4]);
        body
    }

    fn contention() -> Contention {
        Contention::new(begin(), end(), Kallsyms::parse(KALLSYMS.as_bytes()))
    }

    fn table(contention: Contention) -> LockTable {
        contention.end(10.0, KALLSYMS.as_bytes())
    }

    const IN_DBUF_FIND: [u64; 4] =
        [u64::MAX - 127, 0xffff_ffff_8100_1010, 0xffff_ffff_8100_2010, 0xffff_ffff_c000_1020];

    #[test]
    fn the_layout_comes_from_the_kernels_format_file() {
        assert_eq!(begin(), Layout { id: 408, lock_at: 8, flags_at: Some(16) });
        let moved = BEGIN.replace("offset:8;", "offset:24;").replace("offset:16;", "offset:32;");
        assert_eq!(Layout::parse(&moved).unwrap().lock_at, 24);
        assert_eq!(Layout::parse("ID: 3\n"), None);
        assert_eq!(Layout::parse(&BEGIN.replace("lock_addr", "other")), None);
    }

    #[test]
    fn a_wait_ends_after_nested_waits_and_on_any_ring() {
        let mut contention = contention();
        // The end arrives on another CPU's ring, which is drained first.
        contention.add(&record(407, 7, 5_000, &[], 0xaa, 0));
        contention.add(&record(408, 7, 1_000, &IN_DBUF_FIND, 0xaa, MUTEX | SPIN));
        // It sleeps at last; within the wait it waits for a spin lock.
        contention.add(&record(408, 7, 2_000, &IN_DBUF_FIND, 0xaa, MUTEX));
        contention.add(&record(408, 7, 2_100, &[0xffff_ffff_8100_4001], 0xbb, SPIN));
        contention.add(&record(407, 7, 2_300, &[], 0xbb, 0));
        contention.settle(3_000);
        contention.settle(6_000);
        let table = table(contention);
        assert_eq!(table.rows.len(), 2);
        let mutex = &table.rows[0];
        assert_eq!(
            (mutex.caller.as_str(), mutex.kind.as_str()),
            ("dbuf_find", "Adaptive mutex block")
        );
        assert_eq!(mutex.total_wait_ns, Some(4_000));
        assert!(mutex.lock.starts_with("hash_mutexes"), "{}", mutex.lock);
        let spin = &table.rows[1];
        assert_eq!((spin.caller.as_str(), spin.total_wait_ns), ("do_unlinkat", Some(200)));
        assert_eq!((spin.kind.as_str(), spin.lock.as_str()), ("Spin lock spin", "0xbb"));
        assert!(table.notes.is_empty(), "{:?}", table.notes);
    }

    #[test]
    fn locks_in_variables_are_named_and_others_are_counted() {
        let mut contention = contention();
        let stack = [0xffff_ffff_8100_3004, 0xffff_ffff_8100_4008];
        for (time, lock) in [(10, 0xffff_ffff_8200_0000), (30, 0xffff_ffff_8200_0010)] {
            let tid = 9 + time as u32;
            contention.add(&record(408, tid, time, &stack, lock, SPIN));
            contention.add(&record(407, tid, time + 5, &[], lock, 0));
        }
        let both = table(contention);
        assert_eq!((both.rows.len(), both.rows[0].lock.as_str()), (1, "(2 locks)"));
        let mut contention = self::contention();
        contention.add(&record(408, 1, 10, &stack, 0xffff_ffff_8200_0000, SPIN));
        contention.add(&record(407, 1, 15, &[], 0xffff_ffff_8200_0000, 0));
        assert_eq!(table(contention).rows[0].lock, "rename_lock");
    }

    #[test]
    fn idle_cpus_are_separate_threads_and_truncated_records_are_noted() {
        let mut contention = contention();
        contention.add(&record(407, 3, 5, &[], 0xcc, 0));
        contention.add(&record(408, 4, 6, &[], 0xdd, SPIN));
        contention.add(&[1, 2, 3]);
        contention.note_lost(12);
        let table = table(contention);
        assert!(table.rows.is_empty());
        assert_eq!(table.notes.len(), 4, "{:?}", table.notes);
        assert!(table.notes[0].starts_with("12 records were lost"), "{:?}", table.notes);
    }

    proptest! {
        #![proptest_config(seeded())]

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut contention = contention();
            contention.add(&bytes);
            let _ = table(contention);
        }

        #[test]
        fn damaged_records_are_survived(at in 0usize..100, byte in any::<u8>(), cut in 0usize..100) {
            let mut body = record(408, 7, 1_000, &IN_DBUF_FIND, 0xaa, MUTEX);
            let (at, cut) = (at % body.len(), cut % body.len());
            body[at] = byte;
            let mut contention = contention();
            contention.add(&body);
            contention.add(&body[..cut]);
            let _ = table(contention);
        }
    }
}
