//! Header, summary and trailer of a segment.

use super::{RECORD_HEADER_BYTES, RECORD_MAX_BYTES, UNIT_BYTES, record_units};
use zerocopy::little_endian::{I64, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Size of header and trailer, in bytes.
pub const SEGMENT_BLOCK_BYTES: usize = 4096;
/// Size of an entry of the summary, in bytes.
pub const SUMMARY_ENTRY_BYTES: usize = 32;
const HEADER_MAGIC: [u8; 4] = *b"OGsh";
const TRAILER_MAGIC: [u8; 4] = *b"OGst";
const HEADER_TAG_AT: usize = 96;
const TRAILER_TAG_AT: usize = 48;
const TRAILER_CODE_AT: usize = 64;

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
struct HeaderLayout {
    magic: [u8; 4],
    segment: U32,
    sequence: U64,
    device: [u8; 16],
    salt: [u8; 32],
    sent_bytes: U64,
    clock_seconds: U64,
    allowance_bytes: I64,
    zero: [u8; 8],
    tag: [u8; 16],
    zero_too: [u8; SEGMENT_BLOCK_BYTES - 112],
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
struct TrailerLayout {
    magic: [u8; 4],
    segment: U32,
    sequence: U64,
    device: [u8; 16],
    records: U32,
    data_bytes: U32,
    salt: [u8; 8],
    tag: [u8; 16],
    code: [u8; 16],
    zero: [u8; SEGMENT_BLOCK_BYTES - 80],
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
struct EntryLayout {
    key: [u8; 16],
    place: U32,
    units: U16,
    provenance: u8,
    zero: u8,
    plain_bytes: U32,
    stored_bytes: U32,
}

const _: () = assert!(size_of::<HeaderLayout>() == SEGMENT_BLOCK_BYTES);
const _: () = assert!(size_of::<TrailerLayout>() == SEGMENT_BLOCK_BYTES);
const _: () = assert!(size_of::<EntryLayout>() == SUMMARY_ENTRY_BYTES);
const _: () = assert!(std::mem::offset_of!(HeaderLayout, tag) == HEADER_TAG_AT);
const _: () = assert!(std::mem::offset_of!(TrailerLayout, tag) == TRAILER_TAG_AT);
const _: () = assert!(std::mem::offset_of!(TrailerLayout, code) == TRAILER_CODE_AT);

/// Header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// Its place.
    pub segment: u32,
    /// Its age: larger is younger.
    pub sequence: u64,
    /// The device it belongs to.
    pub device: [u8; 16],
    /// Names its keys: random, and its own.
    pub salt: [u8; 32],
    /// The device's account when the segment was begun.
    pub account: WearAccount,
    /// Code of the fields above.
    pub tag: [u8; 16],
}

/// The account of a device's writes, and of its allowance: kept in the header of each segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WearAccount {
    /// Bytes that were sent to the device since it was formatted.
    pub sent_bytes: u64,
    /// When this was so, in seconds since 1970.
    pub clock_seconds: u64,
    /// Bytes that might be written then within the limit of drive writes; `i64::MAX` without one.
    pub allowance_bytes: i64,
}

impl SegmentHeader {
    /// The bytes of the header.
    pub fn to_bytes(&self) -> [u8; SEGMENT_BLOCK_BYTES] {
        zerocopy::transmute!(HeaderLayout {
            magic: HEADER_MAGIC,
            segment: self.segment.into(),
            sequence: self.sequence.into(),
            device: self.device,
            salt: self.salt,
            sent_bytes: self.account.sent_bytes.into(),
            clock_seconds: self.account.clock_seconds.into(),
            allowance_bytes: self.account.allowance_bytes.into(),
            zero: [0; 8],
            tag: self.tag,
            zero_too: [0; _],
        })
    }

    /// The bytes that the code covers.
    pub fn covered(&self) -> [u8; HEADER_TAG_AT] {
        let mut data = [0; HEADER_TAG_AT];
        data.copy_from_slice(&self.to_bytes()[..HEADER_TAG_AT]);
        data
    }

    /// Reads a header.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (layout, _) = HeaderLayout::read_from_prefix(bytes).ok()?;
        let header = Self {
            segment: layout.segment.get(),
            sequence: layout.sequence.get(),
            device: layout.device,
            salt: layout.salt,
            account: WearAccount {
                sent_bytes: layout.sent_bytes.get(),
                clock_seconds: layout.clock_seconds.get(),
                allowance_bytes: layout.allowance_bytes.get(),
            },
            tag: layout.tag,
        };
        let possible = layout.magic == HEADER_MAGIC && layout.zero == [0; 8];
        (possible && header.sequence != 0).then_some(header)
    }
}

/// Trailer of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentTrailer {
    /// Its place.
    pub segment: u32,
    /// The header's sequence.
    pub sequence: u64,
    /// The device it belongs to.
    pub device: [u8; 16],
    /// Entries of the summary.
    pub records: u32,
    /// End of the last record, from the start of the segment.
    pub data_bytes: u32,
    /// The part of the summary's nonce that depends on it.
    pub salt: [u8; 8],
    /// Seal of the summary.
    pub tag: [u8; 16],
    /// Code of the fields above: before it has been checked, no length here is followed.
    pub code: [u8; 16],
}

