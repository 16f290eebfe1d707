//! Sampled reads of a mount: the control file `reads`, for the miss-ratio curve.
//!
//! The file is a header and one entry of 16 bytes for each sampled read of a record, all
//! little-endian; `docs/objects.md` has the tables. It shows the last entries that the mount keeps.
//! Entries are numbered from the start of the sampling. A reader that remembers the last number
//! computes the position of the next entry, and sees how many it missed. A mount writes the file
//! and `ogive watch` reads it, both through this module, which does no I/O.

use crate::fixed_width::field;
use thiserror::Error;

/// First bytes of the file.
pub const MAGIC: [u8; 8] = *b"ogiverds";
/// Version of the format that this module writes, and the only one it reads.
pub const VERSION: u16 = 1;
/// Length of the header, in bytes.
pub const HEADER_BYTES: usize = 48;
/// Length of an entry, in bytes.
pub const ENTRY_BYTES: usize = 16;

/// The header of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Identifies the sampling: its start, in nanoseconds since 1970 (UTC).
    pub sampling: u64,
    /// Number of the first entry in the file.
    pub first: u64,
    /// Number of the next entry, which is not yet in the file.
    pub next: u64,
    /// Reads of records by programs since the sampling began, sampled or not.
    pub reads: u64,
}

/// A sampled read of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Identifies the record: a hash with uniformly random bits.
    pub hash: u64,
    /// Length of the record, in bytes.
    pub bytes: u32,
    /// The sampling rate: records whose hash begins with this many zero bits were sampled, one in 2
    /// to the power of it.
    pub shift: u8,
}

/// The bytes are not a header or not an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReadsError {
    /// The magic is missing.
    #[error("not the sampled reads of an ogive mount: the file must begin with \"ogiverds\"")]
    Magic,
    /// A later version.
    #[error("version {0} of the sampled reads; this program reads version {VERSION}")]
    Version(u16),
    /// The lengths in the header differ from those of this version, or its numbers do not rise.
    #[error("damaged header of sampled reads")]
    Header,
    /// The hash does not begin with the zero bits of its rate, or the padding is not zero.
    #[error("damaged entry of sampled reads")]
    Entry,
}

impl Header {
    /// Encodes the header.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        bytes[10..12].copy_from_slice(&(HEADER_BYTES as u16).to_le_bytes());
        bytes[12..14].copy_from_slice(&(ENTRY_BYTES as u16).to_le_bytes());
        for (at, value) in
            [(16, self.sampling), (24, self.first), (32, self.next), (40, self.reads)]
        {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    /// Decodes a header.
    ///
    /// # Errors
    /// The magic is missing, the version is another, or lengths or numbers are invalid.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, ReadsError> {
        if bytes[..8] != MAGIC {
            return Err(ReadsError::Magic);
        }
        let short = |at| u16::from_le_bytes(field(bytes, at));
        if short(8) != VERSION {
            return Err(ReadsError::Version(short(8)));
        }
        let long = |at| u64::from_le_bytes(field(bytes, at));
        let header = Self { sampling: long(16), first: long(24), next: long(32), reads: long(40) };
        let lengths = (usize::from(short(10)), usize::from(short(12)));
        if lengths != (HEADER_BYTES, ENTRY_BYTES) || header.first > header.next {
            return Err(ReadsError::Header);
        }
        Ok(header)
    }

    /// The position in the file of the entry with this number; `None` if it is not in the file any
    /// more, or not yet.
    #[must_use]
    pub fn place_of(&self, entry: u64) -> Option<u64> {
        if !(self.first..=self.next).contains(&entry) {
            return None;
        }
        (entry - self.first).checked_mul(ENTRY_BYTES as u64)?.checked_add(HEADER_BYTES as u64)
    }
}

impl Entry {
    /// Encodes the entry.
    #[must_use]
    pub fn encode(&self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..8].copy_from_slice(&self.hash.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[12] = self.shift;
        bytes
    }

    /// Decodes an entry.
    ///
    /// # Errors
    /// [`ReadsError::Entry`] if the entry is damaged.
    pub fn decode(bytes: &[u8; ENTRY_BYTES]) -> Result<Self, ReadsError> {
        let entry = Self {
            hash: u64::from_le_bytes(field(bytes, 0)),
            bytes: u32::from_le_bytes(field(bytes, 8)),
            shift: bytes[12],
        };
        if entry.hash.leading_zeros() < u32::from(entry.shift) || bytes[13..] != [0; 3] {
            return Err(ReadsError::Entry);
        }
        Ok(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_header_is_decoded_as_encoded_and_invalid_ones_are_refused() {
        let header = Header { sampling: 7, first: 10, next: 14, reads: u64::MAX };
        let bytes = header.encode();
        assert_eq!(Header::decode(&bytes), Ok(header));
        let changed = |at: usize, byte| {
            let mut other = bytes;
            other[at] = byte;
            Header::decode(&other).unwrap_err()
        };
        assert_eq!(changed(0, b'X'), ReadsError::Magic);
        assert_eq!(changed(8, 2), ReadsError::Version(2));
        assert_eq!(changed(10, 32), ReadsError::Header);
        assert_eq!(changed(12, 32), ReadsError::Header);
        assert_eq!(changed(24, 15), ReadsError::Header, "the first is after the next");
    }

    #[test]
    fn an_entry_is_found_by_number_while_the_file_has_it() {
        let header = Header { sampling: 7, first: 10, next: 14, reads: 9 };
        assert_eq!(header.place_of(9), None, "the entry was dropped");
        assert_eq!(header.place_of(10), Some(48));
        assert_eq!(header.place_of(13), Some(96));
        assert_eq!(header.place_of(14), Some(112), "its position is the end of the file");
        assert_eq!(header.place_of(15), None);
        let far = Header { first: 0, next: u64::MAX, ..header };
        assert_eq!(far.place_of(u64::MAX), None);
    }

    #[test]
    fn an_entry_outside_the_sample_is_damaged() {
        let entry = Entry { hash: u64::MAX >> 3, bytes: 4096, shift: 3 };
        assert_eq!(Entry::decode(&entry.encode()), Ok(entry));
        assert!(Entry::decode(&Entry { shift: 4, ..entry }.encode()).is_err());
        let mut more = entry.encode();
        more[15] = 1;
        assert!(Entry::decode(&more).is_err());
    }

    proptest! {
        #[test]
        fn an_entry_is_decoded_as_encoded(hash: u64, bytes: u32, shift in 0_u8..64) {
            let entry = Entry { hash: hash >> shift, bytes, shift };
            prop_assert_eq!(Entry::decode(&entry.encode()), Ok(entry));
        }

        #[test]
        fn any_bytes_are_read_or_refused(header: [u8; HEADER_BYTES], entry: [u8; ENTRY_BYTES]) {
            let _ = Header::decode(&header);
            let _ = Entry::decode(&entry);
        }
    }
}
