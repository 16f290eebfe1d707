//! The first sentence.

use super::weigh::{POSSIBLE, Weighed};
use crate::expression::Environment;
use crate::facts::Facts;
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

/// Where the CPU goes, or where threads stand, although no cause is named.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The subsystem of functions, or the role of threads.
    pub name: &'static str,
    /// What it is seen by: `functions`, `stacks` (where, not how much) or `threads`.
    pub by: &'static str,
    /// Percent of the busy CPU, by functions; of one CPU, by threads.
    pub percent: Option<f64>,
}

/// The first sentence, and what to run where it is not the last word.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// What kind of answer it is.
    pub kind: VerdictKind,
    /// The sentence.
    pub sentence: String,
    /// One command that would tell more.
    pub ask: Option<String>,
    /// Where it goes, in an answer that names no cause.
    pub place: Option<Place>,
}

/// A candidate below this is not near, and is neither named nor worth a question of its own.
const WORTH_ASKING: f64 = 0.30;

/// A subsystem with less than this, percent of the busy CPU, is no answer.
const WORTH_A_PLACE_PERCENT: f64 = 15.0;
/// Nor is one of fewer busy samples.
const FEWEST_SAMPLES: f64 = 60.0;
/// What threads of a role use, percent of one CPU, from which it is worth a word.
const WORTH_A_ROLE_PERCENT: f64 = 30.0;
/// What the busiest on a list uses, percent of one CPU, up to which it is little.
const LITTLE_PERCENT: f64 = 20.0;
/// So many facts that would tell are named.
const MAX_FACTS: usize = 3;

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
    Verdict { kind, sentence, ask: (!sure).then(|| rule.text.ask.clone()), place: None }
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
    // Where the CPU goes is an answer, though not the last; what is only near is none.
    if let Some((place, said)) = place(weighed, environment) {
        let sentence = format!("{said} Run: {ask}");
        return Verdict { kind: VerdictKind::Open, sentence, ask: Some(ask), place: Some(place) };
    }
    let (place, busy) = users(weighed, facts);
    // Whoever it is: that it is not ZFS is known.
    if facts.zfs_loaded() == Ok(false) {
        let sentence = format!("ZFS is not loaded, so it is not ZFS. {busy}Who else: run {ask}");
        return Verdict { kind: VerdictKind::NotZfs, sentence, ask: Some(ask), place };
    }
    let sentence = match candidate {
        Some((rule, best)) => format!(
            "{busy}Not enough evidence to name a cause; the nearest is {} ({:.0}%). Run: {ask}",
            rule.text.title,
            best.confidence * 100.0
        ),
        None => format!("{busy}Not enough evidence to name a cause. Run: {ask}"),
    };
    Verdict { kind: VerdictKind::Insufficient, sentence, ask: Some(ask), place }
}

/// Who uses the CPU by a list of threads, as a sentence and a space: what busy kernel threads do
/// and which facts would tell more, or that nobody on the list uses much.
fn users(weighed: &[(&Rule, Weighed)], facts: &Facts) -> (Option<Place>, String) {
    if let Some(role) = facts.top_role().filter(|role| role.percent >= WORTH_A_ROLE_PERCENT) {
        let place = Place { name: role.name, by: "threads", percent: Some(role.percent) };
        let sentence = format!(
            "Threads for {} use {:.0}% of one CPU (what they do: {}).{} ",
            role.name,
            role.percent,
            role.does,
            would_tell(weighed, role.name)
        );
        return (Some(place), sentence);
    }
    let most = facts.top_thread().ok().and_then(|user| Some((user.cpu_percent?, user)));
    let calm = most.filter(|(percent, _)| *percent < LITTLE_PERCENT).map(|(percent, user)| {
        format!(
            "Nobody on the list of threads uses much CPU: {} most, with {percent:.1}% of one CPU. ",
            user.name
        )
    });
    (None, calm.unwrap_or_default())
}

/// Where the CPU goes although no known cause fits, or where threads stand, and which facts would
/// tell more.
fn place(weighed: &[(&Rule, Weighed)], environment: &Environment) -> Option<(Place, String)> {
    let facts = environment.facts();
    let enough = facts.profile_samples().is_ok_and(|samples| samples >= FEWEST_SAMPLES)
        || facts.profile_samples().is_err();
    let top = facts.top_subsystem().ok();
    if let Some(top) = top.filter(|top| enough && top.percent >= WORTH_A_PLACE_PERCENT) {
        let place = Place { name: top.name, by: "functions", percent: Some(top.percent) };
        let sentence = format!(
            "{:.0}% of the busy CPU goes into {} ({}; most in {}), and none of the known causes \
             fits.{}",
            top.percent,
            top.name,
            top.does,
            top.function,
            would_tell(weighed, top.name)
        );
        return Some((place, sentence));
    }
    let top = facts.top_standing()?;
    let stand = match top.all {
        1 => format!("The only stack stands in {}", top.name),
        all => format!("{} of {all} stacks stand in {}", top.threads, top.name),
    };
    let sentence = format!(
        "{stand} ({}; in {}), and none of the known causes fits. It shows where, not how much.{}",
        top.does,
        top.function,
        would_tell(weighed, top.name)
    );
    Some((Place { name: top.name, by: "stacks", percent: None }, sentence))
}

