//! Options of the second level, as `ogive mount` takes them.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use ogive_fs::{PathRules, SecondLevelOptions};
use ogive_l2::device::Engine;
use ogive_l2::{Admission, KeySource, WriteLimits};

use super::key::KeyArgs;
use crate::exit::{self, Refusal};
use crate::value::Size;
use crate::value::choice::{self, Choices};

const HEADING: &str = "Second level options";

/// Options of a second level.
#[derive(Debug, Clone, Args)]
pub(crate) struct SecondLevelArgs {
    /// Keep records that fall out of memory on this file or block device; may be repeated
    ///
    /// They are compressed, sealed and written to a log; a miss in memory reads them from there
    /// instead of from SRC, and a later mount finds them again, also after a crash. Nothing that
    /// happens to the device does harm: it makes misses. A file is made if there is none; something
    /// that holds other data is refused. Several share the records by size.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath, help_heading = HEADING)]
    pub(crate) l2: Vec<PathBuf>,

    /// Size of each --l2 (default: what it has); another size than before keeps what still fits
    #[arg(long, value_name = "SIZE", help_heading = HEADING, requires = "l2")]
    pub(crate) l2_size: Option<Size>,

    /// How records are sealed (default: sealed as the device is, aes-256-gcm for a new one)
    ///
    /// A device on which nothing is sealed is used with --cipher off only.
    #[arg(long, value_enum, value_name = "CIPHER", help_heading = HEADING)]
    pub(crate) cipher: Option<Cipher>,

    /// How records are compressed: lz4, zstd:N (1 to 19) or off; skipped where it does not pay
    #[arg(long, value_name = "HOW", default_value_t = ogive_l2::Compression::default(),
        help_heading = HEADING)]
    pub(crate) compress: ogive_l2::Compression,

    /// Make lengths of records tell less: off, power-of-two, or multiples of a SIZE as in 4K
    ///
    /// How well a record compresses tells something of what is in it, and whoever has the device
    /// sees the length. A size is a power of two from 512 to 1M. What it costs is
    /// `l2_padding_bytes`; what is on a device already stays as it is.
    #[arg(long, value_name = "HOW", default_value_t = ogive_l2::Padding::Off,
        help_heading = HEADING, requires = "l2")]
    pub(crate) l2_padding: ogive_l2::Padding,

    #[command(flatten)]
    pub(crate) key: KeyArgs,

    /// Most bytes a second written to each --l2 (default: no limit)
    #[arg(long, value_name = "SIZE", help_heading = HEADING, requires = "l2")]
    pub(crate) l2_write_max: Option<Size>,

    /// Most times a day that each --l2 may be written over, once it is full (default: no limit)
    ///
    /// The figure that SSDs are sold with, "drive writes per day"; fractions are allowed.
    #[arg(
        long,
        value_name = "TIMES",
        help_heading = HEADING,
        requires = "l2",
        value_parser = times,
    )]
    pub(crate) l2_dwpd: Option<f64>,

    /// What is worth writing
    #[arg(long, value_parser = choice::parser(ADMISSION), value_name = "WHAT",
        default_value = choice::word(ADMISSION, &Admission::Careful), help_heading = HEADING, requires = "l2")]
    pub(crate) l2_admit: Admission,

    /// Keep records of these files alone; may be repeated
    ///
    /// A pattern as in a gitignore: `*.sst` at any depth, `/logs/` or `a/b` from SRC. What matches
    /// a directory matches all that is in it. Decided when a file is opened, by the name it is
    /// opened by. Metadata never goes to a second level.
    #[arg(long, value_name = "PATTERN", help_heading = HEADING, requires = "l2")]
    pub(crate) l2_include: Vec<String>,

    /// Keep no records of these files; may be repeated, and wins over --l2-include
    #[arg(long, value_name = "PATTERN", help_heading = HEADING, requires = "l2")]
    pub(crate) l2_exclude: Vec<String>,

    /// How each --l2 is read and written
    #[arg(long, value_parser = choice::parser(DEVICE_ENGINE), value_name = "HOW",
        default_value = choice::word(DEVICE_ENGINE, &Engine::Probe), help_heading = HEADING, requires = "l2")]
    pub(crate) l2_engine: Engine,
}

fn times(text: &str) -> Result<f64, String> {
    let times: f64 = text.parse().map_err(|_| "give a number, as in 0.5 or 3".to_owned())?;
    if times.is_finite() && times > 0.0 {
        Ok(times)
    } else {
        Err("give a number above 0".to_owned())
    }
}

/// The choices of `--cipher`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cipher {
    /// AES-256-GCM: fast wherever the processor has AES
    #[value(name = "aes-256-gcm", alias = "gcm")]
    Gcm,
    /// A checksum only: damage is found, but whoever has the device can read it
    Off,
}

impl From<Cipher> for ogive_l2::Cipher {
    fn from(cipher: Cipher) -> Self {
        match cipher {
            Cipher::Gcm => Self::Gcm,
            Cipher::Off => Self::Off,
        }
    }
}

/// The choices of `--l2-admit`.
const ADMISSION: &Choices<Admission> = &[
    (
        "careful",
        Admission::Careful,
        "What was used more than once, and of the rest what the write limits leave room for; not \
         unused prefetch and not long sequential runs",
    ),
    ("all", Admission::All, "Everything the write limits leave room for"),
];

/// The choices of `--l2-engine`.
const DEVICE_ENGINE: &Choices<Engine> = &[
    ("auto", Engine::Probe, "io_uring and O_DIRECT where the system gives them"),
    ("pread", Engine::Pread, "O_DIRECT where the system gives it, without io_uring"),
    ("buffered", Engine::Buffered, "Through the kernel's page cache"),
];

impl SecondLevelArgs {
    /// What the mount is told; the key is fetched later.
    ///
    /// # Errors
    /// For patterns that are none.
    pub(crate) fn options(&self) -> Result<Option<SecondLevelOptions>, Refusal> {
        let refuse = |error| Refusal::new(exit::USAGE, format!("cannot mount: {error}"));
        let paths = PathRules::new(&self.l2_include, &self.l2_exclude).map_err(refuse)?;
        if self.l2.is_empty() {
            return Ok(None);
        }
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        Ok(Some(SecondLevelOptions {
            devices: self.l2.iter().map(absolute).collect(),
            size_bytes: self.l2_size.map(|size| size.0),
            cipher: self.cipher.map(Into::into),
            key: KeySource::None,
            kdf_work_max_kib: self.key.kdf_work_max_kib(),
            compression: self.compress,
            padding: self.l2_padding,
            admission: self.l2_admit,
            limits: WriteLimits {
                bytes_per_second: self.l2_write_max.map(|size| size.0),
                drive_writes_per_day: self.l2_dwpd,
            },
            paths,
            engine: self.l2_engine,
        }))
    }
}
