//! What the states of the CPUs have beside a list: interrupts, time stolen by the hypervisor, and
//! what the list does not show.

use super::cpu::{Cpu, Part};
use super::users::{Kind, User};
use crate::facts::{Basis, Consumption};

/// A remainder below this many CPUs, or this part of what is busy, is rounding.
pub(super) const REMAINDER_CPUS: f64 = 0.15;
/// The same as a part of what is busy.
pub(super) const REMAINDER_PART: f64 = 0.15;

/// What the states of the CPUs have beside a list: interrupts, stolen time, and the rest.
pub(super) fn beside(consumption: Option<&Consumption>, cpu: &Cpu) -> Vec<User> {
    let mut users = Vec::new();
    let part = |name: &str, kind, of_all: f64| User {
        cpus: cpu.cpus.map(|count| of_all * count / 100.0),
        machine_percent: cpu.cpus.is_none().then_some(of_all),
        ..User::new(name, kind)
    };
    // Percent of all CPUs are CPUs of a machine that has one: at least so many.
    let interrupts = cpu.part(Part::Interrupts);
    let interrupts = (interrupts - soft_interrupts(consumption, cpu)).max(0.0);
    let stolen = cpu.part(Part::Stolen);
    let busy = cpu.busy_percent.unwrap_or(0.0);
    // Interrupts are charged to the threads that they interrupt as well.
    let listed = consumption.and_then(|list| percent_of_all(list, cpu)).unwrap_or(0.0);
    let interrupts = interrupts.min((busy - stolen - listed).max(0.0));
    // A part that is small beside the rest explains nothing.
    let matters = |part: f64| part >= 1.0 && part >= 0.05 * busy;
    if matters(interrupts) {
        users.push(part("interrupts", Kind::Interrupts, interrupts));
    }
    if matters(stolen) {
        users.push(part("stolen", Kind::Stolen, stolen));
    }
    if let Some((name, Part::Interrupts, value)) = &cpu.full
        && users.is_empty()
        && consumption.is_none()
    {
        let mut full = part("interrupts", Kind::Interrupts, interrupts);
        full.name = format!("interrupts on CPU {name}");
        full.cpus = Some(value / 100.0);
        users.push(full);
        return users;
    }
    if consumption.is_none() && !users.is_empty() {
        let rest = busy - interrupts - stolen;
        users.push(part("others, of whom none is listed,", Kind::NotShown, rest));
        return users;
    }
    if let (Some(shown), Some(busy)) =
        (consumption.and_then(|list| percent_of_all(list, cpu)), cpu.busy_percent)
    {
        let rest = busy - interrupts - stolen - shown;
        let rest_cpus = cpu.cpus.map_or(rest / 10.0, |count| rest * count / 100.0);
        if rest_cpus >= REMAINDER_CPUS && rest >= REMAINDER_PART * busy {
            users.push(part("not shown by the list", Kind::NotShown, rest));
        }
    }
    users
}

/// Percent of all CPUs that a list of now adds up to, where that is known.
fn percent_of_all(list: &Consumption, cpu: &Cpu) -> Option<f64> {
    match (list.basis, cpu.cpus) {
        (Basis::Machine, _) => Some(list.percent),
        (Basis::Now, Some(count)) => Some(list.percent / count),
        _ => None,
    }
}

/// What `ksoftirqd` on a list has, percent of all CPUs: the states count it among interrupts, too.
fn soft_interrupts(consumption: Option<&Consumption>, cpu: &Cpu) -> f64 {
    let users = consumption.filter(|list| list.is_of_now()).map(|list| (&list.users, list.basis));
    let Some((users, basis)) = users else { return 0.0 };
    let own = users.iter().filter(|used| used.name.starts_with("ksoftirqd"));
    let own: f64 = own.map(|used| used.percent).sum();
    match (basis, cpu.cpus) {
        (Basis::Machine, _) => own,
        (_, Some(count)) => own / count,
        _ => 0.0,
    }
}
