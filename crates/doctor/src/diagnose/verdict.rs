//! The first sentence: of a cause that is likely, or else the surest of the first three answers.
//!
//! A cause that is only possible never makes the sentence; it stands behind it, with its odds.

use std::sync::LazyLock;

use regex::Regex;

use super::looked_for;
use super::running;
use super::step::{self, Step};
use super::weigh::{POSSIBLE, Weighed};
use crate::answers::{Among, Answers, Kind, State};
use crate::expression::Environment;
use crate::rule::{Role, Rule};

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
    /// The subsystem.
    pub name: &'static str,
    /// What it is seen by: `functions` or `stacks` (where, not how much).
    pub by: &'static str,
    /// Percent of the busy CPU, by functions.
    pub percent: Option<f64>,
    /// It in words, with the facts that would tell more.
    pub sentence: String,
}

/// The first sentence, and what to run where it is not the last word.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// What kind of answer it is.
    pub kind: VerdictKind,
    /// The sentence.
    pub sentence: String,
    /// What would tell more, where the answer is not the last word.
    pub step: Option<Step>,
    /// Where it goes, in an answer that names no cause.
    pub place: Option<Place>,
}

impl Verdict {
    /// The one command that would tell more.
    pub fn ask(&self) -> Option<&str> {
        self.step.as_ref().map(|step| step.run.as_str())
    }
}

/// A subsystem with less than this, percent of the busy CPU, is no answer.
const WORTH_A_PLACE_PERCENT: f64 = 15.0;
/// Nor is one of fewer busy samples.
const FEWEST_SAMPLES: f64 = 60.0;
/// What stands in brackets and is more than a name.
static ASIDE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r" \([^()]* [^()]*\)").expect("a constant pattern"));
/// The first line is no longer than so many characters where it can be.
const LINE: usize = 140;
/// Nor is it cut to less than says anything.
const LEAST_LINE: usize = 30;

/// What is said where nothing that was understood tells.
const NOTHING: &str =
    "what was understood does not show how busy the CPU is, who uses it, or whether ZFS does";

/// The verdict over the weighed rules, best first, and the first three answers.
pub(super) fn verdict(
    weighed: &[(&Rule, Weighed)],
    answers: &Answers,
    environment: &Environment,
) -> Verdict {
    let facts = environment.facts();
    let named = weighed.iter().find(|(_, one)| one.confidence >= POSSIBLE && !one.is_hint);
    if let Some((rule, best)) = named
        && best.confidence >= super::LIKELY
    {
        return likely(rule, best, weighed, answers, environment);
    }
    let place = place(weighed, environment);
    let step = step::step(weighed, answers, environment);
    // Of the innocent the line says all that is known.
    let told = named.filter(|(rule, _)| rule.text.family != "innocent" || answers.line().is_none());
    // Nor is a cost of CPU possible where it is not the CPU.
    let not_cpu = kind_of(answers) == VerdictKind::NotCpu;
    let costs = |rule: &Rule| {
        matches!(rule.text.role, Role::Cause | Role::LegitWork) && rule.share.is_some()
    };
    let told = told.filter(|(rule, _)| !(not_cpu && costs(rule)));
    let possible = told.map(|(rule, best)| {
        let article = if rule.text.role == Role::Unknown { "Open" } else { "Possible" };
        format!(" {article}: {} ({:.0}%).", rule.text.title, best.confidence * 100.0)
    });
    let accused =
        named.is_some_and(|(rule, _)| VerdictKind::of(rule.text.role) == VerdictKind::Cause);
    // A mount of ogive's of which no more is found than that it works is well.
    let well = named
        .is_some_and(|(rule, _)| rule.text.family == "ogive" && rule.text.role == Role::LegitWork);
    if let Some(line) = answers.line() {
        let kind = match kind_of(answers) {
            _ if well => VerdictKind::NormalCost,
            // What is possible is not sure, and neither is its contrary.
            kind if accused && kind != VerdictKind::NotCpu => VerdictKind::Open.or(kind, answers),
            kind => kind,
        };
        let sentence = fitting(&line, possible.as_deref().unwrap_or_default());
        return Verdict { kind, sentence, step, place };
    }
    if let Some(possible) = possible {
        let cause = possible.trim();
        let whole = format!("{cause} Nothing shows how busy the CPU is, or who uses it.");
        let sentence = if whole.chars().count() <= LINE { whole } else { cause.to_owned() };
        return Verdict { kind: VerdictKind::Open, sentence, step, place };
    }
    if let Some(place) = place {
        // What would tell more stands below.
        let end = place.sentence.find("fits.").map_or(place.sentence.len(), |at| at + 5);
        let sentence = fitting(&place.sentence[..end], "");
        return Verdict { kind: VerdictKind::Open, sentence, step, place: Some(place) };
    }
    let most = answers.users.first().map(|user| {
        format!(
            "of those listed {} uses most, {}, and nothing shows how busy the machine is",
            user.name,
            user.used()
        )
    });
    let inputs = &facts.evidence().inputs;
    let read = inputs.iter().any(|input| !input.formats.is_empty() || input.facts > 0);
    let unread = inputs.iter().find(|_| !read).and_then(|input| {
        Some(format!("{} could not be read: {}", input.name, input.trouble.as_ref()?))
    });
    let lost: usize = inputs.iter().map(|input| input.unread).sum();
    let open = unread.unwrap_or_else(|| match lost {
        1 if !read => "the only line is no tool's output".to_owned(),
        lost if !read && lost > 0 => format!("none of the {lost} lines is a tool's output"),
        0 => "nothing shows how busy the CPU is, who uses it, or whether ZFS does".to_owned(),
        1 => format!("{NOTHING} (1 line was not read)"),
        _ => format!("{NOTHING} ({lost} lines were not read)"),
    });
    // Whoever shows nothing but a pool at work is told at least that.
    let runs = running::running(facts).into_iter().next().map(|one| {
        let short = one.text.split(',').next().unwrap_or("").to_owned();
        format!(" But {short}.")
    });
    let hinted = weighed.iter().any(|(_, one)| one.confidence >= POSSIBLE);
    let runs = runs.unwrap_or_default();
    if read && hinted {
        let sentence = format!("The cause is open: {open}.{runs}");
        return Verdict { kind: VerdictKind::Open, sentence, step, place: None };
    }
    let sentence = format!("Not enough evidence: {}.{runs}", most.unwrap_or(open));
    Verdict { kind: VerdictKind::Insufficient, sentence, step, place: None }
}

