//! `ogive bench`: what this machine can do, one module a benchmark.
//!
//! Each prints a table whose columns were measured in one run, interleaved, next to the limit
//! that nothing can beat, so that ratios mean something on a busy machine, too.

mod ccm;
mod interrupt;
mod seal;
mod second_level;
mod sick;

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::help::{self, Section};

/// Measure on this machine what ogive's parts cost
///
/// Every benchmark measures its candidates in turn, several times, beside a limit that cannot be
/// beaten, and prints medians. What needs files makes them in a directory of its own and
/// removes them.
#[derive(Debug, Args)]
#[command(after_long_help = help::render(&sections()))]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    benchmark: Benchmark,
}

/// What follows the list of benchmarks.
pub(crate) fn sections() -> Vec<Section> {
    vec![
        help::examples(&[
            ("ogive bench seal --dir /ssd", "What each cipher costs a read from the second level."),
            (
                "ogive bench sick small-arc",
                "A mount that is ill, for \"ogive doctor\" to find out.",
            ),
        ]),
        help::exit_codes(),
    ]
}

/// The benchmarks.
#[derive(Debug, Subcommand)]
enum Benchmark {
    Seal(seal::SealArgs),
    Sick(sick::SickArgs),
}

/// Runs the subcommand.
pub(crate) fn run(args: &BenchArgs) -> Result<()> {
    match &args.benchmark {
        Benchmark::Seal(args) => seal::run(args),
        Benchmark::Sick(args) => sick::run(args),
    }
}
