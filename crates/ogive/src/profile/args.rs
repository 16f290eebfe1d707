//! The options of `ogive profile`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueHint};
use ogive_profile::live::CallGraph;
use ogive_profile::write::Output;
use regex::Regex;

use crate::help::{self, Section};
use crate::value::Span;

/// Show where the CPU goes: sample stacks of kernel and programs, or read a recording
///
/// Without FILE this machine is sampled. With FILE a recording is read: perf.data, the text of
/// "perf script", folded stacks or pprof, also compressed; - is standard input. Without -o the
/// heaviest threads and functions are printed. The idle task is left out unless --idle is given.
#[derive(Debug, Args)]
#[command(after_long_help = help::render(&sections()))]
pub(crate) struct ProfileArgs {
    /// A recording to read instead of sampling
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,

    /// Only these processes
    #[arg(short, long, value_name = "PID", value_delimiter = ',', help_heading = "What")]
    pub(crate) pid: Vec<i32>,

    /// Only threads whose name matches this regular expression, such as z_rd_int
    #[arg(short, long, value_name = "THREAD-NAME", help_heading = "What")]
    pub(crate) thread: Option<Regex>,

    /// The whole machine, which is the default
    #[arg(short, long, conflicts_with_all = ["pid", "thread"], help_heading = "What")]
    pub(crate) all: bool,

    /// Samples per second on each CPU
    #[arg(
        short = 'F',
        long,
        value_name = "HERTZ",
        default_value = "99",
        value_parser = clap::value_parser!(u32).range(1..=10_000),
        help_heading = "What"
    )]
    pub(crate) frequency: u32,

    /// How to find callers in programs while sampling
    ///
    /// dwarf copies the top of each stack and unwinds it by the tables in programs, so all programs
    /// have callers. fp follows frame pointers, which costs less, but most programs of most
    /// distributions have none.
    #[arg(
        long,
        value_name = "HOW",
        default_value = "dwarf",
        value_parser = call_graphs(),
        help_heading = "What",
    )]
    pub(crate) call_graph: CallGraph,

    /// How long to sample; Ctrl-C ends it earlier and uses the samples so far
    #[arg(
        long = "for",
        value_name = "TIME",
        default_value = "30s",
        value_parser = Span::sampling(),
        help_heading = "What",
    )]
    pub(crate) duration: Duration,

    /// Keep the samples of idle CPUs
    #[arg(long, help_heading = "What")]
    pub(crate) idle: bool,

    /// Write to this file; may be given several times
    ///
    /// The end of its name chooses the format: .html (flame graph, interactive), .svg, .folded,
    /// .pb.gz (pprof), .firefox.json, .json (summary). - is standard output.
    #[arg(
        short,
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        help_heading = "Output options",
    )]
    pub(crate) output: Vec<PathBuf>,

    /// The format to write, whatever the name of the file
    #[arg(long, value_parser = outputs(), help_heading = "Output options")]
    pub(crate) format: Option<Output>,

    /// Print the summary as JSON
    #[arg(short, long, help_heading = "Output options")]
    pub(crate) json: bool,

    /// Show the difference from this earlier recording (HTML and SVG)
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        help_heading = "Output options",
    )]
    pub(crate) baseline: Option<PathBuf>,

    /// Rows of the tables
    #[arg(long, value_name = "ROWS", default_value = "15", help_heading = "Output options")]
    pub(crate) top: usize,

    /// A copy of /proc/kallsyms from the machine and boot of FILE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Symbols")]
    pub(crate) kallsyms: Option<PathBuf>,

    /// Search for modules and programs below this directory first; may be given several times
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Symbols")]
    pub(crate) symbols: Vec<PathBuf>,

    /// Do not use this machine to name the addresses in FILE
    #[arg(long, help_heading = "Symbols")]
    pub(crate) foreign: bool,

    /// More thread names and their roles, as TOML
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Symbols")]
    pub(crate) roles: Option<PathBuf>,
}

/// The formats to write, by name.
fn outputs() -> impl TypedValueParser<Value = Output> {
    PossibleValuesParser::new(Output::ALL.map(|(name, ..)| name)).map(|name| {
        let found = Output::ALL.into_iter().find(|(known, ..)| *known == name);
        found.map(|(_, _, output)| output).expect("a possible value is in the table")
    })
}

/// The methods to find callers, as perf calls them.
fn call_graphs() -> impl TypedValueParser<Value = CallGraph> {
    PossibleValuesParser::new(["dwarf", "fp"]).map(|name| match name.as_str() {
        "fp" => CallGraph::FramePointers,
        _ => CallGraph::Dwarf,
    })
}

/// The sections after the options.
pub(crate) fn sections() -> Vec<Section> {
    vec![
        help::examples(&[
            (
                "sudo ogive profile",
                "Sample the whole machine for 30 seconds and print the heaviest functions.",
            ),
            (
                "sudo ogive profile -t '^z_' --for 10s -o zfs.html",
                "A flame graph of ZFS's I/O threads.",
            ),
            (
                "ogive profile perf.data.xz -o cpu.html -o cpu.pb.gz",
                "Read a recording, write two files.",
            ),
            (
                "ogive profile after.folded --baseline before.folded -o difference.html",
                "What grew, what shrank.",
            ),
        ]),
        help::exit_codes(),
        help::terms(
            "Environment",
            &[("NO_COLOR", "If set and not empty, the output has no colour.")],
        ),
    ]
}
