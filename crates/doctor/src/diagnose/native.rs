//! Commands of the system at hand, in place of those that a rule has for Linux.
//!
//! What a command asks for is known by the words in it. Each system has its own command for the
//! same, or none, and then that part is left out. Where the system is not known nothing changes.

use std::sync::LazyLock;

use regex::Regex;

use super::clause;
use crate::facts::Facts;

/// What a command asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asks {
    Threads,
    Memory,
    MemoryUsers,
    Profile,
    Stack,
    Sleepers,
    Arc,
    Dbuf,
    Groups,
    Benchmarks,
    DebugLog,
    Disks,
    PerCpu,
    States,
    Load,
    Version,
    Loaded,
    Interrupts,
    Swap,
    Log,
    Processes,
}

/// What is asked for, by what the command has in it; the first that fits.
static ASKED: LazyLock<Vec<(Regex, Asks)>> = LazyLock::new(|| {
    [
        (r"^(?:sudo )?perf (?:record|top|lock)", Asks::Profile),
        (r"^ps aux --sort=-rss|^ps -eo rss", Asks::MemoryUsers),
        (r"^ps .*\^D|^ps -eo sta", Asks::Sleepers),
        (r"^ps .*--", Asks::Processes),
        (r"^top -[A-Za-z]*b", Asks::Threads),
        (r"^free\b", Asks::Memory),
        (r"/proc/\$\(pgrep.*/stack|/proc/\$p/stack|/proc/\*/stack", Asks::Stack),
        (r"kstat/zfs/arcstats", Asks::Arc),
        (r"kstat/zfs/dbufstats", Asks::Dbuf),
        (r"kstat/zfs/\S*txgs", Asks::Groups),
        (r"kstat/zfs/\S*_bench", Asks::Benchmarks),
        (r"kstat/zfs/dbgmsg", Asks::DebugLog),
        (r"^iostat\b", Asks::Disks),
        (r"^(?:pidstat|mpstat)\b", Asks::PerCpu),
        (r"^vmstat\b", Asks::States),
        (r"^(?:cat )?/proc/loadavg", Asks::Load),
        (r"^modinfo zfs", Asks::Version),
        (r"^lsmod", Asks::Loaded),
        (r"/proc/interrupts", Asks::Interrupts),
        (r"/proc/swaps", Asks::Swap),
        (r"^(?:sudo )?dmesg", Asks::Log),
    ]
    .map(|(pattern, asks)| (Regex::new(pattern).expect("a constant pattern"), asks))
    .into()
});

/// A command of FreeBSD's.
fn freebsd(asks: Asks) -> &'static str {
    match asks {
        Asks::Threads => "top -SHPIb -s 5 -d 2 40",
        Asks::Memory => "vmstat -s",
        Asks::MemoryUsers => "top -b -o res 20",
        Asks::Profile => {
            "dtrace -x stackframes=100 -n 'profile-99 /arg0/ { @[execname, stack()] = count(); } \
             tick-10s { exit(0); }'"
        }
        Asks::Stack => "procstat -kka",
        Asks::Sleepers => "ps -axo state,pcpu,comm | grep '^D'",
        Asks::Arc => "sysctl kstat.zfs.misc.arcstats",
        Asks::Dbuf => "sysctl kstat.zfs.misc.dbufstats",
        Asks::Groups => "sysctl kstat.zfs.POOL.misc.txgs",
        Asks::Benchmarks => {
            "sysctl kstat.zfs.misc.fletcher_4_bench kstat.zfs.misc.vdev_raidz_bench"
        }
        Asks::DebugLog => "sysctl kstat.zfs.misc.dbgmsg",
        Asks::Disks => "iostat -x -w 5 -c 3",
        Asks::PerCpu => "top -Pb -s 5 -d 2 20",
        Asks::States => "vmstat -w 5 -c 3",
        Asks::Load => "uptime",
        Asks::Version => "zfs version",
        Asks::Loaded => "kldstat -m zfs",
        Asks::Interrupts => "vmstat -i",
        Asks::Swap => "swapinfo",
        Asks::Log => "dmesg | tail -50",
        Asks::Processes => "ps -auxd",
    }
}

