//! The sources, in trees of files made for the test.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../tests/eventually.rs"]
mod eventually;
#[path = "../../../tests/seed.rs"]
mod seed;
#[path = "../../../tests/skipped.rs"]
mod skipped;

use eventually::{BOUND, eventually};
use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use ogive_pressure::{Events, PressureError, Sources};
use proptest::prelude::*;
use seed::seeded;

const MIB: u64 = 1 << 20;

struct Tree(tempfile::TempDir);

impl Tree {
    /// A machine of 1 GiB with 768 MiB available, nothing else.
    fn new() -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        tree.write(
            "proc/meminfo",
            "MemTotal: 1048576 kB\nMemFree: 1024 kB\nMemAvailable: 786432 kB\n",
        );
        tree
    }

    fn unified(cgroup: &str) -> Self {
        let tree = Self::new();
        tree.write("proc/self/cgroup", &format!("0::{cgroup}\n"));
        tree.write("proc/self/mountinfo", "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        tree
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn cgroup(&self, path: &str, files: &[(&str, String)]) {
        for (name, text) in files {
            self.write(&format!("sys/fs/cgroup{path}/{name}"), text);
        }
    }

    fn probe(&self) -> Sources {
        Sources::probe_below(self.0.path()).unwrap()
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

fn level(max: &str, high: &str, usage: u64, stat: &str) -> [(&'static str, String); 4] {
    [
        ("memory.max", format!("{max}\n")),
        ("memory.high", format!("{high}\n")),
        ("memory.current", format!("{usage}\n")),
        ("memory.stat", stat.to_owned()),
    ]
}

#[test]
fn a_machine_without_cgroups_and_psi_has_meminfo() {
    let tree = Tree::new();
    let sources = tree.probe();
    let reading = sources.read().unwrap();
    assert_eq!(reading.total_bytes, 1024 * MIB);
    assert_eq!(reading.limit_bytes, 1024 * MIB);
    assert_eq!(reading.available_bytes, 768 * MIB);
    assert_eq!(reading.headroom_bytes, 768 * MIB);
    assert_eq!(reading.usage_bytes, 256 * MIB);
    assert!(!reading.stalled);
    assert_eq!(sources.limit_bytes().unwrap(), 1024 * MIB);
    let absent = sources.describe().iter().filter(|note| !note.is_used()).count();
    assert_eq!(absent, 3, "v1, v2 and PSI: {:?}", sources.describe());
    assert!(!sources.waiter(&[]).unwrap().has_events());
}

#[test]
fn the_tightest_limit_on_the_way_up_binds() {
    let tree = Tree::unified("/outer/inner");
    tree.cgroup("/outer/inner", &level("max", "max", 10 * MIB, ""));
    tree.cgroup("/outer", &level(&(512 * MIB).to_string(), "max", 100 * MIB, ""));
    let sources = tree.probe();
    let reading = sources.read().unwrap();
    assert_eq!(reading.limit_bytes, 512 * MIB);
    assert_eq!(reading.headroom_bytes, 412 * MIB);
    assert_eq!(reading.usage_bytes, 100 * MIB);
    // memory.high is a limit too, and both may change at run time.
    tree.cgroup("/outer/inner", &[("memory.high", format!("{}\n", 64 * MIB))]);
    let reading = sources.read().unwrap();
    assert_eq!(reading.limit_bytes, 64 * MIB);
    assert_eq!(reading.headroom_bytes, 54 * MIB);
    assert_eq!(reading.usage_bytes, 10 * MIB);
    assert_eq!(sources.limit_bytes().unwrap(), 64 * MIB);
}

#[test]
fn clean_page_cache_is_headroom_and_dirty_is_not() {
    let tree = Tree::unified("/a");
    let stat = format!(
        "anon {}\nfile {}\nshmem {}\nfile_dirty {}\nfile_writeback {}\nslab_reclaimable {}\n\
         inactive_file {}\nactive_file {}\n",
        20 * MIB,
        75 * MIB,
        5 * MIB,
        8 * MIB,
        2 * MIB,
        4 * MIB,
        50 * MIB,
        20 * MIB,
    );
    tree.cgroup("/a", &level(&(100 * MIB).to_string(), "max", 99 * MIB, &stat));
    let reading = tree.probe().read().unwrap();
    // 99 are used, of them 70 on the file lists, of them 10 not clean: 39 cannot be reclaimed.
    assert_eq!(reading.headroom_bytes, 61 * MIB);
    assert_eq!(reading.usage_bytes, 99 * MIB);
    assert_eq!(reading.unused_bytes, MIB, "page cache counts as used");
}

#[test]
fn over_the_limit_is_no_headroom_and_a_limit_above_the_machine_is_none() {
    let tree = Tree::unified("/a");
    tree.cgroup("/a", &level(&(100 * MIB).to_string(), "max", 101 * MIB, ""));
    let sources = tree.probe();
    let reading = sources.read().unwrap();
    assert_eq!((reading.headroom_bytes, reading.unused_bytes), (0, 0));
    tree.cgroup("/a", &level(&(9000 * MIB).to_string(), "max", MIB, ""));
    let reading = sources.read().unwrap();
    assert_eq!(reading.limit_bytes, 1024 * MIB);
    assert_eq!((reading.headroom_bytes, reading.unused_bytes), (768 * MIB, 1024 * MIB));
}

#[test]
fn version_one_counts_with_the_cgroups_below() {
    let tree = Tree::new();
    tree.write("proc/self/cgroup", "4:memory:/a\n0::/\n");
    tree.write(
        "proc/self/mountinfo",
        "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
    );
    tree.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    tree.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "77\n");
    tree.write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", &(200 * MIB).to_string());
    tree.write("sys/fs/cgroup/memory/a/memory.usage_in_bytes", &(150 * MIB).to_string());
    let stat = format!("inactive_file 1\ntotal_inactive_file {}\ntotal_dirty {MIB}\n", 41 * MIB);
    tree.write("sys/fs/cgroup/memory/a/memory.stat", &stat);
    let reading = tree.probe().read().unwrap();
    assert_eq!(reading.limit_bytes, 200 * MIB);
    assert_eq!(reading.headroom_bytes, 90 * MIB);
}

#[test]
fn a_cgroup_without_the_memory_controller_is_noted() {
    let tree = Tree::unified("/plain");
    tree.cgroup("/plain", &[("cgroup.type", "domain\n".to_owned())]);
    let notes = tree.probe().describe();
    let note = notes.iter().find(|note| note.source == "cgroup v2 memory").unwrap();
    assert!(!note.is_used());
    assert!(note.to_string().contains("/plain"), "{note}");
}

#[test]
fn stalls_of_the_machine_and_of_the_cgroup_both_count() {
    let tree = Tree::unified("/a");
    let psi = |percent: &str, total: u64| {
        format!("some avg10={percent} avg60=0.00 avg300=0.00 total={total}\n")
    };
    tree.write("proc/pressure/memory", &psi("0.99", 70));
    tree.cgroup("/a", &[("cgroup.type", "domain\n".into()), ("memory.pressure", psi("0.00", 90))]);
    let sources = tree.probe();
    let reading = sources.read().unwrap();
    assert_eq!((reading.stalled, reading.stall_total_us), (false, 90));
    tree.cgroup("/a", &[("memory.pressure", psi("1.00", 91))]);
    assert!(sources.read().unwrap().stalled);
    tree.cgroup("/a", &[("memory.pressure", psi("0.40", 91))]);
    assert!(!sources.read().unwrap().stalled);
    tree.write("proc/pressure/memory", &psi("44.10", 99));
    let reading = sources.read().unwrap();
    assert_eq!((reading.stalled, reading.stall_total_us), (true, 99));
}

#[test]
fn a_vanished_cgroup_does_not_bind() {
    let tree = Tree::unified("/a");
    tree.cgroup("/a", &level(&(10 * MIB).to_string(), "max", MIB, ""));
    let sources = tree.probe();
    assert_eq!(sources.limit_bytes().unwrap(), 10 * MIB);
    // Files of a removed cgroup cannot be read; an empty file has the same effect.
    tree.cgroup("/a", &[("memory.max", String::new()), ("memory.high", String::new())]);
    assert_eq!(sources.limit_bytes().unwrap(), 1024 * MIB);
}

#[test]
fn a_missing_meminfo_is_an_error_that_names_it() {
    let root = tempfile::tempdir().unwrap();
    let error = Sources::probe_below(root.path()).unwrap_err();
    let PressureError::Meminfo { path, .. } = &error;
    assert_eq!(path, &root.path().join("proc/meminfo"));
    assert!(error.to_string().contains("proc/meminfo"), "{error}");
    let tree = Tree::new();
    tree.write("proc/meminfo", "nothing here\n");
    assert!(Sources::probe_below(tree.path()).is_err());
}

#[test]
fn an_idle_waiter_makes_no_wakeups_and_a_waker_ends_its_wait() {
    let tree = Tree::unified("/a");
    tree.write("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
    tree.cgroup("/a", &level("max", "max", MIB, ""));
    tree.cgroup("/a", &[("memory.events", "low 0\nhigh 0\nmax 0\noom 0\n".into())]);
    let mut waiter = tree.probe().waiter(&[]).unwrap();
    assert!(waiter.has_events(), "{:?}", waiter.describe());
    let waker = waiter.waker();
    let ((tell, answers), (name, named)) = (mpsc::channel(), mpsc::channel());
    let thread = std::thread::spawn(move || {
        let link = fs::read_link("/proc/thread-self").unwrap();
        name.send(Path::new("/proc").join(link).join("stat")).unwrap();
        (0..3).for_each(|_| tell.send(waiter.wait(None).unwrap()).unwrap());
        waiter.wakeups()
    });
    let stat = named.recv_timeout(BOUND).unwrap();
    let is_asleep = || {
        let text = fs::read_to_string(&stat).unwrap();
        text.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" S"))
    };
    // Only two facts are visible: the thread is in its wait, and it never left it. The long run
    // gives a wait by the clock the time to show itself.
    let is_idle = |wakeups: u64| {
        eventually("the waiter waits", is_asleep);
        if skipped::is_nightly() {
            std::thread::sleep(Duration::from_millis(300));
        }
        assert_eq!(waker.wakeups(), wakeups, "an idle waiter woke");
    };
    is_idle(0);
    waker.wake();
    let next = || answers.recv_timeout(BOUND).unwrap();
    assert_eq!(next(), Events { woken: true, ..Events::default() });
    is_idle(1);
    waker.clone().stop();
    assert_eq!(next(), Events { woken: true, stopped: true, ..Events::default() });
    assert_eq!(next(), Events { stopped: true, ..Events::default() });
    assert_eq!(thread.join().unwrap(), 2, "a stopped waiter does not even poll");
}

#[test]
fn wakes_before_a_wait_are_one_and_a_timeout_is_reported() {
    let mut waiter = Tree::new().probe().waiter(&[]).unwrap();
    let waker = waiter.waker();
    waker.wake();
    waker.wake();
    let woken = waiter.wait(None).unwrap();
    assert_eq!(woken, Events { woken: true, ..Events::default() });
    let nothing = waiter.wait(Some(Duration::from_millis(1))).unwrap();
    assert_eq!(nothing, Events { timed_out: true, ..Events::default() });
    let at_once = waiter.wait(Some(Duration::ZERO)).unwrap();
    assert!(at_once.timed_out);
    waker.wake();
    let far = waiter.wait(Some(Duration::MAX)).unwrap();
    assert!(far.woken && !far.timed_out);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..seeded() })]

    #[test]
    fn any_text_in_any_file_is_survived(
        meminfo in "(MemTotal: [0-9]{0,22} kB\n)?\\PC*",
        cgroup in "(0::/\\PC{0,9}\n|4:memory:/a\n|\\PC{0,20}\n){0,4}",
        mountinfo in "(30 20 0:26 / /sys/fs/cgroup rw - cgroup2 c rw\n|\\PC{0,40}\n){0,4}",
        number in "[0-9]{0,22}|max|\\PC{0,8}",
        stat in "((total_)?inactive_file [0-9]{0,22}\n|\\PC{0,20}\n){0,4}",
        psi in "(some avg10=[0-9.]{0,5} total=[0-9]{0,22}\n)?\\PC{0,20}",
    ) {
        let tree = Tree::new();
        tree.write("proc/self/cgroup", &cgroup);
        tree.write("proc/self/mountinfo", &mountinfo);
        tree.write("proc/pressure/memory", &psi);
        for path in ["", "/a"] {
            tree.cgroup(path, &level(&number, &number, 5, &stat));
        }
        let sources = tree.probe();
        let reading = sources.read().unwrap();
        prop_assert!(reading.limit_bytes <= reading.total_bytes);
        prop_assert!(reading.headroom_bytes <= reading.available_bytes);
        prop_assert!(!sources.describe().is_empty());
        tree.write("proc/meminfo", &meminfo);
        let _ = sources.read();
    }
}
