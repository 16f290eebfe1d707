//! CPU of threads.
//!
//! Several tools, or several pages of one tool, may show the same thread. Lists are never added up;
//! the list that shows most counts. The threads of a program count for it once. The lists are
//! evaluated once ([`Listed`]).
//!
//! A whole list shows every thread that uses CPU: a thread that is not in it uses almost none. An
//! excerpt proves that a thread is there. It never proves that a thread is absent, and it has no
//! shares.

use std::collections::BTreeMap;

use super::thread_lists::List;
use super::{Facts, Fallback, Known, Owner, absent};
use crate::evidence::{Source, Thread};

const NO_THREADS: &str = "CPU by thread (top -H -b -n 2)";
const NO_WHOLE: &str = "a whole list of threads, or the use of all CPUs (top -H -b -n 2)";

/// A list sorted by CPU whose last row is below this, percent of one CPU, shows every busy thread.
const NEXT_TO_NOTHING: f64 = 1.0;
/// A list with fewer rows than this is an excerpt.
const PICKED_ROWS: usize = 5;
/// A list that shows this part of the busy CPU shows every user that matters.
const MOST_OF_ALL: f64 = 0.85;
/// Only a busy thread reaches this over its whole life, percent of one CPU.
const BUSY_FOR_LIFE: f64 = 20.0;

/// A user of the CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Consumer {
    /// Name of the kernel thread, or of the process with all its threads where known.
    pub name: String,
    /// Percent of the machine's busy CPU; `None` where unknown, as from a few picked rows.
    pub share_percent: Option<f64>,
    /// Percent of one CPU, where a list of threads has it.
    pub cpu_percent: Option<f64>,
    /// Whether it is one of ZFS's kernel threads.
    pub is_zfs: bool,
    /// Whether it is a kernel thread.
    pub is_kernel: bool,
    /// Its threads by name without numbers, where there are several names, largest first. Their
    /// percent is of the busy CPU, or of one CPU where the busy CPU is unknown.
    pub threads: Vec<(String, f64)>,
}

impl Consumer {
    /// Its CPU as text: `45%` of the busy CPU, or `98% of one CPU`.
    pub fn used(&self) -> String {
        match (self.share_percent, self.cpu_percent) {
            (Some(share), _) => format!("{share:.0}%"),
            (None, Some(percent)) => format!("{percent:.0}% of one CPU"),
            (None, None) => String::new(),
        }
    }

    /// The key of its order: the share, otherwise the CPU.
    pub(crate) fn size(&self) -> f64 {
        self.share_percent.or(self.cpu_percent).unwrap_or(0.0)
    }
}

/// The CPU that the lists of threads show.
#[derive(Debug)]
pub(super) struct Listed {
    /// For each list, whether it shows every user of the CPU.
    is_whole: Vec<bool>,
    /// The same for the list that shows most.
    fullest_is_whole: bool,
    /// All busy CPU, percent of one CPU, where known.
    busy: Option<f64>,
    /// The source of the largest thread.
    largest: Option<Source>,
    /// Its users by the list that shows most, largest first.
    consumers: Vec<Consumer>,
}

impl Facts {
    /// Whether a list shows every user of the CPU. Its last rows use almost none and no filter left
    /// ZFS's threads alone, or it adds up to the busy CPU.
    fn shows_all(&self, list: &[&Thread]) -> bool {
        let least = list.iter().copied().filter_map(cpu).fold(f64::MAX, f64::min);
        // `grep` leaves one name, or ZFS's threads alone.
        let Some(first) = list.first() else { return false };
        if list.len() >= PICKED_ROWS
            && least <= NEXT_TO_NOTHING
            && list.iter().any(|thread| !thread.name.contains(&first.name))
            && list.iter().any(|thread| self.owner_of(thread) != Owner::Zfs)
        {
            return true;
        }
        let shown: f64 = list.iter().copied().filter_map(cpu).sum();
        self.stated_percent_of_one_cpu().is_some_and(|stated| shown >= MOST_OF_ALL * stated)
    }

