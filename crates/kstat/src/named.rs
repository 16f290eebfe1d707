//! The Linux text of a named kstat, `/proc/spl/kstat/<module>/<name>`.
//!
//! ```text
//! 12 1 0x01 148 40256 866730933347 977093119499     kid type flags ndata data_size crtime snaptime
//! name                            type data
//! hits                            4    16711
//! ```
//!
//! Source: `kstat_seq_show_headers` and `kstat_seq_show_named` in OpenZFS's
//! `module/os/linux/spl/spl-kstat.c`. A row is the name left-justified in 31 columns, a space, the
//! type code left-justified in 4, a space, the value. A longer name shifts the rest of its row to
//! the right, and names and string values may contain spaces. So neither fixed columns nor
//! splitting at blanks works alone. The reader looks for the type code at its column or, after a
//! long name, at the first later place that looks like one.
//!
//! The writer is byte-exact: reading a file of OpenZFS and writing it gives the same bytes.

use std::fmt::Write as _;
use std::str::FromStr;

use crate::error::{ParseError, ParseErrorKind};
use crate::kstat::{Entry, Kstat, Value};
use crate::limits;

/// Bytes of a row in the kernel's own table (`sizeof (kstat_named_t)`), which `data_size` counts.
pub const ROW_BYTES: u64 = 272;

const NAME_COLUMNS: usize = 31;
const COLUMN_LINE: [&str; 3] = ["name", "type", "data"];
const TYPE_NAMED: i64 = 1;

/// Whether the first line of `input` has the seven fields of a kstat header.
pub fn recognises(input: &[u8]) -> bool {
    let first = input.split(|&byte| byte == b'\n').next().unwrap_or_default();
    first.len() <= limits::MAX_LINE_BYTES
        && std::str::from_utf8(first).is_ok_and(|line| parse_header(line).is_ok())
}

/// Reads one named kstat; `module` and `name` come from its path.
///
/// # Errors
/// Any deviation from the format, with its line. [`ParseErrorKind::NotNamed`] for raw kstats with
/// the same header (`fletcher_4_bench`, `dbufs`).
pub fn parse(module: &str, name: &str, input: &[u8]) -> Result<Kstat, ParseError> {
    limits::check_length(input)?;
    let mut lines = Lines::new(input);
    let header_line = lines.next_line("the header")?;
    let header = parse_header(header_line).map_err(|kind| ParseError::new(1, kind))?;
    if header.kstat_type != TYPE_NAMED {
        return Err(ParseError::new(1, ParseErrorKind::NotNamed(header.kstat_type)));
    }
    if !lines.next_line("the line `name type data`")?.split_whitespace().eq(COLUMN_LINE) {
        return Err(ParseError::new(2, ParseErrorKind::ColumnLine));
    }
    let promised = usize::try_from(header.row_count)
        .map_err(|_| ParseError::new(1, ParseErrorKind::Header("the row count is negative")))?;
    let mut entries = Vec::new();
    while let Some(line) = lines.next_row()? {
        if entries.len() == limits::MAX_ROWS {
            return Err(lines.error(ParseErrorKind::TooManyRows));
        }
        entries.push(parse_row(line).map_err(|kind| lines.error(kind))?);
    }
    if entries.len() != promised {
        let found = entries.len();
        return Err(lines.error(ParseErrorKind::RowCount { promised, found }));
    }
    let rows_bytes = entries.len() as u64 * ROW_BYTES;
    let mut kstat = Kstat::new(module, name);
    kstat.kid = header.kid;
    kstat.flags = header.flags;
    kstat.data_size_bytes = (header.data_size != rows_bytes).then_some(header.data_size);
    kstat.crtime_ns = header.crtime_ns;
    kstat.snaptime_ns = header.snaptime_ns;
    kstat.entries = entries;
    Ok(kstat)
}

/// Writes `kstat` exactly as OpenZFS on Linux prints it.
///
/// A line feed inside a name or a string would break the rows, so it is written as a space.
pub fn write(kstat: &Kstat) -> String {
    let rows = kstat.entries.len();
    let mut text = String::with_capacity(128 + rows * 56);
    let data_size = kstat.data_size_bytes.unwrap_or(rows as u64 * ROW_BYTES);
    // Writing to a String cannot fail, so the results are ignored.
    let _ = writeln!(
        text,
        "{} {TYPE_NAMED} 0x{:02x} {rows} {data_size} {} {}",
        kstat.kid, kstat.flags, kstat.crtime_ns, kstat.snaptime_ns
    );
    let [name, kind, data] = COLUMN_LINE;
    let _ = writeln!(text, "{name:<31} {kind:<4} {data}");
    for entry in &kstat.entries {
        let row_start = text.len();
        let _ = write!(text, "{:<31} {:<4} ", entry.name, entry.value.type_code());
        let _ = match &entry.value {
            Value::Char(characters) => write!(text, "{characters:<16}"),
            value => write!(text, "{value}"),
        };
        if text[row_start..].contains('\n') {
            let row = text.split_off(row_start).replace('\n', " ");
            text.push_str(&row);
        }
        text.push('\n');
    }
    text
}

struct Header {
    kid: i64,
    kstat_type: i64,
    flags: u32,
    row_count: i64,
    data_size: u64,
    crtime_ns: i64,
    snaptime_ns: i64,
}

