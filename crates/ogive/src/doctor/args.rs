//! The options of `ogive doctor`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

use crate::help::{self, Section};
use crate::value::Span;

/// Say where the CPU went, and why
///
/// Without FILE, it observes this host for a while. Root sees everything; for other users, the
/// answer names what they may not see. With the mount point of an ogive mount, it observes that
/// mount.
///
/// FILE is a capture of "ogive capture", or the saved output of a tool: perf.data, perf script, perf
/// report, perf top, folded stacks, top, ps, pidstat, arcstats and other kstats, arcstat,
/// arc_summary, vmstat, sar, zfs get, zpool status, module parameters, lockstat, sysctl, dmesg. Give
/// several files, directories, or - for standard input; ogive recognizes them by their content.
/// Several captures are several hosts: the answer lists the problems of each, worst first, and the
/// differences between sick and healthy hosts.
///
/// The answer begins with the verdict and has at most 25 lines; --long prints all of it. Nothing on
/// the host is changed.
#[derive(Debug, Args)]
#[command(after_long_help = help::render(&sections()))]
pub(crate) struct DoctorArgs {
    /// Captures, saved outputs, directories of them, - for standard input, or an ogive mount
    #[arg(value_name = "FILE|MNT", value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,

    /// How long to observe the host or mount
    #[arg(
        long = "for",
        value_name = "DURATION",
        default_value = "10s",
        value_parser = Span::observation()
    )]
    pub(crate) duration: Duration,

    /// Print the whole answer: all evidence, look-alikes, and the format of each input
    #[arg(long, help_heading = "Output options", conflicts_with_all = ["json", "html"])]
    pub(crate) long: bool,

    /// Print the answer as JSON
    #[arg(short, long, help_heading = "Output options", conflicts_with = "html")]
    pub(crate) json: bool,

    /// Write the answer with the flame graph as one HTML file ("-" for standard output)
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Output options",
        value_hint = ValueHint::FilePath,
    )]
    pub(crate) html: Option<PathBuf>,

    /// Compare two inputs, HEALTHY and SICK: say what differs, and which differences explain it
    #[arg(long, help_heading = "Several hosts", conflicts_with_all = ["html", "fleet"])]
    pub(crate) compare: bool,

    /// Treat each path as a separate host (always so with several captures)
    #[arg(long, help_heading = "Several hosts", requires = "paths")]
    pub(crate) fleet: bool,

    /// Explain a cause: signs, look-alikes, remedy, references
    #[arg(
        long,
        value_name = "CAUSE",
        help_heading = "Rules",
        conflicts_with_all = ["list", "paths"],
    )]
    pub(crate) explain: Option<String>,

    /// List all causes
    #[arg(long, help_heading = "Rules", conflicts_with = "paths")]
    pub(crate) list: bool,

    /// Add the rules in a directory (*.toml) to the built-in ones
    #[arg(long, value_name = "DIR", help_heading = "Rules", value_hint = ValueHint::DirPath)]
    pub(crate) rules: Option<PathBuf>,

    /// Check the rules and print their faults
    #[arg(long, help_heading = "Rules", conflicts_with_all = ["list", "explain", "paths"])]
    pub(crate) lint: bool,
}

/// The sections after the options.
pub(crate) fn sections() -> Vec<Section> {
    vec![
        help::examples(&[
            ("sudo ogive doctor", "Observe this host for ten seconds; say where its CPU goes."),
            ("ogive doctor capture.tar.zst", "Diagnose a capture from another host."),
            ("ogive doctor perf.txt arcstats top.txt", "Diagnose the saved outputs of tools."),
            ("ogive doctor /mnt/fast --for 30s", "Observe an ogive mount for half a minute."),
            (
                "ogive doctor --compare healthy.tar.zst sick.tar.zst",
                "Say what differs between two hosts, or two times of one.",
            ),
            (
                "ogive doctor --html fleet.html *.ogive",
                "Diagnose a fleet: one capture for each host.",
            ),
            ("ogive doctor --explain encryption-ccm", "Explain a cause."),
        ]),
        help::exit_codes(),
    ]
}
