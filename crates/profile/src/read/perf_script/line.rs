//! Classifies the lines of a text. A certain head of a sample comes first, and then a possible
//! frame of the sample before. A possible head by the shape of the text ([`Shape`]) comes last.
//!
//! The order matters for two reasons. Names of programs look like addresses (`dd`, `bc`, `cc1`,
//! `f`), and no blank line ends a sample without a call graph.

use super::frame::Frame;
use super::head::{Head, is_record};
use super::shape::{Shape, is_comment};
use crate::model::event_base;

/// A line of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'t> {
    /// The head of a sample.
    Head(Head<'t>),
    /// A frame of the current sample, or of one that was left out.
    Frame(Frame<'t>),
    /// A blank line, which ends a sample.
    End,
    /// A line of the recording's description.
    Comment,
    /// A record with the number of lost samples.
    Lost(u64),
    /// Another record that is not a sample, such as `PERF_RECORD_COMM`.
    Record,
    /// The source line of the preceding frame.
    Source,
    /// Another line.
    Other,
}

/// Reads a text line by line.
#[derive(Debug, Clone)]
pub struct Script {
    shape: Shape,
    in_sample: bool,
    /// The event of the last sample, without its modifiers.
    event: String,
}

impl Default for Script {
    /// For a text whose head lines have a time or a CPU and the thread's number, which is perf's
    /// default.
    fn default() -> Self {
        Self { shape: Shape::Marked(true), in_sample: false, event: String::new() }
    }
}

impl Script {
    /// A reader in the middle of a stack.
    pub fn in_sample() -> Self {
        Self { in_sample: true, ..Self::default() }
    }

    /// A reader for a text with this beginning; `None` if `perf script` did not write it.
    pub(super) fn of(beginning: &str, bare: bool) -> Option<Self> {
        Some(Self { shape: Shape::of(beginning, bare)?, ..Self::default() })
    }

    /// Reads the next line.
    pub fn line<'t>(&mut self, line: &'t str) -> Line<'t> {
        let read = self.read(line);
        match read {
            Line::Head(head) => {
                self.in_sample = true;
                let event = event_base(head.event);
                if event != self.event {
                    event.clone_into(&mut self.event);
                }
            }
            Line::End | Line::Lost(_) | Line::Record => self.in_sample = false,
            _ => {}
        }
        read
    }

    fn read<'t>(&self, line: &'t str) -> Line<'t> {
        if line.trim().is_empty() {
            return Line::End;
        }
        let frame = || Frame::parse(line);
        // Only perf's frames begin with a tab.
        if line.starts_with('\t')
            && self.in_sample
            && let Some(frame) = frame()
        {
            return Line::Frame(frame);
        }
        if let Shape::Marked(ids) = self.shape
            && let Some(head) = Head::with_time_or_cpu(line, ids)
        {
            return if is_record(head.event) {
                record(head.event, head.rest)
            } else {
                Line::Head(head)
            };
        }
        if let Some(record) = bare_record(line) {
            return record;
        }
        let alone = matches!(self.shape, Shape::Fields(fields) if fields.frame);
        if self.in_sample
            && !alone
            && let Some(frame) = frame()
        {
            return Line::Frame(frame);
        }
        if is_comment(line) {
            return Line::Comment;
        }
        if let Some(head) = self.bare_head(line) {
            return Line::Head(head);
        }
        if line.starts_with('#') {
            return Line::Comment;
        }
        if self.in_sample && is_place_in_source(line) { Line::Source } else { Line::Other }
    }

    /// A head with neither time nor CPU.
    fn bare_head<'t>(&self, line: &'t str) -> Option<Head<'t>> {
        match self.shape {
            // Some samples of a recording with several events have no time, and prose has none
            // either.
            Shape::Marked(true) => {
                let fields = Head::fields_of(line, false)?;
                let is_one = fields.event && (fields.ids || fields.period);
                Head::with_fields(line, fields)
                    .filter(|head| is_one && event_base(head.event) == self.event)
            }
            Shape::Marked(false) => None,
            // In a paragraph, only a line with an event is a head.
            Shape::Fields(fields) => Head::with_fields(line, fields)
                .filter(|head| !self.in_sample || fields.frame || !head.event.is_empty()),
            Shape::Stacks => {
                let begins = !self.in_sample && Frame::parse(line).is_some();
                begins.then_some(Head { rest: line, ..Head::EMPTY })
            }
        }
    }
}

/// A record in a text whose lines may have no time.
fn bare_record(line: &str) -> Option<Line<'_>> {
    if !line.contains("PERF_RECORD_") {
        return None;
    }
    let word = line.split_ascii_whitespace().find(|word| is_record(word))?;
    let end = word.as_ptr() as usize - line.as_ptr() as usize + word.len();
    Some(record(word, &line[end..]))
}

/// `PERF_RECORD_LOST lost 12`, `PERF_RECORD_LOST_SAMPLES lost 3`.
fn record<'t>(name: &str, rest: &str) -> Line<'t> {
    if !name.starts_with("PERF_RECORD_LOST") {
        return Line::Record;
    }
    let mut words = rest.split_ascii_whitespace().skip_while(|word| *word != "lost").skip(1);
    words.next().and_then(|number| number.parse().ok()).map_or(Line::Record, Line::Lost)
}

/// `  main.c:12`, `  ??:0`, `  memset.S:151 (discriminator 2)`, `  read_zero+7`.
fn is_place_in_source(line: &str) -> bool {
    let Some(place) = line.strip_prefix("  ").filter(|place| !place.starts_with(' ')) else {
        return false;
    };
    let place = place.trim_end();
    let place = place.split_once(" (discriminator ").map_or(place, |(place, _)| place);
    !place.contains(' ') && place.contains([':', '+', '['])
}
