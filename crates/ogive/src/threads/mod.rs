//! `ogive threads`: CPU time by CPU and by role of thread, and lock tables of other tools.

mod text;

use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Args, ValueHint};
use ogive_profile::locks;
use ogive_profile::threads;

use crate::exit::{self, Refusal};
use crate::help::{self, Section};
use crate::profile::progress::Progress;
use crate::profile::roles;
use crate::value::Span;

/// Bytes of a lock table at most.
const TABLE_BYTES_MAX: u64 = 64 << 20;

/// Show CPU time by CPU and by role of thread
///
/// The kernel counts the times, so nothing is sampled and every user may run it. All threads are
/// read twice a second. Threads that start and end between two readings appear as one figure. With
/// --locks a lock table of another tool is shown instead, ranked by the time waited.
#[derive(Debug, Args)]
#[command(after_long_help = help::render(&sections()))]
pub(crate) struct ThreadsArgs {
    /// How long to observe; Ctrl-C ends it earlier
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = Span::sampling())]
    pub(crate) duration: Duration,

    /// Rows of each table
    #[arg(long, value_name = "ROWS", default_value = "20")]
    pub(crate) top: usize,

    /// Print JSON
    #[arg(short, long)]
    pub(crate) json: bool,

    /// More thread names and their roles, as TOML
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) roles: Option<PathBuf>,

    /// List the known thread names by version of OpenZFS, and stop
    #[arg(long, conflicts_with = "locks")]
    pub(crate) list: bool,

    /// Show this output of lockstat or "perf lock contention" as a table; - is standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) locks: Option<PathBuf>,
}

/// The sections after the options.
pub(crate) fn sections() -> Vec<Section> {
    vec![
        help::examples(&[
            ("ogive threads", "Ten seconds of all CPUs and threads."),
            ("ogive threads --for 1m --json", "A minute, for a program to read."),
            (
                "perf lock contention -a -b 2>&1 | ogive threads --locks -",
                "The most expensive locks.",
            ),
        ]),
        help::exit_codes(),
        help::terms(
            "Files",
            &[
                ("/proc/stat", "The times of CPUs."),
                ("/proc/PID/task/TID/stat, schedstat", "The times of threads."),
            ],
        ),
    ]
}

/// Runs the subcommand.
pub(crate) fn run(args: &ThreadsArgs) -> Result<()> {
    let roles = roles(args.roles.as_deref())?;
    if args.list {
        let text = if args.json {
            let roles: Vec<_> = roles.iter().collect();
            format!("{}\n", serde_json::to_string_pretty(&roles)?)
        } else {
            text::roles(&roles)
        };
        return print(&text);
    }
    if let Some(path) = &args.locks {
        return show_locks(args, path);
    }
    let stop = Arc::new(AtomicBool::new(false));
    crate::profile::stop_on_signals(&stop)?;
    let mut progress = Progress::time("watching", args.duration);
    let report = threads::watch(args.duration, &roles, &stop, &mut |elapsed| {
        progress.elapsed(elapsed);
    });
    progress.end();
    let report = report.context("cannot read /proc/stat")?;
    if args.json {
        return print(&format!("{}\n", serde_json::to_string_pretty(&report)?));
    }
    print(&text::report(&report, args.top))
}

fn show_locks(args: &ThreadsArgs, path: &std::path::Path) -> Result<()> {
    let mut bytes = Vec::new();
    let place = || format!("cannot read {}", path.display());
    if path.as_os_str() == "-" {
        io::stdin().lock().take(TABLE_BYTES_MAX).read_to_end(&mut bytes).with_context(place)?;
    } else {
        let file = std::fs::File::open(path).with_context(place)?;
        file.take(TABLE_BYTES_MAX).read_to_end(&mut bytes).with_context(place)?;
    }
    let table = locks::read(&String::from_utf8_lossy(&bytes))
        .map_err(|error| Refusal::new(exit::FAILURE, format!("{}: {error}", path.display())))?;
    if args.json {
        return print(&format!("{}\n", serde_json::to_string_pretty(&table)?));
    }
    print(&text::locks(&table, args.top))
}

fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write")
}
