//! CPU of threads.
//!
//! The same thread may have been shown by several tools, and by several pages of one; lists are
//! never added up, the one that shows most counts. Threads of a program count for it, once.
//!
//! A whole list shows everybody who uses CPU: who is not on it uses next to none. Rows that
//! somebody picked prove that a thread is there, never that another is not, and are no share of
//! anything.

use std::collections::BTreeMap;

use super::roster::Row;
use super::{Facts, Known, Owner, absent, is_zfs_thread};
use crate::evidence::Thread;

const NO_THREADS: &str = "CPU by thread (top -H -b -n 2)";
const NO_WHOLE: &str = "a whole list of threads, or the use of all CPUs (top -H -b -n 2)";

/// A list sorted by CPU that comes down to this, percent of one CPU, left nobody busy out.
const NEXT_TO_NOTHING: f64 = 1.0;
/// Fewer rows than this are rows that somebody picked.
const PICKED_ROWS: usize = 5;
/// A list that shows this part of what the CPUs did shows whoever matters.
const MOST_OF_ALL: f64 = 0.85;
/// Over a life that has quiet times only a busy thread comes to this, percent of one CPU.
const BUSY_FOR_LIFE: f64 = 20.0;

/// Somebody who uses CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Consumer {
    /// Name of the kernel thread, or of the process with all its threads where those are known.
    pub name: String,
    /// Percent of the machine's busy CPU; `None` where that is not known, as from a few picked
    /// rows.
    pub share_percent: Option<f64>,
    /// Percent of one CPU, where a list of threads says so.
    pub cpu_percent: Option<f64>,
    /// Whether it is one of ZFS's kernel threads.
    pub is_zfs: bool,
    /// Whether it is a kernel thread at all.
    pub is_kernel: bool,
    /// Its threads by name without numbers, where there is more than one name: with their percent
    /// of the busy CPU, or of one CPU where that is not known, best first.
    pub threads: Vec<(String, f64)>,
}

impl Consumer {
    /// Its CPU in words: `45%` of the busy CPU, or `98% of one CPU`.
    pub fn used(&self) -> String {
        match (self.share_percent, self.cpu_percent) {
            (Some(share), _) => format!("{share:.0}%"),
            (None, Some(percent)) => format!("{percent:.0}% of one CPU"),
            (None, None) => String::new(),
        }
    }

    /// What there is to order by: the share, or else the CPU.
    pub(crate) fn size(&self) -> f64 {
        self.share_percent.or(self.cpu_percent).unwrap_or(0.0)
    }
}

