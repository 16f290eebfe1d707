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

/// Why a staged file could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StagedError {
    /// The journal refuses.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The store refuses. What was written is in the journal still.
    #[error(transparent)]
    Bucket(#[from] BucketError),
    /// Another client changed the object first.
    #[error(
        "{key} was changed by somebody else, whose bytes stay; what was written here is in \
         conflicts/ of the staging journal"
    )]
    Conflict {
        /// The object.
        key: String,
    },
    /// A write that was done in part.
    #[error("after {written} bytes: {error}")]
    Short {
        /// How many bytes, from the first, were written.
        written: usize,
        /// Why not more.
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
    /// A foreign object is there, or none.
    Conflict,
    /// Nothing has happened, and nothing is in its way: it may go well the next time.
    Again(BucketError),
}

/// The condition of an upload.
pub(super) fn condition(base: &Base) -> Condition {
    match base {
        Base::New => Condition::Absent,
        Base::Object { etag, .. } => Condition::Matches(ETag::new(etag)),
    }
}

/// What a store cannot promise for a change of such an object, in parts or in one request.
pub fn refusal(promises: &Promises, base: &Base, in_parts: bool) -> Option<BucketError> {
    let (is_kept, what) = match (base, in_parts) {
        (Base::New, false) => (promises.create, "create an object only where there is none"),
        (Base::New, true) => {
            (promises.upload_create, "create an object in parts only where there is none")
        }
        (Base::Object { .. }, false) => {
            (promises.overwrite, "overwrite an object only if nobody else has changed it")
        }
        (Base::Object { .. }, true) => (
            promises.upload_overwrite,
            "overwrite an object in parts only if nobody else has changed it",
        ),
    };
    (!is_kept).then_some(BucketError::Unsupported { what })
}

/// An upload of what a file was at one of its changes.
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
        let too_large = BucketError::Unsupported { what: "take an object of that size" };
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
                // In one request after all, if it can be had in memory.
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

    /// Bytes of a file that may be in memory at once while it goes up.
    fn memory_bytes(&self, plan: &Plan) -> u64 {
        let size = self.snapshot.state().size();
        let Plan::Parts(parts) = plan else { return size };
        let length = |part: &Part| match part {
            Part::Send(range) => range.end - range.start,
            // Some stores have it sent again.
            Part::Copy(_) => self.limits.part_bytes,
        };
        let longest = parts.iter().map(length).max().unwrap_or(0);
        size.min(longest.saturating_mul(PARTS_IN_MEMORY))
    }

    /// Completes an upload of which the first bytes, up to `sent`, are with the store.
    pub(super) fn finish(&self, stream: Stream, sent: u64) -> Result<Outcome, StagedError> {
        let size = self.snapshot.state().size();
        let left = size.saturating_sub(sent).div_ceil(stream.part_bytes);
        if left.saturating_add(stream.parts as u64) > self.limits.parts_max as u64 {
            // It had no memory for longer parts.
            drop(stream);
            return self.run();
        }
        // Its memory goes when it has ended.
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
                // Nothing of it shows; the error that counts is the first.
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

    /// The ranges that differ from the object that is changed.
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

    /// The object that is changed, to be copied from.
    fn base_object(&self) -> Object {
        let state = self.snapshot.state();
        base_object(state.key(), state.base())
    }

    /// Finds out what became of an upload.
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

    /// Asks the store what is there, after an answer that may mean anything.
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
            // What was to be there is there: a condition that failed, or an upload that is gone, was
            // in the way of another request.
            Found::Base(_) if is_condition || matches!(error, BucketError::Again { .. }) => {
                let (key, message) = (self.snapshot.state().key().to_owned(), error.to_string());
                Ok(Outcome::Again(BucketError::Again { key, message }))
            }
            // Nothing has happened: the caller may try again.
            Found::Base(_) => Err(error.into()),
        }
    }
}

/// The object under the key of a file.
#[derive(Debug)]
pub(super) enum Found {
    /// The object that is changed, with what is beside it, or none as there was none.
    Base(Option<Arc<ObjectMetadata>>),
    /// One that holds our changes up to this one.
    Ours(u64, Base),
    /// A foreign one, or none any more.
    Foreign,
}

/// Asks the store what is there under the key of a file; our changes have ids up to `latest`.
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

/// An object of which changes can be made.
fn holding(object: &Object) -> Result<Base, BucketError> {
    let what = "name its objects with ETags, without which nobody's change can be noticed";
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

/// Bytes of a file, of which the store has those that did not change.
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
            let message = "the object is shorter than the store said".to_owned();
            return Err(BucketError::Failed { key: state.key().to_owned(), message }.into());
        }
        Ok(())
    };
    snapshot.read(range.start, &mut bytes, &mut base)?;
    Ok(bytes.into())
}
