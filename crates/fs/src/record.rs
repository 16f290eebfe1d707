//! The engine's contents for a mount: records of files, and metadata that is worth caching.
//!
//! A key starts with a *version*: 128 bits for one object with one content. Nothing is ever
//! replaced under a key that a reader may still ask for. So a stale record is unreachable rather
//! than removed, and a new version invalidates everything about an object.
//!
//! A record has three names on its way. Here it is [`Key`]: version and index. For the second level
//! `second_level` makes a name of version, index and record size. `ogive_l2` keeps a keyed hash of
//! that, 16 bytes (`Store::key`), so that a device does not reveal its contents. [`crate::version`]
//! makes the version itself from the origin's identity of the object.

use std::ffi::OsString;
use std::sync::Arc;

/// The overhead of a record beyond its bytes: the value's header, the reference-counted cell around
/// it, the engine's entry and its share of the index. It is added to the weight of each entry, so
/// that many small files cannot grow the process beyond its limit.
pub(crate) const ENTRY_OVERHEAD_BYTES: u64 = 256;

/// 128 bits for one object with one content. See [`crate::version`].
pub(crate) type Version = u128;

/// Names a piece of one version of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// The object and its content.
    pub(crate) version: Version,
    /// Which record, or one of the constants below.
    pub(crate) index: u64,
}

impl Key {
    /// No file has as many records as this.
    const LINK: u64 = u64::MAX;
    const LISTING: u64 = u64::MAX - 1;

    /// A record of a file.
    pub(crate) fn record(version: Version, index: u64) -> Self {
        Self { version, index }
    }

    /// The target of a symbolic link.
    pub(crate) fn link(version: Version) -> Self {
        Self { version, index: Self::LINK }
    }

    /// The listing of a directory.
    pub(crate) fn listing(version: Version) -> Self {
        Self { version, index: Self::LISTING }
    }
}

/// The worth of a record to a second level, which outlives the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Worth {
    /// It may not be kept: nothing vouches that these bytes belong to the version.
    #[default]
    Fleeting,
    /// It belongs to this version for ever.
    Lasting,
    /// The same, after a long sequential run has passed it.
    Passing,
}

/// The value under a key.
#[derive(Debug)]
pub(crate) enum Entry {
    /// Bytes of a record: a whole record, or fewer where the file ends.
    Record(Vec<u8>, Worth),
    /// Target of a symbolic link.
    Link(OsString),
    /// A directory's names.
    Listing(Arc<crate::listing::Listing>),
}

impl Entry {
    /// Weight in bytes for the engine.
    pub(crate) fn weight_bytes(&self) -> u64 {
        let bytes = match self {
            Self::Record(bytes, _) => bytes.capacity(),
            Self::Link(target) => target.capacity(),
            Self::Listing(listing) => listing.size_bytes(),
        };
        bytes as u64 + ENTRY_OVERHEAD_BYTES
    }

    /// The bytes, if this is a record.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Record(bytes, _) => bytes,
            Self::Link(_) | Self::Listing(_) => &[],
        }
    }
}
