//! `ogive l2`: looking after a second level that is not mounted.
//!
//! [`args`] are the options that `ogive mount` takes, [`key`] is where keys come from, [`report`]
//! is what is printed.

pub(crate) mod args;
pub(crate) mod key;
mod report;

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand, ValueHint};
use ogive_l2::device::{self, AlignedBuffer, Device, Engine, OpenMode, foreign_contents};
use ogive_l2::format::SEGMENTS_START;
use ogive_l2::{FormatPolicy, KeySource, OpenOptions, read_superblock};

use self::args::Cipher;
use self::key::KeyArgs;
use crate::exit::{self, Refusal};
use crate::help::{self, Section};
use crate::quantity::Size;

/// Look after a second level: status, verify, format, destroy
///
/// For a file or block device that `ogive mount --l2` uses, while no mount uses it; `status` works
/// at any time.
#[derive(Debug, Args)]
#[command(after_long_help = help::render(&sections()))]
pub(crate) struct L2Args {
    #[command(subcommand)]
    command: L2Command,
}

/// What follows the list of subcommands.
pub(crate) fn sections() -> Vec<Section> {
    vec![
        help::examples(&[
            ("ogive l2 status /ssd/cache.ogl2", "How large it is, how full, and how it is sealed."),
            (
                "ogive l2 verify /ssd/cache.ogl2",
                "Whether every record on it still is as it was sealed.",
            ),
            ("ogive l2 destroy /ssd/cache.ogl2", "Make what is on it unreadable."),
        ]),
        help::exit_codes(),
    ]
}

/// The subcommands.
#[derive(Debug, Subcommand)]
enum L2Command {
    /// Say what is on it; needs no key
    Status {
        #[command(flatten)]
        device: DeviceArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Read all of it and check every seal
    ///
    /// Exit code 1 if something is wrong with a record. That does no harm in a mount: it is a miss.
    Verify {
        #[command(flatten)]
        device: DeviceArgs,
        #[command(flatten)]
        key: KeyArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make it new and empty
    Format {
        #[command(flatten)]
        device: DeviceArgs,
        #[command(flatten)]
        key: KeyArgs,
        /// Size of the file (default: what it has)
        #[arg(long = "l2-size", visible_alias = "size", value_name = "SIZE")]
        size: Option<Size>,
        /// How records are sealed (default: aes-256-gcm)
        #[arg(long, value_enum, value_name = "CIPHER")]
        cipher: Option<Cipher>,
        /// Overwrite whatever is there
        #[arg(long)]
        force: bool,
    },
    /// Make what is on it unreadable for everybody, also for those who have the key
    ///
    /// The salts that name its keys are overwritten, and a file is removed.
    Destroy {
        #[command(flatten)]
        device: DeviceArgs,
        /// Also if it is not ogive's
        #[arg(long)]
        force: bool,
    },
}

/// The file or block device.
#[derive(Debug, Args)]
struct DeviceArgs {
    /// The file or block device
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    path: PathBuf,
}

/// Runs the subcommand and returns the exit code.
pub(crate) fn run(args: &L2Args) -> Result<u8> {
    match &args.command {
        L2Command::Status { device, json } => report::status(&device.path, *json)?,
        L2Command::Verify { device, key, json } => return verify(&device.path, key, *json),
        L2Command::Format { device, key, size, cipher, force } => {
            let cipher = cipher.map(ogive_l2::Cipher::from);
            let options = OpenOptions {
                size_bytes: size.map(|size| size.0),
                cipher,
                key: key.fetch(cipher)?,
                format: if *force { FormatPolicy::Force } else { FormatPolicy::IfEmpty },
            };
            format(&device.path, &options)?;
        }
        L2Command::Destroy { device, force } => destroy(&device.path, *force)?,
    }
    Ok(exit::SUCCESS)
}

fn open(path: &Path, mode: OpenMode) -> Result<Arc<dyn Device>> {
    Ok(device::open(path, mode, Engine::Probe)?)
}

/// The key that a device needs: none if nothing is sealed.
fn key_for(device: &dyn Device, key: &KeyArgs) -> Result<KeySource> {
    let cipher = read_superblock(device)?.ok().map(|(superblock, _)| superblock.cipher);
    key.fetch(cipher)
}

fn verify(path: &Path, key: &KeyArgs, json: bool) -> Result<u8> {
    let device = open(path, OpenMode::Write)?;
    let key = key_for(&*device, key)?;
    let options = OpenOptions { size_bytes: None, cipher: None, key, format: FormatPolicy::Never };
    let shown = std::io::stderr().is_terminal();
    let found = ogive_l2::verify(&device, &options, |done, all| {
        if shown {
            eprint!("\r{:3.0}% of {all} segments", 100.0 * done as f64 / all as f64);
        }
        true
    })
    .with_context(|| format!("cannot verify {}", path.display()))?;
    if shown {
        eprintln!();
    }
    report::verification(&found, json)?;
    Ok(if found.bad_records == 0 { exit::SUCCESS } else { exit::FAILURE })
}

fn format(path: &Path, options: &OpenOptions) -> Result<()> {
    let device = open(path, OpenMode::Create)?;
    let cannot = || format!("cannot format {}", path.display());
    if options.format != FormatPolicy::Force
        && let Some(contents) = foreign_contents(&*device).with_context(cannot)?
    {
        return Err(Refusal::new(
            exit::FAILURE,
            format!("cannot format {}: it holds {contents}", path.display()),
        )
        .hint("give --force to overwrite it")
        .into());
    }
    let superblock = ogive_l2::format_device(&device, options).with_context(cannot)?;
    report::formatted(path, &superblock)
}

/// Overwrites superblocks and headers of segments: with the salts in them the keys are gone.
fn destroy(path: &Path, force: bool) -> Result<()> {
    let device = open(path, OpenMode::Write)?;
    let cannot = || format!("cannot destroy {}", path.display());
    let found = read_superblock(&*device).with_context(cannot)?.ok();
    if found.is_none() && !force {
        return Err(Refusal::new(
            exit::FAILURE,
            format!("cannot destroy {}: it is no second level of ogive", path.display()),
        )
        .hint("give --force to overwrite its beginning all the same")
        .into());
    }
    // All of it where that costs nothing, so that it is as good as new; its keys in any case.
    let _ = device.discard();
    let length = device.len_bytes().with_context(cannot)?;
    let nothing = AlignedBuffer::zeroed(4096);
    let step = found.map_or(1 << 20, |(superblock, _)| superblock.segment_bytes);
    let headers = (SEGMENTS_START..length).step_by(usize::try_from(step)?);
    for place in (0..SEGMENTS_START).step_by(4096).chain(headers) {
        if place + 4096 <= length {
            device.write_at(place, nothing.bytes()).with_context(cannot)?;
        }
    }
    device.flush().with_context(cannot)?;
    if std::fs::metadata(path).with_context(cannot)?.is_file() {
        std::fs::remove_file(path).with_context(cannot)?;
    }
    Ok(())
}
