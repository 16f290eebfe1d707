//! Two hosts, or two times of one: their differences, and the one that explains the problem.
//!
//! "The other host is fine" is often the best evidence. A difference explains something in one of
//! three ways. It is a cause that only the sick host has, or evidence of such a cause, or CPU that
//! only the sick host spends. Other differences are listed last and never called a reason, because
//! two hosts always differ in something.

pub(crate) mod describe;
mod rank;
mod side;

use crate::diagnose::{Finding, LIKELY, POSSIBLE};
use crate::evidence::{Evidence, Source};
use crate::rule::{Role, RuleSet};

use self::side::Side;

/// The sick host must use this many CPUs more before anything explains CPU.
const NOISE_CPUS: f64 = 0.05;
/// The same as a part of the healthy host's use.
const NOISE_PART: f64 = 0.10;
/// A user with this part of the additional CPU is named in the first line.
const MOST_PERCENT: f64 = 50.0;
/// From this ratio of work on, it is more work.
const MORE_WORK: f64 = 1.5;
/// Below this growth, the CPU for a unit of work is the same.
const SAME_COST: f64 = 1.3;

/// The kind of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A cause, or another answer, by the rules.
    Cause,
    /// CPU of a subsystem.
    Subsystem,
    /// CPU of a thread or program.
    Thread,
    /// A parameter or property.
    Setting,
    /// A release.
    Version,
    /// Processor, memory.
    Hardware,
    /// The work of the host, and the CPU for a unit of it.
    Load,
    /// A counter's rate.
    Counter,
}

impl Kind {
    /// Its word, in the table and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cause => "cause",
            Self::Subsystem => "CPU of",
            Self::Thread => "thread",
            Self::Setting => "setting",
            Self::Version => "version",
            Self::Hardware => "hardware",
            Self::Load => "load",
            Self::Counter => "counter",
        }
    }
}

/// A difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Its value on the healthy host.
    pub healthy: Option<String>,
    /// Its value on the sick host.
    pub sick: Option<String>,
    /// The sick host's figure divided by the healthy host's.
    pub factor: Option<f64>,
    /// Its percent of the additional CPU.
    pub explains_percent: Option<f64>,
    /// The cause that has it as evidence.
    pub cited_by: Option<String>,
    /// The sources of the sick host's value.
    pub sources: Vec<Source>,
    /// Order; the larger, the further up.
    weight: f64,
}

impl Difference {
    /// A difference that explains nothing.
    fn new(kind: Kind, name: &str, [healthy, sick]: [Option<String>; 2], weight: f64) -> Self {
        let name = name.to_owned();
        let (factor, explains_percent, cited_by, sources) = (None, None, None, Vec::new());
        Self { kind, name, healthy, sick, factor, explains_percent, cited_by, sources, weight }
    }

    /// The difference with `finding`, if any, as the cause that has it as evidence.
    fn cited(self, finding: Option<&Finding>, sources: Vec<Source>) -> Self {
        let weight = finding.map_or(self.weight, |one| 500.0 + 100.0 * one.confidence);
        let cited_by = finding.map(|finding| finding.id.clone());
        Self { cited_by, sources, weight, ..self }
    }
}

/// The outcome of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The sick host has a cause.
    Cause,
    /// It does more of the same work, at the same cost.
    MoreWork,
    /// A program outside ZFS has the additional CPU.
    Program,
    /// The place of the additional CPU is known, but not the reason.
    Place,
    /// No difference explains it.
    Nothing,
    /// The evidence of one of them is not enough.
    Insufficient,
}

impl Outcome {
    /// The word in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cause => "cause",
            Self::MoreWork => "more work",
            Self::Program => "another program",
            Self::Place => "place",
            Self::Nothing => "nothing explains it",
            Self::Insufficient => "not enough evidence",
        }
    }
}

/// A comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Names of the healthy and the sick host.
    pub names: [String; 2],
    /// The outcome.
    pub outcome: Outcome,
    /// The same as the first line.
    pub sentence: String,
    /// CPUs that were busy on each.
    pub busy_cpus: [Option<f64>; 2],
    /// The differences, best explanation first.
    pub differences: Vec<Difference>,
}

/// Compares two hosts, or two times of one.
pub fn compare(
    rules: &RuleSet,
    (healthy_name, healthy): (&str, Evidence),
    (sick_name, sick): (&str, Evidence),
) -> Comparison {
    let healthy = Side::new(rules, healthy_name, healthy);
    let sick = Side::new(rules, sick_name, sick);
    let extra = additional_cpus(&healthy, &sick);
    let mut differences = rank::differences(&healthy, &sick, extra);
    differences.sort_by(|a, b| {
        b.weight
            .total_cmp(&a.weight)
            .then_with(|| a.kind.cmp(&b.kind))
            .then_with(|| a.name.cmp(&b.name))
    });
    let (outcome, sentence) = outcome(&healthy, &sick, extra, &differences);
    Comparison {
        names: [healthy.name, sick.name],
        outcome,
        sentence,
        busy_cpus: [healthy.busy_cpus, sick.busy_cpus],
        differences,
    }
}

/// The additional CPUs of the sick host, if they exceed noise.
fn additional_cpus(healthy: &Side, sick: &Side) -> Option<f64> {
    let (before, after) = healthy.busy_cpus.zip(sick.busy_cpus)?;
    let extra = after - before;
    (extra >= NOISE_CPUS && extra >= NOISE_PART * before).then_some(extra)
}

