//! What only a look at a live host gives, or a capture of one: one format a file.
//!
//! Most of these files count since boot, or since a group was made. `finish` of each takes the
//! difference of two readings, which stand in the folders `start` and `end` of a capture.

pub(crate) mod cgroups;
pub(crate) mod disks;
pub(crate) mod mount_process;
pub(crate) mod served;
pub(crate) mod tasks;
pub(crate) mod waits;

use crate::evidence::{Evidence, Figure, Number, Source, Table};

/// Adds what two readings show; `interval` is how far they are apart.
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

/// Which of two readings an input is, and the name that both have.
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

/// The reading that a table is of.
fn moment_of(table: &Table) -> Option<Moment> {
    table.figures.first().and_then(|figure| reading_of(&figure.source.input).0)
}

/// Two readings of one table. Without the first what it is about is new.
#[derive(Clone, Copy)]
struct Difference<'a> {
    start: Option<&'a Table>,
    end: &'a Table,
}

impl Difference<'_> {
    /// Growth of a counter; it does not shrink.
    fn growth(self, name: &str) -> Option<f64> {
        let before = self.start.map_or(Some(0.0), |start| value(start, name));
        Some((value(self.end, name)? - before.unwrap_or(0.0)).max(0.0))
    }
}

/// A figure of a table.
fn value(table: &Table, name: &str) -> Option<f64> {
    let figure = table.figures.iter().find(|figure| figure.name == name)?;
    match figure.value {
        Number::Counter(value) | Number::Gauge(value) | Number::Rate(value) => Some(value),
        Number::Text(_) => None,
    }
}

/// A word of a table.
fn word<'a>(table: &'a Table, name: &str) -> Option<&'a str> {
    let figure = table.figures.iter().find(|figure| figure.name == name)?;
    match &figure.value {
        Number::Text(word) => Some(word),
        _ => None,
    }
}

/// A table that was made of others, which has no figure yet.
fn made(name: &str) -> Table {
    Table { name: name.to_owned(), scope: None, taken_ns: None, age_s: None, figures: Vec::new() }
}

/// A figure of now that was made of others.
fn gauge(name: &str, value: f64, source: &Source) -> Figure {
    Figure { name: name.to_owned(), value: Number::Gauge(value), source: source.clone() }
}

/// A word that was made of others.
fn text(name: &str, value: &str, source: &Source) -> Figure {
    Figure { name: name.to_owned(), value: Number::Text(value.to_owned()), source: source.clone() }
}
