//! Updates of metadata: modes, owners and times, by a metadata convention.
//!
//! For a file with changes that are not uploaded, the new metadata stay in memory and go with the
//! upload. A kill -9 before that loses the metadata, but no bytes. For any other file they are
//! stored at once: the store copies the object onto itself, if it is unchanged. The copy is another
//! object, with another ETag.
//!
//! A written file gets the time of its last write, unless a program set another time since then. A
//! file that was streamed keeps the time at which the stream started.

use super::open_object::{KeyState, State};
use super::{Handle, OpenMode, Writing};
use crate::journal::WriteId;
use crate::origin::posix::{Posix, is_too_much};
use crate::{BucketError, Condition, Object, ObjectMetadata, WriteMetadata};
use bytes::Bytes;
use ogive_origin::{Errno, Result};
use std::sync::Arc;

impl State {
    /// The metadata of the next upload.
    pub(super) fn metadata_to_store(&self) -> Option<Arc<ObjectMetadata>> {
        let new_metadata = self.new_metadata.clone().or_else(|| self.kept());
        if !self.convention.is_on() || self.has_time || !self.is_changed() {
            return new_metadata;
        }
        let before = new_metadata.unwrap_or_default();
        let posix = Posix { modified: Some(self.modified), ..Posix::default() };
        Some(Arc::new(self.convention.write(&before, &posix, false)))
    }

    /// Whether the metadata in the store differ from the new ones.
    fn differs(&self) -> bool {
        let (Some(new_metadata), Some(object)) = (&self.new_metadata, &self.object) else {
            return false;
        };
        let read = |kept: &ObjectMetadata| {
            let found = self.convention.read(kept);
            let modified = found.modified.filter(|_| self.has_time);
            Posix { modified, accessed: None, changed: None, ..found }
        };
        object.kept.as_deref().map(read) != Some(read(new_metadata))
    }
}

impl Handle {
    /// Updates the metadata, in the store at once or with the next upload.
    ///
    /// # Errors
    /// `ENOSPC` if the metadata are larger than a store accepts; `ESTALE` if another client changed
    /// the object.
    pub(in crate::origin) fn update_metadata(&self, posix: &Posix) -> Result<()> {
        {
            let mut state = self.object().state();
            let before = state.metadata_to_store().unwrap_or_default();
            let new_metadata = state.convention.write(&before, posix, false);
            if is_too_much(&new_metadata) {
                return Err(Errno::NOSPC);
            }
            let new_metadata = Arc::new(new_metadata);
            state.new_metadata = Some(Arc::clone(&new_metadata));
            state.has_time |= posix.modified.is_some();
            if state.is_changed() {
                if let Some(staged) = &state.staged {
                    staged.keep(Some(new_metadata));
                }
                return Ok(());
            }
        }
        self.write_metadata()
    }

    /// Stores metadata that were set while the file was being uploaded.
    pub(super) fn settle_metadata(&self) -> Result<()> {
        let differs = {
            let mut state = self.object().state();
            let differs = !state.is_changed() && state.differs();
            if !differs && !state.is_changed() {
                state.new_metadata = None;
            }
            differs
        };
        if differs { self.write_metadata() } else { Ok(()) }
    }

    /// Copies the object onto itself, with the new metadata.
    fn write_metadata(&self) -> Result<()> {
        let object = self.object();
        let _gate = object.gate.write();
        self.settle();
        let (key, there, kept) = {
            let state = object.state();
            if state.is_changed() || state.key_state == KeyState::Removed {
                return Ok(());
            }
            let there = state.object.clone().ok_or(Errno::STALE)?;
            (Arc::clone(&state.key), there, state.new_metadata.clone())
        };
        let source = Object { key: key.to_string(), kept, ..there.clone() };
        let there = Object { key: key.to_string(), ..there };
        let made = self.writing().copy(&source, &key, Some(&there));
        self.writing().listings.invalidate_directory_of(&key);
        let made = made?;
        let mut state = object.state();
        state.object = Some(made);
        state.uploads += 1;
        (state.new_metadata, state.has_time) = (None, false);
        Ok(())
    }
}

impl Writing {
    /// Updates the metadata of the file under a key.
    ///
    /// # Errors
    /// As [`Handle::update_metadata`].
    pub(in crate::origin) fn update_metadata(
        self: &Arc<Self>,
        key: &str,
        posix: &Posix,
    ) -> Result<Handle> {
        let handle = self.open(key, OpenMode::default())?;
        handle.update_metadata(posix)?;
        Ok(handle)
    }

    /// Creates an object at once, if the key is free.
    ///
    /// # Errors
    /// `EEXIST`.
    pub(in crate::origin) fn make_object(
        &self,
        key: &str,
        bytes: Bytes,
        kept: &ObjectMetadata,
    ) -> Result<Object> {
        let mut log = [0; 16];
        getrandom::fill(&mut log).map_err(|_| Errno::IO)?;
        let mark = WriteId { log, through: 1 }.to_string();
        let beside = WriteMetadata::marked(&mark).with(Some(kept));
        let made = self.bucket.put(key, bytes, &Condition::Absent, beside);
        self.listings.invalidate_directory_of(key);
        match made {
            Ok(_) => self.head(key)?.ok_or(Errno::STALE),
            Err(BucketError::ConditionFailed { .. }) => Err(Errno::EXIST),
            Err(error) => Err(self.messages.errno(&error)),
        }
    }
}
