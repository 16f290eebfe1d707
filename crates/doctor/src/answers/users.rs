//! The second answer: the users of the CPU, in CPUs where a list has them.
//!
//! A list of programs and threads comes first. Without one, threads or subsystems of a profile
//! answer, as parts of its samples. Interrupts, stolen time and the hidden remainder stand among
//! the rows of a list. Samples by program fill the remainder. Rows with a sum above the busy CPUs
//! become ranges (`list_users`).

use super::cpus;
use super::range::{Of, Over, Range};
use crate::evidence::Source;
use crate::facts::{Owner, is_zfs_program};

/// The kind of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A program.
    Program,
    /// A thread of the kernel.
    Kernel,
    /// A thread or code of ZFS.
    Zfs,
    /// Hard and soft interrupts.
    Interrupts,
    /// The hypervisor's other guests.
    Stolen,
    /// The hidden remainder of a list.
    NotShown,
    /// Code of a profile with an unknown owner.
    Code,
}

impl Kind {
    /// The word in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::Kernel => "kernel thread",
            Self::Zfs => "ZFS",
            Self::Interrupts => "interrupts",
            Self::Stolen => "stolen",
            Self::NotShown => "not shown",
            Self::Code => "code",
        }
    }

    /// The kind of a thread or program; ZFS's own commands belong to ZFS.
    pub(super) fn of(name: &str, owner: Owner) -> Self {
        match owner {
            _ if is_zfs_program(name) => Self::Zfs,
            Owner::Program => Self::Program,
            Owner::Kernel => Self::Kernel,
            Owner::Zfs => Self::Zfs,
        }
    }
}

/// One user of the CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct User {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// The work of such threads or such code, where known.
    pub does: Option<&'static str>,
    /// Its use; `None` where it is named without a figure.
    pub used: Option<Range>,
    /// Its part in the kernel, in CPUs, where a tool shows it separately.
    pub system_cpus: Option<f64>,
    /// The part of its CPUs that the samples show and no list does: processes that came and went
    /// between two readings.
    pub sampled_cpus: Option<f64>,
    /// Whether it stands for ended processes, of which the list has only the parent.
    pub is_ended: bool,
    /// Its rows in a list; 1 elsewhere.
    pub rows: u64,
}

impl User {
    /// A user with a name and no figure.
    pub(super) fn new(name: impl Into<String>, kind: Kind) -> Self {
        Self {
            name: name.into(),
            kind,
            does: None,
            used: None,
            system_cpus: None,
            sampled_cpus: None,
            is_ended: false,
            rows: 1,
        }
    }

    /// Its use, if it has this unit.
    pub fn part(&self, of: Of) -> Option<Range> {
        self.used.and_then(|used| used.of(of))
    }

    /// CPUs that it uses.
    pub fn cpus(&self) -> Option<f64> {
        self.part(Of::Cpus).map(|used| used.middle())
    }

    /// Percent of the busy samples that it has.
    pub(super) fn samples_percent(&self) -> Option<f64> {
        self.part(Of::PercentOfBusy).map(|used| used.middle())
    }

    /// Its use as text: `3.8 CPUs`, `38% of all CPUs`, `62% of the busy samples`.
    pub fn used(&self) -> String {
        self.used.map(|used| used.words()).unwrap_or_default()
    }

    /// The key of its order.
    pub(super) fn size(&self) -> f64 {
        self.used.map_or(0.0, |used| match used.of {
            Of::Cpus => used.middle() * 100.0,
            Of::PercentOfMachine | Of::PercentOfBusy => used.middle(),
            // Such a figure may be old.
            Of::Seconds => used.middle() * 1e-6,
        })
    }

    /// Whether it is too little to explain anything. Seconds belong to no known time.
    pub fn is_little(&self) -> bool {
        self.used.is_some_and(|used| used.of != Of::Seconds) && self.size() < 15.0
    }

