//! How busy the machine is.
//!
//! States of the CPUs come first (top's header, vmstat, mpstat, sar, /proc/stat), then a list of
//! programs. A machine is busy if half of it or more is used. It is busy in part if a few threads
//! each fill a CPU, even while the other CPUs are idle.

use super::cpu::{Cpu, FullCpu, IOWAIT_PERCENT, Part, State};
use super::range::{Of, Over, Range};
use super::timed_command::Timed;
use super::waits::{is_idle_with_sleepers, waits};
use super::{cite, load_average};
use crate::evidence::{CpuUse, OneCpu};
use crate::facts::{Basis, Consumption, Facts};

/// Percent of all CPUs from which the machine is busy.
const BUSY_PERCENT: f64 = 49.5;
/// From this percentage of all CPUs on, a machine is not idle.
const MUCH_PERCENT: f64 = 30.0;
/// The idle time of the listed CPUs may differ from that of all CPUs by this percentage.
const CUT_PERCENT: f64 = 15.0;
/// Percent of one CPU from which a thread fills it.
const FULL_PERCENT: f64 = 70.0;
/// The same for a CPU with known states of its own.
const FULL_CPU_PERCENT: f64 = 85.0;
/// The number of used CPUs, by a list without states, from which a machine of unknown size is busy.
const SEVERAL_CPUS: f64 = 2.0;

/// The first answer.
pub(super) fn how_busy(facts: &Facts, consumption: Option<&Consumption>) -> Cpu {
    let mut cpu = states(facts);
    cpu.full = full_cpu(facts);
    let listed = consumption.filter(|list| !matches!(list.basis, Basis::Machine | Basis::Seconds));
    cpu.listed_cpus = listed.map(|list| list.percent / 100.0);
    cpu.listed_percent = by_machine(consumption);
    if cpu.cpus.is_none() {
        cpu.cpus = cpus_by_list(&cpu, consumption);
        cpu.cpus_by_figures = cpu.cpus.is_some();
    }
    let counted = load_average::is_only_counted(facts, &cpu);
    cpu.is_only_counted = counted.is_some();
    let wait = waits(facts, cpu.iowait_percent.filter(|_| counted.is_none()));
    if let Some(wait) = &wait {
        cpu.proof = Some(wait.proof.clone());
        cpu.is_known |= wait.of_machine;
        if let Some(source) = &wait.source {
            cite(&mut cpu.sources, source);
        }
    }
    cpu.waits_for = wait.as_ref().and_then(|wait| wait.wait);
    // Means over lives prove nothing about now.
    let measured = cpu.busy_percent().is_some() || consumption.is_some_and(Consumption::is_of_now);
    let seen = seen(facts, &mut cpu, consumption);
    cpu.is_known |= seen.all || seen.part;
    let timed = Timed::of(facts).filter(|_| !measured);
    cpu.state = if seen.all {
        State::Busy
    } else if waits_more(&cpu) {
        State::Waiting
    } else if seen.part {
        State::Some
    } else if wait.is_some() && !is_idle_with_sleepers(&cpu, facts) {
        State::Waiting
    } else if cpu.busy_percent().is_some() || is_calm(facts, consumption) {
        State::Idle
    } else {
        match &timed {
            Some(timed) if timed.is_busy() => State::Some,
            Some(timed) if timed.waits() => State::Waiting,
            _ => State::Unknown,
        }
    };
    if cpu.state == State::Idle {
        cpu.load = counted.or_else(|| load_average::sleepers(facts, &cpu));
    }
    if let Some(timed) = timed {
        cite(&mut cpu.sources, &timed.source);
        cpu.proof = cpu.proof.or_else(|| Some(timed.words()));
        cpu.timed = Some(timed);
    }
    // A list of means over lives cannot show that a machine is idle now.
    if let Some(list) = consumption.filter(|_| cpu.busy_percent().is_none())
        && let Some(first) = list.users.first()
    {
        cite(&mut cpu.sources, &first.source);
    }
    cpu
}

/// The use that is shown.
struct Seen {
    /// Half of the machine or more.
    all: bool,
    /// One CPU's worth or more.
    part: bool,
}

fn seen(facts: &Facts, cpu: &mut Cpu, list: Option<&Consumption>) -> Seen {
    let listed = list.filter(|list| !matches!(list.basis, Basis::Machine | Basis::Seconds));
    let busiest = listed.and_then(|list| list.users.iter().map(|used| used.most).reduce(f64::max));
    let part = busiest.is_some_and(|most| most >= FULL_PERCENT)
        || cpu.full.is_some()
        || cpu.busy_percent().is_some_and(|busy| busy >= MUCH_PERCENT)
            && cpu.busy_cpus().is_none_or(|busy| busy >= 1.0);
    let all = is_busy(cpu, list);
    // A live host shows what runs now: a lockup in its log is history.
    let lockup = facts.lockup().filter(|_| facts.evidence().tasks.is_empty());
    let part = part || lockup.is_some();
    if let Some(lockup) = lockup.filter(|_| !all) {
        cite(&mut cpu.sources, &lockup.source);
        cpu.lockup = Some(lockup);
    }
    Seen { all, part }
}

