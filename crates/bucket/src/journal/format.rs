//! Headers and payloads of a log, byte for byte: see the tables in [`super`].
//!
//! Parsing accepts any bytes. It checks their shape, not their seals; the reader of a log checks
//! codes and seals before it uses a number.

use ogive_l2::{Cipher, Purpose, SegmentKey};

/// Length of a log's header.
pub const LOG_HEADER_BYTES: usize = 128;
/// Length of a record's header; records stand at multiples of it.
pub const RECORD_HEADER_BYTES: usize = 64;
/// Longest payload: an extent of 128 KiB, and room to spare for the longest names.
pub const PAYLOAD_BYTES_MAX: usize = 256 << 10;
/// Longest name in a record: keys have at most 1,024 bytes at all stores known, ETags fewer.
pub(super) const NAME_BYTES_MAX: usize = 32 << 10;

const LOG_MAGIC: &[u8; 8] = b"ogivestg";
const RECORD_MAGIC: &[u8; 4] = b"ogvr";
const VERSION: u16 = 1;

/// Why bytes are no header of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatError {
    /// They are something else, or damaged.
    Damaged,
    /// A version that is not known here.
    Version(u16),
}

/// The subject of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogKind {
    /// The source of a journal.
    Identity,
    /// A file that is being written.
    File,
    /// A directory that is being renamed.
    Tree,
    /// An upload in parts.
    Upload,
}

impl LogKind {
    const ALL: [Self; 4] = [Self::Identity, Self::File, Self::Tree, Self::Upload];
}

/// The first bytes of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogHeader {
    /// Its subject.
    pub kind: LogKind,
    /// How it is sealed.
    pub cipher: Cipher,
    /// The journal that it belongs to.
    pub journal: [u8; 16],
    /// The log, over compactions.
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

    /// A header, if the bytes have its checksum.
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
    pub fn is_vouched_for(bytes: &[u8; LOG_HEADER_BYTES], keys: &SegmentKey) -> bool {
        keys.is_code::<16>(Purpose::Header, &bytes[..88], &chunk(&bytes[88..104]))
    }
}

/// The header of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordHeader {
    /// Its number in the log.
    pub number: u32,
    /// Length of the payload.
    pub payload_bytes: u32,
    /// How many records before it were durable when it was written.
    pub durable: u32,
    /// Of the nonce.
    pub salt: [u8; 8],
    /// Of the payload.
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

    /// A header, if the bytes have the shape. Its lengths are bounded.
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
    pub fn is_vouched_for(bytes: &[u8; RECORD_HEADER_BYTES], keys: &SegmentKey) -> bool {
        keys.is_code::<16>(Purpose::Record, &bytes[..40], &chunk(&bytes[40..56]))
    }

    /// Length of the record in the log.
    pub fn record_bytes(&self) -> u64 {
        let payload = (self.payload_bytes as usize).next_multiple_of(RECORD_HEADER_BYTES);
        (RECORD_HEADER_BYTES + payload) as u64
    }
}

/// The object that changes are made to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Base {
    /// There was none.
    New,
    /// There was one.
    Object {
        /// Which, as the store says it.
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

/// One thing that a log says. Sizes, offsets and lengths are in bytes; a revision counts the
/// changes of a file from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record<'a> {
    /// A file is being written.
    Begin {
        /// The object's key.
        key: &'a str,
        /// The object that it changes.
        base: Base,
    },
    /// Bytes were written.
    Extent {
        /// The change's number.
        revision: u64,
        /// Their place in the file.
        offset: u64,
        /// They.
        bytes: &'a [u8],
    },
    /// The file was cut or grown.
    Size {
        /// The change's number.
        revision: u64,
        /// Its new size.
        size: u64,
    },
    /// The file has another name now.
    Key(&'a str),
    /// The object holds all changes up to a revision.
    Uploaded {
        /// The last change that it holds.
        through: u64,
        /// The object.
        base: Base,
    },
    /// Nothing but the number of durable records in its header.
    Durable,
    /// The source whose journal it is.
    Source(&'a str),
    /// A directory is to be renamed: all keys that begin with `from`.
    TreeBegin {
        /// Prefix of the old keys.
        from: &'a str,
        /// Prefix of the new ones.
        to: &'a str,
    },
    /// One key below the directory.
    TreeKey {
        /// The rest of the key, after the prefix.
        rest: &'a str,
        /// The object as it was listed.
        etag: &'a str,
        /// Its size.
        size: u64,
    },
    /// All keys have been named: from here on they are copied.
    TreeListed,
    /// All keys have been copied: from here on the old ones are deleted.
    TreeCopied,
    /// An upload in parts is about to begin.
    Upload {
        /// Address of the object.
        address: &'a str,
        /// When, in seconds since the epoch.
        began: u64,
    },
    /// The id that the store gave it.
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
            Self::TreeBegin { from, to: target } => {
                to.push(8);
                text(to, from);
                text(to, target);
            }
            Self::TreeKey { rest, etag, size } => {
                to.push(9);
                text(to, rest);
                text(to, etag);
                numbers(to, [*size]);
            }
            Self::TreeListed => to.push(10),
            Self::TreeCopied => to.push(11),
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

    /// A record, if the bytes are one and nothing else.
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
            8 => Self::TreeBegin { from: fields.text()?, to: fields.text()? },
            9 => {
                Self::TreeKey { rest: fields.text()?, etag: fields.text()?, size: fields.number()? }
            }
            10 => Self::TreeListed,
            11 => Self::TreeCopied,
            12 => Self::Upload { address: fields.text()?, began: fields.number()? },
            13 => Self::UploadId(fields.text()?),
            _ => return None,
        };
        fields.0.is_empty().then_some(record)
    }
}

/// Whether a file may be so large, as off_t has it.
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
        // No size, place or count is larger than off_t has them.
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
