//! The one next step: what to run on this system, considering what was given, and what each outcome
//! would mean.
//!
//! A cause that is near asks for what would settle it. Otherwise the first of the three answers
//! that is open asks. A command whose output was given is not asked for again.

use super::weigh::{POSSIBLE, Weighed};
use super::{looked_for, named, native};
use crate::answers::{Among, Answers, Kind, Part, State, Wait};
use crate::expression::Environment;
use crate::facts::Facts;
use crate::rule::{Role, Rule};

/// What to run, and what would follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The command.
    pub run: String,
    /// What each outcome would mean: sentences.
    pub outcomes: Vec<String>,
}

/// A candidate below this is not worth a question of its own.
const WORTH_ASKING: f64 = 0.30;

/// What is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    /// Everything: who uses how much.
    Who,
    /// What the kernel does.
    Kernel,
    /// What a program does.
    Program,
    /// Which disk, and for whom.
    Disks,
    /// Who has the memory.
    Memory,
    /// Which interrupts.
    Interrupts,
    /// Who takes the time.
    Stolen,
    /// Which locks.
    Locks,
    /// What those wait for who sleep uninterruptibly.
    Sleepers,
}

struct General {
    open: Open,
    /// The system it is for; empty for any.
    system: &'static str,
    run: &'static str,
    outcomes: &'static [&'static str],
}

