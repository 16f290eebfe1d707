//! Detects a trace's format by its name or its beginning.
//!
//! A format *fits* if its decoder accepts every line, or record, of the beginning, and if the values
//! are plausible. Columns of numbers can mean anything: a column of times must not fall, a key must
//! keep its size, and so on ([`Columns`]). If the values are implausible, the format is only
//! *possible*. A trace is recognised if one format fits and no other is possible. Otherwise the user
//! must name it, because a trace in the wrong format gives a wrong answer that looks right.
//!
//! The rest of the trace is decoded as strictly: a different line is an error, and never the
//! beginning of another format.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::binary_formats::{ORACLE_GENERAL_BYTES, little_u32, little_u64, vscsi_version};
use super::decode::{DecodeLine, Step, is_comment, without_mark};
use super::format::Format;
use super::key_formats::{Shape, key_columns};

/// Bytes of a trace that are examined.
pub(super) const LOOKED_AT_BYTES: usize = 64 << 10;
/// Devices that a recording of a disk array may have; keys are more.
const DEVICES_MAX: usize = 64;
/// Lines that a format must have fitted before the fault of the next one is reported.
const LINES_BEFORE_MISFIT: usize = 2;

/// The format of a recognised beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recognised {
    pub(super) format: Format,
    /// The shape of its lines, for formats with several.
    pub(super) shape: Option<Shape>,
}

/// The certainty that a beginning has a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    /// It has, unless another format fits too.
    Fits,
    /// It may have: only the user can decide.
    Possible,
    /// It has not.
    No,
}

/// The format of a trace with this name and beginning, or the reason why it is not recognised.
pub(super) fn recognise(path: &Path, beginning: &[u8]) -> Result<Recognised, String> {
    let is_ours = beginning.starts_with(&ogive_kstat::trace::MAGIC);
    let named = if is_ours { Some(Format::Ogive) } else { Format::by_name(path) };
    if let Some(format) = named {
        return Ok(Recognised { format, shape: None });
    }
    let whole = whole_lines(beginning);
    match std::str::from_utf8(whole) {
        Ok(text) if !whole.is_empty() && !text.contains('\0') => of_text(without_mark(text)),
        _ => of_binary(beginning),
    }
}

/// The complete lines. The last line of a short trace may have no line feed.
fn whole_lines(beginning: &[u8]) -> &[u8] {
    if beginning.len() < LOOKED_AT_BYTES {
        return beginning;
    }
    let end = beginning.iter().rposition(|&byte| byte == b'\n');
    end.map_or(&[], |end| &beginning[..end])
}

fn of_text(text: &str) -> Result<Recognised, String> {
    let lines: Vec<(usize, &str)> =
        (1..).zip(text.lines()).filter(|(_, l)| is_access_line(l)).collect();
    let columns = Columns::new(lines.iter().map(|(_, line)| *line));
    let (mut fitting, mut possible, mut almost) = (Vec::new(), Vec::new(), Vec::new());
    for (format, _, _) in Format::all() {
        let Some(decoder) = format.line_decoder(columns.shape()) else { continue };
        match accesses(decoder, &lines) {
            Ok(0) if !is_marked(format) => {}
            Ok(_) => match columns.fit(format) {
                Fit::Fits => fitting.push(format),
                Fit::Possible => possible.push(format),
                Fit::No => {}
            },
            Err(_) if columns.fit(format) == Fit::No => {}
            Err(misfit) => almost.push((misfit, format)),
        }
    }
    match (&fitting[..], &possible[..]) {
        ([format], []) => Ok(Recognised { format: *format, shape: columns.shape() }),
        ([], []) => Err(nothing_fits(almost)),
        _ => Err(several(&[fitting, possible].concat())),
    }
}

/// Whether lines without accesses suffice to recognise a format.
fn is_marked(format: Format) -> bool {
    matches!(format, Format::Fio | Format::BlkParse | Format::ZfsReads)
}

fn is_access_line(line: &str) -> bool {
    !line.trim_ascii().is_empty() && !is_comment(line)
}