    /// The CPU that the lists show, computed once.
    fn listed(&self) -> &Listed {
        self.listed.get_or_init(|| {
            let lists: Vec<_> = self.lists().iter().map(|list| self.rows(list, cpu)).collect();
            let is_whole: Vec<bool> = lists.iter().map(|list| self.shows_all(list)).collect();
            let sum = |list: &[&Thread]| list.iter().copied().filter_map(cpu).sum::<f64>();
            let sums: Vec<f64> = lists.iter().map(|list| sum(list)).collect();
            let most = sums.iter().copied().fold(0.0, f64::max);
            // Of the lists that show about as much, take the one with the most rows: it has threads
            // where others have processes.
            let shows = |at: &usize| !lists[*at].is_empty() && sums[*at] >= 0.8 * most;
            let fullest = (0..lists.len()).filter(shows).max_by_key(|at| lists[*at].len());
            let shown = lists.iter().any(|list| !list.is_empty()).then_some(most);
            let busy = match self.stated_percent_of_one_cpu() {
                Some(stated) => Some(shown.unwrap_or(0.0).max(stated)),
                None => shown.filter(|_| is_whole.contains(&true)),
            };
            // Cite the largest thread, because the sum depends on it; the first of equal ones.
            let largest = sums.iter().position(|sum| *sum == most).and_then(|at| {
                let threads = lists[at].iter().rev();
                threads.max_by(|a, b| cpu(a).unwrap_or(0.0).total_cmp(&cpu(b).unwrap_or(0.0)))
            });
            let largest = largest.map(|thread| thread.source.clone());
            let fullest_is_whole = fullest.is_some_and(|at| is_whole[at]);
            let fullest = fullest.map(|at| lists[at].as_slice()).unwrap_or_default();
            let consumers = self.consumers_of(fullest, busy.filter(|all| *all > 0.0));
            Listed { is_whole, fullest_is_whole, busy, largest, consumers }
        })
    }

    /// Whether a list shows every user of the CPU.
    fn is_whole(&self, list: usize) -> bool {
        self.listed().is_whole[list]
    }

    /// The largest sum, over the lists of all inputs, of a figure of matching threads; it cites the
    /// largest thread. Only a whole list proves that there is no such thread.
    fn over_threads(
        &self,
        name: &str,
        figure: impl Fn(&Thread) -> Option<f64>,
        fold: impl Fn(f64, f64) -> f64,
        whole: impl Fn(usize, &List) -> bool,
        what: &str,
    ) -> Known<f64> {
        let matches = self.names_matching(&*self.selector(name)?);
        let mut best: Option<(f64, Option<&Thread>)> = None;
        for (at, list) in self.lists().iter().enumerate() {
            let mut total = 0.0;
            let mut largest: Option<(f64, usize, &Thread)> = None;
            for (place, thread) in self.meant(list, &matches) {
                let Some(value) = figure(thread) else { continue };
                total = fold(total, value);
                // Of equal threads the first.
                let is_larger = |(known, first, _): (f64, usize, _)| {
                    known < value || (known == value && place < first)
                };
                if largest.is_none_or(is_larger) {
                    largest = Some((value, place, thread));
                }
            }
            if largest.is_none() && !whole(at, list) {
                continue;
            }
            if best.as_ref().is_none_or(|(known, _)| *known < total) {
                best = Some((total, largest.map(|(_, _, thread)| thread)));
            }
        }
        match best {
            Some((total, largest)) => {
                if let Some(thread) = largest {
                    self.used(&thread.source);
                }
                Ok(total)
            }
            None => absent(what),
        }
    }

    /// Sum of the CPU of matching threads, percent of one CPU.
    pub fn thread_cpu(&self, name: &str) -> Known<f64> {
        let whole = |at: usize, _: &List| self.is_whole(at);
        let now = self.over_threads(name, cpu, |a, b| a + b, whole, NO_THREADS);
        if now.is_ok() { now } else { self.busy_for_life(name).unwrap_or(now) }
    }

