//! What `ogive l2` prints.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use ogive_l2::Verification;
use ogive_l2::device::{
    self, AlignedBuffer, Device, Engine, OpenError, OpenMode, foreign_contents,
};
use ogive_l2::format::{SEGMENTS_START, SegmentHeader, SegmentTrailer, Superblock};
use ogive_l2::read_superblock;

use crate::exit::{self, Refusal};

fn write_stdout(text: &str) -> Result<()> {
    std::io::stdout().lock().write_all(text.as_bytes()).context("cannot print")
}

/// Bytes with a binary unit.
pub(crate) fn amount(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let unit = (bytes.ilog2() / 10) as usize;
    format!("{:.1} {}", bytes as f64 / (1u64 << (10 * unit)) as f64, UNITS[unit - 1])
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn print_table(rows: &[(&str, String)]) -> Result<()> {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let text = rows.iter().fold(String::new(), |mut text, (name, value)| {
        let _ = writeln!(text, "{name:width$}  {value}");
        text
    });
    write_stdout(&text)
}

/// What can be known of a device without its key.
struct Seen {
    used: u64,
    sealed: u64,
    records: u64,
    youngest: u64,
}

fn look(device: &dyn Device, superblock: &Superblock) -> Seen {
    let mut seen = Seen { used: 0, sealed: 0, records: 0, youngest: 0 };
    let mut block = AlignedBuffer::zeroed(4096);
    for number in 0..superblock.segments {
        let start = SEGMENTS_START + number * superblock.segment_bytes;
        let header = device
            .read_at(start, block.bytes_mut())
            .ok()
            .and_then(|()| SegmentHeader::parse(block.bytes()))
            .filter(|header| header.device == superblock.device);
        let Some(header) = header else { continue };
        seen.used += 1;
        seen.youngest = seen.youngest.max(header.sequence);
        let end = start + superblock.segment_bytes - 4096;
        let trailer = device
            .read_at(end, block.bytes_mut())
            .ok()
            .and_then(|()| SegmentTrailer::parse(block.bytes(), superblock.segment_bytes))
            .filter(|trailer| trailer.sequence == header.sequence);
        if let Some(trailer) = trailer {
            seen.sealed += 1;
            seen.records += u64::from(trailer.records);
        }
    }
    seen
}

/// `ogive l2 status`.
pub(super) fn status(path: &Path, json: bool) -> Result<()> {
    let cannot = || format!("cannot read {}", path.display());
    let device = device::open(path, OpenMode::Read, Engine::Pread)?;
    let found = read_superblock(&*device).with_context(cannot)?;
    let (superblock, _) = match found {
        Ok(found) => found,
        Err(error) => {
            let contents = foreign_contents(&*device).with_context(cannot)?;
            let holds = contents.unwrap_or("nothing");
            return Err(Refusal::new(
                exit::FAILURE,
                format!("{}: {error}; it holds {holds}", path.display()),
            )
            .into());
        }
    };
    let used = device::open(path, OpenMode::Write, Engine::Buffered);
    let in_use = matches!(used, Err(OpenError::Busy { .. }));
    drop(used);
    let seen = look(&*device, &superblock);
    let key = if superblock.kdf.is_some() { "a passphrase (argon2id)" } else { "a key" };
    if json {
        let value = serde_json::json!({
            "path": path.to_string_lossy(),
            "device": hexadecimal(&superblock.device),
            "cipher": superblock.cipher.name(),
            "passphrase": superblock.kdf.is_some(),
            "size_bytes": superblock.device_bytes(),
            "segment_bytes": superblock.segment_bytes,
            "segments": superblock.segments,
            "segments_used": seen.used,
            "segments_sealed": seen.sealed,
            "records_in_sealed_segments": seen.records,
            "last_sequence": seen.youngest,
            "in_use": in_use,
        });
        return write_stdout(&format!("{value:#}\n"));
    }
    let percent = 100.0 * seen.used as f64 / superblock.segments as f64;
    let sealed = match superblock.cipher {
        ogive_l2::Cipher::Off => "off: checksums only".to_owned(),
        cipher => format!("{cipher}, by {key}"),
    };
    print_table(&[
        ("device", hexadecimal(&superblock.device)),
        ("sealed", sealed),
        ("size", amount(superblock.device_bytes())),
        ("segments", format!("{} of {}", superblock.segments, amount(superblock.segment_bytes))),
        ("used", format!("{} segments ({percent:.0}%)", seen.used)),
        ("records", format!("{} in {} sealed segments", seen.records, seen.sealed)),
        ("written", amount(seen.youngest.saturating_mul(superblock.segment_bytes))),
        ("in use", if in_use { "yes, by a mount" } else { "no" }.to_owned()),
    ])
}

/// `ogive l2 verify`.
pub(super) fn verification(found: &Verification, json: bool) -> Result<()> {
    if json {
        let value = serde_json::json!({
            "segments": found.segments,
            "open_segments": found.open_segments,
            "records": found.records,
            "plain_bytes": found.plain_bytes,
            "stored_bytes": found.stored_bytes,
            "bad_records": found.bad_records,
        });
        return write_stdout(&format!("{value:#}\n"));
    }
    print_table(&[
        (
            "segments",
            format!("{}, {} of them without a summary", found.segments, found.open_segments),
        ),
        (
            "records",
            format!(
                "{} whole: {}, {} on the device",
                found.records,
                amount(found.plain_bytes),
                amount(found.stored_bytes)
            ),
        ),
        ("bad records", format!("{} (each a miss when it is asked for)", found.bad_records)),
    ])
}

/// `ogive l2 format`.
pub(super) fn formatted(path: &Path, superblock: &Superblock) -> Result<()> {
    write_stdout(&format!(
        "{}: {} in {} segments, sealed with {}\n",
        path.display(),
        amount(superblock.device_bytes()),
        superblock.segments,
        superblock.cipher
    ))
}
