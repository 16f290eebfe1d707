//! `ogive locks`: the waits for kernel locks by caller and lock, with their times, live.

mod text;

use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Args;
use ogive_profile::live::contention;

use crate::help::{self, Section};
use crate::profile::progress::Progress;
use crate::value::Span;

/// Show waits for kernel locks by caller, with their times: lockstat for Linux
///
/// The kernel reports when a thread begins to wait for a lock and when it gets it (tracepoints
/// lock:contention_begin and contention_end, Linux 5.19 and later; root). All waits on all CPUs are
/// counted by kind of lock, lock and caller, in lockstat's tables, ranked by the time waited.
/// OpenZFS's locks have their OpenZFS names. Nothing on the machine is changed. A lock without
/// waiters costs nothing, and each wait writes two records.
#[derive(Debug, Args)]
#[command(after_long_help = help::render(&sections()))]
pub(crate) struct LocksArgs {
    /// How long to observe; Ctrl-C ends it earlier
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = Span::sampling())]
    pub(crate) duration: Duration,

    /// Rows of each table
    #[arg(long, value_name = "ROWS", default_value = "20")]
    pub(crate) top: usize,

    /// Only waits in OpenZFS's modules
    #[arg(long)]
    pub(crate) zfs: bool,

    /// Print JSON
    #[arg(short, long)]
    pub(crate) json: bool,
}

/// The sections after the options.
pub(crate) fn sections() -> Vec<Section> {
    vec![
        help::examples(&[
            ("sudo ogive locks", "Ten seconds of all waits."),
            ("sudo ogive locks --zfs --for 1m", "A minute of ZFS's locks only."),
            ("sudo ogive locks > locks.txt; ogive doctor locks.txt top.txt", "As evidence."),
        ]),
        help::exit_codes(),
        help::terms(
            "Columns",
            &[
                ("Count", "Waits."),
                (
                    "indv, cuml",
                    "Part of all time waited for this kind of lock, and its sum so far.",
                ),
                ("rcnt", "Always 0.00, as in lockstat's own tables of contention."),
                ("nsec", "The mean wait, in nanoseconds."),
                (
                    "Lock",
                    "OpenZFS's name, the kernel's variable, an address, or the number of locks.",
                ),
                ("Caller", "The innermost waiting function outside the locking code."),
            ],
        ),
        help::terms(
            "Files",
            &[
                ("/sys/kernel/tracing/events/lock", "The kernel's description of its tracepoints."),
                ("/proc/kallsyms", "Names of functions and of locks."),
            ],
        ),
    ]
}

/// Runs the subcommand.
pub(crate) fn run(args: &LocksArgs) -> Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    crate::profile::stop_on_signals(&stop)?;
    let mut progress = Progress::time("watching locks", args.duration);
    let table = contention::watch(args.duration, &stop, &mut |elapsed| progress.elapsed(elapsed));
    progress.end();
    let mut table = table?;
    if args.zfs {
        table.rows.retain(|row| matches!(row.module.as_str(), "zfs" | "spl"));
    }
    let text = if args.json {
        format!("{}\n", serde_json::to_string_pretty(&table)?)
    } else {
        text::lockstat(&table, args.top)
    };
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write")
}
