//! The command line as it is typed: the top level and the list of subcommands.
//!
//! What the arguments of a subcommand are is said in that subcommand's module, next to what they
//! do.

use clap::{Parser, Subcommand};

use crate::help::{self, Section};
use crate::{bench, completions, man, mount, stat, unmount};
use crate::{completions, man, mount, profile, stat, threads, unmount};
use crate::{completions, man, mount, sim, size, stat, unmount};
use crate::{bench, completions, l2, man, mount, stat, unmount};
use crate::{capture, completions, doctor, man, mount, profile, stat, threads, unmount};

/// Put any directory behind ZFS's adaptive replacement cache, in memory
///
/// ogive mounts a view of a directory (through FUSE) in which every read goes through an adaptive
/// replacement cache: what is read often stays in memory even while something else reads everything
/// once. Nothing is converted and nothing is kept anywhere but in memory: SRC stays an ordinary
/// directory, and every write reaches it before it returns.
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
    Bench(bench::BenchArgs),
    Doctor(Box<doctor::args::DoctorArgs>),
    Capture(capture::args::CaptureArgs),
    Profile(Box<profile::args::ProfileArgs>),
    Threads(threads::ThreadsArgs),
    Sim(Box<sim::args::SimArgs>),
    Size(Box<size::SizeArgs>),
    L2(l2::L2Args),
    Bench(bench::BenchArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

/// What follows the list of subcommands.
pub(crate) fn sections() -> Vec<Section> {
    vec![
        help::examples(&[
            (
                "ogive mount /srv/data /mnt/fast",
                "Mount /srv/data at /mnt/fast; returns once it can be used.",
            ),
            ("ogive stat /mnt/fast 1", "One line of cache statistics every second."),
            ("sudo ogive doctor", "Say where the CPU of this host goes, and why."),
            ("ogive unmount /mnt/fast", "Unmount, and wait until the background process has gone."),
        ]),
        help::exit_codes(),
        help::terms(
            "Environment",
            &[
                ("NO_COLOR", "When set and not empty, nothing is printed in colour."),
                ("COLUMNS", "Width of help texts, where the terminal does not say."),
            ],
        ),
    ]
}