/// General steps, best first for each question.
const STEPS: &[General] = &[
    General {
        open: Open::Who,
        system: "linux",
        run: "top -b -d 5 -n 2 -w 200 > top.txt && ogive doctor top.txt",
        outcomes: &[
            "us or sy high: the CPU, and the rows on top say whose; what the kernel does (sy) a \
             profile tells: perf record -a -g -- sleep 10",
            "wa high: disks; st high: the hypervisor; hi and si high: interrupts",
            "id high and nobody on top: it is not the CPU",
        ],
    },
    General {
        open: Open::Who,
        system: "linux",
        run: "pidstat -ut 5 1; mpstat -P ALL 5 1",
        outcomes: &[
            "a program or thread with much %CPU is the one; %system is its part in the kernel",
            "one CPU full and others idle: a single thread or one queue of interrupts limits",
        ],
    },
    General {
        open: Open::Who,
        system: "freebsd",
        run: "top -SHPb -s 5 -d 2 40",
        outcomes: &[
            "the rows on top use the CPU: kernel{...} and zfskern{...} are the kernel's and ZFS's",
            "idle on top: it is not the CPU; `gstat -bI 5s` shows the disks",
        ],
    },
    General {
        open: Open::Who,
        system: "illumos",
        run: "prstat -mLc 5 2",
        outcomes: &[
            "USR and SYS high: the CPU, and its rows say whose",
            "SLP and LCK high: it waits; `iostat -xn 5 2` shows the disks",
        ],
    },
    General {
        open: Open::Who,
        system: "macos",
        run: "top -l 2 -s 5 -n 20 -o cpu -stats pid,command,cpu,time",
        outcomes: &[
            "the second page says who uses the CPU; 100% is one CPU",
            "kernel_task on top: the kernel, often against heat",
        ],
    },
    General {
        open: Open::Who,
        system: "windows",
        run: "Get-Counter '\\Process(*)\\% Processor Time','\\Processor(_Total)\\% Processor Time' \
              -SampleInterval 5 -MaxSamples 1",
        outcomes: &[
            "the process with most is the one; 100 is one CPU",
            "little in all: it is not the CPU; look at '\\PhysicalDisk(*)\\% Disk Time'",
        ],
    },
    General {
        open: Open::Kernel,
        system: "linux",
        run: "sudo perf record -a -g -F 99 -o perf.data -- sleep 20 && ogive doctor perf.data",
        outcomes: &[
            "functions of [zfs] or its threads on top: ZFS, and which part of it",
            "other functions on top: their names say which part of the kernel, and for whom",
        ],
    },
    General {
        open: Open::Kernel,
        system: "freebsd",
        run: "dtrace -x stackframes=100 -n 'profile-99 /arg0/ { @[execname, stack()] = count(); } \
              tick-20s { exit(0); }' > stacks.txt",
        outcomes: &[
            "functions of zfs.ko on most stacks: ZFS, and which part of it",
            "others: their names say which part of the kernel",
        ],
    },
    General {
        open: Open::Kernel,
        system: "illumos",
        run: "lockstat -kIW -D 20 sleep 20; mpstat 5 2",
        outcomes: &[
            "functions of zfs on top: ZFS, and which part of it",
            "spins of mutexes on top: a lock; its caller says whose",
        ],
    },
    General {
        open: Open::Kernel,
        system: "macos",
        run: "sudo spindump -o spindump.txt",
        outcomes: &["the kernel's stacks of the busiest process say what it does"],
    },
    General {
        open: Open::Kernel,
        system: "windows",
        run: "wpr -start CPU; timeout 20; wpr -stop cpu.etl",
        outcomes: &["modules and stacks by CPU in Windows Performance Analyzer say whose it is"],
    },
    General {
        open: Open::Program,
        system: "linux",
        run: "sudo perf record -g -F 99 -p $(pgrep -d, -x PROCESS) -- sleep 20 && perf report",
        outcomes: &[
            "functions of the program on top: its own work",
            "functions of the kernel on top: what it asks the kernel for",
        ],
    },
    General {
        open: Open::Disks,
        system: "linux",
        run: "iostat -x 5 2; ps -eo state,pid,wchan:32,comm | grep '^D'",
        outcomes: &[
            "one device near 100 %util with a high await: it limits, or it is ill (smartctl -a)",
            "none busy: it waits for a file server or for locks; wchan says which",
        ],
    },
    General {
        open: Open::Disks,
        system: "linux",
        run: "zpool iostat -vl 5 2; zpool status",
        outcomes: &[
            "one disk with a much longer disk_wait than its neighbours: it limits",
            "syncq_wait high: synchronous writes wait; scan in progress: scrub or resilver",
        ],
    },
    General {
        open: Open::Disks,
        system: "linux",
        run: "sudo cat /proc/$(pgrep -o -x PROCESS)/stack; sudo dmesg | tail -50; \
              sudo smartctl -a /dev/DEVICE",
        outcomes: &[
            "the stack says what is waited for",
            "errors or resets in the log: the disk or its cable is ill",
        ],
    },
    General {
        open: Open::Disks,
        system: "freebsd",
        run: "gstat -bI 5s; zpool iostat -vl 5 2",
        outcomes: &["the disk with %busy near 100 and a high ms/r or ms/w limits"],
    },
    General {
        open: Open::Disks,
        system: "illumos",
        run: "iostat -xn 5 2; zpool iostat -v 5 2",
        outcomes: &["the disk with %b near 100 and a high asvc_t limits"],
    },
    General {
        open: Open::Disks,
        system: "macos",
        run: "iostat -w 5 -c 3; sudo fs_usage -w -f diskio -t 5",
        outcomes: &["the disk with most MB/s is the one; fs_usage says for which program"],
    },
    General {
        open: Open::Disks,
        system: "windows",
        run: "Get-Counter '\\PhysicalDisk(*)\\% Disk Time','\\PhysicalDisk(*)\\Avg. Disk \
              sec/Transfer' -SampleInterval 5 -MaxSamples 1",
        outcomes: &["the disk near 100 with a high time for each transfer limits"],
    },
    General {
        open: Open::Memory,
        system: "linux",
        run: "free -m; ps -eo rss,comm --sort=-rss | head; grep -E 'pswp|allocstall' /proc/vmstat",
        outcomes: &[
            "a program with most of the memory: it, or its limit, is the cause",
            "no program has it: caches do; arcstats and slabinfo say which",
        ],
    },
    General {
        open: Open::Memory,
        system: "freebsd",
        run: "top -b -o res 20; vmstat -s; swapinfo",
        outcomes: &[
            "a program with most of the memory: it, or its limit, is the cause",
            "no program has it: caches do, and the ARC is one of them (ARC in top's header)",
        ],
    },
    General {
        open: Open::Memory,
        system: "illumos",
        run: "echo ::memstat | mdb -k; prstat -c -s rss 1 1; swap -l",
        outcomes: &[
            "ZFS File Data large and free small: the ARC has the memory",
            "Anon large: programs have it, and prstat says which",
        ],
    },
    General {
        open: Open::Memory,
        system: "macos",
        run: "vm_stat; top -l 1 -n 20 -o mem -stats pid,command,mem",
        outcomes: &["a program with most of the memory: it, or its limit, is the cause"],
    },
    General {
        open: Open::Memory,
        system: "windows",
        run: "Get-Process | Sort-Object WorkingSet -Descending | Select-Object -First 10",
        outcomes: &["a program with most of the memory: it, or its limit, is the cause"],
    },
    General {
        open: Open::Interrupts,
        system: "freebsd",
        run: "vmstat -i; top -SHPIb -s 5 -d 2 40",
        outcomes: &["the interrupt with the highest rate says which device it is"],
    },
    General {
        open: Open::Interrupts,
        system: "illumos",
        run: "intrstat 5 2",
        outcomes: &["the device with most %tim is the one"],
    },
    General {
        open: Open::Program,
        system: "freebsd",
        run: "procstat -kk $(pgrep -o -x PROCESS); dtrace -n 'profile-99 /execname == \"PROCESS\"/ \
              { @[ustack(5)] = count(); } tick-20s { exit(0); }'",
        outcomes: &["what stands on most stacks is what the program does"],
    },
    General {
        open: Open::Program,
        system: "illumos",
        run: "pstack $(pgrep -o -x PROCESS); truss -c -p $(pgrep -o -x PROCESS)",
        outcomes: &["what stands on the stacks is what the program does; truss counts its calls"],
    },
    General {
        open: Open::Program,
        system: "macos",
        run: "sample PROCESS 10",
        outcomes: &["what stands on most stacks is what the program does"],
    },
    General {
        open: Open::Locks,
        system: "freebsd",
        run: "procstat -kka",
        outcomes: &["the function before the sleep says which lock is waited for, and for whom"],
    },
    General {
        open: Open::Locks,
        system: "illumos",
        run: "lockstat -AcwP -D 20 sleep 10",
        outcomes: &["the lock with most time waited, and its caller, say who holds up whom"],
    },
    General {
        open: Open::Interrupts,
        system: "linux",
        run: "mpstat -P ALL -I SUM 5 1; cat /proc/interrupts /proc/softirqs",
        outcomes: &[
            "one CPU with all of a queue: spread it (irqbalance, RSS, RPS)",
            "NET_RX leads: packets; TIMER or SCHED: very many short sleeps; BLOCK: disks",
        ],
    },
    General {
        open: Open::Stolen,
        system: "",
        run: "ask whoever runs the hypervisor for this guest's CPU limit and the host's load",
        outcomes: &[
            "a limit or spent credits: a larger size of machine ends it",
            "a full host: other guests have the CPU; nothing inside this one helps",
        ],
    },
    General {
        open: Open::Locks,
        system: "linux",
        run: "sudo ogive locks --for 20s > locks.txt && ogive doctor locks.txt",
        outcomes: &["the lock with most time waited, and its caller, say who holds up whom"],
    },
    General {
        open: Open::Sleepers,
        system: "linux",
        run: "ps -eLo state,pid,wchan:32,comm | grep '^D'",
        outcomes: &[
            "functions of a disk, a file system or NFS: its store is slow or does not answer",
            "a driver's, always the same: its thread sleeps so, and nobody waits for it",
        ],
    },
];

