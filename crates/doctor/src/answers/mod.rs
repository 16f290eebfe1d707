//! The first three answers: whether the CPU is the problem, its users, and whether ZFS is among
//! them.
//!
//! All evidence has these answers, whether or not a cause is found. An answer has its figures and
//! their sources, or is "not shown". The remainder of a list (interrupts, stolen time, hidden rows)
//! is also a user.
//!
//! `busyness` finds the first answer (with `waits`, `load_average` and `timed_command`), `users`
//! the second (with `list_users` and `profile_users`), `zfs` the third. A measured quantity is a
//! `range`, and its words follow from the range. `first_line` writes the surest answer as a
//! `statement`, which is a list of clauses. No file here knows a cause.

mod busyness;
mod cpu;
mod first_line;
mod list_users;
mod load_average;
mod merged_users;
mod profile_users;
mod range;
mod statement;
mod timed_command;
mod users;
mod waits;
mod zfs;

use crate::evidence::Source;
use crate::facts::Facts;

pub(crate) use statement::{ClauseKind, LINE, Statement};

pub use cpu::{Cpu, FullCpu, Part, State, Wait};
pub use range::{Of, Over, Range};
pub use users::{Kind, User, Users};
pub use zfs::{Among, Zfs};

/// The first three answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Answers {
    /// Whether the CPU is the problem.
    pub cpu: Cpu,
    /// The users of the CPU.
    pub users: Users,
    /// Whether ZFS is among them, or ogive if the question is about one of its mounts.
    pub zfs: Zfs,
}

impl Answers {
    /// Answers from the evidence.
    pub fn of(facts: &Facts) -> Self {
        facts.start_trace();
        let consumption = facts.consumption();
        let cpu = busyness::how_busy(facts, consumption.as_ref());
        let users = Users::of(facts, consumption.as_ref(), &cpu);
        let zfs = Zfs::of(facts, consumption.as_ref(), &cpu, &users);
        facts.take_trace();
        Self { cpu, users, zfs }
    }

    /// Whether any of the three is known.
    pub fn is_any(&self) -> bool {
        self.cpu.state != State::Unknown
            || !self.users.list.is_empty()
            || self.zfs.among != Among::Unknown
    }

    /// The surest answer in one sentence, if any of the three is known.
    pub fn line(&self) -> Option<String> {
        self.statement().map(|statement| statement.whole())
    }

    /// The same as clauses; the least important ones are dropped where it is too long.
    pub(crate) fn statement(&self) -> Option<Statement> {
        first_line::line(self)
    }
}

/// A number of CPUs as text: `3.8 CPUs`, `1 CPU`, `0.04 CPUs`.
pub(crate) fn cpus(count: f64) -> String {
    let text = count_of_cpus(count);
    if text == "1" { "1 CPU".to_owned() } else { format!("{text} CPUs") }
}

/// Below this many CPUs the text is "less than" the smallest figure.
const LITTLE_CPUS: f64 = 0.005;

/// The number alone.
fn count_of_cpus(count: f64) -> String {
    if count == 0.0 {
        return "0".to_owned();
    }
    if count > 0.0 && count < LITTLE_CPUS {
        return "under 0.01".to_owned();
    }
    let digits = match count {
        count if count >= 9.95 => 0,
        count if count >= 0.995 => 1,
        _ => 2,
    };
    let text = format!("{count:.digits$}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// A percentage as text, without decimals unless it is small.
pub(crate) fn percent(value: f64) -> String {
    let value = value.abs();
    if value >= 9.95 || value == 0.0 { format!("{value:.0}%") } else { format!("{value:.1}%") }
}

/// CPU time as text: `512 s of CPU`, `3.6 h of CPU`.
pub(crate) fn spent(seconds: f64) -> String {
    if seconds < 7200.0 {
        return format!("{seconds:.0} s of CPU");
    }
    format!("{:.1} h of CPU", seconds / 3600.0)
}

/// Adds a source once.
fn cite(sources: &mut Vec<Source>, source: &Source) {
    if sources.len() < 3 && !sources.contains(source) {
        sources.push(source.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_rounded_for_people() {
        assert_eq!(cpus(0.001), "under 0.01 CPUs");
        let said = [3.8, 1.04, 0.999, 0.04, 12.3, 0.113].map(cpus);
        assert_eq!(said, ["3.8 CPUs", "1 CPU", "1 CPU", "0.04 CPUs", "12 CPUs", "0.11 CPUs"]);
        assert_eq!([67.1, 2.34, 0.0].map(percent), ["67%", "2.3%", "0%"]);
    }
}
