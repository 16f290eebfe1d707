//! CPU by role of threads, of the whole host and of one mount's daemon.
//!
//! Reading every thread of a large host each second would cost too much. So a look reads only the
//! threads of processes that have used CPU. The next look waits until they cost less than a
//! thousandth of a CPU; until then, steps repeat the figures of the last look. A daemon has few
//! threads, so each step reads them.
//!
//! Programs choose the names of threads. So the number of series is bounded, and the series `other`
//! takes the rest.

use std::time::{Duration, Instant};

use hashbrown::{HashMap, HashSet};
use ogive_profile::roles::Roles;
use ogive_profile::threads::{Reader, ThreadTimes, Whole};

use super::Step;

/// Threads that a look reads at most.
const THREADS_MAX: usize = 50_000;
/// The pause between two looks at the host, in multiples of the last one's cost: a thousandth of a
/// CPU.
const PAUSE_FACTOR: u32 = 1000;
/// Roles of the host that get a series at most.
const ROLES_MAX: usize = 40;
/// Names whose role is cached.
const NAMES_MAX: usize = 4096;
/// A role gets a series of its own from so many percent of a CPU in one look on.
const NAMED_PERCENT_MIN: f64 = 0.5;

type Seen = HashMap<(i32, u64), ThreadTimes>;

/// A process at the last look.
#[derive(Debug)]
struct Process {
    whole: Whole,
    threads: Seen,
    /// The number of that look.
    look: u64,
}

/// Threads of the host.
pub(super) struct HostRoles {
    roles: Roles,
    reader: Reader,
    groups: HashMap<String, String>,
    named: HashSet<String>,
    /// By process number.
    seen: HashMap<i32, Process>,
    /// The number of looks, and the time of the last one.
    looks: (u64, Option<Instant>),
    due: Instant,
    last: Vec<(String, f64)>,
}

impl std::fmt::Debug for HostRoles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostRoles").field("named", &self.named).finish_non_exhaustive()
    }
}

impl HostRoles {
    pub(super) fn new() -> Self {
        Self {
            roles: Roles::bundled(),
            reader: Reader::default(),
            groups: HashMap::new(),
            named: HashSet::new(),
            seen: HashMap::new(),
            looks: (0, None),
            due: Instant::now(),
            last: Vec::new(),
        }
    }

    pub(super) fn forget(&mut self) {
        self.seen.clear();
        self.looks.1 = None;
        self.last.clear();
        self.due = Instant::now();
    }

    /// Looks again if it is due, and puts the figures of the last look.
    pub(super) fn step(&mut self, step: &mut Step) {
        let begun = Instant::now();
        if begun >= self.due {
            let before = cpu_time();
            self.look(begun);
            // One look gives no rates: the second one comes soon, whatever it costs.
            let is_first = self.last.is_empty();
            let pause = if is_first {
                Duration::ZERO
            } else {
                cpu_time().saturating_sub(before) * PAUSE_FACTOR
            };
            // At least a little less than a step, so that each step can have a cheap look.
            self.due = begun + pause.clamp(Duration::from_millis(900), Duration::from_secs(60));
        }
        for (role, percent) in &self.last {
            step.put("host", &format!("role.{role}"), *percent);
        }
    }

    /// Reads the threads of processes that have used a tick, ten milliseconds, since the last look.
    /// One file of a process shows that; most have not. Less than a tick counts with the next one.
    fn look(&mut self, now: Instant) {
        let before = self.looks.1.replace(now);
        self.looks.0 += 1;
        let look = self.looks.0;
        let mut used: Vec<(String, f64)> = Vec::new();
        let mut left = THREADS_MAX;
        for process in Reader::processes() {
            let Some(whole) = self.reader.whole(process) else { continue };
            let known = self.seen.get_mut(&process);
            let mut known = known.filter(|known| known.whole.start_ticks == whole.start_ticks);
            if let Some(known) = &mut known {
                known.look = look;
                if known.whole == whole {
                    left = left.saturating_sub(known.threads.len());
                    continue;
                }
            }
            let mut threads = Seen::new();
            let earlier = known.map(|known| &known.threads);
            self.reader.process(process, &mut |times| {
                let key = (times.tid, times.start_ticks);
                let from = earlier.and_then(|earlier| earlier.get(&key));
                let since = from
                    .map_or_else(|| times.since(&ThreadTimes::default()), |from| times.since(from));
                if since.cpu_seconds() > 0.0 {
                    used.push((times.name.clone(), since.cpu_seconds()));
                }
                threads.insert(key, times);
            });
            left = left.saturating_sub(threads.len());
            self.seen.insert(process, Process { whole, threads, look });
            if left == 0 {
                break;
            }
        }
        self.seen.retain(|_, known| known.look == look);
        // One look gives no rates.
        if let Some(before) = before {
            let seconds = now.saturating_duration_since(before).as_secs_f64().max(1e-3);
            self.add_up(&used, seconds);
        }
    }

