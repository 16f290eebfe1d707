//! The order of findings, and the causes that this host cannot have.
//!
//! Findings are ordered by confidence, then by the CPU that they explain. A finding without a cause
//! ("it spins on an unknown lock") never stands above a cause that explains the same samples.

use super::weigh::{LIKELY, POSSIBLE, Weighed};
use crate::answers::{Among, Answers, Kind, State, Wait};
use crate::facts::Facts;
use crate::rule::{Role, Rule, SignKind};

/// A cause with this part of a non-answer's share explains the same samples.
const SAME_SAMPLES: f64 = 0.5;
/// A share that is this many times another one is far from it.
const MANY_TIMES: f64 = 4.0;
/// ZFS's share of the busy CPU, percent, up to which it is noise.
const NOISE_PERCENT: f64 = 2.0;
/// An ARC up to this size is too small to cause work in the kernel.
const EMPTY_ARC_BYTES: f64 = 134_217_728.0;

/// Work of the module before a pool exists.
const NEEDS_NO_POOL: [&str; 2] = ["module-load-benchmark", "pool-import-work"];

/// Whether the rule accuses the kernel's ZFS.
fn accuses_zfs(rule: &Rule) -> bool {
    matches!(rule.text.role, Role::Cause | Role::LegitWork)
        && !matches!(rule.text.family.as_str(), "ogive" | "innocent" | "zfs-userland")
}

/// Rules that do not accuse ZFS, but apply only to a host with ZFS.
const NEEDS_ZFS: [&str; 6] = [
    "free-storm-io",
    "sync-write-latency",
    "write-throttle",
    "workload-legit",
    "arc-memory-normal",
    "monitoring-poll",
];

/// Whether a rule applies only to a host with ZFS.
pub(super) fn needs_zfs(rule: &Rule) -> bool {
    accuses_zfs(rule)
        || NEEDS_ZFS.contains(&rule.text.id.as_str())
        || rule.text.family == "zfs-userland"
}

/// Whether ZFS cannot be the cause. It is not loaded, or no pool is imported and it does no work.
/// Or it has almost none of the CPU and its ARC is almost empty.
pub(super) fn is_impossible(rule: &Rule, facts: &Facts) -> bool {
    if !accuses_zfs(rule) {
        return false;
    }
    if facts.zfs_loaded() == Ok(false) {
        return true;
    }
    // The kernel can ask an ARC without a pool for memory; then ZFS does work. The share comes
    // last: it is expensive in a long list of threads.
    let no_pool = facts.pools() == Ok(0.0) && !NEEDS_NO_POOL.contains(&rule.text.id.as_str());
    if no_pool && !facts.zfs_share().is_ok_and(|share| share >= NOISE_PERCENT) {
        return true;
    }
    let empty = facts.arc("size").is_ok_and(|bytes| bytes < EMPTY_ARC_BYTES);
    empty && facts.zfs_share().is_ok_and(|share| share < NOISE_PERCENT)
}

/// The highest confidence of a cause that the first three answers contradict.
const CONTRADICTED: f64 = 0.25;

/// Lowers the confidence of a cause that the first three answers contradict. Examples are an idle
/// host with a busy CPU, and work of ZFS where ZFS has almost no CPU.
pub(super) fn square(rule: &Rule, found: &mut Weighed, answers: &Answers, facts: &Facts) {
    let other = found.is_hint && is_of_another_system(rule, facts);
    if other || is_contradicted(rule, found.is_hint, answers) {
        found.confidence = found.confidence.min(CONTRADICTED);
    }
}

/// Whether a rule is about ZFS, and the inputs do not name ZFS or state that it is absent.
fn is_of_another_system(rule: &Rule, facts: &Facts) -> bool {
    needs_zfs(rule) && (facts.statement_without_zfs().is_some() || !facts.names_zfs())
}

