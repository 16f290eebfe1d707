//! The first sentence.

use super::weigh::{POSSIBLE, Weighed};
use crate::expression::Environment;
use crate::rule::{Role, Rule, RuleSet};

/// What kind of answer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerdictKind {
    /// ZFS (or ogive) wastes CPU.
    Cause,
    /// ZFS uses CPU for what was asked for.
    NormalCost,
    /// ZFS is innocent.
    NotZfs,
    /// It is not CPU at all.
    NotCpu,
    /// A program in user space is the one.
    UserProcess,
    /// The kernel outside of ZFS is the one.
    Kernel,
    /// Something is proven, what causes it is not.
    Open,
    /// The evidence does not suffice.
    Insufficient,
}

impl VerdictKind {
    /// The word in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cause => "cause",
            Self::NormalCost => "normal cost",
            Self::NotZfs => "not ZFS",
            Self::NotCpu => "not CPU",
            Self::UserProcess => "user process",
            Self::Kernel => "kernel",
            Self::Open => "cause open",
            Self::Insufficient => "not enough evidence",
        }
    }

    fn of(role: Role) -> Self {
        match role {
            Role::Cause => Self::Cause,
            Role::LegitWork => Self::NormalCost,
            Role::Innocent => Self::NotZfs,
            Role::NotCpu => Self::NotCpu,
            Role::UserProcess => Self::UserProcess,
            Role::Kernel => Self::Kernel,
            Role::Unknown => Self::Open,
        }
    }
}

/// The first sentence, and what to run where it is not the last word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What kind of answer it is.
    pub kind: VerdictKind,
    /// The sentence.
    pub sentence: String,
    /// One command that would tell more.
    pub ask: Option<String>,
}

/// Candidates below this are not worth a question of their own.
const WORTH_ASKING: f64 = 0.12;

/// The verdict over the weighed rules, best first.
pub(super) fn verdict(
    rules: &RuleSet,
    weighed: &[(&Rule, Weighed)],
    environment: &Environment,
) -> Verdict {
    let Some((rule, best)) = weighed.first().filter(|(_, best)| best.confidence >= POSSIBLE) else {
        return insufficient(rules, weighed, environment);
    };
    environment.set_share(best.share_percent);
    let sentence = rule.verdict.write(environment).map(|(text, _)| text).unwrap_or_default();
    // A sentence with a gap in it is none.
    let sentence = if sentence.is_empty() || sentence.contains('?') {
        rule.text.title.clone()
    } else {
        sentence
    };
    let kind = VerdictKind::of(rule.text.role);
    let sure = best.confidence >= super::LIKELY && kind != VerdictKind::Open;
    Verdict { kind, sentence, ask: (!sure).then(|| rule.text.ask.clone()) }
}

fn insufficient(
    rules: &RuleSet,
    weighed: &[(&Rule, Weighed)],
    environment: &Environment,
) -> Verdict {
    let facts = environment.facts();
    let (profile, callers) = facts.profile_kind();
    let candidate = weighed.first().filter(|(_, best)| best.confidence >= WORTH_ASKING);
    let ask = match candidate {
        Some((rule, _)) => rule.text.ask.clone(),
        None => match (profile, callers, rules.get("unknown")) {
            (true, false, _) => {
                "perf record -a -g -- sleep 10 && perf script > perf.txt && ogive doctor perf.txt"
                    .to_owned()
            }
            (_, _, Some(unknown)) => unknown.text.ask.clone(),
            _ => "sudo ogive capture -o capture.tar.zst && ogive doctor capture.tar.zst".to_owned(),
        },
    };
    let sentence = match candidate {
        Some((rule, best)) => format!(
            "Not enough evidence to name a cause; the nearest is {} ({:.0}%). Run: {ask}",
            rule.text.title,
            best.confidence * 100.0
        ),
        None => format!("Not enough evidence to name a cause. Run: {ask}"),
    };
    Verdict { kind: VerdictKind::Insufficient, sentence, ask: Some(ask) }
}
