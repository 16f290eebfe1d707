//! The output of `ogive l2`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use ogive_l2::device::{
    self, AlignedBuffer, Device, Engine, OpenError, OpenMode, foreign_contents,
};
use ogive_l2::format::{SEGMENTS_START, SegmentHeader, SegmentTrailer, Superblock, WearAccount};
use ogive_l2::read_superblock;
use ogive_l2::{Discarded, Verification};
use ogive_text::Bytes;

use super::wear;
use crate::exit::{self, Refusal};

pub(super) fn write_stdout(text: &str) -> Result<()> {
    std::io::stdout().lock().write_all(text.as_bytes()).context("cannot print")
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

pub(super) fn print_table(rows: &[(&str, String)]) -> Result<()> {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let text = rows.iter().fold(String::new(), |mut text, (name, value)| {
        let _ = writeln!(text, "{name:width$}  {}", ogive_text::one_line(value));
        text
    });
    write_stdout(&text)
}

/// The facts about a device that need no key.
struct Seen {
    used: u64,
    sealed: u64,
    records: u64,
    youngest: u64,
    /// The counters in the youngest segment.
    account: WearAccount,
}

/// The facts of an empty device.
const NO_ACCOUNT: WearAccount =
    WearAccount { sent_bytes: 0, clock_seconds: 0, allowance_bytes: i64::MAX };

fn look(device: &dyn Device, superblock: &Superblock) -> Seen {
    let mut seen = Seen { used: 0, sealed: 0, records: 0, youngest: 0, account: NO_ACCOUNT };
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
        if header.sequence > seen.youngest {
            (seen.youngest, seen.account) = (header.sequence, header.account);
        }
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

/// The bytes written to the device since it was formatted, and how many times its size that is.
fn written(seen: &Seen, superblock: &Superblock) -> String {
    let sent_bytes = seen.account.sent_bytes;
    let times = sent_bytes as f64 / superblock.device_bytes() as f64;
    format!("{} since it was formatted, {times:.1} times its size", Bytes(sent_bytes))
}

/// The rest of the budget of `--l2-dwpd` at the start of the youngest segment, in bytes.
fn allowance_bytes(seen: &Seen) -> Option<i64> {
    Some(seen.account.allowance_bytes).filter(|left| *left != i64::MAX)
}

fn allowance(seen: &Seen) -> String {
    match allowance_bytes(seen) {
        None => "no limit (--l2-dwpd)".to_owned(),
        Some(left) if left < 0 => format!("exceeded by {}", Bytes(left.unsigned_abs())),
        Some(left) => {
            format!("{} left at the start of the youngest segment", Bytes(left as u64))
        }
    }
}

/// `ogive l2 status`.
pub(super) fn status(path: &Path, json: bool) -> Result<()> {
    let cannot = || format!("cannot read {}", path.display());
    let device = device::open(path, OpenMode::Read, Engine::Pread)?;
    let found = read_superblock(&*device).with_context(cannot)?;
    let superblock = match found {
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
    let disks = wear::look(path);
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
            "sent_bytes": seen.account.sent_bytes,
            "allowance_bytes": allowance_bytes(&seen),
            "in_use": in_use,
            "disks": wear::json(&disks),
        });
        return write_stdout(&format!("{value:#}\n"));
    }
    let percent = 100.0 * seen.used as f64 / superblock.segments as f64;
    let sealed = match superblock.cipher {
        ogive_l2::Cipher::Off => "off: checksums only".to_owned(),
        cipher => format!("{cipher}, by {key}"),
    };
    let mut rows = vec![
        ("device", hexadecimal(&superblock.device)),
        ("sealed", sealed),
        ("size", Bytes(superblock.device_bytes()).to_string()),
        ("segments", format!("{} of {}", superblock.segments, Bytes(superblock.segment_bytes))),
        ("used", format!("{} segments ({percent:.0}%)", seen.used)),
        ("records", format!("{} in {} sealed segments", seen.records, seen.sealed)),
        ("written", written(&seen, &superblock)),
        ("budget", allowance(&seen)),
        ("in use", if in_use { "yes, by a mount" } else { "no" }.to_owned()),
    ];
    rows.extend(wear::rows(&disks));
    print_table(&rows)
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
            "padding_bytes": found.padding_bytes,
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
                "{} whole: {}, {} on the device, {} of them padding",
                found.records,
                Bytes(found.plain_bytes),
                Bytes(found.stored_bytes),
                Bytes(found.padding_bytes)
            ),
        ),
        ("bad records", format!("{} (each is a miss)", found.bad_records)),
    ])
}

/// `ogive l2 format`.
pub(super) fn formatted(path: &Path, superblock: &Superblock) -> Result<()> {
    write_stdout(&format!(
        "{}: {} in {} segments, sealed with {}\n",
        path.display(),
        Bytes(superblock.device_bytes()),
        superblock.segments,
        superblock.cipher
    ))
}

/// `ogive l2 rekey`.
pub(super) fn rekeyed(path: &Path, superblock: &Superblock) -> Result<()> {
    let by = if superblock.kdf.is_some() { "the new passphrase" } else { "the new key" };
    write_stdout(&format!("{}: opens with {by} from now on\n", path.display()))
}

/// `ogive l2 discard`.
pub(super) fn discarded(path: &Path, done: &Discarded, json: bool) -> Result<()> {
    if json {
        let value = serde_json::json!({
            "segments": done.segments,
            "bytes": done.bytes,
            "segments_kept": done.kept,
        });
        return write_stdout(&format!("{value:#}\n"));
    }
    write_stdout(&format!(
        "{}: {} segments ({}) are free, {} hold records in use\n",
        path.display(),
        done.segments,
        Bytes(done.bytes),
        done.kept
    ))
}
