//! The one table of formats: by which line each begins, which rows are known without their heading,
//! and who reads it.
//!
//! Order matters only where two entries match one line: the earlier wins. Nothing here looks at a
//! file's name.

use std::sync::LazyLock;

use regex::Regex;

use super::clean::Line;
use super::reading::Reading;
use super::section::Section;
use super::{
    arc_summary, arcstat, bench, folded, host, interval_tools, kernel_stack, kstat, load, locks,
    log, memory, parameters, perf_report, perf_script, proc_stat, properties, ps, slab,
    small_tools, thread_tools, top, txgs, zpool,
};

/// One format.
pub(crate) struct Format {
    /// What people call it.
    pub name: &'static str,
    /// Whether it begins at the first of these lines (a few of the next may be looked at).
    begins: fn(&[Line<'_>]) -> bool,
    /// Whether a line is a row of it without any heading.
    row: fn(&str) -> bool,
    /// Whether every line of it matches `begins`, so that neighbours belong together.
    pub each_line: bool,
    /// Whether a line is a row of data: behind one, another beginning is another section.
    filled: fn(&str) -> bool,
    /// Whether a line surely belongs to a section that has begun.
    keeps: fn(&str) -> bool,
    /// Formats whose beginnings are part of this one.
    absorbs: &'static [&'static str],
    /// Its reader.
    pub read: fn(&Section<'_>, &mut Reading<'_>),
}

impl std::fmt::Debug for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Format {
    /// Whether this format begins at the first of `lines`.
    pub fn begins_at(&self, lines: &[Line<'_>]) -> bool {
        (self.begins)(lines)
    }

    /// Whether `text` surely belongs to a section of this format.
    pub fn keeps(&self, text: &str) -> bool {
        (self.keeps)(text)
    }

    /// Whether `text` is a row of data of this format.
    pub fn is_filled_by(&self, text: &str) -> bool {
        (self.filled)(text)
    }

    /// Whether the beginning of `other` is part of this format.
    pub fn absorbs(&self, other: &Format) -> bool {
        self.absorbs.contains(&other.name)
    }
}

fn never(_: &str) -> bool {
    false
}

fn always(text: &str) -> bool {
    !text.trim().is_empty()
}

const PLAIN: Format = Format {
    name: "",
    begins: |_| false,
    row: never,
    each_line: false,
    filled: always,
    keeps: never,
    absorbs: &[],
    read: proc_stat::read_nothing,
};

/// The format that begins at the first of `lines`.
pub(crate) fn begins(lines: &[Line<'_>]) -> Option<&'static Format> {
    let text = lines.first()?.text.trim();
    // Longer lines are data of formats that are known by their first line.
    if text.is_empty() || text.len() > 8192 {
        return None;
    }
    FORMATS.iter().find(|format| (format.begins)(lines))
}

/// The format of which `text` is a row, without heading.
pub(crate) fn row(text: &str) -> Option<&'static Format> {
    if text.len() > 4096 {
        return None;
    }
    FORMATS.iter().find(|format| (format.row)(text))
}

fn first<'a>(lines: &'a [Line<'_>]) -> &'a str {
    lines.first().map_or("", |line| line.text.trim())
}

/// Whether one of the next few lines that are not blank satisfies `test`.
fn soon(lines: &[Line<'_>], test: fn(&str) -> bool) -> bool {
    lines
        .iter()
        .skip(1)
        .filter(|line| !line.text.trim().is_empty())
        .take(3)
        .any(|line| test(&line.text))
}

macro_rules! matches_pattern {
    ($text:expr, $pattern:literal) => {{
        static PATTERN: LazyLock<Regex> =
            LazyLock::new(|| Regex::new($pattern).expect("a constant pattern"));
        PATTERN.is_match($text)
    }};
}

fn is_kstat_header(text: &str) -> bool {
    matches_pattern!(text, r"^\d+ \d+ 0x[0-9a-fA-F]+ -?\d+ \d+ -?\d+ -?\d+$")
}

/// The seven numbers of a kstat, or the line under them where those are missing.
fn begins_kstat(lines: &[Line<'_>]) -> bool {
    let text = first(lines);
    let named = |text: &str| text.split_whitespace().eq(["name", "type", "data"]);
    is_kstat_header(text)
        && soon(lines, |text| text.split_whitespace().eq(["name", "type", "data"]))
        || named(text)
}

fn begins_table(lines: &[Line<'_>], heading: fn(&str) -> bool) -> bool {
    let text = first(lines);
    heading(text)
        || is_kstat_header(text) && lines.get(1).is_some_and(|line| heading(line.text.trim()))
}

fn is_percent_row(text: &str) -> bool {
    matches_pattern!(
        text.trim(),
        r"^[-+]?\s*\d{1,3}[.,]\d+%\s+(?:\d{1,3}[.,]\d+%\s+)?.*\[[k.gu]\]\s+\S"
    )
}

fn is_perf_data_row(text: &str) -> bool {
    matches_pattern!(text.trim(), r"^[-+]?\s*\d{1,3}[.,]\d+%\s+\S")
}

fn begins_perf_report(lines: &[Line<'_>]) -> bool {
    let text = first(lines);
    matches_pattern!(text, r"^#?\s*[-+]?\s*(?:Children\s+Self|Overhead)\s+\S")
        || matches_pattern!(text, r"^#?\s*Samples:\s+\d[\d.,]*[KMG]?\s+of event")
        || text.starts_with("PerfTop:")
        || text.starts_with("# To display the perf.data header")
        || text.starts_with("# Total Lost Samples")
}

static FORMATS: [Format; 61] = [
    Format {
        name: "perf script",
        begins: |lines| {
            perf_script::is_header(&lines[0].text)
                && (soon(lines, perf_script::is_frame)
                    || lines[0].text.contains(": ")
                        && lines[0].text.contains(" (")
                        && lines[0].text.ends_with(')'))
        },
        each_line: true,
        keeps: |text| perf_script::is_frame(text) && text.contains('('),
        read: perf_script::read,
        ..PLAIN
    },
    Format {
        name: "perf report",
        begins: begins_perf_report,
        row: is_percent_row,
        filled: is_perf_data_row,
        read: perf_report::read,
        ..PLAIN
    },
    Format {
        name: "perf header",
        begins: |lines| {
            first(lines).starts_with("# ========")
                && soon(lines, |text| {
                    text.starts_with("# captured on") || text.contains("hostname")
                })
        },
        keeps: |text| text.starts_with("# "),
        read: host::read_perf_header,
        ..PLAIN
    },
    Format {
        name: "perf stat",
        begins: |lines| first(lines).starts_with("Performance counter stats"),
        read: small_tools::read_perf_stat,
        ..PLAIN
    },
    Format {
        name: "perf lock contention",
        begins: |lines| first(lines).contains("contended") && first(lines).contains("total wait"),
        read: locks::read_perf,
        ..PLAIN
    },
    Format {
        name: "lockstat",
        begins: |lines| {
            matches_pattern!(first(lines), r"^Count\s+indv\s+cuml\s+(?:rcnt|genr)")
                || matches_pattern!(
                    first(lines),
                    r"^[A-Z][A-Za-z /_-]+:\s+\d+ events in [\d.]+ seconds"
                )
        },
        row: locks::is_lockstat_row,
        filled: locks::is_lockstat_row,
        read: locks::read_lockstat,
        ..PLAIN
    },
    Format {
        name: "plockstat",
        begins: |lines| {
            matches_pattern!(first(lines), r"^Count\s+nsec\s+Lock\s+Caller")
                || matches_pattern!(
                    first(lines),
                    r"^(?:Mutex|R/W (?:reader|writer)) (?:block|hold|spin|unsuccessful spin)$"
                )
        },
        filled: |text| matches_pattern!(text, r"^\s*\d+\s+\d+\s+\S+\s+\S+\s*$"),
        read: locks::read_plockstat,
        ..PLAIN
    },
    Format {
        name: "lock_stat",
        begins: |lines| first(lines).starts_with("lock_stat version"),
        read: locks::read_lock_stat,
        ..PLAIN
    },
    Format {
        name: "kstat",
        begins: begins_kstat,
        row: kstat::is_known_row,
        filled: |text| {
            !is_kstat_header(text.trim())
                && !text.split_whitespace().eq(["name", "type", "data"])
                && always(text)
        },
        read: kstat::read_linux,
        ..PLAIN
    },
    Format {
        name: "txgs",
        begins: |lines| {
            begins_table(lines, |text| text.starts_with("txg ") && text.contains("otime"))
        },
        filled: |text| {
            text.trim().starts_with(|c: char| c.is_ascii_digit()) && !is_kstat_header(text.trim())
        },
        read: txgs::read,
        ..PLAIN
    },
    Format {
        name: "benchmark",
        begins: |lines| begins_table(lines, |text| text.starts_with("implementation")),
        filled: |text| {
            !is_kstat_header(text.trim())
                && !text.trim_start().starts_with("implementation")
                && always(text)
        },
        read: bench::read,
        ..PLAIN
    },
    Format {
        name: "dbufs",
        begins: |lines| {
            begins_table(lines, |text| text.starts_with("dbuf ") && text.contains("| arcbuf"))
        },
        keeps: |text| text.contains(" | "),
        ..PLAIN
    },
    Format {
        name: "kstat of another shape",
        begins: |lines| {
            begins_table(lines, |text| {
                text.starts_with("id ") && text.contains("mmp_delay")
                    || text.starts_with("UID ") && text.contains("objset")
                    || text.starts_with("pool_guid ")
            })
        },
        ..PLAIN
    },
    Format {
        name: "dbgmsg",
        begins: |lines| {
            begins_table(lines, |text| text.split_whitespace().eq(["timestamp", "message"]))
                || log::is_dbgmsg(&lines[0].text)
        },
        each_line: true,
        keeps: |text| matches_pattern!(text, r"^\d{9,11}\s+\S"),
        read: log::read_dbgmsg,
        ..PLAIN
    },
    Format {
        name: "kstat of illumos",
        begins: |lines| {
            matches_pattern!(
                first(lines),
                r"^(?:module:\s+\S+\s+instance:|[a-z_0-9]+:\d+:[^:\s]+:\S+\s+\S)"
            )
        },
        each_line: true,
        read: kstat::read_illumos,
        ..PLAIN
    },
    Format {
        name: "sysctl",
        begins: |lines| parameters::is_sysctl(first(lines)),
        row: parameters::is_sysctl,
        each_line: true,
        read: parameters::read_sysctl,
        ..PLAIN
    },
    Format {
        name: "arc_summary",
        begins: |lines| {
            matches_pattern!(
                first(lines),
                r"^(?:ZFS Subsystem Report|ARC Summary:|ARC status:|ARC size \(current\):|ARC Misc:|ARC Size:\s|ARC Efficiency:|DMU Efficiency:|File-Level Prefetch|L2 ARC Summary)"
            )
        },
        absorbs: &["arc_summary", "module parameters", "sysctl"],
        read: arc_summary::read,
        ..PLAIN
    },
    Format {
        name: "arcstat",
        begins: |lines| arcstat::is_heading(first(lines)),
        filled: |text| !arcstat::is_heading(text.trim()) && always(text),
        absorbs: &["arcstat"],
        read: arcstat::read,
        ..PLAIN
    },
    Format {
        name: "top",
        begins: |lines| {
            let text = first(lines);
            matches_pattern!(
                text,
                r"^top - \d|^last pid:|^(?:Tasks|Threads):\s+\d+ total|^%?Cpu\(s\)|^%?Cpu\d+\s*:|^(?:[KMGT]iB )?(?:Mem|Swap)\s*:\s*\d.*(?:total|used|free)|^(?:CPU|CPU states?):\s+[\d.]+% (?:user|idle)|^load averages:.*;|^(?:Mem|Memory): \d+[KMG]"
            ) || top::is_heading(text)
        },
        row: top::is_row,
        filled: |text| matches_pattern!(text, r"^\s*\d+\s+\S+\s+\S+\s+\S+\s+\S+"),
        read: top::read,
        ..PLAIN
    },
    Format {
        name: "procstat -kk",
        begins: |lines| matches_pattern!(first(lines), r"^PID\s+TID\s+COMM\s+TDNAME\s+KSTACK"),
        read: kernel_stack::read_procstat,
        ..PLAIN
    },
    Format {
        name: "pidstat",
        begins: |lines| {
            first(lines).contains("Command")
                && first(lines).contains("%CPU")
                && (first(lines).contains("UID") || first(lines).contains("PID"))
                && !first(lines).contains("%MEM")
        },
        filled: |text| !text.contains("Command") && always(text),
        absorbs: &["pidstat"],
        read: thread_tools::read_pidstat,
        ..PLAIN
    },
    Format {
        name: "prstat",
        begins: |lines| first(lines).contains("PROCESS/") && first(lines).contains("PID"),
        absorbs: &["prstat"],
        read: thread_tools::read_prstat,
        ..PLAIN
    },
    Format {
        name: "atop",
        begins: |lines| matches_pattern!(first(lines), r"^PRC \||^ATOP - |^PID .*SYSCPU .*CMD"),
        absorbs: &["atop"],
        read: thread_tools::read_atop,
        ..PLAIN
    },
    Format {
        name: "iotop",
        begins: |lines| {
            matches_pattern!(
                first(lines),
                r"^Total DISK READ\s*:|^(?:TID|PID)\s+PRIO\s+USER\s+DISK READ"
            )
        },
        filled: |text| matches_pattern!(text, r"^\s*\d+\s+\S+\s+\S+\s+[\d.]+ [BKMG]/s"),
        read: thread_tools::read_iotop,
        ..PLAIN
    },
    Format {
        name: "ps",
        begins: |lines| ps::is_heading(first(lines)),
        row: ps::is_row,
        filled: |text| !ps::is_heading(text) && always(text),
        keeps: ps::is_row,
        read: ps::read,
        ..PLAIN
    },
    Format {
        name: "uptime",
        begins: |lines| {
            matches_pattern!(
                first(lines),
                r"^\d{1,2}:\d\d(?::\d\d)?(?: ?[AaPp][Mm])?\s+up .*load averages?:|^load averages?:\s+\d"
            )
        },
        each_line: true,
        read: load::read,
        ..PLAIN
    },
    Format {
        name: "loadavg",
        begins: |lines| load::is_proc_load(first(lines)),
        each_line: true,
        read: load::read,
        ..PLAIN
    },
    Format {
        name: "proc uptime",
        begins: |lines| {
            matches_pattern!(first(lines), r"^\d+\.\d\d \d+\.\d\d$|^begin \d+\.\d+ end \d+\.\d+$")
        },
        each_line: true,
        read: proc_stat::read_uptime,
        ..PLAIN
    },
    Format {
        name: "meminfo",
        begins: |lines| memory::is_meminfo_row(first(lines)),
        row: memory::is_meminfo_row,
        each_line: true,
        read: memory::read_meminfo,
        ..PLAIN
    },
    Format {
        name: "free",
        begins: |lines| matches_pattern!(first(lines), r"^total\s+used\s+free\s+shared"),
        filled: |text| text.contains("Swap"),
        read: memory::read_free,
        ..PLAIN
    },
    Format {
        name: "vmstat file",
        begins: |lines| memory::is_vmstat_row(first(lines)),
        row: memory::is_vmstat_row,
        each_line: true,
        read: memory::read_vmstat_file,
        ..PLAIN
    },
    Format {
        name: "pressure",
        begins: |lines| matches_pattern!(first(lines), r"^(?:\S+[: ]+)?(?:some|full) avg10=\d"),
        each_line: true,
        read: memory::read_pressure,
        ..PLAIN
    },
    Format {
        name: "buddyinfo",
        begins: |lines| matches_pattern!(first(lines), r"^Node\s+\d+, zone\s+\S+\s+\d+\s+\d"),
        each_line: true,
        read: memory::read_buddyinfo,
        ..PLAIN
    },
    Format {
        name: "zoneinfo",
        begins: |lines| matches_pattern!(first(lines), r"^Node \d+, zone\s+\S+$"),
        each_line: true,
        absorbs: &["vmstat file"],
        ..PLAIN
    },
    Format {
        name: "vmstat",
        begins: |lines| interval_tools::is_vmstat_heading(first(lines)),
        filled: |text| matches_pattern!(text, r"^\s*\d+\s+\d+\s+\d+"),
        absorbs: &["vmstat"],
        read: interval_tools::read_vmstat,
        ..PLAIN
    },
    Format {
        name: "sar",
        begins: |lines| interval_tools::is_sar_heading(first(lines)),
        filled: always,
        absorbs: &["sar"],
        read: interval_tools::read_sar,
        ..PLAIN
    },
    Format {
        name: "mpstat of illumos",
        begins: |lines| matches_pattern!(first(lines), r"^CPU\s+minf\s+mjf\s+xcal"),
        absorbs: &["mpstat of illumos"],
        read: interval_tools::read_mpstat_illumos,
        ..PLAIN
    },
    Format {
        name: "iostat",
        begins: |lines| {
            matches_pattern!(
                first(lines),
                r"^avg-cpu:|^Device:?\s+.*(?:r/s|tps|rrqm/s)|^device\s+r/[si]|^extended device statistics|^r/s\s+w/s\s+kr/s"
            )
        },
        absorbs: &["iostat"],
        read: interval_tools::read_iostat,
        ..PLAIN
    },
    Format {
        name: "atopsar",
        begins: |lines| first(lines).contains("_dsk_") && first(lines).contains("busy"),
        read: interval_tools::read_atopsar,
        ..PLAIN
    },
    Format {
        name: "spl slab",
        begins: |lines| {
            matches_pattern!(
                first(lines),
                r"^-+ cache -+\s+-+ slab|^name\s+flags\s+size\s+alloc\s+slabsize"
            )
        },
        row: slab::is_spl_row,
        filled: slab::is_spl_row,
        read: slab::read_spl,
        ..PLAIN
    },
    Format {
        name: "slabinfo",
        begins: |lines| {
            first(lines).starts_with("slabinfo - version")
                || first(lines).starts_with("# name ") && first(lines).contains("<active_objs>")
        },
        filled: |text| text.contains("slabdata"),
        read: slab::read_slabinfo,
        ..PLAIN
    },
    Format {
        name: "slabtop",
        begins: |lines| {
            matches_pattern!(first(lines), r"^Active / Total Objects|^OBJS\s+ACTIVE\s+USE")
        },
        filled: |text| text.contains('%'),
        read: slab::read_slabtop,
        ..PLAIN
    },
    Format {
        name: "task queues",
        begins: |lines| matches_pattern!(first(lines), r"^taskq\s+act\s+nthr\s+spwn"),
        read: small_tools::read_taskq,
        ..PLAIN
    },
    Format {
        name: "zfs get",
        begins: |lines| properties::is_heading(first(lines)),
        row: properties::is_row,
        filled: |text| !properties::is_heading(text) && always(text),
        read: properties::read_get,
        ..PLAIN
    },
    Format {
        name: "zpool list",
        begins: |lines| {
            properties::is_list_heading(first(lines))
                || matches!(first(lines), "no pools available" | "no datasets available")
        },
        filled: |text| !properties::is_list_heading(text) && always(text),
        read: properties::read_list,
        ..PLAIN
    },
    Format {
        name: "zpool status",
        begins: |lines| {
            matches_pattern!(first(lines), r"^pool: \S")
                && (soon(lines, |text| matches_pattern!(text.trim(), r"^(?:state|scan|id):\s"))
                    || lines.len() < 3)
        },
        read: zpool::read_status,
        absorbs: &["zpool status"],
        ..PLAIN
    },
    Format {
        name: "zpool iostat",
        begins: |lines| {
            zpool::is_iostat_heading(first(lines))
                || matches_pattern!(
                    first(lines),
                    r"^\S+\s+sync_read\s+async_read|^\S+\s+total_wait\s+disk_wait"
                )
        },
        filled: |text| text.split_whitespace().count() >= 7 && !zpool::is_iostat_heading(text),
        absorbs: &["zpool iostat"],
        read: zpool::read_iostat,
        ..PLAIN
    },
    Format {
        name: "module parameters",
        begins: |lines| parameters::is_parameter(super::columns::without_bullet(&lines[0])),
        row: parameters::is_parameter,
        each_line: true,
        read: parameters::read,
        ..PLAIN
    },
    Format {
        name: "kernel stack",
        begins: |lines| kernel_stack::is_frame(&lines[0].text),
        row: kernel_stack::is_frame,
        each_line: true,
        read: kernel_stack::read,
        ..PLAIN
    },
    Format {
        name: "kernel log",
        begins: |lines| log::is_dmesg(&lines[0].text),
        each_line: true,
        absorbs: &["kernel stack"],
        read: log::read_dmesg,
        ..PLAIN
    },
    Format {
        name: "udevadm monitor",
        begins: |lines| log::is_udev(&lines[0].text),
        each_line: true,
        read: log::read_udev,
        ..PLAIN
    },
    Format {
        name: "strace",
        begins: |lines| log::is_strace(&lines[0].text),
        each_line: true,
        read: log::read_strace,
        ..PLAIN
    },
    Format {
        name: "bpftrace",
        begins: |lines| small_tools::is_map(&lines[0].text),
        each_line: true,
        read: small_tools::read_bpftrace,
        ..PLAIN
    },
    Format {
        name: "dtrace",
        begins: |lines| {
            small_tools::is_dtrace_time(first(lines))
                || matches_pattern!(first(lines), r"^CPU\s+ID\s+FUNCTION:NAME")
        },
        each_line: true,
        read: small_tools::read_dtrace,
        ..PLAIN
    },
    Format {
        name: "zdb",
        begins: |lines| small_tools::is_metaslab(first(lines)),
        each_line: true,
        read: small_tools::read_zdb,
        ..PLAIN
    },
    Format {
        name: "sample",
        begins: |lines| first(lines) == "Call graph:",
        read: small_tools::read_sample,
        ..PLAIN
    },
    Format {
        name: "time",
        begins: |lines| small_tools::is_time(first(lines)),
        each_line: true,
        read: small_tools::read_time,
        ..PLAIN
    },
    Format {
        name: "lscpu",
        begins: |lines| host::is_lscpu(first(lines)) || host::is_cpuinfo(first(lines)),
        each_line: true,
        keeps: |text| matches_pattern!(text, r"^[A-Za-z][\w ()./-]{2,30}\s*:\s"),
        read: host::read_cpu,
        ..PLAIN
    },
    Format {
        name: "version",
        begins: |lines| host::is_version(first(lines)),
        each_line: true,
        read: host::read_version,
        ..PLAIN
    },
    Format {
        name: "modinfo",
        begins: |lines| host::is_modinfo(first(lines)),
        each_line: true,
        read: host::read_modinfo,
        ..PLAIN
    },
    Format {
        name: "settings",
        begins: |lines| parameters::is_setting(first(lines)),
        each_line: true,
        read: parameters::read_settings,
        ..PLAIN
    },
];

/// Formats that are only known as a whole, tried on sections that nothing above began.
pub(crate) static WHOLE: [Format; 7] = [
    Format {
        name: "proc stat",
        begins: |lines| proc_stat::is_stat(&lines[0]),
        read: proc_stat::read,
        ..PLAIN
    },
    Format {
        name: "thread statistics",
        begins: |lines| {
            proc_stat::is_task(first(lines))
                || lines.get(1).is_some_and(|line| proc_stat::is_task(&line.text))
        },
        read: proc_stat::read_tasks,
        ..PLAIN
    },
    Format {
        name: "interrupts",
        begins: |lines| matches_pattern!(first(lines), r"^CPU0(?:\s+CPU\d+)*$"),
        read: proc_stat::read_interrupts,
        ..PLAIN
    },
    Format {
        name: "modules",
        begins: |lines| {
            matches_pattern!(first(lines), r"^Module\s+Size\s+Used by|^\w+ \d+ \d+ \S+ Live 0x")
        },
        read: host::read_modules,
        ..PLAIN
    },
    Format {
        name: "mounts",
        begins: |lines| host::is_mount(first(lines)),
        read: host::read_mounts,
        ..PLAIN
    },
    Format {
        name: "ogive mount",
        begins: |lines| {
            first(lines) == "{"
                && lines.iter().take(40).any(|line| {
                    line.text.contains("\"ogive\"")
                        || line.text.contains("cache_bytes")
                        || line.text.contains("mountpoint")
                        || line.text.contains("\"origin\"")
                })
        },
        read: host::read_ogive_mount,
        ..PLAIN
    },
    Format {
        name: "kernel command line",
        begins: |lines| {
            parameters::is_command_line(first(lines))
                && lines.iter().filter(|line| !line.text.trim().is_empty()).count() == 1
        },
        read: parameters::read_command_line,
        ..PLAIN
    },
];

/// Folded stacks have no heading: they are known by their rows, which no other format has.
pub(crate) static FOLDED: Format = Format {
    name: "folded stacks",
    row: folded::is_row,
    each_line: true,
    read: folded::read,
    ..PLAIN
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::clean;

    fn name(text: &str) -> &'static str {
        begins(&clean::lines(text.as_bytes())).map_or("", |format| format.name)
    }

    #[test]
    fn formats_are_known_by_their_first_line() {
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
