//! The first sentence: a likely cause, otherwise the surest of the first three answers.
//!
//! A cause that is only possible never makes the sentence. It follows behind the sentence, with its
//! odds.

use super::pool_activity;
use super::weigh::{POSSIBLE, Weighed};
use crate::advise::Step;
use crate::answers::{Among, Answers, ClauseKind, Kind, LINE, State, Statement};
use crate::expression::Environment;
use crate::facts::ENOUGH_SAMPLES;
use crate::rule::{Role, Rule, SignKind};

/// The kind of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerdictKind {
    /// ZFS (or ogive) wastes CPU.
    Cause,
    /// ZFS uses CPU for work that was requested.
    NormalCost,
    /// ZFS is innocent.
    NotZfs,
    /// The CPU is not the problem.
    NotCpu,
    /// A program in user space uses the CPU.
    UserProcess,
    /// The kernel outside ZFS uses the CPU.
    Kernel,
    /// A fact is proven, and its cause is unknown.
    Open,
    /// The evidence is not enough.
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

/// Where the CPU goes, or where threads stand, in an answer without a cause.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The subsystem.
    pub name: &'static str,
    /// The evidence for it: `functions`, or `stacks` (a place without a share).
    pub by: &'static str,
    /// Percent of the busy CPU, from functions.
    pub percent: Option<f64>,
    /// Its description.
    pub sentence: String,
    /// The line that names it.
    pub(crate) line: Statement,
}

/// The first sentence, and the next command if the answer is open.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The kind of the answer.
    pub kind: VerdictKind,
    /// The label before the sentence, if the sentence does not show its kind: `Problem found. `
    pub label: &'static str,
    /// The sentence.
    pub sentence: String,
    /// The cause that it names, by the id of its rule.
    pub names: Option<String>,
    /// The next step, if the answer is open.
    pub step: Option<Step>,
    /// Where the CPU goes, in an answer without a cause.
    pub place: Option<Place>,
}

impl Verdict {
    fn new(kind: VerdictKind, sentence: String) -> Self {
        Self { kind, label: "", sentence, names: None, step: None, place: None }
    }

    /// The one command that would tell more.
    pub fn ask(&self) -> Option<&str> {
        self.step.as_ref().map(|step| step.run.as_str())
    }
}

/// A subsystem with less than this, percent of the busy CPU, is no answer.
const WORTH_A_PLACE_PERCENT: f64 = 15.0;
/// Below this percentage a share is not most of the busy CPU.
const MOST_OF_IT_PERCENT: f64 = 50.0;
/// The words if no input answers.
const NOTHING: &str = "nothing shows how busy the CPU is, who uses it, or whether ZFS does";

/// The verdict from the weighed rules, best first, and the first three answers.
pub(super) fn verdict(
    weighed: &[(&Rule, Weighed)],
    answers: &Answers,
    environment: &Environment,
) -> Verdict {
    let named = weighed.iter().find(|(_, one)| one.confidence >= POSSIBLE && !one.is_hint);
    if let Some((rule, best)) = named
        && best.confidence >= super::LIKELY
        && is_carried(rule, best, answers, environment)
    {
        return likely(rule, best, weighed, answers, environment);
    }
    let place = place(environment);
    let step = super::next_step(weighed, answers, environment);
    let line = answers.statement();
    // For an innocent, the line has all that is known.
    let shown = named.filter(|(rule, _)| rule.text.family != "innocent" || line.is_none());
    // A cost of CPU is impossible if the CPU is not the problem.
    let not_cpu = kind_of(answers) == VerdictKind::NotCpu;
    let shown = shown.filter(|(rule, _)| !(not_cpu && costs(rule)));
    let possible = shown.map(|(rule, best)| {
        let article = if rule.text.role == Role::Unknown { "Open" } else { "Possible" };
        format!(" {article}: {} ({:.0}%).", rule.text.title, best.confidence * 100.0)
    });
    let accused =
        named.is_some_and(|(rule, _)| VerdictKind::of(rule.text.role) == VerdictKind::Cause);
    // An ogive mount with no other finding than that it works is healthy.
    let well = named
        .is_some_and(|(rule, _)| rule.text.family == "ogive" && rule.text.role == Role::LegitWork);
    if let Some(line) = line {
        let kind = match kind_of(answers) {
            _ if well => VerdictKind::NormalCost,
            // A possible cause is not certain, and neither is its opposite.
            kind if accused && kind != VerdictKind::NotCpu => VerdictKind::Open.or(kind, answers),
            kind => kind,
        };
        let label = label(kind, answers, line.acquits());
        let (sentence, is_shown) = line.fitting(label, possible.as_deref().unwrap_or_default());
        let names = shown.filter(|_| is_shown).map(|(rule, _)| rule.text.id.clone());
        return Verdict { kind, label, sentence, names, step, place };
    }
    if let Some(possible) = possible {
        let cause = possible.trim();
        let whole = format!("{cause} Nothing shows how busy the CPU is, or who uses it.");
        let sentence = if whole.chars().count() <= LINE { whole } else { cause.to_owned() };
        let names = shown.map(|(rule, _)| rule.text.id.clone());
        return Verdict { names, step, place, ..Verdict::new(VerdictKind::Open, sentence) };
    }
    if let Some(place) = place {
        let (sentence, _) = place.line.fitting("", "");
        let place = Some(place);
        return Verdict { step, place, ..Verdict::new(VerdictKind::Open, sentence) };
    }
    let hinted = weighed.iter().any(|(_, one)| one.confidence >= POSSIBLE);
    Verdict { step, ..unanswered(hinted, answers, environment) }
}

