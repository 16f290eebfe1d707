//! The source of the bytes.
//!
//! An *origin* is the slow, authoritative place behind a mount: a directory on any file system
//! (here), or a bucket (`ogive_bucket`). This crate names its objects, reads and writes them, and
//! gives their version. It knows neither the cache above it nor FUSE, and it caches nothing. Every
//! call reaches the origin, so the caller decides how long an answer stays valid.
//!
//! # Identity
//!
//! A [`Origin::Node`] names an object independently of its path, so it survives renames and the
//! removal of one of its names. The directory origin keeps a kernel file handle of a few bytes
//! (`name_to_handle_at(2)`). This needs a file system with handles, and permission to open by them.
//! Otherwise it keeps the object's identity and its place, a directory and a name. It opens the
//! object on demand, and accepts it only if the identity is the same. Paths are never stored: they
//! cause two thirds of the faults of path-based pass-through file systems.
//!
//! # Version
//!
//! [`Identity`] describes an object's contents without reading them: device, inode, inode
//! generation, size, modification and change time. With a coarse clock, equal identities do not
//! prove equal contents; [`Identity::is_settled`] says from when on they do. An origin with a name
//! for contents, such as the ETags of a bucket, puts a digest of it into [`Attributes::tag`]. Then
//! times do not matter.
//!
//! # Duties of an origin
//!
//! The types do not express all duties of another origin:
//!
//! - the identity changes whenever the contents do, or the tag is `Tag::Nothing`, and then nothing
//!   is kept from one open to the next;
//! - `generation` and inode numbers of an object are the same at the next mount;
//! - a node whose object has gone answers `ESTALE`, and never with another object;
//! - an unsupported operation answers `ENOSYS` or `EOPNOTSUPP`, always the same;
//! - no answer comes from memory that another writer may have changed.
//!
//! A mount puts [`HealthChecked`] around every origin. The tests of `ogive_fs` and the suites in
//! `tests/mount` run over any of them.
//!
//! # Errors
//!
//! Every operation fails with the [`Errno`] of the origin. Nothing is retried or translated, with
//! one exception: an object whose handle no longer resolves is `ESTALE`.

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
pub use availability::HealthChecked;
pub use directory::{
    Device, DirectoryOrigin, NfsClient, Node, OpenDirectory, OpenError, OpenFile, TrustTimes,
};
pub use impersonation::{Requester, on_behalf_of, on_own_behalf};
pub use origin::{
    Allocation, Availability, Caller, Changes, DirectoryEntry, FileFlags, FileSystemStatistics,
    FlagsForm, Found, Make, Needed, Origin, SetTime, Whence,
};
pub use read_ahead::ReadAhead;
pub use record_run::{Run, RunSink};
pub use rustix::fs::{Access, OFlags, RenameFlags, XattrFlags};
pub use rustix::io::Errno;

/// Result of an origin operation.
pub type Result<T> = std::result::Result<T, Errno>;
