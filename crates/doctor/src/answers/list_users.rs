//! Users by a list of threads or programs.
//!
//! The states of the CPUs add the use that the list cannot show: interrupts, stolen time and a
//! remainder. Samples by program fill the remainder, and the busy CPUs bound the sum of a list.

use super::cpu::{Cpu, FullCpu, Part};
use super::range::{Of, Over, Range};
use super::users::{Kind, User, Users};
use crate::atlas;
use crate::evidence::Source;
use crate::facts::{Basis, Consumption, ENOUGH_SAMPLES, Facts, ListedUser, Owner};

/// A remainder below this many CPUs, or this part of the busy CPU, is rounding.
const REMAINDER_CPUS: f64 = 0.15;
const REMAINDER_PART: f64 = 0.15;
/// Samples fill in no less CPU than this.
const LEAST_FILLED_CPUS: f64 = 0.05;
/// A list and the states of the CPUs may be of different moments: up to this ratio they agree.
const TOO_MUCH: f64 = 1.25;
const TOO_MUCH_CPUS: f64 = 0.5;
/// Figures of the same moment agree up to this ratio.
const ROUNDING: f64 = 1.05;
const ROUNDING_CPUS: f64 = 0.05;

/// One user of a list.
pub(super) fn user(used: &ListedUser, basis: Basis, cpu: &Cpu) -> User {
    let owner = match (used.is_zfs, used.is_kernel) {
        (true, _) => Owner::Zfs,
        (_, true) => Owner::Kernel,
        _ => Owner::Program,
    };
    let kind = Kind::of(&used.name, owner);
    let does = atlas::role_of(&used.name).filter(|_| kind != Kind::Program);
    let over = matches!(basis, Basis::Life | Basis::Seconds).then_some(Over::Life);
    let range = match (basis, cpu.cpus) {
        (Basis::Machine, Some(count)) => Range::exact(used.percent * count / 100.0, Of::Cpus),
        (Basis::Machine, None) => Range::exact(used.percent, Of::PercentOfMachine),
        (Basis::Seconds, _) => Range::exact(used.percent, Of::Seconds),
        _ => Range::exact(used.percent / 100.0, Of::Cpus),
    };
    User {
        does: does.and_then(atlas::role_does),
        used: Some(range.over(over)),
        system_cpus: used.system.map(|value| value / 100.0),
        is_ended: used.is_ended,
        rows: used.rows,
        ..User::new(used.name.clone(), kind)
    }
}

/// The users that the states of the CPUs add to a list.
pub(super) fn remainder(consumption: Option<&Consumption>, cpu: &Cpu) -> Vec<User> {
    let part = |name: &str, kind, of_all: f64| {
        let used = match cpu.cpus {
            Some(count) => Range::exact(of_all * count / 100.0, Of::Cpus),
            None => Range::exact(of_all, Of::PercentOfMachine),
        };
        User { used: Some(used), ..User::new(name, kind) }
    };
    let busy = cpu.busy_percent().unwrap_or(0.0);
    let shown = consumption.and_then(|list| percent_of_all(list, cpu));
    let stolen = cpu.part(Part::Stolen);
    // Interrupts are also charged to the threads that they interrupt.
    let interrupts = (cpu.part(Part::Interrupts) - soft_interrupts(consumption, cpu)).max(0.0);
    let interrupts = interrupts.min((busy - stolen - shown.unwrap_or(0.0)).max(0.0));
    // A part that is small compared with the rest explains nothing.
    let matters = |part: f64| part >= 1.0 && part >= 0.05 * busy;
    let parts = [("interrupts", Kind::Interrupts, interrupts), ("stolen", Kind::Stolen, stolen)];
    let parts = parts.into_iter().filter(|(.., of_all)| matters(*of_all));
    let mut users: Vec<User> = parts.map(|(name, kind, of_all)| part(name, kind, of_all)).collect();
    let rest = busy - interrupts - stolen - shown.unwrap_or(0.0);
    let rest_cpus = cpu.cpus.map_or(rest / 10.0, |count| rest * count / 100.0);
    let is_rest = rest_cpus >= REMAINDER_CPUS && rest >= REMAINDER_PART * busy;
    match (&cpu.full, consumption) {
        (Some(FullCpu { name, most: Some(Part::Interrupts), percent }), None)
            if users.is_empty() =>
        {
            let full = User::new(format!("interrupts on CPU {name}"), Kind::Interrupts);
            users.push(User { used: Some(Range::exact(percent / 100.0, Of::Cpus)), ..full });
        }
        (_, None) if !users.is_empty() => {
            users.push(part("unlisted users", Kind::NotShown, rest));
        }
        (_, Some(_)) if is_rest && shown.is_some() && cpu.busy_percent().is_some() => {
            users.push(part("not shown by the list", Kind::NotShown, rest));
        }
        _ => {}
    }
    users
}

