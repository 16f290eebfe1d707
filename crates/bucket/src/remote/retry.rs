//! Retries of operations that take several requests, or whose request may have been sent twice.
//!
//! A copy is a multipart upload. If the store asks for it, the copy is repeated, as long as its
//! source and its target are unchanged. A deletion that is sent twice finds nothing the second
//! time: a missing object counts as deleted.

use super::fetching::pause;
use super::{RETRIES, RemoteBucket, Shared};
use crate::{Bucket as _, BucketError, Condition, CopyRequest, ETag, Object, Result};

/// Whether nothing was done, and a repetition may succeed.
fn may_be_repeated(error: &BucketError) -> bool {
    matches!(error, BucketError::Again { .. } | BucketError::ConditionFailed { .. })
}

impl Shared {
    /// The object under a key, if there is one.
    fn look(&self, key: &str) -> Result<Option<Object>> {
        match self.head(key) {
            Ok(found) => Ok(Some(found)),
            Err(BucketError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether a copy may succeed, given the objects under both keys.
    fn may_copy(&self, copy: CopyRequest<'_>) -> Result<bool> {
        let CopyRequest { source, target, condition, .. } = copy;
        let there = self.look(target)?;
        let holds = match condition {
            Condition::None => true,
            Condition::Absent => there.is_none(),
            Condition::Matches(etag) => {
                there.is_some_and(|there| there.etag.as_ref() == Some(etag))
            }
        };
        Ok(holds && self.look(&source.key)?.is_some_and(|found| found.etag == source.etag))
    }
}

impl RemoteBucket {
    /// Copies an object in parts, and repeats that if the store asks for it.
    pub(super) fn copy_with_retries(&self, copy: CopyRequest<'_>) -> Result<Object> {
        let mut tries = 0;
        loop {
            let error = match self.copy_in_parts(copy) {
                Err(error) if may_be_repeated(&error) && tries < RETRIES => error,
                done => return done,
            };
            if !self.shared.may_copy(copy)? {
                return Err(error);
            }
            log::info!("repeating a copy: {error}");
            std::thread::sleep(pause(tries));
            tries += 1;
        }
    }

    fn copy_in_parts(&self, copy: CopyRequest<'_>) -> Result<Object> {
        let CopyRequest { source, target, condition, beside } = copy;
        let mut upload = self.upload(target, condition, beside)?;
        match upload.copy_part(source, 0..source.size_bytes) {
            Ok(()) => upload.complete(),
            Err(error) => {
                // The first error is returned.
                let _ = upload.abort();
                Err(error)
            }
        }
    }

    /// Deletes an object, even if the request was sent twice.
    pub(super) fn delete_with_retries(&self, key: &str, expected: Option<&ETag>) -> Result<()> {
        let shared = &self.shared;
        let options = shared.kind.deleting(expected);
        let deleted =
            shared.wait(key, shared.operator.delete_options(shared.sendable(key)?, options));
        let Err(error) = deleted else { return Ok(()) };
        let is_open = error.is_in_doubt() || may_be_repeated(&error);
        match is_open && matches!(shared.look(key), Ok(None)) {
            true => Ok(()),
            false => Err(error),
        }
    }
}
