//! One upload of a snapshot, and its outcome.

use super::file::{Options, Stream};
use super::plan::{Limits, Part, Plan};
use super::uploads::PARTS_IN_MEMORY;
use crate::journal::{Base, JournalError, Snapshot, Span, WriteId};
use crate::{
    Bucket, BucketError, Condition, ETag, Object, ObjectMetadata, Promises, WriteMetadata,
};
use bytes::Bytes;
use ogive_origin::{Errno, Time};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Why an operation of a staged file failed.
#[derive(Debug, thiserror::Error)]
pub enum StagedError {
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The store failed. The changes are still in the journal.
    #[error(transparent)]
    Bucket(#[from] BucketError),
    /// Another client changed the object first.
    #[error(
        "{key} was changed by another client, whose version stays; the local changes are in \
         conflicts/ of the staging journal"
    )]
    Conflict {
        /// The object.
        key: String,
    },
    /// A write that was done only in part.
    #[error("after {written} bytes: {error}")]
    Short {
        /// How many bytes were written, from the first.
        written: usize,
        /// Why not all.
        error: JournalError,
    },
}

impl StagedError {
    /// The errno for a program.
    pub fn errno(&self) -> Errno {
        match self {
            Self::Journal(error) | Self::Short { error, .. } => error.errno(),
            Self::Bucket(error) => error.errno(),
            Self::Conflict { .. } => Errno::STALE,
        }
    }
}

/// The outcome of an upload.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The object holds all changes up to one.
    Holds(u64, Base),
    /// The key holds a foreign object, or none.
    Conflict,
    /// The upload did not happen, and may succeed if it is repeated.
    Again(BucketError),
}

/// The condition of an upload.
pub(super) fn condition(base: &Base) -> Condition {
    match base {
        Base::New => Condition::Absent,
        Base::Object { etag, .. } => Condition::Matches(ETag::new(etag)),
    }
}

/// The promise that the store lacks for such an upload, as an error.
pub fn refusal(promises: &Promises, base: &Base, in_parts: bool) -> Option<BucketError> {
    let (is_kept, what) = match (base, in_parts) {
        (Base::New, false) => (promises.create, "create an object only if the key is free"),
        (Base::New, true) => {
            (promises.upload_create, "create an object in parts only if the key is free")
        }
        (Base::Object { .. }, false) => {
            (promises.overwrite, "overwrite an object only if it is unchanged")
        }
        (Base::Object { .. }, true) => {
            (promises.upload_overwrite, "overwrite an object in parts only if it is unchanged")
        }
    };
    (!is_kept).then_some(BucketError::Unsupported { what })
}

/// An upload of the file as of one revision.
pub(super) struct Attempt<'a> {
    pub(super) bucket: &'a dyn Bucket,
    pub(super) options: &'a Options,
    /// The limits of the store, as far as they are known.
    pub(super) limits: Limits,
    pub(super) snapshot: &'a Snapshot,
    /// The mark of the object: the snapshot's, or that of the stream.
    pub(super) id: WriteId,
    /// Its other metadata.
    pub(super) kept: Option<&'a ObjectMetadata>,
}

