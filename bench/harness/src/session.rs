//! One run of the benchmark: its folders, sizes and programs.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Context, Result};

const MIB: u64 = 1 << 20;

/// How much is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Under five minutes: shows that everything works; not for publication.
    Quick,
    /// Under thirty minutes: the figures.
    Full,
}

impl Mode {
    /// As typed on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }
}

/// Sizes and repetitions of every group.
pub struct Plan {
    /// Rounds of a group whose figures are times.
    pub rounds: usize,
    /// Bytes of each of the 32 files read by `arc`.
    pub arc_file_bytes: u64,
    /// Seconds one fio run lasts.
    pub fio_seconds: u32,
    /// Rounds of `sequential`.
    pub sequential_rounds: usize,
    /// Bytes `sequential` reads.
    pub sequential_bytes: u64,
    /// Numbers of files `metadata` walks.
    pub tree_files: &'static [usize],
    /// Rounds of `metadata`.
    pub tree_rounds: usize,
    /// Whether slow peers walk a tree too.
    pub slow_peers_walk: bool,
    /// Rounds of `workloads`.
    pub workload_rounds: usize,
    /// Seconds `idle` watches.
    pub idle_seconds: u64,
    /// Memory limit of `caching`; the working set is twice, the scan eight times as large.
    pub limit_bytes: u64,
    /// Rounds of `caching`: its figures are counts, which repeat well.
    pub caching_rounds: usize,
    /// Rounds of passes over a slow source.
    pub dropped_rounds: usize,
}

impl Plan {
    /// The plan for `mode`.
    pub fn of(mode: Mode) -> Self {
        match mode {
            Mode::Quick => Self {
                rounds: 3,
                arc_file_bytes: 8 * MIB,
                fio_seconds: 1,
                sequential_rounds: 2,
                sequential_bytes: 384 * MIB,
                tree_files: &[100_000],
                tree_rounds: 1,
                slow_peers_walk: false,
                workload_rounds: 1,
                idle_seconds: 15,
                limit_bytes: 192 * MIB,
                caching_rounds: 1,
                dropped_rounds: 1,
            },
            Mode::Full => Self {
                rounds: 5,
                arc_file_bytes: 32 * MIB,
                fio_seconds: 3,
                sequential_rounds: 5,
                sequential_bytes: 1024 * MIB,
                tree_files: &[100_000, 500_000],
                tree_rounds: 3,
                slow_peers_walk: true,
                workload_rounds: 5,
                idle_seconds: 60,
                limit_bytes: 512 * MIB,
                caching_rounds: 2,
                dropped_rounds: 3,
            },
        }
    }
}

/// Everything a group needs to run.
pub struct Session {
    /// Quick or full.
    pub mode: Mode,
    /// Its sizes and repetitions.
    pub plan: Plan,
    /// Where file sets, mount points and the list of daemons are.
    pub work: PathBuf,
    /// Where results go.
    pub results: PathBuf,
    /// The `ogive` binary, or why there is none.
    pub ogive: Result<PathBuf>,
    /// The passthrough.
    pub passthrough: PathBuf,
    /// As typed.
    pub command: String,
    /// The commit of the tree, as `commit.sh` prints it.
    pub commit: String,
    /// Held for as long as the run lasts, so that no two runs disturb each other.
    _lock: File,
}

impl Session {
    /// Takes the work folder for this run. `run.sh` sets `BENCH_WORK`, `BENCH_RESULTS`,
    /// `BENCH_COMMIT`, `OGIVE_BIN` and `PASSTHROUGH_BIN`.
    pub fn begin(mode: Mode, groups: &[String]) -> Result<Self> {
        let work = folder("BENCH_WORK")?;
        let mut results = folder("BENCH_RESULTS")?;
        if mode == Mode::Quick {
            results.push("quick");
        }
        fs::create_dir_all(&results).context(|| format!("cannot make {}", results.display()))?;
        let lock = lock(&work)?;
        let ogive = binary("OGIVE_BIN");
        let passthrough = binary("PASSTHROUGH_BIN")?;
        let command = format!("bench/run.sh {} {}", mode.name(), groups.join(" "));
        let command = command.trim_end().to_owned();
        Ok(Self {
            mode,
            plan: Plan::of(mode),
            work,
            results,
            ogive,
            passthrough,
            command,
            commit: variable("BENCH_COMMIT")?.to_string_lossy().into_owned(),
            _lock: lock,
        })
    }

    /// A folder of this name in the work folder, made if it is not there.
    pub fn folder(&self, name: &str) -> Result<PathBuf> {
        let path = self.work.join(name);
        fs::create_dir_all(&path).context(|| format!("cannot make {}", path.display()))?;
        Ok(path)
    }

    /// Whether this `ogive` knows an option of `ogive mount`.
    pub fn ogive_knows(&self, option: &str) -> bool {
        let Ok(ogive) = &self.ogive else { return false };
        Command::new(ogive)
            .args(["mount", "--help"])
            .output()
            .is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(option))
    }
}

/// Locks the work folder for one run at a time.
pub fn lock(work: &Path) -> Result<File> {
    fs::create_dir_all(work).context(|| format!("cannot make {}", work.display()))?;
    let path = work.join("lock");
    let file = File::create(&path).context(|| format!("cannot make {}", path.display()))?;
    file.try_lock().map_err(|_| {
        format!("another run holds {}: wait for it to end, or set BENCH_WORK", path.display())
    })?;
    Ok(file)
}

/// The folder that an environment variable names.
pub fn folder(name: &str) -> Result<PathBuf> {
    variable(name).map(PathBuf::from)
}

fn variable(name: &str) -> Result<OsString> {
    std::env::var_os(name)
        .ok_or_else(|| format!("{name} is not set: start the benchmark by bench/run.sh"))
}

fn binary(variable: &str) -> Result<PathBuf> {
    let path = folder(variable)?;
    if path.is_file() {
        Ok(path)
    } else {
        Err(format!("no binary at {} ({variable})", path.display()))
    }
}

/// Whether a program is on the search path.
pub fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
