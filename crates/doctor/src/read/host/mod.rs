//! Formats of a live host or of a capture, one file for each.
//!
//! Most of these files count since boot, or since a group was made. Each `finish` subtracts two
//! readings, which are in the folders `start` and `end` of a capture.

pub(crate) mod cgroups;
pub(crate) mod control_directory;
pub(crate) mod disks;
pub(crate) mod mount_process;
pub(crate) mod served;
pub(crate) mod tasks;
pub(crate) mod waits;

use crate::evidence::{Evidence, Table};

/// Adds the differences of two readings; `interval` is the time between them.
pub(crate) fn finish(evidence: &mut Evidence, interval: Option<tasks::Interval>) {
    tasks::finish(evidence, interval);
    if let Some(interval) = interval {
        cgroups::finish(evidence, interval.seconds);
        disks::finish(evidence, interval.seconds);
    }
    waits::finish(evidence);
    served::finish(evidence);
    mount_process::finish(evidence);
}

/// Which of two readings an input is, and its name in both.
pub(crate) fn reading_of(input: &str) -> (Option<Moment>, &str) {
    for (mark, moment) in [("start/", Moment::Start), ("end/", Moment::End)] {
        if let Some(at) = input.find(mark).filter(|&at| at == 0 || input.as_bytes()[at - 1] == b'/')
        {
            return (Some(moment), &input[at + mark.len()..]);
        }
    }
    (None, input)
}

/// One of two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The first.
    Start,
    /// The second.
    End,
}

/// The reading of a table.
fn moment_of(table: &Table) -> Option<Moment> {
    table.figures.first().and_then(|figure| reading_of(&figure.source.input).0)
}

/// Two readings of one table. Without the first, its subject is new.
#[derive(Clone, Copy)]
struct Difference<'a> {
    start: Option<&'a Table>,
    end: &'a Table,
}

impl Difference<'_> {
    /// Growth of a counter, at least zero.
    fn growth(self, name: &str) -> Option<f64> {
        let before = self.start.map_or(Some(0.0), |start| start.value(name));
        Some((self.end.value(name)? - before.unwrap_or(0.0)).max(0.0))
    }
}