/// Tools in a command, and the formats by which their output is known once given.
const TOOLS: [(&str, &[&str]); 22] = [
    ("zpool iostat", &["zpool iostat"]),
    ("zpool status", &["zpool status"]),
    ("zpool list", &["zpool list"]),
    ("zpool get", &["zpool get", "zfs get"]),
    ("zfs get", &["zfs get"]),
    ("zfs list", &["zfs list"]),
    ("perf ", &["perf report", "perf script", "folded stacks"]),
    ("top -", &["top"]),
    ("vmstat", &["vmstat"]),
    ("iostat", &["iostat"]),
    ("pidstat", &["pidstat"]),
    ("mpstat", &["sar", "mpstat"]),
    ("prstat", &["prstat"]),
    ("lockstat", &["lockstat"]),
    ("arcstat", &["arcstat"]),
    ("arc_summary", &["arc_summary"]),
    ("dmesg", &["kernel log"]),
    ("free ", &["free", "meminfo"]),
    ("gstat", &["gstat"]),
    ("iotop", &["iotop"]),
    ("loadavg", &["uptime", "top", "loadavg"]),
    ("arcstats", &["kstat"]),
];

/// The next step, where one would tell more.
pub(super) fn step(
    weighed: &[(&Rule, Weighed)],
    answers: &Answers,
    environment: &Environment,
) -> Option<Step> {
    let facts = environment.facts();
    let open = open(answers, facts.lists_containers());
    // What is only near asks where nothing that is known excludes it.
    let candidate = weighed.first().filter(|(rule, best)| {
        best.confidence >= POSSIBLE
            || best.confidence >= WORTH_ASKING
                && answers.zfs.among != Among::No
                // Where nothing shows ZFS, it is not asked about by what is hardly a guess.
                && (!named::works_in_pools(rule) || named::has_pool(facts) == Some(true))
    });
    if let Some((rule, best)) = candidate
        && let Some(run) = not_given(&rule.text.ask, facts, named::is_of_zfs(rule), None)
    {
        let mut outcomes = settles(rule, best, &run, environment);
        outcomes.extend(named::how_to_find(&run, facts));
        return Some(Step { run, outcomes });
    }
    let mut step = general(open?, answers, facts)?;
    if let Some(does) = answers.users.first().and_then(|first| first.does)
        && open == Some(Open::Kernel)
    {
        let told = looked_for::would_tell(weighed, does, facts);
        step.outcomes.extend((!told.is_empty()).then(|| told.trim().to_owned()));
    }
    Some(step)
}

