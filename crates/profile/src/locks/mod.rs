//! Lock contention as one table, from any counter: illumos' and FreeBSD's `lockstat`, illumos'
//! `plockstat`, `perf lock contention`, `/proc/lock_stat`, ogive's own counters, and the kernel's
//! tracepoints, live.
//!
//! Rows are ranked by the total time waited, not by count. Thirty waits of 50 ms each are worse
//! than a million waits of 20 ns.

pub mod contention;
mod illumos_lockstat;
mod lock_functions;
mod ogive_counters;
mod perf_lock;
mod proc_lock_stat;

use serde::Serialize;

/// Rows read at most.
const ROWS_MAX: usize = 100_000;
/// Numbers of unrecognised lines remembered at most.
const UNREAD_MAX: usize = 10_000;
/// Functions in the stack of one row at most.
const STACK_MAX: usize = 64;

/// The tool that counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// `lockstat` of illumos or FreeBSD, or `plockstat`.
    Lockstat,
    /// `/proc/lock_stat`.
    LockStat,
    /// `perf lock contention`.
    PerfLock,
    /// ogive's own counters.
    Ogive,
    /// The kernel's tracepoints, live.
    Tracepoints,
}

/// One lock, or one caller of a lock, with its waits.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LockRow {
    /// The lock: a name or an address; empty if only the caller is known.
    pub lock: String,
    /// The function that waited; empty if it is unknown.
    pub caller: String,
    /// The module of the caller, `zfs`; empty for the kernel itself and if it is unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub module: String,
    /// The kind: `spinlock`, `mutex`, `rwsem:W`, `Adaptive mutex spin`.
    pub kind: String,
    /// The number of waits.
    pub waits: u64,
    /// The total time waited, in nanoseconds, if the source allows to compute it.
    pub total_wait_ns: Option<u64>,
    /// The longest wait, in nanoseconds.
    pub max_wait_ns: Option<u64>,
    /// The mean wait, in nanoseconds.
    pub mean_wait_ns: Option<f64>,
    /// The printed functions of the stack, innermost first.
    #[serde(skip)]
    pub stack: Vec<String>,
    /// The line of the text that the row is from, counted from 1; 0 without a text.
    #[serde(skip)]
    pub line: usize,
}

/// The table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LockTable {
    /// The tool that counted.
    pub source: Source,
    /// The length of counting, in seconds, if the source has it.
    pub seconds: Option<f64>,
    /// The rows, in the order of the source.
    pub rows: Vec<LockRow>,
    /// Notes about parts that were not recognised.
    pub notes: Vec<String>,
    /// The numbers of unrecognised lines in the table, from 1.
    #[serde(skip)]
    pub unread: Vec<usize>,
}

/// The text has no such table.
#[derive(Debug, thiserror::Error)]
#[error(
    "no lock table is recognised; known are lockstat of illumos and FreeBSD, \"perf lock \
     contention\", /proc/lock_stat and ogive's lock counters"
)]
pub struct LockError;

/// Reads a table, recognised by its content.
///
/// # Errors
///
/// No row of any known table is in the text.
pub fn read(text: &str) -> Result<LockTable, LockError> {
    let readers =
        [illumos_lockstat::read, perf_lock::read, proc_lock_stat::read, ogive_counters::read];
    readers.into_iter().find_map(|read| read(text)).ok_or(LockError)
}

impl LockRow {
    /// Adds a function to the stack.
    fn follow(&mut self, function: &str) {
        if self.stack.len() < STACK_MAX {
            self.stack.push(function.to_owned());
        }
    }
}

impl LockTable {
    fn new(source: Source) -> Self {
        Self { source, seconds: None, rows: Vec::new(), notes: Vec::new(), unread: Vec::new() }
    }

    fn add(&mut self, mut row: LockRow) {
        if self.rows.len() >= ROWS_MAX {
            return;
        }
        match (row.total_wait_ns, row.mean_wait_ns) {
            (None, Some(mean)) => row.total_wait_ns = Some((mean * row.waits as f64) as u64),
            (Some(total), None) if row.waits > 0 => {
                row.mean_wait_ns = Some(total as f64 / row.waits as f64);
            }
            _ => {}
        }
        self.rows.push(row);
    }

    /// Remembers an unrecognised line.
    fn leave(&mut self, line: usize) {
        if self.unread.len() < UNREAD_MAX {
            self.unread.push(line);
        }
    }

    /// The table, unless it is empty.
    fn end(mut self) -> Option<Self> {
        if !self.unread.is_empty() {
            self.notes.push(format!(
                "{} not understood",
                ogive_text::counted(self.unread.len(), "line was", "lines were")
            ));
        }
        (!self.rows.is_empty()).then_some(self)
    }

