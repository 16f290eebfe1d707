//! The clear header of a record.

use super::{RECORD_MAX_BYTES, RECORD_NUMBER_MAX, UNIT_BYTES};
use crate::compression::Stored;
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Size of the header in bytes.
pub const RECORD_HEADER_BYTES: usize = 64;
const MAGIC: [u8; 4] = *b"OGrc";
const CODE_AT: usize = 44;
const TAG_AT: usize = 48;
/// Length of a location in bytes.
const LOCATION_BYTES: usize = 32;

/// Bits that say where a record came from.
pub mod provenance {
    /// It was on the MFU list.
    pub const MFU: u8 = 1;
    /// A prefetch had brought it.
    pub const PREFETCHED: u8 = 2;
    /// It was carried over from a segment that was about to be overwritten.
    pub const REINSERTED: u8 = 4;
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
struct Layout {
    magic: [u8; 4],
    compression: u8,
    provenance: u8,
    padding: u8,
    zero: u8,
    key: [u8; 16],
    salt: [u8; 8],
    number: U32,
    plain_bytes: U32,
    stored_bytes: U32,
    code: [u8; 4],
    tag: [u8; 16],
}

const _: () = assert!(size_of::<Layout>() == RECORD_HEADER_BYTES);
const _: () = assert!(std::mem::offset_of!(Layout, tag) == TAG_AT);
const _: () = assert!(std::mem::offset_of!(Layout, code) == CODE_AT);

/// Where a record stands: bound by its seal, and not on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The device.
    pub device: [u8; 16],
    /// The segment's place.
    pub segment: u32,
    /// The record's place in it, in units.
    pub place: u32,
    /// The segment's sequence.
    pub sequence: u64,
}

impl Location {
    fn to_bytes(self) -> [u8; LOCATION_BYTES] {
        let mut bytes = [0; LOCATION_BYTES];
        bytes[..16].copy_from_slice(&self.device);
        bytes[16..20].copy_from_slice(&self.segment.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.place.to_le_bytes());
        bytes[24..].copy_from_slice(&self.sequence.to_le_bytes());
        bytes
    }
}

/// Header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// How the bytes are compressed.
    pub stored: Stored,
    /// Bits of [`provenance`].
    pub provenance: u8,
    /// The stored bytes are padded, and end with the real lengths; the lengths below are padded
    /// ones.
    pub is_padded: bool,
    /// Keyed hash of its name.
    pub key: [u8; 16],
    /// The part of its nonce that depends on the sealed bytes.
    pub salt: [u8; 8],
    /// Ordinal in the segment.
    pub number: u32,
    /// Length before compression, in bytes.
    pub plain_bytes: u32,
    /// Length on the device, in bytes, without this header.
    pub stored_bytes: u32,
    /// Code of the fields above and of where it stands: before it has been checked, a recovery
    /// follows no length here. A reader that asks for a record by name checks its seal.
    pub code: [u8; 4],
    /// Seal of the stored bytes.
    pub tag: [u8; 16],
}

impl RecordHeader {
    /// The bytes of the header.
    pub fn to_bytes(&self) -> [u8; RECORD_HEADER_BYTES] {
        zerocopy::transmute!(Layout {
            magic: MAGIC,
            compression: self.stored.number(),
            provenance: self.provenance,
            padding: self.is_padded.into(),
            zero: 0,
            key: self.key,
            salt: self.salt,
            number: self.number.into(),
            plain_bytes: self.plain_bytes.into(),
            stored_bytes: self.stored_bytes.into(),
            code: self.code,
            tag: self.tag,
        })
    }

    /// Additional data of the seal: the header without its tag, and where it stands.
    pub fn additional_data(&self, location: Location) -> [u8; TAG_AT + LOCATION_BYTES] {
        let mut data = [0; TAG_AT + LOCATION_BYTES];
        data[..TAG_AT].copy_from_slice(&self.to_bytes()[..TAG_AT]);
        data[TAG_AT..].copy_from_slice(&location.to_bytes());
        data
    }

    /// The bytes that the code covers: the header before it, and its place.
    pub fn covered(&self, location: Location) -> [u8; CODE_AT + LOCATION_BYTES] {
        let mut data = [0; CODE_AT + LOCATION_BYTES];
        data[..CODE_AT].copy_from_slice(&self.to_bytes()[..CODE_AT]);
        data[CODE_AT..].copy_from_slice(&location.to_bytes());
        data
    }

    /// Reads a header; all lengths are within their bounds.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (layout, _) = Layout::read_from_prefix(bytes).ok()?;
        let lengths = 1..=RECORD_MAX_BYTES as u32;
        let header = Self {
            stored: Stored::from_number(layout.compression)?,
            provenance: layout.provenance,
            is_padded: layout.padding == 1,
            key: layout.key,
            salt: layout.salt,
            number: layout.number.get(),
            plain_bytes: layout.plain_bytes.get(),
            stored_bytes: layout.stored_bytes.get(),
            code: layout.code,
            tag: layout.tag,
        };
        // Bytes without a code could be changed unnoticed.
        let possible = layout.magic == MAGIC
            && layout.padding <= 1
            && layout.zero == 0
            && lengths.contains(&header.plain_bytes)
            && lengths.contains(&header.stored_bytes)
            && header.stored_bytes <= header.plain_bytes
            && (header.stored != Stored::Plain || header.stored_bytes == header.plain_bytes)
            && header.number < RECORD_NUMBER_MAX;
        possible.then_some(header)
    }
}

/// Units that a record with this stored length takes on the device.
pub fn record_units(stored_bytes: usize) -> u64 {
    (RECORD_HEADER_BYTES as u64 + stored_bytes as u64).div_ceil(UNIT_BYTES)
}
