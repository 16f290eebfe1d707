//! Renames of directories: each key below a prefix is copied, then the old ones are deleted.
//!
//! The journal has all keys before the first copy. Until all are copied, a failure undoes the
//! copies; after a kill the next mount does. From then on the rename is finished, over several
//! mounts if necessary. So a directory is never split for good, though other clients may see both
//! halves meanwhile. A directory with too many keys is refused with `EXDEV`, and mv(1) copies it.
//!
//! A store may refuse to delete an old name, for example because of a snapshot or a missing
//! permission. If it refuses the first one, the rename is undone. If it refuses a later one, that
//! name stays and its copy is removed; the other names are renamed, and the rename fails.
//!
//! A rename deletes only objects that it copied. An object that another client changed since the
//! listing stays, and is reported. If the store ignores the condition of a deletion, the object is
//! checked right before; a write in between is lost.
//!
//! The caller uploads changed files first.

use super::upload::StagedError;
use crate::journal::{Journal, RenameKey, RenameLog, WriteId};
use crate::{
    Bucket, BucketError, Condition, CopyRequest, ETag, Entry, Listing, Object, ObjectMetadata,
    WriteMetadata,
};
use ogive_origin::{Errno, Time};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The default for how many keys a directory may have to be renamed.
pub const RENAME_MAX: usize = 1000;

/// Why a directory was not renamed.
#[derive(Debug, thiserror::Error)]
pub enum RenameError {
    /// It has more keys than allowed.
    #[error("{from} has more than {max} keys, and stores cannot rename: copy it instead")]
    TooMany {
        /// The directory's prefix.
        from: String,
        /// How many are allowed.
        max: usize,
    },
    /// The target is not empty.
    #[error("{0} is not empty")]
    NotEmpty(String),
    /// The target is inside the source.
    #[error("{0} cannot be moved into itself")]
    Within(String),
    /// The store refuses to delete old names. Their copies are removed.
    #[error("{error}; {kept} of {all} names were not renamed")]
    Kept {
        /// The store's answer for the first of them.
        error: BucketError,
        /// How many were not renamed; all, if the store refused the first.
        kept: usize,
        /// How many names the directory has.
        all: usize,
    },
    /// The store or the journal refuses.
    #[error(transparent)]
    Staged(#[from] StagedError),
}

impl RenameError {
    /// The errno for a program.
    pub fn errno(&self) -> Errno {
        match self {
            Self::TooMany { .. } => Errno::XDEV,
            Self::NotEmpty(_) => Errno::NOTEMPTY,
            Self::Within(_) => Errno::INVAL,
            Self::Kept { error, .. } => error.errno(),
            Self::Staged(error) => error.errno(),
        }
    }
}

impl From<BucketError> for RenameError {
    fn from(error: BucketError) -> Self {
        Self::Staged(error.into())
    }
}

/// The outcome of a rename.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Renamed {
    /// How many objects were renamed; 0 if the rename was undone.
    pub moved: usize,
    /// Old keys that stay because another client changed them.
    pub left: Vec<String>,
}

/// Renames a directory. `from` and `to` are prefixes with their slashes. `to` may exist only as a
/// marker.
///
/// # Errors
/// [`RenameError`]. Nothing is renamed then, unless the error came after the last copy: then the
/// rename is in the journal, and [`resume_rename`] finishes it at the next mount.
pub fn rename_directory(
    bucket: &dyn Bucket,
    journal: &Journal,
    (from, to): (&str, &str),
    max: usize,
) -> Result<Renamed, RenameError> {
    if to.starts_with(from) {
        return Err(RenameError::Within(from.to_owned()));
    }
    let keys = keys_below(bucket, from, max)?;
    let before = below(bucket, to)?;
    if before == Below::More {
        return Err(RenameError::NotEmpty(to.to_owned()));
    }
    // The new key may be too long though the old one is not.
    for key in &keys {
        bucket.key_rules().creatable(&format!("{to}{}", key.rest))?;
    }
    let beside = look_at_all(bucket, from, &keys)?;
    let mut log = journal.log_rename((from, to), keys).map_err(StagedError::from)?;
    let copied = copy_all(bucket, &log, &beside)
        .and_then(|()| log.copied().map_err(|error| StagedError::from(error).into()));
    let (renamed, is_taken_back) = match copied {
        Ok(()) => {
            let renamed = finish(bucket, log);
            let is_taken_back =
                matches!(&renamed, Err(RenameError::Kept { kept, all, .. }) if kept == all);
            (renamed, is_taken_back)
        }
        Err(error) => {
            // If this fails as well, the next mount repeats it.
            let taken = take_back(bucket, &log).and_then(|()| ended(log));
            (Err(error), taken.is_ok())
        }
    };
    // Stores keep no mark with a directory marker, so it is not found among the copies.
    if is_taken_back && before == Below::Nothing && matches!(below(bucket, to), Ok(Below::Marker)) {
        let _ = bucket.delete(to, None);
    }
    renamed
}