/// The sum of a list of current use in percent of all CPUs, where known.
fn percent_of_all(list: &Consumption, cpu: &Cpu) -> Option<f64> {
    match (list.basis, cpu.cpus) {
        (Basis::Machine, _) => Some(list.percent),
        (Basis::Now, Some(count)) => Some(list.percent / count),
        _ => None,
    }
}

/// `ksoftirqd` of a list, percent of all CPUs: the states count it as interrupts as well.
fn soft_interrupts(consumption: Option<&Consumption>, cpu: &Cpu) -> f64 {
    let Some(list) = consumption.filter(|list| list.is_of_now()) else { return 0.0 };
    let own = list.users.iter().filter(|used| used.name.starts_with("ksoftirqd"));
    let own: f64 = own.map(|used| used.percent).sum();
    match (list.basis, cpu.cpus) {
        (Basis::Machine, _) => own,
        (_, Some(count)) => own / count,
        _ => 0.0,
    }
}

/// Names the hidden remainder of a list by the samples. No list has processes that came and went
/// between two readings, and of ended children a list has only the parent.
pub(super) fn fill(list: &mut Vec<User>, sampled: &Users, cpu: &Cpu) {
    let enough = sampled.samples.is_some_and(|count| count >= ENOUGH_SAMPLES);
    let is_open = |user: &User| user.kind == Kind::NotShown || user.is_ended;
    let whole: f64 = list.iter().filter(|user| is_open(user)).filter_map(User::cpus).sum();
    let (Some(busy), true) = (cpu.busy_cpus(), enough && whole > 0.0) else { return };
    let lacking = |user: &User| {
        let known = list.iter().find(|one| one.name == user.name).and_then(User::cpus);
        let share = user.samples_percent().unwrap_or(0.0) * busy / 100.0;
        (share - known.unwrap_or(0.0)).max(0.0)
    };
    let of_programs = sampled.list.iter().filter(|user| user.kind != Kind::Code);
    let mut lack: Vec<(&User, f64)> = of_programs.map(|user| (user, lacking(user))).collect();
    lack.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut open = whole;
    for (user, lacks) in lack {
        let part = lacks.min(open);
        if part < LEAST_FILLED_CPUS {
            break;
        }
        open -= part;
        let sampled_cpus = Some(part);
        match list.iter_mut().find(|one| one.name == user.name) {
            Some(known) => {
                let before = known.cpus().unwrap_or(0.0);
                // If the measured part is larger, the rest may be a measuring error.
                let least = if part < before { before } else { before + part };
                known.used = Some(Range::between(least, before + part, Of::Cpus));
                // The kernel's part of it is unknown.
                (known.system_cpus, known.sampled_cpus) = (None, sampled_cpus);
            }
            None => {
                let used = Some(Range::exact(part, Of::Cpus));
                list.push(User { used, sampled_cpus, ..user.clone() });
            }
        }
    }
    let left = open / whole;
    for user in list.iter_mut().filter(|user| is_open(user)) {
        user.used = user.cpus().map(|count| Range::exact(count * left, Of::Cpus));
        user.system_cpus = user.system_cpus.map(|count| count * left);
    }
    let matters = |user: &User, count: f64| match user.kind {
        Kind::NotShown => count >= REMAINDER_CPUS && count >= REMAINDER_PART * busy,
        _ => count >= LEAST_FILLED_CPUS,
    };
    list.retain(|user| !is_open(user) || user.cpus().is_none_or(|count| matters(user, count)));
}

