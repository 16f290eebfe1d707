//! Buckets as the source of a mount: objects under keys.
//!
//! [`Bucket`] is the interface to a store, in the store's terms: objects, ETags, conditions,
//! multipart uploads and listings. [`RemoteBucket`] speaks to real stores and [`WebBucket`] to web
//! servers. [`MemoryBucket`] is a store inside the process for tests; it can fail, be slow and
//! ignore conditions as real stores do. [`BucketOrigin`] shows any of them as the origin of a
//! mount.
//!
//! [`journal`] keeps writes that are not uploaded yet. [`staged`] is a file over the journal, and
//! its upload.
//!
//! # Errors
//! [`BucketError`] lists the failures of a store, with the `errno` of each.
//!
//! # Threads
//! Every call except [`Bucket::fetch`] may block the caller. ogive's only async executor, with two
//! threads, is private to [`RemoteBucket`] and [`WebBucket`].

#![deny(missing_docs)]

mod bounded;
mod bucket;
mod checksum;
mod cost;
mod error;
mod fetch;
#[cfg(feature = "remote")]
mod http_clients;
pub mod journal;
mod key_rules;
mod keys;
mod memory;
mod object_metadata;
mod origin;
mod probe;
#[cfg(feature = "remote")]
mod remote;
#[cfg_attr(not(feature = "remote"), allow(dead_code, reason = "what is sent over HTTP is counted"))]
mod request_counters;
pub mod staged;
#[cfg(feature = "index")]
mod web;

pub(crate) use bucket::PARTS_AT_ONCE;
pub use bucket::{
    Bucket, BucketIdentity, Condition, CopyRequest, ETag, Entry, Listing, Object, Pages, Promises,
    Upload,
};
pub use checksum::{Algorithm, Checksum};
pub use cost::{Budget, Prices};
pub use error::BucketError;
pub use fetch::{Fetch, FetchSink};
pub use key_rules::KeyRules;
pub use memory::{Fault, Gate, MemoryBucket, Operation};
pub use object_metadata::{ObjectMetadata, WriteMetadata};
pub use origin::WriteOptions;
pub use origin::{BucketOrigin, Chmod, Convention, Directory, File, Node, OriginOptions};
pub use probe::probe;
#[cfg(feature = "remote")]
pub use remote::{RemoteBucket, RemoteOptions, Renewal, StoreKind};
pub use request_counters::Requests;
#[cfg(feature = "remote")]
pub use web::WebBucket;
#[cfg(feature = "index")]
pub use web::index;

/// Result of an operation of a bucket.
pub type Result<T> = std::result::Result<T, BucketError>;