impl SegmentTrailer {
    /// The bytes of the trailer.
    pub fn to_bytes(&self) -> [u8; SEGMENT_BLOCK_BYTES] {
        zerocopy::transmute!(TrailerLayout {
            magic: TRAILER_MAGIC,
            segment: self.segment.into(),
            sequence: self.sequence.into(),
            device: self.device,
            records: self.records.into(),
            data_bytes: self.data_bytes.into(),
            salt: self.salt,
            tag: self.tag,
            code: self.code,
            zero: [0; _],
        })
    }

    /// Additional data of the summary's seal.
    pub fn additional_data(&self) -> [u8; TRAILER_TAG_AT] {
        let mut data = [0; TRAILER_TAG_AT];
        data.copy_from_slice(&self.to_bytes()[..TRAILER_TAG_AT]);
        data
    }

    /// The bytes that the code covers.
    pub fn covered(&self) -> [u8; TRAILER_CODE_AT] {
        let mut data = [0; TRAILER_CODE_AT];
        data.copy_from_slice(&self.to_bytes()[..TRAILER_CODE_AT]);
        data
    }

    /// Bytes of a segment that were sent to the device, when it has this trailer.
    pub fn sent_bytes(&self) -> u64 {
        let summary = summary_bytes(u64::from(self.records));
        u64::from(self.data_bytes) + summary + SEGMENT_BLOCK_BYTES as u64
    }

    /// Reads a trailer of a segment of `segment_bytes`. The summary that it describes fits in
    /// there.
    pub fn parse(bytes: &[u8], segment_bytes: u64) -> Option<Self> {
        let (layout, _) = TrailerLayout::read_from_prefix(bytes).ok()?;
        let trailer = Self {
            segment: layout.segment.get(),
            sequence: layout.sequence.get(),
            device: layout.device,
            records: layout.records.get(),
            data_bytes: layout.data_bytes.get(),
            salt: layout.salt,
            tag: layout.tag,
            code: layout.code,
        };
        let needed = summary_bytes(u64::from(trailer.records))
            + u64::from(trailer.data_bytes)
            + SEGMENT_BLOCK_BYTES as u64;
        let possible = layout.magic == TRAILER_MAGIC
            && needed <= segment_bytes
            && u64::from(trailer.data_bytes) >= SEGMENT_BLOCK_BYTES as u64;
        possible.then_some(trailer)
    }
}

/// Bytes of a summary of this many records on the device, padded.
pub fn summary_bytes(records: u64) -> u64 {
    (records * SUMMARY_ENTRY_BYTES as u64).next_multiple_of(SEGMENT_BLOCK_BYTES as u64)
}

/// One record in a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummaryEntry {
    /// The record's key.
    pub key: [u8; 16],
    /// Where it stands, in units from the start of the segment.
    pub place: u32,
    /// Bits of [`super::provenance`].
    pub provenance: u8,
    /// Length before compression, in bytes.
    pub plain_bytes: u32,
    /// Length on the device, in bytes, without its header.
    pub stored_bytes: u32,
}

impl SummaryEntry {
    /// Units it takes on the device.
    pub fn units(&self) -> u64 {
        record_units(self.stored_bytes as usize)
    }

    /// The bytes of the entry.
    pub fn to_bytes(&self) -> [u8; SUMMARY_ENTRY_BYTES] {
        zerocopy::transmute!(EntryLayout {
            key: self.key,
            place: self.place.into(),
            units: U16::new(u16::try_from(self.units()).unwrap_or(u16::MAX)),
            provenance: self.provenance,
            zero: 0,
            plain_bytes: self.plain_bytes.into(),
            stored_bytes: self.stored_bytes.into(),
        })
    }
}

/// Entries of a summary that has been unsealed; those that cannot be are left out.
pub fn parse_summary(bytes: &[u8], segment_bytes: u64) -> impl Iterator<Item = SummaryEntry> {
    let (entries, _) = bytes.as_chunks::<SUMMARY_ENTRY_BYTES>();
    entries.iter().filter_map(move |bytes| {
        let layout = EntryLayout::read_from_bytes(bytes).ok()?;
        let entry = SummaryEntry {
            key: layout.key,
            place: layout.place.get(),
            provenance: layout.provenance,
            plain_bytes: layout.plain_bytes.get(),
            stored_bytes: layout.stored_bytes.get(),
        };
        let lengths = 1..=RECORD_MAX_BYTES as u32;
        let end = u64::from(entry.place) * UNIT_BYTES
            + RECORD_HEADER_BYTES as u64
            + u64::from(entry.stored_bytes);
        let possible = lengths.contains(&entry.plain_bytes)
            && lengths.contains(&entry.stored_bytes)
            && u64::from(layout.units.get()) == entry.units()
            && u64::from(entry.place) * UNIT_BYTES >= SEGMENT_BLOCK_BYTES as u64
            && end <= segment_bytes;
        possible.then_some(entry)
    })
}