impl Facts {
    /// Whether a list shows everybody who uses CPU: it comes down to those that use next to none
    /// and was not filtered for ZFS's threads, or it adds up to what the CPUs did.
    fn is_whole(&self, list: &[Row<'_>]) -> bool {
        let used = |row: &Row<'_>| row.thread.cpu_percent;
        let least = list.iter().filter_map(used).fold(f64::MAX, f64::min);
        // `grep` leaves one name, or ZFS's threads alone.
        let first = list.first().map_or("", |row| row.thread.name.as_str());
        let mixed = list.iter().any(|row| !is_zfs_thread(&row.thread.name))
            && list.iter().any(|row| !row.thread.name.contains(first));
        if list.len() >= PICKED_ROWS && mixed && least <= NEXT_TO_NOTHING {
            return true;
        }
        let shown: f64 = list.iter().filter_map(used).sum();
        self.stated_percent_of_one_cpu().is_some_and(|stated| shown >= MOST_OF_ALL * stated)
    }

    /// The largest sum, over the lists of all inputs, of a figure of matching threads; the largest
    /// thread is cited.
    fn over_threads(
        &self,
        name: &str,
        figure: impl Fn(&Thread) -> Option<f64>,
        fold: impl Fn(f64, f64) -> f64,
        whole: impl Fn(&[Row<'_>]) -> bool,
        what: &str,
    ) -> Known<f64> {
        let matches = self.names_matching(&*self.selector(name)?);
        let mut best: Option<(f64, Option<&Thread>)> = None;
        for list in self.thread_lists(&figure) {
            let named = list.iter().any(|row| matches[row.name]);
            if !named && !whole(&list) {
                continue;
            }
            let mut total = 0.0;
            let mut largest: Option<&Thread> = None;
            for thread in list.iter().filter(|row| matches[row.name]).map(|row| row.thread) {
                let value = figure(thread).unwrap_or(0.0);
                total = fold(total, value);
                if largest.and_then(&figure).is_none_or(|known| known < value) {
                    largest = Some(thread);
                }
            }
            if best.as_ref().is_none_or(|(known, _)| *known < total) {
                best = Some((total, largest));
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
        let whole = |list: &[Row<'_>]| self.is_whole(list);
        let now = self.over_threads(name, cpu, |a, b| a + b, whole, NO_THREADS);
        if now.is_ok() { now } else { self.busy_for_life(name).unwrap_or(now) }
    }

    /// While presence is asked for: CPU of matching threads over their life, which proves that they
    /// are busy where it is much, and nothing where it is little.
    fn busy_for_life(&self, name: &str) -> Option<Known<f64>> {
        let pattern = self.selector(name).ok().filter(|_| self.asks_for_presence())?;
        let life = |thread: &Thread| thread.life_percent;
        let used = self.over_threads(name, life, |a, b| a + b, |_| false, NO_THREADS).ok()?;
        if used < BUSY_FOR_LIFE {
            return None;
        }
        let mut names = self.evidence().threads.iter().filter(|thread| life(thread).is_some());
        let found = names.find(|thread| pattern.is_match(&thread.name))?;
        self.is_present(format!("{} with {used:.0}% of a CPU over its life", found.name));
        Some(Ok(used))
    }

    /// While presence is asked for: the CPU over its life of the busiest matching thread, of the
    /// kernel or of programs, if it is much.
    fn busiest_life(&self, name: &str, kernel: bool) -> Option<Known<f64>> {
        let pattern = self.selector(name).ok().filter(|_| self.asks_for_presence())?;
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
        self.is_present(format!("{} with {used:.0}% of a CPU over its life", found.name));
        Some(Ok(used))
    }

    /// CPU of the busiest matching thread, percent of one CPU.
    pub fn thread_max(&self, name: &str) -> Known<f64> {
        let whole = |list: &[Row<'_>]| self.is_whole(list);
        let now = self.over_threads(name, cpu, f64::max, whole, NO_THREADS);
        if now.is_ok() { now } else { self.busiest_life(name, true).unwrap_or(now) }
    }

    /// CPU of the busiest matching thread over its life (`ps`), percent of one CPU.
    pub fn thread_life(&self, name: &str) -> Known<f64> {
        self.over_threads(
            name,
            |thread| thread.life_percent,
            f64::max,
            |list| list.len() > PICKED_ROWS,
            "CPU of processes over their life (ps aux)",
        )
    }

    /// CPU time of the matching threads over their life, seconds.
    pub fn thread_time_s(&self, name: &str) -> Known<f64> {
        self.over_threads(
            name,
            |thread| thread.cpu_time_s,
            |a, b| a + b,
            |list| list.len() > PICKED_ROWS,
            "CPU times of threads (ps -eL)",
        )
    }

    /// Whether the lists are of containers: they can show no thread of the kernel.
    pub fn lists_containers(&self) -> bool {
        const LISTS: [&str; 3] = ["kubectl top", "docker stats", "systemd-cgtop"];
        let inputs = &self.evidence().inputs;
        inputs.iter().any(|one| one.formats.iter().any(|name| LISTS.contains(&name.as_str())))
    }

    /// How many threads match.
    pub fn thread_count(&self, name: &str) -> Known<f64> {
        #[expect(clippy::cast_precision_loss, reason = "threads are countable")]
        let counted = |thread: &Thread| Some(thread.count as f64);
        self.over_threads(name, counted, |a, b| a + b, |_| true, "a list of threads (ps -eLf)")
    }

    /// How many matching threads use at least so many percent of one CPU.
    pub fn thread_busy_count(&self, name: &str, percent: f64) -> Known<f64> {
        let busy =
            |thread: &Thread| thread.cpu_percent.map(|cpu| if cpu >= percent { 1.0 } else { 0.0 });
        self.over_threads(name, busy, |a, b| a + b, |list| self.is_whole(list), NO_THREADS)
    }

    /// How many matching threads are in a state (`D`).
    pub fn thread_in_state(&self, name: &str, state: &str) -> Known<f64> {
        #[expect(clippy::cast_precision_loss, reason = "threads are countable")]
        let counted = |thread: &Thread| {
            thread.state.map(|known| if state.contains(known) { thread.count as f64 } else { 0.0 })
        };
        let what = "states of threads (ps -eLo stat,comm)";
        self.over_threads(name, counted, |a, b| a + b, |_| true, what)
    }

    /// Whether some process's command line matches.
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

    /// All busy CPU, in percent of one CPU: what a whole list of threads shows, or what the states
    /// of the CPUs say if that is more.
    fn busy_percent_of_one_cpu(&self) -> Known<f64> {
        let whole = self.thread_lists(cpu).iter().any(|list| self.is_whole(list));
        let shown = self.thread_cpu("").unwrap_or(0.0);
        match self.stated_percent_of_one_cpu() {
            Some(stated) => Ok(shown.max(stated)),
            None if whole => Ok(shown),
            None => absent(NO_WHOLE),
        }
    }

    /// Share of the busy CPU that is ZFS's, percent: kernel threads of its own and its functions
    /// below others.
    pub fn zfs_share(&self) -> Known<f64> {
        if let Ok(share) = self.profiled_zfs_share() {
            return Ok(share);
        }
        self.listed_share(|user| user.is_zfs)
    }

    /// Share of the busy CPU, by a list of threads, of those that match. Picked rows give a share
    /// of whom they show; that they show nobody is no answer.
    fn listed_share(&self, matches: impl Fn(&Consumer) -> bool) -> Known<f64> {
        self.busy_percent_of_one_cpu()?;
        let users = self.listed_consumers();
        // The sum of nothing is -0.
        let own = users.iter().filter(|user| matches(user)).filter_map(|user| user.share_percent);
        let own = own.sum::<f64>().abs();
        let whole = self.fullest_list().is_some_and(|list| self.is_whole(&list));
        if whole || own > 0.0 { Ok(own) } else { absent(NO_WHOLE) }
    }

    /// Share of the busy CPU in user processes, percent, without their time inside ZFS.
    pub fn process_share(&self) -> Known<f64> {
        if let Ok(share) = self.profiled_process_share() {
            return Ok(share);
        }
        self.listed_share(|user| !user.is_kernel)
    }

    /// Who uses the CPU, best first: by profile, else by threads. Threads of a program are one
    /// user.
    pub fn consumers(&self) -> Vec<Consumer> {
        let profiled = self.profiled_consumers();
        if profiled.is_empty() { self.listed_consumers() } else { profiled }
    }

    /// Who has the busy samples, best first, where stacks name threads.
    pub(super) fn profiled_consumers(&self) -> Vec<Consumer> {
        shares_of(self.profiled_threads().into_iter().map(|(process, thread, share_percent)| {
            let owner = self.owner(&thread);
            (process, thread, share_percent, owner)
        }))
    }

    /// What ZFS has of the busy CPU, by the same view as [`Facts::consumers`].
    pub fn zfs_share_beside_consumers(&self) -> Option<f64> {
        if self.profiled_threads().is_empty() && !self.listed_consumers().is_empty() {
            return self.listed_share(|user| user.is_zfs).ok();
        }
        self.zfs_share().ok()
    }

    fn listed_consumers(&self) -> Vec<Consumer> {
        let Some(list) = self.fullest_list() else { return Vec::new() };
        let processes: BTreeMap<u64, &str> = list
            .iter()
            .filter_map(|row| Some((row.thread.id?, row.thread.name.as_str())))
            .collect();
        let rows = list.iter().map(|row| row.thread).map(|thread| {
            let process = thread.process.and_then(|process| processes.get(&process).copied());
            let process = process.unwrap_or(&thread.name).to_owned();
            let percent = thread.cpu_percent.unwrap_or(0.0);
            (process, thread.name.clone(), percent, self.owner_of(thread))
        });
        let mut users = users(rows);
        let all = self.busy_percent_of_one_cpu().ok().filter(|all| *all > 0.0);
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

    /// The list that shows most of the CPU; of those that show about as much, the one with the most
    /// rows, which has threads where others have processes.
    fn fullest_list(&self) -> Option<Vec<Row<'_>>> {
        let lists = self.thread_lists(cpu);
        let sum =
            |list: &Vec<Row<'_>>| list.iter().filter_map(|row| row.thread.cpu_percent).sum::<f64>();
        let most = lists.iter().map(sum).fold(0.0, f64::max);
        lists.into_iter().filter(|list| sum(list) >= 0.8 * most).max_by_key(Vec::len)
    }

    /// The user process (no kernel thread) that uses most.
    pub fn top_process(&self) -> Known<Consumer> {
        match self.consumers().into_iter().find(|user| !user.is_kernel) {
            Some(user) => Ok(user),
            None => absent(NO_THREADS),
        }
    }

    /// Percent of the machine's busy CPU that it uses.
    pub fn top_process_share(&self) -> Known<f64> {
        self.top_process()?.share_percent.map_or_else(|| absent(NO_WHOLE), Ok)
    }

    /// Percent of one CPU that it uses, which picked rows and sentences tell as well; not known
    /// where a thread of the kernel uses more.
    pub fn top_process_cpu(&self) -> Known<f64> {
        let users = self.listed_consumers();
        let Some(top) = users.into_iter().find(|user| user.cpu_percent.is_some()) else {
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

    /// The thread that uses most.
    pub fn top_thread(&self) -> Known<Consumer> {
        match self.consumers().into_iter().next() {
            Some(user) => Ok(user),
            None => absent(NO_THREADS),
        }
    }
}

fn cpu(thread: &Thread) -> Option<f64> {
    thread.cpu_percent
}

/// Users of samples, by rows of process, thread, percent of the samples and whose it is.
pub(super) fn shares_of(rows: impl Iterator<Item = (String, String, f64, Owner)>) -> Vec<Consumer> {
    let mut users = users(rows);
    for user in &mut users {
        user.share_percent = user.cpu_percent.take();
    }
    users
}

/// Adds up rows of process, thread, percent and whose it is.
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

/// A thread's name without the number that tells it from its like: `fuser-3`, `opt cgu.07`.
pub(crate) fn without_number(name: &str) -> &str {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let plain = plain.trim_end_matches(['-', '_', '/', '.', ':', '#', ' ']);
    if plain.is_empty() { name } else { plain }
}
