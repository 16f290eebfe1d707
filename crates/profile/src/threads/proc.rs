//! Reads /proc/stat, and stat and schedstat of each thread, into reused buffers.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::time::Duration;

use ogive_proc::stat::Stat;

use super::CpuUse;

/// Ticks a second in /proc: USER_HZ, 100 on every architecture that runs ZFS.
const TICKS_PER_SECOND: f64 = 100.0;

/// Time of a CPU since boot, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTimes {
    ticks: [u64; 8],
}

/// The CPU times at one moment.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The sum over all CPUs.
    pub total: CpuTimes,
    /// Each CPU by number.
    pub cpus: BTreeMap<u32, CpuTimes>,
    /// Threads and processes started since boot.
    pub started: u64,
}

impl Snapshot {
    /// Reads /proc/stat.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn read() -> io::Result<Self> {
        Ok(Self::parse(&std::fs::read_to_string("/proc/stat")?))
    }

    /// Parses the text of /proc/stat; invalid lines are left out.
    pub fn parse(text: &str) -> Self {
        let mut snapshot = Self::default();
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let Some(name) = words.next() else { continue };
            if name == "processes" {
                snapshot.started = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
            }
            let Some(number) = name.strip_prefix("cpu") else { continue };
            let mut times = CpuTimes::default();
            for (tick, word) in times.ticks.iter_mut().zip(words) {
                *tick = word.parse().unwrap_or(0);
            }
            match number.parse() {
                Ok(cpu) => drop(snapshot.cpus.insert(cpu, times)),
                Err(_) if number.is_empty() => snapshot.total = times,
                Err(_) => {}
            }
        }
        snapshot
    }
}

impl CpuTimes {
    /// The increase since an earlier snapshot. Idle and iowait may go back, which counts as no
    /// increase.
    pub fn since(&self, before: &Self) -> Self {
        let mut ticks = [0; 8];
        for (at, tick) in ticks.iter_mut().enumerate() {
            *tick = self.ticks[at].saturating_sub(before.ticks[at]);
        }
        Self { ticks }
    }

    /// The shares in percent. The order in the file is user, nice, system, idle, iowait, irq,
    /// softirq, steal.
    pub fn percent(&self, cpu: Option<u32>) -> CpuUse {
        let all: u64 = self.ticks.iter().sum();
        let part = |which: &[usize]| {
            let ticks: u64 = which.iter().map(|at| self.ticks[*at]).sum();
            ticks as f64 / all.max(1) as f64 * 100.0
        };
        CpuUse {
            cpu,
            usr: part(&[0, 1]),
            sys: part(&[2]),
            idle: part(&[3]),
            iowait: part(&[4]),
            irq: part(&[5, 6]),
            steal: part(&[7]),
        }
    }

    /// Seconds that were neither idle nor stolen.
    pub fn busy_seconds(&self) -> f64 {
        [0, 1, 2, 5, 6].iter().map(|at| self.ticks[*at]).sum::<u64>() as f64 / TICKS_PER_SECOND
    }
}

/// Times of a thread since it started.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThreadTimes {
    /// The thread.
    pub tid: i32,
    /// Its name.
    pub name: String,
    /// Its start, in ticks since boot; with the number it identifies the thread for good.
    pub start_ticks: u64,
    usr_ticks: u64,
    sys_ticks: u64,
    cpu_ns: u64,
    wait_ns: u64,
    /// Whether `cpu_ns` and `wait_ns` are known.
    pub precise: bool,
}

/// Times of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Whole {
    /// Its start, in ticks since boot.
    pub start_ticks: u64,
    /// The ticks that its threads have used.
    pub used_ticks: u64,
}

/// Times between two readings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Used {
    /// In user mode.
    pub usr_seconds: f64,
    /// In the kernel.
    pub sys_seconds: f64,
    /// Runnable and waiting for a CPU.
    pub wait_seconds: f64,
}

impl Used {
    /// Seconds on a CPU.
    pub fn cpu_seconds(&self) -> f64 {
        self.usr_seconds + self.sys_seconds
    }
}

