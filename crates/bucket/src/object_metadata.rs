//! The metadata of an object: pairs of text that a store keeps with its bytes. Some are headers of
//! HTTP; the others are names that the writer chose ("user-defined metadata" of Amazon's S3 API).
//!
//! A store cannot change bytes and keep the metadata: each write replaces both. So an upload sends
//! the metadata of the object that it replaces.

use std::collections::BTreeMap;

/// The word of HTTP for what the bytes are.
#[cfg(feature = "remote")]
pub(crate) const CONTENT_TYPE: &str = "content-type";
/// How they are packed.
#[cfg(feature = "remote")]
pub(crate) const CONTENT_ENCODING: &str = "content-encoding";
/// How a browser treats them.
#[cfg(feature = "remote")]
pub(crate) const CONTENT_DISPOSITION: &str = "content-disposition";
/// How long others may keep them.
#[cfg(feature = "remote")]
pub(crate) const CACHE_CONTROL: &str = "cache-control";

/// The kind of blob in Azure's words, if it is no block blob. Only block blobs are written.
pub(crate) const BLOB_TYPE: &str = "x-ms-blob-type";
/// Whether a client has a lease of it, in Azure's words, if that is so.
pub(crate) const LEASE: &str = "x-ms-lease-status";

/// The metadata of an object, but for the mark of a write of ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectMetadata {
    /// Its writers' own, by name. Names are in small letters, as stores give them back.
    pub user: BTreeMap<String, String>,
    /// `content-type`, `content-encoding`, `content-disposition` and `cache-control`, as far as they
    /// are known. Of Azure also what stands in the way of a change, which is not written:
    /// [`crate::Object::check_rewritable`] and [`crate::Object::check_free`] read it.
    pub headers: BTreeMap<&'static str, String>,
}

impl ObjectMetadata {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.user.is_empty() && self.headers.is_empty()
    }

    /// The value of a name.
    pub fn note(&self, name: &str) -> Option<&str> {
        self.user.get(name).map(String::as_str)
    }
}

/// The metadata that an object is written with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteMetadata<'a> {
    /// The mark by which a writer whose answer was lost knows its own write again.
    pub mark: Option<&'a str>,
    /// The rest.
    pub kept: Option<&'a ObjectMetadata>,
}

impl<'a> WriteMetadata<'a> {
    /// Nothing.
    pub const NONE: Self = Self { mark: None, kept: None };

    /// A mark alone.
    pub fn marked(mark: &'a str) -> Self {
        Self { mark: Some(mark), kept: None }
    }

    /// The same with what else is to be kept.
    #[must_use]
    pub fn with(self, kept: Option<&'a ObjectMetadata>) -> Self {
        Self { kept, ..self }
    }
}
