//! The same random operations on the mount and on a mirror directory, compared step by step.
//!
//! Every thread has its own subtree, or, with `shared`, its own names in one directory. After each
//! operation the two results must be equal, including the errno. At intervals, and at the end, the
//! trees are compared: mount with mirror, source with mirror, and mount with source.
//!
//! Some changes are made behind the mount, in the source. All files are closed first. The changed
//! file is opened and read through the mount right after, as close-to-open promises.
//!
//! No locks: threads share only a step counter.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Context, Result, bail};
use rustix::fs::Access;
use serde::{Deserialize, Serialize};

use crate::access::Side;
use crate::behind::{self, CHANGES, Change};
use crate::generate::{Generator, Known, look};
use crate::operation::{Answer, FileKind, Operation, describe};
use crate::progress::Progress;
use crate::tree::{self, Times};

/// The parameters of a run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// A directory as the mount shows it.
    pub mount: PathBuf,
    /// The same directory in the source.
    pub source: PathBuf,
    /// An empty directory on the source's file system, outside the source.
    pub mirror: PathBuf,
    /// Decides everything.
    pub seed: u64,
    /// Operations per thread.
    pub operations: u64,
    /// Threads.
    pub threads: u64,
    /// All threads in one directory, with names of their own.
    pub shared: bool,
    /// How many of a thousand steps are changes behind the mount.
    pub behind_permille: u32,
    /// Steps between comparisons of the whole trees.
    pub compare_every: u64,
    /// Files grow no larger than about this.
    pub file_bytes_max: u64,
    /// Permissions that no file is given.
    pub permissions_without: u32,
    /// The program that tries locks; no locks are tried without it.
    pub prober: Option<PathBuf>,
    /// Where each thread writes its steps, as `PATH.<thread>`.
    pub log: Option<PathBuf>,
}

/// The result of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Report {
    /// Operations made on both sides.
    pub operations: u64,
    /// Of these, how many succeeded (and how many failed equally on both sides is the rest).
    pub succeeded: u64,
    /// Changes made behind the mount.
    pub behind: u64,
    /// Comparisons of whole trees.
    pub comparisons: u64,
}

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// The same call on both sides.
    Both(Operation),
    /// A change in the source and in the mirror.
    #[expect(missing_docs, reason = "the fields are the arguments of `behind::make`")]
    Behind { path: PathBuf, change: Change, seed: u64 },
}

