//! The one table of formats: the line that begins each, the rows that identify it without a
//! heading, and the reader.
//!
//! Order matters only if two entries match one line: the earlier wins. Names of files do not matter
//! here.

use std::sync::LazyLock;

use super::format::{Begins, Format, Index, Table, always, format, lines, table};
use super::host::{cgroups, control_directory, disks as disk_counters, served, tasks};
use super::lines::formats::{host as host_lines, memory as memory_lines, tools};
use super::profile::{
    call_graph, folded, kernel_stack, locks, perf_report, perf_script, tool_stacks,
};
use super::small_tools;
use super::system::{atopsar, host, interrupts, log, memory, proc_stat};
use super::table::formats::{caches, disks, intervals, lists, systems};
use super::table::{Layout, bare as bare_layouts, is_row};
use super::text::clean::Line;
use super::text::word_lists;
use super::threads::{
    cgtop, headless_rows, ps, screens, spindump, thread_tools, windows_counters, windows_lists,
};
use super::zfs::{arc_summary, bench, commands, kstat, parameters, properties, txgs, zpool};

static TABLE: Table = Table::of(FORMATS, || Index::of(FORMATS));
static WHOLE_TABLE: Table = Table::of(WHOLE, || Index::of(WHOLE));

/// The format that begins at the first of `lines`.
pub(crate) fn begins(lines: &[Line<'_>]) -> Option<&'static Format> {
    #[cfg(test)]
    LINES_TESTED.with(|count| count.set(count.get() + 1));
    TABLE.begins(lines)
}

#[cfg(test)]
thread_local! {
    /// Number of lines that were tested as beginnings.
    pub(crate) static LINES_TESTED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The format of a section that no line of its own begins.
pub(crate) fn whole(lines: &[Line<'_>]) -> Option<&'static Format> {
    WHOLE_TABLE.begins(lines)
}

/// Whether `text` certainly continues a section of `format`.
pub(crate) fn is_kept(format: &Format, text: &str) -> bool {
    format.keeps_line(text) || !format.table.is_empty() && format.is(bare_row(text))
}

/// The format that has `text` as a row without a heading.
pub(crate) fn row(text: &str) -> Option<&'static Format> {
    if text.len() > 4096 {
        return None;
    }
    let bare = bare_row(text);
    FORMATS.iter().find(|format| format.is(bare) || format.is_row(text))
}

/// Columns of rows of lists without a heading, with their format.
static BARE: LazyLock<Vec<(&Format, Layout<'static>)>> = LazyLock::new(|| {
    let bare = |format: &'static Format| {
        let lists = format.table.iter().filter(|table| table.percent.is_some());
        lists.flat_map(bare_layouts).map(move |layout| (format, layout))
    };
    FORMATS.iter().flat_map(bare).collect()
});

/// The format of the list whose columns `text` fits.
fn bare_row(text: &str) -> Option<&'static Format> {
    BARE.iter().find(|(_, layout)| is_row(layout, text)).map(|(format, _)| *format)
}

fn is_pool_state(text: &str) -> bool {
    word_lists::has("ONLINE DEGRADED FAULTED SUSPENDED UNAVAIL", text)
}

/// A line of `/proc/kallsyms`.
fn is_symbol(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let is_address =
        |word: &str| word.len() == 16 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    words.next().is_some_and(is_address) && words.next().is_some_and(|kind| kind.len() == 1)
}

fn first<'a>(lines: &'a [Line<'_>]) -> &'a str {
    lines.first().map_or("", |line| line.text.trim())
}

/// Whether one of the next few lines that are not blank satisfies `test`.
fn soon(lines: &[Line<'_>], test: fn(&str) -> bool) -> bool {
    let next = lines.iter().skip(1).filter(|line| !line.text.trim().is_empty());
    next.take(3).any(|line| test(&line.text))
}

fn is_kstat_data(text: &str) -> bool {
    always(text) && !kstat::is_header(text) && !word_lists::begin_words("name type data", text)
}

fn is_taskq_summary(text: &str) -> bool {
    text.starts_with('|') && text.contains("tasks on queue")
        || text.starts_with("taskq name") && text.contains("[act")
}

fn is_other_kstat(text: &str) -> bool {
    text.starts_with("id ") && text.contains("mmp_delay")
        || text.starts_with("UID ") && text.contains("objset")
        || text.starts_with("pool_guid ")
}

/// Whether a line is a time, followed by the output of `uptime`.
fn is_uptime(text: &str) -> bool {
    let is_time = |text: &str| text.starts_with(|c: char| c.is_ascii_digit()) && text.contains(':');
    let has_load = |text: &str| host_lines::UPTIME.is_first(text);
    text.starts_with("load average") && has_load(text)
        || text.split_once(" up ").is_some_and(|(time, rest)| is_time(time) && has_load(rest))
}

fn is_dbgmsg(text: &str) -> bool {
    word_lists::begin_words("timestamp message", text) || log::is_dbgmsg(text)
}

fn is_bench_data(text: &str) -> bool {
    is_kstat_data(text) && !text.trim_start().starts_with("implementation")
}

fn begins_perf_script(lines: &[Line<'_>]) -> bool {
    let Some(line) = lines.first() else { return false };
    // A sample has a time with a colon after it; other lines are rejected by this cheap test.
    let is_time = |word: &str| {
        let time = word.strip_suffix(':').and_then(|time| time.split_once('.'));
        time.is_some_and(|(whole, _)| whole.bytes().all(|byte| byte.is_ascii_digit()))
    };
    if !line.text.split_ascii_whitespace().any(is_time) {
        return false;
    }
    let alone = || line.text.contains(" (") && line.text.ends_with(')');
    perf_script::is_header(&line.text) && (soon(lines, perf_script::is_frame) || alone())
}

/// Whether the lines are a row without a heading, and a graph drawn below it.
fn begins_perf_rows(lines: &[Line<'_>]) -> bool {
    perf_report::is_row(first(lines))
        && lines.get(1).is_some_and(|next| {
            let text = next.text.trim();
            text.starts_with('|') || text.starts_with("--")
        })
}

fn begins_zpool_status(lines: &[Line<'_>]) -> bool {
    let next =
        |text: &str| ["state:", "id:", "scan:"].iter().any(|field| text.trim().starts_with(field));
    first(lines).starts_with("pool: ") && (lines.len() < 3 || soon(lines, next))
}

fn begins_ogive_mount(lines: &[Line<'_>]) -> bool {
    const MARKS: [&str; 3] = ["\"mount_point\"", "\"arc_max_bytes\"", "\"record_size_bytes\""];
    let marked = |line: &Line<'_>| MARKS.iter().any(|mark| line.text.contains(mark));
    first(lines) == "{" && lines.iter().take(40).any(marked)
}

fn begins_command_line(lines: &[Line<'_>]) -> bool {
    parameters::is_command_line(first(lines))
        && lines.iter().filter(|line| !line.text.trim().is_empty()).count() == 1
}

fn begins_free(lines: &[Line<'_>]) -> bool {
    memory::is_free_heading(first(lines), lines.get(1).map_or("", |line| line.text.trim()))
}

fn begins_task(lines: &[Line<'_>]) -> bool {
    lines.iter().take(2).any(|line| tasks::is_task(&line.text))
}

fn is_figures(text: &str) -> bool {
    text.trim_start().starts_with(|c: char| c.is_ascii_digit()) && !kstat::is_header(text)
}

fn is_many_words(text: &str) -> bool {
    text.split_whitespace().count() >= 7 && !zpool::is_iostat_heading(text)
}

fn begins_stack(lines: &[Line<'_>]) -> bool {
    lines.first().is_some_and(|line| {
        kernel_stack::is_frame(&line.text) || kernel_stack::is_thread(&line.text)
    })
}

fn has_bar(text: &str) -> bool {
    text.contains(" | ")
}

fn has_heading_of_properties(text: &str) -> bool {
    properties::is_list_heading(text)
        || matches!(text, "no pools available" | "no datasets available")
}

fn is_dtrace(text: &str) -> bool {
    tools::DTRACE.is_first(text) || word_lists::begin_words("CPU ID FUNCTION:NAME", text)
}

fn begins_atop(text: &str) -> bool {
    text.starts_with("PRC |")
        || text.starts_with("CPL | avg1")
        || ["CPU |", "cpu |"].iter().any(|begin| text.starts_with(begin))
            && text.contains("sys")
            && text.contains("idle")
        || text.starts_with("ATOP - ")
        || text.starts_with("PID ") && text.contains("SYSCPU") && text.contains("CMD")
}

fn is_illumos_row(text: &str) -> bool {
    text.starts_with("        ") || text.starts_with('\t') || text.starts_with("name:")
}

use Begins::{First, Heading, Line as ByLine, Lines as ByLines, Nothing};

static FORMATS: &[Format] = &[
    format("limits of groups", ByLine(cgroups::is_row), cgroups::read).row(cgroups::is_row).each_line(),
    lines(&served::SERVED),
    format("perf script", ByLines(begins_perf_script), perf_script::read).each_line().keeps(perf_script::is_sure_frame),
    format("perf report", First("Children Self *|# Children Self *|Overhead *|# Overhead *|Samples: * of event|# Samples: * of event|PerfTop:|# To display the perf.data|# Total Lost Samples"), perf_report::read).row(perf_report::is_row).keeps(call_graph::is_drawn).filled(perf_report::is_data).absorbs(&["perf report rows"]),
    format("perf report rows", ByLines(begins_perf_rows), perf_report::read).keeps(call_graph::is_drawn).absorbs(&["perf report rows"]),
    lines(&host_lines::PERF_HEADER),
    lines(&tools::PERF_STAT),
    format("perf lock contention", First("contended total wait"), locks::read),
    format("lockstat", ByLine(locks::begins_lockstat), locks::read).with("indv events").row(locks::is_lockstat_row).filled(locks::is_lockstat_row),
    format("plockstat", ByLine(locks::begins_plockstat), locks::read).with("Count Mutex R/W").filled(is_figures),
    format("lock_stat", First("lock_stat version"), locks::read),
    format("kstat", First("name type data|kfpu_allowed"), kstat::read_linux).row(kstat::is_known_row).filled(is_kstat_data),
    format("txgs", First("txg birth"), txgs::read).filled(is_figures),
    lines(&memory_lines::TASKQS).begins(ByLine(is_taskq_summary)),
    format("benchmark", First("implementation *"), bench::read).filled(is_bench_data),
    format("dbufs", First("dbuf * arcbuf"), proc_stat::read_nothing).keeps(has_bar),
    format("kstat of another shape", ByLine(is_other_kstat), proc_stat::read_nothing),
    lines(&host_lines::DBGMSG).begins(ByLine(is_dbgmsg)),
    format("kstat of illumos", ByLine(kstat::is_illumos), kstat::read_illumos).each_line().keeps(is_illumos_row),
    format("sysctl", ByLine(parameters::is_sysctl), parameters::read_sysctl).row(parameters::is_sysctl).each_line(),
    format("arc_summary", First("ZFS Subsystem Report|ARC Summary:|ARC status:|ARC size (current):|ARC Misc:|ARC Size:|ARC Efficiency:|DMU Efficiency:|File-Level Prefetch|File-Level Prefetch:|L2 ARC Summary|L2 ARC Summary:"), arc_summary::read).absorbs(&["arc_summary", "module parameters", "sysctl"]),
    table(&caches::ARCSTAT),
    format("atop", ByLine(begins_atop), thread_tools::read_atop).rows(&lists::ATOP).absorbs(&["atop", "top", "ps"]),
    table(&lists::PIDSTAT),
    table(&lists::CONTAINERS),
    table(&lists::PRSTAT),
    format("procstat -kk", First("PID TID COMM TDNAME KSTACK"), kernel_stack::read_procstat),
    format("iotop", Heading, thread_tools::read_iotop).rows(&lists::IOTOP).filled(is_figures),
    table(&lists::BIOTOP),
    table(&caches::CACHESTAT),
    table(&lists::KUBECTL),
    format("systemd-cgtop", Heading, cgtop::read_groups).rows(&lists::GROUPS).absorbs(&["systemd-cgtop"]),
    format("top of macOS", ByLine(screens::begins_macos), screens::read_macos).rows(&systems::MACOS_TOP).absorbs(&["top of macOS"]),
    table(&systems::ACTIVITY_MONITOR),
    table(&lists::POWERMETRICS),
    format("Get-Process", ByLines(windows_lists::begins_processes), windows_lists::read_processes).rows(&systems::GET_PROCESS).absorbs(&["Get-Process"]),
    format("tasklist", ByLines(windows_lists::begins_tasks), windows_lists::read_tasks).absorbs(&["tasklist"]),
    table(&systems::WINDOWS),
    format("counters of Windows", ByLine(windows_counters::begins), windows_counters::read).absorbs(&["counters of Windows"]),
    format("busybox top", ByLine(screens::begins_busybox), screens::read_busybox).rows(&systems::BUSYBOX).keeps(screens::is_busybox_heading).absorbs(&["busybox top"]),
    format("btop", ByLine(screens::begins_btop), screens::read_btop).rows(&systems::BTOP).absorbs(&["btop"]),
    format("htop", ByLine(screens::begins_htop), screens::read_htop).rows(&systems::HTOP).absorbs(&["htop"]).filled(is_figures),
    format("top", ByLine(screens::begins_top), screens::read_top).rows(&lists::TOP).filled(is_figures).keeps(screens::is_top_heading),
    format("ps", ByLines(ps::begins), ps::read).rows(&lists::PS).absorbs(&["ps"]),
    lines(&host_lines::UPTIME).begins(ByLine(is_uptime)),
    lines(&host_lines::LOGINS),
    lines(&host_lines::LOADAVG),
    lines(&host_lines::PROC_UPTIME),
    lines(&memory_lines::MEMINFO),
    format("free", ByLines(begins_free), memory::read_free),
    lines(&memory_lines::PROC_VMSTAT),
    lines(&memory_lines::PRESSURE),
    lines(&control_directory::MEMORY),
    lines(&memory_lines::BUDDYINFO),
    format("zoneinfo", First("Node * zone *"), proc_stat::read_nothing).each_line().absorbs(&["vmstat file"]),
    table(&intervals::VMSTAT),
    format("atopsar", ByLine(atopsar::begins), atopsar::read).absorbs(&["atopsar"]),
    table(&intervals::DSTAT),
    table(&intervals::TURBOSTAT),
    lines(&memory_lines::VMSTAT_SUMS),
    table(&disks::CIFSIOSTAT),
    table(&intervals::SARS),
    table(&intervals::MPSTAT_ILLUMOS),
    table(&disks::IOSTAT),
    table(&disks::GSTAT),
    lines(&tools::SMARTCTL),
    format("interrupts", ByLine(interrupts::is_heading), interrupts::read).with("CPU0"),
    lines(&memory_lines::VMSTAT_I),
    table(&disks::SWAP),
    lines(&tools::STRACE_C),
    lines(&tools::PG_TEST_FSYNC),
    lines(&memory_lines::SPL_SLAB),
    lines(&memory_lines::SLABINFO),
    table(&caches::SLABTOP),
    lines(&memory_lines::TASKQ),
    format("zfs get", ByLine(properties::is_heading), properties::read_get).row(properties::is_row),
    format("zpool list", ByLine(has_heading_of_properties), properties::read_list),
    format("zpool status", ByLines(begins_zpool_status), zpool::read_status).absorbs(&["zpool status"]),
    format("zpool iostat", ByLine(zpool::is_iostat_beginning), zpool::read_iostat).filled(is_many_words).absorbs(&["zpool iostat"]),
    lines(&parameters::PARAMETERS).begins(ByLine(parameters::is_parameter)).row(parameters::is_parameter),
    format("kernel stack", ByLines(begins_stack), kernel_stack::read).row(kernel_stack::is_frame).each_line(),
    format("kernel log", ByLine(log::is_dmesg), log::read_dmesg).each_line().absorbs(&["kernel stack"]),
    lines(&host_lines::UDEV),
    lines(&tools::STRACE),
    format("stacks of BPF tools", ByLine(tool_stacks::is_beginning), tool_stacks::read).keeps(tool_stacks::is_of).absorbs(&["stacks of BPF tools"]),
    lines(&tools::BPFTRACE),
    lines(&tools::DTRACE).begins(ByLine(is_dtrace)),
    format("zdb", ByLine(small_tools::is_metaslab), small_tools::read_zdb).each_line(),
    format("spindump", ByLine(spindump::begins), spindump::read).keeps(spindump::is_of).absorbs(&["spindump"]),
    format("sample", First("Call graph:"), small_tools::read_sample),
    lines(&tools::TIME),
    lines(&host_lines::BUG_FORM),
    lines(&host_lines::LSCPU),
    lines(&host_lines::VERSION),
    lines(&host_lines::ARCHITECTURE),
    format("commands of ZFS", ByLine(commands::is_command), commands::read).each_line(),
    format("listed properties", ByLine(commands::is_listed), commands::read_listed).each_line(),
    lines(&memory_lines::MDSTAT).absorbs(&["mdstat"]),
    lines(&memory_lines::PROCINFO),
    lines(&host_lines::MODINFO),
    lines(&host_lines::SETTINGS),
    format("rows without a heading", Nothing, headless_rows::read).row(headless_rows::is_row),
];

/// Formats that only a whole section shows; tried on sections that no entry above began.
static WHOLE: &[Format] = &[
    lines(&host_lines::PROC_STAT).begins(First("cpu * * * * * *")),
    format("thread statistics", ByLines(begins_task), tasks::read),
    lines(&disk_counters::DISKSTATS),
    format("modules", First("Module Size Used by|* * * * Live"), host::read_modules),
    lines(&host_lines::MOUNTS),
    format("ogive mount", ByLines(begins_ogive_mount), host::read_ogive_mount),
    format("ogive control file", ByLines(control_directory::begins_json), proc_stat::read_nothing),
    lines(&parameters::COMMAND_LINE).begins(ByLines(begins_command_line)),
    lines(&host_lines::LAYOUT),
    format(
        "schedstat",
        First("version 14|version 15|version 16|version 17"),
        proc_stat::read_nothing,
    ),
    format("pool state", ByLine(is_pool_state), zpool::read_state),
    format("symbols", ByLine(is_symbol), proc_stat::read_nothing),
];

/// Folded stacks have no heading; their rows identify them.
pub(crate) static FOLDED: Format =
    format("folded stacks", Nothing, folded::read).row(folded::is_row).each_line();

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::text::clean;

    fn name(text: &str) -> &'static str {
        begins(&clean::lines(text.as_bytes())).map_or("", |format| format.name)
    }

    #[test]
    fn formats_are_recognised_by_their_first_line() {
        for (text, format) in [
            ("12 1 0x01 2 544 0 0\nname                            type data\nhits 4 1\n", "kstat"),
            ("name                            type data\nhits 4 1\n", "kstat"),
            ("27 0 0x01 4 448 0 0\ntxg      birth            state ndirty otime\n", "txgs"),
            ("0 0 0x01 -1 0 0 0\nimplementation   native          byteswap\n", "benchmark"),
            ("top - 10:11:01 up 14:51,  2 users,  load average: 33.03, 7.77, 2.61", "top"),
            (" 16:12:25 up 5:20,  3 users,  load average: 3.29, 3.32, 3.19", "uptime"),
            ("USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND", "ps"),
            ("UID          PID    PPID  C STIME TTY          TIME CMD", "ps"),
            ("# Overhead  Command   Shared Object      Symbol", "perf report"),
            ("  Children      Self  Shared Object  Symbol", "perf report"),
            ("NAME  PROPERTY  VALUE  SOURCE", "zfs get"),
            (
                "NAME   SIZE  ALLOC  FREE  CKPOINT  EXPANDSZ  FRAG  CAP  DEDUP  HEALTH  ALTROOT",
                "zpool list",
            ),
            ("    time  read  miss  miss%  dmis  dm%  pmis  pm%  mmis  mm%  arcsz    c", "arcstat"),
            ("/sys/module/zfs/parameters/zfs_arc_max:4294967296", "module parameters"),
            ("kstat.zfs.misc.arcstats.hits: 12", "sysctl"),
            ("module: zfs                             instance: 0     ", "kstat of illumos"),
            ("Count indv cuml rcnt     nsec Lock                   Caller", "lockstat"),
            ("03:00:01 PM  pgpgin/s pgpgout/s   fault/s  majflt/s", "sar"),
            ("[<ffffffffaa796708>] call_rwsem_down_read_failed+0x18/0x30", "kernel stack"),
            (
                "[  123.456789] INFO: task txg_sync:123 blocked for more than 120 seconds.",
                "kernel log",
            ),
            ("zfs-2.1.4", "version"),
            ("Linux", "version"),
            ("MemTotal:        8388608 kB", "meminfo"),
            ("The pool has a cache device on NVMe and holds only zvols.", ""),
            ("zfs version: 0.8 to 2.1", ""),
        ] {
            assert_eq!(name(text), format, "{text}");
        }
    }
}