/// What the command of a near cause would settle.
fn settles(rule: &Rule, best: &Weighed, run: &str, environment: &Environment) -> Vec<String> {
    let title = &rule.text.title;
    let expected = looked_for::expected(rule, best, run, environment);
    let looks = match expected.is_empty() {
        true => String::new(),
        false => format!(" if {}", expected.join(", or ")),
    };
    match rule.text.role {
        Role::Unknown => vec!["the caller says which cause it is".to_owned()],
        _ => vec![
            format!("it fits{looks}: {title}"),
            "it does not: that cause is out, and its output says who else".to_owned(),
        ],
    }
}

/// What is open, the first of the three answers first.
fn open(answers: &Answers, containers: bool) -> Option<Open> {
    let first = answers.users.first().map(|user| user.kind);
    match (answers.cpu.state, answers.cpu.waits_for) {
        (State::Waiting, Some(Wait::Memory)) => return Some(Open::Memory),
        (State::Waiting, Some(Wait::Locks)) => return Some(Open::Locks),
        (State::Waiting, _) => return Some(Open::Disks),
        // Whom the load counts is asleep, for what is not shown.
        (State::Idle, _) if answers.cpu.load.is_some() && !answers.cpu.is_only_counted => {
            return Some(Open::Sleepers);
        }
        (State::Idle, _) if answers.cpu.since_boot => return Some(Open::Who),
        (State::Idle, _) => return None,
        _ => {}
    }
    let full_of_interrupts = matches!(&answers.cpu.full, Some((_, Part::Interrupts, _)));
    match first {
        Some(Kind::Stolen) => Some(Open::Stolen),
        Some(Kind::Interrupts) => Some(Open::Interrupts),
        _ if full_of_interrupts => Some(Open::Interrupts),
        Some(Kind::Kernel | Kind::Zfs) => Some(Open::Kernel),
        Some(Kind::Program) if answers.cpu.state == State::Unknown => Some(Open::Who),
        // Rows of next to nothing do not say who keeps a machine busy.
        Some(Kind::Program) if answers.users.is_little() => Some(Open::Who),
        // A container or pod has no name of a process.
        Some(Kind::Program) if containers => None,
        Some(Kind::Program) if answers.zfs.among == Among::No || !answers.zfs.is_hinted => {
            Some(Open::Program)
        }
        Some(Kind::Program) => Some(Open::Kernel),
        Some(Kind::Code) => Some(Open::Who),
        Some(Kind::NotShown) | None => Some(Open::Who),
    }
}