/// The place where a format does not fit.
struct Misfit {
    /// The number of lines that fitted before.
    before: usize,
    line: usize,
    reason: String,
}

/// The number of accesses that a decoder finds in these lines, or its first misfit.
fn accesses(mut decoder: Box<dyn DecodeLine>, lines: &[(usize, &str)]) -> Result<usize, Misfit> {
    let mut count = 0;
    for (before, (line, text)) in lines.iter().enumerate() {
        match decoder.line(text) {
            Ok(step) => count += usize::from(matches!(step, Step::Access(_))),
            Err(reason) => return Err(Misfit { before, line: *line, reason }),
        }
    }
    Ok(count)
}

fn several(formats: &[Format]) -> String {
    let names: Vec<String> = formats.iter().map(ToString::to_string).collect();
    let names = names.join(" or ");
    format!("its format is not recognised: it could be {names}; choose with --format NAME")
}

fn nothing_fits(mut almost: Vec<(Misfit, Format)>) -> String {
    const REMEDY: &str = "give it with --format NAME, if \"ogive sim --help\" lists it";
    almost.sort_by_key(|(misfit, _)| std::cmp::Reverse(misfit.before));
    let longest = almost.first().map_or(0, |(misfit, _)| misfit.before);
    let alone = almost.get(1).is_none_or(|(misfit, _)| misfit.before < longest);
    match almost.first() {
        Some((Misfit { line, reason, .. }, format)) if longest >= LINES_BEFORE_MISFIT && alone => {
            format!(
                "its format is not recognised: {format} fits up to line {line}: {reason}; {REMEDY}"
            )
        }
        _ => format!("its format is not recognised: none fits; {REMEDY}"),
    }
}

/// The columns of the lines, for checks that need more than one line.
struct Columns<'a> {
    rows: Vec<Vec<&'a str>>,
    /// A key and optionally its size, if no line has more columns.
    keys: Vec<(&'a str, Option<&'a str>)>,
}

impl<'a> Columns<'a> {
    fn new(lines: impl Iterator<Item = &'a str> + Clone) -> Self {
        let rows = lines.clone().map(|line| line.split_ascii_whitespace().collect()).collect();
        Self { rows, keys: lines.map_while(key_columns).collect() }
    }

    /// The shape of the keys.
    fn shape(&self) -> Option<Shape> {
        let are_numbers = self.keys.iter().all(|(key, _)| key.parse::<u64>().is_ok());
        (!self.keys.is_empty()).then_some(Shape { are_numbers })
    }

    /// Whether a format that decodes all lines is plausible for them.
    fn fit(&self, format: Format) -> Fit {
        let width = self.rows.first().map_or(0, Vec::len);
        let is_sure = match format {
            // Without the number of the request, too little evidence is left.
            Format::Lis if width != 4 => return Fit::No,
            Format::Lis => !self.falls(3),
            Format::MqSim => {
                let devices: HashSet<&str> = self.column(1).collect();
                let moves = self.column(3).all(|sectors| sectors.parse() != Ok(0));
                devices.len() <= DEVICES_MAX && moves && !self.falls(0)
            }
            Format::TimeKeySize => {
                let sizes = self.column(2);
                let are_sizes = sizes.clone().any(|size| size.parse() != Ok(0));
                let is_sound = are_sizes && !self.falls(0) && keep_size(self.column(1).zip(sizes));
                match width {
                    3 => is_sound,
                    // Other columns have an unknown meaning.
                    _ if is_sound => false,
                    _ => return Fit::No,
                }
            }
            // The same as plain keys, except that a star separates phases.
            Format::Lirs if !self.rows.iter().any(|row| row == &["*"]) => return Fit::No,
            Format::Keys => self.are_keys(),
            _ => true,
        };
        if is_sure { Fit::Fits } else { Fit::Possible }
    }

