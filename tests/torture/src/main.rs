//! The command line of the torture suites; see the library for what they do.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};
use ogive_torture::operation::LockKind;
use ogive_torture::{coherence, durability, locks, mirror};

/// Exit code for a difference or a broken promise.
const FOUND: u8 = 1;
/// Exit code for an environment that does not allow the suite to run.
const ENVIRONMENT: u8 = 3;

/// Prove a mounted view of a directory wrong, if it is.
#[derive(Debug, Parser)]
#[command(
    name = "ogive-torture",
    version,
    after_help = "Exit codes: 0 all agreed; 1 a difference \
or a broken promise; 2 wrong use; 3 the environment failed."
)]
struct Cli {
    #[command(subcommand)]
    suite: Suite,
}

#[derive(Debug, Subcommand)]
enum Suite {
    /// Random operations on the mount and on a mirror directory, compared step by step.
    Mirror(MirrorArguments),
    /// The promises of coherence, each many times with many timings.
    Coherence(CoherenceArguments),
    /// Kill -9 of the daemon under writes; acknowledged blocks must be in the source.
    Durability(DurabilityArguments),
    /// Writes blocks and acknowledges them on standard output (started by `durability`).
    #[command(hide = true)]
    DurabilityWriter {
        directory: PathBuf,
        #[arg(long)]
        first: u64,
        #[arg(long)]
        seed: u64,
    },
    /// Tries a lock; the exit code is the result (started by `mirror`).
    #[command(hide = true)]
    LockProbe {
        path: PathBuf,
        kind: String,
        #[arg(long)]
        exclusive: bool,
    },
}

#[derive(Debug, Args)]
struct MirrorArguments {
    /// A directory as the mount shows it.
    #[arg(long)]
    mount: PathBuf,
    /// The same directory in the source of the mount.
    #[arg(long)]
    source: PathBuf,
    /// An empty directory outside the source, on the same file system.
    #[arg(long)]
    mirror: PathBuf,
    /// Decides all operations (default: the environment's OGIVE_SEED, or 1).
    #[arg(long)]
    seed: Option<u64>,
    /// Operations per thread.
    #[arg(long, default_value_t = 5000)]
    ops: u64,
    /// Threads, each with a subtree of its own.
    #[arg(long, default_value_t = 1)]
    threads: u64,
    /// Let all threads work in one directory, with names of their own.
    #[arg(long)]
    shared: bool,
    /// Of a thousand steps, how many are changes made behind the mount.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1000))]
    behind_permille: u32,
    /// Steps between comparisons of the whole trees; 0 compares at the end only.
    #[arg(long, default_value_t = 1000)]
    compare_every: u64,
    /// Files grow no larger than about this many bytes.
    #[arg(long, default_value_t = 1_500_000, value_parser = clap::value_parser!(u64).range(4096..))]
    file_bytes_max: u64,
    /// Give no file set-user-id and set-group-id bits.
    #[arg(long)]
    no_set_id: bool,
    /// Write the steps of each thread to PATH.THREAD, one JSON value a line.
    #[arg(long)]
    log: Option<PathBuf>,
    /// Make the steps of a log again instead of random ones.
    #[arg(long, conflicts_with_all = ["seed", "threads", "log", "shared"])]
    replay: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct CoherenceArguments {
    /// A directory as the mount shows it.
    #[arg(long, required_unless_present = "list")]
    mount: Option<PathBuf>,
    /// The same directory in the source of the mount.
    #[arg(long, required_unless_present = "list")]
    source: Option<PathBuf>,
    /// Rounds of each promise (races make a fifth of it, being longer).
    #[arg(long, default_value_t = 100)]
    rounds: u32,
    /// Decides sizes, bytes and waits (default: the environment's OGIVE_SEED, or 1).
    #[arg(long)]
    seed: Option<u64>,
    /// How many milliseconds the kernel may use names, and missing names, without asking.
    #[arg(long, default_value_t = 0)]
    names_ms: u64,
    /// List the promises and do nothing.
    #[arg(long)]
    list: bool,
    /// Only these promises.
    promises: Vec<String>,
}

#[derive(Debug, Args)]
struct DurabilityArguments {
    /// The mount point.
    #[arg(long)]
    mount: PathBuf,
    /// The source directory.
    #[arg(long)]
    source: PathBuf,
    /// Rounds of kill and mount again.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Decides when the daemon is killed and what is written (default: the environment's
    /// OGIVE_SEED, or 1).
    #[arg(long)]
    seed: Option<u64>,
    /// The command that mounts in the foreground.
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

fn main() -> ExitCode {
    match run(Cli::parse().suite) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("ogive-torture: {error:#}");
            // An errno of the environment is an I/O error at the root; everything else is a finding.
            let environment = error.root_cause().is::<std::io::Error>();
            ExitCode::from(if environment { ENVIRONMENT } else { FOUND })
        }
    }
}