impl Attempt<'_> {
    /// Uploads the snapshot.
    pub(super) fn run(&self) -> Result<Outcome, StagedError> {
        let state = self.snapshot.state();
        let (size, base) = (state.size(), state.base());
        let too_large = BucketError::Unsupported { what: "store an object of that size" };
        let plan = self.limits.plan(size, &self.changed()).ok_or(too_large)?;
        let _memory = self.options.uploads.take(self.memory_bytes(&plan));
        let promises = self.bucket.promises();
        let refused = |in_parts| {
            let refusal = refusal(&promises, base, in_parts);
            if self.options.is_only_writer { None } else { refusal }
        };
        let done = match plan {
            Plan::Put => {
                refused(false).map_or(Ok(()), Err)?;
                self.put()
            }
            Plan::Parts(parts) => match refused(true) {
                None => self.send(&parts),
                // Fall back to one request, if the file fits in memory.
                Some(_)
                    if size <= self.options.put_instead_max_bytes && refused(false).is_none() =>
                {
                    self.put()
                }
                Some(error) => return Err(error.into()),
            },
        };
        self.settle(done)
    }

    /// How many bytes of the file may be in memory at once during its upload.
    fn memory_bytes(&self, plan: &Plan) -> u64 {
        let size = self.snapshot.state().size();
        let Plan::Parts(parts) = plan else { return size };
        let length = |part: &Part| match part {
            Part::Send(range) => range.end - range.start,
            // For some stores the client reads and sends copied ranges.
            Part::Copy(_) => self.limits.part_bytes,
        };
        let longest = parts.iter().map(length).max().unwrap_or(0);
        size.min(longest.saturating_mul(PARTS_IN_MEMORY))
    }

    /// Completes a stream that has sent all bytes before `sent`.
    pub(super) fn finish(&self, stream: Stream, sent: u64) -> Result<Outcome, StagedError> {
        let size = self.snapshot.state().size();
        let left = size.saturating_sub(sent).div_ceil(stream.part_bytes);
        if left.saturating_add(stream.parts as u64) > self.limits.parts_max as u64 {
            // The stream had no memory for longer parts.
            drop(stream);
            return self.run();
        }
        // The memory is released at the end of the upload.
        let Stream { mut upload, part_bytes, memory: _memory, .. } = stream;
        let mut complete = || {
            let mut at = sent;
            while at < size {
                let end = size.min(at.saturating_add(part_bytes));
                upload.part(self.bytes(at..end)?)?;
                at = end;
            }
            Ok::<_, StagedError>(())
        };
        let done = match complete() {
            Ok(()) => upload.complete().map_err(StagedError::from),
            Err(error) => {
                // An aborted upload leaves no object. The first error is returned.
                let _ = upload.abort();
                Err(error)
            }
        };
        self.settle(done)
    }

    fn put(&self) -> Result<Object, StagedError> {
        let state = self.snapshot.state();
        let body = self.bytes(0..state.size())?;
        let (condition, mark) = (condition(state.base()), self.id.to_string());
        let beside = WriteMetadata::marked(&mark).with(self.kept);
        Ok(self.bucket.put(state.key(), body, &condition, beside)?)
    }

    fn send(&self, parts: &[Part]) -> Result<Object, StagedError> {
        let state = self.snapshot.state();
        let (condition, mark) = (condition(state.base()), self.id.to_string());
        let beside = WriteMetadata::marked(&mark).with(self.kept);
        let mut upload = self.bucket.upload(state.key(), &condition, beside)?;
        for part in parts {
            let done = match part {
                Part::Send(range) => self
                    .bytes(range.clone())
                    .and_then(|bytes| upload.part(bytes).map_err(StagedError::from)),
                Part::Copy(range) => {
                    upload.copy_part(&self.base_object(), range.clone()).map_err(StagedError::from)
                }
            };
            if let Err(error) = done {
                let _ = upload.abort();
                return Err(error);
            }
        }
        Ok(upload.complete()?)
    }

    /// The ranges that differ from the base object.
    fn changed(&self) -> Vec<Range<u64>> {
        let mut changed: Vec<Range<u64>> = Vec::new();
        let mut at = 0;
        for span in self.snapshot.spans(0..self.snapshot.state().size()) {
            let end = at + span.bytes();
            if !matches!(span, Span::Base(_)) {
                match changed.last_mut() {
                    Some(last) if last.end == at => last.end = end,
                    _ => changed.push(at..end),
                }
            }
            at = end;
        }
        changed
    }

    /// Bytes of the file.
    fn bytes(&self, range: Range<u64>) -> Result<Bytes, StagedError> {
        read(self.bucket, self.snapshot, range)
    }

    /// The base object, as the source of copies.
    fn base_object(&self) -> Object {
        let state = self.snapshot.state();
        base_object(state.key(), state.base())
    }

    /// Finds out the outcome of an upload.
    fn settle(&self, done: Result<Object, StagedError>) -> Result<Outcome, StagedError> {
        let object = match done {
            Ok(object) if object.etag.is_some() => {
                return Ok(Outcome::Holds(self.id.through, holding(&object)?));
            }
            Ok(object) => match self.bucket.head(&object.key) {
                Ok(object) => object,
                Err(error) => return self.look(error),
            },
            Err(StagedError::Bucket(error)) => return self.look(error),
            Err(error) => return Err(error),
        };
        Ok(Outcome::Holds(self.id.through, holding(&object)?))
    }

    /// Asks the store for its object after an ambiguous answer.
    fn look(&self, error: BucketError) -> Result<Outcome, StagedError> {
        if matches!(error, BucketError::UnevenParts { .. }) && !self.limits.are_even {
            self.options.uploads.want_even_parts();
            return Ok(Outcome::Again(error));
        }
        let is_condition =
            matches!(error, BucketError::ConditionFailed { .. } | BucketError::NotFound { .. });
        if !is_condition && !error.is_in_doubt() {
            return Err(error.into());
        }
        match found(self.bucket, self.snapshot, self.id)? {
            Found::Ours(through, base) => Ok(Outcome::Holds(through, base)),
            Found::Foreign => Ok(Outcome::Conflict),
            // The base object is still there: the condition failed for another request, or the
            // multipart upload is gone.
            Found::Base(_) if is_condition || matches!(error, BucketError::Again { .. }) => {
                let (key, message) = (self.snapshot.state().key().to_owned(), error.to_string());
                Ok(Outcome::Again(BucketError::Again { key, message }))
            }
            // Nothing has happened: the caller may retry.
            Found::Base(_) => Err(error.into()),
        }
    }
}

