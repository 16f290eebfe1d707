//! Look-alikes: the facts that separate a finding from the rules that are confused with it.
//!
//! A rule names its look-alikes, and their own signs separate them. A look-alike that is no finding
//! is ruled out by the strongest measured fact against it. Otherwise it stays open, and its own
//! probes would decide.

use super::rank;
use super::weigh::{EvidenceLine, POSSIBLE, Weighed};
use crate::advise;
use crate::answers::Answers;
use crate::evidence::Source;
use crate::facts::Facts;
use crate::rule::{Rule, SignKind};

/// A weaker fact against a rule than this, in log-odds, does not rule it out.
const RULES_OUT: f64 = -2.0;

/// A look-alike that is ruled out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Its rule.
    pub cause: String,
    /// The fact that rules it out.
    pub because: String,
    /// The sources of that fact.
    pub sources: Vec<Source>,
}

/// A look-alike that is still open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenQuestion {
    /// Its rule.
    pub cause: String,
    /// The fact that would separate it.
    pub by: String,
    /// The command to run.
    pub ask: Option<String>,
}

/// The look-alikes of a rule that this host can have: those ruled out, and those still open.
pub(super) fn separated(
    rule: &Rule,
    weighed: &[(&Rule, Weighed)],
    facts: &Facts,
    answers: &Answers,
) -> (Vec<Neighbour>, Vec<OpenQuestion>) {
    let (mut out, mut open) = (Vec::new(), Vec::new());
    let same = |cause: &String| weighed.iter().find(|(known, _)| known.text.id == *cause);
    // A rule without a weight is impossible on this host.
    for (other, own) in rule.text.lookalikes.iter().filter_map(same) {
        if rank::needs_zfs(other) && !answers.zfs.is_hinted {
            continue;
        }
        let cause = other.text.id.clone();
        let against = if own.confidence < POSSIBLE { strongest_against(own) } else { None };
        if let Some((because, sources)) = against {
            out.push(Neighbour { cause, because, sources });
            continue;
        }
        let found = own.confidence >= POSSIBLE;
        let sought = own.open.iter().find_map(|at| other.signs.get(*at)?.sought());
        let sought = sought.filter(|_| !found);
        let by = sought.unwrap_or_else(|| other.text.title.clone());
        let ask = advise::asked(&other.text.ask, facts, advise::is_of_zfs(other));
        let ask = ask.into_iter().next().map(|(_, run)| run);
        open.push(OpenQuestion { cause, by, ask });
    }
    (out, open)
}

/// The strongest fact against a rule, if it is strong and measured.
fn strongest_against(own: &Weighed) -> Option<(String, Vec<Source>)> {
    let strong = |line: &&EvidenceLine| line.weight <= RULES_OUT && line.kind != SignKind::Words;
    let strong = own.against.iter().filter(strong);
    let strongest = strong.min_by(|a, b| a.weight.total_cmp(&b.weight))?;
    Some((strongest.text.clone(), strongest.sources.clone()))
}
