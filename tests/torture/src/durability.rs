//! Kill the daemon with SIGKILL during writes: the source must have every acknowledged block.
//!
//! Afterwards the dead mount point must mount again.
//!
//! A writer process writes numbered, checksummed blocks through the mount. It acknowledges each
//! block to the suite over a pipe, once the promise for it holds:
//!
//! - [`Method::Written`]: `write` returned (write-through: the bytes are in the source);
//! - [`Method::Synchronized`]: `fsync` returned;
//! - [`Method::Mapped`]: `msync` of a shared map returned.
//!
//! A place is overwritten with rising numbers. So a block in the source may be newer than the last
//! acknowledged one, but never older. It is always complete, because a block is one page, and the
//! daemon writes a page in one piece.
//!
//! The daemon is killed after a number of acknowledged blocks that the seed gives, however long
//! that takes. So a stalled machine does not change the run, and a seed can be repeated.
//!
//! This suite cannot show a power failure: the source's own page cache survives the daemon. Another
//! test observes from outside that `fsync` reaches the source, by counting system calls.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::bytes::{digest, filled};
use crate::mapping;

/// Bytes of a block.
pub const BLOCK_BYTES: usize = 4096;
/// Files a writer writes to.
pub const FILES: u32 = 12;
/// Places of a file.
pub const PLACES: u32 = 40;

const MAGIC: u64 = 0x4b4c_4f43_4249_474f;
const ACKNOWLEDGEMENT_BYTES: usize = 16;

/// Most blocks that are acknowledged before the daemon is killed.
const BLOCKS_MAX: u64 = 600;

/// How long a mount may take to answer, a writer to acknowledge its blocks, and a process to notice a
/// dead mount. No working program needs it.
const PATIENCE: Duration = Duration::from_secs(60);

/// The promise that a writer waits for before it acknowledges. A file keeps one method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// `write` returned.
    Written,
    /// `fsync` returned.
    Synchronized,
    /// `msync` returned.
    Mapped,
}

/// The method of a file.
#[must_use]
pub fn method_of(file: u32) -> Method {
    match file % 3 {
        0 => Method::Written,
        1 => Method::Synchronized,
        _ => Method::Mapped,
    }
}

fn file_path(root: &Path, file: u32) -> PathBuf {
    root.join(format!("blocks-{file:02}"))
}

/// The block with a number for a place: magic, file, place, number, checksum, filling.
#[must_use]
pub fn block(file: u32, place: u32, number: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(BLOCK_BYTES);
    bytes.extend_from_slice(&MAGIC.to_le_bytes());
    bytes.extend_from_slice(&file.to_le_bytes());
    bytes.extend_from_slice(&place.to_le_bytes());
    bytes.extend_from_slice(&number.to_le_bytes());
    let filling = filled(number ^ u64::from(file) << 48 ^ u64::from(place) << 40, BLOCK_BYTES - 32);
    let sum = digest(&filling) ^ digest(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes.extend_from_slice(&filling);
    bytes
}

/// The number of a whole block that belongs to this place.
///
/// # Errors
/// The fault.
pub fn number_of(bytes: &[u8], file: u32, place: u32) -> Result<u64> {
    ensure!(bytes.len() == BLOCK_BYTES, "{} bytes instead of {BLOCK_BYTES}", bytes.len());
    let number = u64::from_le_bytes(bytes[16..24].try_into()?);
    ensure!(bytes == block(file, place, number), "not a whole block of its place");
    Ok(number)
}

/// The writing process: writes until a call fails, acknowledging on `acknowledgements`.
/// It ends without an error when the mount died under it, which is what it waits for.
///
/// # Errors
/// When the files cannot be created, or the reader of acknowledgements has ended.
pub fn write_until_dead(
    directory: &Path,
    first_number: u64,
    seed: u64,
    mut acknowledgements: impl Write,
) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut files = Vec::new();
    for file in 0..FILES {
        let path = file_path(directory, file);
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .with_context(|| format!("cannot open {}", path.display()))?;
        opened.set_len(u64::from(PLACES) * BLOCK_BYTES as u64)?;
        files.push(opened);
    }
    for number in first_number.. {
        let (file, place) = (random.u32(0..FILES), random.u32(0..PLACES));
        if write_block(&files[file as usize], file, place, number).is_err() {
            return Ok(());
        }
        let mut line = Vec::with_capacity(ACKNOWLEDGEMENT_BYTES);
        line.extend_from_slice(&file.to_le_bytes());
        line.extend_from_slice(&place.to_le_bytes());
        line.extend_from_slice(&number.to_le_bytes());
        acknowledgements.write_all(&line).context("cannot write an acknowledgement")?;
    }
    Ok(())
}

