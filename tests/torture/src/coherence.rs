//! The promises of coherence: each is a named test that runs many times with many timings.
//!
//! - *Close-to-open* ([`reopen`]): after a change behind the mount, a fresh open and read through
//!   the mount shows it, with any effect on size and times.
//! - *Read your writes* ([`readback`]): every way of reading returns a write through the mount at
//!   once. It is in the source when the write has returned.
//! - *Appends* ([`append`]): appended bytes are at the end, and no appends of others are lost.
//! - *Times* ([`times`]): a file has the times that were set, even before 1970.
//! - *Races* ([`race`]): with concurrent writers and readers, no reader goes back in time. In the
//!   end the mount shows exactly the bytes of the source.
//!
//! A promise is a function that makes one round in a directory of its own. Between its steps it
//! waits for a time that the round's seed decides, from nothing to more than a tick of the kernel's
//! clock. A version made of times can be wrong only within one tick.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::bytes::{digest, first_difference};
use crate::contents::read_whole;
use crate::progress::Progress;

pub mod append;
pub mod race;
pub mod readback;
pub mod reopen;
pub mod times;

/// One promise.
#[derive(Debug, Clone, Copy)]
pub struct Promise {
    /// Its name on the command line.
    pub name: &'static str,
    /// The promise, in one sentence.
    pub says: &'static str,
    /// One round; an error says how it was broken.
    pub round: fn(&mut Round) -> Result<()>,
    /// Rounds in percent of the usual number, because races are long.
    pub rounds_percent: u32,
}

/// The environment of a round.
#[derive(Debug)]
pub struct Round {
    /// The round's directory as the mount shows it.
    pub mount: PathBuf,
    /// The same directory in the source.
    pub source: PathBuf,
    /// Decides sizes, offsets, bytes and waits.
    pub random: fastrand::Rng,
    /// How long the kernel may use names, and missing names, without asking the mount.
    pub names_time: Duration,
}

/// The parameters of a run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// A directory as the mount shows it.
    pub mount: PathBuf,
    /// The same directory in the source.
    pub source: PathBuf,
    /// Which promises.
    pub chosen: Vec<Promise>,
    /// Rounds of each, before [`Promise::rounds_percent`].
    pub rounds: u32,
    /// Decides everything.
    pub seed: u64,
    /// See [`Round::names_time`].
    pub names_time: Duration,
}

/// Sizes at limits: nothing, one byte, pages, records, several records.
const SIZES: [usize; 10] =
    [1, 100, 4095, 4096, 4097, 131_071, 131_072, 131_073, 400_000, 1_048_576];

impl Round {
    /// A file's path through the mount and in the source.
    #[must_use]
    pub fn paths(&self, name: &str) -> (PathBuf, PathBuf) {
        (self.mount.join(name), self.source.join(name))
    }

    /// One of the interesting sizes.
    pub fn size(&mut self) -> usize {
        SIZES[self.random.usize(0..SIZES.len())]
    }

    /// Random bytes.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        crate::bytes::filled(self.random.u64(..), length)
    }

    /// Waits until the kernel must ask the mount again for every name.
    pub fn wait_for_names(&self) {
        std::thread::sleep(self.names_time);
    }

    /// Waits: mostly not at all, sometimes some microseconds, sometimes past a clock tick.
    pub fn pause(&mut self) {
        match self.random.u32(0..10) {
            0..5 => {}
            5 => std::thread::yield_now(),
            6 | 7 => std::thread::sleep(Duration::from_micros(self.random.u64(1..500))),
            8 => std::thread::sleep(Duration::from_millis(self.random.u64(1..5))),
            _ => std::thread::sleep(Duration::from_millis(12)),
        }
    }
}

/// All promises in the order in which they are tested.
#[must_use]
pub fn promises() -> Vec<Promise> {
    let all =
        [reopen::PROMISES, readback::PROMISES, append::PROMISES, times::PROMISES, race::PROMISES];
    all.concat()
}

/// Fails unless a fresh open and read of `path` gives exactly `expected`.
///
/// # Errors
/// Where the bytes differ, or the errno of the read.
pub fn expect_bytes(path: &Path, expected: &[u8], when: &str) -> Result<()> {
    let got = read_whole(path)
        .map_err(anyhow::Error::from)
        .with_context(|| format!("{when}: cannot read {}", path.display()))?;
    same_bytes(&got, expected, when)
}

/// Fails unless both slices are equal.
///
/// # Errors
/// Where they differ.
pub fn same_bytes(got: &[u8], expected: &[u8], when: &str) -> Result<()> {
    match first_difference(got, expected) {
        None => Ok(()),
        Some(at) => bail!(
            "{when}: {} bytes (digest {:016x}) instead of {} (digest {:016x}), first difference at \
             {at}",
            got.len(),
            digest(got),
            expected.len(),
            digest(expected)
        ),
    }
}

/// Makes the rounds of each chosen promise and prints a line for each.
/// Returns the names of those that were broken, each with how it was broken first.
///
/// # Errors
/// When the directories for the rounds cannot be made.
pub fn run(plan: &Plan) -> Result<Vec<(&'static str, anyhow::Error)>> {
    let mut broken = Vec::new();
    for promise in &plan.chosen {
        let rounds = (plan.rounds * promise.rounds_percent).div_ceil(100).max(1);
        let mut progress = Progress::default();
        let mut failure = None;
        for number in 0..rounds {
            progress.show(promise.name, number.into(), rounds.into());
            if let Err(error) = one_round(plan, promise, number)? {
                failure = Some(error);
                break;
            }
        }
        progress.end();
        match failure {
            None => println!("kept    {:<28} {rounds} rounds", promise.name),
            Some(error) => {
                println!("BROKEN  {:<28} {}: {error:#}", promise.name, promise.says);
                broken.push((promise.name, error));
            }
        }
    }
    Ok(broken)
}

/// One round in a new directory. It is made in the source, so that its files are new to the mount.
fn one_round(plan: &Plan, promise: &Promise, number: u32) -> Result<Result<()>> {
    let seed = plan.seed.wrapping_add(u64::from(number));
    let name = format!("{}-{number}", promise.name);
    let source = plan.source.join(&name);
    std::fs::create_dir(&source).with_context(|| format!("cannot make {}", source.display()))?;
    let mut round = Round {
        mount: plan.mount.join(&name),
        source: source.clone(),
        random: fastrand::Rng::with_seed(seed),
        names_time: plan.names_time,
    };
    let result =
        (promise.round)(&mut round).with_context(|| format!("round {number}, seed {}", plan.seed));
    remove(&source).with_context(|| format!("cannot remove {}", source.display()))?;
    Ok(result)
}

/// Removes a directory. On some network file systems, a file closed a moment ago stays in it a
/// little longer.
fn remove(directory: &Path) -> std::io::Result<()> {
    const TRIES: u32 = 50;
    const PAUSE: Duration = Duration::from_millis(200);
    let mut tries = 1;
    loop {
        match std::fs::remove_dir_all(directory) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty && tries < TRIES => {
                tries += 1;
                std::thread::sleep(PAUSE);
            }
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests;
