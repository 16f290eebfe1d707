//! Recognises the operating system by the output of its tools.
//!
//! Examples of marks are headings of top, columns of ps and prstat, paths below /proc and /sys,
//! names of sysctls and lines of kstat. Only a line that the tools of one system print is proof. A
//! line that a person could write about any system is none.

use std::sync::LazyLock;

use regex::RegexSet;

/// Systems, by the number of a pattern below.
const MARKS: [(&str, &str); 29] = [
    ("linux", r"^top - \d\d:\d\d:\d\d up |^%?Cpu\(s\): +[\d.]+"),
    ("linux", r"^(KiB|MiB|GiB) Mem ?: +[\d.]"),
    ("linux", r"^MemTotal: +\d+ kB|^nr_free_pages \d|^procs -+memory-+"),
    ("linux", r"^(/sys/module/\w+/parameters|/proc/(spl|sys|\d+))/\S+"),
    ("linux", r"\[kernel\.kallsyms\]|\[kernel\] +\[k\] "),
    ("linux", r"\[(kworker/\S+|ksoftirqd/\d+|kthreadd|kswapd\d+|rcu_\w+)\]$"),
    ("freebsd", r"^last pid: +\d+; +load averages?: "),
    ("freebsd", r"^ARC: \S+ Total, |^Mem: .*\b(Inact|Wired|Laundry)\b"),
    (
        "freebsd",
        r"^vfs\.zfs\.[\w.]+ *[:=]|^kstat\.zfs\.misc\.[\w.]+ *[:=]|^vm\.(kmem|stats)\S*[:=]",
    ),
    ("freebsd", r"zfs\.ko`\w|zfskern\{|\bkernel\{\w+\}|pagedaemon\{"),
    ("freebsd", r"^CPU: +[\d.]+% user, +[\d.]+% nice"),
    ("illumos", r"^\w+:\d+:\w+:\w+\s+\S+$|^module: \w+ +instance: \d+"),
    ("illumos", r"\bgenunix`\w|\bunix`\w"),
    ("illumos", r"^PID USERNAME +(SIZE|USR) .*PROCESS/(NLWP|LWPID)"),
    ("illumos", r"^Page Summary +Pages +MB"),
    ("macos", r"^Processes: \d+ total, \d+ running"),
    ("linux", r"^CPU: +[\d.]+% usr +[\d.]+% sys +[\d.]+% nic"),
    ("freebsd", r"^\S+ +\d+ +[\d.]+ +[\d.]+ +\d+ +\d+ +- +[A-Z]+ .*\[\w+\]$"),
    ("macos", r"^\S+ +\d+ +[\d.]+ +[\d.]+ +\d+ +\d+ +(\?\?|s\d\d\d) +[A-Z]\S* "),
    ("macos", r"^CPU usage: [\d.,]+% user, [\d.,]+% sys, "),
    ("macos", r"^Process Name\s+% CPU\s"),
    ("macos", r"^PhysMem: \S+ used \("),
    ("windows", r"^(Handles +)?NPM\(K\) +PM\([KM]\) "),
    (
        "windows",
        r"^Image Name +PID Session Name|^System Idle Process\s+(\d|Run)|^(PS )?[A-Z]:\\[^>|]*>",
    ),
    ("windows", r#"^"\(PDH-CSV \d|^\\\\[^\\]+\\process(or)?\("#),
    ("windows", r"^LoadPercentage$|^Process\s+CPU\s+Private Bytes\s+Working Set"),
    ("macos", r"^\*\*\* Sampled system activity \(|^ALL_TASKS +-2 "),
    ("macos", r"^Report Version: +\d+$|^OS Version: +macOS"),
    ("macos", r"^Load Avg: [\d.]+, [\d.]+, [\d.]+ +CPU usage:"),
];
/// Tools do not print longer lines.
const MAX_LINE_BYTES: usize = 512;

static PATTERNS: LazyLock<RegexSet> = LazyLock::new(|| {
    RegexSet::new(MARKS.iter().map(|(_, pattern)| *pattern)).expect("constant patterns")
});

/// The system whose tools print such a line, unless the tools of another also do.
pub fn system_of(line: &str) -> Option<&'static str> {
    if line.len() > MAX_LINE_BYTES {
        return None;
    }
    let found = PATTERNS.matches(line.trim_start());
    let mut systems = found.iter().map(|at| MARKS[at].0);
    let first = systems.next()?;
    systems.all(|other| other == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_tools_reveals_the_system() {
        for (line, system) in [
            ("top - 12:01:02 up 3 days,  1:02,  2 users,  load average: 1.0, 2.0, 3.0", "linux"),
            ("%Cpu(s):  1.0 us,  2.0 sy,  0.0 ni, 97.0 id", "linux"),
            ("MemTotal:       16384000 kB", "linux"),
            ("/sys/module/zfs/parameters/zfs_arc_max:0", "linux"),
            ("  31.10%  [kernel]  [k] osq_lock", "linux"),
            ("root 12 0.0 0.0 0 0 ? S 10:00 0:00 [kworker/0:1H]", "linux"),
            ("last pid: 12345;  load averages:  1.00,  2.00,  3.00    up 3+01:02:03", "freebsd"),
            ("ARC: 10G Total, 4G MFU, 5G MRU, 1M Anon, 100M Header, 200M Other", "freebsd"),
            ("Mem: 100M Active, 2G Inact, 20G Wired, 1G Free", "freebsd"),
            ("vfs.zfs.arc_max: 4294967296", "freebsd"),
            ("   11 root  -16  -  0B  48K CPU1  1 12:34 99.0% zfskern{arc_prune}", "freebsd"),
            ("zfs:0:arcstats:size\t4294967296", "illumos"),
            ("              unix`mutex_delay_default+0x7", "illumos"),
            (
                "   PID USERNAME USR SYS TRP TFL DFL LCK SLP LAT VCX ICX SCL SIG PROCESS/LWPID",
                "illumos",
            ),
            ("Processes: 300 total, 2 running, 298 sleeping, 1500 threads", "macos"),
            ("root  7  1.4  0.0     0    96  -  DL    3Jun25    61:01.11 [zfskern]", "freebsd"),
            (
                "root 312 0.0 0.1 4312345 8120   ??  Us   Mon09AM   0:01.10 /usr/libexec/zed",
                "macos",
            ),
            ("Process Name           % CPU   CPU Time   Threads  Idle Wake Ups   PID", "macos"),
            ("CPU:  12% usr  38% sys   0% nic  48% idle   1% io   0% irq   1% sirq", "linux"),
            ("Handles  NPM(K)    PM(K)      WS(K)     CPU(s)     Id  SI ProcessName", "windows"),
            ("Image Name                     PID Session Name        Session#", "windows"),
            (r"\\host\processor(_total)\% processor time :", "windows"),
            ("\"(PDH-CSV 4.0)\",\"x\"", "windows"),
        ] {
            assert_eq!(system_of(line), Some(system), "{line}");
        }
        for line in [
            "It is slow since I looked at /proc/spl/kstat/zfs/arcstats.",
            "arcstats.size 12345",
            "zfs_arc_max is 4 GiB on FreeBSD and on Linux",
            "12:00:01 up 3 days",
            "",
        ] {
            assert_eq!(system_of(line), None, "{line}");
        }
    }
}
