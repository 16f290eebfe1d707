//! The formats by name, and their decoders.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use super::binary_formats::{BigEndian, OracleGeneral, Recorded, Vscsi};
use super::block_formats::{BlkParse, BpfTrace, FioLog, Msr, ZfsReads};
use super::decode::{Decode, DecodeLine, Text};
use super::key_formats::{Keys, Lirs, Lis, MqSim, Shape, TimeKeySize};

/// A trace format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// ARC's traces.
    Lis,
    /// LIRS's traces.
    Lirs,
    /// Big-endian keys of four bytes.
    Be32,
    /// Big-endian keys of eight bytes.
    Be64,
    /// VMware vSCSI records.
    Vscsi,
    /// MSR Cambridge CSV.
    Msr,
    /// libCacheSim's oracleGeneral.
    OracleGeneral,
    /// One key per line, optionally with a size.
    Keys,
    /// Time, key and size.
    TimeKeySize,
    /// MQSim's traces.
    MqSim,
    /// Output of blkparse.
    BlkParse,
    /// fio's iolog, version 2 or 3.
    Fio,
    /// Output of the documented bpftrace program.
    BpfTrace,
    /// OpenZFS's read history.
    ZfsReads,
    /// A recording of an ogive mount.
    Ogive,
}

const NAMES: [(&str, Format, &str); 15] = [
    ("lis", Format::Lis, "ARC's traces: first block, blocks, ignored, number"),
    ("lirs", Format::Lirs, "LIRS's traces: a block number a line, * between phases"),
    ("be32", Format::Be32, "big-endian 4-byte keys (cache2k and others in Caffeine's simulator)"),
    ("be64", Format::Be64, "big-endian 8-byte keys"),
    ("vscsi", Format::Vscsi, "VMware vSCSI records, versions 1 and 2 (CloudPhysics)"),
    ("msr", Format::Msr, "MSR Cambridge CSV"),
    ("oracle-general", Format::OracleGeneral, "libCacheSim's oracleGeneral, 24-byte records"),
    ("keys", Format::Keys, "a key a line, perhaps followed by its size in bytes"),
    ("time-key-size", Format::TimeKeySize, "time, key, size in bytes (AdaptSize, webcachesim)"),
    ("mqsim", Format::MqSim, "MQSim: time, device, sector, sectors, type"),
    ("blkparse", Format::BlkParse, "default output of blkparse"),
    ("fio", Format::Fio, "fio iolog, versions 2 and 3"),
    ("bpftrace", Format::BpfTrace, "output of the bpftrace program in docs/sim.md"),
    ("zfs-reads", Format::ZfsReads, "OpenZFS's read history, /proc/spl/kstat/zfs/POOL/reads"),
    ("ogive", Format::Ogive, "recorded from a mount of ogive"),
];

impl Format {
    /// Name and meaning of every format.
    pub fn all() -> impl Iterator<Item = (Self, &'static str, &'static str)> {
        NAMES.iter().map(|&(name, format, meaning)| (format, name, meaning))
    }

    /// Its decoder; for lines of this shape only, if the shape recognised it.
    pub(super) fn decoder(self, shape: Option<Shape>) -> Box<dyn Decode> {
        if let Some(decoder) = self.line_decoder(shape) {
            return Box::new(Text(decoder));
        }
        match self {
            Self::Be32 => Box::new(BigEndian::<4>),
            Self::Be64 => Box::new(BigEndian::<8>),
            Self::Vscsi => Box::new(Vscsi::default()),
            Self::OracleGeneral => Box::new(OracleGeneral),
            _ => Box::new(Recorded::default()),
        }
    }

    /// The decoder of its lines, if it is text.
    pub(super) fn line_decoder(self, shape: Option<Shape>) -> Option<Box<dyn DecodeLine>> {
        Some(match self {
            Self::Lis => Box::new(Lis::default()),
            Self::Lirs => Box::new(Lirs),
            Self::Msr => Box::new(Msr::default()),
            Self::Keys => Box::new(Keys::of(shape)),
            Self::TimeKeySize => Box::new(TimeKeySize::default()),
            Self::MqSim => Box::new(MqSim),
            Self::BlkParse => Box::new(BlkParse::default()),
            Self::Fio => Box::new(FioLog::default()),
            Self::BpfTrace => Box::new(BpfTrace),
            Self::ZfsReads => Box::new(ZfsReads),
            Self::Be32 | Self::Be64 | Self::Vscsi | Self::OracleGeneral | Self::Ogive => {
                return None;
            }
        })
    }

    /// Whether it is text, whose places are lines.
    pub(crate) const fn is_text(self) -> bool {
        !matches!(self, Self::Be32 | Self::Be64 | Self::Vscsi | Self::OracleGeneral | Self::Ogive)
    }

    /// The format by the extension before the compression's suffix.
    pub(super) fn by_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_lowercase();
        let mut parts: Vec<&str> = name.split('.').skip(1).collect();
        parts.retain(|part| !["gz", "xz", "zst", "zstd", "bin"].contains(part));
        match *parts.last()? {
            "lis" => Some(Self::Lis),
            "be32" => Some(Self::Be32),
            "be64" => Some(Self::Be64),
            "oraclegeneral" => Some(Self::OracleGeneral),
            "vscsi" | "vscsi1" | "vscsi2" => Some(Self::Vscsi),
            "blkparse" => Some(Self::BlkParse),
            "iolog" => Some(Self::Fio),
            "bpftrace" => Some(Self::BpfTrace),
            "keys" => Some(Self::Keys),
            _ => None,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = NAMES.iter().find(|(_, format, _)| format == self);
        f.write_str(row.map_or("", |(name, _, _)| name))
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = |text: &str| text.to_lowercase().replace(['-', '_'], "");
        let row = NAMES.iter().find(|(name, _, _)| plain(name) == plain(text));
        row.map(|(_, format, _)| *format).ok_or_else(|| {
            let names: Vec<&str> = NAMES.iter().map(|(name, _, _)| *name).collect();
            format!("there is no format \"{text}\"; there are {}", names.join(", "))
        })
    }
}