    /// With the fallback to presence: CPU of matching threads over their life. A high figure proves
    /// that they are busy; a low one proves nothing.
    fn busy_for_life(&self, name: &str) -> Option<Known<f64>> {
        let pattern =
            self.selector(name).ok().filter(|_| self.falls_back_to(Fallback::Presence))?;
        let life = |thread: &Thread| thread.life_percent;
        let used = self.over_threads(name, life, |a, b| a + b, |_, _| false, NO_THREADS).ok()?;
        if used < BUSY_FOR_LIFE {
            return None;
        }
        let mut names = self.evidence().threads.iter().filter(|thread| life(thread).is_some());
        let found = names.find(|thread| pattern.is_match(&thread.name))?;
        self.found(format!("{} with {used:.0}% of a CPU over its life", found.name));
        Some(Ok(used))
    }

    /// With the fallback to presence: CPU over its life of the busiest matching thread, of the
    /// kernel or of programs, if it is high.
    fn busiest_life(&self, name: &str, kernel: bool) -> Option<Known<f64>> {
        let pattern =
            self.selector(name).ok().filter(|_| self.falls_back_to(Fallback::Presence))?;
        let is_one = |thread: &&Thread| {
            (self.owner_of(thread) != Owner::Program) == kernel && pattern.is_match(&thread.name)
        };
        let life = |thread: &Thread| thread.life_percent.unwrap_or(0.0);
        let matching = self.evidence().threads.iter().filter(is_one);
        let found = matching.max_by(|a, b| life(a).total_cmp(&life(b)))?;
        let used = life(found);
        if used < BUSY_FOR_LIFE {
            return None;
        }
        self.used(&found.source);
        self.found(format!("{} with {used:.0}% of a CPU over its life", found.name));
        Some(Ok(used))
    }

    /// CPU of the busiest matching thread, percent of one CPU.
    pub fn thread_max(&self, name: &str) -> Known<f64> {
        let whole = |at: usize, _: &List| self.is_whole(at);
        let now = self.over_threads(name, cpu, f64::max, whole, NO_THREADS);
        if now.is_ok() { now } else { self.busiest_life(name, true).unwrap_or(now) }
    }

    /// CPU of the busiest matching thread over its life (`ps`), percent of one CPU.
    pub fn thread_life(&self, name: &str) -> Known<f64> {
        self.over_threads(
            name,
            |thread| thread.life_percent,
            f64::max,
            |_, list| self.rows(list, |thread| thread.life_percent).len() > PICKED_ROWS,
            "CPU of processes over their life (ps aux)",
        )
    }

    /// CPU time of the matching threads over their life, seconds.
    pub fn thread_time_s(&self, name: &str) -> Known<f64> {
        self.over_threads(
            name,
            |thread| thread.cpu_time_s,
            |a, b| a + b,
            |_, list| self.rows(list, |thread| thread.cpu_time_s).len() > PICKED_ROWS,
            "CPU times of threads (ps -eL)",
        )
    }

    /// Whether the lists are of containers, which show no kernel thread.
    pub fn lists_containers(&self) -> bool {
        const LISTS: [&str; 3] = ["kubectl top", "docker stats", "systemd-cgtop"];
        let inputs = &self.evidence().inputs;
        inputs.iter().any(|one| one.formats.iter().any(|name| LISTS.contains(&name.as_str())))
    }

    /// The number of matching threads.
    pub fn thread_count(&self, name: &str) -> Known<f64> {
        #[expect(clippy::cast_precision_loss, reason = "threads are countable")]
        let counted = |thread: &Thread| Some(thread.count as f64);
        self.over_threads(name, counted, |a, b| a + b, |_, _| true, "a list of threads (ps -eLf)")
    }

    /// The number of matching threads in a state (`D`).
    pub fn thread_in_state(&self, name: &str, state: &str) -> Known<f64> {
        #[expect(clippy::cast_precision_loss, reason = "threads are countable")]
        let counted = |thread: &Thread| {
            thread.state.map(|known| if state.contains(known) { thread.count as f64 } else { 0.0 })
        };
        let what = "states of threads (ps -eLo stat,comm)";
        let whole = |_: usize, list: &List| !self.rows(list, counted).is_empty();
        self.over_threads(name, counted, |a, b| a + b, whole, what)
    }

