//! Lists of busybox, macOS and Windows, and of screens.

use crate::read::table::{FORMAT, Format, Heading, Percent, To, Unit, column};

/// The list of `top` of busybox; its percents are of all CPUs. Sizes wider than their column run
/// into the percents after them: `S 70204114.8 0 53.5`.
pub(crate) static BUSYBOX: [Format; 1] = [Format {
    name: "busybox top",
    heading: Heading::of("PID PPID STAT %CPU COMMAND", "").without("TTY"),
    missing: "%VSZ|%MEM",
    percent: Some(Percent::AllCpus),
    columns: &[column("%VSZ|%MEM", To::Nothing, Unit::Share)],
    ..FORMAT
}];

/// The list of `htop` and `glances`. A process includes its threads, which are also listed.
pub(crate) static HTOP: [Format; 1] = [Format {
    name: "htop",
    heading: Heading::of("CPU% MEM% PID", ""),
    percent: Some(Percent::OneCpu),
    with_threads: true,
    silent: &["F1Help", "[Main]", "Main I/O"],
    ..FORMAT
}];

/// The list of `btop` and `bpytop`. Its percent is of all CPUs, unless the option "per-core" is on.
pub(crate) static BTOP: [Format; 1] = [Format {
    name: "btop",
    heading: Heading::of("Pid: Program: Cpu%", ""),
    percent: Some(Percent::AllCpus),
    columns: &[
        column("Pid:", To::Id, Unit::Whole),
        column("Program:", To::Command, Unit::Word),
        column("Command:|Arguments:", To::Nothing, Unit::Text),
        column("Threads:", To::Nothing, Unit::Whole),
        column("MemB|Mem%", To::Nothing, Unit::Bytes),
        column("Cpu%", To::Percent, Unit::Percent),
    ],
    ..FORMAT
}];

/// The list of `top` of macOS; it has as many columns as fit the terminal.
pub(crate) static MACOS_TOP: [Format; 1] = [Format {
    name: "top of macOS",
    heading: Heading::of("PID COMMAND %CPU", "#TH CMPRS #WQ"),
    percent: Some(Percent::OneCpu),
    programs: true,
    may_be_short: true,
    is_open: true,
    silent: &[
        "SharedLibs:",
        "MemRegions:",
        "PhysMem:",
        "VM:",
        "Networks:",
        "Disks:",
        "Swap:",
        "Purgeable:",
    ],
    ..FORMAT
}];

/// Activity Monitor, copied as text.
pub(crate) static ACTIVITY_MONITOR: [Format; 1] = [Format {
    name: "Activity Monitor",
    heading: Heading::of("Process Name % CPU", ""),
    percent: Some(Percent::OneCpu),
    programs: true,
    columns: &[
        column("Process Name", To::Command, Unit::Text),
        column("% CPU", To::Percent, Unit::Percent),
        column("CPU Time", To::Seconds, Unit::Seconds),
        column(
            "Idle Wake Ups|% GPU|GPU Time|Real Mem|Energy Impact|App Nap",
            To::Nothing,
            Unit::Word,
        ),
    ],
    ..FORMAT
}];

/// `Get-Process`: its default columns, or a selection.
pub(crate) static GET_PROCESS: [Format; 1] = [Format {
    name: "Get-Process",
    heading: Heading::of(
        "",
        "ProcessName Name & CPU(s) CPU TotalProcessorTime PercentProcessorTime",
    )
    .known(100),
    missing: "CPU(s)",
    percent: Some(Percent::OneCpu),
    programs: true,
    columns: &[
        column("ProcessName|Name", To::Command, Unit::Text),
        column("Id|PID|IDProcess|ProcessId", To::Id, Unit::Whole),
        column("PercentProcessorTime", To::Percent, Unit::Percent),
        column("CPU(s)", To::Seconds, Unit::Hundredths),
        column("CPU|TotalProcessorTime", To::Seconds, Unit::Seconds),
        column(
            "Handles|NPM(K)|PM(K)|WS(K)|VM(M)|WS|PM|NPM|VM|SI|SessionId|Threads",
            To::Nothing,
            Unit::Number,
        ),
    ],
    silent: &["--"],
    ..FORMAT
}];

/// `tasklist`: a ruler marks its columns, in any language; these are their English names.
pub(crate) static TASKLIST: [Format; 1] = [Format {
    name: "tasklist",
    heading: Heading::of("Image Name PID Mem Usage", ""),
    percent: Some(Percent::OneCpu),
    programs: true,
    columns: &[
        column("Image Name", To::Command, Unit::Text),
        column("CPU Time", To::Seconds, Unit::Time),
        column("Status|Session Name|Session#|Mem Usage|User Name", To::Nothing, Unit::Word),
        column("Window Title", To::Nothing, Unit::Word),
    ],
    ..FORMAT
}];

/// Task Manager, Resource Monitor and Process Explorer, copied as text: percents of all CPUs.
pub(crate) static WINDOWS: [Format; 1] = [Format {
    name: "list of Windows",
    heading: Heading::of(
        "CPU",
        "Name Process Image & PID Status Memory Bytes Set name Description Disk Network",
    )
    .known(80),
    percent: Some(Percent::AllCpus),
    programs: true,
    columns: &[
        column("Name|Process|Image", To::Command, Unit::Text),
        column("CPU|*% CPU", To::Percent, Unit::Percent),
        column("CPU time|CPU Time", To::Seconds, Unit::Time),
        column("Private Bytes|Working Set", To::Nothing, Unit::Bytes),
        column(
            "Status|User name|Company Name|Average CPU|Description|Command line|Session ID|Type\
             |UAC virtualization|Power usage trend|Power usage|Base priority|Publisher|Platform\
             |Architecture|Threads|Handles|GPU|Disk|Network|Memory|*% Memory|*% Disk|*% Network\
             |*% GPU|Memory (private working set)|Memory (active private working set)",
            To::Nothing,
            Unit::Word,
        ),
    ],
    silent: &["Apps (", "Background processes (", "Windows processes ("],
    ..FORMAT
}];
