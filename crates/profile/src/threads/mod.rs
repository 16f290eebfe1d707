//! CPU time by thread, by role and by CPU, as the kernel counts it in /proc. This needs neither
//! sampling nor permissions.
//!
//! A thread's time is `schedstat`'s nanoseconds, split into user and system by the ticks of its
//! `stat`. All threads are read every [`INTERVAL`]. A thread that starts and ends between two
//! readings is missed. Its time is in the counters of the CPUs, so the difference is the missed
//! time. `processes` of /proc/stat is the number of started threads.

mod proc;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hashbrown::HashMap;
use serde::Serialize;

use crate::roles::Roles;
pub use proc::{CpuTimes, Reader, Snapshot, ThreadTimes, Whole};

/// The time between two readings of all threads.
pub const INTERVAL: Duration = Duration::from_millis(500);
/// Threads read at most; on a machine with more, some are missed.
const THREADS_MAX: usize = 200_000;

/// CPU use of threads and CPUs over a period.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The version of these fields.
    pub schema: u32,
    /// The length of the period, in seconds.
    pub seconds: f64,
    /// Each CPU, by number.
    pub cpus: Vec<CpuUse>,
    /// The sum over all CPUs; percentages are of all of them.
    pub total: CpuUse,
    /// By role, most CPU first.
    pub roles: Vec<RoleUse>,
    /// By name of thread, most CPU first.
    pub threads: Vec<ThreadUse>,
    /// Threads and processes that were started in the period.
    pub started: u64,
    /// Threads that were read once and ended in the period.
    pub ended_seen: u64,
    /// CPU seconds that the CPUs counted and no thread accounts for: threads that started and ended
    /// between two readings, and interrupts.
    pub missed_cpu_seconds: f64,
    /// The CPU use of the observation itself, in percent.
    pub own_cpu_percent: f64,
    /// Sources that could not be read.
    pub notes: Vec<String>,
}

/// The use of a CPU, in percent of its time.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CpuUse {
    /// Its number; `None` for the sum over all.
    pub cpu: Option<u32>,
    /// Programs, including nice ones.
    pub usr: f64,
    /// The kernel.
    pub sys: f64,
    /// Hard and soft interrupts.
    pub irq: f64,
    /// Idle while a task waits for I/O. It is idle time, not work.
    pub iowait: f64,
    /// Taken by the hypervisor for other guests.
    pub steal: f64,
    /// Idle.
    pub idle: f64,
}

/// CPU use of the threads of a role.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RoleUse {
    /// The role, or the thread name of a program.
    pub role: String,
    /// A description, if it is known.
    pub what: Option<String>,
    /// Threads that used any CPU.
    pub threads: u64,
    /// CPU seconds in user mode.
    pub usr_seconds: f64,
    /// CPU seconds in the kernel.
    pub sys_seconds: f64,
    /// Percent of one CPU.
    pub cpu_percent: f64,
    /// Seconds in which the threads were runnable and waited for a CPU.
    pub wait_seconds: f64,
}

/// CPU use of the threads of one name.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ThreadUse {
    /// The name.
    pub name: String,
    /// Its role, if it is known.
    pub role: Option<String>,
    /// Times as in [`RoleUse`].
    #[serde(flatten)]
    pub time: TimeUse,
}

/// Times of some threads.
#[derive(Debug, Clone, Default, Serialize)]
pub struct TimeUse {
    /// Threads that used any CPU.
    pub threads: u64,
    /// CPU seconds in user mode.
    pub usr_seconds: f64,
    /// CPU seconds in the kernel.
    pub sys_seconds: f64,
    /// Percent of one CPU.
    pub cpu_percent: f64,
    /// Seconds in which the threads were runnable and waited for a CPU.
    pub wait_seconds: f64,
}

#[derive(Debug, Clone)]
struct Observed {
    first: ThreadTimes,
    last: ThreadTimes,
    /// Whether the thread started in the period, so that all its time counts.
    is_new: bool,
    at: u64,
}

