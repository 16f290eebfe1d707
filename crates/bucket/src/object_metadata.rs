//! The metadata of an object: pairs of text that a store keeps with its bytes. Some are HTTP
//! headers; the others have names that the writer chose ("user-defined metadata" in Amazon's S3
//! API).
//!
//! A store cannot change bytes and keep the metadata: each write replaces both. So an upload sends
//! the metadata of the object that it replaces.

use std::collections::BTreeMap;

/// The media type of the bytes.
#[cfg(feature = "remote")]
pub(crate) const CONTENT_TYPE: &str = "content-type";
/// Their encoding.
#[cfg(feature = "remote")]
pub(crate) const CONTENT_ENCODING: &str = "content-encoding";
/// How a browser presents them.
#[cfg(feature = "remote")]
pub(crate) const CONTENT_DISPOSITION: &str = "content-disposition";
/// How long caches may keep them.
#[cfg(feature = "remote")]
pub(crate) const CACHE_CONTROL: &str = "cache-control";

/// Azure's type of a blob that is not a block blob. Only block blobs are written.
pub(crate) const BLOB_TYPE: &str = "x-ms-blob-type";
/// Azure's status of a lease on the blob, if a client has one.
pub(crate) const LEASE: &str = "x-ms-lease-status";

/// The metadata of an object, without the mark of ogive's write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectMetadata {
    /// User-defined metadata, by name. Names are in lower case, as stores return them.
    pub user: BTreeMap<String, String>,
    /// `content-type`, `content-encoding`, `content-disposition` and `cache-control`, if they are
    /// known. For Azure also what prevents a change, for [`crate::Object::check_rewritable`] and
    /// [`crate::Object::check_free`]; these headers are never written.
    pub headers: BTreeMap<&'static str, String>,
}

impl ObjectMetadata {
    /// Whether there are no metadata.
    pub fn is_empty(&self) -> bool {
        self.user.is_empty() && self.headers.is_empty()
    }

    /// The value of a user-defined name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.user.get(name).map(String::as_str)
    }
}

/// The metadata that an object is written with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteMetadata<'a> {
    /// The mark by which a writer that lost the answer recognizes its own write.
    pub mark: Option<&'a str>,
    /// All other metadata.
    pub kept: Option<&'a ObjectMetadata>,
}

impl<'a> WriteMetadata<'a> {
    /// No metadata.
    pub const NONE: Self = Self { mark: None, kept: None };

    /// Only a mark.
    pub fn marked(mark: &'a str) -> Self {
        Self { mark: Some(mark), kept: None }
    }

    /// The same with other metadata.
    #[must_use]
    pub fn with(self, kept: Option<&'a ObjectMetadata>) -> Self {
        Self { kept, ..self }
    }
}
