//! Tools that print one row per interval, or the use of each CPU.
//!
//! The median of several rows goes into one table. Every row also goes into a table `<tool>_row`,
//! so that no figure is lost.

use crate::read::table::{Boot, FORMAT, Format, Heading, Rows, To, Unit, column, gauge, rate};

/// `vmstat` of Linux, FreeBSD and illumos; the first of two `sy` are system calls.
pub(crate) static VMSTAT: [Format; 1] = [Format {
    name: "vmstat",
    heading: Heading::of("r b us id", ""),
    bare: &["r b swpd free buff cache si so bi bo in cs us sy id wa st"],
    tables: &["vmstat"],
    rows: Rows::Intervals,
    boot: Boot::First,
    is_open: true,
    columns: &[
        column("us|sy|id|wa|st", To::Used, Unit::Number),
        rate("1:sy", "sy_calls", Unit::Number),
        column("in|cs|si|so|bi|bo|re|mf|pi|po|fr|sr|de|flt", To::OwnRate, Unit::Number),
        column("r|b|w|gu", To::Own, Unit::Number),
        column("swpd|free|buff|cache|inact|active|swap|avm|fre", To::Own, Unit::Number),
    ],
    above: &["procs -", "procs  ", "--procs-- ", "kthr "],
    ..FORMAT
}];

const SAR: Format = Format {
    name: "sar",
    heading: Heading::of("", "*/s %* kb* *-sz").without("Command rrqm/s avg-cpu: Device"),
    clocked: true,
    needs_clock: true,
    tables: &["sar"],
    rows: Rows::Intervals,
    boot: Boot::WithHeading,
    columns: &[
        column("CPU", To::Cpu, Unit::Cpu),
        column(
            "%user|%usr|%nice|%guest|%gnice|%system|%sys|%idle|%iowait|%irq|%soft|%steal",
            To::Used,
            Unit::Percent,
        ),
        column("DEV|IFACE|INTR|TTY|FILESYSTEM|MOUNTPOINT|BUS", To::Scope, Unit::Word),
        column("ldavg-1|ldavg-5|ldavg-15", To::Load, Unit::Number),
        gauge("blocked", "stat.procs_blocked", Unit::Number),
        column(
            "pgpgin/s|pgpgout/s|fault/s|majflt/s|pgfree/s|pgscank/s|pgscand/s|pgsteal/s|proc/s\
             |cswch/s|pswpin/s|pswpout/s",
            To::OwnRate,
            Unit::Number,
        ),
    ],
    silent: &["Linux "],
    ..FORMAT
};

/// `sar` with any option, and `mpstat`: a time, an optional CPU or device, then figures. A disk of
/// `sar -d` is also a disk of iostat, because the columns have the same names.
pub(crate) static SARS: [Format; 2] = [
    Format {
        heading: Heading::of("DEV %util", "").without("Command"),
        tables: &["sar", "iostat"],
        ..SAR
    },
    SAR,
];

/// `mpstat` of illumos: one row per CPU.
pub(crate) static MPSTAT_ILLUMOS: [Format; 1] = [Format {
    name: "mpstat of illumos",
    heading: Heading::of("CPU xcal idl", ""),
    boot: Boot::First,
    tables: &["mpstat"],
    columns: &[
        column("CPU", To::Cpu, Unit::Cpu),
        column("usr|sys|wt|idl", To::Used, Unit::Number),
        column("minf|mjf|xcal|intr|csw|migr|syscl", To::OwnRate, Unit::Number),
    ],
    ..FORMAT
}];

/// `dstat` and its successor `dool`: groups of columns separated by bars.
pub(crate) static DSTAT: [Format; 1] = [Format {
    name: "dstat",
    heading: Heading::of("usr sys idl", "").without("xcal"),
    tables: &["dstat_row"],
    boot: Boot::First,
    columns: &[
        column("usr|sys|idl|wai|hiq|siq|stl", To::Used, Unit::Number),
        column("time|date/time", To::Nothing, Unit::Date),
        column("read|writ|recv|send|in|out|int|csw", To::Own, Unit::Bytes),
        column("used|buff|cach|free", To::Own, Unit::Bytes),
    ],
    silent: &["You did not select", "-"],
    above: &["----total-cpu-usage-", "----total-usage-", "--------total-usage-"],
    ..FORMAT
}];

/// `turbostat`: how busy each CPU is; the row with CPU `-` is the mean of all.
pub(crate) static TURBOSTAT: [Format; 1] = [Format {
    name: "turbostat",
    heading: Heading::of("Busy% Bzy_MHz", ""),
    may_be_short: true,
    columns: &[
        column("CPU", To::Cpu, Unit::Cpu),
        column("Busy%", To::Busy, Unit::Percent),
        column("Core|Package|Node", To::Nothing, Unit::Number),
        column("Avg_MHz|Bzy_MHz|TSC_MHz", To::Nothing, Unit::Number),
    ],
    ..FORMAT
}];

/// `atopsar`: reports of atop's recordings, one per option. The time is printed only when it
/// changes.
pub(crate) static ATOPSAR: [Format; 3] = [
    Format {
        name: "atopsar",
        heading: Heading::of("cpu %usr %idle _cpu_", ""),
        clocked: true,
        columns: &[
            column("cpu", To::Cpu, Unit::Cpu),
            column("%usr|%nice|%sys|%irq|%softirq|%steal|%wait|%idle", To::Used, Unit::Percent),
        ],
        ..FORMAT
    },
    Format {
        name: "atopsar",
        heading: Heading::of("busy read/s", "_dsk_ _lvm_ _mdd_"),
        clocked: true,
        tables: &["atopsar"],
        columns: &[
            column("disk", To::Scope, Unit::Word),
            gauge("busy", "busy_percent", Unit::Percent),
            rate("read/s", "reads", Unit::Number),
            gauge("KB/read", "read_bytes_mean", Unit::BytesOf(1024)),
            rate("writ/s", "writes", Unit::Number),
            gauge("KB/writ", "write_bytes_mean", Unit::BytesOf(1024)),
            gauge("avque", "queue", Unit::Number),
            gauge("avserv", "service_ms", Unit::Milliseconds),
        ],
        ..FORMAT
    },
    Format {
        name: "atopsar",
        heading: Heading::of("thrslpu _procs_", ""),
        clocked: true,
        columns: &[gauge("thrslpu", "stat.procs_blocked", Unit::Number)],
        ..FORMAT
    },
];
