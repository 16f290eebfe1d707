//! Read your writes: every way of reading returns a completed write at once, and the source has it.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;

use anyhow::{Result, bail};
use rustix::fs::FallocateFlags;

use super::{Promise, Round, expect_bytes, same_bytes};
use crate::mapping;

/// The promises of this module.
pub const PROMISES: &[Promise] = &[
    Promise {
        name: "write-then-read",
        says: "a write is seen through the same, another and a fresh descriptor, a map, the source",
        round: write_then_read,
        rounds_percent: 100,
    },
    Promise {
        name: "map-then-read",
        says: "a write through a shared map is seen by read after msync, and is in the source",
        round: map_then_read,
        rounds_percent: 100,
    },
    Promise {
        name: "write-under-map",
        says: "an existing map shows later writes",
        round: write_under_map,
        rounds_percent: 100,
    },
    Promise {
        name: "map-under-change-behind",
        says: "after a change behind the mount a fresh open and map shows the new bytes",
        round: map_under_change_behind,
        rounds_percent: 100,
    },
    Promise {
        name: "truncate-then-read",
        says: "truncated bytes are gone for all readers and come back as zeros",
        round: truncate_then_read,
        rounds_percent: 100,
    },
    Promise {
        name: "append-by-two",
        says: "appends by two descriptors follow each other",
        round: append_by_two,
        rounds_percent: 100,
    },
    Promise {
        name: "punch-then-read",
        says: "a punched hole reads as zeros at once, the rest stays",
        round: punch_then_read,
        rounds_percent: 100,
    },
    Promise {
        name: "copy-then-read",
        says: "the target of copy_file_range shows the bytes of its source at once",
        round: copy_then_read,
        rounds_percent: 100,
    },
    Promise {
        name: "through-then-behind",
        says: "writes through the mount and behind it, one after the other, are all seen",
        round: through_then_behind,
        rounds_percent: 100,
    },
];

fn open(path: &std::path::Path) -> Result<File> {
    Ok(OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?)
}

/// Reads the whole of an open file by `pread`.
fn all_of(file: &File, length: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length + 1];
    let mut done = 0;
    loop {
        match file.read_at(&mut bytes[done..], done as u64)? {
            0 => break,
            count => done += count,
        }
    }
    bytes.truncate(done);
    Ok(bytes)
}

fn somewhere(round: &mut Round, length: usize) -> (usize, Vec<u8>) {
    let start = round.random.usize(0..length);
    let count = round.random.usize(1..=(length - start).min(200_000));
    (start, round.bytes(count))
}

fn write_then_read(round: &mut Round) -> Result<()> {
    let (mount, source) = round.paths("file");
    let size = round.size();
    let mut bytes = round.bytes(size);
    let (writer, other) = (open(&mount)?, open(&mount)?);
    writer.write_all_at(&bytes, 0)?;
    expect_bytes(&source, &bytes, "in the source after the first write")?;
    for _ in 0..5 {
        let (start, new) = somewhere(round, size);
        bytes[start..start + new.len()].copy_from_slice(&new);
        writer.write_all_at(&new, start as u64)?;
        match round.random.u32(0..5) {
            0 => same_bytes(&all_of(&writer, size)?, &bytes, "same descriptor")?,
            1 => same_bytes(&all_of(&other, size)?, &bytes, "other descriptor")?,
            2 => same_bytes(&mapping::read(&other, 0, size)?, &bytes, "map")?,
            3 => expect_bytes(&mount, &bytes, "fresh open")?,
            _ => expect_bytes(&source, &bytes, "source")?,
        }
        round.pause();
    }
    expect_bytes(&source, &bytes, "in the source at the end")?;
    expect_bytes(&mount, &bytes, "fresh open at the end")
}

fn map_then_read(round: &mut Round) -> Result<()> {
    let (mount, source) = round.paths("file");
    let size = round.size();
    let mut bytes = round.bytes(size);
    let (first, other) = (open(&mount)?, open(&mount)?);
    first.write_all_at(&bytes, 0)?;
    let mut map = mapping::shared(&first, 0, size)?;
    for _ in 0..4 {
        let (start, new) = somewhere(round, size);
        bytes[start..start + new.len()].copy_from_slice(&new);
        map[start..start + new.len()].copy_from_slice(&new);
        map.flush()?;
        same_bytes(&all_of(&first, size)?, &bytes, "same descriptor after msync")?;
        same_bytes(&all_of(&other, size)?, &bytes, "other descriptor after msync")?;
        expect_bytes(&source, &bytes, "source after msync")?;
        expect_bytes(&mount, &bytes, "fresh open after msync")?;
        round.pause();
    }
    Ok(())
}

fn write_under_map(round: &mut Round) -> Result<()> {
    let (mount, _) = round.paths("file");
    let size = round.size();
    let mut bytes = round.bytes(size);
    let (mapped, writer) = (open(&mount)?, open(&mount)?);
    writer.write_all_at(&bytes, 0)?;
    let map = mapping::shared(&mapped, 0, size)?;
    same_bytes(&map, &bytes, "map before the write")?;
    for _ in 0..4 {
        let (start, new) = somewhere(round, size);
        bytes[start..start + new.len()].copy_from_slice(&new);
        writer.write_all_at(&new, start as u64)?;
        same_bytes(&map, &bytes, "map after the write")?;
        round.pause();
    }
    Ok(())
}

