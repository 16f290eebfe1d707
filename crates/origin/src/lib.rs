//! Where the bytes come from.
//!
//! An *origin* is the slow, authoritative place behind a mount: a directory on any file system
//! (here), or a bucket (`ogive_bucket`). This crate knows how to name its objects, read and write
//! them and tell their version. It knows neither the cache above it nor FUSE, and it caches
//! nothing: every call reaches the origin, so whoever calls decides what may be believed and for
//! how long.
//!
//! # Identity
//!
//! A [`Origin::Node`] names an object independently of its path, so that it survives renames and
//! the unlinking of one of its names. The directory origin keeps a kernel file handle
//! (`name_to_handle_at(2)`) of a few bytes where the file system gives one and the process may
//! open by it. Otherwise it keeps the object's identity and where it was found, a directory and a
//! name, opens it when it is needed, and believes what it finds only if the identity is the same.
//! Paths are never stored: two thirds of what path-based pass-through file systems get wrong comes
//! from that.
//!
//! # Version
//!
//! [`Identity`] is what the origin says about an object's contents without showing them: device,
//! inode, inode generation, size, modification and change time. Equal identities do not prove
//! equal contents when the clock is coarse; [`Identity::is_settled`] says from when on they do. An
//! origin that has a name for contents, as a bucket has ETags, puts a digest of it into
//! [`Attributes::tag`], and times do not matter.
//!
//! # What an origin must keep
//!
//! The types do not say all that another origin has to keep:
//!
//! - the identity changes whenever the contents do, or the tag is `Tag::Nothing`, and then nothing
//!   is kept across an opening;
//! - `generation` and inode numbers are the same at the next mount of the same object;
//! - a node whose object has gone answers `ESTALE`, and never with another object;
//! - an operation that the origin has not answers `ENOSYS` or `EOPNOTSUPP`, always the same;
//! - nothing is answered from memory that another writer may have changed.
//!
//! A mount puts [`Watched`] around every origin. The tests of `ogive_fs` and the suites in
//! `tests/mount` run over any of them.
//!
//! # Errors
//!
//! Every operation fails with the [`Errno`] that the origin gave. Nothing is retried and nothing
//! is translated, except that an object whose handle no longer resolves is `ESTALE`.

#![deny(missing_docs)]

mod attributes;
mod availability;
mod directory;
#[cfg(test)]
#[path = "../../../tests/eventually.rs"]
mod eventually;
mod impersonation;
pub mod mount_graph;
pub mod mount_table;
mod origin;
mod read_ahead;
mod record_run;
#[cfg(test)]
#[path = "../../../tests/seed.rs"]
mod seed;
#[cfg(test)]
#[path = "../../../tests/skipped.rs"]
mod skipped;
mod timed_check;

pub use attributes::{Attributes, FileKind, Identity, Tag, Time, VersionSecret};
pub use availability::Watched;
pub use directory::{
    Device, DirectoryOrigin, NfsClient, Node, OpenDirectory, OpenError, OpenFile, TrustTimes,
};
pub use impersonation::{Requester, on_behalf_of, on_own_behalf};
pub use origin::{
    Allocation, Caller, Changes, DirectoryEntry, FileFlags, FileSystemStatistics, FlagsForm, Found,
    Make, Needed, Origin, SetTime, Standing, Whence,
};
pub use read_ahead::ReadAhead;
pub use record_run::{Run, RunSink};
pub use rustix::fs::{Access, OFlags, RenameFlags, XattrFlags};
pub use rustix::io::Errno;

/// Result of an origin operation.
pub type Result<T> = std::result::Result<T, Errno>;