impl ThreadTimes {
    /// The times since an earlier reading. The nanoseconds are split in the ratio of the ticks.
    /// Without any tick they count as system time, because kernel threads have no other.
    pub fn since(&self, before: &Self) -> Used {
        let usr = self.usr_ticks.saturating_sub(before.usr_ticks) as f64;
        let sys = self.sys_ticks.saturating_sub(before.sys_ticks) as f64;
        let wait_seconds = self.wait_ns.saturating_sub(before.wait_ns) as f64 / 1e9;
        if !self.precise {
            let (usr_seconds, sys_seconds) = (usr / TICKS_PER_SECOND, sys / TICKS_PER_SECOND);
            return Used { usr_seconds, sys_seconds, wait_seconds };
        }
        let all = self.cpu_ns.saturating_sub(before.cpu_ns) as f64 / 1e9;
        let lifetime = (self.usr_ticks + self.sys_ticks) as f64;
        let share = match usr + sys {
            0.0 if lifetime > 0.0 => self.usr_ticks as f64 / lifetime,
            0.0 => 0.0,
            ticks => usr / ticks,
        };
        Used { usr_seconds: all * share, sys_seconds: all * (1.0 - share), wait_seconds }
    }

    /// Parses the bytes of /proc/PID/task/TID/stat and the text of its schedstat.
    pub fn parse(stat: &str, schedstat: &str) -> Option<Self> {
        let stat = Stat::parse(stat.as_bytes())?;
        let (usr_ticks, sys_ticks) = (stat.user_ticks()?, stat.system_ticks()?);
        let start_ticks = stat.start_ticks()?;
        let mut numbers = schedstat.split_ascii_whitespace().map_while(|word| word.parse().ok());
        let times = (numbers.next(), numbers.next());
        let (cpu_ns, wait_ns): (u64, u64) = (times.0.unwrap_or(0), times.1.unwrap_or(0));
        let precise = times.1.is_some();
        let tid = stat.number()?;
        let name = String::from_utf8_lossy(stat.name).into_owned();
        Some(Self { tid, name, start_ticks, usr_ticks, sys_ticks, cpu_ns, wait_ns, precise })
    }
}

/// Reads the times of threads, with reused buffers.
#[derive(Debug, Default)]
pub struct Reader {
    stat: String,
    schedstat: String,
}

impl Reader {
    /// Passes the threads to `each`, up to a limit. Returns whether there were more.
    pub fn threads(&mut self, max: usize, each: &mut dyn FnMut(ThreadTimes)) -> bool {
        let mut left = max;
        names("/proc").any(|process| self.some(process, &mut left, each))
    }

    /// The numbers of all processes.
    pub fn processes() -> impl Iterator<Item = i32> {
        names("/proc")
    }

    /// The start of a process and the ticks of its threads, including ended ones. It reads one
    /// file, however many threads the process has. `None` if it has ended.
    pub fn whole(&mut self, process: i32) -> Option<Whole> {
        if !read(&format!("/proc/{process}/stat"), &mut self.stat) {
            return None;
        }
        let ThreadTimes { start_ticks, usr_ticks, sys_ticks, .. } =
            ThreadTimes::parse(&self.stat, "")?;
        Some(Whole { start_ticks, used_ticks: usr_ticks.saturating_add(sys_ticks) })
    }

    /// Passes every thread of one process to `each`.
    pub fn process(&mut self, process: i32, each: &mut dyn FnMut(ThreadTimes)) {
        let mut all = usize::MAX;
        self.some(process, &mut all, each);
    }

