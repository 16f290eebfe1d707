//! The options of the second level in `ogive mount`.

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
    /// Keep records that memory evicts on this file or block device; may be repeated
    ///
    /// Records are compressed, sealed and written to a log. A miss in memory then reads them from
    /// there instead of from SRC, and a later mount finds them again, even after a crash. A damaged
    /// or lost device only causes misses. A missing file is created; a device with other data is
    /// refused. Several devices share the records by size.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath, help_heading = HEADING)]
    pub(crate) l2: Vec<PathBuf>,

    /// Size of each --l2 (default: its present size); a new size keeps the records that still fit
    #[arg(long, value_name = "SIZE", help_heading = HEADING, requires = "l2")]
    pub(crate) l2_size: Option<Size>,

    /// The cipher that seals records (default: the device's; aes-256-gcm for a new device)
    ///
    /// A device without seals needs --cipher off.
    #[arg(long, value_enum, value_name = "CIPHER", help_heading = HEADING)]
    pub(crate) cipher: Option<Cipher>,

    /// Compression of records: lz4, zstd:N (1 to 19) or off; skipped if it saves too little
    #[arg(long, value_name = "HOW", default_value_t = ogive_l2::Compression::default(),
        help_heading = HEADING)]
    pub(crate) compress: ogive_l2::Compression,

    /// Pad records to hide their lengths: off, power-of-two, or multiples of a SIZE as in 4K
    ///
    /// The compressed length of a record says something about its contents, and is visible to
    /// anyone with the device. A size is a power of two from 512 to 1M. `l2_padding_bytes` counts
    /// the cost. Records already on a device stay as they are.
    #[arg(long, value_name = "HOW", default_value_t = ogive_l2::Padding::Off,
        help_heading = HEADING, requires = "l2")]
    pub(crate) l2_padding: ogive_l2::Padding,

    #[command(flatten)]
    pub(crate) key: KeyArgs,

    /// Most bytes a second written to each --l2 (default: no limit)
    #[arg(long, value_name = "SIZE", help_heading = HEADING, requires = "l2")]
    pub(crate) l2_write_max: Option<Size>,

    /// Most times a day that each --l2 may be overwritten once it is full (default: no limit)
    ///
    /// SSDs are sold with this figure, "drive writes per day"; fractions are allowed.
    #[arg(
        long,
        value_name = "TIMES",
        help_heading = HEADING,
        requires = "l2",
        value_parser = times,
    )]
    pub(crate) l2_dwpd: Option<f64>,

    /// Which evicted records to write
    #[arg(long, value_parser = choice::parser(ADMISSION), value_name = "WHAT",
        default_value = choice::word(ADMISSION, &Admission::Careful),
        help_heading = HEADING, requires = "l2")]
    pub(crate) l2_admit: Admission,

    /// Keep records of only these files; may be repeated
    ///
    /// A pattern as in a gitignore: `*.sst` at any depth, `/logs/` or `a/b` from SRC. A pattern
    /// that matches a directory matches everything in it. The name at open decides. Metadata never
    /// goes to a second level.
    #[arg(long, value_name = "PATTERN", help_heading = HEADING, requires = "l2")]
    pub(crate) l2_include: Vec<String>,

    /// Keep no records of these files; may be repeated, and wins over --l2-include
    #[arg(long, value_name = "PATTERN", help_heading = HEADING, requires = "l2")]
    pub(crate) l2_exclude: Vec<String>,

    /// How each --l2 is read and written
    #[arg(long, value_parser = choice::parser(DEVICE_ENGINE), value_name = "HOW",
        default_value = choice::word(DEVICE_ENGINE, &Engine::Probe),
        help_heading = HEADING, requires = "l2")]
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
    /// AES-256-GCM: fast if the processor has AES
    #[value(name = "aes-256-gcm", alias = "gcm")]
    Gcm,
    /// Only a checksum: it finds damage, but anyone with the device can read it
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
        "Records that were used more than once, and others if the write limits leave room; no \
         unused prefetch and no long sequential runs",
    ),
    ("all", Admission::All, "Everything the write limits leave room for"),
];

/// The choices of `--l2-engine`.
const DEVICE_ENGINE: &Choices<Engine> = &[
    ("auto", Engine::Probe, "io_uring and O_DIRECT if the system offers them"),
    ("pread", Engine::Pread, "O_DIRECT if the system offers it, without io_uring"),
    ("buffered", Engine::Buffered, "Through the kernel's page cache"),
];

impl SecondLevelArgs {
    /// The options of the mount; the key comes later.
    ///
    /// # Errors
    /// For invalid patterns.
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