/// Which object the store has under the key of a file.
#[derive(Debug)]
pub(super) enum Found {
    /// The base, with its metadata; or none, if there was none.
    Base(Option<Arc<ObjectMetadata>>),
    /// One with our changes up to this revision.
    Ours(u64, Base),
    /// A foreign one; or none, though there was one.
    Foreign,
}

/// Asks the store for the object under the key of a file. Ids up to `latest` are ours.
pub(super) fn found(
    bucket: &dyn Bucket,
    snapshot: &Snapshot,
    latest: WriteId,
) -> Result<Found, StagedError> {
    let state = snapshot.state();
    let object = match bucket.head(state.key()) {
        Ok(object) => object,
        Err(BucketError::NotFound { .. }) if *state.base() == Base::New => {
            return Ok(Found::Base(None));
        }
        Err(BucketError::NotFound { .. }) => return Ok(Found::Foreign),
        Err(error) => return Err(error.into()),
    };
    if let Base::Object { etag, .. } = state.base()
        && object.etag.as_ref().is_some_and(|found| found.as_str() == etag)
    {
        return Ok(Found::Base(object.kept));
    }
    let id = object.mark.as_deref().and_then(WriteId::parse);
    match id.filter(|id| id.log == latest.log && id.through <= latest.through) {
        Some(id) => Ok(Found::Ours(id.through, holding(&object)?)),
        None => Ok(Found::Foreign),
    }
}

/// The base that this object is for later changes.
fn holding(object: &Object) -> Result<Base, BucketError> {
    let what = "give its objects ETags, without which changes by other clients go unnoticed";
    let etag = object.etag.as_ref().ok_or(BucketError::Unsupported { what })?;
    Ok(Base::Object { etag: etag.as_str().to_owned(), size: object.size_bytes })
}

fn base_object(key: &str, base: &Base) -> Object {
    let etag = match base {
        Base::New => None,
        Base::Object { etag, .. } => Some(ETag::new(etag)),
    };
    let modified = Time { seconds: 0, nanoseconds: 0 };
    let key = key.to_owned();
    Object { key, size_bytes: base.size(), etag, modified, mark: None, kept: None }
}

/// Reads a range of a file; unchanged bytes come from the store.
pub(super) fn read(
    bucket: &dyn Bucket,
    snapshot: &Snapshot,
    range: Range<u64>,
) -> Result<Bytes, StagedError> {
    let state = snapshot.state();
    let end = range.end.min(state.size());
    let mut bytes = vec![0; end.saturating_sub(range.start) as usize];
    let etag = match state.base() {
        Base::New => None,
        Base::Object { etag, .. } => Some(ETag::new(etag)),
    };
    let mut base = |at: u64, part: &mut [u8]| -> Result<(), StagedError> {
        let mut filled = 0;
        let range = at..at + part.len() as u64;
        bucket.get(state.key(), range, etag.as_ref(), &mut |piece| {
            let count = piece.len().min(part.len() - filled);
            part[filled..filled + count].copy_from_slice(&piece[..count]);
            filled += count;
            ControlFlow::Continue(())
        })?;
        if filled < part.len() {
            let message = "the object is shorter than the store reported".to_owned();
            return Err(BucketError::Failed { key: state.key().to_owned(), message }.into());
        }
        Ok(())
    };
    snapshot.read(range.start, &mut bytes, &mut base)?;
    Ok(bytes.into())
}
