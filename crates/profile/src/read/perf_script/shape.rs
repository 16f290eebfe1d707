//! Recognises the shape of a text by its beginning: which fields its lines have, and whether a
//! sample is a paragraph or a line.

use super::frame::Frame;
use super::head::{Fields, Head, is_record};

/// Lines that are examined at most.
const LINES_MAX: usize = 400;

/// The shape of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// The first line of a sample has a time or a CPU. The value is whether it has a thread's
    /// number.
    Marked(bool),
    /// It has neither, but these fields.
    Fields(Fields),
    /// The text consists of stacks only.
    Stacks,
}

impl Shape {
    /// The shape of a text by its beginning; `None` for another kind of text. A text with neither
    /// times nor CPUs is only recognised if `bare` is allowed, because much else looks like it.
    pub(super) fn of(beginning: &str, bare: bool) -> Option<Self> {
        let mut lines: Vec<&str> = beginning.lines().collect();
        if !beginning.ends_with('\n') && lines.len() > 1 {
            lines.pop();
        }
        let lines = lines.into_iter().filter(|line| !is_comment(line));
        let lines: Vec<&str> = lines.take(LINES_MAX).collect();
        Self::marked(&lines).or_else(|| if bare { Self::bare(&lines) } else { None })
    }

    fn marked(lines: &[&str]) -> Option<Self> {
        let (mut with_ids, mut without, mut others) = (0, 0, 0);
        let mut is_sure = false;
        for (at, line) in lines.iter().enumerate() {
            if line.starts_with('\t') || line.trim().is_empty() {
                continue;
            }
            let Some(head) = Head::with_time_or_cpu(line, true) else {
                others += usize::from(Frame::parse(line).is_none());
                continue;
            };
            let next = lines.get(at + 1).copied().unwrap_or_default();
            is_sure |= !head.event.is_empty()
                || Frame::parse(next).is_some()
                || Frame::at_end(head.rest).is_some();
            if head.has_ids() {
                with_ids += 1;
            } else {
                without += 1;
            }
        }
        let most_are_heads = with_ids + without > others;
        let ids = with_ids > without;
        (is_sure && (with_ids > 0 || most_are_heads) && with_ids + without > 0)
            .then_some(Self::Marked(ids))
    }

    fn bare(lines: &[&str]) -> Option<Self> {
        let records = |line: &str| line.split_ascii_whitespace().any(is_record);
        let blocks: Vec<&[&str]> = lines
            .split(|line| line.trim().is_empty())
            .filter(|block| block.first().is_some_and(|first| !records(first)))
            .collect();
        // A frame without a module needs perf's indentation, because much else has lines of an
        // address and a name.
        let is_frame = |line: &&&str| {
            Frame::parse(line).is_some_and(|frame| {
                !frame.has_second_address()
                    && (!frame.module.is_empty() || line.starts_with('\t') && frame.is_certain())
            })
        };
        let below: Vec<&&str> = blocks.iter().flat_map(|block| &block[1..]).collect();
        let frames = below.iter().filter(|line| is_frame(line)).count();
        let stacks = frames > 0 && frames * 10 >= below.len() * 8;
        let headless = blocks.iter().filter(|block| is_frame(&&block[0])).count();
        if stacks && headless * 10 >= blocks.len() * 9 {
            return Some(Self::Stacks);
        }
        let heads: Vec<&str> = if stacks {
            blocks.iter().map(|block| block[0]).collect()
        } else {
            lines.iter().copied().filter(|line| !line.trim().is_empty() && !records(line)).collect()
        };
        let fields: Vec<Fields> =
            heads.iter().filter_map(|line| Head::fields_of(line, !stacks)).collect();
        let most = |has: fn(&Fields) -> bool| {
            let count = fields.iter().filter(|fields| has(fields)).count();
            count * 2 > heads.len()
        };
        let found = Fields {
            ids: most(|fields| fields.ids),
            period: most(|fields| fields.period),
            event: most(|fields| fields.event),
            frame: !stacks,
        };
        let known = heads.iter().filter(|line| Head::with_fields(line, found).is_some()).count();
        let event = heads.iter().find_map(|line| Head::with_fields(line, found));
        let event = event.map_or("", |head| head.event);
        let sure = |line: &&&str| is_sure(line, found, event);
        let is_known = stacks || heads.iter().filter(sure).count() * 2 > heads.len();
        (is_known && known > 0 && known * 10 >= heads.len() * 8).then_some(Self::Fields(found))
    }
}

/// Whether a line without a stack below certainly is a sample. It ends with a frame in a module, or
/// it has numbers and the same event as the others.
fn is_sure(line: &str, fields: Fields, event: &str) -> bool {
    let Some(head) = Head::with_fields(line, fields) else { return false };
    head.frame().is_some_and(|frame| !frame.module.is_empty())
        || !event.is_empty() && head.event == event && (head.period.is_some() || head.has_ids())
}

/// Whether a line belongs to the description of the recording (`perf script --header`). Names of
/// threads may begin with the same mark.
pub(super) fn is_comment(line: &str) -> bool {
    line.starts_with("# ") || line.trim_end() == "#"
}
