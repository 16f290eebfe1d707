//! The recorded trace of a mount: each read of a record, in 32 bytes.
//!
//! A trace is a header and then records, all little-endian and of 32 bytes, so a damaged record
//! costs only itself. `docs/trace-format.md` has the tables. A mount writes it (`MNT/.ogive/trace`)
//! and `ogive sim` reads it, both through this module, which does no I/O.

use crate::fixed_width::field;
use thiserror::Error;

/// First bytes of a trace.
pub const MAGIC: [u8; 8] = *b"ogivetrc";
/// Version of the format that this module writes, and the only one it reads.
pub const VERSION: u16 = 1;
/// Length of the header, in bytes.
pub const HEADER_BYTES: usize = 32;
/// Length of a record, in bytes.
pub const RECORD_BYTES: usize = 32;

/// Ensures that the check byte of a record of zeroes is not zero.
const CHECK_SEED: u8 = 0xa5;

/// The header of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The start of recording, in nanoseconds since 1970 (UTC).
    pub start_unix_ns: u64,
    /// Size of a full record of the mount, in bytes.
    pub record_size_bytes: u32,
}

/// The kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Content of a file.
    Data,
    /// Attributes, listings, link targets.
    Metadata,
}

/// The origin of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// A program.
    Demand,
    /// The mount, ahead of a sequential reader.
    Prefetch,
}

/// A record of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A read of an object's record.
    Read {
        /// Time since recording began, in nanoseconds.
        time_ns: u64,
        /// A number for one object with one content.
        object: u64,
        /// The index of the record in the object.
        index: u64,
        /// Length of the record, in bytes; the last of an object may be short.
        bytes: u32,
        /// The kind of the record.
        kind: Kind,
        /// The origin of the read.
        access: Access,
    },
    /// Reads that are missing here, because no program read the trace in time.
    Dropped {
        /// Time since recording began, in nanoseconds.
        time_ns: u64,
        /// The number of missing reads.
        reads: u64,
    },
}

/// The bytes are not a header or not a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The magic is missing.
    #[error("not a recorded trace of ogive: the text must begin with \"ogivetrc\"")]
    Magic,
    /// A later version.
    #[error("version {0} of the trace format; this program reads version {VERSION}")]
    Version(u16),
    /// The lengths in the header differ from those of this version.
    #[error("damaged header: wrong lengths")]
    Lengths,
    /// The check byte is wrong.
    #[error("damaged record: wrong check byte")]
    Check,
    /// An event, kind or access that does not exist.
    #[error("damaged record: unknown {0}")]
    Unknown(&'static str),
}

impl Header {
    /// Encodes the header.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        bytes[10..12].copy_from_slice(&(HEADER_BYTES as u16).to_le_bytes());
        bytes[12..14].copy_from_slice(&(RECORD_BYTES as u16).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.start_unix_ns.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.record_size_bytes.to_le_bytes());
        bytes
    }

    /// Decodes a header.
    ///
    /// # Errors
    /// [`TraceError`]: no magic, another version, wrong lengths.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, TraceError> {
        if bytes[..8] != MAGIC {
            return Err(TraceError::Magic);
        }
        let short = |at| u16::from_le_bytes(field(bytes, at));
        if short(8) != VERSION {
            return Err(TraceError::Version(short(8)));
        }
        if usize::from(short(10)) != HEADER_BYTES || usize::from(short(12)) != RECORD_BYTES {
            return Err(TraceError::Lengths);
        }
        Ok(Self {
            start_unix_ns: u64::from_le_bytes(field(bytes, 16)),
            record_size_bytes: u32::from_le_bytes(field(bytes, 24)),
        })
    }
}