/// A command of illumos's.
fn illumos(asks: Asks) -> &'static str {
    match asks {
        Asks::Threads | Asks::Processes => "prstat -mLc 5 2",
        Asks::Memory => "echo ::memstat | mdb -k",
        Asks::MemoryUsers => "prstat -c -s rss 1 1",
        Asks::Profile => "lockstat -kIW -D 20 sleep 10",
        Asks::Stack => "echo '::stacks -m zfs' | mdb -k",
        Asks::Arc => "kstat -m zfs -n arcstats",
        Asks::Dbuf => "kstat -m zfs -n dbufstats",
        Asks::Benchmarks => "kstat -m zfs -c misc",
        Asks::DebugLog => "echo ::zfs_dbgmsg | mdb -k",
        Asks::Disks => "iostat -xn 5 3",
        Asks::PerCpu => "mpstat 5 3",
        Asks::States => "vmstat 5 3",
        Asks::Load => "uptime",
        Asks::Version => "uname -v",
        Asks::Loaded => "modinfo | grep -w zfs",
        Asks::Interrupts => "intrstat 5 2",
        Asks::Swap => "swap -l",
        Asks::Log => "dmesg | tail -50",
        Asks::Sleepers | Asks::Groups => "",
    }
}

/// A command of macOS's.
fn macos(asks: Asks) -> &'static str {
    match asks {
        Asks::Threads | Asks::PerCpu => "top -l 2 -s 5 -n 20 -o cpu -stats pid,command,cpu,time",
        Asks::Memory => "vm_stat",
        Asks::MemoryUsers => "top -l 1 -n 20 -o mem -stats pid,command,mem",
        Asks::Profile | Asks::Stack => "sudo spindump -notarget 10",
        Asks::Arc => "sysctl kstat.zfs.misc.arcstats",
        Asks::Disks => "iostat -w 5 -c 3",
        Asks::States => "top -l 2 -s 5 -n 0",
        Asks::Load => "uptime",
        Asks::Version => "zfs version",
        Asks::Loaded => "kextstat | grep -w zfs",
        Asks::Swap => "sysctl vm.swapusage",
        Asks::Log => "sudo dmesg | tail -50",
        _ => "",
    }
}

/// A command of Windows's.
fn windows(asks: Asks) -> &'static str {
    match asks {
        Asks::Threads | Asks::Processes | Asks::PerCpu => {
            "Get-Counter '\\Process(*)\\% Processor Time' -SampleInterval 5 -MaxSamples 1"
        }
        Asks::Disks => {
            "Get-Counter '\\PhysicalDisk(*)\\% Disk Time','\\PhysicalDisk(*)\\Avg. Disk \
             sec/Transfer' -SampleInterval 5 -MaxSamples 1"
        }
        Asks::Memory | Asks::MemoryUsers => {
            "Get-Process | Sort-Object WorkingSet -Descending | Select-Object -First 10"
        }
        Asks::States => "Get-Counter '\\Processor(_Total)\\*' -SampleInterval 5 -MaxSamples 1",
        Asks::Profile => "wpr -start CPU; Start-Sleep 20; wpr -stop cpu.etl",
        _ => "",
    }
}