/// The ratio of work, and the ratio of ZFS's CPU for a unit of it, where both are known.
fn work_and_cost(healthy: &Side, sick: &Side) -> Option<(&'static str, f64, Option<f64>)> {
    for work in &sick.work {
        let before = healthy.work.iter().find(|known| known.unit == work.unit);
        let Some(before) = before.filter(|before| before.rate >= 0.1 && work.rate >= 0.1) else {
            continue;
        };
        let times = work.rate / before.rate;
        let cost = healthy
            .zfs_cpus
            .zip(sick.zfs_cpus)
            .filter(|(before, _)| *before >= 0.01)
            .map(|(before, after)| after / before / times);
        return Some((work.unit, times, cost));
    }
    None
}

fn outcome(
    healthy: &Side,
    sick: &Side,
    extra: Option<f64>,
    differences: &[Difference],
) -> (Outcome, String) {
    let likely = sick.diagnosis.findings.iter().filter(|one| one.confidence >= LIKELY);
    let mut causes = likely.filter(|one| one.role == Role::Cause);
    let in_healthy = |id: &str| {
        healthy.diagnosis.findings.iter().any(|one| one.id == id && one.confidence >= POSSIBLE)
    };
    if let Some(cause) = causes.clone().find(|cause| !in_healthy(&cause.id)) {
        let why = cited(differences, &cause.id);
        let sentence = format!(
            "{} has a cause that {} does not have: {} ({}).{why}",
            sick.name, healthy.name, cause.title, cause.word
        );
        return (Outcome::Cause, sentence);
    }
    if let Some(cause) = causes.next() {
        let sentence = format!(
            "Both have the same cause, {} ({} on {}): {} is no healthy host to compare with.",
            cause.title, cause.word, sick.name, healthy.name
        );
        return (Outcome::Cause, sentence);
    }
    let (Some(before), Some(after)) = (healthy.busy_cpus, sick.busy_cpus) else {
        let lacking = if healthy.busy_cpus.is_none() { &healthy.name } else { &sick.name };
        let sentence = format!(
            "Not enough evidence to compare: the busy CPUs of {lacking} are unknown. Run \
             on both: sudo ogive capture"
        );
        return (Outcome::Insufficient, sentence);
    };
    let Some(extra) = extra else {
        let sentence = format!(
            "No difference explains it: {} is not busier ({after:.2} CPUs, {} has \
             {before:.2}), and no cause is found on it.",
            sick.name, healthy.name
        );
        return (Outcome::Nothing, sentence);
    };
    if let Some((unit, times, Some(cost))) = work_and_cost(healthy, sick)
        && times >= MORE_WORK
        && cost <= SAME_COST
    {
        let sentence = format!(
            "{} does {times:.1} times the work ({unit}) for {cost:.1} times the CPU a unit: that is \
             load, not a fault.",
            sick.name
        );
        return (Outcome::MoreWork, sentence);
    }
    place(healthy, sick, extra, differences)
}

/// The place of the additional CPU, if one place or the programs have most of it.
fn place(healthy: &Side, sick: &Side, extra: f64, differences: &[Difference]) -> (Outcome, String) {
    let most = |kind: Kind| {
        differences.iter().find(|one| {
            one.kind == kind && one.explains_percent.is_some_and(|part| part >= MOST_PERCENT)
        })
    };
    let part = |one: &Difference| one.explains_percent.unwrap_or(0.0);
    let uses = format!("{} uses {extra:.2} CPUs more", sick.name);
    let is_program = |one: &&Difference| {
        one.kind == Kind::Thread && sick.threads.get(&one.name).is_some_and(|(_, kernel)| !kernel)
    };
    let programs: Vec<&Difference> = differences.iter().filter(is_program).collect();
    // A program's work inside ZFS belongs to ZFS.
    let of_zfs = healthy.zfs_cpus.zip(sick.zfs_cpus).map(|(before, after)| after - before);
    let is_innocent = of_zfs.is_some_and(|cpus| cpus * 100.0 / extra < MOST_PERCENT);
    if is_innocent && programs.iter().map(|one| part(one)).sum::<f64>() >= MOST_PERCENT {
        let named = programs.iter().take(3).map(|one| format!("{} {:.0}%", one.name, part(one)));
        let named: Vec<String> = named.collect();
        let sentence =
            format!("{uses}, and programs have it, not ZFS: {} of it.", named.join(", "));
        return (Outcome::Program, sentence);
    }
    match most(Kind::Subsystem).or_else(|| most(Kind::Thread)) {
        Some(one) => (
            Outcome::Place,
            format!(
                "{uses}; {:.0}% of it goes into {}. The reason is unknown: no difference is \
                 evidence of a known cause.",
                part(one),
                one.name
            ),
        ),
        None => (
            Outcome::Nothing,
            format!("{uses}, and no difference explains it: no place has half of it."),
        ),
    }
}

/// The settings and versions that are evidence of a cause, as a sentence.
fn cited(differences: &[Difference], cause: &str) -> String {
    let on = differences.iter().filter(|one| {
        matches!(one.kind, Kind::Setting | Kind::Version | Kind::Hardware)
            && one.cited_by.as_deref() == Some(cause)
    });
    let words: Vec<String> = on
        .take(2)
        .map(|one| {
            format!(
                "{} is {}, and {} on the healthy host",
                one.name,
                one.sick.as_deref().unwrap_or("not set"),
                one.healthy.as_deref().unwrap_or("not set")
            )
        })
        .collect();
    if words.is_empty() { String::new() } else { format!(" There {}.", words.join("; ")) }
}
