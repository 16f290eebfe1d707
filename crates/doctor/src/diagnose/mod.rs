//! Weighs the rules against the evidence, and reports the findings with their confidence.
//!
//! Each rule is weighed alone (`weigh`), and `rank` orders the findings. If no cause is at least
//! *possible*, the verdict is that the evidence is not enough, with the one command that would
//! help.

mod finding;
#[cfg(test)]
mod hostile_names;
#[cfg(test)]
mod list_cost;
mod lookalike;
#[cfg(test)]
mod open_slots;
mod pool_activity;
mod rank;
mod verdict;
mod weigh;

use crate::advise::{self, Near};
use crate::answers::{Among, Answers};
use crate::evidence::{Evidence, Input, Statement};
use crate::expression::Environment;
use crate::facts::{Consumer, Facts};
use crate::rule::{Rule, RuleSet};

pub use crate::advise::Step;
pub use finding::{Finding, VersionAdvice, Word};
pub use lookalike::{Neighbour, OpenQuestion};
pub use pool_activity::PoolActivity;
pub use verdict::{Place, Verdict, VerdictKind};
pub use weigh::EvidenceLine;
pub use weigh::{CERTAIN, LIKELY, POSSIBLE};

/// The most findings that are reported.
const MAX_FINDINGS: usize = 8;

/// The use of the machine in figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overview {
    /// Percent of all CPUs that was busy.
    pub busy_percent: Option<f64>,
    /// Percent of all CPUs in user space.
    pub user_percent: Option<f64>,
    /// Percent of all CPUs in the kernel.
    pub system_percent: Option<f64>,
    /// Percent of all CPUs idle with a disk request outstanding.
    pub iowait_percent: Option<f64>,
    /// Number of CPUs.
    pub cpus: Option<f64>,
    /// Percent of the busy CPU that ZFS uses.
    pub zfs_share_percent: Option<f64>,
    /// The users of the CPU, largest first.
    pub consumers: Vec<Consumer>,
    /// Functions with the largest own share: name, module, percent of busy samples.
    pub symbols: Vec<(String, String, f64)>,
    /// Busy samples of the profile.
    pub samples: Option<f64>,
    /// Installed ZFS.
    pub zfs_version: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// The cost of measuring a live host, percent of one CPU; the caller sets it.
    pub looking_percent: Option<f64>,
}

/// The answer.
#[derive(Clone, Debug)]
pub struct Diagnosis {
    /// The first sentence.
    pub verdict: Verdict,
    /// The first three answers: the CPU, its users, and whether ZFS is among them.
    pub answers: Answers,
    /// The work that `zpool status` reports, whether or not it explains anything.
    pub running: Vec<PoolActivity>,
    /// Findings, best first.
    pub findings: Vec<Finding>,
    /// Causes weighed and not reported, best first, with their probability.
    pub considered: Vec<(String, f64)>,
    /// The machine in figures.
    pub overview: Overview,
    /// The formats of the inputs.
    pub inputs: Vec<Input>,
    /// Lines that no format claims.
    pub not_understood: Vec<Statement<String>>,
    /// Rules that could not be evaluated, and the reasons.
    pub rule_faults: Vec<String>,
}

/// For each rule that is possible here, by id: the signs that hold, and those shown not to hold.
///
/// Weights are counted from these (`bench/doctor/learn.py`). A rule that cannot be evaluated has no
/// signs.
pub fn signs_held(rules: &RuleSet, evidence: Evidence) -> Vec<(String, Vec<Option<bool>>)> {
    let environment = Environment::new(Facts::with_patterns(evidence, rules.patterns()));
    let facts = environment.facts();
    let possible = rules.iter().filter(|rule| {
        is_asked_about(rule, facts.is_ogive())
            && !rank::is_impossible(rule, facts)
            && facts.cannot_have(&rule.text.requires).is_none()
    });
    let held = |rule| weigh::holding(rule, &environment).ok().flatten();
    possible.filter_map(|rule| Some((rule.text.id.clone(), held(rule)?))).collect()
}

/// Whether a rule belongs to the question: an ogive mount or a host. Limits and waits belong to
/// both.
fn is_asked_about(rule: &Rule, of_ogive: bool) -> bool {
    match rule.text.family.as_str() {
        "limits" | "waits" => true,
        family => (family == "ogive") == of_ogive,
    }
}

