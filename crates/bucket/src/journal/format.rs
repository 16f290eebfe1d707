//! The byte format of a log's headers and payloads: see the tables in [`super`].
//!
//! Parsing accepts any bytes. It checks their structure but not their seals: the reader of a log
//! verifies codes and seals before it uses a field.

use ogive_l2::{Cipher, Purpose, SegmentKey};

/// The length of a log's header.
pub const LOG_HEADER_BYTES: usize = 128;
/// The length of a record's header; records start at multiples of it.
pub const RECORD_HEADER_BYTES: usize = 64;
/// The longest payload: an extent of 128 KiB, with room for the longest names.
pub const PAYLOAD_BYTES_MAX: usize = 256 << 10;
/// The longest name in a record. Stores limit keys to 1,024 bytes; ETags are shorter.
pub(super) const NAME_BYTES_MAX: usize = 32 << 10;

const LOG_MAGIC: &[u8; 8] = b"ogivestg";
const RECORD_MAGIC: &[u8; 4] = b"ogvr";
const VERSION: u16 = 1;

/// Why bytes are not the header of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatError {
    /// They are something else, or damaged.
    Damaged,
    /// An unknown version.
    Version(u16),
}

/// The subject of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogKind {
    /// The source of a journal.
    Identity,
    /// A file being written.
    File,
    /// The rename of a directory.
    Rename,
    /// A multipart upload.
    Upload,
}

impl LogKind {
    const ALL: [Self; 4] = [Self::Identity, Self::File, Self::Rename, Self::Upload];
}

/// The header of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogHeader {
    /// The subject of the log.
    pub kind: LogKind,
    /// The cipher of its seals.
    pub cipher: Cipher,
    /// The journal that it belongs to.
    pub journal: [u8; 16],
    /// The id of the log; compactions keep it.
    pub log: [u8; 16],
    /// The salt of its keys.
    pub salt: [u8; 32],
}

impl LogHeader {
    /// The log's keys.
    pub fn keys(&self, master: &[u8; 32]) -> SegmentKey {
        SegmentKey::derive(master, self.cipher, &self.journal, &self.salt)
    }

    /// Its bytes.
    pub fn to_bytes(&self, keys: &SegmentKey) -> [u8; LOG_HEADER_BYTES] {
        let mut bytes = [0; LOG_HEADER_BYTES];
        bytes[..8].copy_from_slice(LOG_MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        bytes[10..12].copy_from_slice(&(self.kind as u16).to_le_bytes());
        bytes[12..16].copy_from_slice(&self.cipher.number().to_le_bytes());
        bytes[16..32].copy_from_slice(&self.journal);
        bytes[32..48].copy_from_slice(&self.log);
        bytes[48..80].copy_from_slice(&self.salt);
        let sum = checksum(&bytes[..80]);
        bytes[80..88].copy_from_slice(&sum);
        let code: [u8; 16] = keys.code(Purpose::Header, &bytes[..88]);
        bytes[88..104].copy_from_slice(&code);
        bytes
    }

    /// Parses a header, if its checksum matches.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let bytes: &[u8; LOG_HEADER_BYTES] = bytes.first_chunk().ok_or(FormatError::Damaged)?;
        if &bytes[..8] != LOG_MAGIC || checksum(&bytes[..80]) != bytes[80..88] {
            return Err(FormatError::Damaged);
        }
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        if version != VERSION {
            return Err(FormatError::Version(version));
        }
        let kind = u16::from_le_bytes([bytes[10], bytes[11]]);
        let cipher = Cipher::from_number(number_of_4(&bytes[12..16]));
        let kind = LogKind::ALL.into_iter().find(|known| *known as u16 == kind);
        let (Some(kind), Some(cipher), true) = (kind, cipher, bytes[104..] == [0; 24]) else {
            return Err(FormatError::Damaged);
        };
        let (journal, log) = (chunk(&bytes[16..32]), chunk(&bytes[32..48]));
        Ok(Self { kind, cipher, journal, log, salt: chunk(&bytes[48..80]) })
    }

    /// Whether the bytes of a header were written with the key.
    pub fn is_authentic(bytes: &[u8; LOG_HEADER_BYTES], keys: &SegmentKey) -> bool {
        keys.is_code::<16>(Purpose::Header, &bytes[..88], &chunk(&bytes[88..104]))
    }
}

/// The header of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordHeader {
    /// Its number in the log.
    pub number: u32,
    /// The length of the payload.
    pub payload_bytes: u32,
    /// How many earlier records were durable when it was written.
    pub durable: u32,
    /// The salt of the nonce.
    pub salt: [u8; 8],
    /// The tag of the payload.
    pub tag: [u8; 16],
}

