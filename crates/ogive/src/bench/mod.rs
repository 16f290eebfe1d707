//! `ogive bench`: measurements on this machine, one module a benchmark.
//!
//! The columns of a table come from one run, interleaved, so their ratios hold on a busy machine.

mod ccm;
mod interrupt;
mod seal;
mod second_level;
mod sick;

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::help::{self, Section};

/// Measure the cost of a cipher, or make a slow mount for the doctor to diagnose
///
/// A benchmark creates its files in a directory of its own and removes them at the end.
#[derive(Debug, Args)]
#[command(after_long_help = help::render(&sections()))]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    benchmark: Benchmark,
}

/// The sections after the list of commands.
pub(crate) fn sections() -> Vec<Section> {
    vec![
        help::examples(&[
            (
                "ogive bench seal --dir /ssd",
                "The cost of each cipher for a read from the second level.",
            ),
            (
                "ogive bench sick small-arc",
                "A mount with a known problem, for \"ogive doctor\" to diagnose.",
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