    /// The rows, longest total wait first. Rows without times follow, most waits first.
    pub fn ranked(&self) -> Vec<&LockRow> {
        let mut rows: Vec<&LockRow> = self.rows.iter().collect();
        rows.sort_by(|a, b| {
            (b.total_wait_ns, b.waits)
                .cmp(&(a.total_wait_ns, a.waits))
                .then_with(|| (&a.lock, &a.caller).cmp(&(&b.lock, &b.caller)))
        });
        rows
    }

    /// The part of all time waited that a row has, 0 to 1.
    pub fn share(&self, row: &LockRow) -> f64 {
        let total = |row: &LockRow| row.total_wait_ns.unwrap_or(0) as f64;
        let all: f64 = self.rows.iter().map(total).sum();
        if all > 0.0 { total(row) / all } else { 0.0 }
    }
}

/// A number in any locale: `1,234`, or `12,5` where a comma is the decimal point.
fn number(text: &str) -> Option<f64> {
    let plain = match (text.matches(',').count(), text.rsplit_once(',')) {
        (0, _) => text.to_owned(),
        (1, Some((_, fraction))) if fraction.len() != 3 && !text.contains('.') => {
            text.replace(',', ".")
        }
        _ => text.replace(',', ""),
    };
    plain.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::seeded;
    use proptest::prelude::*;

    const LOCKSTAT: &str = "\
Adaptive mutex spin: 4218 events in 10.016 seconds (421 events/sec)

Count indv cuml rcnt     nsec Lock                   Caller                  
-------------------------------------------------------------------------------
 3000  71%  71% 0.00      400 ARC_mfu+0x40           arc_evict_state+0x1a2    
   30   1%  72% 0.00 55000000 0xffffff01d2          zio_taskq_dispatch+0x73  
 1188  28% 100% 0.00     1200 buf hash table lock    arc_buf_remove_ref+0x99 
-------------------------------------------------------------------------------

R/W reader blocked: 2 events in 10.016 seconds (0 events/sec)

Count indv cuml rcnt     nsec Hottest Lock           Hottest Caller
-------------------------------------------------------------------------------
    2 100% 100% 0.00     9000 zfs_lock               zfs_read+0x1
-------------------------------------------------------------------------------
";

    #[test]
    fn lockstat_is_ranked_by_time_not_by_count() {
        let table = read(LOCKSTAT).unwrap();
        assert_eq!((table.source, table.rows.len()), (Source::Lockstat, 4));
        assert_eq!(table.seconds, Some(10.016));
        let ranked = table.ranked();
        assert_eq!((ranked[0].waits, ranked[0].caller.as_str()), (30, "zio_taskq_dispatch"));
        assert_eq!(ranked[0].total_wait_ns, Some(1_650_000_000));
        assert!(table.share(ranked[0]) > 0.99);
        let named = table.rows.iter().find(|row| row.caller == "arc_buf_remove_ref").unwrap();
        assert_eq!(
            (named.lock.as_str(), named.kind.as_str()),
            ("buf hash table lock", "Adaptive mutex spin")
        );
        assert_eq!(table.rows[3].kind, "R/W reader blocked");
        assert!(table.notes.is_empty(), "{:?}", table.notes);
    }

    #[test]
    fn perf_lock_tables_are_read_in_their_forms() {
        let by_caller = " contended   total wait     max wait     avg wait         type   caller\n\n\
            \x20       172     2.36 ms    109.79 us     13.73 us     spinlock   task_numa_free+0x48\n\
            \x20         2      3.39 s      1.99 s      1.70 s      rwsem:W   do_unlink+0x12\n";
        let table = read(by_caller).unwrap();
        assert_eq!((table.source, table.rows.len()), (Source::PerfLock, 2));
        assert_eq!(table.ranked()[0].caller, "do_unlink");
        assert_eq!(table.ranked()[0].total_wait_ns, Some(3_390_000_000));
        assert_eq!(table.rows[0].max_wait_ns, Some(109_790));
        let by_lock = " contended   total wait     max wait     avg wait            address   symbol\n\
            \x20        13      2.09 us       273 ns       160 ns   ffff8c3a1b       zfs_arc_mru (spinlock)\n";
        let table = read(by_lock).unwrap();
        assert_eq!(
            (table.rows[0].lock.as_str(), table.rows[0].kind.as_str()),
            ("zfs_arc_mru", "spinlock")
        );
        let by_thread = " contended   total wait     max wait     avg wait          pid   comm\n\
            \x20        19    22.5 ms      9 ms     1.2 ms       316   z_rd_int 3\n";
        assert_eq!(read(by_thread).unwrap().rows[0].caller, "z_rd_int 3 (316)");
        let csv = "# output: contended, total wait, max wait, avg wait, type, caller\n\
            172, 2360000, 109790, 13730, spinlock, task_numa_free+0x48\n";
        assert_eq!(read(csv).unwrap().rows[0].mean_wait_ns, Some(13_730.0));
    }

    #[test]
    fn stacks_and_lines_are_kept() {
        let perf = " contended   total wait     max wait     avg wait         type   caller\n\n\
            \x20        2     3.39 s      1.99 s      1.70 s      rwsem:W   do_unlink+0x12\n\
            \x20                0xffffffff8a1  rwsem_down_write_slowpath+0x3a1\n\
            \x20                0xffffffffc0b  do_unlink+0x12 [zfs]\n\
            no row of this table\n";
        let table = read(perf).unwrap();
        assert_eq!((table.rows[0].line, &table.unread[..]), (3, &[6][..]));
        let stack = ["rwsem_down_write_slowpath+0x3a1", "do_unlink+0x12 [zfs]"];
        assert_eq!(table.rows[0].stack, stack);
        let lockstat =
            format!("{}  zfs`arc_evict+0x9a\n", &LOCKSTAT[..LOCKSTAT.find("   30").unwrap()]);
        let table = read(&lockstat).unwrap();
        assert_eq!((table.rows[0].line, &*table.rows[0].stack[0]), (5, "zfs`arc_evict+0x9a"));
        let plockstat = "Mutex block\n\nCount     nsec Lock                         Caller\n\
            -----------------------\n\
            \x20  12   345678 libc.so.1`libc_malloc_lock   zfs`main+0x12\n";
        let row = &read(plockstat).unwrap().rows[0];
        assert_eq!((&*row.kind, &*row.caller, row.waits), ("Mutex block", "zfs`main", 12));
        assert_eq!(row.total_wait_ns, Some(12 * 345_678));
    }

    #[test]
    fn the_kernels_own_statistics_are_read() {
        let text = "lock_stat version 0.4\n-----\n   class name    con-bounces ...\n\n\
            \x20   &mls->mls_lock:  12345  23456  0.10  950.20  789012.30  33.60  456789\n\
            \x20   --------------\n\
            \x20   &mls->mls_lock   1234  [<ffffffffc0b05bca>] multilist_sublist_lock+0x18/0x30\n";
        let table = read(text).unwrap();
        let row = &table.rows[0];
        assert_eq!(
            (table.source, &*row.lock, row.waits),
            (Source::LockStat, "&mls->mls_lock", 23456)
        );
        assert_eq!((row.total_wait_ns, row.max_wait_ns), (Some(789_012_300), Some(950_200)));
        assert_eq!((row.line, row.stack.len(), table.unread.len()), (5, 1, 0));
    }

    #[test]
    fn own_counters_are_read() {
        let engine = read("lock_waits 4 3\nlock_wait_ns 4 900\n").unwrap();
        assert_eq!((engine.rows[0].waits, engine.rows[0].mean_wait_ns), (3, Some(300.0)));
        let text = "7 1 0x01 4 272 12345 67890\nname type data\n\
            lock_sublist_waits 4 12\nlock_sublist_wait_ns 4 3600\nlock_ledger_waits 4 1\nother 4 9\n";
        let table = read(text).unwrap();
        assert_eq!((table.source, table.rows.len()), (Source::Ogive, 2));
        assert_eq!(
            (table.ranked()[0].lock.as_str(), table.ranked()[0].mean_wait_ns),
            ("sublist", Some(300.0))
        );
    }

    #[test]
    fn other_texts_are_refused() {
        assert!(read("").is_err() && read("contended\nlock\n").is_err());
        assert_eq!(number("1,234"), Some(1234.0));
        assert_eq!(number("12,5"), Some(12.5));
    }

    proptest! {
        #![proptest_config(seeded())]

        #[test]
        fn any_text_is_survived(text in "(.*\n?){0,20}") {
            let _ = read(&text);
        }

        #[test]
        fn damaged_tables_are_survived(cut in 0..LOCKSTAT.len(), byte in any::<u8>()) {
            let mut bytes = LOCKSTAT.as_bytes().to_vec();
            bytes[cut] = byte;
            let _ = read(&String::from_utf8_lossy(&bytes));
            let _ = read(&String::from_utf8_lossy(&bytes[..cut]));
        }
    }
}