/// Whether a rule is about used CPU.
fn costs(rule: &Rule) -> bool {
    matches!(rule.text.role, Role::Cause | Role::LegitWork) && rule.share.is_some()
}

/// Whether a likely cause is a problem here. It needs a machine that is busy or waits, or a line of
/// the log. A cause that costs CPU also needs samples, or figures of the measured time. A cost of
/// CPU is no answer where the machine waits for something else.
fn is_carried(rule: &Rule, best: &Weighed, answers: &Answers, environment: &Environment) -> bool {
    if rule.text.family == "ogive" {
        return true;
    }
    if rule.text.role != Role::Cause {
        return !costs(rule) || kind_of(answers) != VerdictKind::NotCpu;
    }
    let is_idle = answers.cpu.state == State::Idle && !answers.cpu.since_boot();
    if !costs(rule) {
        return !is_idle || best.evidence.iter().any(|line| line.kind == SignKind::Log);
    }
    let few = environment.facts().profile_samples().is_ok_and(|count| count < ENOUGH_SAMPLES);
    let counted = best
        .evidence
        .iter()
        .any(|line| matches!(line.kind, SignKind::Counter | SignKind::Lock | SignKind::Log));
    !is_idle && (!few || counted)
}

/// The verdict if none of the three answers is known and no cause is named.
fn unanswered(hinted: bool, answers: &Answers, environment: &Environment) -> Verdict {
    let facts = environment.facts();
    let inputs = &facts.evidence().inputs;
    let read = inputs.iter().any(|input| !input.formats.is_empty() || input.facts > 0);
    let troubled = inputs.iter().find(|_| !read).and_then(|input| {
        Some(format!("{} could not be read: {}", input.name, input.trouble.as_ref()?))
    });
    let unread: usize = inputs.iter().map(|input| input.unread).sum();
    let (kind, begins) = match read && hinted {
        true => (VerdictKind::Open, "The cause is open"),
        false => (VerdictKind::Insufficient, "Not enough evidence"),
    };
    let most = answers.users.first().filter(|_| kind == VerdictKind::Insufficient);
    let line = |open: &str| Statement::plain(format!("{begins}: {open}"));
    let statement = match (most, troubled, unread) {
        (Some(user), ..) => {
            let most = format!("{} uses most of what is listed, {}", user.name, user.used());
            line(&most).and(ClauseKind::NotShown, "nothing shows how busy the machine is")
        }
        (None, Some(trouble), _) => line(&trouble),
        (None, None, 1) if !read => line("no known tool prints the only line"),
        (None, None, lines) if !read && lines > 0 => {
            line(&format!("no known tool prints any of the {lines} lines"))
        }
        (None, None, 0) => line(NOTHING),
        (None, None, lines) => {
            let lines = ogive_text::counted(lines, "line was", "lines were");
            line(NOTHING).and(ClauseKind::NotShown, format!("{lines} not read"))
        }
    };
    // If only a working pool is shown, the verdict has at least that.
    let runs = pool_activity::running(facts).into_iter().next();
    let runs = runs.map(|one| format!(" But {}.", one.what)).unwrap_or_default();
    Verdict::new(kind, statement.fitting("", &runs).0)
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
    let written = rule.verdict.write(environment).ok();
    // A sentence with a gap is not used.
    let sentence = written.filter(|written| written.is_whole).map(|written| written.text);
    let kind = VerdictKind::of(rule.text.role);
    // The answers have more about an innocent than its rule: the real user, and its CPU.
    let line = answers.statement().filter(|_| {
        let innocent = rule.text.family == "innocent" && kind != VerdictKind::NormalCost;
        // The rule has the wait if the answers do not know it.
        let waits = kind == VerdictKind::NotCpu && kind_of(answers) != VerdictKind::NotCpu;
        sentence.is_none() || innocent && !waits || is_smaller(kind, best, answers)
    });
    let label = label(kind, answers, line.as_ref().is_some_and(Statement::acquits));
    let sentence = match line {
        Some(line) => line.fitting(label, "").0,
        None => sentence.unwrap_or_else(|| rule.text.title.clone()),
    };
    let step = (kind == VerdictKind::Open)
        .then(|| super::next_step(weighed, answers, environment))
        .flatten();
    Verdict { label, names: Some(rule.text.id.clone()), step, ..Verdict::new(kind, sentence) }
}