/// Whether the CPUs have more I/O wait than busy time, and threads do wait.
fn waits_more(cpu: &Cpu) -> bool {
    let iowait = cpu.iowait_percent.unwrap_or(0.0);
    let busy = cpu.busy_percent().unwrap_or(0.0);
    iowait >= IOWAIT_PERCENT && iowait > busy && !cpu.is_only_counted
}

/// Whether half or more of the machine is used, by its states or by a list.
fn is_busy(cpu: &Cpu, consumption: Option<&Consumption>) -> bool {
    match (cpu.busy_percent(), cpu.listed_cpus, cpu.cpus) {
        (Some(busy), ..) => busy >= BUSY_PERCENT,
        (None, Some(used), Some(count)) => used >= count * BUSY_PERCENT / 100.0,
        (None, Some(used), None) => used >= SEVERAL_CPUS,
        (None, None, _) => by_machine(consumption).is_some_and(|used| used >= BUSY_PERCENT),
    }
}

/// The states of all CPUs, as tools print them.
fn states(facts: &Facts) -> Cpu {
    facts.start_trace();
    let phase = facts.cpu_while_busy(BUSY_PERCENT);
    let own = |state: &str| match &phase {
        Some(used) => Some(match state {
            "user" => used.user,
            "system" => used.system,
            "interrupt" => used.interrupt,
            "steal" => used.steal,
            "iowait" => used.iowait,
            _ => return None,
        }),
        None => facts.cpu(state).ok(),
    };
    let measured = !facts.evidence().cpu.is_empty();
    let mut parts = Vec::new();
    for (part, state) in [
        (Part::User, "user"),
        (Part::System, "system"),
        (Part::Interrupts, "interrupt"),
        (Part::Stolen, "steal"),
    ] {
        if let Some(value) = own(state) {
            parts.push((part, value));
        }
    }
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let since_boot = facts.evidence().cpu.iter().all(|row| row.since_boot);
    let busy = measured.then(|| {
        let shown = facts.cpu("busy").unwrap_or(0.0) + facts.cpu("steal").unwrap_or(0.0);
        let all: f64 = parts.iter().map(|(_, value)| value).sum();
        let busy = if phase.is_some() { all } else { shown };
        let busy = Range::exact(busy.clamp(0.0, 100.0), Of::PercentOfMachine);
        busy.over(since_boot.then_some(Over::Boot))
    });
    let iowait_percent = own("iowait");
    let sources = facts.take_trace().sources;
    #[expect(clippy::cast_precision_loss, reason = "a number of CPUs")]
    let shown = OneCpu::number(&facts.evidence().single_cpus).map(|count| count as f64);
    // The mean of a table that was cut is not that of the machine.
    let mean = CpuUse::mean(facts.evidence().single_cpus.iter().map(|one| &one.used));
    let same = |idle: f64| facts.cpu("idle").is_ok_and(|all| (all - idle).abs() <= CUT_PERCENT);
    let shown = shown.filter(|_| mean.is_none_or(|mean| same(mean.idle)));
    let cpus = facts.ncpu().ok().or(shown);
    Cpu {
        cpus,
        busy,
        iowait_percent,
        parts,
        is_known: measured,
        sources: sources.into_iter().take(2).collect(),
        ..Cpu::default()
    }
}

/// A single CPU that is full.
fn full_cpu(facts: &Facts) -> Option<FullCpu> {
    let busy =
        |used: &crate::evidence::CpuUse| used.user + used.system + used.interrupt + used.steal;
    let fullest = facts
        .evidence()
        .single_cpus
        .iter()
        .max_by(|a, b| busy(&a.used).total_cmp(&busy(&b.used)))
        .filter(|one| busy(&one.used) >= FULL_CPU_PERCENT)?;
    let used = &fullest.used;
    let parts = [
        (Part::User, used.user),
        (Part::System, used.system),
        (Part::Interrupts, used.interrupt),
        (Part::Stolen, used.steal),
    ];
    let (most, _) = parts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let (name, percent) = (fullest.name.clone(), busy(used));
    Some(FullCpu { name, most: used.is_split.then_some(most), percent })
}

/// The number of CPUs, by a list that shows the threads behind the states. If one thread fills a
/// CPU while 13% of all CPUs is busy, there are eight.
fn cpus_by_list(cpu: &Cpu, consumption: Option<&Consumption>) -> Option<f64> {
    let list = consumption.filter(|list| list.basis == Basis::Now && list.ends)?;
    let busy = cpu.busy_percent().filter(|busy| *busy >= 5.0)?;
    let others = cpu.part(Part::Interrupts) + cpu.part(Part::Stolen);
    let own = busy - others;
    if list.percent < 50.0 || own < 5.0 {
        return None;
    }
    let count = (list.percent / own).round();
    (count >= 1.0).then_some(count)
}

/// Percent of all CPUs, as the sum of a list of such percentages.
fn by_machine(consumption: Option<&Consumption>) -> Option<f64> {
    consumption.filter(|list| list.basis == Basis::Machine).map(|list| list.percent)
}

/// Whether a list of current use begins with little and comes down to nothing. Containers are not
/// all of a machine.
fn is_calm(facts: &Facts, consumption: Option<&Consumption>) -> bool {
    consumption.is_some_and(|list| {
        !facts.lists_containers()
            && list.is_of_now()
            && list.comes_down
            && list.users.len() >= 4
            && list.percent < 30.0
    })
}
