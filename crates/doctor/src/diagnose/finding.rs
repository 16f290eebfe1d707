//! One finding with everything that is printed about it.

use std::collections::HashSet;
use std::fmt;

use super::lookalike::{self, Neighbour, OpenQuestion};
use super::weigh::{CERTAIN, EvidenceLine, LIKELY, Weighed};
use crate::advise;
use crate::answers::Answers;
use crate::expression::{Environment, ExpressionError};
use crate::facts::parse_versions;
use crate::rule::{Remedy, Role, Rule};

/// A share below this percentage is not reported: the cause depends on other facts.
const LEAST_PERCENT: f64 = 0.5;

/// Confidence as a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Word {
    /// From 0.45.
    Possible,
    /// From 0.70.
    Likely,
    /// From 0.90.
    Certain,
}

impl Word {
    /// The word for a confidence.
    pub fn of(confidence: f64) -> Self {
        match confidence {
            c if c >= CERTAIN => Self::Certain,
            c if c >= LIKELY => Self::Likely,
            _ => Self::Possible,
        }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Possible => "possible",
            Self::Likely => "likely",
            Self::Certain => "certain",
        })
    }
}

/// The installed version compared with the fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionAdvice {
    /// The installed version, as printed.
    pub installed: Option<String>,
    /// First releases with the fix, one a branch.
    pub fixed: Vec<String>,
    /// Whether the installed version has it.
    pub has_fix: Option<bool>,
    /// Affected versions, as text.
    pub affected: Option<String>,
}

/// A finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The rule.
    pub id: String,
    /// Its family.
    pub family: String,
    /// Its role: cause, innocent and so on.
    pub role: Role,
    /// A short title.
    pub title: String,
    /// One sentence.
    pub verdict: String,
    /// 0 to 1.
    pub confidence: f64,
    /// The word for the confidence.
    pub word: Word,
    /// Whether it depends on words in lines that no format claims; then it has no remedy.
    pub is_hint: bool,
    /// The percent of the busy CPU that it takes; `None` where nothing measured it.
    pub share_percent: Option<f64>,
    /// Facts for it, strongest first.
    pub evidence: Vec<EvidenceLine>,
    /// Facts against it.
    pub against: Vec<EvidenceLine>,
    /// Facts that its signs asked for and that are not shown.
    pub not_known: Vec<String>,
    /// Look-alikes that are ruled out.
    pub ruled_out: Vec<Neighbour>,
    /// Look-alikes that are open.
    pub open: Vec<OpenQuestion>,
    /// The advice.
    pub remedy: Remedy,
    /// Versions.
    pub versions: VersionAdvice,
    /// The reason why it happens.
    pub mechanism: Option<String>,
    /// One command that would decide it.
    pub ask: String,
    /// References.
    pub references: Vec<String>,
}

/// The finding of `weighed[at]`, with all its texts.
pub(super) fn finding(
    weighed: &[(&Rule, Weighed)],
    at: usize,
    environment: &Environment,
    answers: &Answers,
) -> Result<Finding, ExpressionError> {
    let (rule, own) = (weighed[at].0, &weighed[at].1);
    environment.set_share(own.share_percent);
    let facts = environment.facts();
    let of_zfs = advise::is_of_zfs(rule);
    let (ruled_out, open) = lookalike::separated(rule, weighed, facts, answers);
    let user = answers.users.first().map(|user| user.name.as_str());
    let verdict = rule.verdict.write(environment)?.text;
    let remedy = match own.is_hint {
        true => Remedy::default(),
        false => advise::remedy(rule, environment, user)?,
    };
    Ok(Finding {
        id: rule.text.id.clone(),
        family: rule.text.family.clone(),
        role: rule.text.role,
        title: rule.text.title.clone(),
        verdict,
        confidence: own.confidence,
        word: Word::of(own.confidence),
        is_hint: own.is_hint,
        share_percent: own.share_percent.filter(|percent| *percent >= LEAST_PERCENT),
        evidence: distinct(&own.evidence),
        against: distinct(&own.against),
        not_known: own.not_known.clone(),
        ruled_out,
        open,
        remedy,
        versions: versions(rule, environment)?,
        mechanism: rule.text.mechanism.clone(),
        ask: advise::for_host(&rule.text.ask, facts, of_zfs),
        references: rule.text.references.clone(),
    })
}

/// The first line of each text. Signs that have one text in common differ only in their weight.
fn distinct(lines: &[EvidenceLine]) -> Vec<EvidenceLine> {
    let mut texts = HashSet::new();
    lines.iter().filter(|line| texts.insert(&line.text)).cloned().collect()
}

fn versions(rule: &Rule, environment: &Environment) -> Result<VersionAdvice, ExpressionError> {
    let facts = environment.facts();
    let advised = match &rule.fix_when {
        Some(condition) => environment.truth(condition)?.0 == Some(true),
        None => true,
    };
    if !advised {
        return Ok(VersionAdvice {
            installed: None,
            fixed: Vec::new(),
            has_fix: None,
            affected: None,
        });
    }
    let installed = facts.zfs_version().ok().filter(|text| parse_versions(text).is_some());
    let has_fix = if rule.text.fixed.is_empty() {
        None
    } else {
        facts.zfs_before(&rule.text.fixed.join(", ")).ok().map(|lacks| !lacks)
    };
    Ok(VersionAdvice {
        installed,
        fixed: rule.text.fixed.clone(),
        has_fix,
        affected: rule.text.affected.clone(),
    })
}
