//! Appends: the present flags decide where each goes, and appends of other processes stay.

use std::fs::{File, OpenOptions};
use std::io::{IoSlice, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use memmap2::MmapMut;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, ReadWriteFlags, pwritev2};

use super::{Promise, Round, expect_bytes, same_bytes};
use crate::contents::read_whole;

/// The promises of this module.
pub const PROMISES: &[Promise] = &[
    Promise {
        name: "append-as-the-flag-is",
        says: "the present O_APPEND and RWF_APPEND decide where a write goes, next to others' appends",
        round: append_as_the_flag_is,
        rounds_percent: 100,
    },
    Promise {
        name: "append-past-the-page-cache",
        says: "an append by O_DIRECT of any size is at the end, in its order",
        round: append_past_the_page_cache,
        rounds_percent: 30,
    },
    Promise {
        name: "append-by-many-at-once",
        says: "concurrent appends through the mount and behind it lose no byte",
        round: append_by_many_at_once,
        rounds_percent: 30,
    },
    Promise {
        name: "append-in-one-piece",
        says: "with --direct-io the bytes of one append stay together during others' appends",
        round: append_in_one_piece,
        rounds_percent: 30,
    },
];

const PAGE: usize = 4096;
/// The bytes that each of several writers appends.
const RECORDS: u8 = 60;

fn set_flag(file: &File, on: bool) -> Result<()> {
    let mut flags = fcntl_getfl(file)?;
    flags.set(OFlags::APPEND, on);
    Ok(fcntl_setfl(file, flags)?)
}

fn append_behind(source: &Path, bytes: &[u8]) -> Result<()> {
    let mut behind = OpenOptions::new().append(true).open(source)?;
    Ok(behind.write_all(bytes)?)
}

fn append_as_the_flag_is(round: &mut Round) -> Result<()> {
    let (mount, source) = round.paths("file");
    let size = round.random.usize(1..20_000);
    let mut bytes = round.bytes(size);
    std::fs::write(&source, &bytes)?;
    let was_on = round.random.bool();
    let file = OpenOptions::new().read(true).write(true).append(was_on).open(&mount)?;
    // Flags belong to the open file; any of its descriptors can set them.
    let copy = file.try_clone()?;
    for step in 0..30 {
        let length = round.random.usize(1..9_000);
        let new = round.bytes(length);
        let at = round.random.usize(0..bytes.len());
        let when = format!("step {step}");
        let put = |bytes: &mut Vec<u8>| {
            let end = bytes.len().max(at + length);
            bytes.resize(end, 0);
            bytes[at..at + length].copy_from_slice(&new);
        };
        let by_itself = |flag: ReadWriteFlags, on: bool| -> Result<bool> {
            set_flag(&copy, on)?;
            match pwritev2(&file, &[IoSlice::new(&new)], at as u64, flag) {
                Ok(count) if count == length => Ok(true),
                Ok(count) => anyhow::bail!("{when}: {count} of {length} bytes"),
                Err(Errno::OPNOTSUPP) => Ok(false),
                Err(errno) => Err(errno.into()),
            }
        };
        match round.random.u32(0..5) {
            0 => {
                set_flag(&copy, true)?;
                (&file).write_all(&new)?;
                bytes.extend_from_slice(&new);
            }
            1 => {
                set_flag(&copy, true)?;
                file.write_all_at(&new, at as u64)?;
                bytes.extend_from_slice(&new);
            }
            2 => {
                set_flag(&copy, false)?;
                file.write_all_at(&new, at as u64)?;
                put(&mut bytes);
            }
            3 if by_itself(ReadWriteFlags::APPEND, false)? => bytes.extend_from_slice(&new),
            _ => {
                append_behind(&source, &new)?;
                bytes.extend_from_slice(&new);
            }
        }
        expect_bytes(&source, &bytes, &format!("{when}, source"))?;
    }
    drop((file, copy));
    expect_bytes(&mount, &bytes, "after all")
}

/// Bytes aligned for O_DIRECT.
fn aligned(bytes: &[u8]) -> Result<MmapMut> {
    let mut map = MmapMut::map_anon(bytes.len())?;
    map.copy_from_slice(bytes);
    Ok(map)
}

fn append_past_the_page_cache(round: &mut Round) -> Result<()> {
    let (mount, source) = round.paths("file");
    let mut bytes = round.bytes(PAGE * 3);
    std::fs::write(&source, &bytes)?;
    let open = |flags: OFlags| {
        OpenOptions::new().append(true).custom_flags(flags.bits() as i32).open(&mount)
    };
    let file = match open(OFlags::DIRECT) {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::INVAL) => open(OFlags::empty())?,
        other => other?,
    };
    for step in 0..6 {
        // A request has one MiB; this takes up to five.
        let pages = round.random.usize(1..1200);
        let new = round.bytes(PAGE * pages);
        let written = (&file).write(&aligned(&new)?)?;
        ensure!(written == new.len(), "step {step}: {written} of {} bytes", new.len());
        bytes.extend_from_slice(&new);
        if round.random.bool() {
            let new = round.bytes(PAGE);
            append_behind(&source, &new)?;
            bytes.extend_from_slice(&new);
        }
        same_bytes(&read_whole(&source)?, &bytes, &format!("step {step}, source"))?;
    }
    drop(file);
    expect_bytes(&mount, &bytes, "after all")
}

/// Two writers append through the mount and one behind it, each its records in order. The bytes of a
/// record identify the writer and the number: `by` and `number` in one.
fn appended_by_three(round: &mut Round) -> Result<(Vec<u8>, usize)> {
    let (mount, source) = round.paths("file");
    std::fs::write(&source, b"")?;
    let length = round.random.usize(2..300);
    let append = |path: &Path, by: u8| -> Result<()> {
        let mut file = OpenOptions::new().append(true).open(path)?;
        for number in 0..RECORDS {
            file.write_all(&vec![by * RECORDS + number; length])?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let paths = [&mount, &mount, &source];
        let threads: Vec<_> =
            (0..).zip(paths).map(|(by, path)| scope.spawn(move || append(path, by))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))
    })?;
    let all = read_whole(&source).context("cannot read the source")?;
    let expected = 3 * usize::from(RECORDS) * length;
    ensure!(all.len() == expected, "{} bytes of {expected}", all.len());
    expect_bytes(&mount, &all, "through the mount")?;
    Ok((all, length))
}

fn append_by_many_at_once(round: &mut Round) -> Result<()> {
    let (all, length) = appended_by_three(round)?;
    for by in 0..3 {
        let of_one = all.iter().copied().filter(|byte| byte / RECORDS == by);
        let expected = (0..RECORDS).flat_map(|number| vec![by * RECORDS + number; length]);
        ensure!(of_one.eq(expected), "the bytes of appender {by} are not all there in order");
    }
    Ok(())
}

fn append_in_one_piece(round: &mut Round) -> Result<()> {
    let (all, length) = appended_by_three(round)?;
    let torn = all.chunks(length).position(|record| record.iter().any(|byte| *byte != record[0]));
    ensure!(torn.is_none(), "the record at {torn:?} of {length} bytes each is torn");
    Ok(())
}