/// Observes for a while. `stop` ends it early.
///
/// # Errors
///
/// /proc/stat cannot be read.
pub fn watch(
    duration: Duration,
    roles: &Roles,
    stop: &AtomicBool,
    tick: &mut dyn FnMut(Duration),
) -> std::io::Result<Report> {
    let before = Snapshot::read()?;
    let own_before = proc::own_seconds();
    let started = Instant::now();
    let mut observed: HashMap<(i32, u64), Observed> = HashMap::new();
    let mut reader = proc::Reader::default();
    let mut read = |number: u64, observed: &mut HashMap<(i32, u64), Observed>| {
        reader.threads(THREADS_MAX, &mut |times| {
            let key = (times.tid, times.start_ticks);
            match observed.get_mut(&key) {
                Some(thread) => (thread.last, thread.at) = (times, number),
                None => {
                    let first = times.clone();
                    observed.insert(
                        key,
                        Observed { first, last: times, is_new: number > 0, at: number },
                    );
                }
            }
        })
    };
    let mut cut = read(0, &mut observed);
    let mut readings = 0;
    loop {
        let left = duration.saturating_sub(started.elapsed());
        if left.is_zero() || stop.load(Ordering::Relaxed) {
            break;
        }
        proc::pause(left.min(INTERVAL));
        readings += 1;
        cut |= read(readings, &mut observed);
        tick(started.elapsed());
    }
    let after = Snapshot::read()?;
    let seconds = started.elapsed().as_secs_f64();
    let mut report = account(&before, &after, &observed, readings, roles, seconds);
    report.own_cpu_percent = (proc::own_seconds() - own_before) / seconds.max(1e-3) * 100.0;
    if cut {
        report.notes.push(format!("there are over {THREADS_MAX} threads; some were not read"));
    }
    if !observed.is_empty() && !observed.values().any(|observed| observed.last.precise) {
        report.notes.push(
            "/proc/PID/schedstat is missing on this kernel: times are in ticks, and waiting for a \
             CPU is not known"
                .to_owned(),
        );
    }
    Ok(report)
}