impl Event {
    /// Encodes the record.
    #[must_use]
    pub fn encode(&self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        let (time_ns, index, tail) = match *self {
            Self::Read { time_ns, object, index, bytes: length, kind, access } => {
                bytes[8..16].copy_from_slice(&object.to_le_bytes());
                bytes[24..28].copy_from_slice(&length.to_le_bytes());
                (time_ns, index, [1, kind as u8, access as u8])
            }
            Self::Dropped { time_ns, reads } => (time_ns, reads, [2, 0, 0]),
        };
        bytes[..8].copy_from_slice(&time_ns.to_le_bytes());
        bytes[16..24].copy_from_slice(&index.to_le_bytes());
        bytes[28..31].copy_from_slice(&tail);
        bytes[31] = check(&bytes);
        bytes
    }

    /// Decodes a record.
    ///
    /// # Errors
    /// [`TraceError::Check`] or [`TraceError::Unknown`] if the record is damaged.
    pub fn decode(bytes: &[u8; RECORD_BYTES]) -> Result<Self, TraceError> {
        if bytes[31] != check(bytes) {
            return Err(TraceError::Check);
        }
        let long = |at| u64::from_le_bytes(field(bytes, at));
        match bytes[28] {
            1 => Ok(Self::Read {
                time_ns: long(0),
                object: long(8),
                index: long(16),
                bytes: u32::from_le_bytes(field(bytes, 24)),
                kind: match bytes[29] {
                    0 => Kind::Data,
                    1 => Kind::Metadata,
                    _ => return Err(TraceError::Unknown("kind")),
                },
                access: match bytes[30] {
                    0 => Access::Demand,
                    1 => Access::Prefetch,
                    _ => return Err(TraceError::Unknown("access")),
                },
            }),
            2 => Ok(Self::Dropped { time_ns: long(0), reads: long(16) }),
            _ => Err(TraceError::Unknown("event")),
        }
    }
}

/// Folds all bytes but the last into one that changes with any single byte.
fn check(bytes: &[u8; RECORD_BYTES]) -> u8 {
    let body = &bytes[..RECORD_BYTES - 1];
    body.iter().fold(CHECK_SEED, |sum, byte| sum.rotate_left(1) ^ byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_header_is_decoded_as_encoded() {
        let header =
            Header { start_unix_ns: 1_700_000_000_000_000_000, record_size_bytes: 131_072 };
        let bytes = header.encode();
        assert_eq!(Header::decode(&bytes), Ok(header));
        assert_eq!(&bytes[..8], b"ogivetrc");
        let mut other = bytes;
        other[0] = b'X';
        assert_eq!(Header::decode(&other), Err(TraceError::Magic));
        other = bytes;
        other[8] = 9;
        assert_eq!(Header::decode(&other), Err(TraceError::Version(9)));
        other = bytes;
        other[12] = 40;
        assert_eq!(Header::decode(&other), Err(TraceError::Lengths));
    }

    fn events() -> impl Strategy<Value = Event> {
        let read =
            (any::<u64>(), any::<u64>(), any::<u64>(), any::<u32>(), any::<bool>(), any::<bool>());
        let read =
            read.prop_map(|(time_ns, object, index, bytes, metadata, prefetch)| Event::Read {
                time_ns,
                object,
                index,
                bytes,
                kind: if metadata { Kind::Metadata } else { Kind::Data },
                access: if prefetch { Access::Prefetch } else { Access::Demand },
            });
        let dropped = (any::<u64>(), any::<u64>())
            .prop_map(|(time_ns, reads)| Event::Dropped { time_ns, reads });
        prop_oneof![read, dropped]
    }

    proptest! {
        #[test]
        fn an_event_is_decoded_as_encoded(event in events()) {
            prop_assert_eq!(Event::decode(&event.encode()), Ok(event));
        }

        #[test]
        fn a_changed_byte_is_detected(event in events(), at in 0..RECORD_BYTES, change in 1_u8..) {
            let mut bytes = event.encode();
            bytes[at] ^= change;
            prop_assert!(Event::decode(&bytes).is_err());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: [u8; 32]) {
            let _ = Header::decode(&bytes);
            let _ = Event::decode(&bytes);
        }
    }
}