    /// Whether the command line of a process matches.
    pub fn command(&self, pattern: &str) -> Known<bool> {
        let pattern = self.pattern(pattern)?;
        if self.evidence().threads.is_empty() {
            return absent("a list of processes (ps auxww)");
        }
        let hit = self.evidence().threads.iter().find(|thread| {
            thread.command.as_deref().is_some_and(|command| pattern.is_match(command))
                || pattern.is_match(&thread.name)
        });
        if let Some(thread) = hit {
            self.used(&thread.source);
        }
        Ok(hit.is_some())
    }

    /// Share of the busy CPU that matching threads use, percent: from a profile, else from a list
    /// of threads.
    pub fn comm_share(&self, name: &str) -> Known<f64> {
        if let Ok(share) = self.profiled_thread_share(name) {
            return Ok(share);
        }
        let own = self.thread_cpu(name)?;
        let all = self.busy_percent_of_one_cpu()?;
        if all <= 0.0 { absent(NO_THREADS) } else { Ok((own * 100.0 / all).min(100.0)) }
    }

    /// All busy CPU, percent of one CPU: the sum of a whole list of threads, or the states of the
    /// CPUs if they show more.
    fn busy_percent_of_one_cpu(&self) -> Known<f64> {
        let listed = self.listed();
        if let Some(source) = &listed.largest {
            self.used(source);
        }
        listed.busy.map_or_else(|| absent(NO_WHOLE), Ok)
    }

    /// Share of the busy CPU that ZFS uses, percent: its own kernel threads, and its functions
    /// below other threads.
    pub fn zfs_share(&self) -> Known<f64> {
        if let Ok(share) = self.profiled_zfs_share() {
            return Ok(share);
        }
        self.listed_share(|user| user.is_zfs)
    }

    /// Share of the busy CPU that matching threads of a list use. An excerpt gives the share of the
    /// threads that it shows; without any it gives no answer.
    fn listed_share(&self, matches: impl Fn(&Consumer) -> bool) -> Known<f64> {
        self.busy_percent_of_one_cpu()?;
        let listed = self.listed();
        // The sum of nothing is -0.
        let own = listed
            .consumers
            .iter()
            .filter(|user| matches(user))
            .filter_map(|user| user.share_percent);
        let own = own.sum::<f64>().abs();
        if listed.fullest_is_whole || own > 0.0 { Ok(own) } else { absent(NO_WHOLE) }
    }

    /// Share of the busy CPU in user processes, percent, without their time inside ZFS.
    pub fn process_share(&self) -> Known<f64> {
        if let Ok(share) = self.profiled_process_share() {
            return Ok(share);
        }
        self.listed_share(|user| !user.is_kernel)
    }

    /// The users of the CPU, largest first: by profile, else by threads. Threads of a program are
    /// one user.
    pub fn consumers(&self) -> &[Consumer] {
        let profiled = self.profiled_consumers();
        if profiled.is_empty() { &self.listed().consumers } else { profiled }
    }

    /// The users of the CPU by the best list of current use, largest first; empty without one.
    pub(crate) fn listed_consumers(&self) -> &[Consumer] {
        &self.listed().consumers
    }

    /// The users of the busy samples, largest first, if stacks name threads.
    pub(super) fn profiled_consumers(&self) -> &[Consumer] {
        self.profiled.get_or_init(|| {
            let rows = self.profiled_threads().into_iter();
            shares_of(rows.map(|(process, thread, share_percent)| {
                let owner = self.owner(&thread);
                (process, thread, share_percent, owner)
            }))
        })
    }

    /// The share of ZFS in the busy CPU, by the same view as [`Facts::consumers`].
    pub fn zfs_share_with_consumers(&self) -> Option<f64> {
        if self.profiled_consumers().is_empty() && !self.listed().consumers.is_empty() {
            return self.listed_share(|user| user.is_zfs).ok();
        }
        self.zfs_share().ok()
    }

