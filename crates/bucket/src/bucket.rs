//! The trait of an object store: what a mount and its journal need from it.
//!
//! # Invariants
//! - Keys are whole keys of the bucket, with the prefix of the mount. Only the marker of a
//!   directory ends in a slash. A key that would reach the store changed ([`Bucket::key_rules`])
//!   fails with [`BucketError::BadKey`] and never reaches another object.
//! - A call whose condition does not hold changes nothing, if the store honours the condition
//!   ([`Bucket::promises`]). Other conditions are sent all the same.
//! - Implementations retry idempotent requests, with the same condition. They do not retry a write
//!   whose answer is lost: the error [is in doubt](BucketError::is_in_doubt). The writer then asks
//!   [`Bucket::head`] whether [`Object::mark`] is its own.
//! - No call holds a lock while it waits for the store. Every call is safe from many threads.

use crate::object_metadata::{BLOB_TYPE, LEASE};
use crate::{
    BucketError, Checksum, Fetch, FetchSink, KeyRules, ObjectMetadata, Requests, Result,
    WriteMetadata,
};
use bytes::Bytes;
use ogive_origin::{ReadAhead, Time};
use std::fmt;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// A store of objects under keys.
pub trait Bucket: Send + Sync + 'static {
    /// The bucket's identity.
    fn identity(&self) -> BucketIdentity;

    /// The rules for keys that the store keeps unchanged.
    fn key_rules(&self) -> &'static KeyRules;

    /// The conditions that the store is known to honour.
    fn promises(&self) -> Promises {
        Promises::NONE
    }

    /// The number of requests so far.
    fn request_counts(&self) -> Requests;

    /// Describes an object, without its bytes.
    ///
    /// # Errors
    /// [`BucketError::NotFound`] if there is none.
    fn head(&self, key: &str) -> Result<Object>;

    /// The same, with the bytes of an object of at most `most_bytes`, if one answer of the store
    /// has both.
    ///
    /// # Errors
    /// Those of [`Bucket::head`].
    fn head_with_bytes(&self, key: &str, _most_bytes: u64) -> Result<(Object, Option<Bytes>)> {
        Ok((self.head(key)?, None))
    }

    /// Reads the bytes of `range`, which is not empty, in order: `sink` is called with each piece
    /// as it arrives, until it breaks. Pieces have any length. The range is cut at the end of the
    /// object. Returns the number of bytes passed to `sink`.
    ///
    /// With `expected` all bytes belong to the object with that ETag, or the call fails.
    ///
    /// Implementations resume a broken body only with `expected`. No byte is passed twice.
    ///
    /// # Errors
    /// [`BucketError::ConditionFailed`] if the object has changed,
    /// [`BucketError::OutOfRange`] if the range begins at or after its end,
    /// [`BucketError::NotFound`] if there is none.
    fn get(
        &self,
        key: &str,
        range: Range<u64>,
        expected: Option<&ETag>,
        sink: &mut dyn FnMut(Bytes) -> ControlFlow<()>,
    ) -> Result<u64>;

    /// Like [`Bucket::get`]: in the background if [`Bucket::fetches_in_background`], otherwise on
    /// the calling thread, before this returns.
    fn fetch(&self, fetch: Fetch, mut taker: Box<dyn FetchSink>) {
        let Fetch { key, range, expected, .. } = fetch;
        let given = self.get(&key, range, expected.as_ref(), &mut |piece| taker.piece(piece));
        taker.end(given);
    }

    /// Whether [`Bucket::fetch`] returns before the first byte has arrived.
    fn fetches_in_background(&self) -> bool {
        false
    }

    /// How far to prefetch for sequential readers on the current link. Called often.
    fn read_ahead(&self) -> ReadAhead {
        ReadAhead::default()
    }

    /// The checksum of a whole object, if the store has reported one.
    fn checksum_of(&self, _object: &Object) -> Option<Checksum> {
        None
    }

    /// Reports the counters of the link to the store, by name.
    fn counters(&self, _report: &mut dyn FnMut(&str, u64)) {}

    /// Writes a whole object of at most 5 GiB in one request. The bytes are durable when this
    /// returns. The answer has the ETag if the store returns it, as all stores do, though not all
    /// proxies. `modified` is the epoch, because the answer does not include the time.
    ///
    /// The store keeps the metadata in `beside`, and [`Bucket::head`] returns them. The mark among
    /// them lets a writer that lost the answer recognize its own write.
    ///
    /// A store without this, [`Self::upload`], [`Self::copy`] and [`Self::delete`] is read-only.
    ///
    /// # Errors
    /// [`BucketError::ConditionFailed`] if the condition does not hold.
    fn put(
        &self,
        _key: &str,
        _body: Bytes,
        _condition: &Condition,
        _beside: WriteMetadata<'_>,
    ) -> Result<Object> {
        Err(READ_ONLY)
    }

    /// Begins a multipart upload. Nothing of it is visible before [`Upload::complete`].
    fn upload(
        &self,
        _key: &str,
        _condition: &Condition,
        _beside: WriteMetadata<'_>,
    ) -> Result<Box<dyn Upload>> {
        Err(READ_ONLY)
    }

    /// Copies a whole object of any size inside the store.
    ///
    /// # Errors
    /// [`BucketError::ConditionFailed`] if the source has another ETag or the condition does not
    /// hold for the target; [`BucketError::NotFound`] for the source.
    fn copy(&self, _copy: CopyRequest<'_>) -> Result<Object> {
        Err(READ_ONLY)
    }

    /// Deletes an object. One that does not exist counts as deleted, except with `expected`.
    ///
    /// # Errors
    /// [`BucketError::ConditionFailed`] if it is not the `expected` one. Some stores ignore the
    /// condition and delete the object, see [`Promises::delete`].
    fn delete(&self, _key: &str, _expected: Option<&ETag>) -> Result<()> {
        Err(READ_ONLY)
    }

    /// Deletes the versions and delete markers of deleted objects whose keys begin with `stem`.
    /// Only for keys that no other client can have.
    ///
    /// # Errors
    /// Those of the store, for example a missing permission; the versions stay.
    fn purge(&self, _stem: &str) -> Result<()> {
        Ok(())
    }

    /// Begins a listing of a prefix, in the byte order of the keys.
    fn pages(&self, listing: &Listing<'_>) -> Result<Box<dyn Pages>>;

    /// Lists a prefix, with one request for each 1,000 entries, until `visit` breaks.
    fn list(
        &self,
        listing: &Listing<'_>,
        visit: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut pages = self.pages(listing)?;
        loop {
            let page = pages.next()?;
            if page.is_empty() {
                return Ok(());
            }
            for entry in page {
                if visit(entry).is_break() {
                    return Ok(());
                }
            }
        }
    }
}

