//! Takes files of /proc and /sys, and of a mount's control directory.

use std::path::Path;
use std::time::Duration;

use ogive_proc::stat::Stat;

use super::detached::{HERE, Part, content, read};
use super::{Bundle, Subject, cgroups, waits};

/// Files of one kind are in memory, so reading them for longer means that it hangs.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// Kstat files taken at most.
const MAX_KSTATS: usize = 2000;
/// Threads listed at most.
const MAX_THREADS: usize = 50_000;

/// Files that are read at the start and at the end.
const TWICE: [&str; 14] = [
    "/proc/stat",
    "/proc/meminfo",
    "/proc/loadavg",
    "/proc/uptime",
    "/proc/vmstat",
    "/proc/buddyinfo",
    "/proc/slabinfo",
    "/proc/diskstats",
    "/proc/softirqs",
    "/proc/interrupts",
    "/proc/pressure/cpu",
    "/proc/pressure/io",
    "/proc/pressure/memory",
    "/proc/spl/kmem/slab",
];
/// Files that are read once.
const ONCE: [&str; 6] = [
    "/proc/version",
    "/proc/cmdline",
    "/proc/cpuinfo",
    "/proc/modules",
    "/proc/mounts",
    "/etc/os-release",
];
/// Modules whose parameters are read.
const MODULES: [&str; 5] = ["zfs", "spl", "icp", "zcommon", "znvpair"];
/// A kstat that is left out, because its first reading runs a benchmark in the kernel for seconds.
/// A parameter of the module shows which code a hash uses.
const RUNS_A_BENCHMARK: &str = "chksum_bench";
/// Files of a mount's control directory.
const CONTROL: [&str; 5] = ["arcstats", "zfetchstats", "ogivestats", "mount", "memory"];

/// Takes one of the two snapshots.
pub(super) fn snapshot(bundle: &mut Bundle, moment: &'static str, subject: &Subject) {
    if let Subject::Mount(mount_point) = subject {
        let mount_point = mount_point.clone();
        HERE.take(bundle, TIME_LIMIT, move |part| control(part, moment, &mount_point));
    }
    HERE.take(bundle, TIME_LIMIT, move |part| {
        let name = |path: &str| format!("{moment}{path}");
        TWICE.iter().for_each(|path| one(part, path, name(path)));
    });
    if matches!(subject, Subject::Host) {
        HERE.take(bundle, TIME_LIMIT, move |part| {
            let mut left = MAX_KSTATS;
            let name = format!("{moment}/proc/spl/kstat");
            kstats(Path::new("/proc/spl/kstat"), &name, &mut left, part);
        });
    }
    HERE.take(bundle, TIME_LIMIT, move |part| {
        cgroups::take(part, &format!("{moment}/cgroups.txt"));
    });
    HERE.take(bundle, TIME_LIMIT, move |part| waits::take(part, moment));
    // As the last of the first reading and the first of the second, they would be closest to the
    // time between. The other files take milliseconds.
    HERE.take(bundle, TIME_LIMIT, move |part| thread_stats(part, moment));
}

/// Takes the files that do not change during the capture.
pub(super) fn once(bundle: &mut Bundle) {
    HERE.take(bundle, TIME_LIMIT, |part| {
        ONCE.iter().for_each(|path| one(part, path, path.trim_start_matches('/').to_owned()));
    });
    HERE.take(bundle, TIME_LIMIT, module_parameters);
    if Path::new("/proc/self").exists() && !Path::new("/sys/module/zfs").exists() {
        bundle.files.push(("zfs-module.txt".to_owned(), b"zfs module: not loaded\n".to_vec()));
    }
    HERE.take(bundle, TIME_LIMIT, busy_stacks);
}

/// Takes one file, if it exists.
fn one(part: &Part, path: &str, name: String) {
    if let Some(content) = read(part, Path::new(path)) {
        part.add(name, content);
    }
}

/// Takes the files of a mount's control directory. The mount may be dead.
fn control(part: &Part, moment: &str, mount_point: &Path) {
    for name in CONTROL {
        if let Some(content) = read(part, &mount_point.join(".ogive").join(name)) {
            part.add(format!("{moment}/.ogive/{name}"), content);
        } else if moment == "start" && name == "arcstats" {
            part.note(format!(
                "{} has no readable control directory; no counters of the mount",
                mount_point.display()
            ));
        }
    }
}

/// CPU seconds that this process and its finished commands have used.
pub(super) fn own_cpu_seconds() -> Option<f64> {
    let line = content(Path::new("/proc/self/stat"))?;
    let stat = Stat::parse(&line)?;
    let ticks = stat.user_ticks()?.saturating_add(stat.system_ticks()?);
    let ticks = ticks.saturating_add(stat.children_ticks()?);
    #[expect(clippy::cast_precision_loss, reason = "CPU time in hundredths of a second")]
    Some(ticks as f64 / 100.0)
}