/// Turns figures into ranges where their sum exceeds the busy CPUs of the same moment. The measured
/// figure of a thread stays, as long as ended children and samples can have less instead. For a
/// list of another moment, returns its sum, so that the report can mention it.
pub(super) fn bound(users: &mut Users, facts: &Facts, cpu: &Cpu) -> Option<f64> {
    let Users { list, sources, .. } = users;
    let shown: f64 = list.iter().filter_map(User::cpus).sum();
    let busy = cpu.busy_cpus().filter(|_| !cpu.since_boot() && !cpu.cpus_by_figures)?;
    // Two readings of all tasks and of the states are the same moment.
    let is_task = |source: &Source| {
        facts.evidence().tasks.iter().any(|task| task.source.input == source.input)
    };
    if !sources.iter().any(is_task) {
        return (shown > busy * TOO_MUCH + TOO_MUCH_CPUS).then_some(shown);
    }
    if shown <= busy * ROUNDING + ROUNDING_CPUS {
        return None;
    }
    // The part of a user's CPU that no list shows directly.
    let inferred = |user: &User| match user.is_ended {
        true => user.cpus().unwrap_or(0.0),
        false => user.sampled_cpus.unwrap_or(0.0),
    };
    let excess = shown - busy;
    let measured_excess = (excess - list.iter().map(inferred).sum::<f64>()).max(0.0);
    for user in list {
        let Some(own) = user.cpus() else { continue };
        let inferred = inferred(user);
        let measured = (own - inferred - measured_excess).max(0.0);
        let least = measured + (inferred - excess).max(0.0);
        user.used = Some(Range::between(least, own.min(busy), Of::Cpus));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{finish, read_bytes};
    use crate::{answers::Answers, evidence::Evidence};

    /// Ten seconds of two CPUs, of which `busy` were used. One program has 0.8 CPUs and one has
    /// 0.13, and its ended children are charged `children`.
    fn look(busy: f64, children: f64) -> Users {
        let mut evidence = Evidence::default();
        for (moment, part) in [("start", 0.0), ("end", 1000.0)] {
            let task = |id: u32, name: &str, cpus: f64, children: f64| {
                let (own, children) = (cpus * part, children * part);
                let zeroes = "0 ".repeat(30);
                format!(
                    "{id} {id} ({name}) S 1 1 1 0 -1 0 0 0 0 0 {own:.0} 0 {children:.0} {zeroes}\n"
                )
            };
            let tasks = task(700, "java", 0.8, 0.0) + &task(800, "bash", 0.13, children);
            read_bytes(&mut evidence, &format!("{moment}/thread-stats.txt"), tasks.as_bytes());
            let (busy, idle) = (busy * part, (2.0 - busy) * part);
            let stat =
                format!("cpu  {busy:.0} 0 0 {idle:.0} 0 0 0 0 0 0\ncpu0 0 0 0 0\ncpu1 0 0 0 0\n");
            read_bytes(&mut evidence, &format!("{moment}/proc/stat"), stat.as_bytes());
        }
        finish(&mut evidence);
        Answers::of(&Facts::new(evidence)).users
    }

    #[test]
    fn users_above_the_busy_cpu_become_ranges() {
        let words = |users: &Users| {
            let words = users.list.iter().map(|user| format!("{} {}", user.name, user.used()));
            words.collect::<Vec<_>>().join(", ")
        };
        assert_eq!(words(&look(0.93, 0.0)), "java 0.80 CPUs, bash 0.13 CPUs");
        let all = look(0.7, 0.0);
        assert_eq!(words(&all), "java 0.57 to 0.70 CPUs, bash at most 0.13 CPUs");
        assert!(all.list.iter().map(|user| user.used.unwrap().least).sum::<f64>() <= 0.71);
        // The figure of an ended child is lowered before that of a measured thread.
        let children = words(&look(1.13, 0.4));
        let texts = "java 0.80 CPUs, finished children of bash 0.20 to 0.40 CPUs, bash 0.13 CPUs";
        assert_eq!(children, texts);
    }
}
