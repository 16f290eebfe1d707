//! The next step: one command for this system, with the meaning of each outcome.
//!
//! A near cause asks for the probe that would decide it. Otherwise the first open one of the three
//! answers asks. A command with output in the evidence is not asked for again.

use super::host_probe;
use super::slots::{self, Names};
use super::system;
use crate::answers::{Among, Answers, Kind, Part, State, Wait};
use crate::expression::Environment;
use crate::facts::Facts;
use crate::rule::{Probe, Question, Role, Rule, SignKind, probes};

/// A command and the meaning of its outcomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The command.
    pub run: String,
    /// The meaning of each outcome, as sentences.
    pub outcomes: Vec<String>,
}

/// The cause to ask about next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Near<'a> {
    /// Its rule.
    pub(crate) rule: &'a Rule,
    /// Its open signs, by place, strongest first.
    pub(crate) open: &'a [usize],
}

/// The most signs that are named for a cause.
const MAX_SIGNS: usize = 2;

/// The next step, if one would tell more.
pub(crate) fn step(
    near: Option<Near<'_>>,
    answers: &Answers,
    environment: &Environment,
) -> Option<Step> {
    let facts = environment.facts();
    if let Some(near) = near {
        let rule = near.rule;
        let asked = host_probe::asked(&rule.text.ask, facts, slots::is_of_zfs(rule));
        if !asked.is_empty() {
            let run = asked.iter().map(|(_, run)| run.as_str()).collect::<Vec<_>>().join("; ");
            let probes: Vec<&Probe> = asked.iter().map(|(probe, _)| *probe).collect();
            return Some(Step { run, outcomes: outcomes(near, &probes, environment) });
        }
    }
    general(question(answers, facts.lists_containers())?, answers, facts)
}

/// The outcomes of the commands of a near cause.
fn outcomes(near: Near<'_>, probes: &[&Probe], environment: &Environment) -> Vec<String> {
    let title = &near.rule.text.title;
    if near.rule.text.role == Role::Unknown {
        return vec!["the caller shows the cause".to_owned()];
    }
    let sought = sought(near, probes, environment);
    let looks = match sought.is_empty() {
        true => String::new(),
        false => format!(" if {}", sought.join(", or if ")),
    };
    vec![
        format!("it fits{looks}: {title}"),
        "it does not: this cause is out, and the output shows the other users".to_owned(),
    ]
}

/// The strongest signs that the probes can show, in their own words.
fn sought(near: Near<'_>, probes: &[&Probe], environment: &Environment) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for sign in near.open.iter().filter_map(|at| near.rule.signs.get(*at)) {
        let shown = |probe: &&&Probe| {
            let table = || {
                let absent = environment.truth(&sign.when).map(|(_, trace)| trace.absent);
                let of = |name: &String| probe.tables.iter().any(|table| name.starts_with(table));
                absent.is_ok_and(|names| names.iter().any(of))
            };
            probe.kinds.contains(&sign.kind) && (sign.kind != SignKind::Counter || table())
        };
        if let Some(text) = probes.iter().find(shown).and_then(|_| sign.sought())
            && !all.contains(&text)
        {
            all.push(text);
        }
        if all.len() == MAX_SIGNS {
            break;
        }
    }
    all
}

/// The first open one of the three answers.
fn question(answers: &Answers, containers: bool) -> Option<Question> {
    let first = answers.users.first().map(|user| user.kind);
    match (answers.cpu.state, answers.cpu.waits_for) {
        (State::Waiting, Some(Wait::Memory)) => return Some(Question::Memory),
        (State::Waiting, Some(Wait::Locks)) => return Some(Question::Locks),
        (State::Waiting, _) => return Some(Question::Disks),
        // The load counts threads that sleep for an unknown reason.
        (State::Idle, _) if answers.cpu.load.is_some() && !answers.cpu.is_only_counted => {
            return Some(Question::Sleepers);
        }
        (State::Idle, _) if answers.cpu.since_boot() => return Some(Question::Who),
        (State::Idle, _) => return None,
        _ => {}
    }
    let full_of_interrupts =
        answers.cpu.full.as_ref().is_some_and(|full| full.most == Some(Part::Interrupts));
    match first {
        Some(Kind::Stolen) => Some(Question::Stolen),
        Some(Kind::Interrupts) => Some(Question::Interrupts),
        _ if full_of_interrupts => Some(Question::Interrupts),
        Some(Kind::Kernel | Kind::Zfs) => Some(Question::Kernel),
        Some(Kind::Program) if answers.cpu.state == State::Unknown => Some(Question::Who),
        // Rows with almost no CPU do not show what keeps a machine busy.
        Some(Kind::Program) if answers.users.is_little() => Some(Question::Who),
        // A container or pod has no process name.
        Some(Kind::Program) if containers => None,
        Some(Kind::Program) if answers.zfs.among == Among::No || !answers.zfs.is_hinted => {
            Some(Question::Program)
        }
        Some(Kind::Program) => Some(Question::Kernel),
        Some(Kind::Code) => Some(Question::Who),
        Some(Kind::NotShown) | None => Some(Question::Who),
    }
}

/// The first probe that answers the question on this system and has no output in the evidence.
fn general(question: Question, answers: &Answers, facts: &Facts) -> Option<Step> {
    let pools = super::has_pool(facts);
    let user = answers.users.first().map(|user| user.name.as_str());
    let names = Names { user, ..Names::default() };
    let system = system(facts);
    let fits = probes().iter().filter(|probe| probe.question == Some(question));
    fits.filter(|probe| !host_probe::is_given(probe, facts)).find_map(|probe| {
        let run = host_probe::command(probe, facts, pools, &names)?;
        Some(Step { run, outcomes: probe.means(&system).to_vec() })
    })
}
