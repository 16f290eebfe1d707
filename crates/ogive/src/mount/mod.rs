//! `ogive mount`: from the command line to a mount that answers.
//!
//! [`args`] has the options, [`bucket`] those for buckets, and [`stage`] those for writable
//! buckets. [`fstab_options`] translates `-o`, and [`plan`] translates everything into options of
//! the library. [`paths`] resolves the two directories, and [`serve`] serves the mount.
//! [`metrics`], [`pprof`] and [`otlp`] export counters and profiles. [`background`] starts the
//! process, and [`signals`] ends it. mount(8) calls [`mount_helper`], and [`remount`] changes flags
//! later.

pub(crate) mod args;
mod background;
pub(crate) mod bucket;
mod bucket_options;
mod cost;
mod exiting_daemon;
mod fstab_options;
mod metrics;
pub(crate) mod mount_helper;
mod otlp;
pub(crate) mod paths;
mod plan;
mod pprof;
mod remount;
mod serve;
mod signals;
mod stage;
pub(crate) mod unresponsive;

use std::ffi::OsString;

use anyhow::{Context as _, Result};
use clap::{Args as _, FromArgMatches as _};

use self::args::MountArgs;
use self::plan::{Memory, Plan};
use crate::l2::key::KeyArgs;
use crate::logger;

/// Whether to mount at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Mount.
    Real,
    /// Check the options and stop, as `mount -f` asks.
    Fake,
}

/// Runs the subcommand. `arguments` are those after the word `mount`, as typed. The options of `-o`
/// are put in front of them, and the background process starts with them.
pub(crate) fn run(args: &MountArgs, arguments: &[OsString], extent: Extent) -> Result<u8> {
    if remount::is_asked(&args.options) {
        logger::start(log::LevelFilter::Warn, false, args.log_format);
        return match extent {
            Extent::Real => remount::run(args).map(|()| crate::exit::SUCCESS),
            Extent::Fake => Ok(crate::exit::SUCCESS),
        };
    }
    let expanded;
    let args = if args.options.is_empty() {
        args
    } else {
        expanded = expand(args, arguments)?;
        &expanded
    };
    let plan = Plan::new(args, memory)?;
    if extent == Extent::Fake {
        return Ok(crate::exit::SUCCESS);
    }
    if !plan.foreground && !plan.ready_on_stdout {
        let passphrase = plan.key.as_ref().map_or(Ok(None), KeyArgs::ask_first)?;
        return background::start(arguments, passphrase.as_ref());
    }
    logger::start(plan.verbosity, plan.log_file.is_some(), plan.log_format);
    serve::serve(plan)?;
    Ok(crate::exit::SUCCESS)
}

/// The memory that shares on the command line refer to; the default of the cache uses the same
/// figures.
fn memory() -> Result<Memory> {
    let sources = ogive_pressure::Sources::probe();
    let read = sources.and_then(|sources| Ok((sources.read()?, sources.limit_bytes()?)));
    let (reading, limit_bytes) = read.context("cannot tell how much memory there is")?;
    Ok(Memory { total_bytes: reading.total_bytes, limit_bytes })
}

/// Parses again with the options of `-o` in front, so that separate options come later and win.
fn expand(args: &MountArgs, arguments: &[OsString]) -> Result<MountArgs> {
    let flags = fstab_options::long_options(&args.options, args.sloppy)?;
    let line = std::iter::once(OsString::from("ogive mount"))
        .chain(flags)
        .chain(arguments.iter().cloned());
    let command =
        MountArgs::augment_args(clap::Command::new("ogive mount").styles(crate::help::STYLES));
    let matches = command.try_get_matches_from(line)?;
    Ok(MountArgs::from_arg_matches(&matches)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser as _;

    fn expanded(line: &str) -> Result<MountArgs, String> {
        let all: Vec<OsString> =
            format!("ogive mount {line}").split_whitespace().map(OsString::from).collect();
        let cli = Cli::try_parse_from(&all).map_err(|error| error.to_string())?;
        let Command::Mount(args) = cli.command else { panic!("not mount") };
        expand(&args, &all[2..]).map_err(|error| error.to_string())
    }

    #[test]
    fn separate_options_beat_those_in_o() {
        let args = expanded("--recordsize 8K -o recordsize=16K,ro,threads=2 /s /m").unwrap();
        assert_eq!(args.recordsize.0, 8 << 10);
        assert!(args.read_only);
        assert_eq!(args.threads.exactly().unwrap().0, 2);
    }

    #[test]
    fn a_bad_value_in_o_has_the_message_of_a_separate_option() {
        let error = expanded("-o recordsize=3K /s /m").unwrap_err();
        assert!(error.contains("power of two"), "{error}");
    }
}
