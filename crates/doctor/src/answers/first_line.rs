//! The surest of the three answers as one line, for an operator on call at night.
//!
//! The line states only what is shown, with no more certainty than the evidence has. It says "not
//! ZFS" only if ZFS is loaded or was the question. Names stay as the system writes them.

use super::cpu::{Cpu, FullCpu, Part, State};
use super::range::Of;
use super::statement::{Clause, ClauseKind, Statement};
use super::users::{Kind, User, Users};
use super::zfs::{Among, is_in_user_space};
use super::{Answers, cpus, percent, spent};

/// Up to this number of samples, the sentence has the number.
const FEW_SAMPLES: f64 = 200.0;

/// The line, if anything is known.
pub(super) fn line(answers: &Answers) -> Option<Statement> {
    let cpu = &answers.cpu;
    let (line, acquits) = match cpu.state {
        State::Waiting => (Some(waiting(answers)), cpu.is_known),
        State::Idle => (idle(answers), !cpu.since_boot()),
        State::Busy | State::Some => (Some(busy(answers)), false),
        State::Unknown => (unknown(answers), false),
    };
    line.map(|line| line.acquitting(acquits || !not(answers).is_empty()))
}

fn clause(kind: ClauseKind, text: impl Into<String>) -> Clause {
    let text = text.into();
    Clause { kind, brief: text.clone(), text }
}

/// "Not ZFS: " where that is known and was the question.
fn not(answers: &Answers) -> String {
    let zfs = &answers.zfs;
    let is_not = zfs.among == Among::No && zfs.is_hinted;
    if is_not { format!("Not {}: ", zfs.name) } else { String::new() }
}

fn idle(answers: &Answers) -> Option<Statement> {
    let cpu = &answers.cpu;
    let calm = |words: Option<String>| words.unwrap_or_else(|| cpu.calm_words());
    // Old use proves nothing about now.
    if cpu.since_boot() {
        let listed = answers.users.first().and_then(|_| unknown(answers));
        return listed.or_else(|| {
            let (text, brief) = (calm(cpu.busy_words()), calm(cpu.busy_words_in_brief()));
            let not_shown = "how busy it is now is not shown";
            Some(Statement::new(text, brief).and(ClauseKind::NotShown, not_shown))
        });
    }
    // The load matters here, not the user of the little CPU.
    if let (Some(load), Some(busy)) = (&cpu.load, cpu.busy_percent()) {
        return Some(Statement::plain(format!(
            "Not the CPU: {} is busy, and {load}",
            percent(busy)
        )));
    }
    let most = answers.users.first().filter(|user| is_most(user, cpu));
    let most = most.map(|user| format!(", most of it {}", with(user))).unwrap_or_default();
    let text = |words| format!("Not the CPU: {}{most}", calm(words));
    Some(Statement::new(text(cpu.busy_words()), text(cpu.busy_words_in_brief())))
}

/// Whether one user clearly has most of the busy CPU.
fn is_most(user: &User, cpu: &Cpu) -> bool {
    let own = user.used.map(|used| (used.of, used.middle()));
    let half = match (own, cpu.busy_cpus(), cpu.busy_percent()) {
        (Some((Of::Cpus, own)), Some(busy), _) => own >= 0.6 * busy,
        (Some((Of::PercentOfMachine, own)), _, Some(busy)) => own >= 0.6 * busy,
        (Some((Of::Cpus, own)), None, Some(_)) => own >= 0.1,
        _ => user.size() >= 10.0,
    };
    half && user.kind != Kind::NotShown
}