impl RecordHeader {
    /// The additional data of the payload's tag.
    pub fn additional(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(RECORD_MAGIC);
        bytes[4..8].copy_from_slice(&self.number.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[12..].copy_from_slice(&self.durable.to_le_bytes());
        bytes
    }

    /// Its bytes.
    pub fn to_bytes(&self, keys: &SegmentKey) -> [u8; RECORD_HEADER_BYTES] {
        let mut bytes = [0; RECORD_HEADER_BYTES];
        bytes[..16].copy_from_slice(&self.additional());
        bytes[16..24].copy_from_slice(&self.salt);
        bytes[24..40].copy_from_slice(&self.tag);
        let code: [u8; 16] = keys.code(Purpose::Record, &bytes[..40]);
        bytes[40..56].copy_from_slice(&code);
        bytes
    }

    /// Parses a header, if the bytes are well-formed. Its lengths are bounded.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; RECORD_HEADER_BYTES] = bytes.first_chunk()?;
        let header = Self {
            number: number_of_4(&bytes[4..8]),
            payload_bytes: number_of_4(&bytes[8..12]),
            durable: number_of_4(&bytes[12..16]),
            salt: chunk(&bytes[16..24]),
            tag: chunk(&bytes[24..40]),
        };
        let is_ours = &bytes[..4] == RECORD_MAGIC
            && header.payload_bytes as usize <= PAYLOAD_BYTES_MAX
            && header.durable <= header.number
            && bytes[56..] == [0; 8];
        is_ours.then_some(header)
    }

    /// Whether the bytes of a header were written with the key.
    pub fn is_authentic(bytes: &[u8; RECORD_HEADER_BYTES], keys: &SegmentKey) -> bool {
        keys.is_code::<16>(Purpose::Record, &bytes[..40], &chunk(&bytes[40..56]))
    }

    /// The length of the record in the log.
    pub fn record_bytes(&self) -> u64 {
        let payload = (self.payload_bytes as usize).next_multiple_of(RECORD_HEADER_BYTES);
        (RECORD_HEADER_BYTES + payload) as u64
    }
}

/// The object to which changes are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Base {
    /// None: the file is new.
    New,
    /// An existing object.
    Object {
        /// Its ETag, in the store's notation.
        etag: String,
        /// Its size in bytes.
        size: u64,
    },
}

impl Base {
    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        match self {
            Self::New => 0,
            Self::Object { size, .. } => *size,
        }
    }

    /// The object's ETag.
    pub fn etag(&self) -> Option<&str> {
        match self {
            Self::New => None,
            Self::Object { etag, .. } => Some(etag),
        }
    }
}

