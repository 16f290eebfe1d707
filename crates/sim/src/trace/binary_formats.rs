//! Binary formats: bare big-endian keys, oracleGeneral, vSCSI, and ogive's own.

use ogive_kstat::trace::{self, Event, Header};

use super::decode::{Access, Decode, Step, What, mix};
use super::error::Fault;
use super::input::Input;

/// Big-endian numbers of `N` bytes, each a key (cache2k, CloudPhysics and Scarab traces of
/// Caffeine's simulator).
pub(super) struct BigEndian<const N: usize>;

impl<const N: usize> Decode for BigEndian<N> {
    fn decode(&mut self, input: &mut Input) -> Result<Step, Fault> {
        let Some(bytes) = input.record::<N>()? else { return Ok(Step::End) };
        let key = bytes.iter().fold(0, |key, byte| (key << 8) | u64::from(*byte));
        Ok(Step::read(key, None))
    }
}

/// libCacheSim's oracleGeneral: little-endian records of 24 bytes. They have the time in seconds
/// (u32), the key (u64), the size (u32), and the number of the next request of the key or -1 (i64).
/// The last field is ignored, because MIN finds it itself, over all traces.
pub(super) struct OracleGeneral;

/// Length of an oracleGeneral record.
pub(super) const ORACLE_GENERAL_BYTES: usize = 24;

impl Decode for OracleGeneral {
    fn decode(&mut self, input: &mut Input) -> Result<Step, Fault> {
        let Some(record) = input.record::<ORACLE_GENERAL_BYTES>()? else { return Ok(Step::End) };
        let bytes = u64::from(little_u32(&record, 12));
        // As in libCacheSim, a record without a size is not a request.
        Ok(if bytes == 0 { Step::Nothing } else { Step::read(little_u64(&record, 4), Some(bytes)) })
    }
}

pub(super) fn little_u16(bytes: &[u8], at: usize) -> u16 {
    bytes[at..at + 2].iter().rev().fold(0, |number, byte| (number << 8) | u16::from(*byte))
}

pub(super) fn little_u32(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().rev().fold(0, |number, byte| (number << 8) | u32::from(*byte))
}

pub(super) fn little_u64(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// VMware's vSCSI traces, as CloudPhysics published them, in little-endian records. Version 1 has
/// 32 bytes (`sn len nSG` u32, `cmd ver` u16, `lbn ts` u64). Version 2 has 40 (`cmd ver` u16, `sn
/// len nSG` u32, `lbn ts rt` u64). The upper byte of `ver` is the version; `len` is in bytes, `lbn`
/// in sectors of 512. Commands that neither read nor write are skipped.
#[derive(Default)]
pub(super) struct Vscsi {
    version: Option<u8>,
}

/// The offset of `ver` in a record of each version, and the record's length.
const VSCSI_LAYOUTS: [(u8, usize, usize); 2] = [(1, 14, 32), (2, 2, 40)];

/// The version of vSCSI records, if these bytes begin some.
pub(super) fn vscsi_version(bytes: &[u8]) -> Option<u8> {
    let fits = |&&(version, at, length): &&(u8, usize, usize)| {
        let records = bytes.len() / length;
        records > 0
            && bytes.chunks_exact(length).all(|record| {
                record[at + 1] == version && vscsi_is_write(vscsi_command(record, version)).is_ok()
            })
    };
    VSCSI_LAYOUTS.iter().find(fits).map(|(version, _, _)| *version)
}

fn vscsi_command(record: &[u8], version: u8) -> u16 {
    little_u16(record, if version == 1 { 12 } else { 0 })
}

/// Whether a SCSI command writes; `Ok(None)` for the few other commands in such a trace.
fn vscsi_is_write(command: u16) -> Result<Option<bool>, ()> {
    match command {
        0x08 | 0x28 | 0xa8 | 0x88 => Ok(Some(false)),
        0x0a | 0x2a | 0xaa | 0x8a => Ok(Some(true)),
        0..=0xff => Ok(None),
        _ => Err(()),
    }
}

impl Decode for Vscsi {
    fn decode(&mut self, input: &mut Input) -> Result<Step, Fault> {
        let version = match self.version {
            Some(version) => version,
            None => {
                let Some(version) = vscsi_version(input.peek(80)?) else {
                    let at_end = input.peek(1)?.is_empty();
                    let reason = "these are not vSCSI records of version 1 or 2".to_owned();
                    return if at_end { Ok(Step::End) } else { Err(Fault::End(reason)) };
                };
                *self.version.insert(version)
            }
        };
        let (length, block, command, ver);
        if version == 1 {
            let Some(record) = input.record::<32>()? else { return Ok(Step::End) };
            (length, block) = (little_u32(&record, 4), little_u64(&record, 16));
            (command, ver) = (little_u16(&record, 12), record[15]);
        } else {
            let Some(record) = input.record::<40>()? else { return Ok(Step::End) };
            (length, block) = (little_u32(&record, 8), little_u64(&record, 16));
            (command, ver) = (little_u16(&record, 0), record[3]);
        }
        if ver != version {
            return Err(Fault::Record(format!("a record of version {ver} among {version}")));
        }
        match vscsi_is_write(command) {
            Ok(Some(is_write)) => {
                let offset = block.checked_mul(512);
                let offset = offset.ok_or_else(|| Fault::Record("a sector beyond 2^55".into()))?;
                Ok(Step::range(0, offset, u64::from(length), is_write))
            }
            Ok(None) => Ok(Step::Nothing),
            Err(()) => Err(Fault::Record(format!("{command:#x} is not a SCSI command"))),
        }
    }
}

/// A recording of an ogive mount ([`ogive_kstat::trace`]).
#[derive(Default)]
pub(super) struct Recorded {
    header: Option<Header>,
}

impl Decode for Recorded {
    fn decode(&mut self, input: &mut Input) -> Result<Step, Fault> {
        if self.header.is_none() {
            let Some(header) = input.record::<{ trace::HEADER_BYTES }>()? else {
                return Ok(Step::End);
            };
            let header = Header::decode(&header).map_err(|error| Fault::End(error.to_string()))?;
            self.header = Some(header);
            return Ok(Step::Nothing);
        }
        let Some(record) = input.record::<{ trace::RECORD_BYTES }>()? else {
            return Ok(Step::End);
        };
        match Event::decode(&record).map_err(|error| Fault::Record(error.to_string()))? {
            Event::Dropped { reads, .. } => Ok(Step::Dropped(reads)),
            Event::Read { object, index, bytes, access, .. } => {
                let what = What::Key { key: mix(object | 1, index), bytes: Some(u64::from(bytes)) };
                let is_prefetch = access == trace::Access::Prefetch;
                Ok(Step::Access(Access { what, is_write: false, is_prefetch }))
            }
        }
    }
}