/// The first general step for this system of which something was not given.
fn general(open: Open, answers: &Answers, facts: &Facts) -> Option<Step> {
    let system = match native::system(facts).as_str() {
        "" => "linux".to_owned(),
        name => name.to_owned(),
    };
    let fits =
        |step: &&General| step.open == open && (step.system.is_empty() || step.system == system);
    let first = answers.users.first().map(|user| user.name.as_str());
    STEPS.iter().filter(fits).find_map(|step| {
        // Without the program's name a command that is about it is none.
        let lacks = |part: &str| named::lacks_program(part, facts, first);
        let parts: Vec<&str> = native::parts(step.run).filter(|part| !lacks(part)).collect();
        let run = not_given(&parts.join("; "), facts, false, first)?;
        let mut outcomes: Vec<_> = step.outcomes.iter().map(|text| (*text).to_owned()).collect();
        outcomes.extend(named::how_to_find(&run, facts));
        Some(Step { run, outcomes })
    })
}

/// The command of a rule for this host, whether or not its output was given: with the system's
/// tools, and with names that are known. `None` where nothing of it can be run here. Where nothing
/// shows whether there is a pool, commands about pools stay if it is of a rule `of_zfs`.
pub(super) fn for_host(command: &str, facts: &Facts, of_zfs: bool) -> Option<String> {
    let parts = here(command, facts, of_zfs, None);
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The parts of a command that can be run here.
fn here(command: &str, facts: &Facts, of_zfs: bool, user: Option<&str>) -> Vec<String> {
    let system = native::system(facts);
    let pools = named::has_pool(facts).unwrap_or(of_zfs);
    let of_pools = |part: &str| {
        ["zpool ", "zfs ", "arcstat ", "/spl/kstat/"].iter().any(|tool| part.contains(tool))
            && !part.contains("lsmod")
    };
    let translated = !matches!(system.as_str(), "" | "linux");
    let mut all: Vec<String> = Vec::new();
    for part in native::parts(command).filter(|part| pools || !of_pools(part)) {
        let Some(part) = native::command(part, &system) else { continue };
        let part = named::fill(&part, facts, user);
        // Two parts of a command for Linux may be one elsewhere.
        if !translated || !all.contains(&part) {
            all.push(part);
        }
    }
    if all.iter().all(|part| is_pause(part)) { Vec::new() } else { all }
}

/// Whether a part of a command only waits, or ends another part.
fn is_pause(part: &str) -> bool {
    part.starts_with("sleep ") || part.starts_with("kill %")
}

/// Whether a list shows threads of FreeBSD's kernel process: `kernel{arc_prune}`.
fn shows_threads(facts: &Facts) -> bool {
    let threads = &facts.evidence().threads;
    threads.iter().any(|thread| thread.name != "kernel" && thread.kernel == Some(true))
}

/// The parts of a command whose output was not given yet and that this system has; `user` is a
/// program that they are about where the evidence names no other.
fn not_given(command: &str, facts: &Facts, of_zfs: bool, user: Option<&str>) -> Option<String> {
    let (_, callers) = facts.profile_kind();
    let given = |part: &str| {
        // A table without callers answers less than one with them.
        let told = !part.contains("perf record") || callers;
        // Nor does a list of processes tell what one of threads would.
        let told = told && (!part.contains("top -SH") || shows_threads(facts));
        told && TOOLS.iter().any(|(tool, formats)| {
            part.contains(tool)
                && facts.evidence().inputs.iter().any(|input| {
                    input.formats.iter().any(|format| formats.contains(&format.as_str()))
                })
        })
    };
    let parts = here(command, facts, of_zfs, user);
    let parts: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !given(part)).collect();
    (!parts.iter().all(|part| is_pause(part))).then(|| parts.join("; "))
}

/// Every general step, with its system: for the test that each has commands of its own system.
#[cfg(test)]
pub(super) fn all() -> impl Iterator<Item = (&'static str, &'static str, &'static [&'static str])> {
    STEPS.iter().map(|step| (step.system, step.run, step.outcomes))
}
