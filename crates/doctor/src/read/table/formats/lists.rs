//! Lists of threads, processes and containers.

use crate::read::table::{
    Boot, Column, FORMAT, Format, Heading, Percent, To, Unit, column, gauge, rate,
};

/// `pidstat` with any option, in any language and time format.
pub(crate) static PIDSTAT: [Format; 1] = [Format {
    name: "pidstat",
    heading: Heading::of(
        "Command",
        "%system %usr kB_rd/s cswch/s minflt/s StkSize & UID USER TGID PID",
    ),
    clocked: true,
    percent: Some(Percent::OneCpu),
    boot: Boot::WithHeading,
    columns: &[
        column("USER", To::Nothing, Unit::Word),
        column("UID|CPU|StkSize|StkRef|RSS|threads|fd-nr", To::Nothing, Unit::Number),
        column("%usr|%guest|%wait|%MEM", To::Nothing, Unit::Percent),
        column("%CPU", To::Percent, Unit::Percent),
        rate("kB_rd/s", "iotop.read_bytes", Unit::BytesOf(1024)),
        rate("kB_wr/s", "iotop.write_bytes", Unit::BytesOf(1024)),
        rate("kB_ccwr/s", "iotop.cancelled_write_bytes", Unit::BytesOf(1024)),
        gauge("iodelay", "iotop.delay_ticks", Unit::Number),
        rate("cswch/s", "pidstat.voluntary_switches", Unit::Number),
        rate("nvcswch/s", "pidstat.involuntary_switches", Unit::Number),
        rate("minflt/s", "pidstat.minor_faults", Unit::Number),
        rate("majflt/s", "pidstat.major_faults", Unit::Number),
    ],
    silent: &["Linux "],
    ..FORMAT
}];

const PROCESS: Column = column("PROCESS/LWPID|PROCESS/NLWP", To::Command, Unit::UntilSlash);

/// The list of `top` of Linux, FreeBSD and illumos. FreeBSD omits the number of the CPU of a
/// sleeping thread.
pub(crate) static TOP: [Format; 1] = [Format {
    name: "top",
    heading: Heading::of("", "PID LWP TID 进程号 & %CPU WCPU CPU CPU% & TIME+ WCPU VIRT SIZE S")
        .without("VSZ STARTED START STAT STIME SYSCPU"),
    missing: "C",
    bare: &["PID USER PR NI VIRT RES SHR S %CPU %MEM TIME+ COMMAND"],
    percent: Some(Percent::OneCpu),
    ..FORMAT
}];

/// `ps -ef` calls the percent `C`.
const PERCENT: Column = column("%CPU|CPU%|WCPU|PCPU|Cpu%|CPU|C", To::Percent, Unit::Percent);
/// Columns that only `ps` has.
const OF_PS: [Column; 2] = [
    PERCENT,
    column(
        "ADDR|CLS|CP|EGID|EGROUP|ELAPSED|EUID|EUSER|F|FLAGS|GID|GROUP|JID|MAJFL|MAJFLT|MINFL|MINFLT\
         |NLWP|PGID|PGRP|PMEM|POL|PRI|PSR|RSZ|RTPRIO|RUSER|SESS|SID|STACKP|SZ|THCNT|TPGID|TT|UID\
         |USER",
        To::Nothing,
        Unit::Word,
    ),
];
const FOREIGN: &str = "#* TIME+ WCPU USERNAME VIRT KSTACK %VSZ SYSCPU DSK";
const PS_OF_LIFE: Format =
    Format { name: "ps", percent: Some(Percent::Life), columns: &OF_PS, ..FORMAT };
const PS_OF_NOW: Format = Format { percent: Some(Percent::OneCpu), ..PS_OF_LIFE };
/// Any choice of columns: only names of `ps`, or names that no other list has.
const CHOICE: Heading = Heading::of("", "PID TID LWP SPID %CPU PCPU C TIME STAT S WCHAN MWCHAN")
    .without(FOREIGN)
    .known(100);
const LONGER: Heading =
    Heading::of("", "PID TID LWP SPID & STAT S TTY TT STARTED ELAPSED VSZ TIME PPID WCHAN")
        .without(FOREIGN);