fn write_block(opened: &File, file: u32, place: u32, number: u64) -> Result<()> {
    let bytes = block(file, place, number);
    let offset = u64::from(place) * BLOCK_BYTES as u64;
    match method_of(file) {
        Method::Written => opened.write_all_at(&bytes, offset)?,
        Method::Synchronized => {
            opened.write_all_at(&bytes, offset)?;
            opened.sync_all()?;
        }
        Method::Mapped => {
            mapping::write_shared(opened, offset, &bytes)?;
        }
    }
    Ok(())
}

/// The highest acknowledged number of each place.
pub type Acknowledged = BTreeMap<(u32, u32), u64>;

/// Reads acknowledgements until the writer closes its end, and calls `noted` with their number
/// after each one.
///
/// # Errors
/// When the pipe cannot be read or ends in the middle of an acknowledgement.
pub fn collect(
    mut pipe: impl Read,
    into: &mut Acknowledged,
    mut noted: impl FnMut(u64),
) -> Result<u64> {
    let mut count = 0;
    loop {
        let mut line = Vec::with_capacity(ACKNOWLEDGEMENT_BYTES);
        pipe.by_ref()
            .take(ACKNOWLEDGEMENT_BYTES as u64)
            .read_to_end(&mut line)
            .context("cannot read acknowledgements")?;
        if line.is_empty() {
            return Ok(count);
        }
        let length = line.len();
        ensure!(length == ACKNOWLEDGEMENT_BYTES, "half an acknowledgement: {length} bytes");
        let file = u32::from_le_bytes(line[0..4].try_into()?);
        let place = u32::from_le_bytes(line[4..8].try_into()?);
        let number = u64::from_le_bytes(line[8..16].try_into()?);
        let highest = into.entry((file, place)).or_default();
        *highest = number.max(*highest);
        count += 1;
        noted(count);
    }
}

/// Looks for every acknowledged block below `root`; returns what is missing, one line each.
#[must_use]
pub fn missing(root: &Path, acknowledged: &Acknowledged) -> Vec<String> {
    let mut found = Vec::new();
    for (&(file, place), &number) in acknowledged {
        let look = || -> Result<u64> {
            let mut bytes = vec![0; BLOCK_BYTES];
            let offset = u64::from(place) * BLOCK_BYTES as u64;
            File::open(file_path(root, file))?.read_exact_at(&mut bytes, offset)?;
            number_of(&bytes, file, place)
        };
        let method = method_of(file);
        match look() {
            Ok(there) if there >= number => {}
            Ok(there) => found.push(format!(
                "file {file} place {place}: block {number} was acknowledged ({method:?}), \
                 {there} is there"
            )),
            Err(error) => found.push(format!(
                "file {file} place {place}: block {number} was acknowledged ({method:?}): {error:#}"
            )),
        }
    }
    // The first few show enough.
    let count = found.len();
    if count > 20 {
        found.truncate(20);
        found.push(format!("and {} more", count - 20));
    }
    found
}

/// The environment of the rounds.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The mount point.
    pub mount: PathBuf,
    /// The source directory.
    pub source: PathBuf,
    /// The command that mounts in the foreground; its process is the one that is killed.
    pub command: Vec<String>,
    /// Rounds of kill and mount again.
    pub rounds: u32,
    /// Decides how many blocks the daemon lives for in each round, and what is written.
    pub seed: u64,
    /// This program, which is started again as the writer.
    pub writer: PathBuf,
}

/// Makes all rounds; the mount is dead at the end (it was killed). Returns the number of
/// acknowledged blocks.
///
/// # Errors
/// Missing blocks, a mount that does not come back, a failing environment.
pub fn run(plan: &Plan) -> Result<u64> {
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let mut acknowledged = Acknowledged::new();
    let mut total = 0;
    for round in 0..plan.rounds {
        let mut daemon = mount(plan, round).with_context(|| format!("mount of round {round}"))?;
        let result = one_round(plan, &mut daemon, total, &mut random, &mut acknowledged);
        if result.is_err() {
            // The daemon may have ended by itself already.
            let _ = daemon.kill();
        }
        ended(&mut daemon, "the daemon after it was killed")?;
        total += result.with_context(|| format!("round {round}, seed {}", plan.seed))?;
        let lost = missing(&plan.source, &acknowledged);
        if !lost.is_empty() {
            bail!("round {round}, seed {}: lost blocks:\n{}", plan.seed, lost.join("\n"));
        }
    }
    Ok(total)
}