/// The label before the sentence of a kind. `says` means that the sentence itself acquits ZFS. The
/// label acquits ZFS only where that is known and was the question.
fn label(kind: VerdictKind, answers: &Answers, says: bool) -> &'static str {
    let asked = answers.zfs.among == Among::No && answers.zfs.is_hinted;
    match kind {
        VerdictKind::Cause => "Problem found. ",
        VerdictKind::NormalCost => "No fault, a normal cost. ",
        VerdictKind::NotZfs | VerdictKind::Kernel if asked && !says => "Not ZFS. ",
        VerdictKind::NotCpu if !says => "Not the CPU. ",
        _ => "",
    }
}

/// Whether a program uses more than a normal cost, which then does not answer where the CPU goes.
fn is_smaller(kind: VerdictKind, best: &Weighed, answers: &Answers) -> bool {
    kind == VerdictKind::NormalCost
        && best.share_percent.is_some_and(|share| share < MOST_OF_IT_PERCENT)
        && answers.users.first().is_some_and(|user| user.kind == Kind::Program)
        && answers.cpu.state == State::Busy
}

/// The kind of an answer from the three answers alone.
fn kind_of(answers: &Answers) -> VerdictKind {
    let first = answers.users.first().map(|user| user.kind);
    match (answers.cpu.state, answers.zfs.among) {
        (State::Waiting, _) if !answers.cpu.is_known => VerdictKind::Open,
        // Old use proves nothing about now.
        (State::Idle, _) if answers.cpu.since_boot() => VerdictKind::Open,
        (State::Waiting | State::Idle, _) => VerdictKind::NotCpu,
        (_, Among::No) => match first {
            Some(Kind::Program) => VerdictKind::UserProcess,
            Some(Kind::Kernel | Kind::Interrupts) => VerdictKind::Kernel,
            _ => VerdictKind::NotZfs,
        },
        _ => VerdictKind::Open,
    }
}

/// Where the CPU goes although no known cause fits, or where threads stand.
fn place(environment: &Environment) -> Option<Place> {
    let facts = environment.facts();
    let enough = facts.profile_samples().is_ok_and(|samples| samples >= ENOUGH_SAMPLES)
        || facts.profile_samples().is_err();
    let top = facts.top_subsystem().ok();
    if let Some(top) = top.filter(|top| enough && top.percent >= WORTH_A_PLACE_PERCENT) {
        let text = |does: &str| {
            format!(
                "{:.0}% of the busy CPU goes into {}{does}, and none of the known causes fits",
                top.percent, top.name
            )
        };
        let line =
            Statement::new(text(&format!(" ({}; most in {})", top.does, top.function)), text(""));
        let (sentence, percent) = (line.whole(), Some(top.percent));
        return Some(Place { name: top.name, by: "functions", percent, sentence, line });
    }
    let top = facts.top_standing()?;
    let stand = match top.all {
        1 => format!("The only stack stands in {}", top.name),
        all => format!("{} of {all} stacks stand in {}", top.threads, top.name),
    };
    let text = |does: &str| format!("{stand}{does}, and none of the known causes fits");
    let line = Statement::new(text(&format!(" ({}; in {})", top.does, top.function)), text(""));
    let sentence = format!("{} It shows where, not how much.", line.whole());
    Some(Place { name: top.name, by: "stacks", percent: None, sentence, line })
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
    fn busy_threads_without_a_known_reason_are_reported() {
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
    fn a_calm_list_names_its_largest_user_as_little() {
        let top = "\
  PID USER      PR  NI    VIRT    RES    SHR S  %CPU %MEM     TIME+ COMMAND
  801 root      20   0       0      0      0 S   0.3  0.0   0:01.00 txg_sync
  901 root      20   0   90000   5000   4000 S   2.7  0.1   0:09.00 sshd
";
        let (sentence, kind) = verdict_of("top.txt", top);
        assert_eq!(kind, "not enough evidence", "{sentence}");
        let says = "Not enough evidence: sshd uses most of what is listed, 0.03 CPUs";
        assert!(sentence.starts_with(says), "{sentence}");
    }
}
