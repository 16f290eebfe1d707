//! Concurrent writers and readers: no reader goes back in time, and in the end mount and source
//! agree.
//!
//! The files consist of 8-byte counters. A writer raises every counter of a block to the same new
//! value, and publishes the value after its write has returned. A reader that starts after the
//! publication must see at least that value in every counter, and no counter ever falls. During a
//! write a block may be half old and half new: file systems promise no more, and neither does a
//! mount.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::{Promise, Round, expect_bytes};
use crate::contents::read_whole;

/// The promises of this module.
pub const PROMISES: &[Promise] = &[
    Promise {
        name: "reader-beside-writer",
        says: "a reader with an open file never sees a value older than a published or seen one",
        round: reader_with_writer,
        rounds_percent: 20,
    },
    Promise {
        name: "opener-beside-writer",
        says: "readers that open again see at least the value published before the open",
        round: opener_with_writer,
        rounds_percent: 20,
    },
    Promise {
        name: "opener-beside-writer-behind",
        says: "readers that open again see writes made behind the mount before the open",
        round: opener_with_writer_behind,
        rounds_percent: 20,
    },
    Promise {
        name: "behind-and-through",
        says: "after writers behind and through the mount raced, a fresh open equals the source",
        round: behind_and_through,
        rounds_percent: 20,
    },
    Promise {
        name: "truncate-beside-readers",
        says: "after truncations raced with readers and writers, a fresh open equals the source",
        round: truncate_with_readers,
        rounds_percent: 20,
    },
    Promise {
        name: "replace-beside-openers",
        says: "readers see one whole file of those that had the name, never a mixture",
        round: replace_with_openers,
        rounds_percent: 20,
    },
];

/// How often each part of a round runs at least. Turns are counted, not timed, so every reader gets
/// its turns on a stalled machine, too.
pub(super) const TURNS: u32 = 100;
/// The limit for that time; no working mount needs it.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes of one write: a page, within one record.
const BLOCK_BYTES: usize = 4096;

fn open(path: &Path) -> Result<File> {
    Ok(OpenOptions::new().read(true).write(true).open(path)?)
}

fn counters(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word))
}

fn block_of(value: u64, bytes: usize) -> Vec<u8> {
    value.to_le_bytes().repeat(bytes / 8)
}