fn one_round(
    plan: &Plan,
    daemon: &mut Child,
    already: u64,
    random: &mut fastrand::Rng,
    acknowledged: &mut Acknowledged,
) -> Result<u64> {
    // The blocks of earlier rounds are also there through the new mount.
    let lost = missing(&plan.mount, acknowledged);
    ensure!(lost.is_empty(), "not seen through the new mount:\n{}", lost.join("\n"));
    let mut writer = Command::new(&plan.writer)
        .arg("durability-writer")
        .arg(&plan.mount)
        .args(["--first", &(already + 1).to_string(), "--seed", &random.u64(..).to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the writer")?;
    let pipe = writer.stdout.take().context("the writer has no pipe")?;
    let enough = random.u64(1..=BLOCKS_MAX);
    let (sender, receiver) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut seen = Acknowledged::new();
        let noted = |count| {
            if count == enough {
                // The receiver has ended if this took too long.
                let _ = sender.send(());
            }
        };
        collect(pipe, &mut seen, noted).map(|count| (count, seen))
    });
    let came = receiver.recv_timeout(PATIENCE);
    daemon.kill().context("cannot kill the daemon")?;
    let status = ended(&mut writer, "the writer after the daemon was killed")?;
    came.with_context(|| {
        format!("no {enough} blocks were acknowledged in {PATIENCE:?}; the writer: {status}")
    })?;
    let (count, seen) = reader
        .join()
        .map_err(|_| anyhow::anyhow!("the thread that reads acknowledgements panicked"))??;
    // A page of a map that its mount can no longer fill is a SIGBUS, as the kernel has it.
    ensure!(
        status.success() || status.signal() == Some(libc::SIGBUS),
        "the writer ended with {status}"
    );
    for (place, number) in seen {
        let highest = acknowledged.entry(place).or_default();
        *highest = number.max(*highest);
    }
    Ok(count)
}

/// Waits for the end of a process, and kills it if that does not come.
fn ended(process: &mut Child, what: &str) -> Result<ExitStatus> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Some(status) = process.try_wait().context("cannot wait for a process")? {
            return Ok(status);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = process.kill();
    bail!("did not end in {PATIENCE:?}: {what}")
}

/// Starts the daemon and waits until its mount answers: until a new name is visible through it.
/// (The kernel may still answer the attributes of a dead mount's root.)
fn mount(plan: &Plan, round: u32) -> Result<Child> {
    let (program, arguments) = plan.command.split_first().context("no mount command")?;
    let marker = format!("mounted-{round}");
    std::fs::write(plan.source.join(&marker), b"")
        .with_context(|| format!("cannot write to {}", plan.source.display()))?;
    let mut daemon = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {program}"))?;
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Some(status) = daemon.try_wait()? {
            bail!("{} ended with {status} instead of serving", plan.command.join(" "));
        }
        if std::fs::symlink_metadata(plan.mount.join(&marker)).is_ok() {
            return Ok(daemon);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = daemon.kill();
    let _ = daemon.wait();
    bail!("{} does not answer after {} s", plan.mount.display(), PATIENCE.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_blocks_of_their_place_count() {
        let good = block(3, 4, 77);
        assert_eq!(number_of(&good, 3, 4).unwrap(), 77);
        assert!(number_of(&good, 3, 5).is_err());
        assert!(number_of(&good[1..], 3, 4).is_err());
        let torn = [&good[..2048], &block(3, 4, 78)[2048..]].concat();
        assert!(number_of(&torn, 3, 4).is_err());
        assert!(number_of(&vec![0; BLOCK_BYTES], 3, 4).is_err());
    }

    /// Stops the writer after some acknowledgements.
    struct Full(Vec<u8>);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if self.0.len() >= 200 * ACKNOWLEDGEMENT_BYTES {
                return Err(std::io::Error::other("enough"));
            }
            self.0.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_lost_block_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let mut pipe = Full(Vec::new());
        write_until_dead(directory.path(), 1, 5, &mut pipe).unwrap_err();
        let mut acknowledged = Acknowledged::new();
        let mut noted = Vec::new();
        let count = collect(&pipe.0[..], &mut acknowledged, |count| noted.push(count)).unwrap();
        assert_eq!(count, 200);
        assert!(noted.into_iter().eq(1..=200), "each is noted when it arrives");
        assert_eq!(missing(directory.path(), &acknowledged), Vec::<String>::new());

        let (&(file, place), &number) = acknowledged.iter().next_back().unwrap();
        let victim =
            OpenOptions::new().write(true).open(file_path(directory.path(), file)).unwrap();
        let older = block(file, place, number - 1);
        victim.write_all_at(&older, u64::from(place) * BLOCK_BYTES as u64).unwrap();
        let lost = missing(directory.path(), &acknowledged);
        assert_eq!(lost.len(), 1);
        assert!(lost[0].contains(&format!("file {file} place {place}")), "{lost:?}");
    }

    #[test]
    fn half_an_acknowledgement_is_an_error() {
        assert!(collect(&[0_u8; 17][..], &mut Acknowledged::new(), |_| {}).is_err());
    }
}
