//! The sources and events of the running kernel. Tests that need root or a missing kernel feature
//! say so and pass. Tests that fill cgroups of their own run only in the long run, because the
//! kernel decides what it counts and raises, and when.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../tests/eventually.rs"]
mod eventually;
#[path = "../../../tests/skipped.rs"]
mod skipped;

use eventually::BOUND;
use skipped::{only_nightly, skipped};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ogive_pressure::{Reading, Sources};

const MIB: u64 = 1 << 20;

#[test]
fn the_running_machine_can_be_read() {
    let sources = Sources::probe().unwrap();
    let reading = sources.read().unwrap();
    assert!(reading.total_bytes > 0);
    assert!(reading.available_bytes <= reading.total_bytes);
    assert!(reading.limit_bytes <= reading.total_bytes);
    assert!(reading.headroom_bytes <= reading.available_bytes);
    assert!(sources.limit_bytes().unwrap() <= reading.total_bytes);
    for note in sources.describe() {
        println!("{note}");
    }
    let waiter = sources.waiter(&[]).unwrap();
    for note in waiter.describe() {
        println!("{note}");
    }
    assert_eq!(waiter.wakeups(), 0);
}

/// A memory cgroup of the test's own with a process in it; dropping it removes both.
struct TestCgroup {
    directory: PathBuf,
    process: Option<Child>,
}

impl TestCgroup {
    /// `None`, with the reason printed, if the test may not make one, or outside the long run.
    fn new(name: &str, limit_bytes: u64) -> Option<Self> {
        if only_nightly("it is the kernel's memory cgroups") {
            return None;
        }
        let v1 = PathBuf::from("/sys/fs/cgroup/memory");
        let v2 = PathBuf::from("/sys/fs/cgroup");
        let (parent, limit) = if v1.join("memory.usage_in_bytes").exists() {
            (v1, "memory.limit_in_bytes")
        } else if fs::read_to_string(v2.join("cgroup.subtree_control"))
            .is_ok_and(|text| text.split_whitespace().any(|controller| controller == "memory"))
        {
            (v2, "memory.max")
        } else {
            skipped("no memory controller under /sys/fs/cgroup");
            return None;
        };
        let directory = parent.join(format!("ogive-test-{name}-{}", std::process::id()));
        if let Err(error) = fs::create_dir(&directory) {
            skipped(format_args!("cannot make {} ({error}); run as root", directory.display()));
            return None;
        }
        let cgroup = Self { directory, process: None };
        fs::write(cgroup.directory.join(limit), limit_bytes.to_string()).unwrap();
        Some(cgroup)
    }

    /// Runs a shell script in the cgroup until it prints `ready`; then it waits for more on stdin.
    fn run(&mut self, script: &str) -> u32 {
        let procs = self.directory.join("cgroup.procs");
        let script = format!("echo $$ > {}\n{script}\necho ready\nread more\n", procs.display());
        let mut process = Command::new("sh")
            .arg("-c")
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "the script in the cgroup failed");
        let id = process.id();
        self.process = Some(process);
        id
    }

    /// Ends the process by closing its stdin and waits for it.
    fn end_process(&mut self) {
        if let Some(mut process) = self.process.take() {
            drop(process.stdin.take());
            let _ = process.wait();
        }
    }
}

impl Drop for TestCgroup {
    fn drop(&mut self) {
        self.end_process();
        // The kernel may empty the cgroup some time after the last process has ended.
        for _ in 0..100 {
            if fs::remove_dir(&self.directory).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        println!("could not remove {}", self.directory.display());
    }
}

/// A process group that loads a cgroup. It ends with the test, however the test ends.
struct Load(Child);

impl Drop for Load {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.0.wait();
    }
}