fn parse_header(line: &str) -> Result<Header, ParseErrorKind> {
    fn number<T: FromStr>(text: Option<&str>, what: &'static str) -> Result<T, ParseErrorKind> {
        text.and_then(|text| text.parse().ok()).ok_or(ParseErrorKind::Header(what))
    }
    let mut words = line.split_whitespace();
    let header = Header {
        kid: number(words.next(), "field 1 (kid) is not a number")?,
        kstat_type: number(words.next(), "field 2 (type) is not a number")?,
        flags: words
            .next()
            .and_then(|word| word.strip_prefix("0x"))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .ok_or(ParseErrorKind::Header("field 3 (flags) is not 0x and hexadecimal digits"))?,
        row_count: number(words.next(), "field 4 (ndata) is not a number")?,
        data_size: number(words.next(), "field 5 (data_size) is not a number")?,
        crtime_ns: number(words.next(), "field 6 (crtime) is not a number")?,
        snaptime_ns: number(words.next(), "field 7 (snaptime) is not a number")?,
    };
    match words.next() {
        None => Ok(header),
        Some(_) => Err(ParseErrorKind::Header("more than seven fields")),
    }
}

fn parse_row(line: &str) -> Result<Entry, ParseErrorKind> {
    let (name, code, value) = match type_column(line.as_bytes()) {
        // The bytes around the column are ASCII, so the slices end at character boundaries.
        Some(at) => (line[..at].trim_end(), &line[at..=at], line.get(at + 5..).unwrap_or("")),
        None => split_at_blanks(line)?,
    };
    if name.is_empty() {
        return Err(ParseErrorKind::Row("no name"));
    }
    let value = parse_value(code, value)?;
    Ok(Entry { name: name.to_owned(), value })
}

/// Position of the type code: a digit between a space and the three spaces that pad it to four
/// columns, at column 32 or, after a longer name, further right.
fn type_column(row: &[u8]) -> Option<usize> {
    let is_type_at = |at: usize| {
        row.get(at - 1) == Some(&b' ')
            && row.get(at).is_some_and(u8::is_ascii_digit)
            && row.get(at + 1..at + 5) == Some(&b"    "[..])
    };
    (NAME_COLUMNS + 1..row.len().saturating_sub(4)).find(|&at| is_type_at(at))
}

/// Splits rows without columns, from other programs or from `sed`, into three words. The last word
/// extends to the end of the line.
fn split_at_blanks(line: &str) -> Result<(&str, &str, &str), ParseErrorKind> {
    let (name, rest) = line
        .trim_start()
        .split_once(char::is_whitespace)
        .ok_or(ParseErrorKind::Row("expected a name, a type and a value"))?;
    let rest = rest.trim_start();
    let (code, value) = rest
        .split_once(char::is_whitespace)
        .ok_or(ParseErrorKind::Row("expected a type and a value behind the name"))?;
    Ok((name, code, value.trim_start()))
}

fn parse_value(code: &str, text: &str) -> Result<Value, ParseErrorKind> {
    fn number<T: FromStr>(text: &str, type_code: u8) -> Result<T, ParseErrorKind> {
        let value = text.trim();
        value.parse().map_err(|_| ParseErrorKind::Number { value: value.to_owned(), type_code })
    }
    Ok(match code {
        "0" => Value::Char(text.trim_end().to_owned()),
        "1" => Value::I32(number(text, 1)?),
        "2" => Value::U32(number(text, 2)?),
        "3" => Value::I64(number(text, 3)?),
        "4" => Value::U64(number(text, 4)?),
        "5" => Value::Long(number(text, 5)?),
        "6" => Value::Ulong(number(text, 6)?),
        "7" => Value::Str(text.to_owned()),
        _ => return Err(ParseErrorKind::DataType(code.to_owned())),
    })
}

/// Lines of an input with their numbers, bounded and checked for UTF-8 one at a time.
pub(crate) struct Lines<'a> {
    rest: std::slice::Split<'a, u8, fn(&u8) -> bool>,
    number: usize,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(input: &'a [u8]) -> Self {
        fn is_line_feed(byte: &u8) -> bool {
            *byte == b'\n'
        }
        Self { rest: input.split(is_line_feed), number: 0 }
    }

    /// An error on the last returned line.
    pub(crate) fn error(&self, kind: ParseErrorKind) -> ParseError {
        ParseError::new(self.number.max(1), kind)
    }

    /// The next line that is not blank, or `None` at the end.
    pub(crate) fn next_row(&mut self) -> Result<Option<&'a str>, ParseError> {
        while let Some(bytes) = self.next_bytes() {
            let line = self.checked(bytes)?;
            if !line.trim().is_empty() {
                return Ok(Some(line));
            }
        }
        Ok(None)
    }

    /// The next line, unchecked.
    pub(crate) fn next_bytes(&mut self) -> Option<&'a [u8]> {
        let bytes = self.rest.next()?;
        self.number += 1;
        Some(bytes.strip_suffix(b"\r").unwrap_or(bytes))
    }

    pub(crate) fn checked(&self, bytes: &'a [u8]) -> Result<&'a str, ParseError> {
        if bytes.len() > limits::MAX_LINE_BYTES {
            return Err(self.error(ParseErrorKind::LineTooLong { bytes: bytes.len() }));
        }
        std::str::from_utf8(bytes).map_err(|_| self.error(ParseErrorKind::NotUtf8))
    }

    fn next_line(&mut self, expected: &'static str) -> Result<&'a str, ParseError> {
        match self.next_bytes() {
            Some(bytes) if !bytes.is_empty() => self.checked(bytes),
            _ => Err(self.error(ParseErrorKind::Truncated { expected })),
        }
    }
}
