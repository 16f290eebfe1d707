//! The staging journal: the only authority for bytes that are written but not yet in the bucket.
//!
//! A store cannot change a part of an object. So the journal keeps the writes of programs until a
//! whole object can be uploaded. It is a directory on a local disk, with one log for each file
//! being written. A log is sealed and append-only. It is deleted once the store has confirmed all
//! its changes. The journal is not a cache: nothing is evicted, and a full disk is reported to the
//! writer.
//!
//! # Invariants
//!
//! 1. After [`StagedLog::sync`] the changes survive a power cut. After a write they survive
//!    `SIGKILL`.
//! 2. A replay restores the writes in their order, up to a torn tail. A tail is torn if no later
//!    record says that it was durable. Damage before that is an error, and nothing of that log is
//!    uploaded.
//! 3. A log is deleted only once its changes are uploaded ([`StagedLog::retire`]). Other deletions
//!    are a torn tail, the note of an ended upload, and the copy of an unfinished compaction, whose
//!    original exists.
//! 4. A directory belongs to one source and one key, and to one mount at a time. An unused
//!    directory belongs to no source once its mount has ended.
//! 5. No nonce is used twice with a key, not even in clones and restored snapshots. Each log has
//!    its own key, derived from 32 random bytes. Each nonce is derived from the message that it
//!    seals ([`ogive_l2::SegmentKey`]).
//!
//! Two cases cannot be detected. A log that was cut at the end of a record while no mount ran looks
//! like a torn one. A directory restored from an old copy looks like that old state. The condition
//! of the upload covers both: an object that has changed in the meantime is never overwritten.
//!
//! # The directory
//!
//! | name | contents |
//! |---|---|
//! | `lock` | locked with flock(2) while a mount uses the directory |
//! | `passphrase` | the parameters that turn a passphrase into the key, if there is one |
//! | `identity` | a log of one record: the source of the journal |
//! | `N.log` | a log; `N` is a sequence number of 16 hexadecimal digits |
//! | `N.new` | the copy of a log written by a compaction, renamed over the log once it is durable |
//! | `conflicts/N.log` | a log whose object another client changed first |
//! | `damaged/N.log` | a damaged log that was set aside |
//!
//! # The format of a log
//!
//! All numbers are little-endian. A header of 128 bytes is followed by records at multiples of 64
//! bytes.
//!
//! | bytes of the header | |
//! |---|---|
//! | 0..8 | `ogivestg` |
//! | 8..10, 10..12 | format version, 1; kind: 0 identity, 1 staged file, 2 rename of a directory, 3 multipart upload |
//! | 12..16 | cipher, as [`ogive_l2::Cipher::number`] |
//! | 16..32 | id of the journal: random, the same in all its logs |
//! | 32..48 | id of the log: random, kept by a compaction |
//! | 48..80 | salt of the log's keys: random, new for each compaction |
//! | 80..88 | first 8 bytes of the BLAKE3 hash of bytes 0..80: distinguishes damage from a wrong key |
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
//! A payload is one byte for the kind, followed by the fields of [`Record`] in order. Numbers have
//! 8 bytes and are below 2^63. Texts follow their length in 4 bytes. The bytes of an extent reach
//! to the end. The first record of a staged file is [`Record::Begin`], of a rename
//! [`Record::RenameBegin`], of an upload [`Record::Upload`].
//!
//! # Locks
//!
//! Each log has one, for its map of extents and its end. It is held during a write to the page
//! cache and during a compaction. It is never held during a sync, a read of the log or a request.

mod conflicts;
mod directory;
mod error;
mod extents;
mod format;
mod log;
mod passphrase;
#[cfg(test)]
mod pieces_tests;
mod rename_log;
mod replay;
mod staged_log;
mod state;
mod upload_log;

pub use conflicts::{Conflict, conflicts, count_staged};
pub use error::JournalError;
pub use extents::{Piece, Span};
pub use format::{
    Base, FormatError, LOG_HEADER_BYTES, LogHeader, LogKind, PAYLOAD_BYTES_MAX,
    RECORD_HEADER_BYTES, Record, RecordHeader,
};
pub use log::{Log, LogFile, Place, ScanError, Scanned, scan};
pub use passphrase::master_key;
pub use rename_log::{RenameKey, RenameLog, RenameState};
pub use replay::{Journal, OpenOptions, Opened, Torn};
pub use staged_log::{EXTENT_BYTES_MAX, ReadBase, Snapshot, StagedLog, WriteId};
pub use state::State;
pub use upload_log::UploadLog;