fn map_under_change_behind(round: &mut Round) -> Result<()> {
    let (mount, source) = round.paths("file");
    let size = round.size();
    for _ in 0..4 {
        let bytes = round.bytes(size);
        std::fs::write(&source, &bytes)?;
        let file = open(&mount)?;
        same_bytes(&mapping::read(&file, 0, size)?, &bytes, "fresh map")?;
        round.pause();
    }
    Ok(())
}

fn truncate_then_read(round: &mut Round) -> Result<()> {
    let (mount, source) = round.paths("file");
    let size = round.size();
    let mut bytes = round.bytes(size);
    let (writer, other) = (open(&mount)?, open(&mount)?);
    writer.write_all_at(&bytes, 0)?;
    same_bytes(&all_of(&other, size)?, &bytes, "before the cut")?;
    let cut = round.random.usize(0..size);
    writer.set_len(cut as u64)?;
    same_bytes(&all_of(&other, size)?, &bytes[..cut], "after the cut")?;
    round.pause();
    other.set_len(size as u64)?;
    bytes[cut..].fill(0);
    same_bytes(&all_of(&writer, size)?, &bytes, "after growing again")?;
    expect_bytes(&source, &bytes, "source after growing again")
}

fn append_by_two(round: &mut Round) -> Result<()> {
    use std::io::Write;
    let (mount, source) = round.paths("file");
    let appender = || OpenOptions::new().append(true).create(true).open(&mount);
    let mut writers = [appender()?, appender()?];
    let mut bytes = Vec::new();
    for _ in 0..20 {
        let count = round.random.usize(1..30_000);
        let new = round.bytes(count);
        writers[round.random.usize(0..2)].write_all(&new)?;
        bytes.extend_from_slice(&new);
        if round.random.u32(0..4) == 0 {
            expect_bytes(&mount, &bytes, "after an append")?;
        }
    }
    expect_bytes(&mount, &bytes, "after all appends")?;
    expect_bytes(&source, &bytes, "source after all appends")
}

fn punch_then_read(round: &mut Round) -> Result<()> {
    let (mount, source) = round.paths("file");
    let size = round.size();
    let mut bytes = round.bytes(size);
    let (writer, other) = (open(&mount)?, open(&mount)?);
    writer.write_all_at(&bytes, 0)?;
    same_bytes(&all_of(&other, size)?, &bytes, "before the hole")?;
    let (start, hole) = somewhere(round, size);
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&writer, flags, start as u64, hole.len() as u64)?;
    bytes[start..start + hole.len()].fill(0);
    same_bytes(&all_of(&other, size)?, &bytes, "after the hole")?;
    same_bytes(&mapping::read(&other, 0, size)?, &bytes, "map after the hole")?;
    expect_bytes(&source, &bytes, "source after the hole")
}

fn copy_then_read(round: &mut Round) -> Result<()> {
    let (mount_from, source_from) = round.paths("from");
    let (mount_to, source_to) = round.paths("to");
    let size = round.size();
    let bytes = round.bytes(size);
    let mut target_bytes = round.bytes(size);
    std::fs::write(&source_from, &bytes)?;
    let (from, to) = (open(&mount_from)?, open(&mount_to)?);
    to.write_all_at(&target_bytes, 0)?;
    same_bytes(&all_of(&to, size)?, &target_bytes, "target before the copy")?;
    let start = round.random.usize(0..size);
    let (mut from_at, mut to_at) = (start as u64, start as u64);
    while from_at < size as u64 {
        let rest = size - from_at as usize;
        let (at_from, at_to) = (Some(&mut from_at), Some(&mut to_at));
        if rustix::fs::copy_file_range(&from, at_from, &to, at_to, rest)? == 0 {
            bail!("copy_file_range stopped {rest} bytes early");
        }
    }
    target_bytes[start..].copy_from_slice(&bytes[start..]);
    same_bytes(&all_of(&to, size)?, &target_bytes, "target after the copy")?;
    expect_bytes(&source_to, &target_bytes, "source of the target after the copy")
}

fn through_then_behind(round: &mut Round) -> Result<()> {
    let (mount, source) = round.paths("file");
    let size = round.size();
    let mut bytes = round.bytes(size);
    std::fs::write(&source, &bytes)?;
    for _ in 0..12 {
        let (start, new) = somewhere(round, size);
        bytes[start..start + new.len()].copy_from_slice(&new);
        let path = if round.random.bool() { &mount } else { &source };
        open(path)?.write_all_at(&new, start as u64)?;
        expect_bytes(&mount, &bytes, "fresh open after a write somewhere")?;
        if round.random.u32(0..3) == 0 {
            round.pause();
        }
    }
    expect_bytes(&source, &bytes, "source at the end")
}
