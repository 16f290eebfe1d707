//! What can be typed after `ogive doctor`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

use crate::help::{self, Section};
use crate::value::Span;

/// Say where the CPU went, and why
///
/// Without FILE the host itself is looked at for a while (root sees all of it; without, what can be
/// seen is used and the rest is named). FILE is a capture of "ogive capture", or anything people
/// save or paste: perf.data, perf script, perf report, perf top, folded stacks, top, ps, pidstat,
/// arcstats and other kstats, arcstat, arc_summary, vmstat, sar, zfs get, zpool status, module
/// parameters, lockstat, sysctl, dmesg; several files, directories, or - for standard input. They
/// are known by their content. The mount point of an ogive mount asks about that mount. Several
/// captures are several hosts: what each has, worst first, and what the ill have in common.
///
/// The first line of the answer is the verdict, and it has 25 lines at most; --long has all of it.
/// Nothing on the host is changed.
#[derive(Debug, Args)]
#[command(after_long_help = help::render(&sections()))]
pub(crate) struct DoctorArgs {
    /// Captures, saved outputs, directories of them, - for standard input, or an ogive mount
    #[arg(value_name = "FILE|MNT", value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,

    /// How long to look at the host or mount
    #[arg(
        long = "for",
        value_name = "DURATION",
        default_value = "10s",
        value_parser = Span::observation()
    )]
    pub(crate) duration: Duration,

    /// Print the whole answer: all evidence, look-alikes, what was read as what
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

    /// Compare two: say what differs between HEALTHY and SICK, and what of it explains anything
    #[arg(long, help_heading = "Several hosts", conflicts_with_all = ["html", "fleet"])]
    pub(crate) compare: bool,

    /// Take each path for a host of its own, as several captures are anyway
    #[arg(long, help_heading = "Several hosts", requires = "paths")]
    pub(crate) fleet: bool,

    /// Print what is known about a cause: signs, look-alikes, remedy, references
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

    /// Add the rules of a directory (*.toml) to the built-in ones
    #[arg(long, value_name = "DIR", help_heading = "Rules", value_hint = ValueHint::DirPath)]
    pub(crate) rules: Option<PathBuf>,

    /// Check the rules and say what is wrong with them
    #[arg(long, help_heading = "Rules", conflicts_with_all = ["list", "explain", "paths"])]
    pub(crate) lint: bool,
}

/// What follows the options.
pub(crate) fn sections() -> Vec<Section> {
    vec![
        help::examples(&[
            ("sudo ogive doctor", "Look at this host for ten seconds and say where its CPU goes."),
            ("ogive doctor capture.tar.zst", "Diagnose a capture that was taken elsewhere."),
            ("ogive doctor perf.txt arcstats top.txt", "Diagnose what somebody sent."),
            ("ogive doctor /mnt/fast --for 30s", "Look at an ogive mount for half a minute."),
            (
                "ogive doctor --compare healthy.tar.zst sick.tar.zst",
                "Say what differs between two hosts, or two times of one.",
            ),
            ("ogive doctor --html fleet.html *.ogive", "Diagnose a fleet, a capture a host."),
            ("ogive doctor --explain encryption-ccm", "Print what is known about a cause."),
        ]),
        help::exit_codes(),
    ]
}
