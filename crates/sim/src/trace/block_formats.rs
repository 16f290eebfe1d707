//! Text formats of block and file requests: MSR Cambridge, blkparse, fio, bpftrace, and the read
//! history of OpenZFS.

use super::decode::{
    Access, DecodeLine, Step, What, Width, mix, name_number, no_more, number, shown,
};

/// `timestamp,host,disk,Read|Write,byte_offset,bytes,latency` (MSR Cambridge, SNIA IOTTA). The
/// latency may be missing in all lines.
#[derive(Default)]
pub(super) struct Msr {
    width: Width,
}

impl DecodeLine for Msr {
    fn line(&mut self, line: &str) -> Result<Step, String> {
        let mut columns = line.split(',').map(str::trim_ascii);
        let time = columns.next().unwrap_or_default();
        if time.eq_ignore_ascii_case("timestamp") {
            return Ok(Step::Nothing);
        }
        number(Some(time), "the time")?;
        let host = columns.next().ok_or("the host is missing")?;
        let disk = number(columns.next(), "the disk")?;
        let is_write = match columns.next() {
            Some(kind) if kind.eq_ignore_ascii_case("read") => false,
            Some(kind) if kind.eq_ignore_ascii_case("write") => true,
            other => {
                return Err(format!("neither Read nor Write: \"{}\"", shown(other.unwrap_or(""))));
            }
        };
        let offset_bytes = number(columns.next(), "the offset")?;
        let bytes = number(columns.next(), "the length")?;
        let latency = columns.next();
        no_more(columns, "the latency")?;
        self.width.check(6 + usize::from(latency.is_some()))?;
        Ok(Step::range(mix(name_number(host), disk), offset_bytes, bytes, is_write))
    }
}

/// The default output of blkparse(1): `8,0 3 1 0.000000000 697 Q WS 223490 + 8 [kjournald]`.
///
/// A request appears in several lines, and those of one action count: queued (Q) if it occurs, else
/// issued (D), else completed (C). The first line with one of them decides. The summary at the end
/// ends the trace.
#[derive(Default)]
pub(super) struct BlkParse {
    action: Option<char>,
    in_summary: bool,
}

impl DecodeLine for BlkParse {
    fn line(&mut self, line: &str) -> Result<Step, String> {
        let mut columns = line.split_ascii_whitespace();
        let device = columns.next().unwrap_or_default();
        if device.starts_with("CPU") || device == "Total" || line.starts_with("Throughput") {
            self.in_summary = true;
        }
        if self.in_summary {
            return Ok(Step::Nothing);
        }
        let numbers = device.split_once(',').and_then(|(major, minor)| {
            Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
        });
        let (major, minor) = numbers.ok_or("the device is not like 8,0")?;
        number(columns.next(), "the processor")?;
        number(columns.next(), "the request's number")?;
        let time = columns.next().and_then(|text| text.parse::<f64>().ok());
        time.ok_or("the time is not a number")?;
        number(columns.next(), "the process")?;
        let action = columns.next().ok_or("the action is missing")?;
        let flags = columns.next().ok_or("the request's flags are missing")?;
        let action = match action {
            "Q" | "D" | "C" => action.chars().next(),
            _ => return Ok(Step::Nothing),
        };
        if *self.action.get_or_insert(action.unwrap_or('Q')) != action.unwrap_or('Q') {
            return Ok(Step::Nothing);
        }
        let Some(is_write) = direction(flags) else { return Ok(Step::Nothing) };
        let sector = number(columns.next(), "the sector")?;
        let sectors = match (columns.next(), columns.next()) {
            (Some("+"), sectors) => number(sectors, "the number of sectors")?,
            // A request without data, such as a flush.
            _ => return Ok(Step::Nothing),
        };
        sectors_of((u64::from(major) << 32) | u64::from(minor), sector, sectors, is_write)
    }
}

/// Whether a request's flags (`rwbs`) mean a write; `None` for neither read nor write.
fn direction(flags: &str) -> Option<bool> {
    // The first letter is the operation, unless a flush precedes it.
    let operation = flags.trim_start_matches('F').chars().next()?;
    match operation {
        'R' => Some(false),
        'W' => Some(true),
        _ => None,
    }
}

fn sectors_of(space: u64, sector: u64, sectors: u64, is_write: bool) -> Result<Step, String> {
    let in_bytes = |sectors: u64| sectors.checked_mul(512).ok_or("a sector beyond 2^55");
    Ok(Step::range(space, in_bytes(sector)?, in_bytes(sectors)?, is_write))
}

