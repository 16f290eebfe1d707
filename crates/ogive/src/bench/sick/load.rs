//! The load of a sickness: threads that read the mount until they are stopped.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::fs::{Mode, OFlags};
use rustix::process::Resource;

use super::Stop;
use super::served::raise_descriptor_limit;
use super::sickness::Sickness;

/// Threads that read.
const THREADS: u64 = 2;
/// Times the source may be read until the second level has it.
const PASSES_MAX: usize = 20;
/// Share of the source that the second level must have: the rest is read from the source.
const ENOUGH_PERCENT: u64 = 70;
/// Pauses in which the writer of the second level may begin.
const PAUSES_MAX: usize = 20;
/// Records in a stream that ends once prefetch has begun, which takes three hits.
const STREAM_READS: u64 = 4;
/// Descriptors that this process needs for other things.
const DESCRIPTORS_ASIDE: u64 = 200;

/// A load that runs.
pub(super) struct Load {
    threads: Vec<JoinHandle<Result<()>>>,
    operations: Arc<AtomicU64>,
}

impl Load {
    /// Whether a thread has ended by itself, which is an error.
    pub(super) fn has_ended(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Whether all threads have ended.
    pub(super) fn is_done(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Waits for the threads, which were stopped before; returns the number of operations.
    pub(super) fn end(self) -> Result<u64> {
        for thread in self.threads {
            match thread.join() {
                Ok(result) => result?,
                Err(_) => bail!("a thread of the load panicked"),
            }
        }
        Ok(self.operations.load(Ordering::Relaxed))
    }
}

/// Brings the mount to where the sickness shows: fills the second level, warms the cache.
pub(super) fn prepare(sickness: Sickness, mount_point: &Path, stop: &Stop) -> Result<()> {
    match sickness {
        Sickness::SlowL2 => fill_second_level(mount_point, stop),
        Sickness::Healthy | Sickness::SmallArc => {
            for path in files(mount_point)? {
                std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Starts the threads.
pub(super) fn start(sickness: Sickness, mount_point: &Path, stop: &Stop) -> Result<Load> {
    let operations = Arc::new(AtomicU64::new(0));
    let count = if sickness == Sickness::Pinned { 1 } else { THREADS };
    let mut threads = Vec::new();
    for number in 0..count {
        let mut worker = Worker {
            sickness,
            mount_point: mount_point.to_owned(),
            stop: Arc::clone(stop),
            operations: Arc::clone(&operations),
            state: (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
        };
        let thread = std::thread::Builder::new().name(format!("load-{number}"));
        threads.push(thread.spawn(move || worker.run()).context("cannot start a thread")?);
    }
    Ok(Load { threads, operations })
}

struct Worker {
    sickness: Sickness,
    mount_point: PathBuf,
    stop: Stop,
    operations: Arc<AtomicU64>,
    state: u64,
}

impl Worker {
    fn run(&mut self) -> Result<()> {
        if self.sickness == Sickness::Pinned {
            return self.pin();
        }
        let paths = files(&self.mount_point)?;
        let mut opened = Vec::new();
        for path in &paths {
            // With a slow source, opening alone takes a minute.
            if self.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let file =
                File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
            let bytes = file.metadata()?.len();
            opened.push((file, bytes));
        }
        let mut block = vec![0; usize::try_from(self.sickness.read_bytes()).unwrap_or(1 << 17)];
        let read_bytes = block.len() as u64;
        while !self.stop.load(Ordering::Relaxed) {
            let (file, bytes) = &opened[self.random(opened.len() as u64)];
            let blocks = bytes / read_bytes;
            let (first, reads) = match self.sickness {
                // Whole files, because these reach the second level.
                Sickness::SlowL2 => (0, blocks),
                Sickness::Prefetch => (self.random(blocks - STREAM_READS) as u64, STREAM_READS),
                _ => (self.random(blocks) as u64, 1),
            };
            for number in first..first + reads {
                file.read_at(&mut block, number * read_bytes).context("cannot read the mount")?;
                self.operations.fetch_add(1, Ordering::Relaxed);
                if self.stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Holds all files without opening them for reading, as a watcher does. Then it stats them again
    /// and again, and asks the mount to prune inodes.
    fn pin(&mut self) -> Result<()> {
        raise_descriptor_limit();
        let room = rustix::process::getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let room = usize::try_from(room.saturating_sub(DESCRIPTORS_ASIDE)).unwrap_or(usize::MAX);
        let mut paths = files(&self.mount_point)?;
        paths.truncate(room);
        let mut held: Vec<OwnedFd> = Vec::with_capacity(paths.len());
        for path in &paths {
            let file = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
                .with_context(|| format!("cannot hold {}", path.display()))?;
            held.push(file);
        }
        while !self.stop.load(Ordering::Relaxed) {
            for path in &paths {
                std::fs::symlink_metadata(path)
                    .with_context(|| format!("cannot look at {}", path.display()))?;
                self.operations.fetch_add(1, Ordering::Relaxed);
                if self.stop.load(Ordering::Relaxed) {
                    break;
                }
            }
            std::fs::write(self.mount_point.join(".ogive/prune"), "all")
                .context("cannot ask the mount to prune inodes")?;
        }
        drop(held);
        Ok(())
    }

    fn random(&mut self, below: u64) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state % below.max(1)).unwrap_or(0)
    }
}

fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory)
        .with_context(|| format!("cannot list {}", directory.display()))?
    {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("file-")) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Reads everything until the second level has it, and empties the cache in memory.
fn fill_second_level(mount_point: &Path, stop: &Stop) -> Result<()> {
    let paths = files(mount_point)?;
    let mut records = 0;
    for path in &paths {
        records += path.metadata()?.len().div_ceil(128 << 10);
    }
    for _ in 0..PASSES_MAX {
        for path in &paths {
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
            let before = statistic(mount_point, "l2_records")?;
            forget(mount_point)?;
            // Nothing waits for the writer, and it drops records that it has no time for.
            for _ in 0..PAUSES_MAX {
                std::thread::sleep(Duration::from_millis(30));
                if statistic(mount_point, "l2_records")? > before || stop.load(Ordering::Relaxed) {
                    break;
                }
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
        if statistic(mount_point, "l2_records")? >= records * ENOUGH_PERCENT / 100 {
            return Ok(());
        }
    }
    bail!("the second level did not take the source in {PASSES_MAX} passes; is --dir so slow?")
}

fn forget(mount_point: &Path) -> Result<()> {
    std::fs::write(mount_point.join(".ogive/reclaim"), "all").context("cannot empty the cache")
}

/// A counter of the mount, 0 if it has none of that name.
fn statistic(mount_point: &Path, name: &str) -> Result<u64> {
    let text = std::fs::read_to_string(mount_point.join(".ogive/ogivestats"))?;
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(name));
    Ok(line.and_then(|line| line.split_whitespace().nth(2)?.parse().ok()).unwrap_or(0))
}
