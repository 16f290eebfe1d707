//! Text formats of keys: ARC's `.lis`, LIRS, plain keys, time with key and size, MQSim.

use super::decode::{Access, DecodeLine, Step, What, Width, name_number, no_more, number, shown};

/// `first_block blocks ignored request_number`: each line is this many consecutive blocks (Megiddo
/// and Modha's traces). The last two columns may be missing in all lines.
#[derive(Default)]
pub(super) struct Lis {
    width: Width,
}

impl DecodeLine for Lis {
    fn line(&mut self, line: &str) -> Result<Step, String> {
        let mut columns = line.split_ascii_whitespace();
        let first = number(columns.next(), "the first block")?;
        let count = number(columns.next(), "the number of blocks")?;
        for what in ["the column that is ignored", "the request's number"] {
            columns.next().map(|text| number(Some(text), what)).transpose()?;
        }
        no_more(columns, "the request's number")?;
        self.width.check(line.split_ascii_whitespace().count())?;
        let what = What::Blocks { first, count };
        Ok(Step::Access(Access { what, is_write: false, is_prefetch: false }))
    }
}

/// One block number per line; lines of `*` separate phases (the traces of LIRS).
pub(super) struct Lirs;

impl DecodeLine for Lirs {
    fn line(&mut self, line: &str) -> Result<Step, String> {
        match line.trim_ascii() {
            "*" => Ok(Step::Nothing),
            text => number(Some(text), "the block").map(|key| Step::read(key, None)),
        }
    }
}

/// One key per line, any text, and optionally its size in bytes after blanks or a comma. All lines
/// have a size or none, because a key without a size would weigh 1 among bytes.
#[derive(Default)]
pub(super) struct Keys {
    width: Width,
    /// The shape of every key, if the format was recognised.
    shape: Option<Shape>,
}

/// The shape that recognised the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) are_numbers: bool,
}

impl Keys {
    /// For keys of this shape only, if one is given.
    pub(super) fn of(shape: Option<Shape>) -> Self {
        Self { width: Width::default(), shape }
    }
}

/// The key of a line and the text of its size; `None` if the line has neither or more columns.
pub(super) fn key_columns(line: &str) -> Option<(&str, Option<&str>)> {
    let mut columns = key_pieces(line);
    let key = columns.next()?;
    let size = columns.next();
    columns.next().is_none().then_some((key, size))
}

fn key_pieces(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| c == ',' || c.is_ascii_whitespace()).filter(|text| !text.is_empty())
}

impl DecodeLine for Keys {
    fn line(&mut self, line: &str) -> Result<Step, String> {
        let mut columns = key_pieces(line);
        let key = columns.next().ok_or("the key is missing")?;
        let bytes = columns.next().map(|text| number(Some(text), "the size")).transpose()?;
        no_more(columns, "a key and its size")?;
        self.width.check(1 + usize::from(bytes.is_some()))?;
        let block = key.parse();
        if let Some(shape) = self.shape {
            if key == "*" {
                return Err(
                    "a line of * separates phases in LIRS's traces: give --format lirs, or \
                            --format keys if it is a key"
                        .to_owned(),
                );
            }
            if shape.are_numbers && block.is_err() {
                let key = shown(key);
                return Err(format!(
                    "the keys before are numbers, and \"{key}\" is not: give --format keys if it \
                     is a key"
                ));
            }
        }
        Ok(Step::read(block.unwrap_or_else(|_| name_number(key)), bytes))
    }
}

/// `time key bytes`, and optionally more columns, the same number in each line (webcachesim,
/// AdaptSize).
#[derive(Default)]
pub(super) struct TimeKeySize {
    width: Width,
}

impl DecodeLine for TimeKeySize {
    fn line(&mut self, line: &str) -> Result<Step, String> {
        let mut columns = line.split_ascii_whitespace();
        let time = columns.next().unwrap_or_default();
        // Rust parses "inf" and "nan" as numbers, but they may be keys.
        let is_time = time.starts_with(|c: char| c.is_ascii_digit()) && time.parse::<f64>().is_ok();
        if !is_time {
            return Err(format!("the time is not a number: \"{}\"", shown(time)));
        }
        let key = columns.next().ok_or("the key is missing")?;
        let bytes = number(columns.next(), "the size")?;
        self.width.check(3 + columns.count())?;
        Ok(Step::read(key.parse().unwrap_or_else(|_| name_number(key)), Some(bytes)))
    }
}

/// `arrival_ns device first_sector sectors type`, where type is 1 for a read (MQSim).
pub(super) struct MqSim;

impl DecodeLine for MqSim {
    fn line(&mut self, line: &str) -> Result<Step, String> {
        let mut columns = line.split_ascii_whitespace();
        number(columns.next(), "the time")?;
        let device = number(columns.next(), "the device")?;
        let sector = number(columns.next(), "the sector")?;
        let sectors = number(columns.next(), "the number of sectors")?;
        let is_write = match columns.next() {
            Some("1") => false,
            Some("0") => true,
            other => {
                return Err(format!(
                    "the type is neither 0 nor 1: \"{}\"",
                    shown(other.unwrap_or_default())
                ));
            }
        };
        no_more(columns, "the type")?;
        let in_bytes = |sectors: u64| sectors.checked_mul(512).ok_or("a sector beyond 2^55");
        Ok(Step::range(device, in_bytes(sector)?, in_bytes(sectors)?, is_write))
    }
}