fn is_contradicted(rule: &Rule, is_hint: bool, answers: &Answers) -> bool {
    if needs_zfs(rule) && !answers.zfs.is_hinted {
        return true;
    }
    let state = answers.cpu.state;
    let users = &answers.users;
    let first = users.first();
    let busy = matches!(state, State::Busy | State::Some);
    match rule.text.role {
        Role::NotCpu => match rule.text.id.as_str() {
            // A host that waits for disks or memory is not idle.
            "idle-host" | "innocent-loadavg-dstate" => {
                let waits = matches!(answers.cpu.waits_for, Some(Wait::Disks | Wait::Memory));
                busy || state == State::Waiting && waits && answers.cpu.is_known
            }
            // A mount's slow or blocked store is slow on a busy host as well.
            _ => state == State::Busy && !matches!(&*rule.text.family, "ogive" | "waits"),
        },
        Role::Innocent if rule.text.id == "innocent-user-process" => {
            let other = first.is_some_and(|user| !matches!(user.kind, Kind::Program | Kind::Code));
            // Tiny rows name no user, and missing rows contradict no hint.
            let little = first.map_or(!is_hint, |user| user.is_little()) && state == State::Unknown;
            state == State::Waiting
                || state == State::Idle
                || busy && other
                || little && !users.are_named_only()
        }
        Role::Kernel => busy && first.is_some_and(|user| user.kind == Kind::Stolen),
        // CPU is not the problem of a machine with enough of it.
        Role::Cause
            if rule.share.is_some() && state == State::Idle && !answers.cpu.since_boot() =>
        {
            true
        }
        // Causes without a share of the CPU are about something else.
        Role::Cause | Role::LegitWork => {
            (accuses_zfs(rule) || rule.text.role == Role::LegitWork)
                && rule.share.is_some()
                && rule.text.family != "kernel-reclaim"
                && (busy || state == State::Unknown)
                && answers.zfs.among == Among::No
        }
        _ => false,
    }
}

/// Orders the weighed rules, best first; hints stand behind all findings.
pub(super) fn order(weighed: &mut [(&Rule, Weighed)], state: State) {
    let is_found = |one: &Weighed| one.confidence >= POSSIBLE && !one.is_hint;
    weighed.sort_by(|(_, a), (_, b)| {
        is_found(b)
            .cmp(&is_found(a))
            .then_with(|| b.confidence.total_cmp(&a.confidence))
            .then_with(|| b.share_percent.unwrap_or(0.0).total_cmp(&a.share_percent.unwrap_or(0.0)))
            .then_with(|| b.log_odds.total_cmp(&a.log_odds))
    });
    // Of two likely causes, the one with many times the CPU answers where the CPU goes.
    for at in (1..weighed.len()).rev() {
        let (before, behind) = (&weighed[at - 1].1, &weighed[at].1);
        let likely = before.confidence >= LIKELY && behind.confidence >= LIKELY;
        if let (true, Some(less), Some(more)) = (likely, before.share_percent, behind.share_percent)
            && more > MANY_TIMES * less
        {
            weighed.swap(at - 1, at);
            // Its confidence is not higher either.
            weighed[at].1.confidence = weighed[at].1.confidence.min(weighed[at - 1].1.confidence);
        }
    }
    // A stable sort moves non-answers behind the last cause that explains their samples.
    let mut at = 0;
    while at < weighed.len() {
        let (rule, open) = &weighed[at];
        let behind = weighed[at + 1..]
            .iter()
            .rposition(|(named, found)| explains(named, found, open))
            .filter(|_| rule.text.role == Role::Unknown);
        match behind {
            Some(distance) => {
                // Its confidence is not higher than that of its cause.
                let last = at + 1 + distance;
                weighed[at].1.confidence = weighed[at].1.confidence.min(weighed[last].1.confidence);
                weighed[at..=last].rotate_left(1);
            }
            None => at += 1,
        }
    }
    if state != State::Busy {
        what_is_held_back_first(weighed);
    }
}

/// On a machine with idle CPUs a limit or a wait comes first, before the use of the rest, unless a
/// cause is as likely.
fn what_is_held_back_first(weighed: &mut [(&Rule, Weighed)]) {
    let is_likely = |one: &Weighed| one.confidence >= LIKELY && !one.is_hint;
    let is_held = |rule: &Rule| matches!(&*rule.text.family, "limits" | "waits");
    let held = weighed.iter().position(|(rule, one)| is_held(rule) && is_likely(one));
    let accuses = |(rule, one): &(&Rule, Weighed)| rule.text.role == Role::Cause && is_likely(one);
    if let Some(at) = held.filter(|at| !weighed[..*at].iter().any(accuses)) {
        let confidence = weighed[at].1.confidence;
        weighed[..=at].rotate_right(1);
        for (_, other) in &mut weighed[1..=at] {
            other.confidence = other.confidence.min(confidence);
        }
    }
}

