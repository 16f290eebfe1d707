//! The users of the CPU, by the list that shows most of it.
//!
//! A list of current use comes before a list of means over lives (`ps`). Lists are never added up.
//! Threads of one program, and workers of one kind, are one user.

use std::collections::BTreeMap;

use super::{Facts, Owner, without_number};
use crate::evidence::{Source, Thread};

/// The basis of the figures of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Percent of one CPU, during the measurement.
    Now,
    /// Percent of one CPU, as a mean over the life of each process.
    Life,
    /// Percent of all CPUs, whose number is unknown.
    Machine,
    /// Seconds of CPU since each process began. They name users, but not their current use.
    Seconds,
}

/// A figure of a row.
type Percent = fn(&Thread) -> Option<f64>;

/// One user of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedUser {
    /// The program, or the kind of kernel threads.
    pub name: String,
    /// Whether it belongs to the kernel.
    pub is_kernel: bool,
    /// Whether it is one of ZFS's threads.
    pub is_zfs: bool,
    /// Whether it stands for ended processes, of which only the parent is known.
    pub is_ended: bool,
    /// Percent, by the list's basis.
    pub percent: f64,
    /// Percent of one CPU that the busiest of its rows has.
    pub most: f64,
    /// The number of rows in the sum.
    pub rows: u64,
    /// Its part in the kernel, where the tool shows it separately.
    pub system: Option<f64>,
    /// Where its busiest row was read.
    pub source: Source,
}

/// A list as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Consumption {
    /// The basis of its figures.
    pub basis: Basis,
    /// Its users, largest first.
    pub users: Vec<ListedUser>,
    /// Sum of its figures.
    pub percent: f64,
    /// Whether its last row is too small to matter. A user that is not on the list uses no more
    /// than the last row.
    pub comes_down: bool,
    /// Whether its last row uses almost nothing. The list then shows every user of the CPU.
    pub ends: bool,
    /// Whether its last row is so small that every hidden user is small compared with the first.
    pub comes_near: bool,
    /// Whether it has kernel threads, so that it is not a list of programs alone.
    pub has_kernel: bool,
}

impl Consumption {
    /// Whether it shows current use.
    pub fn is_of_now(&self) -> bool {
        matches!(self.basis, Basis::Now | Basis::Machine)
    }
}

/// A last row below this part of the first is too small to matter.
const NO_MATTER: f64 = 0.1;
/// A row below this, percent of one CPU, uses almost nothing.
const NEXT_TO_NOTHING: f64 = 1.0;
/// A last row of this part of the first is far behind it.
const NEAR: f64 = 0.35;

impl Facts {
    /// The users of the CPU, by the list that shows most of it.
    pub fn consumption(&self) -> Option<Consumption> {
        let figures: [(Basis, Percent); 4] = [
            (Basis::Now, |thread| thread.cpu_percent),
            (Basis::Machine, |thread| thread.machine_percent),
            (Basis::Life, |thread| thread.life_percent),
            (Basis::Seconds, |thread| thread.cpu_time_s),
        ];
        figures.into_iter().find_map(|(basis, figure)| {
            let lists: Vec<_> = self.lists().iter().map(|list| self.rows(list, figure)).collect();
            let sum = |list: &Vec<&Thread>| list.iter().copied().filter_map(figure).sum::<f64>();
            let most = lists.iter().map(sum).fold(0.0, f64::max);
            // Of the lists that show about as much, take the one with the most rows.
            let shows = |list: &Vec<&Thread>| !list.is_empty() && sum(list) >= 0.8 * most;
            let fullest = lists.into_iter().filter(shows).max_by_key(Vec::len);
            fullest.map(|list| self.consumption_of(basis, &list, figure))
        })
    }
}

/// Whether a list has one name alone, as `grep` leaves it.
fn is_filtered(users: &[ListedUser]) -> bool {
    let Some(first) = users.first() else { return false };
    users.iter().all(|used| used.name.contains(first.name.as_str()))
}

/// The common name of several rows: `kworker` for workers, otherwise the name without its number.
fn kind_of(thread: &Thread, is_kernel: bool) -> &str {
    match thread.name.strip_prefix("kworker/") {
        Some(_) => "kworker",
        None if is_kernel => without_number(&thread.name),
        None => &thread.name,
    }
}

impl Facts {
    fn consumption_of(&self, basis: Basis, list: &[&Thread], figure: Percent) -> Consumption {
        let processes: BTreeMap<u64, &str> =
            list.iter().filter_map(|thread| Some((thread.id?, thread.name.as_str()))).collect();
        // A list that was printed several times repeats its rows: the largest figure counts.
        let mut seen: BTreeMap<u64, &Thread> = BTreeMap::new();
        for thread in list {
            if let Some(id) = thread.id {
                let known = seen.entry(id).or_insert(thread);
                if figure(known) < figure(thread) {
                    *known = thread;
                }
            }
        }
        let once = |thread: &&&Thread| {
            thread
                .id
                .is_none_or(|id| seen.get(&id).is_none_or(|known| std::ptr::eq(*known, **thread)))
        };
        let list: Vec<&Thread> = list.iter().filter(once).copied().collect();
        let mut sums: BTreeMap<&str, (ListedUser, &Thread)> = BTreeMap::new();
        let (mut percent, mut largest, mut least) = (0.0, 0.0_f64, f64::MAX);
        for thread in list {
            let own = figure(thread).unwrap_or(0.0);
            percent += own;
            largest = largest.max(own);
            least = least.min(own);
            let owner = self.owner_of(thread);
            let is_kernel = owner != Owner::Program;
            let process = thread.process.and_then(|process| processes.get(&process).copied());
            let name = process.filter(|_| !is_kernel).unwrap_or_else(|| kind_of(thread, is_kernel));
            let (used, busiest) = sums.entry(name).or_insert_with(|| {
                let used = ListedUser {
                    name: name.to_owned(),
                    is_kernel,
                    is_zfs: owner == Owner::Zfs,
                    is_ended: thread.children_of.is_some(),
                    percent: 0.0,
                    most: -1.0,
                    rows: 0,
                    system: None,
                    source: thread.source.clone(),
                };
                (used, thread)
            });
            used.percent += own;
            used.rows += thread.count;
            if let Some(system) = thread.system_percent {
                *used.system.get_or_insert(0.0) += system;
            }
            if own > used.most {
                used.most = own;
                *busiest = thread;
            }
        }
        let users = sums.into_values().map(|(mut used, busiest)| {
            used.source = busiest.source.clone();
            // A single worker keeps its own name, because that name shows its queue.
            if used.is_kernel && used.rows == 1 {
                used.name = busiest.name.clone();
            }
            used
        });
        let mut users: Vec<ListedUser> = users.collect();
        users.sort_by(|a, b| b.percent.total_cmp(&a.percent).then_with(|| a.name.cmp(&b.name)));
        Consumption {
            basis,
            percent,
            comes_down: users.len() > 1 && least <= NO_MATTER * largest,
            ends: users.len() > 1 && least <= NEXT_TO_NOTHING,
            comes_near: users.len() > 1 && least <= NEAR * largest && !is_filtered(&users),
            has_kernel: users.iter().any(|used| used.is_kernel),
            users,
        }
    }
}