/// The line with what is possible, in a length that is taken in at a glance. What does not fit is
/// left to the lines below, where all of it stands: first what was not shown, then the figures of
/// what is said in words, asides, all behind the first semicolon, and last what is only possible.
fn fitting(line: &str, possible: &str) -> String {
    let body = line.strip_suffix('.').unwrap_or(line);
    let clauses = clauses(body);
    let head = clauses[0];
    let shown = || clauses.iter().copied().filter(|clause| !clause.contains("not shown"));
    let short = shown().map(|clause| match clause.split_once(" is among them: ") {
        Some((name, _)) => format!("{name} is among them"),
        None => clause.to_owned(),
    });
    let short = short.collect::<Vec<_>>().join("; ");
    let forms = [
        body.to_owned(),
        shown().collect::<Vec<_>>().join("; "),
        short.clone(),
        ASIDE.replace_all(&short, "").into_owned(),
        ASIDE.replace_all(head, "").into_owned(),
    ];
    let forms = forms.iter().filter(|form| form.chars().count() >= LEAST_LINE);
    let full = forms.clone().map(|form| format!("{form}.{possible}"));
    let bare = forms.map(|form| format!("{form}."));
    let mut all = full.chain(bare);
    all.find(|text| text.chars().count() <= LINE)
        .unwrap_or_else(|| format!("{}.", ASIDE.replace_all(head, "")))
}