/// What rules that look at the subsystem looked for and did not find.
fn would_tell(weighed: &[(&Rule, Weighed)], subsystem: &str) -> String {
    let whole = subsystem.split('/').next().unwrap_or(subsystem);
    let looks = |rule: &Rule, name: &str| {
        rule.expressions().iter().any(|(_, expression)| expression.source().contains(name))
    };
    let mut facts: Vec<&str> = Vec::new();
    // Those that name the very subsystem first, then those of the whole that it is part of.
    for name in [format!("\"{subsystem}"), format!("\"{whole}")] {
        for (_, own) in weighed.iter().filter(|(rule, _)| looks(rule, &name)) {
            for fact in &own.not_known {
                if facts.len() < MAX_FACTS && !facts.contains(&fact.as_str()) {
                    facts.push(fact);
                }
            }
        }
    }
    match facts.is_empty() {
        true => String::new(),
        false => format!(" These facts would tell: {}.", facts.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use crate::evidence::Evidence;
    use crate::read::{finish, read_bytes};
    use crate::rule::RuleSet;

    #[test]
    fn a_function_that_no_rule_knows_still_has_a_place() {
        let folded = "\
kworker/0:1;kthread;worker_thread;jbd2_vendor_trick 620
kworker/1:1;kthread;worker_thread;cgroup_vendor_trick 380
";
        let mut evidence = Evidence::default();
        read_bytes(&mut evidence, "stacks.folded", folded.as_bytes());
        finish(&mut evidence);
        let rules = RuleSet::bundled().expect("the rules compile");
        let sentence = crate::diagnose(&rules, evidence).verdict.sentence;
        assert!(
            sentence.starts_with("62% of the busy CPU goes into kernel/ext4 (another"),
            "{sentence}"
        );
        assert!(sentence.contains("none of the known causes fits"), "{sentence}");
    }

    fn verdict_of(name: &str, text: &str) -> (String, &'static str) {
        let mut evidence = Evidence::default();
        read_bytes(&mut evidence, name, text.as_bytes());
        finish(&mut evidence);
        let rules = RuleSet::bundled().expect("the rules compile");
        let verdict = crate::diagnose(&rules, evidence).verdict;
        (verdict.sentence, verdict.kind.name())
    }

    #[test]
    fn a_stack_without_weight_has_a_place_too() {
        let stack = "\
[<0>] cv_wait_common+0xb2/0x140 [spl]
[<0>] dmu_objset_vendor_walk+0x106/0x1b0 [zfs]
[<0>] zfs_ioc_vendor+0x66/0x1030 [zfs]
[<0>] zfsdev_ioctl_common+0x57/0x710 [zfs]
";
        let (sentence, kind) = verdict_of("stack.txt", stack);
        assert_eq!(kind, "cause open", "{sentence}");
        assert!(sentence.starts_with("The only stack stands in objset"), "{sentence}");
        assert!(sentence.contains("where, not how much"), "{sentence}");
    }

    #[test]
    fn threads_that_are_busy_for_an_unknown_reason_are_said_to_be() {
        let top = "\
  PID USER      PR  NI    VIRT    RES    SHR S  %CPU %MEM     TIME+ COMMAND
  801 root      20   0       0      0      0 R  81.0  0.0  12:00.00 l2arc_feed
";
        let (sentence, kind) = verdict_of("top.txt", top);
        assert_eq!(kind, "not enough evidence", "{sentence}");
        assert!(sentence.starts_with("Threads for l2arc use 81% of one CPU"), "{sentence}");
    }

    #[test]
    fn of_a_calm_list_it_is_said_who_uses_most_and_that_it_is_little() {
        let top = "\
  PID USER      PR  NI    VIRT    RES    SHR S  %CPU %MEM     TIME+ COMMAND
  801 root      20   0       0      0      0 S   0.3  0.0   0:01.00 txg_sync
  901 root      20   0   90000   5000   4000 S   2.7  0.1   0:09.00 sshd
";
        let (sentence, kind) = verdict_of("top.txt", top);
        assert_eq!(kind, "not enough evidence", "{sentence}");
        let says = "Nobody on the list of threads uses much CPU: sshd most, with 2.7% of one CPU.";
        assert!(sentence.starts_with(says), "{sentence}");
    }
}
