//! Copies through the client, for stores that cannot copy with the conditions that are needed:
//! bytes are fetched and sent again in parts, and each request for bytes has the condition.

use super::{RemoteBucket, RemoteUpload, Shared};
use crate::{Bucket as _, BucketError, Object, Result, Upload as _};
use bytes::BytesMut;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Bytes of a part.
const PART_BYTES: u64 = 8 << 20;

/// Appends a range of an object to an upload.
pub(super) fn client_copy(
    shared: &Arc<Shared>,
    upload: &mut RemoteUpload,
    source: &Object,
    range: Range<u64>,
) -> Result<()> {
    let bucket = RemoteBucket { shared: Arc::clone(shared) };
    // Two parts at least: one alone would be sent as a whole object, and then the probe of uploads
    // in parts would have tried something else.
    let length = range.end - range.start;
    let part = PART_BYTES.min(length.div_ceil(2)).max(1);
    let mut at = range.start;
    while at < range.end {
        let end = range.end.min(at + part);
        let mut bytes = BytesMut::with_capacity((end - at) as usize);
        bucket.get(&source.key, at..end, source.etag.as_ref(), &mut |piece| {
            bytes.extend_from_slice(&piece);
            ControlFlow::Continue(())
        })?;
        if bytes.len() as u64 != end - at {
            let message = "it is shorter than it was said to be".to_owned();
            return Err(BucketError::Failed { key: source.key.clone(), message });
        }
        upload.part(bytes.freeze())?;
        at = end;
    }
    Ok(())
}