/// Rows of `ps` with chosen columns.
pub(crate) static PS_ROWS: [Format; 1] = [PS_OF_LIFE];

/// `ps` of FreeBSD and macOS, which shows current use.
pub(crate) static PS_OF_BSD: [Format; 2] =
    [Format { heading: CHOICE, ..PS_OF_NOW }, Format { heading: LONGER, ..PS_OF_NOW }];

/// `ps` in any choice of columns. Linux shows the mean over the life of the process. FreeBSD and
/// macOS, recognised by their column names, show current use. Rows without a heading are recognised
/// by the form of their terminal.
pub(crate) static PS: [Format; 5] = [
    Format {
        heading: Heading::of("USER PID %CPU %MEM VSZ RSS TT STAT STARTED TIME COMMAND", ""),
        bare: &["USER PID %CPU %MEM VSZ RSS TT STAT STARTED TIME COMMAND"],
        columns: &[column("TT", To::Nothing, Unit::OtherTerminal)],
        ..PS_OF_NOW
    },
    Format {
        heading: Heading::of("", "COMM ARGS UCOMM & PID TID LWP SPID %CPU TIME STAT").known(100),
        ..PS_OF_NOW
    },
    Format {
        bare: &[
            "USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND",
            "UID PID PPID C STIME TTY TIME CMD",
            "PID TTY TIME CMD",
        ],
        columns: &[PERCENT, column("TTY", To::Nothing, Unit::Terminal)],
        ..PS_OF_LIFE
    },
    Format { heading: CHOICE, ..PS_OF_LIFE },
    Format { heading: LONGER, ..PS_OF_LIFE },
];

/// `prstat` of illumos: microstates are of one CPU, the column CPU is of all CPUs.
pub(crate) static PRSTAT: [Format; 2] = [
    Format {
        name: "prstat",
        heading: Heading::of("PID USR SYS", "PROCESS/LWPID PROCESS/NLWP"),
        percent: Some(Percent::OneCpu),
        columns: &[
            PROCESS,
            column("USR", To::UserPercent, Unit::Percent),
            column("SYS", To::SystemPercent, Unit::Percent),
        ],
        silent: &["Total:", "NPROC"],
        ..FORMAT
    },
    Format {
        name: "prstat",
        heading: Heading::of("PID CPU", "PROCESS/LWPID PROCESS/NLWP"),
        percent: Some(Percent::AllCpus),
        columns: &[PROCESS, column("CPU", To::Percent, Unit::Percent)],
        ..FORMAT
    },
];

/// `iotop`: delays, not CPU. With `-a` the bytes are totals since its start, not rates.
pub(crate) static IOTOP: [Format; 1] = [Format {
    name: "iotop",
    heading: Heading::of("PRIO USER DISK READ", "TID PID"),
    missing: "SWAPIN|IO|IO>",
    percent: Some(Percent::OneCpu),
    columns: &[
        column("DISK READ", To::RateOr("iotop.read_bytes", "iotop.read_in_all_bytes"), Unit::Bytes),
        column(
            "DISK WRITE|DISK WRITE>",
            To::RateOr("iotop.write_bytes", "iotop.written_in_all_bytes"),
            Unit::Bytes,
        ),
        gauge("SWAPIN", "iotop.swapin_percent", Unit::Percent),
        gauge("IO|IO>", "iotop.io_percent", Unit::Percent),
    ],
    silent: &["Actual DISK READ", "Current DISK READ"],
    above: &["Total DISK READ"],
    ..FORMAT
}];

/// The list of `atop`; its commands are names.
pub(crate) static ATOP: [Format; 1] = [Format {
    name: "atop",
    heading: Heading::of("PID CMD", "SYSCPU USRCPU S CPU MEM DSK NET"),
    percent: Some(Percent::OneCpu),
    columns: &[
        column("SYSCPU|USRCPU", To::Seconds, Unit::Seconds),
        column("CPU", To::Percent, Unit::Percent),
    ],
    ..FORMAT
}];

