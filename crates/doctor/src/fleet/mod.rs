//! Many hosts at once: the verdict of each, worst first, and the traits that only the ill hosts
//! have.
//!
//! A row has counts, and a lift if there are enough hosts. The lift shows where to look first. It
//! proves nothing, because hosts that were bought together share everything.

mod common;
mod host;

use std::collections::BTreeMap;

use crate::diagnose::VerdictKind;

pub use common::{Common, MIN_FOR_LIFT};
pub use host::{Host, Trait, TraitKind};

/// Hosts with the same answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The cause, or the kind of answer where there is none.
    pub id: String,
    /// The same as text.
    pub title: String,
    /// The kind of the answer.
    pub verdict: VerdictKind,
    /// Numbers of its hosts in [`Fleet::hosts`], worst first.
    pub hosts: Vec<usize>,
    /// The traits that only they have, for causes.
    pub common: Vec<Common>,
}

/// A bundle that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Its name.
    pub name: String,
    /// The reason.
    pub reason: String,
}

/// A fleet, diagnosed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fleet {
    /// All hosts, by name.
    pub hosts: Vec<Host>,
    /// Their answers, worst first.
    pub groups: Vec<Group>,
    /// The bundles that could not be read.
    pub unread: Vec<Unread>,
}

impl Fleet {
    /// Sorts hosts by name; the order of arrival does not matter.
    pub fn new(mut hosts: Vec<Host>, mut unread: Vec<Unread>) -> Self {
        hosts.sort_by(|a, b| a.name.cmp(&b.name));
        unread.sort_by(|a, b| a.name.cmp(&b.name));
        let mut by_answer: BTreeMap<(u8, String), Vec<usize>> = BTreeMap::new();
        for (at, host) in hosts.iter().enumerate() {
            let id = host.first.as_ref().map_or(host.verdict.name(), |(id, _, _)| id.as_str());
            by_answer.entry((severity(host.verdict), id.to_owned())).or_default().push(at);
        }
        let mut groups: Vec<Group> = by_answer
            .into_iter()
            .filter_map(|((_, id), mut members)| {
                members.sort_by(|a, b| {
                    hosts[*b].wasted_percent().total_cmp(&hosts[*a].wasted_percent())
                });
                let first = hosts.get(*members.first()?)?;
                let title =
                    first.first.as_ref().map_or(first.sentence.clone(), |one| one.1.clone());
                let verdict = first.verdict;
                let common = if verdict == VerdictKind::Cause {
                    common::in_common(&hosts, &members)
                } else {
                    Vec::new()
                };
                Some(Group { id, title, verdict, hosts: members, common })
            })
            .collect();
        let wasted = |group: &Group| -> f64 {
            group.hosts.iter().map(|at| hosts[*at].wasted_percent()).sum()
        };
        groups.sort_by(|a, b| {
            severity(a.verdict)
                .cmp(&severity(b.verdict))
                .then_with(|| wasted(b).total_cmp(&wasted(a)))
                .then_with(|| b.hosts.len().cmp(&a.hosts.len()))
                .then_with(|| a.id.cmp(&b.id))
        });
        Self { hosts, groups, unread }
    }

    fn count(&self, kinds: &[VerdictKind]) -> usize {
        self.hosts.iter().filter(|host| kinds.contains(&host.verdict)).count()
    }

    /// The number of hosts with a cause.
    pub fn ill(&self) -> usize {
        self.count(&[VerdictKind::Cause])
    }

    /// The number of hosts without any answer.
    pub fn without_answer(&self) -> usize {
        self.count(&[VerdictKind::Insufficient])
    }

    /// The number of hosts with no answer, or with one that leaves the cause open.
    pub fn open(&self) -> usize {
        self.count(&[VerdictKind::Open, VerdictKind::Insufficient])
    }

    /// The first line.
    pub fn sentence(&self) -> String {
        let count = |number: usize, one: &str, many: &str| {
            if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
        };
        let all = count(self.hosts.len(), "host", "hosts");
        let mut sentence = match self.groups.first().filter(|one| one.verdict == VerdictKind::Cause)
        {
            Some(worst) => format!(
                "{} of {all} with a problem, worst {} ({}).",
                self.ill(),
                worst.id,
                count(worst.hosts.len(), "host", "hosts")
            ),
            None => format!("{all}, none with a known problem."),
        };
        if self.open() > 0 {
            sentence.push_str(&format!(" For {} the evidence is not enough.", self.open()));
        }
        if !self.unread.is_empty() {
            let bundles = count(self.unread.len(), "bundle", "bundles");
            sentence.push_str(&format!(" {bundles} could not be read."));
        }
        sentence
    }
}

/// The order of verdicts, worst first.
fn severity(verdict: VerdictKind) -> u8 {
    match verdict {
        VerdictKind::Cause => 0,
        VerdictKind::Open => 1,
        VerdictKind::Insufficient => 2,
        VerdictKind::Kernel => 3,
        VerdictKind::UserProcess => 4,
        VerdictKind::NotCpu => 5,
        VerdictKind::NotZfs => 6,
        VerdictKind::NormalCost => 7,
    }
}
