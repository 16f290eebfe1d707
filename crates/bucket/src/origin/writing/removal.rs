//! Creating and removing directories, and removing files.
//!
//! In a store a directory vanishes with its last object, and a program may still have it as its
//! working directory. So before the last object of a directory is removed, the directory gets a
//! marker.

use super::Writing;
use super::open_object::{KeyState, OpenObject};
use crate::journal::WriteId;
use crate::keys;
use crate::staged::delete_if_same;
use crate::{BucketError, Condition, Entry, Listing, Object, WriteMetadata};
use bytes::Bytes;
use ogive_origin::{Errno, Result};
use std::ops::ControlFlow;
use std::sync::Arc;

impl Writing {
    pub(super) fn or_errno<T>(&self, result: crate::Result<T>) -> Result<T> {
        result.map_err(|error| self.messages.errno(&error))
    }

    /// The object under a key.
    pub(super) fn head(&self, key: &str) -> Result<Option<Object>> {
        match self.bucket.head(key) {
            Ok(object) => Ok(Some(object)),
            Err(BucketError::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.messages.errno(&error)),
        }
    }

    /// Creates a directory. The key must be free.
    pub(in crate::origin) fn make_directory(&self, key: &str) -> Result<()> {
        let put = self.bucket.put(key, Bytes::new(), &Condition::None, WriteMetadata::NONE);
        self.or_errno(put)?;
        self.listings.invalidate_directory_of(key);
        Ok(())
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `ENOTEMPTY`; `ENOENT` if it does not exist.
    pub(in crate::origin) fn remove_directory(&self, key: &str) -> Result<()> {
        let (mut is_there, mut is_empty) = (false, true);
        let listing = Listing { prefix: key, delimited: false, page: 2 };
        let listed = self.bucket.list(&listing, &mut |entry| {
            is_there = true;
            is_empty = entry.key() == key;
            if is_empty { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        self.or_errno(listed)?;
        if !is_empty || self.is_changed_below(key) {
            return Err(Errno::NOTEMPTY);
        }
        if !is_there {
            return Err(Errno::NOENT);
        }
        self.keep_directory_of(key)?;
        self.or_errno(self.bucket.delete(key, None))?;
        self.listings.invalidate_directory_of(key);
        Ok(())
    }

    fn is_changed_below(&self, directory: &str) -> bool {
        let table = self.table.lock();
        let mut below = table.iter().filter(|(key, _)| key.starts_with(directory));
        below.any(|(_, known)| known.state().is_changed())
    }

    /// Creates the marker of a key's directory, if the directory has no other keys.
    pub(super) fn keep_directory_of(&self, key: &str) -> Result<()> {
        let (directory, _) = keys::split(key.strip_suffix('/').unwrap_or(key));
        if directory.is_empty() {
            return Ok(());
        }
        let mut has_others = false;
        // A page of two holds the key itself and another one.
        let listing = Listing { prefix: directory, delimited: true, page: 2 };
        let listed = self.bucket.list(&listing, &mut |entry| {
            has_others = match &entry {
                Entry::Object(object) => object.key != key,
                Entry::Prefix(prefix) => prefix != key,
            };
            if has_others { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        self.or_errno(listed)?;
        if has_others { Ok(()) } else { self.make_directory(directory) }
    }

    /// Removes a file.
    ///
    /// # Errors
    /// `ENOENT`; `ESTALE` if another client changed it in the meantime, so that the caller looks it
    /// up again.
    pub(in crate::origin) fn remove(&self, key: &str) -> Result<()> {
        let known = self.open_object(key);
        // The gate waits for an upload in flight.
        let _gate = known.as_ref().map(|known| known.gate.write());
        let changed = known.as_ref().filter(|known| known.state().is_changed());
        match self.head(key)? {
            Some(object) => {
                if changed.is_some_and(|known| !is_of(known, &object)) {
                    return Err(Errno::STALE);
                }
                self.keep_directory_of(key)?;
                match delete_if_same(&*self.bucket, &object) {
                    Ok(()) | Err(BucketError::NotFound { .. }) => {}
                    Err(error) => return Err(self.messages.errno(&error)),
                }
            }
            None if changed.is_some() => {}
            None => return Err(Errno::NOENT),
        }
        self.removed(key);
        self.listings.invalidate_directory_of(key);
        Ok(())
    }

    /// Records that the object under a key lost its name. Its changes are no longer uploaded.
    pub(super) fn removed(&self, key: &str) {
        let Some(known) = self.table.lock().remove(key) else { return };
        let staged = {
            let mut state = known.state();
            state.key_state = KeyState::Removed;
            state.staged.clone()
        };
        if let Some(staged) = staged {
            self.forget(&staged);
        }
    }
}

/// Whether an object is the base of the staged changes, or was made by uploading them.
fn is_of(known: &Arc<OpenObject>, object: &Object) -> bool {
    let state = known.state();
    let Some(staged) = &state.staged else { return true };
    let is_base = staged.base().etag() == object.etag.as_ref().map(crate::ETag::as_str)
        && object.etag.is_some();
    let mark = object.mark.as_deref().and_then(WriteId::parse);
    is_base || mark.is_some_and(|mark| mark.log == staged.log().view_of(0..0).id().log)
}
