//! The first answer: whether the CPU is the problem. It has how busy the CPU is and with what, or
//! the target of the machine's wait. `busyness` finds it.

use super::range::{Over, Range};
use super::timed_command::Timed;
use super::{cpus, percent};
use crate::evidence::Source;
use crate::facts::Lockup;

/// Whether the CPU is the problem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Half or more of the machine's CPUs is used, or several CPUs' worth.
    Busy,
    /// One CPU's worth or more is used, but most of the machine is not.
    Some,
    /// The machine waits: the CPU is not what limits it.
    Waiting,
    /// Little is used, and nothing shows a wait.
    Idle,
    /// The evidence does not show it.
    #[default]
    Unknown,
}

impl State {
    /// The word in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Some => "busy in part",
            Self::Waiting => "waiting",
            Self::Idle => "idle",
            Self::Unknown => "not shown",
        }
    }
}

/// The target of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Disks, or a file server.
    Disks,
    /// Memory: pages that were swapped out, or reclaim.
    Memory,
    /// Locks and other threads.
    Locks,
}

impl Wait {
    /// The word in sentences and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Disks => "disks",
            Self::Memory => "memory",
            Self::Locks => "locks",
        }
    }
}

/// The use of CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Programs.
    User,
    /// The kernel.
    System,
    /// Hard and soft interrupts.
    Interrupts,
    /// Taken by the hypervisor for others.
    Stolen,
}

impl Part {
    /// The word in sentences and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::System => "system",
            Self::Interrupts => "interrupts",
            Self::Stolen => "stolen",
        }
    }
}

/// A single CPU that is full.
#[derive(Clone, Debug, PartialEq)]
pub struct FullCpu {
    /// Its number, as printed.
    pub name: String,
    /// Its largest part, where the tool separates programs from the kernel.
    pub most: Option<Part>,
    /// Percent of it that is busy.
    pub percent: f64,
}

impl FullCpu {
    /// Its load and largest part: `95%, most with interrupts`.
    pub(super) fn words(&self) -> String {
        let most = self.most.map(|part| format!(", most with {}", part.name()));
        format!("{}{}", percent(self.percent), most.unwrap_or_default())
    }
}

/// The first answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cpu {
    /// The answer as one word.
    pub state: State,
    /// The target of the wait, if the state is a wait or has one as well.
    pub waits_for: Option<Wait>,
    /// Number of CPUs, as printed or as the figures imply.
    pub cpus: Option<f64>,
    /// The busy part of all CPUs, including interrupts and stolen time. It covers the time since
    /// boot only where no other figure is shown.
    pub busy: Option<Range>,
    /// The sum of a list of programs and threads, in CPUs.
    pub listed_cpus: Option<f64>,
    /// The sum of such a list in percent of all CPUs, where their number is unknown.
    pub listed_percent: Option<f64>,
    /// Percent of all CPUs that is idle with a disk request outstanding.
    pub iowait_percent: Option<f64>,
    /// Percent of all CPUs by part, largest first; empty where no tool shows it.
    pub parts: Vec<(Part, f64)>,
    /// A CPU that is full while others are not.
    pub full: Option<FullCpu>,
    /// A CPU that did not come back from the kernel.
    pub lockup: Option<Lockup>,
    /// The timed command that took longest, where nothing shows the machine.
    pub timed: Option<Timed>,
    /// The fact that shows the wait.
    pub proof: Option<String>,
    /// The conclusion from the load average of a machine that is not busy.
    pub load: Option<String>,
    /// Whether the load average shows that no thread causes the I/O wait.
    pub is_only_counted: bool,
    /// Whether the machine's state was measured; the waits of threads may be known without it.
    pub is_known: bool,
    /// Whether the number of CPUs follows from the figures.
    pub cpus_by_figures: bool,
    /// Where it was read.
    pub sources: Vec<Source>,
}

/// Percent of all CPUs idle with a disk request outstanding, from which it is a wait for disks.
pub(super) const IOWAIT_PERCENT: f64 = 20.0;

impl Cpu {
    /// Percent of all CPUs that is busy.
    pub fn busy_percent(&self) -> Option<f64> {
        self.busy.map(|busy| busy.middle())
    }

    /// CPUs that are busy.
    pub fn busy_cpus(&self) -> Option<f64> {
        self.busy_percent().zip(self.cpus).map(|(busy, count)| busy * count / 100.0)
    }

    /// Whether the figures are means since the machine started.
    pub fn since_boot(&self) -> bool {
        self.busy.is_some_and(|busy| busy.over == Some(Over::Boot))
    }