/// The answer of a read-only store to a change.
const READ_ONLY: BucketError = BucketError::Unsupported { what: "be written to" };

/// A copy inside the store.
#[derive(Clone, Copy, Debug)]
pub struct CopyRequest<'a> {
    /// The object, which must still have its ETag.
    pub source: &'a Object,
    /// The key of the copy.
    pub target: &'a str,
    /// The condition on the object under that key.
    pub condition: &'a Condition,
    /// The metadata of the copy; the source's are not copied.
    pub beside: WriteMetadata<'a>,
}

impl<'a> CopyRequest<'a> {
    /// A copy without metadata.
    pub fn new(source: &'a Object, target: &'a str, condition: &'a Condition) -> Self {
        Self { source, target, condition, beside: WriteMetadata::NONE }
    }
}

/// A listing by pages.
pub trait Pages: Send {
    /// The next entries; empty at the end of the listing and after it.
    fn next(&mut self) -> Result<Vec<Entry>>;
}

/// A complete listing as one page.
impl Pages for Vec<Entry> {
    fn next(&mut self) -> Result<Vec<Entry>> {
        Ok(std::mem::take(self))
    }
}

/// Identifies a bucket: equal for all mounts of the same one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BucketIdentity {
    /// Scheme, host and port of the store.
    pub endpoint: String,
    /// Name of the bucket.
    pub bucket: String,
}

impl fmt::Display for BucketIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.bucket, self.endpoint)
    }
}

/// An entity tag in the store's notation, with its quotes. Compared byte by byte.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ETag(Box<str>);

impl ETag {
    /// A tag with this text.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// Its text, with the quotes.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether equal tags mean equal bytes (RFC 9110, section 8.8.1).
    pub fn is_strong(&self) -> bool {
        !self.0.starts_with("W/")
    }
}

/// The condition of a write, on the object under its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// None: the last writer wins.
    None,
    /// There is no object (`If-None-Match: *`).
    Absent,
    /// The object has this ETag (`If-Match`).
    Matches(ETag),
}