/// Runs `plan`.
///
/// # Errors
/// The first difference, with seed, thread, step and both outcomes; or a failing environment.
pub fn run(plan: &Plan) -> Result<Report> {
    let stop = AtomicBool::new(false);
    let done = AtomicU64::new(0);
    let mut runs = Vec::new();
    for thread in 0..plan.threads {
        runs.push(Run::new(plan, thread)?);
    }
    let total = plan.operations * plan.threads;
    let results: Vec<Result<Report>> = std::thread::scope(|scope| {
        let (stop, done) = (&stop, &done);
        let handles: Vec<_> = runs
            .iter_mut()
            .map(|run| scope.spawn(move || run.all(plan.operations, stop, done)))
            .collect();
        let mut progress = Progress::default();
        while handles.iter().any(|handle| !handle.is_finished()) {
            progress.show("mirror", done.load(Ordering::Relaxed), total);
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        progress.end();
        handles
            .into_iter()
            .map(|handle| handle.join().unwrap_or_else(|_| bail!("a thread panicked")))
            .collect()
    });
    let mut sum = Report::default();
    for result in results {
        let report = result?;
        sum.operations += report.operations;
        sum.succeeded += report.succeeded;
        sum.behind += report.behind;
        sum.comparisons += report.comparisons;
    }
    if plan.shared {
        compare_trees(&plan.mount, &plan.source, &plan.mirror)?;
        sum.comparisons += 1;
    }
    Ok(sum)
}

/// Makes the steps of a log again.
///
/// # Errors
/// As [`run`], and a log that cannot be read.
pub fn replay(plan: &Plan, log: &Path) -> Result<Report> {
    let mut run = Run::new(&Plan { log: None, ..plan.clone() }, 0)?;
    let file = File::open(log).with_context(|| format!("cannot open log {}", log.display()))?;
    for line in BufReader::new(file).lines() {
        let step: Step = serde_json::from_str(&line?).context("a line of the log is no step")?;
        run.step(&step)?;
    }
    run.compare()?;
    Ok(run.report)
}

/// One thread's part.
struct Run {
    thread: u64,
    seed: u64,
    mount: Side,
    mirror: Side,
    source: PathBuf,
    prefix: String,
    generator: Generator,
    known: Known,
    behind_permille: u32,
    compare_every: u64,
    log: Option<BufWriter<File>>,
    report: Report,
}

impl Run {
    fn new(plan: &Plan, thread: u64) -> Result<Run> {
        let (name, prefix) = if plan.shared {
            (String::new(), format!("{thread}-"))
        } else {
            (format!("thread-{thread}"), String::new())
        };
        let (mount, mirror) = (plan.mount.join(&name), plan.mirror.join(&name));
        for root in [&mount, &mirror] {
            std::fs::create_dir_all(root)
                .with_context(|| format!("cannot make {}", root.display()))?;
        }
        let log = match &plan.log {
            Some(log) => {
                let path = format!("{}.{thread}", log.display());
                let file = File::create(&path).with_context(|| format!("cannot create {path}"))?;
                Some(BufWriter::new(file))
            }
            None => None,
        };
        let seed = plan.seed.wrapping_add(thread.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Ok(Run {
            thread,
            seed: plan.seed,
            known: look(&mirror, &prefix),
            mount: Side::new(&mount, plan.prober.clone()),
            mirror: Side::new(&mirror, plan.prober.clone()),
            source: plan.source.join(&name),
            generator: Generator::new(seed, prefix.clone(), plan.file_bytes_max)
                .without_permissions(plan.permissions_without),
            prefix,
            behind_permille: plan.behind_permille,
            compare_every: plan.compare_every,
            log,
            report: Report::default(),
        })
    }

    /// All steps of this thread. The first difference stops the other threads too.
    fn all(&mut self, steps: u64, stop: &AtomicBool, done: &AtomicU64) -> Result<Report> {
        let result = (|| {
            for number in 1..=steps {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                self.one(number)?;
                done.fetch_add(1, Ordering::Relaxed);
            }
            self.compare()
        })();
        if let Some(log) = &mut self.log {
            log.flush().context("cannot write the log")?;
        }
        if result.is_err() {
            stop.store(true, Ordering::Relaxed);
        }
        result.with_context(|| format!("seed {}, thread {}", self.seed, self.thread))?;
        Ok(self.report)
    }

    fn one(&mut self, number: u64) -> Result<()> {
        let step = match self.change_behind() {
            Some(step) => step,
            None => Step::Both(self.next_operation()),
        };
        if let Some(log) = &mut self.log {
            let line = serde_json::to_string(&step)?;
            writeln!(log, "{line}").context("cannot write the log")?;
        }
        self.step(&step).with_context(|| format!("step {number}: {step:?}"))?;
        if self.compare_every > 0 && number.is_multiple_of(self.compare_every) {
            self.compare().with_context(|| format!("after step {number}"))?;
        }
        Ok(())
    }

    fn next_operation(&mut self) -> Operation {
        let operation = self.generator.next(&self.known);
        // An open by path must not open a device: a mount may be `nodev` and the mirror not.
        match opened_path(&operation) {
            Some(path) if self.leads_to_special(path) => {
                Operation::Status { path: path.to_path_buf(), follow: true }
            }
            _ => operation,
        }
    }

    fn leads_to_special(&self, path: &Path) -> bool {
        rustix::fs::stat(self.mirror.path(path)).is_ok_and(|status| {
            let file_type = rustix::fs::FileType::from_raw_mode(status.st_mode);
            crate::directory_entries::kind_of(file_type) == FileKind::Special
        })
    }

    fn change_behind(&mut self) -> Option<Step> {
        let random = self.generator.random();
        if random.u32(0..1000) >= self.behind_permille {
            return None;
        }
        let (seed, change) = (random.u64(..), CHANGES[random.usize(0..CHANGES.len())]);
        let files: Vec<&PathBuf> = self
            .known
            .iter()
            .filter(|(_, kind)| *kind == FileKind::Regular)
            .map(|(path, _)| path)
            .collect();
        if files.is_empty() {
            return None;
        }
        let path = files[seed as usize % files.len()].clone();
        let full = self.mirror.path(&path);
        rustix::fs::access(&full, Access::READ_OK | Access::WRITE_OK).ok()?;
        let links = rustix::fs::lstat(&full).ok()?.st_nlink;
        let parent = full.parent()?;
        // Replacing one of several names changes the attributes of the file behind the others. That
        // file is not opened here, so close-to-open does not cover it.
        let replaceable =
            links == 1 && rustix::fs::access(parent, Access::WRITE_OK | Access::EXEC_OK).is_ok();
        let change =
            if change == Change::Replaced && !replaceable { Change::SameSize } else { change };
        Some(Step::Behind { path, change, seed })
    }

    fn step(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Both(operation) => self.both(operation),
            Step::Behind { path, change, seed } => self.behind(path, *change, *seed),
        }
    }

    fn both(&mut self, operation: &Operation) -> Result<()> {
        let on_mirror = self.mirror.apply(operation);
        let on_mount = self.mount.apply(operation);
        if on_mount != on_mirror {
            bail!(
                "{operation:?} differs: mount: {}; mirror: {}",
                describe(&on_mount),
                describe(&on_mirror)
            );
        }
        self.report.operations += 1;
        if on_mirror.is_ok_and(|answer| answer != Answer::EmptySlot) {
            self.report.succeeded += 1;
            if changes_names(operation) {
                self.known = look(self.mirror.root(), &self.prefix);
            }
        }
        Ok(())
    }

    fn behind(&mut self, path: &Path, change: Change, seed: u64) -> Result<()> {
        self.mount.close_all();
        self.mirror.close_all();
        behind::make(&self.mirror.path(path), change, seed).context("in the mirror")?;
        behind::make(&self.source.join(path), change, seed).context("in the source")?;
        self.report.behind += 1;
        self.both(&Operation::ReadWhole { path: path.to_path_buf() })
            .with_context(|| format!("opened again after {change:?} behind the mount"))
    }

    fn compare(&mut self) -> Result<()> {
        // A shared root is compared once, at the end, when no thread works in it.
        if self.prefix.is_empty() {
            compare_trees(self.mount.root(), &self.source, self.mirror.root())?;
            self.report.comparisons += 1;
        }
        Ok(())
    }
}

/// Compares the three trees.
///
/// # Errors
/// Every difference, one a line (the first 20).
pub fn compare_trees(mount: &Path, source: &Path, mirror: &Path) -> Result<()> {
    let (mount, source, mirror) = (tree::read(mount)?, tree::read(source)?, tree::read(mirror)?);
    let mut found = Vec::new();
    for (names, left, right, times) in [
        ("mount / mirror", &mount, &mirror, Times::SetByHand),
        ("source / mirror", &source, &mirror, Times::SetByHand),
        ("mount / source", &mount, &source, Times::Exact),
    ] {
        let lines = tree::differences(left, right, times);
        found.extend(lines.into_iter().map(|line| format!("{names}: {line}")));
    }
    if found.is_empty() {
        return Ok(());
    }
    let count = found.len();
    found.truncate(20);
    bail!("trees differ in {count} places:\n{}", found.join("\n"))
}

/// The path that an operation opens or follows, if it does.
fn opened_path(operation: &Operation) -> Option<&Path> {
    match operation {
        Operation::Open { path, .. }
        | Operation::ReadWhole { path }
        | Operation::DirectWrite { path, .. }
        | Operation::DirectRead { path, .. }
        | Operation::TruncatePath { path, .. }
        | Operation::SeekHoles { path }
        | Operation::MapRead { path, .. }
        | Operation::MapWriteShared { path, .. }
        | Operation::MapWritePrivate { path, .. }
        | Operation::LockConflict { path, .. } => Some(path),
        _ => None,
    }
}

fn changes_names(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Open { .. }
            | Operation::Rename { .. }
            | Operation::Link { .. }
            | Operation::SymbolicLink { .. }
            | Operation::Unlink { .. }
            | Operation::MakeDirectory { .. }
            | Operation::RemoveDirectory { .. }
            | Operation::MakeSpecial { .. }
    )
}

#[cfg(test)]
mod tests;