/// Runs all `parts` concurrently until each has had its turns, or one fails. Finished parts go on
/// meanwhile, so that the last one still races with all others.
pub(super) fn at_once(parts: Vec<Box<dyn FnMut() -> Result<()> + Send + '_>>) -> Result<()> {
    let stop = AtomicBool::new(false);
    let unfinished = AtomicUsize::new(parts.len());
    let end = Instant::now() + PATIENCE;
    std::thread::scope(|scope| {
        let (stop, unfinished) = (&stop, &unfinished);
        let handles: Vec<_> = parts
            .into_iter()
            .map(|mut part| {
                scope.spawn(move || -> Result<()> {
                    let mut turns = 0;
                    while !stop.load(Ordering::Relaxed) && unfinished.load(Ordering::Relaxed) > 0 {
                        if turns < TURNS && Instant::now() > end {
                            stop.store(true, Ordering::Relaxed);
                            bail!("a racing thread had {turns} of {TURNS} turns in {PATIENCE:?}");
                        }
                        part().inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
                        turns += 1;
                        if turns == TURNS {
                            unfinished.fetch_sub(1, Ordering::Relaxed);
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        for handle in handles {
            handle.join().unwrap_or_else(|_| bail!("a racing thread panicked"))?;
        }
        Ok(())
    })
}

/// Fails if a counter is below `floor` or below its value in `seen`; updates `seen`.
pub(super) fn check_counters(bytes: &[u8], floor: u64, seen: &mut [u64]) -> Result<()> {
    if bytes.len() != seen.len() * 8 {
        bail!("{} bytes were read instead of {}", bytes.len(), seen.len() * 8);
    }
    for (at, value) in counters(bytes).enumerate() {
        if value < floor {
            bail!("counter {at} is {value} although {floor} was published before the read");
        }
        if value < seen[at] {
            bail!("counter {at} went back from {} to {value}", seen[at]);
        }
        seen[at] = value;
    }
    Ok(())
}

/// Raises the whole block and publishes the value.
fn raise(file: &File, next: &mut u64, block: u64, published: &AtomicU64) -> Result<()> {
    *next += 1;
    file.write_all_at(&block_of(*next, BLOCK_BYTES), block * BLOCK_BYTES as u64)?;
    published.store(*next, Ordering::SeqCst);
    Ok(())
}

fn reader_with_writer(round: &mut Round) -> Result<()> {
    let (mount, source) = round.paths("file");
    std::fs::write(&source, vec![0; 64 * BLOCK_BYTES])?;
    let published = AtomicU64::new(0);
    let block = round.random.u64(0..64);
    let (writer, mut next) = (open(&mount)?, 0);
    let mut parts: Vec<Box<dyn FnMut() -> Result<()> + Send + '_>> =
        vec![Box::new(|| raise(&writer, &mut next, block, &published))];
    for _ in 0..2 {
        let reader = open(&mount)?;
        let mut seen = vec![0; BLOCK_BYTES / 8];
        let published = &published;
        parts.push(Box::new(move || {
            let floor = published.load(Ordering::SeqCst);
            let mut bytes = vec![0; BLOCK_BYTES];
            reader.read_exact_at(&mut bytes, block * BLOCK_BYTES as u64)?;
            check_counters(&bytes, floor, &mut seen)
        }));
    }
    at_once(parts)?;
    let last = block_of(published.load(Ordering::SeqCst), BLOCK_BYTES);
    let now = read_whole(&mount)?;
    let start = block as usize * BLOCK_BYTES;
    super::same_bytes(&now[start..start + BLOCK_BYTES], &last, "after the race")?;
    expect_bytes(&source, &now, "source after the race")
}

fn opener_with_writer(round: &mut Round) -> Result<()> {
    let (mount, source) = round.paths("file");
    openers(&mount, &source, &mount.clone(), Order::Published)
}

fn opener_with_writer_behind(round: &mut Round) -> Result<()> {
    let (mount, source) = round.paths("file");
    openers(&mount, &source, &source.clone(), Order::Seen)
}

/// The promise to a reader.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Only values published before its open. During a write through a mount, the kernel shows its
    /// bytes, and drops them again when another open finds the file changed. So the bytes of an
    /// unfinished write may appear, disappear, and appear again.
    Published,
    /// Also on what it has seen before.
    Seen,
}

/// One writer at `written`, and two readers that open `mount` for every read.
fn openers(mount: &Path, source: &Path, written: &Path, order: Order) -> Result<()> {
    std::fs::write(source, vec![0; BLOCK_BYTES])?;
    let published = AtomicU64::new(0);
    let (writer, mut next) = (open(written)?, 0);
    let mut parts: Vec<Box<dyn FnMut() -> Result<()> + Send + '_>> = vec![Box::new(|| {
        raise(&writer, &mut next, 0, &published)?;
        // Without a rest the readers would never see an unchanging file.
        std::thread::sleep(Duration::from_micros((next * 37) % 300));
        Ok(())
    })];
    for _ in 0..2 {
        let mut seen = vec![0; BLOCK_BYTES / 8];
        let published = &published;
        parts.push(Box::new(move || {
            let floor = published.load(Ordering::SeqCst);
            if order == Order::Published {
                seen.fill(0);
            }
            check_counters(&read_whole(mount)?, floor, &mut seen)
        }));
    }
    at_once(parts)
}

fn behind_and_through(round: &mut Round) -> Result<()> {
    const BLOCKS: u64 = 96;
    let (mount, source) = round.paths("file");
    std::fs::write(&source, vec![0; BLOCKS as usize * BLOCK_BYTES])?;
    let mut parts: Vec<Box<dyn FnMut() -> Result<()> + Send + '_>> = Vec::new();
    // Even blocks are written behind the mount, odd ones through it.
    for (parity, path) in [(0, &source), (1, &mount)] {
        let file = open(path)?;
        let mut random = round.random.fork();
        parts.push(Box::new(move || {
            let block = random.u64(0..BLOCKS / 2) * 2 + parity;
            let bytes = block_of(random.u64(..), BLOCK_BYTES);
            file.write_all_at(&bytes, block * BLOCK_BYTES as u64)?;
            Ok(())
        }));
    }
    let reader = open(&mount)?;
    let mut random = round.random.fork();
    let mount_path = mount.as_path();
    parts.push(Box::new(move || {
        // The reader fills every cache while the writers run. No promise covers its view of the
        // writer behind the mount.
        let mut bytes = vec![0; BLOCK_BYTES];
        reader.read_exact_at(&mut bytes, random.u64(0..BLOCKS) * BLOCK_BYTES as u64)?;
        let fresh = read_whole(mount_path)?;
        if fresh.len() != BLOCKS as usize * BLOCK_BYTES {
            bail!("a fresh read gave {} bytes", fresh.len());
        }
        Ok(())
    }));
    at_once(parts)?;
    expect_bytes(&mount, &std::fs::read(&source)?, "fresh open after the race")
}

fn truncate_with_readers(round: &mut Round) -> Result<()> {
    const SIZE_MAX: u64 = 400_000;
    let (mount, source) = round.paths("file");
    std::fs::write(&source, vec![1; SIZE_MAX as usize])?;
    let mut parts: Vec<Box<dyn FnMut() -> Result<()> + Send + '_>> = Vec::new();
    let (cutter, writer) = (open(&mount)?, open(&mount)?);
    let mut random = round.random.fork();
    parts.push(Box::new(move || Ok(cutter.set_len(random.u64(0..SIZE_MAX))?)));
    let mut random = round.random.fork();
    parts.push(Box::new(move || {
        let bytes = vec![2; random.usize(1..20_000)];
        Ok(writer.write_all_at(&bytes, random.u64(0..SIZE_MAX))?)
    }));
    let mount_path = mount.as_path();
    parts.push(Box::new(move || {
        let bytes = read_whole(mount_path)?;
        match bytes.iter().find(|&&byte| byte > 2) {
            Some(byte) => bail!("byte {byte} was never written"),
            None => Ok(()),
        }
    }));
    at_once(parts)?;
    expect_bytes(&mount, &std::fs::read(&source)?, "fresh open after the truncations")
}

fn replace_with_openers(round: &mut Round) -> Result<()> {
    const BYTES: usize = 3 * 131_072;
    let (mount, source) = round.paths("file");
    std::fs::write(&source, block_of(0, BYTES))?;
    let published = AtomicU64::new(0);
    let replacement = source.with_extension("new");
    let mut next = 0;
    let mut parts: Vec<Box<dyn FnMut() -> Result<()> + Send + '_>> = vec![Box::new(|| {
        next += 1;
        std::fs::write(&replacement, block_of(next, BYTES))?;
        std::fs::rename(&replacement, &source)?;
        published.store(next, Ordering::SeqCst);
        Ok(())
    })];
    let (mount, published) = (mount.as_path(), &published);
    parts.push(Box::new(move || {
        let floor = published.load(Ordering::SeqCst);
        let bytes = read_whole(mount).context("opening a name that is being replaced")?;
        let first = counters(&bytes).next().unwrap_or(0);
        if bytes != block_of(first, BYTES) {
            bail!("{} bytes that begin with {first} are not one whole file", bytes.len());
        }
        if first < floor {
            bail!("file {first} was read although {floor} had taken the name before the open");
        }
        Ok(())
    }));
    at_once(parts)
}
