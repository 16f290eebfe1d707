//! The options of `ogive capture`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

use crate::help::{self, Section};
use crate::value::Span;

/// Write the evidence that "ogive doctor" needs into a file
///
/// Takes two snapshots of /proc and of ZFS's kstats and parameters, a profile of the CPUs between
/// them, and the output of zfs, zpool, uname and dmesg. Writes them to one compressed archive (tar
/// and Zstandard), whose contents mirror the original paths. Nothing on the host is changed. A
/// capture shows names of processes and data sets; --redact replaces them.
#[derive(Debug, Args)]
#[command(after_long_help = help::render(&sections()))]
pub(crate) struct CaptureArgs {
    /// An ogive mount to capture with the host
    #[arg(value_name = "MNT", value_hint = ValueHint::DirPath)]
    pub(crate) mount_point: Option<PathBuf>,

    /// The file to write; it must not exist yet ("-" for standard output)
    #[arg(
        short,
        long,
        value_name = "FILE",
        default_value = "ogive-capture.tar.zst",
        value_hint = ValueHint::FilePath,
    )]
    pub(crate) output: PathBuf,

    /// How long to observe the host
    #[arg(
        long = "for",
        value_name = "DURATION",
        default_value = "10s",
        value_parser = Span::observation()
    )]
    pub(crate) duration: Duration,

    /// Replace names of hosts, users' programs, data sets, pools and paths by numbered ones
    #[arg(long)]
    pub(crate) redact: bool,
}

/// The sections after the options.
pub(crate) fn sections() -> Vec<Section> {
    vec![
        help::examples(&[
            (
                "sudo ogive capture -o sick.tar.zst --for 30s",
                "Observe for half a minute, write one file.",
            ),
            ("ogive doctor sick.tar.zst", "Diagnose it, here or elsewhere."),
            ("tar -tf sick.tar.zst", "See what is in it."),
        ]),
        help::exit_codes(),
    ]
}