/// Words of commands and places that only some systems have: the words, and whose they are.
pub(super) const OWN: [(&str, &[&str]); 5] = [
    (
        "linux",
        &[
            "/proc/",
            "/sys/",
            "/boot/config",
            "/etc/modprobe.d",
            "/etc/default",
            "perf record",
            "perf report",
            "perf top",
            "perf lock",
            "pidstat",
            "mpstat -P",
            "top -Hb",
            "top -b -",
            "top -p",
            "top -H",
            "--forest",
            "--sort=",
            "free -m",
            "modprobe",
            "systemctl",
            "journalctl",
            "udev",
            "bpftrace",
            "strace",
            "lsmod",
            "lscpu",
            "modinfo zfs",
            "sar -",
            "ogive capture",
            "ogive locks",
            "ps -e",
            "iotop",
            "fatrace",
            "drop_caches",
            "khugepaged",
            "ksmd",
            "ksoftirqd",
            "kswapd",
            "CPUQuota",
            "cgroup",
            "zram",
            "libvirt",
            "mdadm",
            "pstree",
            "ionice",
            "findmnt",
            "init_on_alloc",
            "inotify",
            "slabinfo",
            "numactl",
            "btrfs",
            "docker",
            "nfsiostat",
            "irqbalance",
            "kthreadd",
            "iostat -x 5 2",
        ],
    ),
    (
        "freebsd",
        &[
            "gstat",
            "procstat",
            "kldstat",
            "/boot/loader.conf",
            "top -SH",
            "freebsd-version",
            "vmstat -i",
            "vnlru",
            "kern.maxvnodes",
            "nullfs",
            "swapinfo",
            "ps -axo",
            "ps -auxd",
        ],
    ),
    (
        "illumos",
        &["prstat", "mdb -k", "kstat -m", "iostat -xn", "/etc/system", "swap -l", "intrstat"],
    ),
    ("macos", &["vm_stat", "spindump", "kextstat", "kernel_task", "memory_pressure"]),
    ("windows", &["Get-Counter", "Get-Process", "wpr ", "Performance Analyzer"]),
];

/// Words that Windows has not, whoever else has.
pub(super) const NOT_OF_WINDOWS: [&str; 12] = [
    "grep", "| head", "| tail", "vmstat", "iostat ", "dmesg", "top -", "renice", "kill ", "cat ",
    "sudo ", "uptime",
];

/// The system at hand, by its name in the evidence; empty where it is not known.
pub(super) fn system(facts: &Facts) -> String {
    match facts.os_or_told().unwrap_or_default().as_str() {
        "solaris" => "illumos".to_owned(),
        name => name.to_owned(),
    }
}

/// Whether a text has words of a system that is not this one.
pub(super) fn is_foreign(text: &str, system: &str) -> bool {
    if !OWN.iter().any(|(name, _)| *name == system) {
        return false;
    }
    let of_others = OWN.iter().filter(|(name, _)| *name != system);
    // macOS has much of FreeBSD's, and one list of words for both would say so less plainly.
    of_others.flat_map(|(_, words)| *words).any(|word| text.contains(word))
        || system == "windows" && NOT_OF_WINDOWS.iter().any(|word| text.contains(word))
        || system != "linux" && system != "freebsd" && text.contains("iostat -x ")
        || matches!(system, "illumos" | "windows") && text.contains("sysctl ")
}

/// The part of a command that asks for the same here; `None` where nothing does.
pub(super) fn command(part: &str, system: &str) -> Option<String> {
    let part = part.trim();
    let table: fn(Asks) -> &'static str = match system {
        "freebsd" => freebsd,
        "illumos" => illumos,
        "macos" => macos,
        "windows" => windows,
        _ => return Some(part.to_owned()),
    };
    let asked = ASKED.iter().find(|(pattern, _)| pattern.is_match(part));
    let here = match asked {
        Some((_, asks)) => table(*asks).to_owned(),
        None => part.to_owned(),
    };
    (!here.is_empty() && !is_foreign(&here, system)).then_some(here)
}

/// A clause of advice with its commands made this system's; `None` where one of them is not to be
/// had, or the clause is about another system.
pub(super) fn advice(text: &str, system: &str) -> Option<String> {
    let mut out = String::new();
    for (at, piece) in text.split('`').enumerate() {
        if at % 2 == 0 {
            out.push_str(&places(piece, system));
            continue;
        }
        let here = parts(piece).map(|part| command(part, system)).collect::<Option<Vec<_>>>()?;
        out.push('`');
        out.push_str(&here.join("; "));
        out.push('`');
    }
    (!is_foreign(&out, system)).then_some(out)
}

/// The parts of a command that can be run one without the other.
pub(super) fn parts(command: &str) -> impl Iterator<Item = &str> {
    // A script of bpftrace, dtrace or the shell has semicolons of its own.
    clause::outside_braces(command).into_iter()
}

/// Files in which settings last, by the names that they have here.
fn places(text: &str, system: &str) -> String {
    let file = match system {
        "freebsd" => "/boot/loader.conf",
        "illumos" => "/etc/system",
        _ => return text.to_owned(),
    };
    text.replace("/etc/modprobe.d/zfs.conf", file)
}
