//! What the load average says of a machine that is not busy.
//!
//! On Linux it counts threads that run and threads that sleep uninterruptibly (state D). A load far
//! above the busy CPUs therefore means threads that wait, even without I/O wait. I/O wait with a
//! low load average is ignored: an idle io_uring ring is accounted as I/O wait. Other systems count
//! only threads that run.

use super::cpu::{Cpu, IOWAIT_PERCENT};
use super::percent;
use super::waits::sleepers_named;
use crate::facts::Facts;

/// From this number of tasks on, the load shows that threads wait.
const SLEEPERS: f64 = 1.5;
/// CPUs of a machine of which the number is not known, for what is busy at most.
const MANY_CPUS: f64 = 64.0;
/// A load of this part of what waits for disks, by I/O wait, contradicts it.
const CONTRADICTS_PART: f64 = 0.3;

/// The load of 1, 5 and 15 minutes, where it counts who waits.
fn load(facts: &Facts) -> Option<[f64; 3]> {
    if facts.os().ok()? != "linux" {
        return None;
    }
    facts.evidence().host.load.as_ref().map(|load| load.value)
}

/// What a load above what is busy says: tasks that sleep uninterruptibly.
pub(super) fn sleepers(facts: &Facts, cpu: &Cpu) -> Option<String> {
    // The mean of 15 minutes still counts what was before.
    let [one, five, _] = load(facts)?;
    let steady = one.min(five);
    let busy = cpu.busy_percent()? * cpu.cpus.unwrap_or(MANY_CPUS) / 100.0;
    let running = facts.gauge("loadavg.running").unwrap_or(f64::MAX);
    let waiting = steady - (1.2 * busy).min(running.max(1.0));
    let named = sleepers_named(facts);
    // A look lists every task: where none sleeps so, the load is that of the minutes before.
    if named.is_none() && !facts.evidence().tasks.is_empty() {
        return None;
    }
    (waiting >= SLEEPERS).then(|| {
        let who = named.map_or_else(
            || ", for what is not shown".to_owned(),
            |names| format!(" ({names} among them)"),
        );
        format!("a load of {} means about {waiting:.0} tasks in state D{who}", short(steady))
    })
}

/// A load as people say it: `17`, `2.6`.
fn short(load: f64) -> String {
    if load >= 9.95 { format!("{load:.0}") } else { format!("{load:.1}") }
}

/// Why the load average contradicts the I/O wait.
pub(super) fn is_only_counted(facts: &Facts, cpu: &Cpu) -> Option<String> {
    let iowait = cpu.iowait_percent.filter(|iowait| *iowait >= IOWAIT_PERCENT)?;
    let most = load(facts)?.into_iter().fold(0.0, f64::max);
    let waiting = iowait * cpu.cpus.unwrap_or(1.0).max(1.0) / 100.0;
    (most < CONTRADICTS_PART * waiting).then(|| {
        format!(
            "a load of {most:.2} says that nobody waits: the {} of I/O wait is only counted so",
            percent(iowait)
        )
    })
}
