//! Where the bytes come from.
//!
//! An *origin* is the slow, authoritative place behind a mount: a directory on any file system
//! today, a bucket next. This crate knows how to name its objects, read and write them and tell
//! their version. It knows neither the cache above it nor FUSE, and it caches nothing: every call
//! reaches the origin, so whoever calls decides what may be believed and for how long.
//!
//! # Identity
//!
//! A [`Origin::Node`] names an object independently of its path, so that it survives renames and
//! the unlinking of one of its names. The directory origin keeps a kernel file handle
//! (`name_to_handle_at(2)`) of a few bytes where the file system gives one and the process may
//! open by it, and an `O_PATH` descriptor otherwise. Paths are never stored: two thirds of what
//! path-based pass-through file systems get wrong comes from that.
//!
//! # Version
//!
//! [`Identity`] is what the origin says about an object's contents without showing them: device,
//! inode, inode generation, size, modification and change time. Equal identities do not prove
//! equal contents when the clock is coarse; [`Identity::is_settled`] says from when on they do.
//!
//! # Errors
//!
//! Every operation fails with the [`Errno`] that the origin gave. Nothing is retried and nothing
//! is translated, except that an object whose handle no longer resolves is `ESTALE`.

#![deny(missing_docs)]

mod attributes;
mod directory;
mod origin;

pub use attributes::{Attributes, FileKind, Identity, Time};
pub use directory::{DirectoryOrigin, Node, OpenDirectory, OpenError, OpenFile};
pub use origin::{
    Allocation, Caller, Changes, DirectoryEntry, FileSystemStatistics, Found, Make, Origin,
    SetTime, Whence,
};
pub use rustix::fs::{OFlags, RenameFlags, XattrFlags};
pub use rustix::io::Errno;

/// Result of an origin operation.
pub type Result<T> = std::result::Result<T, Errno>;