/// Whether a named cause explains a non-answer. It must rest on functions, locks, counters or a
/// log, and take at least half as much of the CPU where both shares are known.
fn explains(named: &Rule, found: &Weighed, open: &Weighed) -> bool {
    if named.text.role == Role::Unknown || found.confidence < POSSIBLE {
        return false;
    }
    let proven = found.evidence.iter().any(|line| {
        matches!(line.kind, SignKind::Symbol | SignKind::Lock | SignKind::Counter | SignKind::Log)
    });
    let enough = match (found.share_percent, open.share_percent) {
        (Some(share), Some(all)) => share >= SAME_SAMPLES * all,
        _ => true,
    };
    proven && enough
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::EvidenceLine;

    const RULE: &str = r#"
id = "x"
family = "f"
role = "ROLE"
title = "t"
verdict = "v"
grade = "A"
ask = ["who"]
[remedy]
"#;

    fn rule(role: &str) -> Rule {
        Rule::parse("x.toml", &RULE.replace("ROLE", role)).expect("it is a rule")
    }

    fn weighed(confidence: f64, share: f64, kind: SignKind) -> Weighed {
        let line = EvidenceLine { text: "t".to_owned(), kind, weight: 1.0, sources: Vec::new() };
        Weighed {
            log_odds: 0.0,
            confidence,
            is_hint: false,
            share_percent: Some(share),
            evidence: vec![line],
            against: Vec::new(),
            not_known: Vec::new(),
            open: Vec::new(),
        }
    }

    fn first(named: Weighed) -> Role {
        let (open, cause) = (rule("unknown"), rule("cause"));
        let mut all = vec![(&open, weighed(0.92, 25.0, SignKind::Lock)), (&cause, named)];
        order(&mut all, State::Busy);
        all[0].0.text.role
    }

    #[test]
    fn of_two_likely_causes_the_one_with_many_times_the_cpu_stands_first() {
        let rule = rule("cause");
        let order_of = |surer: (f64, f64), other: (f64, f64)| {
            let one = |(confidence, share)| (&rule, weighed(confidence, share, SignKind::Symbol));
            let mut all = vec![one(surer), one(other)];
            order(&mut all, State::Busy);
            all[0].1.share_percent.unwrap_or(0.0)
        };
        assert_eq!(order_of((0.90, 9.0), (0.80, 78.0)), 78.0);
        assert_eq!(order_of((0.90, 30.0), (0.80, 78.0)), 30.0);
        assert_eq!(order_of((0.90, 9.0), (0.60, 78.0)), 9.0);
    }

    #[test]
    fn a_limit_that_holds_is_the_answer_on_a_machine_with_room_unless_a_cause_is_as_likely() {
        let held =
            Rule::parse("x.toml", &RULE.replace("\"f\"", "\"limits\"").replace("ROLE", "kernel"));
        let (held, cause, program) = (held.expect("a rule"), rule("cause"), rule("innocent"));
        let first = |other, confidence, state| {
            let found = |confidence| weighed(confidence, 50.0, SignKind::Counter);
            let mut all = vec![(other, found(confidence)), (&held, found(0.9))];
            order(&mut all, state);
            (all[0].0.text.family.clone(), all[1].1.confidence)
        };
        assert_eq!(first(&program, 0.95, State::Idle), ("limits".to_owned(), 0.9));
        assert_eq!(first(&program, 0.95, State::Busy).0, "f");
        assert_eq!(first(&cause, 0.95, State::Idle).0, "f");
        assert_eq!(first(&cause, 0.6, State::Idle).0, "limits");
    }

    #[test]
    fn a_non_answer_never_stands_above_a_cause_that_explains_the_same_samples() {
        assert_eq!(first(weighed(0.85, 22.0, SignKind::Symbol)), Role::Cause);
        assert_eq!(first(weighed(0.85, 3.0, SignKind::Symbol)), Role::Unknown);
        assert_eq!(first(weighed(0.45, 22.0, SignKind::Thread)), Role::Unknown);
        assert_eq!(first(weighed(0.30, 22.0, SignKind::Symbol)), Role::Unknown);
    }
}