    /// Passes threads of a process to `each` until the limit. Returns whether there were more.
    fn some(&mut self, process: i32, left: &mut usize, each: &mut dyn FnMut(ThreadTimes)) -> bool {
        for thread in names(&format!("/proc/{process}/task")) {
            if *left == 0 {
                return true;
            }
            *left -= 1;
            let place = format!("/proc/{process}/task/{thread}");
            // The thread may have ended in the meantime.
            if !read(&format!("{place}/stat"), &mut self.stat) {
                continue;
            }
            if !read(&format!("{place}/schedstat"), &mut self.schedstat) {
                self.schedstat.clear();
            }
            if let Some(times) = ThreadTimes::parse(&self.stat, &self.schedstat) {
                each(times);
            }
        }
        false
    }
}

fn names(directory: &str) -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn read(path: &str, into: &mut String) -> bool {
    into.clear();
    // The kernel returns such a file, of some hundred bytes, in one piece. Reading until its end
    // would cost another call for each of thousands of files.
    let mut bytes = [0; 4096];
    let done = std::fs::File::open(path).and_then(|mut file| file.read(&mut bytes));
    let Ok(length @ 1..) = done else { return false };
    into.push_str(&String::from_utf8_lossy(&bytes[..length]));
    true
}

/// CPU seconds that this process has used.
pub(super) fn own_seconds() -> f64 {
    let mut text = String::new();
    if !read("/proc/thread-self/schedstat", &mut text) {
        return 0.0;
    }
    let first = text.split_ascii_whitespace().next().and_then(|word| word.parse::<f64>().ok());
    first.unwrap_or(0.0) / 1e9
}

/// Waits; a signal ends the wait.
pub(super) fn pause(time: Duration) {
    let timeout = rustix::event::Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(1),
        tv_nsec: i64::from(time.subsec_nanos()),
    };
    // An interrupted wait is intended, and a wait without descriptors has no other error.
    let _ = rustix::event::poll(&mut [], Some(&timeout));
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str =
        "317 (z_rd ) (int) S 2 0 0 0 -1 2129984 0 0 0 0 30 70 0 0 0 -20 1 0 4242 0 0";

    #[test]
    fn threads_with_any_name_are_read() {
        let times = ThreadTimes::parse(STAT, "1000000000 500000000 7\n").unwrap();
        assert_eq!((times.tid, times.name.as_str(), times.start_ticks), (317, "z_rd ) (int", 4242));
        let used = times.since(&ThreadTimes::default());
        assert!((used.usr_seconds - 0.3).abs() < 1e-9 && (used.sys_seconds - 0.7).abs() < 1e-9);
        assert!((used.wait_seconds - 0.5).abs() < 1e-9);
        let coarse = ThreadTimes::parse(STAT, "").unwrap();
        assert!(!coarse.precise && coarse.since(&ThreadTimes::default()).cpu_seconds() == 1.0);
        assert_eq!(ThreadTimes::parse("nonsense", ""), None);
    }

    #[test]
    fn a_process_has_the_sum_of_its_threads() {
        let mut reader = Reader::default();
        let own = i32::try_from(std::process::id()).unwrap();
        let whole = reader.whole(own).unwrap();
        let mut began = None;
        reader.process(own, &mut |times| {
            if times.tid == own {
                began = Some(times.start_ticks);
            }
        });
        assert_eq!(began, Some(whole.start_ticks));
        assert!(Reader::processes().any(|process| process == own));
        assert_eq!(reader.whole(-1), None);
    }

    #[test]
    fn counters_of_cpus_that_go_back_add_nothing() {
        let before = Snapshot::parse(
            "cpu 10 0 10 100 50 0 0 0 0 0\ncpu0 10 0 10 100 50 0 0 0\nprocesses 7\n",
        );
        let after = Snapshot::parse(
            "cpu 20 0 30 150 40 0 0 20 0 0\ncpu0 20 0 30 150 40 0 0 20\nprocesses 9\n",
        );
        let used = after.total.since(&before.total).percent(None);
        assert_eq!(
            (used.usr, used.sys, used.idle, used.iowait, used.steal),
            (10.0, 20.0, 50.0, 0.0, 20.0)
        );
        assert_eq!(after.cpus[&0].since(&before.cpus[&0]).busy_seconds(), 0.3);
        assert_eq!(after.started, 9);
    }
}
