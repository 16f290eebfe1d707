//! The result of a host's diagnosis: its answer in a line, and its traits. The evidence is dropped,
//! so a fleet takes only the memory of its answers.

use std::collections::BTreeSet;

use crate::compare::describe;
use crate::diagnose::{Diagnosis, Finding, POSSIBLE, VerdictKind};
use crate::evidence::Evidence;
use crate::rule::RuleSet;

/// Further traits of one host are left out.
const MAX_TRAITS: usize = 4000;
/// Longer texts are cut.
const MAX_TEXT: usize = 200;

/// A property of a host that other hosts may share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Trait {
    /// `release`, `hardware`, `setting`.
    pub kind: TraitKind,
    /// Its name: `kernel`, `encryption`.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// The kind of a trait; the first is the likeliest reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TraitKind {
    /// ZFS, kernel, distribution.
    Release,
    /// A property or parameter.
    Setting,
    /// Processor, memory.
    Hardware,
}

impl TraitKind {
    /// Its name in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Setting => "setting",
            Self::Hardware => "hardware",
        }
    }
}

/// A host of a fleet.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// Its name: that of its bundle.
    pub name: String,
    /// The kind of its answer.
    pub verdict: VerdictKind,
    /// The first line of its answer.
    pub sentence: String,
    /// Cause, title, confidence of the first finding.
    pub first: Option<(String, String, f64)>,
    /// Percent of the busy CPU that the first finding explains.
    pub share_percent: Option<f64>,
    /// Percent of all CPUs that was busy.
    pub busy_percent: Option<f64>,
    /// The trouble with its bundle.
    pub trouble: Option<String>,
    pub(super) traits: BTreeSet<Trait>,
}

impl Host {
    /// Diagnoses one host and keeps what a fleet needs.
    pub fn diagnosed(rules: &RuleSet, name: &str, evidence: Evidence) -> Self {
        let traits = traits(&evidence);
        let diagnosis = crate::diagnose(rules, evidence);
        let first = diagnosis.findings.first().filter(|first| first.confidence >= POSSIBLE);
        Self {
            name: name.to_owned(),
            verdict: diagnosis.verdict.kind,
            sentence: short(&crate::report::headline(&diagnosis)),
            first: first.map(|first| (first.id.clone(), first.title.clone(), first.confidence)),
            share_percent: first.and_then(|first: &Finding| first.share_percent),
            busy_percent: diagnosis.overview.busy_percent,
            trouble: trouble(&diagnosis),
            traits,
        }
    }

    /// Percent of all CPUs that what was found takes: what hosts are ordered by.
    pub fn wasted_percent(&self) -> f64 {
        let busy = self.busy_percent.unwrap_or(100.0);
        self.share_percent.map_or(0.0, |share| share * busy / 100.0)
    }
}

/// A bundle of which nothing could be understood is no host; of one that was understood in part it
/// is said which part was not.
fn trouble(diagnosis: &Diagnosis) -> Option<String> {
    let worth_saying = |reason: &&String| reason.as_str() != "it is empty";
    let mut troubles = diagnosis.inputs.iter().filter_map(|input| {
        let reason = input.trouble.as_ref().filter(worth_saying)?;
        Some(short(&format!("{}: {reason}", input.name)))
    });
    let first = troubles.next()?;
    let more = troubles.count();
    Some(if more > 0 { format!("{first}, and {more} more") } else { first })
}

fn traits(evidence: &Evidence) -> BTreeSet<Trait> {
    let mut traits = BTreeSet::new();
    for (name, stated) in describe::stated(evidence) {
        let kind =
            if describe::is_release(name) { TraitKind::Release } else { TraitKind::Hardware };
        traits.insert(Trait { kind, name: name.to_owned(), value: short(&stated.value) });
    }
    for (name, setting) in describe::settings(evidence) {
        for value in setting.values.keys() {
            if traits.len() >= MAX_TRAITS {
                return traits;
            }
            let (name, value) = (short(&name), short(value));
            traits.insert(Trait { kind: TraitKind::Setting, name, value });
        }
    }
    traits
}

fn short(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}
