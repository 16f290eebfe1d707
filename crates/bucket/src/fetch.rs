//! A read of a range in the background: no thread waits for it.
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
    /// Which bytes of it; not empty.
    pub range: Range<u64>,
    /// The bytes are of the object with this ETag, or there are none at all.
    pub expected: Option<ETag>,
    /// A demand read: a program waits for the bytes. Prefetch waits behind it.
    pub is_demanded: bool,
}

/// The sink of a read. It must not block, and may begin another fetch.
pub trait FetchSink: Send {
    /// The next bytes, in order. After `Break` no more are wanted.
    fn piece(&mut self, bytes: Bytes) -> ControlFlow<()>;

    /// No more come: how many there were, or why not all. Called once, unless the fetch is given up
    /// with the store.
    fn end(self: Box<Self>, result: Result<u64>);
}