/// A candidate below this confidence asks no question of its own.
const WORTH_ASKING: f64 = 0.30;

/// The command that would tell more, if any.
fn next_step(
    weighed: &[(&Rule, weigh::Weighed)],
    answers: &Answers,
    environment: &Environment,
) -> Option<Step> {
    // A near cause asks unless a known fact excludes it.
    let near = weighed.first().filter(|(rule, best)| {
        best.confidence >= POSSIBLE
            || best.confidence >= WORTH_ASKING
                && answers.zfs.among != Among::No
                // Without evidence of ZFS, a weak guess does not ask about it.
                && (!advise::works_in_pools(rule) || advise::has_pool(environment.facts()))
    });
    let near = near.map(|(rule, best)| Near { rule, open: &best.open });
    advise::step(near, answers, environment)
}

/// Weighs all rules against the evidence.
pub fn diagnose(rules: &RuleSet, evidence: Evidence) -> Diagnosis {
    let environment = Environment::new(Facts::with_patterns(evidence, rules.patterns()));
    let answers = Answers::of(environment.facts());
    let mut rule_faults = Vec::new();
    let mut weighed = Vec::new();
    let of_ogive = environment.facts().is_ogive();
    // A question about an ogive mount is not about the kernel's ZFS, and the reverse.
    for rule in rules.iter().filter(|rule| is_asked_about(rule, of_ogive)) {
        let facts = environment.facts();
        if rank::is_impossible(rule, facts) || facts.cannot_have(&rule.text.requires).is_some() {
            continue;
        }
        match weigh::weigh(rule, &environment) {
            Ok(Some(mut result)) => {
                rank::square(rule, &mut result, &answers, facts);
                weighed.push((rule, result));
            }
            Ok(None) => {}
            Err(fault) => rule_faults.push(format!("{}: {fault}", rule.text.id)),
        }
    }
    rank::order(&mut weighed, answers.cpu.state);
    let verdict = verdict::verdict(&weighed, &answers, &environment);
    let mut findings = Vec::new();
    let mut considered = Vec::new();
    for (at, (rule, result)) in weighed.iter().enumerate() {
        if result.confidence < POSSIBLE || findings.len() >= MAX_FINDINGS {
            considered.push((rule.text.id.clone(), result.confidence));
            continue;
        }
        match finding::finding(&weighed, at, &environment, &answers) {
            Ok(finding) => findings.push(finding),
            Err(fault) => rule_faults.push(format!("{}: {fault}", rule.text.id)),
        }
    }
    let facts = environment.facts();
    Diagnosis {
        verdict,
        answers,
        running: pool_activity::running(facts),
        findings,
        considered,
        overview: overview(facts),
        inputs: facts.evidence().inputs.clone(),
        not_understood: facts.evidence().not_understood.clone(),
        rule_faults,
    }
}

fn overview(facts: &Facts) -> Overview {
    let consumers = facts.consumers();
    Overview {
        busy_percent: facts.cpu("busy").ok(),
        user_percent: facts.cpu("user").ok(),
        system_percent: facts.cpu("system").ok(),
        iowait_percent: facts.cpu("iowait").ok(),
        cpus: facts.ncpu().ok(),
        zfs_share_percent: zfs_share(facts, consumers),
        consumers: consumers.iter().filter(|user| user.size() >= 1.0).take(8).cloned().collect(),
        symbols: facts.top_symbols(10),
        samples: facts.profile_samples().ok(),
        zfs_version: facts.zfs_version().ok(),
        kernel: facts.kernel().ok(),
        looking_percent: None,
    }
}

/// The share of all of ZFS in the machine's busy CPU, next to its threads. It is left out where the
/// threads have no shares of the machine, or where another view shows less than the threads use.
fn zfs_share(facts: &Facts, consumers: &[Consumer]) -> Option<f64> {
    let all = facts.zfs_share_with_consumers()?;
    if consumers.iter().any(|user| user.share_percent.is_none()) {
        return None;
    }
    let threads = consumers.iter().filter(|user| user.is_zfs);
    let threads: f64 = threads.filter_map(|user| user.share_percent).sum();
    // Rounding hides half a percent.
    (all + 0.5 >= threads).then_some(all.abs())
}
