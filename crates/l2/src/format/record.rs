//! The clear header of a record.

use super::{RECORD_MAX_BYTES, RECORD_NUMBER_MAX, UNIT_BYTES};
use crate::compression::Stored;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Size of the header in bytes.
pub const RECORD_HEADER_BYTES: usize = 64;
const MAGIC: [u8; 4] = *b"OGrc";
const TAG_AT: usize = 48;

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
    zero: [u8; 2],
    key: [u8; 16],
    sequence: U64,
    number: U32,
    plain_bytes: U32,
    stored_bytes: U32,
    zero_too: U32,
    tag: [u8; 16],
}

const _: () = assert!(size_of::<Layout>() == RECORD_HEADER_BYTES);
const _: () = assert!(std::mem::offset_of!(Layout, tag) == TAG_AT);

/// Header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// How the bytes are compressed.
    pub stored: Stored,
    /// Bits of [`provenance`].
    pub provenance: u8,
    /// Keyed hash of its name.
    pub key: [u8; 16],
    /// Sequence of its segment.
    pub sequence: u64,
    /// Ordinal in the segment.
    pub number: u32,
    /// Length before compression, in bytes.
    pub plain_bytes: u32,
    /// Length on the device, in bytes, without this header.
    pub stored_bytes: u32,
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
            zero: [0; 2],
            key: self.key,
            sequence: self.sequence.into(),
            number: self.number.into(),
            plain_bytes: self.plain_bytes.into(),
            stored_bytes: self.stored_bytes.into(),
            zero_too: 0.into(),
            tag: self.tag,
        })
    }

    /// Additional data of the seal: the header without its tag, and where it stands.
    pub fn additional_data(&self, device: &[u8; 16], segment: u32, place: u32) -> [u8; 72] {
        let mut data = [0; TAG_AT + 16 + 8];
        data[..TAG_AT].copy_from_slice(&self.to_bytes()[..TAG_AT]);
        data[TAG_AT..64].copy_from_slice(device);
        data[64..68].copy_from_slice(&segment.to_le_bytes());
        data[68..].copy_from_slice(&place.to_le_bytes());
        data
    }

    /// Reads a header; all lengths are within their bounds.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (layout, _) = Layout::read_from_prefix(bytes).ok()?;
        let lengths = 1..=RECORD_MAX_BYTES as u32;
        let header = Self {
            stored: Stored::from_number(layout.compression)?,
            provenance: layout.provenance,
            key: layout.key,
            sequence: layout.sequence.get(),
            number: layout.number.get(),
            plain_bytes: layout.plain_bytes.get(),
            stored_bytes: layout.stored_bytes.get(),
            tag: layout.tag,
        };
        // Bytes that nothing binds would be bytes that anybody may change.
        let possible = layout.magic == MAGIC
            && layout.zero == [0; 2]
            && layout.zero_too.get() == 0
            && lengths.contains(&header.plain_bytes)
            && lengths.contains(&header.stored_bytes)
            && header.stored_bytes <= header.plain_bytes
            && (header.stored != Stored::Plain || header.stored_bytes == header.plain_bytes)
            && header.number < RECORD_NUMBER_MAX
            && header.sequence != 0;
        possible.then_some(header)
    }
}

/// Units that a record of so many stored bytes takes on the device.
pub fn record_units(stored_bytes: usize) -> u64 {
    (RECORD_HEADER_BYTES as u64 + stored_bytes as u64).div_ceil(UNIT_BYTES)
}