/// The line if nothing shows how busy the machine is.
fn unknown(answers: &Answers) -> Option<Statement> {
    let Answers { users, zfs, .. } = answers;
    let first = users.first();
    if zfs.among == Among::No
        && zfs.sampled.is_none()
        && first.is_none_or(|user| user.size() < 20.0)
    {
        let line = Statement::plain(format!("Not {}: {}", zfs.name, zfs.because));
        return Some(line.and_all(first.map(|user| {
            let most = format!("most of what is listed is {}: {}", user.described(), user.used());
            clause(ClauseKind::Aside, most)
        })));
    }
    // A little use on a list with unknown gaps is no answer.
    let first = first.filter(|user| !user.is_little() || zfs.among != Among::Unknown)?;
    let cut = zfs.sampled.is_some_and(|part| part.most - part.least >= 50.0);
    let known = match not(answers) {
        // The rest of a table that was cut may belong to any user.
        known if cut && !known.is_empty() => format!("Nothing listed is {}'s: ", zfs.name),
        known => known,
    };
    let name = first.described();
    let name = if known.is_empty() { capital(&name) } else { name };
    let not_shown = |text: &str| clause(ClauseKind::NotShown, text);
    if first.used.is_none() {
        let line = Statement::plain(format!("{known}{name} is named"));
        return Some(line.and_all([not_shown("how much CPU it uses was not shown")]));
    }
    let line = if users.is_of_samples() {
        let few = users.samples.filter(|count| *count < FEW_SAMPLES);
        let few = few.map(|count| format!("only {count:.0} ")).unwrap_or_default();
        let part = percent(first.samples_percent().unwrap_or(0.0));
        let text = format!("{known}{part} of the {few}busy samples go to {}", first.described());
        Statement::new(format!("{text}{}", does(first)), text)
            .and_all([not_shown("how busy the machine is was not shown")])
    } else if let Some(used) = first.part(Of::Seconds) {
        let used = spent(used.middle());
        let text = format!("{known}{name} used most of what is listed since it began, {used}");
        Statement::plain(text).and_all([not_shown("whether it uses the CPU now was not shown")])
    } else {
        let (uses, used, life) = (uses(first), first.used(), over_life(users, first));
        Statement::plain(format!("{known}{name} {uses} most of what is listed, {used}{life}"))
            .and_all([not_shown("whether the machine is busy was not shown")])
    };
    Some(line.and_all(whether(answers)))
}

fn with(user: &User) -> String {
    match user.kind {
        Kind::Interrupts => format!("interrupts with {}", user.used()),
        _ => format!("{} with {}", user.described(), user.used()),
    }
}

/// The clause about ZFS.
fn whether(answers: &Answers) -> Option<Clause> {
    let zfs = &answers.zfs;
    let not_shown = |text: String| Some(clause(ClauseKind::NotShown, text));
    match zfs.among {
        Among::No => None,
        Among::Yes => {
            let brief = format!("{} is among them", zfs.name);
            let text = format!("{brief}: {}", zfs.because);
            Some(Clause { kind: ClauseKind::Among, text, brief })
        }
        // If the inputs do not mention ZFS, the line does not begin with it.
        Among::Unknown if !zfs.is_hinted => None,
        Among::Unknown if answers.users.first().is_some_and(is_in_user_space) => not_shown(
            format!("it works in user space, and whether {} also uses CPU is not shown", zfs.name),
        ),
        Among::Unknown => not_shown(format!("whether {} is behind it is not shown", zfs.name)),
    }
}

fn waiting(answers: &Answers) -> Statement {
    let Answers { cpu, users, zfs } = answers;
    let what = cpu.waits_for.map_or_else(String::new, |wait| format!(" for {}", wait.name()));
    let proof = cpu.proof.clone().unwrap_or_default();
    let own = (zfs.among == Among::Yes).then(|| {
        let brief = format!("part of that is {}", zfs.name);
        Clause { kind: ClauseKind::Among, text: format!("{brief}: {}", zfs.because), brief }
    });
    // One waiting command, or an array that is rebuilt, is not the whole machine.
    if !cpu.is_known {
        return Statement::plain(capital_first(&proof))
            .and(ClauseKind::NotShown, "how busy the machine is was not shown")
            .and_all(own);
    }
    let most = users
        .first()
        .filter(|user| user.kind != Kind::NotShown && user.cpus().is_some_and(|count| count >= 0.3))
        .map(|user| format!("most with {}", user.described()));
    let busy = match (cpu.busy_percent(), most) {
        (Some(busy), Some(most)) => Some(format!("{} is busy, {most}", percent(busy))),
        (Some(busy), None) => Some(format!("{} is busy", percent(busy))),
        (None, most) => most,
    };
    let brief = format!("Not the CPU: it waits{what}");
    Statement::new(format!("{brief} ({proof})"), brief)
        .and_all(busy.map(|busy| clause(ClauseKind::Aside, busy)))
        .and_all(own)
}

