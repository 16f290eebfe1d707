//! Text formats of keys: ARC's `.lis`, LIRS, plain keys, time with key and size, MQSim.

use super::step::{Access, DecodeLine, Step, What, name_number, number, shown};

/// `first_block blocks ignored request_number`: each line is so many blocks one after the other
/// (Megiddo and Modha's traces).
pub(super) struct Lis;

impl DecodeLine for Lis {
    fn line(&mut self, line: &str) -> Result<Step, String> {
        let mut columns = line.split_ascii_whitespace();
        let first = number(columns.next(), "the first block")?;
        let count = number(columns.next(), "the number of blocks")?;
        let what = What::Blocks { first, count };
        Ok(Step::Access(Access { what, is_write: false, is_prefetch: false }))
    }
}

/// One block number a line; lines of `*` separate phases (the traces of LIRS).
pub(super) struct Lirs;

impl DecodeLine for Lirs {
    fn line(&mut self, line: &str) -> Result<Step, String> {
        match line.trim_ascii() {
            "*" => Ok(Step::Nothing),
            text => number(Some(text), "the block").map(|key| Step::read(key, None)),
        }
    }
}

/// A key a line, any text, and perhaps its size in bytes, after blanks or a comma. Lines that
/// begin with `#` are comments.
pub(super) struct Keys;

impl DecodeLine for Keys {
    fn line(&mut self, line: &str) -> Result<Step, String> {
        let line = line.trim_ascii();
        if line.starts_with('#') {
            return Ok(Step::Nothing);
        }
        let mut columns = line
            .split(|c: char| c == ',' || c.is_ascii_whitespace())
            .filter(|text| !text.is_empty());
        let key = columns.next().ok_or("the key is missing")?;
        let bytes = columns.next().map(|text| number(Some(text), "the size")).transpose()?;
        if let Some(more) = columns.next() {
            return Err(format!("more than a key and a size: \"{}\"", shown(more)));
        }
        Ok(Step::read(key.parse().unwrap_or_else(|_| name_number(key)), bytes))
    }
}

/// `time key bytes` (webcachesim, AdaptSize).
pub(super) struct TimeKeySize;

impl DecodeLine for TimeKeySize {
    fn line(&mut self, line: &str) -> Result<Step, String> {
        let mut columns = line.split_ascii_whitespace();
        columns.next().and_then(|text| text.parse::<f64>().ok()).ok_or("the time is no number")?;
        let key = columns.next().ok_or("the key is missing")?;
        let bytes = number(columns.next(), "the size")?;
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
            other => return Err(format!("the type is neither 0 nor 1: {other:?}")),
        };
        let in_bytes = |sectors: u64| sectors.checked_mul(512).ok_or("a sector beyond 2^55");
        Ok(Step::range(device, in_bytes(sector)?, in_bytes(sectors)?, is_write))
    }
}
