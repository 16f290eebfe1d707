//! The command line as a whole: global help and the list of subcommands.
//!
//! Each subcommand's module describes its own arguments, next to the code that uses them.

use clap::{Parser, Subcommand};

use crate::help::{self, Section};
use crate::{
    bench, bucket, capture, completions, doctor, kstat, l2, locks, man, mount, profile, sim, size,
    stat, threads, top, unmount, watch,
};

/// ZFS's read cache for any directory, and the doctor that says where the CPU went
///
/// ogive mounts a directory through FUSE and caches its reads with an adaptive replacement cache:
/// files that are read often stay in memory, even while a scan reads everything once. With --l2, an
/// SSD keeps the records that memory evicts, compressed and sealed. SRC stays an ordinary
/// directory, and every write reaches it before it returns.
///
/// The other commands help to understand a cache, ogive's or OpenZFS's: live counters, profiles, a
/// simulator of other cache sizes, and a doctor that names what uses the CPU.
#[derive(Debug, Parser)]
#[command(
    name = "ogive",
    version,
    styles = help::STYLES,
    max_term_width = 100,
    arg_required_else_help = true,
    after_long_help = help::render(&sections()),
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Mount(Box<mount::args::MountArgs>),
    Unmount(unmount::UnmountArgs),
    Stat(stat::args::StatArgs),
    Kstat(kstat::KstatArgs),
    Doctor(Box<doctor::args::DoctorArgs>),
    Capture(capture::args::CaptureArgs),
    Profile(Box<profile::args::ProfileArgs>),
    Threads(threads::ThreadsArgs),
    Locks(locks::LocksArgs),
    Top(top::TopArgs),
    Watch(watch::args::WatchArgs),
    Sim(Box<sim::args::SimArgs>),
    Size(Box<size::SizeArgs>),
    L2(l2::L2Args),
    Bucket(bucket::BucketArgs),
    Bench(bench::BenchArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

/// The sections after the list of commands.
pub(crate) fn sections() -> Vec<Section> {
    vec![
        help::examples(&[
            (
                "ogive mount /srv/data /mnt/fast",
                "Mount /srv/data at /mnt/fast; return once the mount answers.",
            ),
            ("ogive stat /mnt/fast 1", "One line of cache statistics every second."),
            ("sudo ogive doctor", "Say what uses the CPU of this host, and why."),
            ("ogive unmount /mnt/fast", "Unmount, and wait until the background process has gone."),
        ]),
        help::exit_codes(),
        help::terms(
            "Environment",
            &[
                ("NO_COLOR", "When set and not empty, nothing is printed in colour."),
                ("COLUMNS", "Width of help texts, if the terminal does not report one."),
            ],
        ),
    ]
}
