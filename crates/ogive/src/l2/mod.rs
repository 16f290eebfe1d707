//! `ogive l2`: maintain a second level, and change that of a mount.
//!
//! [`args`] has the options of `ogive mount`, [`key`] gets keys, [`mounted`] sends commands to a
//! mount, and [`report`] prints.

pub(crate) mod args;
pub(crate) mod key;
mod mounted;
mod report;
mod wear;

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand, ValueHint};
use ogive_l2::device::{self, AlignedBuffer, Device, Engine, OpenMode, foreign_contents};
use ogive_l2::format::SEGMENTS_START;
use ogive_l2::{FormatPolicy, OpenOptions, read_superblock};

use self::args::Cipher;
use self::key::{KeyArgs, NewKeyArgs};
use self::mounted::Change;
use crate::exit::{self, Refusal};
use crate::help::{self, Section};
use crate::value::Size;

/// Maintain a second level: status, add, remove, verify, format, rekey, discard, destroy
///
/// The device is a file or block device of `ogive mount --l2`, and no mount may use it meanwhile;
/// `status` works at any time. `add` and `remove` change the second level of a running mount.
#[derive(Debug, Args)]
#[command(after_long_help = help::render(&sections()))]
pub(crate) struct L2Args {
    #[command(subcommand)]
    command: L2Command,
}

/// The sections after the list of commands.
pub(crate) fn sections() -> Vec<Section> {
    vec![
        help::examples(&[
            ("ogive l2 status /ssd/cache.ogl2", "Its size, how full it is, and its cipher."),
            ("ogive l2 verify /ssd/cache.ogl2", "Check the seal of every record."),
            (
                "ogive l2 add /mnt/data /ssd2/cache.ogl2 --size 200G",
                "Add a device to a mount, without a pause.",
            ),
            ("ogive l2 remove /mnt/data /ssd/cache.ogl2", "Remove a device from a mount."),
            ("ogive l2 destroy /ssd/cache.ogl2", "Make its contents unreadable."),
        ]),
        help::exit_codes(),
    ]
}