/// An object as a store describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its key.
    pub key: String,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Its ETag; `None` if the store gives none. Then no condition can name the object.
    pub etag: Option<ETag>,
    /// When it was written, by the store's clock, in whole seconds.
    pub modified: Time,
    /// The mark of the write that made it, if the call returns it: a listing does not.
    pub mark: Option<String>,
    /// Its other metadata, if the call returns them.
    pub kept: Option<Arc<ObjectMetadata>>,
}

impl Object {
    fn header(&self, name: &str) -> Option<&String> {
        self.kept.as_ref().and_then(|kept| kept.headers.get(name))
    }

    /// Whether it may be overwritten, as far as [`Bucket::head`] knows.
    ///
    /// # Errors
    /// [`BucketError::OtherBlob`] for an append blob or a page blob of Azure.
    pub fn check_rewritable(&self) -> Result<()> {
        match self.header(BLOB_TYPE) {
            Some(kind) => Err(BucketError::OtherBlob { key: self.key.clone(), kind: kind.clone() }),
            None => Ok(()),
        }
    }

    /// Whether it may be renamed or removed, as far as [`Bucket::head`] knows.
    ///
    /// # Errors
    /// [`BucketError::Held`] if another client has a lease on it.
    pub fn check_free(&self) -> Result<()> {
        match self.header(LEASE) {
            Some(lease) => {
                let message = format!("its lease is {lease}");
                Err(BucketError::Held { key: self.key.clone(), message })
            }
            None => Ok(()),
        }
    }
}

/// A request for a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listing<'a> {
    /// List keys with this prefix; empty for the whole bucket, else ending in a slash.
    pub prefix: &'a str,
    /// Whether keys with a further slash are listed once, as their common prefix.
    pub delimited: bool,
    /// How many entries one request asks for, at most 1,000.
    pub page: usize,
}

/// An entry of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// An object; one whose key ends in a slash is the marker of a directory.
    Object(Object),
    /// A common prefix, with its slash: there are keys below it.
    Prefix(String),
}

impl Entry {
    /// Its key or prefix.
    pub fn key(&self) -> &str {
        match self {
            Self::Object(object) => &object.key,
            Self::Prefix(prefix) => prefix,
        }
    }
}

/// Which conditions a store honours. Most stores accept unknown conditions and ignore them, so a
/// mount probes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promises {
    /// `If-None-Match: *` of PUT.
    pub create: bool,
    /// `If-Match` of PUT.
    pub overwrite: bool,
    /// `If-None-Match: *` at the completion of a multipart upload.
    pub upload_create: bool,
    /// `If-Match` at the completion of a multipart upload.
    pub upload_overwrite: bool,
    /// `If-Match` of DELETE.
    pub delete: bool,
}

impl Promises {
    /// A store that honours all conditions.
    pub const ALL: Self = Self {
        create: true,
        overwrite: true,
        upload_create: true,
        upload_overwrite: true,
        delete: true,
    };
    /// A store that was not probed yet.
    pub const NONE: Self = Self {
        create: false,
        overwrite: false,
        upload_create: false,
        upload_overwrite: false,
        delete: false,
    };
}

/// How many parts of one upload are in flight at once.
pub(crate) const PARTS_AT_ONCE: usize = 4;

/// A multipart upload. Its bytes are those of its parts, in the order of the calls. A drop without
/// [`Upload::complete`] aborts it, as far as that is possible without waiting.
pub trait Upload: Send {
    /// The minimal size in bytes of a part that is not the last.
    fn part_min_bytes(&self) -> u64 {
        5 << 20
    }

    /// Appends bytes. May return before they have arrived; then a later call returns the failure.
    fn part(&mut self, bytes: Bytes) -> Result<()>;

    /// Appends a range of an object, copied inside the store, if the object still has its ETag.
    /// Ranges other than the last have at least [`Upload::part_min_bytes`].
    ///
    /// # Errors
    /// [`BucketError::ConditionFailed`] if the source was replaced.
    fn copy_part(&mut self, source: &Object, range: Range<u64>) -> Result<()>;

    /// Makes the object visible, if the condition of the upload holds. Durable when this returns.
    ///
    /// # Errors
    /// [`BucketError::ConditionFailed`] if it does not hold; then nothing of the upload is left.
    fn complete(self: Box<Self>) -> Result<Object>;

    /// Discards the parts.
    fn abort(self: Box<Self>) -> Result<()>;
}
