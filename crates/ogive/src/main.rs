//! `ogive`: ZFS's adaptive replacement cache for any directory, and the tools to understand it.
//!
//! The program is thin: one module a subcommand, help texts, messages and exit codes. Libraries do
//! the work: `ogive-fs` mounts, `ogive-doctor` diagnoses, and so on. Each subcommand has an
//! argument struct; it is translated once into the options that the rest of the subcommand uses.
//!
//! mount(8) calls the program as `mount.ogive` ([`mount::mount_helper`]).

#![deny(unsafe_code)]

mod allocator;
mod bench;
mod bucket;
mod capture;
mod cli;
mod completions;
mod doctor;
mod exit;
mod fuse;
mod help;
mod kstat;
mod l2;
mod locks;
mod logger;
mod man;
mod mount;
mod profile;
mod sim;
mod size;
#[cfg(test)]
#[path = "../../../tests/skipped.rs"]
mod skipped;
mod stat;
mod state_directory;
mod threads;
mod top;
mod unmount;
mod value;
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser as _;

use crate::cli::{Cli, Command};
use crate::mount::{Extent, mount_helper};
use ogive_origin::mount_table as mountinfo;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let program = arguments.first().cloned().unwrap_or_default();
    if mount_helper::is_called(&program) {
        let code = run_for_mount8(&arguments[1..]).unwrap_or_else(|error| report(&error));
        return ExitCode::from(mount_helper::exit_code(code));
    }
    ExitCode::from(run(&arguments, Extent::Real).unwrap_or_else(|error| report(&error)))
}

/// Runs a request of mount(8).
fn run_for_mount8(arguments: &[OsString]) -> Result<u8> {
    let translated = mount_helper::translate(arguments)?;
    let extent = if translated.fake { Extent::Fake } else { Extent::Real };
    run(&translated.arguments, extent)
}

/// Runs a command line, program name first.
fn run(arguments: &[OsString], extent: Extent) -> Result<u8> {
    match Cli::try_parse_from(arguments)?.command {
        Command::Mount(args) => return mount::run(&args, &arguments[2..], extent),
        Command::Unmount(args) => unmount::run(&args)?,
        Command::Stat(args) => stat::run(&args)?,
        Command::Kstat(args) => kstat::run(&args)?,
        Command::Doctor(args) => return doctor::run(&args),
        Command::Capture(args) => capture::run(&args)?,
        Command::Profile(args) => profile::run(&args)?,
        Command::Threads(args) => threads::run(&args)?,
        Command::Locks(args) => locks::run(&args)?,
        Command::Top(args) => top::run(&args)?,
        Command::Watch(args) => watch::run(&args)?,
        Command::Sim(args) => return sim::run(&args),
        Command::Size(args) => size::run(&args)?,
        Command::L2(args) => return l2::run(&args),
        Command::Bucket(args) => bucket::run(&args)?,
        Command::Bench(args) => bench::run(&args)?,
        Command::Completions(args) => completions::run(&args)?,
        Command::Man(args) => man::run(&args)?,
    }
    Ok(exit::SUCCESS)
}

/// Prints an error to its stream and returns its exit code. For clap, help and version are "errors",
/// too.
fn report(error: &anyhow::Error) -> u8 {
    match error.downcast_ref::<clap::Error>() {
        Some(usage) => {
            // The end of the reader is not an error.
            let _ = usage.print();
            u8::try_from(usage.exit_code()).unwrap_or(exit::USAGE)
        }
        None => exit::report(error),
    }
}