/// The subcommands.
#[derive(Debug, Subcommand)]
enum L2Command {
    /// Show the contents of a device, without a key; or the devices of a mount
    Status {
        /// The file or block device, or the mount point
        #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
        path: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Add a device to a running mount
    ///
    /// The mount opens it with its own key, cipher, engine and limits. The devices share the
    /// records by size. The new device's share misses until the mount has written it there; all
    /// other records stay. A missing file is created. Only the user who mounted may do this.
    Add {
        /// The mount point
        #[arg(value_name = "MNT", value_hint = ValueHint::DirPath)]
        mount_point: PathBuf,
        #[command(flatten)]
        device: DeviceArgs,
        /// Its size (default: its present size; for a new file, --l2-size of the mount)
        #[arg(long = "l2-size", visible_alias = "size", value_name = "SIZE")]
        size: Option<Size>,
    },
    /// Remove a device from a running mount
    ///
    /// Its reads finish, waiting records are written, and the mount closes it. From then on its
    /// records are misses; if you add it again, they are hits again. It may be the last device.
    Remove {
        /// The mount point
        #[arg(value_name = "MNT", value_hint = ValueHint::DirPath)]
        mount_point: PathBuf,
        #[command(flatten)]
        device: DeviceArgs,
    },
    /// Read all of it and check every seal
    ///
    /// The exit code is 1 if a record is damaged. In a mount a damaged record is only a miss.
    Verify {
        #[command(flatten)]
        sealed: SealedArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Format it: new and empty
    Format {
        #[command(flatten)]
        device: DeviceArgs,
        #[command(flatten)]
        key: KeyArgs,
        /// Size of the file (default: its present size)
        #[arg(long = "l2-size", visible_alias = "size", value_name = "SIZE")]
        size: Option<Size>,
        /// How records are sealed (default: aes-256-gcm)
        #[arg(long, value_enum, value_name = "CIPHER")]
        cipher: Option<Cipher>,
        /// Overwrite any contents
        #[arg(long)]
        force: bool,
    },
    /// Change its key and keep its records
    ///
    /// The old key still opens the device together with a copy of the device's beginning. If the
    /// old key may be known to others, format the device instead.
    Rekey {
        #[command(flatten)]
        device: DeviceArgs,
        #[command(flatten)]
        key: KeyArgs,
        #[command(flatten)]
        new: NewKeyArgs,
    },
    /// Discard unused segments
    ///
    /// A segment is unused if it was never written, or if all of its records were written again
    /// since. An SSD wears less if it knows its free space; a file returns the space to the file
    /// system. The file may not get that space back: if the file system is full later, records are
    /// dropped. The exit code is 1 if the device has no way to discard.
    Discard {
        #[command(flatten)]
        sealed: SealedArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make its contents unreadable, even with the key
    ///
    /// The salts of its keys are overwritten, and a file is removed.
    Destroy {
        #[command(flatten)]
        device: DeviceArgs,
        /// Even if it is not a device of ogive
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

/// A device and what opens it.
#[derive(Debug, Args)]
struct SealedArgs {
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    key: KeyArgs,
    /// The cipher of its records (default: any); off for a device without seals
    #[arg(long, value_enum, value_name = "CIPHER")]
    cipher: Option<Cipher>,
}

impl SealedArgs {
    fn options(&self) -> Result<OpenOptions> {
        let cipher = self.cipher.map(ogive_l2::Cipher::from);
        Ok(OpenOptions {
            cipher,
            key: self.key.fetch(cipher)?,
            kdf_work_max_kib: self.key.kdf_work_max_kib(),
            ..OpenOptions::default()
        })
    }
}

/// Runs the subcommand and returns the exit code.
pub(crate) fn run(args: &L2Args) -> Result<u8> {
    match &args.command {
        L2Command::Status { path, json } if mounted::is_mount(path) => {
            mounted::status(path, *json)?;
        }
        L2Command::Status { path, json } => report::status(path, *json)?,
        L2Command::Add { mount_point, device, size } => {
            let size_bytes = size.map(|size| size.0);
            mounted::change(mount_point, &device.path, Change::Add { size_bytes })?;
        }
        L2Command::Remove { mount_point, device } => {
            mounted::change(mount_point, &device.path, Change::Remove)?;
        }
        L2Command::Verify { sealed, json } => {
            return verify(&sealed.device.path, &sealed.options()?, *json);
        }
        L2Command::Format { device, key, size, cipher, force } => {
            let cipher = cipher.map(ogive_l2::Cipher::from);
            let options = OpenOptions {
                size_bytes: size.map(|size| size.0),
                cipher,
                key: key.fetch(cipher)?,
                format: if *force { FormatPolicy::Force } else { FormatPolicy::IfEmpty },
                kdf_work_max_kib: key.kdf_work_max_kib(),
            };
            format(&device.path, &options)?;
        }
        L2Command::Rekey { device, key, new } => rekey(&device.path, key, new)?,
        L2Command::Discard { sealed, json } => {
            discard(&sealed.device.path, &sealed.options()?, *json)?;
        }
        L2Command::Destroy { device, force } => destroy(&device.path, *force)?,
    }
    Ok(exit::SUCCESS)
}

fn open(path: &Path, mode: OpenMode) -> Result<Arc<dyn Device>> {
    Ok(device::open(path, mode, Engine::Probe)?)
}

fn verify(path: &Path, options: &OpenOptions, json: bool) -> Result<u8> {
    let device = open(path, OpenMode::ReadAlone)?;
    let shown = std::io::stderr().is_terminal();
    let found = ogive_l2::verify(&device, options, |done, all| {
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

fn discard(path: &Path, options: &OpenOptions, json: bool) -> Result<()> {
    let cannot = || format!("cannot discard on {}", path.display());
    if mounted::is_mount(path) {
        let reason = format!("{}: it is a directory, not a device", cannot());
        return Err(Refusal::new(exit::USAGE, reason)
            .hint("remove the device with `ogive l2 remove`, discard on it, and add it again")
            .into());
    }
    let device = open(path, OpenMode::Write)?;
    let done = ogive_l2::discard(&device, options).with_context(cannot)?;
    report::discarded(path, &done, json)
}

fn rekey(path: &Path, key: &KeyArgs, new: &NewKeyArgs) -> Result<()> {
    let device = open(path, OpenMode::Write)?;
    let options = OpenOptions {
        key: key.fetch(None)?,
        kdf_work_max_kib: key.kdf_work_max_kib(),
        ..OpenOptions::default()
    };
    let superblock = ogive_l2::change_key(&device, &options, &new.fetch()?)
        .with_context(|| format!("cannot change the key of {}", path.display()))?;
    report::rekeyed(path, &superblock)
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

/// Overwrites superblocks and headers of segments. Without their salts no key opens the records.
fn destroy(path: &Path, force: bool) -> Result<()> {
    let device = open(path, OpenMode::Write)?;
    let cannot = || format!("cannot destroy {}", path.display());
    let found = read_superblock(&*device).with_context(cannot)?.ok();
    if found.is_none() && !force {
        return Err(Refusal::new(
            exit::FAILURE,
            format!("cannot destroy {}: it is not a second level of ogive", path.display()),
        )
        .hint("give --force to overwrite its beginning anyway")
        .into());
    }
    // Discards all of it if the device can, so that it is as good as new; overwrites its salts in
    // any case.
    let _ = device.discard();
    let length = device.len_bytes().with_context(cannot)?;
    let nothing = AlignedBuffer::zeroed(4096);
    let step = found.map_or(1 << 20, |superblock| superblock.segment_bytes);
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