fn run(suite: Suite) -> Result<ExitCode> {
    match suite {
        Suite::Mirror(arguments) => run_mirror(arguments)?,
        Suite::Coherence(arguments) => return run_coherence(&arguments),
        Suite::Durability(arguments) => run_durability(arguments)?,
        Suite::DurabilityWriter { directory, first, seed } => {
            // Straight to the pipe. The buffer of standard output would hold acknowledgements back
            // until one contains a line feed, and split that one.
            let pipe = std::io::stdout().as_fd().try_clone_to_owned()?;
            durability::write_until_dead(&directory, first, seed, std::fs::File::from(pipe))?;
        }
        Suite::LockProbe { path, kind, exclusive } => {
            let kind: LockKind = serde_json::from_value(kind.into()).context("no kind of lock")?;
            std::process::exit(locks::probe(&path, kind, exclusive));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The seed of the option, of the environment, or a fixed one. So a failed run can be repeated
/// even if its output is lost.
fn seed_of(given: Option<u64>) -> Result<u64> {
    match (given, std::env::var_os("OGIVE_SEED")) {
        (Some(seed), _) => Ok(seed),
        (None, Some(text)) => text
            .to_str()
            .and_then(|text| text.parse().ok())
            .with_context(|| format!("OGIVE_SEED is not a number: {}", text.display())),
        (None, None) => Ok(1),
    }
}

fn run_mirror(arguments: MirrorArguments) -> Result<()> {
    let plan = mirror::Plan {
        mount: arguments.mount,
        source: arguments.source,
        mirror: arguments.mirror,
        seed: seed_of(arguments.seed)?,
        operations: arguments.ops,
        threads: arguments.threads,
        shared: arguments.shared,
        behind_permille: arguments.behind_permille,
        compare_every: arguments.compare_every,
        file_bytes_max: arguments.file_bytes_max,
        permissions_without: if arguments.no_set_id { 0o6000 } else { 0 },
        prober: Some(std::env::current_exe().context("cannot find this program")?),
        log: arguments.log,
    };
    println!("mirror: seed {}", plan.seed);
    let report = match arguments.replay {
        Some(log) => mirror::replay(&plan, &log)?,
        None => mirror::run(&plan)?,
    };
    println!(
        "mirror: {} operations ({} succeeded), {} changes behind the mount, {} comparisons: equal",
        report.operations, report.succeeded, report.behind, report.comparisons
    );
    Ok(())
}

fn run_coherence(arguments: &CoherenceArguments) -> Result<ExitCode> {
    let all = coherence::promises();
    let (Some(mount), Some(source), false) = (&arguments.mount, &arguments.source, arguments.list)
    else {
        for promise in all {
            println!("{:<28} {}", promise.name, promise.says);
        }
        return Ok(ExitCode::SUCCESS);
    };
    for name in &arguments.promises {
        if !all.iter().any(|promise| promise.name == name) {
            eprintln!("ogive-torture: no promise is called '{name}'; see coherence --list");
            return Ok(ExitCode::from(2));
        }
    }
    let chosen: Vec<_> = all
        .into_iter()
        .filter(|promise| {
            arguments.promises.is_empty()
                || arguments.promises.iter().any(|name| name == promise.name)
        })
        .collect();
    let plan = coherence::Plan {
        mount: mount.clone(),
        source: source.clone(),
        chosen,
        rounds: arguments.rounds,
        seed: seed_of(arguments.seed)?,
        names_time: Duration::from_millis(arguments.names_ms),
    };
    println!("coherence: seed {}", plan.seed);
    let broken = coherence::run(&plan)?;
    let chosen = plan.chosen;
    println!("coherence: {} promises kept, {} broken", chosen.len() - broken.len(), broken.len());
    Ok(if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FOUND) })
}

fn run_durability(arguments: DurabilityArguments) -> Result<()> {
    let plan = durability::Plan {
        mount: arguments.mount,
        source: arguments.source,
        command: arguments.command,
        rounds: arguments.rounds,
        seed: seed_of(arguments.seed)?,
        writer: std::env::current_exe().context("cannot find this program")?,
    };
    println!("durability: seed {}", plan.seed);
    let blocks = durability::run(&plan)?;
    println!("durability: {} rounds, {blocks} acknowledged blocks, none lost", plan.rounds);
    Ok(())
}