fn kstats(directory: &Path, name: &str, left: &mut usize, part: &Part) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    let mut entries: Vec<_> = entries.filter_map(Result::ok).collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    entries.retain(|entry| entry.file_name() != RUNS_A_BENCHMARK);
    for entry in entries {
        if *left == 0 {
            part.note(format!("more than {MAX_KSTATS} kstats; the rest was left out"));
            return;
        }
        let inside = format!("{name}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            kstats(&entry.path(), &inside, left, part);
        } else if let Some(content) = read(part, &entry.path()) {
            *left -= 1;
            part.add(inside, content);
        }
    }
}

/// Takes the `stat` line of every thread after its process's number, in procfs's format
/// (proc_pid_stat(5)). The line of each process with several threads is taken too, because only it
/// counts ended threads. This process has a file of its own, because the capture itself makes it
/// busy.
fn thread_stats(part: &Part, moment: &str) {
    let name = format!("{moment}/thread-stats.txt");
    let heading = b"# first column pid (tgid), then the line of /proc/PID/task/TID/stat\n";
    part.add(name.clone(), heading.to_vec());
    let mut whole: Vec<u8> =
        b"# lines of /proc/PID/stat of processes with several threads\n".to_vec();
    let mut listed = 0;
    let own = std::process::id().to_string();
    let Ok(processes) = std::fs::read_dir("/proc") else { return };
    for process in processes.filter_map(Result::ok) {
        let pid = process.file_name();
        let is_pid = |pid: &&str| pid.bytes().all(|byte| byte.is_ascii_digit()) && *pid != own;
        let Some(pid) = pid.to_str().filter(is_pid) else {
            continue;
        };
        // A process may end while it is read.
        let Ok(tasks) = std::fs::read_dir(process.path().join("task")) else { continue };
        let before = listed;
        let mut threads = Vec::new();
        for task in tasks.filter_map(Result::ok) {
            if listed >= MAX_THREADS {
                part.note(format!("more than {MAX_THREADS} threads; the rest was left out"));
                break;
            }
            if let Some(line) = read(part, &task.path().join("stat")) {
                listed += 1;
                threads.extend_from_slice(pid.as_bytes());
                threads.push(b' ');
                one_line(&line, &mut threads);
            }
        }
        part.append(&name, &threads);
        if listed > before + 1
            && let Some(line) = read(part, &process.path().join("stat"))
        {
            one_line(&line, &mut whole);
        }
        if listed >= MAX_THREADS {
            break;
        }
    }
    part.add(format!("{moment}/process-stats.txt"), whole);
    if let Some(line) = read(part, Path::new("/proc/self/stat")) {
        let mut look = b"# the line of /proc/PID/stat of the capturing process\n".to_vec();
        one_line(&line, &mut look);
        part.add(format!("{moment}/look-stats.txt"), look);
    }
}

/// Appends a line of `stat`. A name may contain a line feed.
fn one_line(line: &[u8], to: &mut Vec<u8>) {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    to.extend(line.iter().map(|&byte| if byte == b'\n' { b' ' } else { byte }));
    to.push(b'\n');
}

/// `module/name value`, one per line.
fn module_parameters(part: &Part) {
    for module in MODULES {
        let Ok(entries) = std::fs::read_dir(format!("/sys/module/{module}/parameters")) else {
            continue;
        };
        let mut entries: Vec<_> = entries.filter_map(Result::ok).collect();
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            if let Some(value) = read(part, &entry.path()) {
                let value = String::from_utf8_lossy(&value).trim().replace('\n', " ");
                let name = entry.file_name();
                let line = format!("{module}/{} {value}\n", name.to_string_lossy());
                part.append("module-parameters.txt", line.as_bytes());
            }
        }
    }
}

/// Takes kernel stacks of ZFS's threads that run or wait uninterruptibly (root only).
fn busy_stacks(part: &Part) {
    let Ok(processes) = std::fs::read_dir("/proc") else { return };
    let mut taken = 0;
    for process in processes.filter_map(Result::ok) {
        let path = process.path();
        let Some(name) = read(part, &path.join("comm"))
            .map(|name| String::from_utf8_lossy(&name).trim().to_owned())
        else {
            continue;
        };
        if !ogive_doctor::facts::is_zfs_thread(&name) || taken >= 64 {
            continue;
        }
        let Some(stat) =
            read(part, &path.join("stat")).map(|stat| String::from_utf8_lossy(&stat).into_owned())
        else {
            continue;
        };
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        if !matches!(state, Some('R' | 'D')) {
            continue;
        }
        let pid = process.file_name().to_string_lossy().into_owned();
        if let Some(stack) = read(part, &path.join("stack")) {
            taken += 1;
            part.add(format!("proc/{pid}/stack-{}", name.replace('/', "_")), stack);
        }
    }
}
