//! The format of a device, byte for byte (`docs/l2-format.md`).
//!
//! Structures are plain bytes with little-endian fields; their sizes are asserted. Nothing here
//! checks a seal. Parsing says only that the bytes have the right shape. So every number that it
//! returns is bounded, and none is trusted.

mod record;
mod segment;
mod superblock;

pub use record::{Location, RECORD_HEADER_BYTES, RecordHeader, provenance, record_units};
pub use segment::{
    SEGMENT_BLOCK_BYTES, SUMMARY_ENTRY_BYTES, SegmentHeader, SegmentTrailer, SummaryEntry,
    WearAccount, parse_summary, summary_bytes,
};
pub use superblock::{FormatError, KEYRING_BYTES, KdfParameters, SUPERBLOCK_BYTES, Superblock};

/// Place of the two copies of the superblock.
pub const SUPERBLOCK_PLACES: [u64; 2] = [0, 64 << 10];

/// First byte of the first segment.
pub const SEGMENTS_START: u64 = 1 << 20;

/// Bounds of a segment's size in bytes.
pub const SEGMENT_BYTES_MIN: u64 = 1 << 20;
/// See [`SEGMENT_BYTES_MIN`].
pub const SEGMENT_BYTES_MAX: u64 = 32 << 20;

/// Records stand at multiples of this many bytes.
pub const UNIT_BYTES: u64 = 512;

/// Longest record, in bytes, before and after compression.
pub const RECORD_MAX_BYTES: usize = 1 << 20;

/// Ordinals of records stay below; the numbers above seal everything else.
pub const RECORD_NUMBER_MAX: u32 = u32::MAX - 16;
/// Number in the nonce of a segment's summary.
pub const NUMBER_OF_SUMMARY: u32 = u32::MAX;

/// Largest device, in bytes: what 35 bits of units can address.
pub const DEVICE_MAX_BYTES: u64 = (1 << 35) * UNIT_BYTES;
/// Smallest device, in bytes: a log of four segments.
pub const DEVICE_MIN_BYTES: u64 = SEGMENTS_START + 4 * SEGMENT_BYTES_MIN;

const _: () = assert!(RECORD_MAX_BYTES as u64 / UNIT_BYTES + 1 < u16::MAX as u64);
const _: () = assert!(SEGMENT_BYTES_MAX / UNIT_BYTES < u32::MAX as u64);

/// The size of segments that suits a device: at least 64 of them where it is large enough.
pub fn segment_bytes_for(device_bytes: u64) -> u64 {
    let wanted = (device_bytes / 64).clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX);
    wanted >> 20 << 20
}

/// Longest record that a device with such segments takes, in bytes: a segment has room for a few.
pub fn record_max_bytes(segment_bytes: u64) -> usize {
    RECORD_MAX_BYTES.min((segment_bytes / 4) as usize)
}

/// How many segments fit on a device.
pub fn segments_in(device_bytes: u64, segment_bytes: u64) -> u64 {
    device_bytes.min(DEVICE_MAX_BYTES).saturating_sub(SEGMENTS_START) / segment_bytes.max(1)
}