/// Reads until the condition holds, because the kernel adds some counters up late. Returns the
/// reading.
fn reading(sources: &Sources, what: &str, is_so: impl Fn(&Reading) -> bool) -> Reading {
    let until = Instant::now() + BOUND;
    loop {
        let reading = sources.read().unwrap();
        if is_so(&reading) {
            return reading;
        }
        assert!(Instant::now() < until, "never: {what}: {reading:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A file in memory (tmpfs), which is charged to the writer's cgroup and cannot be dropped.
fn file_in_memory() -> tempfile::NamedTempFile {
    tempfile::NamedTempFile::new_in("/dev/shm").unwrap()
}

#[test]
fn filling_a_small_cgroup_is_seen_and_page_cache_is_not() {
    let Some(mut cgroup) = TestCgroup::new("fill", 64 * MIB) else {
        return;
    };
    let process = cgroup.run("");
    let has_room = |reading: &Reading| reading.headroom_bytes > 48 * MIB;
    let sources = Sources::probe_process(process).unwrap();
    let before = reading(&sources, "an empty cgroup has room", has_room);
    assert_eq!(before.limit_bytes, 64 * MIB);
    cgroup.end_process();

    // 40 MiB of page cache of a file on disk are used, but as good as free.
    let on_disk = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let write = |path: &std::path::Path, mebibytes: u64| {
        format!("dd if=/dev/zero of={} bs=1M count={mebibytes} conv=fsync", path.display())
    };
    let process = cgroup.run(&write(on_disk.path(), 40));
    let sources = Sources::probe_process(process).unwrap();
    let cached = sources.read().unwrap();
    let on_file_lists = cached.usage_bytes > before.usage_bytes + 32 * MIB;
    if on_file_lists {
        reading(&sources, "clean page cache is room", has_room);
    } else {
        println!("not checked: the test's disk charges no page cache to the writer: {cached:?}");
    }
    cgroup.end_process();

    // 40 MiB that cannot be reclaimed.
    let in_memory = file_in_memory();
    let process = cgroup.run(&write(in_memory.path(), 40));
    let sources = Sources::probe_process(process).unwrap();
    let filled = reading(&sources, "a file in memory takes room", |filled| {
        filled.headroom_bytes < 24 * MIB && filled.usage_bytes >= 40 * MIB
    });
    drop(in_memory);
    reading(&sources, "a removed file gives its room back", |freed| {
        freed.headroom_bytes > filled.headroom_bytes + 32 * MIB
    });
}

#[test]
fn exhausting_a_small_cgroup_wakes_the_waiter() {
    let Some(mut cgroup) = TestCgroup::new("wake", 48 * MIB) else {
        return;
    };
    let process = cgroup.run("");
    let sources = Sources::probe_process(process).unwrap();
    let mut waiter = sources.waiter(&[]).unwrap();
    let directory = cgroup.directory.clone();
    let watched =
        waiter.describe().iter().any(|note| note.is_used() && note.path.starts_with(&directory));
    if !watched {
        skipped(format_args!("the cgroup has no events here: {:?}", waiter.describe()));
        return;
    }
    // Fill all but the last few MiB with unreclaimable memory, then read a file through the rest.
    let in_memory = file_in_memory();
    let on_disk = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let procs = cgroup.directory.join("cgroup.procs");
    // The load ends when the file is removed, even before it has written the file.
    let script = format!(
        "echo $$ > {}\n\
         dd if=/dev/zero of={} bs=1M count=44\n\
         dd if=/dev/zero of={} bs=1M count=200 conv=nocreat,fsync\n\
         while dd if={} of=/dev/null bs=64K; do :; done\n",
        procs.display(),
        in_memory.path().display(),
        on_disk.path().display(),
        on_disk.path().display(),
    );
    let load = Command::new("sh")
        .arg("-c")
        .arg(script)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let load = Load(load);
    // The limit makes the test fail instead of hang if the kernel raises nothing. A machine that is
    // short of memory itself may wake the waiter before the cgroup is full.
    let deadline = Instant::now() + BOUND;
    let (events, reading) = loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let events = waiter.wait(Some(left)).unwrap();
        let reading = sources.read().unwrap();
        if left.is_zero() || reading.headroom_bytes < 24 * MIB {
            break (events, reading);
        }
    };
    drop((load, on_disk));
    println!("{events:?} after {} wake-up(s): {reading:?}", waiter.wakeups());
    assert!(events.pressure || events.limit, "{events:?}, {:?}", waiter.describe());
    assert!(reading.headroom_bytes < 24 * MIB, "{reading:?}");
}

#[test]
fn usage_that_crosses_a_threshold_wakes_the_waiter() {
    let Some(mut cgroup) = TestCgroup::new("threshold", 64 * MIB) else {
        return;
    };
    let process = cgroup.run("");
    let sources = Sources::probe_process(process).unwrap();
    let mut waiter = sources.waiter(&[32 * MIB]).unwrap();
    let is_threshold = |note: &ogive_pressure::SourceStatus| note.source.ends_with("threshold");
    if !waiter.describe().iter().any(|note| note.is_used() && is_threshold(note)) {
        skipped(format_args!("only cgroup v1 has thresholds: {:?}", waiter.describe()));
        return;
    }
    cgroup.end_process();
    let in_memory = file_in_memory();
    cgroup.run(&format!("dd if=/dev/zero of={} bs=1M count=40", in_memory.path().display()));
    // Stalls count for the whole machine, and another program or an earlier test may cause some.
    let mut waits = 0;
    let mut wait = |timeout| loop {
        waits += 1;
        let events = waiter.wait(Some(timeout)).unwrap();
        assert_eq!(waiter.wakeups(), waits);
        assert!(!events.limit, "{events:?}");
        if events.threshold || !events.pressure {
            break events;
        }
    };
    // The timeout makes the test fail instead of hang if the kernel raises nothing.
    let events = wait(BOUND);
    assert!(events.threshold, "{events:?}");
    let events = wait(Duration::from_millis(300));
    assert!(events.timed_out, "reported once: {events:?}");
}