/// Finishes or undoes a rename that an earlier mount started.
///
/// # Errors
/// [`RenameError::Staged`]: the rename stays in the journal. [`RenameError::Kept`]: it has ended.
pub fn resume_rename(bucket: &dyn Bucket, log: RenameLog) -> Result<Renamed, RenameError> {
    if log.state().is_copied {
        return finish(bucket, log);
    }
    take_back(bucket, &log)?;
    ended(log).map(|()| Renamed::default())
}

fn ended(log: RenameLog) -> Result<(), RenameError> {
    log.end().map_err(|error| StagedError::from(error).into())
}

/// The metadata of all objects, which listings do not include. Fails before the first copy if an
/// object cannot be renamed.
fn look_at_all(
    bucket: &dyn Bucket,
    from: &str,
    keys: &[RenameKey],
) -> Result<Vec<Option<Arc<ObjectMetadata>>>, BucketError> {
    let look_at = |key: &RenameKey| {
        let Some(found) = look(bucket, &format!("{from}{}", key.rest))? else { return Ok(None) };
        found.check_rewritable()?;
        found.check_free()?;
        Ok(found.kept)
    };
    keys.iter().map(look_at).collect()
}

/// The keys below a prefix.
fn keys_below(
    bucket: &dyn Bucket,
    prefix: &str,
    max: usize,
) -> Result<Vec<RenameKey>, RenameError> {
    let mut keys = Vec::new();
    let mut trouble = None;
    let page = max.saturating_add(1).min(1000);
    bucket.list(&Listing { prefix, delimited: false, page }, &mut |entry| {
        let Entry::Object(object) = entry else { return ControlFlow::Continue(()) };
        let (rest, etag) = (object.key.strip_prefix(prefix), object.etag);
        trouble = match (rest, etag) {
            _ if keys.len() == max => Some(RenameError::TooMany { from: prefix.to_owned(), max }),
            (Some(rest), Some(etag)) => {
                let (rest, etag) = (rest.to_owned(), etag.as_str().to_owned());
                keys.push(RenameKey { rest, etag, size: object.size_bytes });
                None
            }
            _ => {
                let what = "give its objects ETags, without which they cannot be renamed safely";
                Some(BucketError::Unsupported { what }.into())
            }
        };
        if trouble.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    trouble.map_or(Ok(keys), Err)
}

/// The objects below a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Below {
    Nothing,
    /// The marker of the directory itself.
    Marker,
    More,
}

fn below(bucket: &dyn Bucket, prefix: &str) -> Result<Below, BucketError> {
    let mut found = Below::Nothing;
    bucket.list(&Listing { prefix, delimited: false, page: 2 }, &mut |entry| {
        found = if entry.key() == prefix { Below::Marker } else { Below::More };
        if found == Below::More { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(found)
}

fn source(log: &RenameLog, key: &RenameKey) -> Object {
    Object {
        key: format!("{}{}", log.state().from, key.rest),
        size_bytes: key.size,
        etag: Some(ETag::new(&key.etag)),
        modified: Time { seconds: 0, nanoseconds: 0 },
        mark: None,
        kept: None,
    }
}

fn target(log: &RenameLog, key: &RenameKey) -> String {
    format!("{}{}", log.state().to, key.rest)
}

/// The object under a key, if there is one.
fn look(bucket: &dyn Bucket, key: &str) -> Result<Option<Object>, BucketError> {
    match bucket.head(key) {
        Ok(object) => Ok(Some(object)),
        Err(BucketError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_marked(object: &Object, mark: WriteId) -> bool {
    object.mark.as_deref().and_then(WriteId::parse) == Some(mark)
}

fn copy_all(
    bucket: &dyn Bucket,
    log: &RenameLog,
    beside: &[Option<Arc<ObjectMetadata>>],
) -> Result<(), RenameError> {
    for (number, (key, kept)) in log.state().keys.iter().zip(beside).enumerate() {
        let (to, mark) = (target(log, key), log.mark(number));
        // All directory markers are equal, so this copy needs no condition.
        let condition = if key.rest.is_empty() { Condition::None } else { Condition::Absent };
        let from = source(log, key);
        let mark_text = mark.to_string();
        let beside = WriteMetadata::marked(&mark_text).with(kept.as_deref());
        match bucket.copy(CopyRequest { source: &from, target: &to, condition: &condition, beside })
        {
            Ok(_) => {}
            Err(error) if error.is_in_doubt() => {
                if !look(bucket, &to)?.is_some_and(|object| is_marked(&object, mark)) {
                    return Err(error.into());
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Deletes the old names, and ends the rename.
fn finish(bucket: &dyn Bucket, log: RenameLog) -> Result<Renamed, RenameError> {
    let all = log.state().keys.len();
    let mut renamed = Renamed { moved: all, left: Vec::new() };
    let (mut deleted, mut kept, mut refusal) = (0, Vec::new(), None);
    for (number, key) in log.state().keys.iter().enumerate() {
        let old = source(&log, key);
        match delete(bucket, &old) {
            Ok(()) | Err(BucketError::NotFound { .. }) => deleted += 1,
            // The object is gone, or another client replaced it.
            Err(BucketError::ConditionFailed { .. }) => match look(bucket, &old.key)? {
                Some(_) => renamed.left.push(old.key),
                None => deleted += 1,
            },
            Err(error) if error.is_in_doubt() => return Err(error.into()),
            Err(error) => {
                refusal.get_or_insert(error);
                kept.push(number);
                if deleted == 0 {
                    kept = (0..all).collect();
                    break;
                }
            }
        }
    }
    let Some(error) = refusal else { return ended(log).map(|()| renamed) };
    // End the log before the copies are removed: with the log, the next mount would delete the
    // originals of the copies. If this is interrupted, copies stay and nothing is lost.
    let copies = copies(&log, kept.iter().copied());
    ended(log)?;
    for copy in copies {
        take_away(bucket, &copy)?;
    }
    Err(RenameError::Kept { error, kept: kept.len(), all })
}

/// Deletes an object if it is unchanged. If the store ignores the condition of a deletion, the
/// object is checked right before.
pub(crate) fn delete(bucket: &dyn Bucket, object: &Object) -> Result<(), BucketError> {
    // A directory marker has no contents to lose.
    let is_marker = object.key.ends_with('/');
    if !bucket.promises().delete
        && !is_marker
        && look(bucket, &object.key)?.is_none_or(|found| found.etag != object.etag)
    {
        return Err(BucketError::ConditionFailed { key: object.key.clone() });
    }
    bucket.delete(&object.key, object.etag.as_ref().filter(|_| !is_marker))
}

/// A copy, and its original.
struct Copy {
    from: String,
    to: String,
    mark: WriteId,
}

fn copies(log: &RenameLog, numbers: impl Iterator<Item = usize>) -> Vec<Copy> {
    let copy = |number: usize| {
        let key = &log.state().keys[number];
        Copy { from: source(log, key).key, to: target(log, key), mark: log.mark(number) }
    };
    numbers.map(copy).collect()
}

/// Deletes a copy if its original still exists.
fn take_away(bucket: &dyn Bucket, Copy { from, to, mark }: &Copy) -> Result<(), BucketError> {
    let Some(copy) = look(bucket, to)?.filter(|copy| is_marked(copy, *mark)) else { return Ok(()) };
    if look(bucket, from)?.is_none() {
        return Ok(());
    }
    match delete(bucket, &copy) {
        // Another client has changed the copy, so it stays.
        Err(BucketError::ConditionFailed { .. } | BucketError::NotFound { .. }) => Ok(()),
        deleted => deleted,
    }
}

/// Deletes all copies.
fn take_back(bucket: &dyn Bucket, log: &RenameLog) -> Result<(), RenameError> {
    for copy in copies(log, 0..log.state().keys.len()) {
        take_away(bucket, &copy)?;
    }
    Ok(())
}