    fn are_keys(&self) -> bool {
        let keys = || self.keys.iter().map(|(key, _)| *key);
        let sizes: Vec<&str> = self.keys.iter().filter_map(|(_, size)| *size).collect();
        if sizes.is_empty() {
            return !is_parted(keys());
        }
        // Numbers that only rise are probably times, and the next column is the key.
        let numbers: Option<Vec<u64>> = keys().map(|key| key.parse().ok()).collect();
        let rises = numbers.is_some_and(|numbers| {
            numbers.len() > 1 && numbers.windows(2).all(|pair| pair[0] < pair[1])
        });
        let are_several = sizes.iter().any(|size| *size != sizes[0]);
        keep_size(keys().zip(sizes)) && !(rises && are_several)
    }

    fn column(&self, at: usize) -> impl Iterator<Item = &'a str> + Clone + '_ {
        self.rows.iter().filter_map(move |row| row.get(at).copied())
    }

    /// Whether the numbers in a column ever fall.
    fn falls(&self, at: usize) -> bool {
        let numbers: Vec<f64> = self.column(at).filter_map(|text| text.parse().ok()).collect();
        numbers.windows(2).any(|pair| pair[1] < pair[0])
    }
}

/// Whether repeated keys mostly have the same size as before.
fn keep_size<'a>(accesses: impl Iterator<Item = (&'a str, &'a str)>) -> bool {
    let mut sizes = HashMap::new();
    let (mut again, mut other) = (0_usize, 0_usize);
    for (key, size) in accesses {
        if let Some(before) = sizes.insert(key, size) {
            again += 1;
            other += usize::from(before != size);
        }
    }
    other * 2 <= again
}

/// Whether keys look like several columns with a separator other than a blank or a comma. Each line
/// has the same number of them, and one of them has only numbers.
fn is_parted<'a>(keys: impl Iterator<Item = &'a str> + Clone) -> bool {
    [';', '|', ':'].into_iter().any(|mark| {
        let count = |key: &str| key.matches(mark).count();
        let marks = keys.clone().next().map_or(0, count);
        let is_number = |at: usize| {
            let mut pieces = keys.clone().map(|key| key.split(mark).nth(at).unwrap_or_default());
            pieces.all(|piece| piece.parse::<f64>().is_ok())
        };
        // `user:7` is a key of many stores, and `17:7:4096` is not.
        let looked_at = if mark == ':' { 0..=0 } else { 0..=marks };
        let is_regular = marks > 0 && keys.clone().all(|key| count(key) == marks);
        is_regular && looked_at.into_iter().any(is_number)
    })
}

/// Detects binary formats. Bare big-endian keys cannot be recognised.
fn of_binary(bytes: &[u8]) -> Result<Recognised, String> {
    let all = [(Format::Vscsi, is_vscsi(bytes)), (Format::OracleGeneral, is_oracle_general(bytes))];
    let fitting: Vec<Format> = all.iter().filter(|(_, fits)| *fits).map(|(f, _)| *f).collect();
    match fitting[..] {
        [format] => Ok(Recognised { format, shape: None }),
        [] => Err(
            "its format is not recognised: it is not text, and no binary format fits; name the \
                 format with --format NAME (always needed for be32 and be64)"
                .to_owned(),
        ),
        _ => Err(several(&fitting)),
    }
}

fn is_vscsi(bytes: &[u8]) -> bool {
    bytes.len() >= 40 && vscsi_version(bytes).is_some()
}

fn is_oracle_general(bytes: &[u8]) -> bool {
    let records: Vec<&[u8]> = bytes.chunks_exact(ORACLE_GENERAL_BYTES).collect();
    let next_uses_fit = records.iter().zip(1_u64..).all(|(record, number)| {
        let next = little_u64(record, 16);
        next == u64::MAX || next == i64::MAX as u64 || (number..1 << 40).contains(&next)
    });
    let sizes_fit = records.iter().all(|record| little_u32(record, 12) < 1 << 31);
    let times_rise =
        records.windows(2).all(|pair| little_u32(pair[0], 0) <= little_u32(pair[1], 0));
    records.len() >= 2 && next_uses_fit && sizes_fit && times_rise
}
