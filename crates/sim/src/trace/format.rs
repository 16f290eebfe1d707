//! The formats, by name, and how each is recognised.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use super::binary::{
    BigEndian, ORACLE_GENERAL_BYTES, OracleGeneral, Recorded, Vscsi, little_u32, little_u64,
    vscsi_version,
};
use super::block::{BlkParse, BpfTrace, FioLog, Msr, ZfsReads};
use super::keys::{Keys, Lirs, Lis, MqSim, TimeKeySize};
use super::step::{Decode, Text};

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
    /// One key a line, perhaps with a size.
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
    /// What a mount of ogive recorded.
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

/// How much of a trace is looked at to tell its format, in bytes.
pub(crate) const SNIFF_BYTES: usize = 4096;

impl Format {
    /// Name and meaning of every format.
    pub fn all() -> impl Iterator<Item = (Self, &'static str, &'static str)> {
        NAMES.iter().map(|&(name, format, meaning)| (format, name, meaning))
    }

    pub(crate) fn decoder(self) -> Box<dyn Decode> {
        match self {
            Self::Lis => Box::new(Text(Lis)),
            Self::Lirs => Box::new(Text(Lirs)),
            Self::Be32 => Box::new(BigEndian::<4>),
            Self::Be64 => Box::new(BigEndian::<8>),
            Self::Vscsi => Box::new(Vscsi::default()),
            Self::Msr => Box::new(Text(Msr)),
            Self::OracleGeneral => Box::new(OracleGeneral),
            Self::Keys => Box::new(Text(Keys)),
            Self::TimeKeySize => Box::new(Text(TimeKeySize)),
            Self::MqSim => Box::new(Text(MqSim)),
            Self::BlkParse => Box::new(Text(BlkParse::default())),
            Self::Fio => Box::new(Text(FioLog::default())),
            Self::BpfTrace => Box::new(Text(BpfTrace)),
            Self::ZfsReads => Box::new(Text(ZfsReads)),
            Self::Ogive => Box::new(Recorded::default()),
        }
    }

    /// Whether it is text, in which a place is a line.
    pub(crate) const fn is_text(self) -> bool {
        !matches!(self, Self::Be32 | Self::Be64 | Self::Vscsi | Self::OracleGeneral | Self::Ogive)
    }

    /// The format of a trace with this name and this beginning, if it can be told.
    pub(crate) fn detect(path: &Path, beginning: &[u8]) -> Option<Self> {
        if beginning.starts_with(&ogive_kstat::trace::MAGIC) {
            return Some(Self::Ogive);
        }
        Self::by_name(path).or_else(|| {
            let line_end = beginning.iter().rposition(|&byte| byte == b'\n');
            let whole = match line_end {
                Some(end) => &beginning[..end],
                None if beginning.len() < SNIFF_BYTES => beginning,
                None => &[],
            };
            match std::str::from_utf8(whole) {
                Ok(text) if !whole.is_empty() && !text.contains('\0') => Self::of_text(text),
                _ => Self::of_binary(beginning),
            }
        })
    }

    /// By the part of the name before what tells the compression.
    fn by_name(path: &Path) -> Option<Self> {
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

    fn of_text(text: &str) -> Option<Self> {
        let lines = text.lines().filter(|line| {
            !line.trim_ascii().is_empty()
                && !line.starts_with(['#', '*'])
                && !line.starts_with("Attach")
        });
        let has_stars = text.lines().any(|line| line.trim_ascii() == "*");
        let mut found = None;
        for line in lines.take(20) {
            // The first line of these says it all.
            if let Some(Self::Fio | Self::ZfsReads | Self::BlkParse | Self::Msr) = found {
                break;
            }
            let format = Self::of_line(line, has_stars)?;
            match found {
                None => found = Some(format),
                Some(other) if other == format => {}
                Some(Self::Lirs | Self::Keys) if format == Self::Keys => found = Some(format),
                Some(Self::Keys) if format == Self::Lirs => {}
                Some(_) => return None,
            }
        }
        found
    }

    fn of_line(line: &str, has_stars: bool) -> Option<Self> {
        if line.starts_with("fio version ") {
            return Some(Self::Fio);
        }
        let columns: Vec<&str> = line.split_ascii_whitespace().collect();
        if columns.first() == Some(&"UID") && columns.contains(&"objset") {
            return Some(Self::ZfsReads);
        }
        let commas: Vec<&str> = line.split(',').map(str::trim_ascii).collect();
        let kind = commas.get(3).map(|kind| kind.to_lowercase()).unwrap_or_default();
        if commas.len() >= 6 && ["read", "write", "type"].contains(&kind.as_str()) {
            return Some(Self::Msr);
        }
        let is_number = |text: &&str| text.parse::<u64>().is_ok();
        let is_fraction = |text: &&str| text.parse::<f64>().is_ok();
        let is_device =
            |text: &str| text.split_once(',').is_some_and(|(a, b)| is_number(&a) && is_number(&b));
        match columns[..] {
            [device, _, _, time, _, _, _, ..] if is_device(device) && is_fraction(&time) => {
                Some(Self::BlkParse)
            }
            [time, device, flags, sector, sectors]
                if [time, device, sector, sectors].iter().all(is_number)
                    && flags.bytes().all(|byte| byte.is_ascii_uppercase()) =>
            {
                Some(Self::BpfTrace)
            }
            [_, _, _, _, kind] if columns.iter().all(is_number) && kind.len() == 1 => {
                Some(Self::MqSim)
            }
            [_, _, _, _] if columns.iter().all(is_number) => Some(Self::Lis),
            [time, _, bytes] if is_fraction(&time) && is_number(&bytes) => Some(Self::TimeKeySize),
            [key] if is_number(&key) && has_stars => Some(Self::Lirs),
            [_] if commas.len() <= 2 => Some(Self::Keys),
            [_, bytes] if is_number(&bytes) => Some(Self::Keys),
            _ => None,
        }
    }

    /// Bare big-endian keys have nothing to be told by.
    fn of_binary(bytes: &[u8]) -> Option<Self> {
        if bytes.len() >= 40 && vscsi_version(bytes).is_some() {
            return Some(Self::Vscsi);
        }
        let records: Vec<&[u8]> = bytes.chunks_exact(ORACLE_GENERAL_BYTES).collect();
        let next_uses_fit = records.iter().zip(1_u64..).all(|(record, number)| {
            let next = little_u64(record, 16);
            next == u64::MAX || next == i64::MAX as u64 || (number..1 << 40).contains(&next)
        });
        let sizes_fit = records.iter().all(|record| little_u32(record, 12) < 1 << 31);
        let times_rise =
            records.windows(2).all(|pair| little_u32(pair[0], 0) <= little_u32(pair[1], 0));
        (records.len() >= 2 && next_uses_fit && sizes_fit && times_rise)
            .then_some(Self::OracleGeneral)
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