/// `docker stats`, `podman stats`: a container counts as a program.
pub(crate) static CONTAINERS: [Format; 1] = [Format {
    name: "docker stats",
    heading: Heading::of("CPU %", "MEM"),
    percent: Some(Percent::OneCpu),
    programs: true,
    bare: &["CONTAINER ID  NAME  CPU %  MEM USAGE / LIMIT  MEM %  NET I/O  BLOCK I/O  PIDS"],
    columns: &[
        column("NAME|CONTAINER|CONTAINER ID|ID", To::Command, Unit::Word),
        column("CPU %", To::Percent, Unit::Percent),
        column("MEM %|AVG CPU %", To::Nothing, Unit::Percent),
        column(
            "MEM USAGE / LIMIT|MEM USAGE/LIMIT|NET I/O|BLOCK I/O|NET IO|BLOCK IO",
            To::Nothing,
            Unit::Pair,
        ),
        column("CPU TIME", To::Nothing, Unit::Word),
    ],
    ..FORMAT
}];

/// `kubectl top`: each node is a host of its own, so the busiest one stands for all (`table::cpu`).
pub(crate) static KUBECTL: [Format; 2] = [
    Format {
        name: "kubectl top",
        heading: Heading::of("NAME CPU(cores)", "CPU% CPU(%)").without("POD"),
        tables: &["nodes"],
        columns: &[
            column("NAME", To::Cpu, Unit::Word),
            gauge("CPU(cores)", "cpus_used", Unit::Cores),
            gauge("CPU%|CPU(%)", "cpu_percent", Unit::Percent),
            column("CPU%|CPU(%)", To::Busy, Unit::Percent),
            column("MEMORY(bytes)", To::Nothing, Unit::Bytes),
        ],
        ..FORMAT
    },
    Format {
        name: "kubectl top",
        heading: Heading::of("NAME CPU(cores)", ""),
        percent: Some(Percent::OneCpu),
        programs: true,
        columns: &[
            column("NAME", To::Command, Unit::Word),
            column("CPU(cores)", To::Percent, Unit::Cores),
        ],
        ..FORMAT
    },
];

/// `systemd-cgtop`: groups of processes, by path.
pub(crate) static GROUPS: [Format; 1] = [Format {
    name: "systemd-cgtop",
    heading: Heading::of("Tasks %CPU", "Control CGroup Path"),
    percent: Some(Percent::OneCpu),
    programs: true,
    columns: &[
        column("Control Group|CGroup|Path", To::Command, Unit::Word),
        column("Tasks", To::Nothing, Unit::Whole),
        column("Memory", To::Nothing, Unit::Bytes),
    ],
    ..FORMAT
}];

/// Tasks of `powermetrics`: milliseconds of CPU per second, and the user share.
pub(crate) static POWERMETRICS: [Format; 1] = [Format {
    name: "powermetrics",
    heading: Heading::of("Name ID User%", "CPU"),
    percent: Some(Percent::OneCpu),
    programs: true,
    columns: &[
        column("Name", To::Command, Unit::Text),
        column("ID", To::Id, Unit::Whole),
        column("CPU ms/s", To::Percent, Unit::MillisecondsASecond),
        column("User%", To::UserShare, Unit::Percent),
        column("Deadlines (<2 ms, 2-5 ms)|Wakeups (Intr, Pkg idle)", To::Nothing, Unit::Words(2)),
    ],
    above: &["*** Running tasks"],
    ..FORMAT
}];

/// `biotop` of the BPF tools: I/O of each process on each disk.
pub(crate) static BIOTOP: [Format; 1] = [Format {
    name: "biotop",
    heading: Heading::of("PID COMM MAJ MIN I/O", ""),
    percent: Some(Percent::OneCpu),
    columns: &[
        column("D|DISK", To::Nothing, Unit::Word),
        column("MAJ|MIN", To::Nothing, Unit::Whole),
        gauge("I/O", "biotop.requests", Unit::Number),
        gauge("Kbytes", "biotop.bytes", Unit::BytesOf(1024)),
        gauge("AVGms", "biotop.await", Unit::Number),
    ],
    above: &["Tracing... Output every"],
    ..FORMAT
}];
