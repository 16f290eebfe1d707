//! The first answer: whether it is the CPU, with what it is busy, or what is waited for.
//!
//! States of the CPUs come first (top's header, vmstat, mpstat, sar, /proc/stat), then a list of
//! programs, then what sentences tell. A machine of which half or more is used is busy; one whose
//! few threads each fill a CPU is busy in part, however many CPUs idle beside them.

use super::load;
use super::timed::Timed;
use super::waits::{is_idle_with_sleepers, waits};
use super::{cite, cpus, percent};
use crate::evidence::{OneCpu, Source};
use crate::facts::{Basis, Consumption, Facts, Lockup, Said};

/// Whether it is the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Half or more of the machine's CPUs is used, or several CPUs' worth.
    Busy,
    /// One CPU's worth or more is used, and most of the machine is not.
    Some,
    /// The machine waits: the CPU is not what limits it.
    Waiting,
    /// Little is used, and nothing shows that it waits.
    Idle,
    /// What was given does not tell.
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

/// What is waited for.
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

/// What the CPUs do with their time.
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

/// The first answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Cpu {
    /// In a word.
    pub state: State,
    /// What is waited for, where that is the state or stands beside it.
    pub waits_for: Option<Wait>,
    /// Number of CPUs, as said or as the figures have it.
    pub cpus: Option<f64>,
    /// CPUs that are busy, interrupts and stolen time with them.
    pub busy_cpus: Option<f64>,
    /// CPUs that a list of programs and threads adds up to.
    pub listed_cpus: Option<f64>,
    /// Percent of all CPUs that is busy.
    pub busy_percent: Option<f64>,
    /// Percent of all CPUs that is idle with a disk request outstanding.
    pub iowait_percent: Option<f64>,
    /// Percent of all CPUs by part, largest first; empty where no tool tells.
    pub parts: Vec<(Part, f64)>,
    /// A CPU that is full while others are not: its name, what fills it most, percent of it.
    pub full: Option<(String, Part, f64)>,
    /// A CPU that did not come back from the kernel.
    pub lockup: Option<Lockup>,
    /// The command that was timed and took longest, where nothing shows the machine.
    pub timed: Option<Timed>,
    /// What shows that it waits.
    pub proof: Option<String>,
    /// What the load average says of a machine that is not busy.
    pub load: Option<String>,
    /// Whether I/O wait is nobody's, as the load average says.
    pub is_only_counted: bool,
    /// Whether the machine's state was measured, or somebody says it; what threads wait for may be
    /// known without.
    pub is_known: bool,
    /// Whether the number of CPUs follows from the figures.
    pub cpus_by_figures: bool,
    /// Whether the figures are means since the machine started.
    pub since_boot: bool,
    /// Where it was read.
    pub sources: Vec<Source>,
}

/// Percent of all CPUs from which the machine is busy.
const BUSY_PERCENT: f64 = 49.5;
/// Percent of all CPUs from which a machine is no idle one, whoever uses it.
const MUCH_PERCENT: f64 = 30.0;
/// Percent of one CPU from which a thread fills it.
const FULL_PERCENT: f64 = 70.0;
/// The same for a CPU of which its own states are known.
const FULL_CPU_PERCENT: f64 = 85.0;
/// CPUs used, by a list without states, from which a machine of unknown size is busy.
const SEVERAL_CPUS: f64 = 2.0;
/// Percent of all CPUs idle with a disk request outstanding that is a wait for disks.
pub(super) const IOWAIT_PERCENT: f64 = 20.0;