    /// Whether it is written as several: `kworker` is more than one thread.
    pub(super) fn is_several(&self) -> bool {
        self.name == "kworker" && self.rows > 1
    }

    /// Its name and kind, for sentences.
    pub fn described(&self) -> String {
        match self.kind {
            Kind::Kernel if self.is_several() => {
                format!("{} kernel workers ({})", self.rows, self.name)
            }
            Kind::Kernel if self.name.starts_with("kworker") => {
                format!("a kernel worker ({})", self.name)
            }
            Kind::Kernel => format!("the kernel thread {}", self.name),
            Kind::Zfs => format!("ZFS ({})", self.name),
            Kind::Stolen => "the hypervisor, which withholds it (stolen)".to_owned(),
            Kind::NotShown => "something that the list does not show".to_owned(),
            Kind::Interrupts | Kind::Program | Kind::Code => self.name.clone(),
        }
    }
}

/// The second answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Users {
    /// The users of the CPU, largest first; empty where none is known.
    pub list: Vec<User>,
    /// Number of samples behind the figures, where known.
    pub samples: Option<f64>,
    /// Whether the last rows of the list are too small to matter.
    pub comes_down: bool,
    /// The sum of the list in CPUs, if it exceeds the busy CPUs because it is of another moment.
    pub too_much_cpus: Option<f64>,
    /// Where it was read.
    pub sources: Vec<Source>,
}

/// The most users that the sentence names.
const NAMED: usize = 6;

impl Users {
    /// The user with the most CPU.
    pub fn first(&self) -> Option<&User> {
        self.list.first()
    }

    /// The unit of the figures; `None` where the named users have none.
    pub(super) fn counted(&self) -> Option<Of> {
        self.list.iter().find_map(|user| user.used).map(|used| used.of)
    }

    /// Whether the unit is samples.
    pub(super) fn is_of_samples(&self) -> bool {
        self.counted() == Some(Of::PercentOfBusy)
    }

    /// Whether a lockup, a lock or stacks name them, without a figure.
    pub fn are_named_only(&self) -> bool {
        !self.list.is_empty() && self.counted().is_none()
    }

    /// Whether the figures are means over lives instead of current use.
    pub fn over_life(&self) -> bool {
        self.list.iter().filter_map(|user| user.used).any(|used| used.over == Some(Over::Life))
    }

    /// Whether even the first user of a list uses next to nothing.
    pub fn is_little(&self) -> bool {
        self.first().is_none_or(User::is_little)
    }

    /// The answer in a sentence.
    pub fn sentence(&self) -> String {
        if self.list.is_empty() {
            return "not shown by the evidence".to_owned();
        }
        let named = self.list.iter().take(NAMED);
        let texts = named.clone().map(|user| {
            let name = match user.kind {
                Kind::Stolen => "stolen by the hypervisor",
                _ => &user.name,
            };
            format!("{name} {}", user.used()).trim().to_owned()
        });
        let mut text = texts.collect::<Vec<_>>().join(", ");
        match self.list.len() {
            all if all > NAMED => text.push_str(&format!(" and {} more", all - NAMED)),
            _ => {}
        }
        match self.counted() {
            None => text.push_str(" (named, without a figure)"),
            Some(Of::Seconds) => {}
            Some(_) if self.over_life() => text.push_str(" (means over their lives)"),
            Some(_) => {}
        }
        let sampled = named.filter(|user| user.sampled_cpus.is_some());
        let sampled: Vec<&str> = sampled.map(|user| user.name.as_str()).collect();
        if !sampled.is_empty() {
            let names = sampled.join(", ");
            text.push_str(&format!("; {names} by samples, in processes that came and went"));
        }
        if let Some(shown) = self.too_much_cpus.map(cpus) {
            text.push_str(&format!(
                "; the list adds up to {shown}, more than the CPUs were busy at another moment"
            ));
        }
        text
    }
}