/// The parts of a sentence between semicolons that stand in no brackets.
fn clauses(text: &str) -> Vec<&str> {
    let (mut all, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ';' if depth == 0 && text[at + 1..].starts_with(' ') => {
                all.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    all.push(text[start..].trim());
    all
}

impl VerdictKind {
    /// This kind, unless the answers exclude ZFS.
    fn or(self, other: Self, answers: &Answers) -> Self {
        if answers.zfs.among == Among::No { other } else { self }
    }
}

/// The verdict of a rule that is likely.
fn likely(
    rule: &Rule,
    best: &Weighed,
    weighed: &[(&Rule, Weighed)],
    answers: &Answers,
    environment: &Environment,
) -> Verdict {
    environment.set_share(best.share_percent);
    let sentence = rule.verdict.write(environment).map(|(text, _)| text).unwrap_or_default();
    let kind = VerdictKind::of(rule.text.role);
    let gap = sentence.is_empty() || sentence.contains('?');
    // Of the innocent the answers tell more than their rules: who it is instead, and how much.
    let line = answers.line().filter(|line| {
        let innocent = rule.text.family == "innocent" && kind != VerdictKind::NormalCost;
        // That it is not ZFS is not said where ZFS is among them.
        let among = answers.zfs.among == Among::Yes;
        gap || innocent && (among || line.starts_with("Not "))
    });
    let sentence = match line {
        Some(line) => fitting(&line, ""),
        // A sentence with a gap in it is none.
        None if gap => rule.text.title.clone(),
        None => sentence,
    };
    let step =
        (kind == VerdictKind::Open).then(|| step::step(weighed, answers, environment)).flatten();
    Verdict { kind, sentence, step, place: None }
}

/// The kind of an answer that stands on the three answers alone.
fn kind_of(answers: &Answers) -> VerdictKind {
    let first = answers.users.first().map(|user| user.kind);
    match (answers.cpu.state, answers.zfs.among) {
        (State::Waiting, _) if !answers.cpu.is_known => VerdictKind::Open,
        // What was long ago says nothing of now.
        (State::Idle, _) if answers.cpu.since_boot => VerdictKind::Open,
        (State::Waiting | State::Idle, _) => VerdictKind::NotCpu,
        (_, Among::No) => match first {
            Some(Kind::Program) => VerdictKind::UserProcess,
            Some(Kind::Kernel | Kind::Interrupts) => VerdictKind::Kernel,
            _ => VerdictKind::NotZfs,
        },
        _ => VerdictKind::Open,
    }
}

/// Where the CPU goes although no known cause fits, or where threads stand, and which facts would
/// tell more.
fn place(weighed: &[(&Rule, Weighed)], environment: &Environment) -> Option<Place> {
    let facts = environment.facts();
    let enough = facts.profile_samples().is_ok_and(|samples| samples >= FEWEST_SAMPLES)
        || facts.profile_samples().is_err();
    let top = facts.top_subsystem().ok();
    if let Some(top) = top.filter(|top| enough && top.percent >= WORTH_A_PLACE_PERCENT) {
        let sentence = format!(
            "{:.0}% of the busy CPU goes into {} ({}; most in {}), and none of the known causes \
             fits.{}",
            top.percent,
            top.name,
            top.does,
            top.function,
            looked_for::would_tell(weighed, top.name, facts)
        );
        let percent = Some(top.percent);
        return Some(Place { name: top.name, by: "functions", percent, sentence });
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
        looked_for::would_tell(weighed, top.name, facts)
    );
    Some(Place { name: top.name, by: "stacks", percent: None, sentence })
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
        let verdict = crate::diagnose(&rules, evidence).verdict;
        let sentence = verdict.place.expect("it has a place").sentence;
        assert!(
            sentence.starts_with("62% of the busy CPU goes into kernel/ext4 (another"),
            "{sentence}"
        );
        assert!(sentence.contains("none of the known causes fits"), "{sentence}");
    }

    #[test]
    fn the_line_loses_what_is_least_first() {
        let possible = " Possible: a scrub or resilver is running (50%).";
        let line = |figures: &str| {
            format!(
                "60% of the busy samples go to dd; how busy the machine is was not shown; ZFS is \
                 among them: {figures}."
            )
        };
        let all = line("all of it");
        assert_eq!(super::fitting(&all, ""), all);
        assert_eq!(
            super::fitting(&all, possible),
            format!("60% of the busy samples go to dd; ZFS is among them: all of it.{possible}")
        );
        let long = line("100% of the busy samples are in its threads or functions");
        assert_eq!(
            super::fitting(&long, possible),
            format!("60% of the busy samples go to dd; ZFS is among them.{possible}")
        );
        assert_eq!(
            super::fitting(&long, &possible.repeat(3)),
            "60% of the busy samples go to dd; ZFS is among them: 100% of the busy samples are in \
             its threads or functions."
        );
    }

    fn verdict_of(name: &str, text: &str) -> (String, &'static str) {
        let mut evidence = Evidence::default();
        read_bytes(&mut evidence, name, text.as_bytes());
        finish(&mut evidence);
        let rules = RuleSet::bundled().expect("the rules compile");
        let verdict = crate::diagnose(&rules, evidence).verdict;
        (verdict.sentence, verdict.kind.name())
    }

    fn place_of(name: &str, text: &str) -> String {
        let mut evidence = Evidence::default();
        read_bytes(&mut evidence, name, text.as_bytes());
        finish(&mut evidence);
        let rules = RuleSet::bundled().expect("the rules compile");
        let place = crate::diagnose(&rules, evidence).verdict.place;
        place.map(|place| place.sentence).unwrap_or_default()
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
        assert!(sentence.starts_with("The threads whose stacks are shown sleep"), "{sentence}");
        let sentence = place_of("stack.txt", stack);
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
        assert_eq!(kind, "cause open", "{sentence}");
        let says = "ZFS uses the CPU: l2arc_feed (fills the cache device) with 0.81 CPUs.";
        assert_eq!(sentence, says);
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
        let says = "Not enough evidence: of those listed sshd uses most, 0.03 CPUs";
        assert!(sentence.starts_with(says), "{sentence}");
    }
}
