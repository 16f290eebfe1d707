//! What each line of a text is. One rule for all: what is surely the beginning of a sample is one,
//! then what can be a frame of the sample before is that, and only then what looks like a beginning
//! by the shape of the text ([`Shape`]).
//!
//! The order matters because names of programs read as addresses (`dd`, `bc`, `cc1`, `f`), and
//! because no blank line ends a sample without a call graph.

use super::frame::Frame;
use super::head::{Head, is_record};
use super::shape::{Shape, is_comment};
use crate::model::event_base;

/// A line of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'t> {
    /// A sample begins.
    Head(Head<'t>),
    /// A frame of the sample that has begun, or of one that was left out.
    Frame(Frame<'t>),
    /// A blank line, which ends a sample.
    End,
    /// A line of the description of the recording.
    Comment,
    /// A record that says how many samples were lost.
    Lost(u64),
    /// Another record that is no sample: `PERF_RECORD_COMM`.
    Record,
    /// Where in the source the frame before is.
    Source,
    /// Something else.
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
    /// Of a text whose lines say when or where, and the thread's number, as they do unless asked
    /// otherwise.
    fn default() -> Self {
        Self { shape: Shape::Marked(true), in_sample: false, event: String::new() }
    }
}

impl Script {
    /// A reader in the middle of a stack.
    pub fn in_sample() -> Self {
        Self { in_sample: true, ..Self::default() }
    }

    /// A reader for a text that begins so; `None` if it is none of perf script.
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
        // Perf begins frames with a tab, and nothing else.
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

    /// A beginning that says neither when nor where.
    fn bare_head<'t>(&self, line: &'t str) -> Option<Head<'t>> {
        match self.shape {
            // Some samples have no time in a recording of several events; prose has none either.
            Shape::Marked(true) => {
                let fields = Head::fields_of(line, false)?;
                let is_one = fields.event && (fields.ids || fields.period);
                Head::with_fields(line, fields)
                    .filter(|head| is_one && event_base(head.event) == self.event)
            }
            Shape::Marked(false) => None,
            // In a paragraph, only what has an event.
            Shape::Fields(fields) => Head::with_fields(line, fields)
                .filter(|head| !self.in_sample || fields.frame || !head.event.is_empty()),
            Shape::Stacks => {
                let begins = !self.in_sample && Frame::parse(line).is_some();
                begins.then_some(Head { rest: line, ..Head::NOBODY })
            }
        }
    }
}

/// A record in a text whose lines need not say when.
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