fn account(
    before: &Snapshot,
    after: &Snapshot,
    observed: &HashMap<(i32, u64), Observed>,
    readings: u64,
    roles: &Roles,
    seconds: f64,
) -> Report {
    let mut by_name: BTreeMap<&str, TimeUse> = BTreeMap::new();
    let mut thread_seconds = 0.0;
    for thread in observed.values() {
        let zero = ThreadTimes::default();
        let from = if thread.is_new { &zero } else { &thread.first };
        let used = thread.last.since(from);
        thread_seconds += used.cpu_seconds();
        let time = by_name.entry(thread.last.name.as_str()).or_default();
        time.threads += u64::from(used.cpu_seconds() > 0.0);
        time.usr_seconds += used.usr_seconds;
        time.sys_seconds += used.sys_seconds;
        time.wait_seconds += used.wait_seconds;
    }
    let mut by_role: BTreeMap<String, RoleUse> = BTreeMap::new();
    let mut threads = Vec::new();
    for (name, mut time) in by_name {
        if time.threads == 0 && time.wait_seconds == 0.0 {
            continue;
        }
        time.cpu_percent = (time.usr_seconds + time.sys_seconds) / seconds.max(1e-9) * 100.0;
        let entry = roles.of(name);
        let role = by_role.entry(roles.group(name)).or_default();
        role.what = entry.map(|entry| entry.what.clone());
        role.threads += time.threads;
        role.usr_seconds += time.usr_seconds;
        role.sys_seconds += time.sys_seconds;
        role.cpu_percent += time.cpu_percent;
        role.wait_seconds += time.wait_seconds;
        let role = entry.map(|entry| entry.role.clone());
        threads.push(ThreadUse { name: name.to_owned(), role, time });
    }
    let mut roles: Vec<RoleUse> =
        by_role.into_iter().map(|(role, used)| RoleUse { role, ..used }).collect();
    roles.sort_by(|a, b| b.cpu_percent.total_cmp(&a.cpu_percent));
    threads.sort_by(|a, b| b.time.cpu_percent.total_cmp(&a.time.cpu_percent));
    let used = |cpu: &CpuTimes| cpu.busy_seconds();
    let busy = used(&after.total) - used(&before.total);
    Report {
        schema: 1,
        seconds,
        cpus: after
            .cpus
            .iter()
            .map(|(cpu, times)| {
                let zero = CpuTimes::default();
                times.since(before.cpus.get(cpu).unwrap_or(&zero)).percent(Some(*cpu))
            })
            .collect(),
        total: after.total.since(&before.total).percent(None),
        roles,
        threads,
        started: after.started.saturating_sub(before.started),
        ended_seen: observed.values().filter(|observed| observed.at < readings).count() as u64,
        missed_cpu_seconds: (busy - thread_seconds).max(0.0),
        own_cpu_percent: 0.0,
        notes: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    const WHAT: &str = "read completion: checksum, decrypt, decompress";

    fn sum(of: &CpuUse) -> f64 {
        of.usr + of.sys + of.irq + of.iowait + of.steal + of.idle
    }

    /// A thread with these two readings of nanoseconds: CPU time, all of it in the kernel, and
    /// waiting for a CPU.
    fn observed(
        tid: i32,
        name: &str,
        readings: [(u64, u64); 2],
        at: u64,
    ) -> ((i32, u64), Observed) {
        let look = |(cpu_ns, wait_ns): (u64, u64)| {
            let stat = format!("{tid} ({name}) S 2 0 0 0 -1 0 0 0 0 0 0 70 0 0 0 -20 1 0 4242 0");
            ThreadTimes::parse(&stat, &format!("{cpu_ns} {wait_ns} 7")).unwrap()
        };
        let [first, last] = readings.map(look);
        ((tid, 4242), Observed { first, last, is_new: false, at })
    }

    #[test]
    fn cpu_between_two_readings_is_split_by_cpu_role_and_name() {
        let before = Snapshot::parse(
            "cpu 10 0 10 100 50 0 0 0 0 0\ncpu0 10 0 10 100 50 0 0 0\nprocesses 7\n",
        );
        let after = Snapshot::parse(
            "cpu 20 0 90 150 40 5 5 10 0 0\ncpu0 20 0 90 150 40 5 5 10\nprocesses 9\n",
        );
        const S: u64 = 1_000_000_000;
        let threads = [
            observed(317, "z_rd_int_7", [(3 * S, S), (3 * S + S / 2, S + S / 4)], 2),
            observed(318, "z_rd_int_0", [(S, 0), (S, 0)], 2),
            // It had ended before the last reading.
            observed(400, "some program", [(0, 0), (S / 10, 0)], 1),
        ];
        let observed = threads.into_iter().collect();
        let report = account(&before, &after, &observed, 2, &Roles::bundled(), 2.0);
        let role = report.roles.first().unwrap();
        assert_eq!((role.role.as_str(), role.what.as_deref()), ("read completion", Some(WHAT)));
        assert_eq!((role.threads, role.cpu_percent), (1, 25.0), "the other has used nothing");
        let used = (role.usr_seconds, role.sys_seconds, role.wait_seconds);
        assert_eq!(used, (0.0, 0.5, 0.25));
        let names: Vec<_> = report.threads.iter().map(|thread| thread.name.as_str()).collect();
        assert_eq!(names, ["z_rd_int_7", "some program"], "the busiest is first");
        assert_eq!((report.started, report.ended_seen), (2, 1));
        // 10 + 80 + 5 + 5 ticks, of which threads account for 60.
        assert!((report.missed_cpu_seconds - 0.4).abs() < 1e-9, "{}", report.missed_cpu_seconds);
        assert_eq!((report.total.cpu, report.cpus[0].cpu), (None, Some(0)));
        for cpu in [&report.total, &report.cpus[0]] {
            assert!((sum(cpu) - 100.0).abs() < 1e-9, "{cpu:?}");
        }
    }

    /// CPU time of the calling thread.
    fn own_cpu_ms() -> u64 {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        (time.tv_sec * 1000 + time.tv_nsec / 1_000_000) as u64
    }

    /// Observes until the thread has had a CPU, however long the machine makes it wait. The kernel
    /// counts a thread's use when its clock ticks.
    #[test]
    fn a_busy_thread_is_found_under_its_name() {
        let (stop, used_ms) = (AtomicBool::new(false), AtomicU64::new(0));
        let report = std::thread::scope(|scope| {
            let spin = || {
                while !stop.load(Ordering::Relaxed) {
                    used_ms.store(own_cpu_ms(), Ordering::Relaxed);
                }
            };
            std::thread::Builder::new()
                .name("z_rd_int_7".into())
                .spawn_scoped(scope, spin)
                .unwrap();
            let (mut at_first, mut is_enough) = (None, false);
            let end = AtomicBool::new(false);
            // The reading before the last tick includes all use up to the last tick but one.
            let mut tick = |_| {
                end.store(is_enough, Ordering::Relaxed);
                let used_ms = used_ms.load(Ordering::Relaxed);
                is_enough = used_ms > *at_first.get_or_insert(used_ms) + 50;
            };
            let report = watch(Duration::from_secs(60), &Roles::bundled(), &end, &mut tick);
            stop.store(true, Ordering::Relaxed);
            report.unwrap()
        });
        let role = report.roles.iter().find(|role| role.role == "read completion").unwrap();
        assert!(role.usr_seconds + role.sys_seconds > 0.0 && role.threads >= 1);
        assert_eq!(role.what.as_deref(), Some(WHAT));
        assert!(report.threads.iter().any(|thread| thread.name == "z_rd_int_7"));
        assert!(!report.cpus.is_empty() && report.total.cpu.is_none());
        assert!((sum(&report.total) - 100.0).abs() < 0.1, "{:?}", report.total);
    }
}
