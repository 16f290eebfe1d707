//! The staging journal: the only authority for bytes that were written and are not yet in the
//! bucket.
//!
//! An object cannot be written in part, so what a program writes is kept here until a whole object
//! can be uploaded. The journal is a directory on a local disk, with one log a file that is being
//! written. A log is sealed, only ever grows, and is deleted when the store has said that it holds
//! all that the log says. It is no cache: nothing in it is evicted, and a full disk is told to the
//! writer.
//!
//! # What holds
//!
//! 1. What [`StagedLog::sync`] returned for is there after a power cut, and what a write returned
//!    for is there after `SIGKILL`.
//! 2. A replay gives back what was written, in its order, up to a torn tail. A tail is torn where
//!    no later record says that it was durable; damage before that is refused in words, and nothing
//!    of that log is uploaded.
//! 3. Nothing is deleted but a log whose bytes are uploaded ([`StagedLog::retire`]), a torn tail,
//!    the note of an upload that has ended, and copies that a compaction had not finished, whose
//!    originals are there.
//! 4. A directory belongs to one source and one key, and to one mount at a time. It belongs to
//!    nobody while nothing was ever put into it and no mount uses it.
//! 5. No nonce is used twice under a key, in clones and restored snapshots neither: each log has a
//!    key of its own, which 32 random bytes name, and each nonce is made of the message that it
//!    seals ([`ogive_l2::SegmentKey`]).
//!
//! What it cannot tell: a log that was cut off at a record's end while no mount ran is as one that
//! was torn there, and a directory restored from an old copy is as it was then. Both are met by the
//! upload's condition: an object that has changed meanwhile is never overwritten.
//!
//! # The directory
//!
//! | name | what it is |
//! |---|---|
//! | `lock` | held with flock(2) as long as a mount uses the directory |
//! | `passphrase` | what a passphrase needs to become the key, if there is one |
//! | `identity` | a log of one record: the source whose writes these are |
//! | `N.log` | a log; `N` is a sequence number, 16 hexadecimal digits |
//! | `N.new` | the copy of a log that a compaction writes, renamed over it when it is durable |
//! | `conflicts/N.log` | a log whose object somebody else changed first |
//! | `damaged/N.log` | a damaged log that was set aside |
//!
//! # A log
//!
//! Little-endian. A header of 128 bytes, then records at multiples of 64 bytes.
//!
//! | bytes of the header | |
//! |---|---|
//! | 0..8 | `ogivestg` |
//! | 8..10, 10..12 | format version, 1; kind: 0 identity, 1 staged file, 2 rename of a directory, 3 upload in parts |
//! | 12..16 | cipher, as [`ogive_l2::Cipher::number`] |
//! | 16..32 | the journal: random, one a directory |
//! | 32..48 | the log: random, kept by a compaction |
//! | 48..80 | salt of the log's keys: random, a new one for each compaction |
//! | 80..88 | BLAKE3 of bytes 0..80, its first 8 bytes: tells damage from a wrong key |
//! | 88..104 | keyed code of bytes 0..88 |
//! | 104..128 | zero |
//!
//! | bytes of a record | |
//! |---|---|
//! | 0..4 | `ogvr` |
//! | 4..8 | its number in the log, from 0 |
//! | 8..12 | length of its payload in bytes, at most [`PAYLOAD_BYTES_MAX`] |
//! | 12..16 | how many records before it were durable when it was written |
//! | 16..24 | the part of the nonce that is a keyed hash of the payload |
//! | 24..40 | tag of the payload; bytes 0..16 are the additional data |
//! | 40..56 | keyed code of bytes 0..40 |
//! | 56..64 | zero |
//! | 64.. | the payload, sealed; zeroes up to a multiple of 64 bytes |
//!
//! A payload is one byte that says its kind and the fields of [`Record`] in their order: numbers of
//! 8 bytes below 2^63, texts after their length in 4 bytes, the bytes of an extent to the end. The
//! first record of a staged file is [`Record::Begin`], that of a rename [`Record::TreeBegin`], that
//! of an upload [`Record::Upload`].
//!
//! # Locks
//!
//! One a log, over its map of extents and its end. It is held for a write to the page cache, and
//! for a compaction; never for a sync, a read of the log or anything that asks the store.

mod conflicts;
mod directory;
mod error;
mod extents;
mod format;
mod log;
mod passphrase;
#[cfg(test)]
mod pieces_tests;
mod replay;
mod staged_log;
mod state;
mod tree;
mod upload;

pub use conflicts::{Conflict, conflicts, count_staged};
pub use error::JournalError;
pub use extents::{Piece, Span};
pub use format::{
    Base, FormatError, LOG_HEADER_BYTES, LogHeader, LogKind, PAYLOAD_BYTES_MAX,
    RECORD_HEADER_BYTES, Record, RecordHeader,
};
pub use log::{Log, LogFile, Place, ScanError, Scanned, scan};
pub use passphrase::master_key;
pub use replay::{Journal, OpenOptions, Opened, Torn};
pub use staged_log::{EXTENT_BYTES_MAX, ReadBase, Snapshot, StagedLog, WriteId};
pub use state::State;
pub use tree::{Tree, TreeKey, TreeLog};
pub use upload::UploadLog;