impl Cpu {
    pub(super) fn of(facts: &Facts, consumption: Option<&Consumption>) -> Self {
        let mut cpu = states(facts);
        cpu.full = full_cpu(facts);
        let listed =
            consumption.filter(|list| !matches!(list.basis, Basis::Machine | Basis::Seconds));
        let busiest =
            listed.and_then(|list| list.users.iter().map(|used| used.most).reduce(f64::max));
        let used = listed.map(|list| list.percent / 100.0);
        cpu.listed_cpus = used;
        if cpu.cpus.is_none() {
            cpu.cpus = cpus_by_list(&cpu, consumption);
            cpu.cpus_by_figures = cpu.cpus.is_some();
        }
        if let (Some(busy), Some(count)) = (cpu.busy_percent, cpu.cpus) {
            cpu.busy_cpus = Some(busy * count / 100.0);
        }
        let counted = load::is_only_counted(facts, &cpu);
        let wait = waits(facts, cpu.iowait_percent.filter(|_| counted.is_none()));
        if let Some(wait) = &wait {
            cpu.proof = Some(wait.proof.clone());
            cpu.is_known |= wait.of_machine;
            if let Some(source) = &wait.source {
                cite(&mut cpu.sources, source);
            }
        }
        cpu.waits_for = wait.as_ref().and_then(|wait| wait.wait);
        let in_part = busiest.is_some_and(|most| most >= FULL_PERCENT)
            || cpu.full.is_some()
            || cpu.busy_percent.is_some_and(|busy| busy >= MUCH_PERCENT)
                && cpu.busy_cpus.is_none_or(|busy| busy >= 1.0);
        let busy = is_busy(&cpu, used, consumption);
        // Means over lives say nothing of now.
        let measured =
            cpu.busy_percent.is_some() || consumption.is_some_and(Consumption::is_of_now);
        let said = facts.said_busy().filter(|_| !measured);
        let lockup = facts.lockup();
        let busy = busy || said.as_ref().is_some_and(|(said, _)| *said == Said::All);
        let in_part = in_part
            || lockup.is_some()
            || said.as_ref().is_some_and(|(said, _)| *said == Said::One);
        let none = said.as_ref().is_some_and(|(said, _)| *said == Said::None);
        if let Some((_, source)) = &said {
            cite(&mut cpu.sources, source);
        }
        if let Some(lockup) = lockup.filter(|_| !busy) {
            cite(&mut cpu.sources, &lockup.source);
            cpu.lockup = Some(lockup);
        }
        cpu.is_known |= none || busy || in_part;
        let timed = Timed::of(facts).filter(|_| !measured);
        let iowait = cpu.iowait_percent.unwrap_or(0.0);
        let waits_more = iowait >= IOWAIT_PERCENT
            && iowait > cpu.busy_percent.unwrap_or(0.0)
            && counted.is_none();
        cpu.state = if busy {
            State::Busy
        } else if waits_more {
            State::Waiting
        } else if in_part {
            State::Some
        } else if wait.is_some() && !is_idle_with_sleepers(&cpu, facts, none) {
            State::Waiting
        } else if cpu.busy_percent.is_some() || none || is_calm(consumption) {
            State::Idle
        } else {
            match &timed {
                Some(timed) if timed.is_busy() => State::Some,
                Some(timed) if timed.waits() => State::Waiting,
                _ => State::Unknown,
            }
        };
        cpu.is_only_counted = counted.is_some();
        if cpu.state == State::Idle {
            cpu.load = counted.or_else(|| load::sleepers(facts, &cpu));
        }
        if let Some(timed) = timed {
            cite(&mut cpu.sources, &timed.source);
            cpu.proof = cpu.proof.or_else(|| Some(timed.words()));
            cpu.timed = Some(timed);
        }
        // A list of lives cannot show that a machine is idle now.
        if let Some(list) = consumption.filter(|_| cpu.busy_percent.is_none())
            && let Some(first) = list.users.first()
        {
            cite(&mut cpu.sources, &first.source);
        }
        cpu
    }

    /// The part that is largest.
    pub fn most(&self) -> Option<Part> {
        self.parts.first().filter(|(_, percent)| *percent > 0.0).map(|(part, _)| *part)
    }

    /// Percent of all CPUs in a part.
    pub fn part(&self, wanted: Part) -> f64 {
        self.parts.iter().find(|(part, _)| *part == wanted).map_or(0.0, |(_, percent)| *percent)
    }

    /// How busy it is, in words: `92% of 8 CPUs is busy (system 80%, user 12%)`.
    pub fn busy_words(&self) -> Option<String> {
        let busy = self.busy_percent?;
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
        let parts: Vec<String> = self
            .parts
            .iter()
            .filter(|(_, percent)| *percent >= 0.5)
            .map(|(part, value)| format!("{} {}", part.name(), percent(*value)))
            .collect();
        let parts =
            if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
        let boot = if self.since_boot { ", as a mean since it started" } else { "" };
        Some(format!("{}{of}{parts}{boot}", percent(busy)))
    }

    /// The CPU that did not come back, in words.
    pub(super) fn lockup_words(&self) -> Option<String> {
        let lockup = self.lockup.as_ref()?;
        let name = lockup.cpu.as_ref().map_or_else(|| "a CPU".to_owned(), |n| format!("CPU {n}"));
        let long = lockup.seconds.as_ref().map(|s| format!(" for {s} s")).unwrap_or_default();
        Some(format!("{name} did not come back from the kernel{long} (lockup or stall)"))
    }

    /// What is used where no state of the CPUs is shown.
    fn listed(&self) -> String {
        match self.listed_cpus.filter(|count| *count > 0.0) {
            Some(count) => format!("what is listed uses {}", cpus(count)),
            None => "so the text says".to_owned(),
        }
    }

    /// The answer in a sentence.
    pub fn sentence(&self) -> String {
        let busy = self.busy_words();
        let full = self.full.as_ref().map(|(name, part, value)| {
            format!("CPU {name} is full: {} of it, most with {}", percent(*value), part.name())
        });
        let full = full.or_else(|| self.lockup_words());
        let waits = self.proof.clone();
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
            State::Idle => {
                format!(
                    "no: {}; {}",
                    or(rest([busy, None, None]), "those listed use next to nothing"),
                    self.load.as_deref().unwrap_or("nothing shows that it waits")
                )
            }
            State::Unknown => "not shown by what was given".to_owned(),
        }
    }
}

