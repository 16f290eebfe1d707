//! Two readings of a live host, in written bundles: renamed threads, ended programs, limits, waits.

use ogive_doctor::evidence::{Evidence, Number, Thread};
use ogive_doctor::read;

fn evidence(files: &[(&str, &str)]) -> Evidence {
    let mut evidence = Evidence::default();
    for (name, text) in files {
        read::read_bytes(&mut evidence, name, text.as_bytes());
    }
    read::finish(&mut evidence);
    evidence
}

/// A line of a thread: process, number, name, parent, ticks used, ticks of ended children, start.
fn task(process: u64, id: u64, name: &str, parent: u64, ticks: [u64; 2], started: u64) -> String {
    let [used, children] = ticks;
    let before = if process == 0 { String::new() } else { format!("{process} ") };
    format!(
        "{before}{id} ({name}) S {parent} 0 0 0 -1 0 0 0 0 0 {used} 0 {children} 0 20 0 1 0 {started} \
         0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 7 0 0\n"
    )
}

/// Ten seconds of two CPUs with this many busy ticks.
fn stat(busy: u64) -> [(&'static str, String); 2] {
    let line = |busy: u64, idle: u64| {
        format!("cpu  {busy} 0 0 {idle} 0 0 0 0\ncpu0 1 0 0 1 0 0 0 0\ncpu1 1 0 0 1 0 0 0 0\n")
    };
    [
        ("start/proc/stat", line(1000, 9000)),
        ("end/proc/stat", line(1000 + busy, 9000 + 2000 - busy)),
    ]
}

/// Evidence of two readings of threads, with this many busy ticks in between.
fn paired(busy: u64, start: &[String], end: &[String]) -> Evidence {
    let [first, last] = stat(busy);
    let (start, end) = (start.concat(), end.concat());
    evidence(&[
        (first.0, &first.1),
        ("start/thread-stats.txt", &start),
        (last.0, &last.1),
        ("end/thread-stats.txt", &end),
    ])
}

fn percent(evidence: &Evidence, name: &str) -> f64 {
    let rows = evidence.threads.iter().filter(|one| one.name == name);
    let sum: f64 = rows.filter_map(|one| one.cpu_percent).sum();
    (sum * 1e6).round() / 1e6
}

#[test]
fn a_renamed_worker_keeps_its_cpu_of_the_interval() {
    let evidence = paired(
        50,
        &[task(9, 9, "kworker/0:0-mm_percpu_wq", 2, [5048, 0], 3)],
        &[task(9, 9, "kworker/0:0-events", 2, [5049, 0], 3)],
    );
    assert_eq!(evidence.threads.len(), 1);
    assert_eq!(percent(&evidence, "kworker/0:0-events"), 0.1);
}

#[test]
fn a_reused_number_is_another_thread() {
    let evidence = paired(
        300,
        &[task(70, 70, "cc1", 1, [9000, 0], 10)],
        &[task(70, 70, "cc1", 1, [200, 0], 5000)],
    );
    assert_eq!(percent(&evidence, "cc1"), 20.0);
}

#[test]
fn ended_children_are_reported_once_under_their_parent() {
    // make (20) ran a shell (21) that ended; a compiler (30) below the shell also ended. Before the
    // first reading, the shell had used 40 ticks, and its ended children 60.
    let evidence = paired(
        700,
        &[
            task(1, 1, "init", 0, [100, 900], 1),
            task(20, 20, "make", 1, [50, 1000], 5),
            task(21, 21, "sh", 20, [40, 60], 6),
            task(30, 30, "cc1", 21, [300, 0], 7),
        ],
        // make received the shell's 45 ticks and its children's 60 + 800, including the compiler's.
        &[task(1, 1, "init", 0, [100, 900], 1), task(20, 20, "make", 1, [50, 1905], 5)],
    );
    let children: Vec<&Thread> =
        evidence.threads.iter().filter(|one| one.children_of.is_some()).collect();
    assert_eq!(children.len(), 1, "{children:?}");
    assert_eq!(children[0].children_of.as_deref(), Some("make"));
    assert_eq!(percent(&evidence, "finished children of make"), 50.5);
}

#[test]
fn threads_that_ended_belong_to_their_process() {
    let whole = |used| task(0, 50, "server", 1, [used, 0], 9);
    let [first, last] = stat(400);
    let start = task(50, 50, "server", 1, [10, 0], 9) + &task(50, 51, "worker", 1, [20, 0], 9);
    let end = task(50, 50, "server", 1, [10, 0], 9) + &task(50, 51, "worker", 1, [40, 0], 9);
    let evidence = evidence(&[
        (first.0, &first.1),
        ("start/process-stats.txt", &whole(1000)),
        ("start/thread-stats.txt", &start),
        (last.0, &last.1),
        ("end/process-stats.txt", &whole(1320)),
        ("end/thread-stats.txt", &end),
    ]);
    // Ended threads used 300 of the 320 ticks, a running one 20.
    assert_eq!(percent(&evidence, "server"), 30.0);
    assert_eq!(percent(&evidence, "worker"), 2.0);
}

#[test]
fn a_list_that_exceeds_the_busy_time_is_reported() {
    let threads =
        |ticks| [task(40, 40, "a", 1, [ticks, 0], 4), task(41, 41, "b", 1, [ticks, 0], 4)];
    let trouble = |busy| {
        let evidence = paired(busy, &threads(0), &threads(600));
        let inputs = evidence.inputs.into_iter().filter_map(|input| input.trouble);
        inputs.collect::<Vec<String>>()
    };
    assert!(trouble(1190).is_empty());
    let reported = trouble(100);
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(
        reported[0].contains("add up to 1.2 CPUs") && reported[0].contains("0.1 busy"),
        "{reported:?}"
    );
}

fn figure(evidence: &Evidence, table: &str, name: &str) -> Option<f64> {
    let table = evidence.tables.iter().find(|one| one.name == table)?;
    match table.figures.iter().find(|figure| figure.name == name)?.value {
        Number::Gauge(value) | Number::Rate(value) | Number::Counter(value) => Some(value),
        Number::Text(_) => None,
    }
}

#[test]
fn limits_of_version_1_are_read_from_the_output_of_grep() {
    let group = |held: u64, used: u64| {
        format!(
            "/sys/fs/cgroup/cpu,cpuacct/lxc/web:1/cpu.cfs_quota_us:50000\n\
             /sys/fs/cgroup/cpu,cpuacct/lxc/web:1/cpu.cfs_period_us:100000\n\
             /sys/fs/cgroup/cpu,cpuacct/lxc/web:1/cpu.stat:nr_periods {}\n\
             /sys/fs/cgroup/cpu,cpuacct/lxc/web:1/cpu.stat:nr_throttled {held}\n\
             /sys/fs/cgroup/cpu,cpuacct/lxc/web:1/cpu.stat:throttled_time {}\n\
             /sys/fs/cgroup/cpu,cpuacct/lxc/web:1/cpuacct.usage:{used}\n\
             /sys/fs/cgroup/memory/lxc/web:1/memory.limit_in_bytes:9223372036854771712\n",
            held * 2,
            held * 50_000_000
        )
    };
    let [first, last] = stat(400);
    let evidence = evidence(&[
        (first.0, &first.1),
        ("start/cgroups.txt", &group(100, 1_000_000_000)),
        (last.0, &last.1),
        ("end/cgroups.txt", &group(150, 6_000_000_000)),
    ]);
    let limit = |name| figure(&evidence, "cpu_limit", name);
    assert_eq!(limit("held_percent"), Some(50.0));
    assert_eq!((limit("limit_cpus"), limit("used_cpus")), (Some(0.5), Some(0.5)));
    assert_eq!(limit("lost_cpus"), Some(0.25));
    assert!(figure(&evidence, "memory_limit", "limit_bytes").is_none());
    assert!(evidence.not_understood.is_empty(), "{:?}", evidence.not_understood);
}

#[test]
fn disks_have_the_figures_of_iostat() {
    let line = |n: u64| {
        format!("   8  0 sda {} 0 {} {} 0 0 0 0 1 {} {}\n", n, n * 8, n * 20, n * 10, n * 40)
    };
    let [first, last] = stat(100);
    let evidence = evidence(&[
        (first.0, &first.1),
        ("start/proc/diskstats", &line(1000)),
        (last.0, &last.1),
        ("end/proc/diskstats", &line(1900)),
    ]);
    let disk = |name| figure(&evidence, "iostat", name);
    assert_eq!(disk("r_per_s"), Some(90.0));
    assert_eq!((disk("r_await"), disk("util_percent")), (Some(20.0), Some(90.0)));
    assert_eq!(disk("aqu-sz"), Some(3.6));
}

#[test]
fn cpu_of_the_capture_itself_is_not_counted() {
    let [first, last] = stat(1000);
    let evidence = evidence(&[
        (first.0, &first.1),
        ("start/look-stats.txt", &task(0, 99, "ogive", 1, [100, 0], 9)),
        ("start/thread-stats.txt", &task(40, 40, "a", 1, [0, 0], 4)),
        (last.0, &last.1),
        ("end/look-stats.txt", &task(0, 99, "ogive", 1, [300, 0], 9)),
        ("end/thread-stats.txt", &task(40, 40, "a", 1, [800, 0], 4)),
    ]);
    // 800 of the remaining 1800 ticks.
    assert_eq!((evidence.cpu[0].user * 10.0).round(), 444.0);
    assert_eq!(evidence.threads.len(), 1);
    assert_eq!(percent(&evidence, "a"), 80.0);
}

#[test]
fn processes_of_other_mounts_have_names_of_their_own() {
    let [first, last] = stat(1000);
    let mount = "{\n  \"mount_point\": \"/m\",\n  \"arc_max_bytes\": 1,\n  \"pid\": 50,\n  \
                 \"record_size_bytes\": 131072\n}\n";
    let of = |ticks| {
        task(50, 50, "ogive", 1, [ticks, 0], 4) + &task(60, 60, "ogive", 1, [3 * ticks, 0], 4)
    };
    let evidence = evidence(&[
        ("start/.ogive/mount", mount),
        (first.0, &first.1),
        ("start/thread-stats.txt", &of(0)),
        (last.0, &last.1),
        ("end/thread-stats.txt", &of(100)),
    ]);
    assert_eq!(percent(&evidence, "ogive"), 10.0);
    assert_eq!(percent(&evidence, "ogive (pid 60)"), 30.0);
}

#[test]
fn a_mount_is_found_by_its_number_whatever_its_program_is_called() {
    let [first, last] = stat(1000);
    let mount = "{\n  \"mount_point\": \"/m\",\n  \"arc_max_bytes\": 1,\n  \"pid\": 50,\n  \
                 \"record_size_bytes\": 131072\n}\n";
    let of = |thread: &str, ticks: u64| {
        task(50, 50, "ogive-1.2", 1, [ticks, 0], 4) + &task(50, 51, thread, 1, [2 * ticks, 0], 4)
    };
    let shown = |thread: &str| {
        evidence(&[
            ("start/.ogive/mount", mount),
            (first.0, &first.1),
            ("start/thread-stats.txt", &of(thread, 0)),
            (last.0, &last.1),
            ("end/thread-stats.txt", &of(thread, 100)),
        ])
    };
    assert_eq!(percent(&shown("fuse_session"), "ogive"), 10.0);
    // The number is that of another process table.
    assert_eq!(percent(&shown("worker"), "ogive-1.2"), 10.0);
}
