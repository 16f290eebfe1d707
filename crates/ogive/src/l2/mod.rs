//! `ogive l2`: looking after a second level, and changing that of a mount.
//!
//! [`args`] are the options that `ogive mount` takes, [`key`] is where keys come from, [`mounted`]
//! asks a mount, [`report`] is what is printed.

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

/// Look after a second level: status, add, remove, verify, format, rekey, discard, destroy
///
/// For a file or block device that `ogive mount --l2` uses, while no mount uses it; `status` works
/// at any time. `add` and `remove` change the second level of a mount while it is used.
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
            (
                "ogive l2 add /mnt/data /ssd2/cache.ogl2 --size 200G",
                "Give a mount another device, without a pause.",
            ),
            ("ogive l2 remove /mnt/data /ssd/cache.ogl2", "Have a mount go on without one."),
            ("ogive l2 destroy /ssd/cache.ogl2", "Make what is on it unreadable."),
        ]),
        help::exit_codes(),
    ]
}

/// The subcommands.
#[derive(Debug, Subcommand)]
enum L2Command {
    /// Say what is on it; needs no key. Of a mount: which devices it has, and what they hold
    Status {
        /// The file or block device, or the mount point
        #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
        path: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Give a mount another device while it is used
    ///
    /// The mount opens it with what it was mounted with: key, cipher, engine and limits. Records
    /// are shared anew by the sizes of the devices: the new one's share misses until it has come
    /// there, all others stay. A file is made if there is none. Who may do so is who mounted.
    Add {
        /// The mount point
        #[arg(value_name = "MNT", value_hint = ValueHint::DirPath)]
        mount_point: PathBuf,
        #[command(flatten)]
        device: DeviceArgs,
        /// Its size (default: what it has, or for a new file --l2-size of the mount)
        #[arg(long = "l2-size", visible_alias = "size", value_name = "SIZE")]
        size: Option<Size>,
    },
    /// Have a mount go on without one of its devices
    ///
    /// What is being read from it ends, what waits is written, and it is closed. Its records are
    /// misses from then on, and found again if it is added again. It may be the last.
    Remove {
        /// The mount point
        #[arg(value_name = "MNT", value_hint = ValueHint::DirPath)]
        mount_point: PathBuf,
        #[command(flatten)]
        device: DeviceArgs,
    },
    /// Read all of it and check every seal
    ///
    /// Exit code 1 if something is wrong with a record. That does no harm in a mount: it is a miss.
    Verify {
        #[command(flatten)]
        sealed: SealedArgs,
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
    /// Give it another key; what is on it stays
    ///
    /// Who had the old key and has a copy of the beginning of the device can still open it. Format
    /// the device anew if the old key is in wrong hands.
    Rekey {
        #[command(flatten)]
        device: DeviceArgs,
        #[command(flatten)]
        key: KeyArgs,
        #[command(flatten)]
        new: NewKeyArgs,
    },
    /// Tell it which segments hold nothing of use
    ///
    /// An SSD wears less when it knows what is free, and a file gives room back to the file system.
    /// Those are segments that were never written, or of which every record was written again
    /// since. What a file gives back is not promised to it any more: if the file system is full
    /// later, records are dropped. Exit code 1 where there is no way to tell.
    Discard {
        #[command(flatten)]
        sealed: SealedArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
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

/// A device and what opens it.
#[derive(Debug, Args)]
struct SealedArgs {
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    key: KeyArgs,
    /// How records are sealed (default: sealed, in whatever way); off for a device without seals
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
        let reason = format!("{}: it is a directory, and no device", cannot());
        return Err(Refusal::new(exit::USAGE, reason)
            .hint("take a device out with `ogive l2 remove`, discard on it, and add it again")
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
