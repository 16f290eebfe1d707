//! Adds facts to the evidence, each with its input and line.

use std::sync::Arc;

use super::clean::Line;
use crate::evidence::{
    CpuUse, Evidence, Number, Parameter, Property, Source, Statement, Table, Thread,
};

/// Lines of one input that are listed as not understood; further ones are only counted.
const MAX_NOT_UNDERSTOOD: usize = 200;

/// Characters that are kept of a line that is only reported.
const MAX_REPORTED_CHARACTERS: usize = 1000;

/// One input on its way into the evidence.
#[derive(Debug)]
pub(crate) struct Reading<'e> {
    /// Receives the facts.
    pub(crate) evidence: &'e mut Evidence,
    /// Name of the input.
    pub(crate) input: Arc<str>,
    /// Lines that the reader of a section left over: number and text.
    pub(crate) left_over: Vec<(u32, String)>,
    /// Lines that no format claims; not all of them are listed.
    pub(crate) unread: usize,
    /// Number of the first of them.
    pub(crate) first_unread: Option<u32>,
    /// Number of the list of threads or processes that is being read.
    pub(crate) list: u32,
}

impl<'e> Reading<'e> {
    /// Begins an input.
    pub(crate) fn new(evidence: &'e mut Evidence, input: Arc<str>) -> Self {
        let left_over = Vec::new();
        Self { evidence, input, left_over, unread: 0, first_unread: None, list: 0 }
    }

    /// The place of a line.
    pub(crate) fn at(&self, line: &Line<'_>) -> Source {
        self.at_number(line.number)
    }

    /// The place of a line given by its number.
    pub(crate) fn at_number(&self, line: u32) -> Source {
        Source { input: Arc::clone(&self.input), line: Some(line) }
    }

    /// A value with the place of its line.
    pub(crate) fn statement<T>(&self, value: T, line: &Line<'_>) -> Statement<T> {
        Statement { value, source: self.at(line) }
    }

    /// A row of the current list; only its name is known yet.
    pub(crate) fn thread(&self, name: String, line: &Line<'_>) -> Thread {
        Thread::named(name, self.list, self.at(line))
    }

    /// The use of CPUs if only the sum is known.
    pub(crate) fn busy(&self, percent: f64, line: &Line<'_>) -> CpuUse {
        let user = percent.clamp(0.0, 100.0);
        CpuUse { user, idle: 100.0 - user, is_split: false, ..CpuUse::none(self.at(line)) }
    }

    /// Leaves a line over: it is not of the reader's format (a sentence, damage).
    pub(crate) fn leave(&mut self, line: &Line<'_>) {
        if !line.text.trim().is_empty() {
            self.left_over.push((line.number, line.text.trim().to_owned()));
        }
    }

    /// Reports a line that no format claims.
    pub(crate) fn not_understood(&mut self, number: u32, text: &str) {
        self.unread += 1;
        self.first_unread = Some(self.first_unread.map_or(number, |first| first.min(number)));
        if self.unread > MAX_NOT_UNDERSTOOD {
            return;
        }
        let value = text.chars().take(MAX_REPORTED_CHARACTERS).collect();
        let source = self.at_number(number);
        self.evidence.not_understood.push(Statement { value, source });
    }

    /// Begins a table of figures.
    pub(crate) fn table(&self, name: &str) -> Rows {
        Rows { input: Arc::clone(&self.input), table: Table::named(name) }
    }

    /// Ends a table; one without figures is dropped.
    pub(crate) fn push(&mut self, rows: Rows) {
        if !rows.table.figures.is_empty() {
            self.evidence.tables.push(rows.table);
        }
    }

    /// A parameter of a module or system.
    pub(crate) fn parameter(&mut self, name: &str, value: &str, line: &Line<'_>) {
        let source = self.at(line);
        let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
        self.evidence.parameters.push(Parameter { name, value, source });
    }

    /// A property of a dataset or pool.
    pub(crate) fn property(
        &mut self,
        owner: &str,
        of_pool: bool,
        name: &str,
        value: &str,
        line: &Line<'_>,
    ) {
        let source = self.at(line);
        self.evidence.properties.push(Property {
            owner: owner.to_owned(),
            of_pool,
            name: name.to_lowercase(),
            value: value.to_owned(),
            origin: None,
            source,
        });
    }

    /// A line of a log.
    pub(crate) fn log(&mut self, text: &str, line: &Line<'_>) {
        let line = self.statement(text.trim().to_owned(), line);
        self.evidence.log.push(line);
    }
}

/// A table being filled.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    input: Arc<str>,
    /// The table so far.
    pub(crate) table: Table,
}

impl Rows {
    /// Sets the subject of the table.
    pub(crate) fn scope(mut self, scope: impl Into<String>) -> Self {
        self.table.scope = Some(scope.into());
        self
    }

    /// Sets the time of reading, in seconds.
    pub(crate) fn taken(mut self, seconds: Option<f64>) -> Self {
        self.table.taken_ns = seconds.map(|seconds| (seconds * 1e9) as i128);
        self
    }

    fn figure(&mut self, name: &str, value: Option<Number>, line: &Line<'_>) {
        let source = Source { input: Arc::clone(&self.input), line: Some(line.number) };
        self.table.add(name, value, &source);
    }

    /// Adds a momentary figure.
    pub(crate) fn gauge(&mut self, name: &str, value: Option<f64>, line: &Line<'_>) {
        self.figure(name, value.map(Number::Gauge), line);
    }

    /// Adds a figure that only grows.
    pub(crate) fn counter(&mut self, name: &str, value: Option<f64>, line: &Line<'_>) {
        self.figure(name, value.map(Number::Counter), line);
    }

    /// Adds a figure per second.
    pub(crate) fn rate(&mut self, name: &str, value: Option<f64>, line: &Line<'_>) {
        self.figure(name, value.map(Number::Rate), line);
    }

    /// Adds a word.
    pub(crate) fn text(&mut self, name: &str, value: &str, line: &Line<'_>) {
        self.figure(name, Some(value.trim().into()), line);
    }

    /// Adds a figure of the given kind.
    pub(crate) fn number(&mut self, name: &str, value: Number, line: &Line<'_>) {
        self.figure(name, Some(value), line);
    }
}