/// The line of a machine that is busy, all of it or in part.
fn busy(answers: &Answers) -> Statement {
    let Answers { cpu, users, zfs } = answers;
    let listed = users
        .list
        .iter()
        .any(|user| !matches!(user.kind, Kind::NotShown | Kind::Interrupts | Kind::Stolen));
    // A user of almost nothing on a busy machine is no answer either.
    let busy = cpu.busy_percent().is_some_and(|busy| busy >= 30.0);
    let explains =
        |user: &&User| (listed || user.kind != Kind::NotShown) && !(busy && users.is_little());
    let Some(first) = users.first().filter(explains) else {
        return by_unknown(answers);
    };
    // One CPU full of interrupts is invisible among many CPUs.
    if let Some(FullCpu { name, most: Some(Part::Interrupts), percent: value }) = &cpu.full
        && first.kind != Kind::Zfs
        && first.cpus().is_none_or(|count| count < 0.9)
    {
        let part = percent(*value);
        return Statement::plain(format!(
            "CPU {name} is full of interrupts ({part} of it), and other CPUs have room"
        ))
        .and_all(not_it(answers).or_else(|| whether(answers)));
    }
    if first.used.is_none() {
        let proof = cpu.lockup_words().map(|words| format!(": {words}")).unwrap_or_default();
        let name = capital(&first.described());
        let text = |does: &str| format!("{name}{does} keeps the CPU busy{proof}");
        return Statement::new(text(&does(first)), text(""))
            .and_all(whether(answers).filter(|_| zfs.among != Among::Yes));
    }
    by(first, answers)
}

/// Busy, without a known user.
fn by_unknown(answers: &Answers) -> Statement {
    let cpu = &answers.cpu;
    let full = cpu.full.as_ref();
    let full = full.map(|full| format!("CPU {} is full ({})", full.name, full.words()));
    let full = full.or_else(|| cpu.lockup_words().map(|words| capital_first(&words)));
    let head = |busy: Option<String>| {
        let full = full.clone();
        let busy = if cpu.state == State::Busy { busy.or(full) } else { full.or(busy) };
        busy.unwrap_or_else(|| "The CPU is busy".to_owned())
    };
    Statement::new(head(cpu.busy_words()), head(cpu.busy_words_in_brief()))
        .and_all(not_it(answers))
        .and(ClauseKind::Aside, "its users are not shown")
}

/// Busy, mostly with one user.
fn by(first: &User, answers: &Answers) -> Statement {
    let Answers { cpu, users, zfs } = answers;
    let head = |does: &str| head_of(first, answers, does);
    let waits = cpu.waits_for.filter(|_| cpu.iowait_percent.is_some_and(|value| value >= 20.0));
    let waits =
        waits.map(|wait| clause(ClauseKind::Aside, format!("it also waits for {}", wait.name())));
    let second = match first.kind {
        Kind::Interrupts => second_part(users, Kind::Stolen, first)
            .map(|stolen| format!("{stolen} are stolen by the hypervisor")),
        Kind::Stolen => second_part(users, Kind::Interrupts, first)
            .map(|part| format!("interrupts take {part}")),
        _ => None,
    };
    // A name of ZFS shows the owner.
    let is_named = zfs.among == Among::Yes
        && (first.kind == Kind::Zfs || first.name == zfs.name || outweighs(first, answers));
    Statement::new(head(&does(first)), head(""))
        .and_all(second.map(|text| clause(ClauseKind::Aside, text)))
        .and_all(whether(answers).filter(|_| !is_named))
        .and_all(waits)
}

