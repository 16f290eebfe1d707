//! CPU time of one process by role of thread, user against system, as counters.
//!
//! The kernel counts a thread's time by thread until it ends, and then only in the process. So a
//! sum over the threads of a pool would go back when one of them ends, which a scraper takes for a
//! restart. The clock therefore keeps the last reading of each thread. The time between that
//! reading and the thread's end is missing here, but is in the time of the whole process.
//!
//! A role is the name that ogive gives its threads, without the number (`ROLES`; ARCHITECTURE.md
//! describes each). Threads of libraries are `other`.

use std::collections::BTreeMap;
use std::io;

use hashbrown::HashMap;
use ogive_proc::stat::Stat;
use ogive_profile::threads::{Reader, ThreadTimes};

use crate::exposition::{Exposition, Kind};

/// The roles of threads of a mount. `ogive` is the first thread of the process.
const ROLES: [&str; 17] = [
    "arc_reclaim",
    "fuse",
    "fuse_session",
    "fuse_uring",
    "fuse_watch",
    "l2_read",
    "l2_write",
    "metrics",
    "ogive",
    "ogive-signals",
    "origin_asks",
    "origin_mounts",
    "origin_read",
    "origin_recent",
    "otlp",
    "request",
    "watch_http",
];

/// The CPU time of this process's threads by role, since the clock was created.
#[derive(Debug, Default)]
pub struct Clock {
    reader: Reader,
    /// The last reading of each thread, by number and start time, and the number of that reading.
    known: HashMap<(i32, u64), (ThreadTimes, u64)>,
    readings: u64,
    used: BTreeMap<&'static str, Seconds>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Seconds {
    user: f64,
    system: f64,
    threads: u64,
}

impl Clock {
    /// Reads all threads of this process.
    fn read(&mut self) {
        self.readings += 1;
        self.used.values_mut().for_each(|used| used.threads = 0);
        let Self { reader, known, readings, used } = self;
        reader.process(std::process::id().cast_signed(), &mut |times| {
            let used = used.entry(role(&times.name)).or_default();
            let key = (times.tid, times.start_ticks);
            // All time of a thread without an earlier reading is new.
            let before = known.get(&key).map(|(before, _)| before.clone()).unwrap_or_default();
            let since = times.since(&before);
            used.user += since.usr_seconds;
            used.system += since.sys_seconds;
            used.threads += 1;
            known.insert(key, (times, *readings));
        });
        let now = self.readings;
        self.known.retain(|_, (_, reading)| *reading == now);
    }

    /// Reads the threads and adds the families. `mount` is the value of the label.
    ///
    /// # Errors
    /// `/proc` does not contain this process.
    pub fn tell(&mut self, exposition: &mut Exposition, mount: &str) -> io::Result<()> {
        self.read();
        let cpu = exposition.family(
            "ogive_thread_cpu_seconds",
            Kind::Counter,
            "CPU time by role of thread; the time of a thread after its last reading is missing",
        );
        for (role, used) in &self.used {
            for (mode, seconds) in [("user", used.user), ("system", used.system)] {
                cpu.sample(&[("mount", mount), ("role", role), ("mode", mode)], seconds);
            }
        }
        let threads = exposition.family("ogive_threads", Kind::Gauge, "Threads by role");
        for (role, used) in &self.used {
            threads.sample(&[("mount", mount), ("role", role)], used.threads);
        }
        let usage = process()?;
        let all = exposition.family(
            "process_cpu_seconds",
            Kind::Counter,
            "CPU time of the process, including ended threads",
        );
        all.sample(&[], usage.0);
        let memory = exposition.family(
            "process_resident_memory_bytes",
            Kind::Gauge,
            "Resident memory of the process",
        );
        memory.sample(&[], usage.1);
        Ok(())
    }
}

/// The role of a thread with this name.
fn role(name: &str) -> &'static str {
    let numberless = name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('-');
    ROLES.into_iter().find(|role| *role == numberless).unwrap_or("other")
}

/// CPU seconds and resident bytes of this process.
fn process() -> io::Result<(f64, u64)> {
    let line = std::fs::read("/proc/self/stat")?;
    let used = || {
        let stat = Stat::parse(&line)?;
        let ticks = stat.user_ticks()?.checked_add(stat.system_ticks()?)?;
        let seconds = ticks as f64 / rustix::param::clock_ticks_per_second().max(1) as f64;
        let page_bytes = rustix::param::page_size() as u64;
        Some((seconds, stat.resident_pages()?.saturating_mul(page_bytes)))
    };
    used().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "/proc/self/stat is truncated"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;
    use crate::Format;

    #[test]
    fn only_ogives_own_thread_names_are_roles() {
        assert_eq!(
            [role("fuse-12"), role("fuse_uring-3"), role("request")],
            ["fuse", "fuse_uring", "request"]
        );
        for other in ["", "-1", "jemalloc_bg_thd", "fuse-12\"} 1"] {
            assert_eq!(role(other), "other", "{other}");
        }
    }

    /// The counters of one reading, by their labels.
    fn seconds(clock: &mut Clock) -> BTreeMap<String, f64> {
        let mut exposition = Exposition::new(Format::Text);
        clock.tell(&mut exposition, "/m").unwrap();
        let text = String::from_utf8(exposition.finish()).unwrap();
        let samples = text.lines().filter(|line| line.starts_with("ogive_thread_cpu"));
        samples
            .map(|line| {
                let (labels, value) = line.rsplit_once(' ').unwrap();
                (labels.to_owned(), value.parse().unwrap())
            })
            .collect()
    }

    #[test]
    fn counters_never_go_back_when_threads_end() {
        let mut clock = Clock::default();
        let (go, told_to) = std::sync::mpsc::channel::<()>();
        let busy = std::thread::Builder::new()
            .name("arc_reclaim".into())
            .spawn(move || {
                let mut sum = 0_u64;
                while told_to.try_recv().is_err() {
                    sum = std::hint::black_box(sum.wrapping_add(1));
                }
            })
            .unwrap();
        let mut before = BTreeMap::new();
        // Wait until the kernel has counted some of its time.
        for _ in 0..6_000 {
            before = seconds(&mut clock);
            if before.values().sum::<f64>() > 0.02 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(before.values().sum::<f64>() > 0.0, "{before:?}");
        go.send(()).unwrap();
        busy.join().unwrap();
        let after = seconds(&mut clock);
        for (labels, seconds) in &before {
            assert!(after[labels] >= *seconds, "{labels}: {seconds} and then {}", after[labels]);
        }
    }
}