    /// The users of the CPU by one list, largest first; `all` is the busy CPU, percent of one.
    fn consumers_of(&self, list: &[&Thread], all: Option<f64>) -> Vec<Consumer> {
        let processes: BTreeMap<u64, &str> =
            list.iter().filter_map(|thread| Some((thread.id?, thread.name.as_str()))).collect();
        let rows = list.iter().map(|thread| {
            let process = thread.process.and_then(|process| processes.get(&process).copied());
            let process = process.unwrap_or(&thread.name).to_owned();
            let percent = thread.cpu_percent.unwrap_or(0.0);
            (process, thread.name.clone(), percent, self.owner_of(thread))
        });
        let mut users = users(rows);
        if let Some(all) = all {
            for user in &mut users {
                user.share_percent = user.cpu_percent.map(|percent| percent * 100.0 / all);
                for (_, percent) in &mut user.threads {
                    *percent = *percent * 100.0 / all;
                }
            }
        }
        users
    }

    /// The user process (no kernel thread) that uses most.
    pub fn top_process(&self) -> Known<&Consumer> {
        match self.consumers().iter().find(|user| !user.is_kernel) {
            Some(user) => Ok(user),
            None => absent(NO_THREADS),
        }
    }

    /// Percent of the machine's busy CPU that it uses.
    pub fn top_process_share(&self) -> Known<f64> {
        self.top_process()?.share_percent.map_or_else(|| absent(NO_WHOLE), Ok)
    }

    /// Percent of one CPU that it uses; picked rows show it too. Unknown where a kernel thread uses
    /// more.
    pub fn top_process_cpu(&self) -> Known<f64> {
        let users = &self.listed().consumers;
        let Some(top) = users.iter().find(|user| user.cpu_percent.is_some()) else {
            let kernel = self.busiest_life("", true).and_then(Result::ok).unwrap_or(0.0);
            let own = self.busiest_life("", false).and_then(Result::ok);
            return own.filter(|own| *own > kernel).map_or_else(|| absent(NO_THREADS), Ok);
        };
        if top.is_kernel {
            return absent("a program that uses more CPU than the kernel's threads (top -b -n 2)");
        }
        let listed = |thread: &&Thread| thread.name == top.name && thread.cpu_percent.is_some();
        if let Some(thread) = self.evidence().threads.iter().find(listed) {
            self.used(&thread.source);
        }
        top.cpu_percent.map_or_else(|| absent(NO_THREADS), Ok)
    }
}

fn cpu(thread: &Thread) -> Option<f64> {
    thread.cpu_percent
}

/// Users of samples, by rows of process, thread, percent of the samples and owner.
pub(super) fn shares_of(rows: impl Iterator<Item = (String, String, f64, Owner)>) -> Vec<Consumer> {
    let mut users = users(rows);
    for user in &mut users {
        user.share_percent = user.cpu_percent.take();
    }
    users
}

/// Sums of rows of process, thread, percent and owner.
fn users(rows: impl Iterator<Item = (String, String, f64, Owner)>) -> Vec<Consumer> {
    type Sums = BTreeMap<String, (f64, Owner, BTreeMap<String, f64>)>;
    let mut sums = Sums::new();
    for (process, thread, percent, owner) in rows {
        let name = if owner == Owner::Program { process } else { thread.clone() };
        let entry = sums.entry(name).or_insert((0.0, owner, BTreeMap::new()));
        entry.0 += percent;
        *entry.2.entry(without_number(&thread).to_owned()).or_default() += percent;
    }
    let mut users: Vec<Consumer> = sums
        .into_iter()
        .map(|(name, (percent, owner, threads))| {
            let mut threads: Vec<(String, f64)> =
                if threads.len() > 1 { threads.into_iter().collect() } else { Vec::new() };
            threads.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            let cpu_percent = Some(percent);
            let (is_zfs, is_kernel) = (owner == Owner::Zfs, owner != Owner::Program);
            Consumer { is_zfs, name, share_percent: None, cpu_percent, is_kernel, threads }
        })
        .collect();
    users.sort_by(|a, b| b.size().total_cmp(&a.size()).then_with(|| a.name.cmp(&b.name)));
    users
}

/// A thread's name without the number that separates it from its like: `fuser-3`, `opt cgu.07`.
pub(crate) fn without_number(name: &str) -> &str {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let plain = plain.trim_end_matches(['-', '_', '/', '.', ':', '#', ' ']);
    if plain.is_empty() { name } else { plain }
}