/// The output of this program, at the point where block requests are queued at the driver:
///
/// ```text
/// bpftrace -e 'tracepoint:block:block_rq_issue
///   { printf("%llu %d %s %llu %d\n", nsecs, args.dev, args.rwbs, args.sector, args.nr_sector); }'
/// ```
pub(super) struct BpfTrace;

impl DecodeLine for BpfTrace {
    fn line(&mut self, line: &str) -> Result<Step, String> {
        if line.starts_with("Attaching ") || line.starts_with("Attached ") {
            return Ok(Step::Nothing);
        }
        let mut columns = line.split_ascii_whitespace();
        number(columns.next(), "the time")?;
        let device = number(columns.next(), "the device")?;
        let flags = columns.next().ok_or("the request's flags are missing")?;
        let sector = number(columns.next(), "the sector")?;
        let sectors = number(columns.next(), "the number of sectors")?;
        no_more(columns, "the number of sectors")?;
        match direction(flags) {
            Some(is_write) if sectors > 0 => sectors_of(device, sector, sectors, is_write),
            _ => Ok(Step::Nothing),
        }
    }
}

/// fio's iolog, versions 2 (`file action offset length`) and 3 (with a time in front).
#[derive(Default)]
pub(super) struct FioLog {
    version: Option<u32>,
}

impl DecodeLine for FioLog {
    fn line(&mut self, line: &str) -> Result<Step, String> {
        let mut columns = line.split_ascii_whitespace();
        let Some(version) = self.version else {
            self.version = match line.trim_ascii() {
                "fio version 2 iolog" => Some(2),
                "fio version 3 iolog" => Some(3),
                _ => return Err("the first line is not \"fio version 2 iolog\" or 3".to_owned()),
            };
            return Ok(Step::Nothing);
        };
        if version == 3 {
            number(columns.next(), "the time")?;
        }
        let file = columns.next().ok_or("the file is missing")?;
        let is_write = match columns.next() {
            Some("read") => false,
            Some("write") => true,
            Some("add" | "open" | "close" | "wait" | "sync" | "datasync" | "trim") => {
                return Ok(Step::Nothing);
            }
            other => {
                let other = shown(other.unwrap_or(""));
                return Err(format!("\"{other}\" is not an action of a fio iolog"));
            }
        };
        let offset_bytes = number(columns.next(), "the offset")?;
        let bytes = number(columns.next(), "the length")?;
        no_more(columns, "the length")?;
        Ok(Step::range(name_number(file), offset_bytes, bytes, is_write))
    }
}

/// `/proc/spl/kstat/zfs/POOL/reads` (OpenZFS, `module/zfs/spa_stats.c`, `spa_read_history_show`):
/// `UID start objset object level blkid aflags origin pid process`. A block is a key, without a
/// size.
pub(super) struct ZfsReads;

/// `ARC_FLAG_PREFETCH` (OpenZFS, `include/sys/arc.h`).
const ARC_FLAG_PREFETCH: u64 = 1 << 2;

impl DecodeLine for ZfsReads {
    fn line(&mut self, line: &str) -> Result<Step, String> {
        let mut columns = line.split_ascii_whitespace();
        let first = columns.next().unwrap_or_default();
        if first == "UID" {
            return Ok(Step::Nothing);
        }
        number(Some(first), "the UID")?;
        number(columns.next(), "the start")?;
        let objset = hexadecimal(columns.next(), "the object set")?;
        let mut signed = |what: &str| -> Result<u64, String> {
            let text = columns.next().ok_or_else(|| format!("{what} is missing"))?;
            let number: Result<i64, _> = text.parse();
            number.map(i64::cast_unsigned).map_err(|_| format!("{what} is not a whole number"))
        };
        let (object, level) = (signed("the object")?, signed("the level")?);
        let block = signed("the block")?;
        let flags = hexadecimal(columns.next(), "the flags")?;
        let key = mix(mix(mix(objset | 1 << 63, object), level.wrapping_add(1)), block);
        let what = What::Key { key, bytes: None };
        let is_prefetch = flags & ARC_FLAG_PREFETCH != 0;
        Ok(Step::Access(Access { what, is_write: false, is_prefetch }))
    }
}

fn hexadecimal(text: Option<&str>, what: &str) -> Result<u64, String> {
    let text = text.ok_or_else(|| format!("{what} is missing"))?;
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|_| format!("{what} is not a hexadecimal number"))
}
