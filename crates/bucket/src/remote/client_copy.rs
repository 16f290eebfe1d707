//! Copies through the client, for stores that cannot copy with the required conditions. Ranges are
//! fetched, each on condition of the source's ETag, and sent again in parts.

use super::{RemoteBucket, RemoteUpload, Shared};
use crate::{Bucket as _, BucketError, Object, Result, Upload as _};
use bytes::BytesMut;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// The length of a part.
const PART_BYTES: u64 = 8 << 20;

/// Appends a range of an object to an upload.
pub(super) fn client_copy(
    shared: &Arc<Shared>,
    upload: &mut RemoteUpload,
    source: &Object,
    range: Range<u64>,
) -> Result<()> {
    let bucket = RemoteBucket { shared: Arc::clone(shared) };
    // Make at least two parts: a single one would be sent as a whole object, so the probe of
    // multipart uploads would test another request.
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
            let message = "it is shorter than the store reported".to_owned();
            return Err(BucketError::Failed { key: source.key.clone(), message });
        }
        upload.part(bytes.freeze())?;
        at = end;
    }
    Ok(())
}
