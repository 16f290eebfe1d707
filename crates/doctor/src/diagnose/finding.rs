//! One finding with everything that is printed about it.

use std::fmt;

use super::weigh::{CERTAIN, EvidenceLine, LIKELY, Weighed, has_gap};
use super::{named, rank, remedy, step};
use crate::answers::Answers;
use crate::evidence::Source;
use crate::expression::{Environment, ExpressionError};
use crate::facts::parse_versions;
use crate::rule::{Remedy, Role, Rule, RuleSet};

/// Confidence in a word.
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

/// A look-alike that is out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Its rule.
    pub cause: String,
    /// The fact that rules it out.
    pub because: String,
    /// Where that is from.
    pub sources: Vec<Source>,
}

/// A look-alike that is still open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenQuestion {
    /// Its rule.
    pub cause: String,
    /// What would separate it.
    pub by: String,
    /// What to run.
    pub ask: Option<String>,
}

/// Installed version against the fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionAdvice {
    /// Installed, as printed.
    pub installed: Option<String>,
    /// First releases with the fix, one a branch.
    pub fixed: Vec<String>,
    /// Whether the installed one has it.
    pub has_fix: Option<bool>,
    /// Affected versions in words.
    pub affected: Option<String>,
}

/// A finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The rule.
    pub id: String,
    /// Its family.
    pub family: String,
    /// Who is to blame, if anybody.
    pub role: Role,
    /// A few words.
    pub title: String,
    /// A sentence.
    pub verdict: String,
    /// 0 to 1.
    pub confidence: f64,
    /// The same in a word.
    pub word: Word,
    /// Whether it is no finding without words in lines that no format claims; then it has no
    /// remedy.
    pub is_hint: bool,
    /// Percent of the busy CPU that it can be shown to take.
    pub share_percent: Option<f64>,
    /// Facts that speak for it, strongest first.
    pub evidence: Vec<EvidenceLine>,
    /// Facts that speak against it.
    pub against: Vec<EvidenceLine>,
    /// Facts that would have been looked at, and were not shown.
    pub not_known: Vec<String>,
    /// Look-alikes that are out.
    pub ruled_out: Vec<Neighbour>,
    /// Look-alikes that are open.
    pub open: Vec<OpenQuestion>,
    /// What to do.
    pub remedy: Remedy,
    /// Versions.
    pub versions: VersionAdvice,
    /// Why it happens.
    pub mechanism: Option<String>,
    /// One command that would settle it.
    pub ask: String,
    /// Where the knowledge is from.
    pub references: Vec<String>,
}

/// Writes a finding out.
pub(super) fn finding(
    rule: &Rule,
    weighed: Weighed,
    rules: &RuleSet,
    environment: &Environment,
    answers: &Answers,
) -> Result<Finding, ExpressionError> {
    environment.set_share(weighed.share_percent);
    let (mut ruled_out, mut open) = (Vec::new(), Vec::new());
    let facts = environment.facts();
    let of_zfs = named::is_of_zfs(rule);
    let impossible = |cause: &str| {
        rules.get(cause).is_some_and(|rule| {
            rank::needs_zfs(rule) && !answers.zfs.is_hinted
                || facts.cannot_have(&rule.text.requires).is_some()
        })
    };
    for neighbour in rule.lookalikes.iter().filter(|one| !impossible(&one.cause)) {
        let truth = match &neighbour.ruled_out {
            Some(condition) => environment.truth(condition)?,
            None => (None, crate::facts::Trace::default()),
        };
        if truth.0 == Some(true) {
            let (because, mut sources) = neighbour.because.write(environment)?;
            sources.extend(truth.1.sources);
            sources.dedup();
            ruled_out.push(Neighbour { cause: neighbour.cause.clone(), because, sources });
        } else {
            let (by, _) = neighbour.because.write(environment)?;
            let by = if has_gap(&by) {
                neighbour.because.write_known(environment)?.unwrap_or_default()
            } else {
                by
            };
            let ask = neighbour.ask.as_deref().and_then(|ask| step::for_host(ask, facts, of_zfs));
            open.push(OpenQuestion { cause: neighbour.cause.clone(), by, ask });
        }
    }
    let (verdict, _) = rule.verdict.write(environment)?;
    let remedy = match weighed.is_hint {
        true => Remedy::default(),
        false => remedy::made_for(rule, environment)?,
    };
    Ok(Finding {
        id: rule.text.id.clone(),
        family: rule.text.family.clone(),
        role: rule.text.role,
        title: rule.text.title.clone(),
        verdict,
        confidence: weighed.confidence,
        word: Word::of(weighed.confidence),
        is_hint: weighed.is_hint,
        share_percent: weighed.share_percent,
        evidence: weighed.evidence,
        against: weighed.against,
        not_known: weighed.not_known,
        ruled_out,
        open,
        remedy,
        versions: versions(rule, environment)?,
        mechanism: rule.text.mechanism.clone(),
        ask: step::for_host(&rule.text.ask, environment.facts(), of_zfs).unwrap_or_default(),
        references: rule.text.references.clone(),
    })
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