/// Whether half or more of the machine is used, by its states or by a list.
fn is_busy(cpu: &Cpu, used: Option<f64>, consumption: Option<&Consumption>) -> bool {
    match (cpu.busy_percent, used, cpu.cpus) {
        (Some(busy), ..) => busy >= BUSY_PERCENT,
        (None, Some(used), Some(count)) => used >= count * BUSY_PERCENT / 100.0,
        (None, Some(used), None) => used >= SEVERAL_CPUS,
        (None, None, _) => by_machine(consumption).is_some_and(|used| used >= BUSY_PERCENT),
    }
}

fn or(text: String, otherwise: &str) -> String {
    if text.is_empty() { otherwise.to_owned() } else { text }
}

/// What tools say of the states of all CPUs, or else sentences.
fn states(facts: &Facts) -> Cpu {
    facts.start_trace();
    let phase = facts.cpu_while_busy(BUSY_PERCENT);
    let own = |state: &str| match &phase {
        Some(used) => Some(match state {
            "user" => used.user,
            "system" => used.system,
            "interrupt" => used.interrupt,
            "steal" => used.steal,
            "iowait" => used.iowait,
            _ => return None,
        }),
        None => facts.cpu_or_told(state).ok(),
    };
    let measured = !facts.evidence().cpu.is_empty();
    let mut parts = Vec::new();
    for (part, state) in [
        (Part::User, "user"),
        (Part::System, "system"),
        (Part::Interrupts, "interrupt"),
        (Part::Stolen, "steal"),
    ] {
        // Of sentences only those states are told that somebody looked at.
        if let Some(value) = own(state).filter(|value| measured || *value > 0.0) {
            parts.push((part, value));
        }
    }
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let busy_percent = if measured {
        let told = facts.cpu("busy").unwrap_or(0.0) + facts.cpu("steal").unwrap_or(0.0);
        let all: f64 = parts.iter().map(|(_, value)| value).sum();
        let busy = if phase.is_some() { all } else { told };
        Some(busy.clamp(0.0, 100.0))
    } else {
        own("busy").or_else(|| {
            let told: f64 = parts.iter().map(|(_, value)| value).sum();
            (told > 0.0).then_some(told.min(100.0))
        })
    };
    let iowait_percent = own("iowait");
    let sources = facts.take_trace().sources;
    #[expect(clippy::cast_precision_loss, reason = "a number of CPUs")]
    let shown = OneCpu::number(&facts.evidence().single_cpus).map(|count| count as f64);
    let cpus = facts.ncpu().ok().or(shown);
    Cpu {
        state: State::Unknown,
        waits_for: None,
        cpus,
        busy_cpus: None,
        listed_cpus: None,
        busy_percent,
        iowait_percent,
        parts,
        full: None,
        lockup: None,
        timed: None,
        proof: None,
        load: None,
        is_only_counted: false,
        is_known: measured,
        cpus_by_figures: false,
        since_boot: measured && facts.evidence().cpu.iter().all(|row| row.since_boot),
        sources: sources.into_iter().take(2).collect(),
    }
}

/// A single CPU that is full.
fn full_cpu(facts: &Facts) -> Option<(String, Part, f64)> {
    let busy =
        |used: &crate::evidence::CpuUse| used.user + used.system + used.interrupt + used.steal;
    let fullest = facts
        .evidence()
        .single_cpus
        .iter()
        .max_by(|a, b| busy(&a.used).total_cmp(&busy(&b.used)))
        .filter(|one| busy(&one.used) >= FULL_CPU_PERCENT)?;
    let used = &fullest.used;
    let parts = [
        (Part::User, used.user),
        (Part::System, used.system),
        (Part::Interrupts, used.interrupt),
        (Part::Stolen, used.steal),
    ];
    let (part, _) = parts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some((fullest.name.clone(), part, busy(used)))
}

/// How many CPUs there are, by a list that shows who makes up what the states say: one thread that
/// fills a CPU while 13% of all CPUs is busy is one of eight.
fn cpus_by_list(cpu: &Cpu, consumption: Option<&Consumption>) -> Option<f64> {
    let list = consumption.filter(|list| list.basis == Basis::Now && list.ends)?;
    let busy = cpu.busy_percent.filter(|busy| *busy >= 5.0)?;
    let others = cpu.part(Part::Interrupts) + cpu.part(Part::Stolen);
    let own = busy - others;
    if list.percent < 50.0 || own < 5.0 {
        return None;
    }
    let count = (list.percent / own).round();
    (count >= 1.0).then_some(count)
}

/// Percent of all CPUs that a list of such percentages shows.
fn by_machine(consumption: Option<&Consumption>) -> Option<f64> {
    consumption.filter(|list| list.basis == Basis::Machine).map(|list| list.percent)
}

/// Whether a list of what is used now comes down to nothing from little.
fn is_calm(consumption: Option<&Consumption>) -> bool {
    consumption.is_some_and(|list| {
        list.is_of_now() && list.comes_down && list.users.len() >= 4 && list.percent < 30.0
    })
}
