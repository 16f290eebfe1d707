//! The load average of a machine that is not busy.
//!
//! On Linux it counts threads that run and threads in uninterruptible sleep (state D). A load far
//! above the busy CPUs therefore means threads that wait, even without I/O wait. I/O wait with a
//! low load average is ignored: an idle io_uring ring is accounted as I/O wait. Other systems count
//! only threads that run.

use super::cpu::{Cpu, IOWAIT_PERCENT};
use super::percent;
use super::waits::sleepers_named;
use crate::facts::Facts;

/// From this number of tasks on, the load shows that threads wait.
const SLEEPERS: f64 = 1.5;
/// CPUs of a machine of unknown size, for the upper bound of its busy CPUs.
const MANY_CPUS: f64 = 64.0;
/// A load below this part of the threads that I/O wait implies contradicts the I/O wait.
const CONTRADICTS_PART: f64 = 0.3;

/// The load of 1, 5 and 15 minutes, where the system counts threads that wait.
fn load(facts: &Facts) -> Option<[f64; 3]> {
    if facts.os().ok()? != "linux" {
        return None;
    }
    facts.evidence().host.load.as_ref().map(|load| load.value)
}

/// The meaning of a load above the busy CPUs: tasks in uninterruptible sleep.
pub(super) fn sleepers(facts: &Facts, cpu: &Cpu) -> Option<String> {
    // The mean of 15 minutes still counts earlier load.
    let [one, five, _] = load(facts)?;
    let steady = one.min(five);
    let busy = cpu.busy_percent()? * cpu.cpus.unwrap_or(MANY_CPUS) / 100.0;
    let running = facts.gauge("loadavg.running").unwrap_or(f64::MAX);
    let waiting = steady - (1.2 * busy).min(running.max(1.0));
    let named = sleepers_named(facts);
    // A live host lists every task: if none sleeps this way, the load is that of earlier minutes.
    if named.is_none() && !facts.evidence().tasks.is_empty() {
        return None;
    }
    (waiting >= SLEEPERS).then(|| {
        let names = named.map_or_else(
            || ", for an unknown reason".to_owned(),
            |names| format!(" ({names} among them)"),
        );
        format!("a load of {} means about {waiting:.0} tasks in state D{names}", short(steady))
    })
}

/// A load as people write it: `17`, `2.6`.
fn short(load: f64) -> String {
    if load >= 9.95 { format!("{load:.0}") } else { format!("{load:.1}") }
}

/// The reason why the load average contradicts the I/O wait.
pub(super) fn is_only_counted(facts: &Facts, cpu: &Cpu) -> Option<String> {
    let iowait = cpu.iowait_percent.filter(|iowait| *iowait >= IOWAIT_PERCENT)?;
    let most = load(facts)?.into_iter().fold(0.0, f64::max);
    let waiting = iowait * cpu.cpus.unwrap_or(1.0).max(1.0) / 100.0;
    (most < CONTRADICTS_PART * waiting).then(|| {
        format!(
            "a load of {most:.2} shows that no thread waits, so {} of I/O wait is ignored",
            percent(iowait)
        )
    })
}
