//! The traits of trace decoders, the steps that they return, and common parsers.

use super::error::Fault;
use super::input::Input;

/// The content of a line or record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The trace is over.
    End,
    /// No access: a comment, a header, an event of another kind.
    Nothing,
    /// An access.
    Access(Access),
    /// The trace itself reports this many missing accesses.
    Dropped(u64),
}

/// Accesses to one key or to neighbouring ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) what: What,
    pub(crate) is_write: bool,
    pub(crate) is_prefetch: bool,
}

/// The object of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A key, with its size if the trace has it.
    Key { key: u64, bytes: Option<u64> },
    /// Neighbouring blocks of the trace's own size, each a key.
    Blocks { first: u64, count: u64 },
    /// A range of bytes of a device or file. Each block that it touches is a key.
    Range { space: u64, offset_bytes: u64, bytes: u64 },
}

impl Step {
    /// A read of one key.
    pub(crate) const fn read(key: u64, bytes: Option<u64>) -> Self {
        let what = What::Key { key, bytes };
        Self::Access(Access { what, is_write: false, is_prefetch: false })
    }

    /// A read or write of a range of bytes.
    pub(crate) const fn range(space: u64, offset_bytes: u64, bytes: u64, is_write: bool) -> Self {
        let what = What::Range { space, offset_bytes, bytes };
        Self::Access(Access { what, is_write, is_prefetch: false })
    }
}

/// A decoder of a format.
pub(crate) trait Decode: Send {
    /// Makes a step. After [`Fault::Record`] the next step may be made.
    fn decode(&mut self, input: &mut Input) -> Result<Step, Fault>;
}

/// A decoder of a line format.
pub(crate) trait DecodeLine: Send {
    /// The step of a line, or its fault.
    fn line(&mut self, line: &str) -> Result<Step, String>;
}

/// Adapts a line format to [`Decode`].
pub(crate) struct Text<D>(pub(crate) D);

impl<D: DecodeLine + ?Sized> DecodeLine for Box<D> {
    fn line(&mut self, line: &str) -> Result<Step, String> {
        (**self).line(line)
    }
}

impl<D: DecodeLine> Decode for Text<D> {
    fn decode(&mut self, input: &mut Input) -> Result<Step, Fault> {
        let is_first = input.line_number() == 0;
        match input.line()? {
            None => Ok(Step::End),
            Some(line) => {
                let line = if is_first { without_mark(line) } else { line };
                if line.trim_ascii().is_empty() || is_comment(line) {
                    return Ok(Step::Nothing);
                }
                self.0.line(line).map_err(Fault::Record)
            }
        }
    }
}

/// Whether a line is a comment or blank, which no format reads.
pub(crate) fn is_comment(line: &str) -> bool {
    line.trim_ascii_start().starts_with('#')
}

/// A text without a byte order mark, which Windows programs write.
pub(crate) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Checks that all lines have the same number of columns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Width(Option<usize>);

impl Width {
    /// Checks the number of columns of a line.
    pub(crate) fn check(&mut self, columns: usize) -> Result<(), String> {
        let before = *self.0.get_or_insert(columns);
        match before == columns {
            true => Ok(()),
            false => Err(format!("{columns} columns, where the lines before have {before}")),
        }
    }
}

/// Refuses a column after the last one of a format.
pub(crate) fn no_more<'a>(
    mut columns: impl Iterator<Item = &'a str>,
    last: &str,
) -> Result<(), String> {
    match columns.next() {
        None => Ok(()),
        Some(more) => Err(format!("a column more than {last}: \"{}\"", shown(more))),
    }
}

/// Combines two numbers into one.
pub(crate) fn mix(space: u64, number: u64) -> u64 {
    if space == 0 {
        return number;
    }
    // The finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA '14) over both. The probability
    // that any two of 2^26 keys collide is 10^-4.
    let mut bits = number.wrapping_add(space.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31) ^ space.rotate_left(17)
}

/// A number for a name.
pub(crate) fn name_number(name: &str) -> u64 {
    use std::hash::BuildHasher as _;
    foldhash::quality::FixedState::with_seed(0).hash_one(name.as_bytes())
}

/// The number in a column.
pub(crate) fn number(text: Option<&str>, what: &str) -> Result<u64, String> {
    let text = text.ok_or_else(|| format!("{what} is missing"))?;
    text.parse().map_err(|_| format!("{what} is not a whole number: \"{}\"", shown(text)))
}

/// A text for a message: short, and without control characters.
pub(crate) fn shown(text: &str) -> String {
    const LENGTH_MAX: usize = 40;
    let mut shown: String = text.chars().filter(|c| !c.is_control()).take(LENGTH_MAX).collect();
    if text.chars().count() > LENGTH_MAX {
        shown.push_str("...");
    }
    shown
}