    /// The largest part.
    pub fn most(&self) -> Option<Part> {
        self.parts.first().filter(|(_, percent)| *percent > 0.0).map(|(part, _)| *part)
    }

    /// Percent of all CPUs in a part.
    pub fn part(&self, which: Part) -> f64 {
        self.parts.iter().find(|(part, _)| *part == which).map_or(0.0, |(_, percent)| *percent)
    }

    /// The busy part as text: `92% of 8 CPUs is busy (system 80%, user 12%)`.
    pub fn busy_words(&self) -> Option<String> {
        let parts: Vec<String> = self
            .parts
            .iter()
            .filter(|(_, percent)| *percent >= 0.5)
            .map(|(part, value)| format!("{} {}", part.name(), percent(*value)))
            .collect();
        let parts =
            if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
        self.busy_with(&parts)
    }

    /// The same without its parts.
    pub(super) fn busy_words_in_brief(&self) -> Option<String> {
        self.busy_with("")
    }

    /// The text where neither a state of the CPUs nor a user is shown.
    pub(super) fn calm_words(&self) -> String {
        let used = self.listed_percent.map(|used| format!("{} of all CPUs", percent(used)));
        format!("the listed users have {}", used.as_deref().unwrap_or("next to nothing"))
    }

    fn busy_with(&self, parts: &str) -> Option<String> {
        let busy = self.busy_percent()?;
        let of = match self.cpus {
            Some(count) if count >= 2.0 && !self.cpus_by_figures => {
                let worth = if busy * count >= 50.0 {
                    format!(", which is {}", cpus(busy * count / 100.0))
                } else {
                    String::new()
                };
                format!(" of {count:.0} CPUs is busy{worth}")
            }
            Some(_) if !self.cpus_by_figures => " of the only CPU is busy".to_owned(),
            _ => " of the CPUs is busy".to_owned(),
        };
        let boot = if self.since_boot() { ", as a mean since it started" } else { "" };
        Some(format!("{}{of}{parts}{boot}", percent(busy)))
    }

    /// The CPU that stays in the kernel, as text.
    pub(super) fn lockup_words(&self) -> Option<String> {
        let lockup = self.lockup.as_ref()?;
        let name = lockup.cpu.as_ref().map_or_else(|| "a CPU".to_owned(), |n| format!("CPU {n}"));
        let long = lockup.seconds.as_ref().map(|s| format!(" for {s} s")).unwrap_or_default();
        let interrupts = lockup.interrupts.map(percent);
        let interrupts = interrupts.map(|part| format!(": interrupts had {part} of it"));
        let interrupts = interrupts.unwrap_or_default();
        Some(format!(
            "{name} did not come back from the kernel{long} (lockup or stall){interrupts}"
        ))
    }

    /// The use where no state of the CPUs is shown.
    fn listed(&self) -> String {
        match self.listed_cpus.filter(|count| *count > 0.0) {
            Some(count) => format!("what is listed uses {}", cpus(count)),
            None => "the log reports a lockup".to_owned(),
        }
    }

    /// The answer in a sentence.
    pub fn sentence(&self) -> String {
        let used = self.listed_cpus.filter(|count| *count > 0.0).map(|_| self.listed());
        let busy = self.busy_words().or(used);
        let full = self.full.as_ref();
        let full = full.map(|full| format!("CPU {} is full ({})", full.name, full.words()));
        let full = full.or_else(|| self.lockup_words());
        let waits = self.proof.clone();
        let calm = || self.calm_words();
        let rest =
            |parts: [Option<String>; 3]| parts.into_iter().flatten().collect::<Vec<_>>().join("; ");
        match self.state {
            State::Busy => {
                format!("yes: {}", or(rest([busy, None, waits]), &self.listed()))
            }
            State::Some => {
                format!("in part: {}", or(rest([busy, full, waits]), &self.listed()))
            }
            State::Waiting => {
                let what =
                    self.waits_for.map_or_else(String::new, |wait| format!(" for {}", wait.name()));
                format!("no, it waits{what}: {}", or(rest([waits, busy, None]), "see below"))
            }
            State::Idle if self.since_boot() => {
                format!("not shown of now: {}", or(rest([busy, None, None]), &calm()))
            }
            State::Idle => {
                format!(
                    "no: {}; {}",
                    or(rest([busy, None, None]), &calm()),
                    self.load.as_deref().unwrap_or("nothing shows that it waits")
                )
            }
            State::Unknown => "not shown by the evidence".to_owned(),
        }
    }
}

fn or(text: String, otherwise: &str) -> String {
    if text.is_empty() { otherwise.to_owned() } else { text }
}
