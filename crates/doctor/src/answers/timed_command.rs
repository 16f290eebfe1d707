//! The timed command that took longest: the CPU that it used, or its wait. It answers where nothing
//! shows the machine.

use super::{cpus, percent};
use crate::evidence::{Source, Timing};
use crate::facts::Facts;

/// From this many CPUs on a command fills one.
const FULL_CPUS: f64 = 0.7;

/// A command that was timed.
#[derive(Clone, Debug, PartialEq)]
pub struct Timed {
    /// Its program.
    pub program: String,
    /// CPUs that it used while it ran.
    pub cpus: f64,
    /// Part of that in the kernel, 0 to 1.
    pub kernel_part: f64,
    /// Wall clock, seconds.
    pub real_s: f64,
    /// Where it was read.
    pub source: Source,
}

impl Timed {
    /// The command that took longest.
    pub(super) fn of(facts: &Facts) -> Option<Self> {
        let timings = facts.evidence().timings.iter().filter(|one| one.real_s > 0.5);
        let spent = |one: &Timing| one.user_s + one.system_s;
        let longest = timings.max_by(|a, b| spent(a).total_cmp(&spent(b)))?;
        let used = spent(longest);
        let words = longest.command.split_whitespace();
        let is_number = longest.command.contains(" id '");
        let program = (!is_number)
            .then_some(words)
            .into_iter()
            .flatten()
            .map(|word| word.rsplit('/').next().unwrap_or(word))
            .find(|word| !matches!(*word, "time" | "sudo" | "doas" | "#" | "$"))
            .unwrap_or(&longest.command);
        Some(Self {
            program: program.to_owned(),
            cpus: used / longest.real_s,
            kernel_part: if used > 0.0 { longest.system_s / used } else { 0.0 },
            real_s: longest.real_s,
            source: longest.source.clone(),
        })
    }

    pub(super) fn is_busy(&self) -> bool {
        self.cpus >= FULL_CPUS
    }

    pub(super) fn waits(&self) -> bool {
        self.cpus <= 0.5
    }

    pub(super) fn words(&self) -> String {
        format!(
            "{} took {:.1} s and used {} in that time, {} of it in the kernel",
            if self.program.is_empty() { "the command" } else { &self.program },
            self.real_s,
            cpus(self.cpus),
            percent(self.kernel_part * 100.0)
        )
    }
}
