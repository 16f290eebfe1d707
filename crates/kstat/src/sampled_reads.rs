//! Reads of a mount, sampled: the control file `reads`, for the miss-ratio curve.
//!
//! A header, then one entry of 16 bytes for each read of a record that was sampled, all
//! little-endian; `docs/objects.md` has the tables. The file is what a mount keeps of the last
//! ones, at one moment. Entries are numbered from the first of the sampling. A reader that knows
//! the number it has read up to finds the next entry by its place in the file, and sees what it
//! missed. A mount writes the file and `ogive watch` reads it, both through this module, which does no
//! I/O.

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

/// What the file says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Stands for one sampling: when it began, in nanoseconds since 1970 (UTC).
    pub sampling: u64,
    /// Number of the first entry that follows.
    pub first: u64,
    /// Number of the one that comes next, which is not there yet.
    pub next: u64,
    /// Records that programs have asked the mount for since the sampling began, sampled or not.
    pub reads: u64,
}

/// One read of a record that was sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Stands for the record: a hash whose bits are as good as random.
    pub hash: u64,
    /// Length of the record, in bytes.
    pub bytes: u32,
    /// Records were sampled whose hash begins with so many zero bits: one in two to the power of
    /// it.
    pub shift: u8,
}

/// Bytes that are no header or no entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReadsError {
    /// The magic is missing.
    #[error("not what a mount of ogive tells of its reads: it does not begin with \"ogiverds\"")]
    Magic,
    /// A version of the future.
    #[error("version {0} of the sampled reads; this program reads version {VERSION}")]
    Version(u16),
    /// The lengths in the header are not those of this version, or its numbers do not rise.
    #[error("damaged header of sampled reads")]
    Header,
    /// The hash does not begin with the zero bits that it says, or there is something behind it.
    #[error("damaged entry of sampled reads")]
    Entry,
}

impl Header {
    /// The header as bytes.
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

    /// Reads a header.
    ///
    /// # Errors
    /// [`ReadsError`]: no magic, another version, wrong lengths or numbers.
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

    /// Where in the file the entry of this number is; none if it is not there any more, or not yet.
    #[must_use]
    pub fn place_of(&self, entry: u64) -> Option<u64> {
        if !(self.first..=self.next).contains(&entry) {
            return None;
        }
        (entry - self.first).checked_mul(ENTRY_BYTES as u64)?.checked_add(HEADER_BYTES as u64)
    }
}

impl Entry {
    /// The entry as bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..8].copy_from_slice(&self.hash.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[12] = self.shift;
        bytes
    }

    /// Reads an entry.
    ///
    /// # Errors
    /// [`ReadsError::Entry`] if it is damaged.
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
    fn a_header_says_what_was_put_in_and_another_one_is_refused() {
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
        assert_eq!(changed(24, 15), ReadsError::Header, "the first after the next");
    }

    #[test]
    fn an_entry_is_found_by_its_number_while_it_is_there() {
        let header = Header { sampling: 7, first: 10, next: 14, reads: 9 };
        assert_eq!(header.place_of(9), None, "it has gone");
        assert_eq!(header.place_of(10), Some(48));
        assert_eq!(header.place_of(13), Some(96));
        assert_eq!(header.place_of(14), Some(112), "the end of the file, where it will be");
        assert_eq!(header.place_of(15), None);
        let far = Header { first: 0, next: u64::MAX, ..header };
        assert_eq!(far.place_of(u64::MAX), None);
    }

    #[test]
    fn an_entry_that_could_not_have_been_sampled_is_damaged() {
        let entry = Entry { hash: u64::MAX >> 3, bytes: 4096, shift: 3 };
        assert_eq!(Entry::decode(&entry.encode()), Ok(entry));
        assert!(Entry::decode(&Entry { shift: 4, ..entry }.encode()).is_err());
        let mut more = entry.encode();
        more[15] = 1;
        assert!(Entry::decode(&more).is_err());
    }

    proptest! {
        #[test]
        fn an_entry_is_read_as_it_was_written(hash: u64, bytes: u32, shift in 0_u8..64) {
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