/// A record of a log. Sizes, offsets and lengths are in bytes. Revisions count the changes of a
/// file from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record<'a> {
    /// Begins the log of a file.
    Begin {
        /// The object's key.
        key: &'a str,
        /// The object to which changes are made.
        base: Base,
    },
    /// A write.
    Extent {
        /// The revision of the write.
        revision: u64,
        /// Their offset in the file.
        offset: u64,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// The file was truncated or extended.
    Size {
        /// The revision of the change.
        revision: u64,
        /// Its new size.
        size: u64,
    },
    /// The file has another key.
    Key(&'a str),
    /// The object in the store holds all changes up to a revision.
    Uploaded {
        /// The last revision that it holds.
        through: u64,
        /// The object.
        base: Base,
    },
    /// Has no content; its header has the number of durable records.
    Durable,
    /// The source of the journal.
    Source(&'a str),
    /// Begins the rename of a directory: of all keys with the prefix `from`.
    RenameBegin {
        /// The prefix of the old keys.
        from: &'a str,
        /// The prefix of the new ones.
        to: &'a str,
    },
    /// One key below the directory.
    RenameKey {
        /// The rest of the key, after the prefix.
        rest: &'a str,
        /// The ETag in the listing.
        etag: &'a str,
        /// Its size.
        size: u64,
    },
    /// All keys are logged: from here on they are copied.
    RenameListed,
    /// All keys are copied: from here on the old ones are deleted.
    RenameCopied,
    /// Announces a multipart upload.
    Upload {
        /// The address of the object.
        address: &'a str,
        /// The time, in seconds since the epoch.
        began: u64,
    },
    /// The id of the upload in the store.
    UploadId(&'a str),
}

impl<'a> Record<'a> {
    /// Appends its bytes.
    pub fn encode(&self, to: &mut Vec<u8>) {
        match self {
            Self::Begin { key, base } => {
                to.push(1);
                text(to, key);
                encode_base(to, base);
            }
            Self::Extent { revision, offset, bytes } => {
                to.push(2);
                numbers(to, [*revision, *offset]);
                to.extend_from_slice(bytes);
            }
            Self::Size { revision, size } => {
                to.push(3);
                numbers(to, [*revision, *size]);
            }
            Self::Key(key) => {
                to.push(4);
                text(to, key);
            }
            Self::Uploaded { through, base } => {
                to.push(5);
                numbers(to, [*through]);
                encode_base(to, base);
            }
            Self::Durable => to.push(6),
            Self::Source(source) => {
                to.push(7);
                text(to, source);
            }
            Self::RenameBegin { from, to: target } => {
                to.push(8);
                text(to, from);
                text(to, target);
            }
            Self::RenameKey { rest, etag, size } => {
                to.push(9);
                text(to, rest);
                text(to, etag);
                numbers(to, [*size]);
            }
            Self::RenameListed => to.push(10),
            Self::RenameCopied => to.push(11),
            Self::Upload { address, began } => {
                to.push(12);
                text(to, address);
                numbers(to, [*began]);
            }
            Self::UploadId(id) => {
                to.push(13);
                text(to, id);
            }
        }
    }

    /// Parses a record that takes up the whole payload.
    pub fn parse(payload: &'a [u8]) -> Option<Self> {
        let (kind, rest) = payload.split_first()?;
        let mut fields = Fields(rest);
        let record = match kind {
            1 => Self::Begin { key: fields.text()?, base: fields.base()? },
            2 => {
                let (revision, offset) = (fields.number()?, fields.number()?);
                let bytes = std::mem::take(&mut fields.0);
                offset.checked_add(bytes.len() as u64).filter(|end| is_size(*end))?;
                Self::Extent { revision, offset, bytes }
            }
            3 => Self::Size { revision: fields.number()?, size: fields.number()? },
            4 => Self::Key(fields.text()?),
            5 => Self::Uploaded { through: fields.number()?, base: fields.base()? },
            6 => Self::Durable,
            7 => Self::Source(fields.text()?),
            8 => Self::RenameBegin { from: fields.text()?, to: fields.text()? },
            9 => Self::RenameKey {
                rest: fields.text()?,
                etag: fields.text()?,
                size: fields.number()?,
            },
            10 => Self::RenameListed,
            11 => Self::RenameCopied,
            12 => Self::Upload { address: fields.text()?, began: fields.number()? },
            13 => Self::UploadId(fields.text()?),
            _ => return None,
        };
        fields.0.is_empty().then_some(record)
    }
}

/// Whether off_t can hold a file of this size.
pub(super) fn is_size(size: u64) -> bool {
    i64::try_from(size).is_ok()
}

fn checksum(bytes: &[u8]) -> [u8; 8] {
    chunk(&blake3::hash(bytes).as_bytes()[..8])
}

fn chunk<const LENGTH: usize>(bytes: &[u8]) -> [u8; LENGTH] {
    *bytes.first_chunk().expect("the range has the length")
}

fn number_of_4(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(chunk(bytes))
}

fn text(to: &mut Vec<u8>, text: &str) {
    to.extend_from_slice(&(text.len() as u32).to_le_bytes());
    to.extend_from_slice(text.as_bytes());
}

fn numbers<const COUNT: usize>(to: &mut Vec<u8>, numbers: [u64; COUNT]) {
    numbers.iter().for_each(|number| to.extend_from_slice(&number.to_le_bytes()));
}

fn encode_base(to: &mut Vec<u8>, base: &Base) {
    match base {
        Base::New => to.push(0),
        Base::Object { etag, size } => {
            to.push(1);
            text(to, etag);
            numbers(to, [*size]);
        }
    }
}

/// The unread rest of a payload.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn number(&mut self) -> Option<u64> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        // No size, offset or count exceeds off_t.
        Some(u64::from_le_bytes(*bytes)).filter(|number| is_size(*number))
    }

    fn text(&mut self) -> Option<&'a str> {
        let (length, rest) = self.0.split_first_chunk()?;
        let length = u32::from_le_bytes(*length) as usize;
        let (text, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }

    fn base(&mut self) -> Option<Base> {
        let (is_there, rest) = self.0.split_first()?;
        self.0 = rest;
        match is_there {
            0 => Some(Base::New),
            1 => {
                let etag = self.text()?.to_owned();
                Some(Base::Object { etag, size: self.number()? })
            }
            _ => None,
        }
    }
}