    /// Adds up the CPU of threads by role.
    fn add_up(&mut self, used: &[(String, f64)], seconds: f64) {
        let mut by_role: HashMap<&str, f64> = HashMap::new();
        if self.groups.len() > NAMES_MAX {
            self.groups.clear();
        }
        for (name, _) in used {
            if !self.groups.contains_key(name) {
                self.groups.insert(name.clone(), self.roles.group(name));
            }
        }
        for (name, used) in used {
            let role = self.groups.get(name).map_or("other", String::as_str);
            *by_role.entry(role).or_default() += used / seconds * 100.0;
        }
        self.last = named(by_role, &mut self.named);
    }
}

/// CPU that this thread has used. On a busy host a look takes longer than it costs.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The roles with a series of their own, and the sum of the others.
fn named(by_role: HashMap<&str, f64>, known: &mut HashSet<String>) -> Vec<(String, f64)> {
    let mut other = 0.0;
    let mut found: HashMap<String, f64> = known.iter().map(|role| (role.clone(), 0.0)).collect();
    let mut largest_first: Vec<_> = by_role.into_iter().collect();
    largest_first.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    for (role, percent) in largest_first {
        let has_name = known.contains(role);
        if !has_name && (percent < NAMED_PERCENT_MIN || known.len() >= ROLES_MAX) {
            other += percent;
            continue;
        }
        if !has_name {
            known.insert(role.to_owned());
        }
        found.insert(role.to_owned(), percent);
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found.push(("other".to_owned(), other));
    found
}

/// Threads of one daemon.
#[derive(Debug, Default)]
pub(super) struct DaemonRoles {
    reader: Reader,
    seen: Option<(Seen, Instant)>,
}

impl DaemonRoles {
    pub(super) fn forget(&mut self) {
        self.seen = None;
    }

    /// Puts the CPU of a daemon's threads by their kind, in percent of one CPU.
    pub(super) fn step(&mut self, source: &str, process: i32, step: &mut Step) {
        let now = Instant::now();
        let mut seen = Seen::new();
        self.reader.process(process, &mut |times| {
            seen.insert((times.tid, times.start_ticks), times);
        });
        if let Some((before, at)) = &self.seen {
            let seconds = now.saturating_duration_since(*at).as_secs_f64().max(1e-3);
            let mut by_kind: HashMap<&str, f64> = HashMap::new();
            let mut all = 0.0;
            for (key, times) in &seen {
                let from = before.get(key).cloned().unwrap_or_default();
                let percent = times.since(&from).cpu_seconds() / seconds * 100.0;
                *by_kind.entry(kind(&times.name)).or_default() += percent;
                all += percent;
            }
            for (kind, percent) in by_kind {
                step.put(source, &format!("stage.{kind}"), percent);
            }
            step.put(source, "daemon_cpu", all);
        }
        self.seen = Some((seen, now));
    }
}

/// The stage of a read that a thread of a daemon serves, by its name (ARCHITECTURE.md, Threads).
fn kind(name: &str) -> &'static str {
    match name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-') {
        "fuse" | "fuse_uring" => "requests",
        "request" => "handed over",
        "origin_read" => "origin",
        "arc_reclaim" => "reclaim",
        "l" | "l2_read" => "L2 read",
        "l2_write" => "L2 write",
        _ => "rest",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_bounded_however_many_names_there_are() {
        let mut known = HashSet::new();
        let names: Vec<String> = (0..1000).map(|number| format!("<b>{number}</b>")).collect();
        for chunk in names.chunks(30) {
            let by_role = chunk.iter().map(|name| (name.as_str(), 2.0)).collect();
            let found = named(by_role, &mut known);
            assert!(found.len() <= ROLES_MAX + 1);
            assert!(
                (found.iter().map(|(_, percent)| percent).sum::<f64>() - 2.0 * chunk.len() as f64)
                    .abs()
                    < 1e-9
            );
        }
        assert_eq!(known.len(), ROLES_MAX);
    }

    #[test]
    fn stages_are_those_of_the_threads() {
        for (name, stage) in [
            ("fuse-3", "requests"),
            ("fuse_uring-0", "requests"),
            ("origin_read", "origin"),
            ("l2_write", "L2 write"),
            ("anything", "rest"),
        ] {
            assert_eq!(kind(name), stage, "{name}");
        }
    }

    #[test]
    fn a_busy_thread_of_this_host_is_seen() {
        let mut roles = HostRoles::new();
        roles.look(Instant::now());
        // By the clock of the thread: time in which it does not run does not count.
        let until = cpu_time() + Duration::from_millis(300);
        let mut sum = 0_u64;
        while cpu_time() < until {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        roles.look(Instant::now());
        assert!(roles.last.iter().map(|(_, percent)| percent).sum::<f64>() > 0.0);
    }
}
