//! A background read of a range: no thread waits for it.
//!
//! [`Bucket::fetch`](crate::Bucket::fetch) takes the range and a sink, and returns before any byte
//! has arrived. Threads of the store call the sink, so it must not block.

use crate::{ETag, Result};
use bytes::Bytes;
use std::ops::{ControlFlow, Range};

/// The range to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// Key of the object.
    pub key: String,
    /// The bytes to read; not empty.
    pub range: Range<u64>,
    /// With an ETag, all bytes belong to that object, or the read fails.
    pub expected: Option<ETag>,
    /// A demand read: a program waits for the bytes. Otherwise prefetch, which waits behind demand
    /// reads.
    pub is_demanded: bool,
}

/// Receives the bytes of a read. It must not block, and may start another fetch.
pub trait FetchSink: Send {
    /// The next bytes, in order. `Break` ends the read.
    fn piece(&mut self, bytes: Bytes) -> ControlFlow<()>;

    /// The end: the number of bytes, or why not all arrived. Called once, unless the bucket is
    /// dropped first.
    fn end(self: Box<Self>, result: Result<u64>);
}