/// Whether ZFS's threads together use more than the first other user.
fn outweighs(first: &User, answers: &Answers) -> bool {
    let own = answers.zfs.listed.zip(first.used).filter(|(own, first)| own.of == first.of);
    first.kind != Kind::Zfs && own.is_some_and(|(own, first)| own.least >= first.middle())
}

/// The busy users, and their CPU.
fn head_of(first: &User, answers: &Answers, does: &str) -> String {
    let Answers { cpu, users, zfs } = answers;
    let of = match cpu.cpus {
        Some(count) if count >= 2.0 && first.cpus().is_some() && !cpu.cpus_by_figures => {
            format!(" of {count:.0}")
        }
        _ => String::new(),
    };
    let used = format!("{}{of}{}", first.used(), over_life(users, first));
    let not = not(answers);
    let name = first.described();
    match (zfs.among, first.kind) {
        (_, Kind::Interrupts) if not.is_empty() => format!("Interrupts take {used}"),
        (_, Kind::Interrupts) => format!("{not}interrupts take {used}"),
        (_, Kind::Stolen) => format!(
            "{not}{used} are stolen: the hypervisor withholds them, for other machines or by a limit"
        ),
        (_, Kind::NotShown) => {
            let shown = match (cpu.busy_cpus(), first.cpus()) {
                (Some(busy), Some(rest)) => cpus((busy - rest).max(0.0)),
                _ => {
                    let rest = first.part(Of::PercentOfMachine).map_or(0.0, |used| used.middle());
                    percent(cpu.busy_percent().unwrap_or(0.0) - rest)
                }
            };
            let busy = cpu.busy_words().unwrap_or_else(|| "the CPU is busy".to_owned());
            format!("{not}{busy}, and the list shows only {shown} of it")
        }
        (Among::Yes, Kind::Zfs) => {
            format!("{} uses the CPU: {}{does} with {used}", zfs.name, first.name)
        }
        (Among::Yes, _) if outweighs(first, answers) => {
            format!("{} uses the CPU: {}", zfs.name, zfs.because)
        }
        (Among::No, _) if !not.is_empty() => format!("{not}it is {name}{does}, with {used}"),
        (Among::Yes, _) if first.name != zfs.name => {
            format!("{}{does} {} most, {used}", capital(&name), uses(first))
        }
        _ => format!("{}{does} {} {used}", capital(&name), uses(first)),
    }
}

/// The use of a second part that is about as large as the first.
fn second_part(users: &Users, kind: Kind, first: &User) -> Option<String> {
    let other = users.list.iter().find(|user| user.kind == kind)?;
    (other.size() >= 0.5 * first.size()).then(|| other.used())
}

/// The verb for the user.
fn uses(user: &User) -> &'static str {
    if user.is_several() { "use" } else { "uses" }
}

/// The words for a mean over lives.
fn over_life(users: &Users, first: &User) -> &'static str {
    match (users.over_life(), first.rows > 1) {
        (false, _) => "",
        (true, false) => ", as a mean over its life",
        (true, true) => ", as means over their lives",
    }
}

/// "It is not ZFS", where that is known and was the question.
fn not_it(answers: &Answers) -> Option<Clause> {
    let zfs = &answers.zfs;
    let is_not = zfs.among == Among::No && zfs.is_hinted;
    is_not.then(|| clause(ClauseKind::Aside, format!("it is not {}", zfs.name)))
}

fn does(user: &User) -> String {
    user.does.map(|does| format!(" ({does})")).unwrap_or_default()
}

fn capital_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Names of programs keep their letters; only the sentence's own articles change.
fn capital(text: &str) -> String {
    let is_ours = ["the ", "a "].iter().any(|article| text.starts_with(article));
    if is_ours { capital_first(text) } else { text.to_owned() }
}
