//! A handle: one open file of a writable mount.

use super::open_object::{KeyState, OpenObject, Source, State};
use super::{OpenMode, Writing};
use crate::journal::Base;
use crate::origin::posix::Convention;
use crate::staged::{Durable, StagedError, StagedFile, Standing};
use crate::{ETag, Object};
use ogive_origin::{Errno, Result, Time};
use std::sync::Arc;

/// An open file. Its drop closes it.
pub(in crate::origin) struct Handle {
    writing: Arc<Writing>,
    object: Arc<OpenObject>,
    mode: OpenMode,
}

/// The current object of an open file.
pub(in crate::origin) struct Look {
    /// The object to show. It has no ETag while the store has another object.
    pub(in crate::origin) object: Object,
    /// Whether the bytes may have been changed through this mount since the open.
    pub(in crate::origin) is_changing: bool,
}

impl Handle {
    /// For an object whose use was counted already.
    pub(super) fn new(writing: &Arc<Writing>, object: Arc<OpenObject>, mode: OpenMode) -> Self {
        Self { writing: Arc::clone(writing), object, mode }
    }

    /// The same; truncates the file if the mode says so.
    pub(super) fn cut(
        writing: &Arc<Writing>,
        object: &Arc<OpenObject>,
        mode: OpenMode,
    ) -> Result<Self> {
        let handle = Self::new(writing, Arc::clone(object), mode);
        if mode.truncates {
            handle.resize(0)?;
        }
        Ok(handle)
    }

    pub(super) fn writing(&self) -> &Arc<Writing> {
        &self.writing
    }

    pub(super) fn object(&self) -> &Arc<OpenObject> {
        &self.object
    }

    /// The current object.
    pub(in crate::origin) fn look(&self) -> Look {
        let state = self.object.state();
        let is_changing = state.is_written && state.key_state != KeyState::Replaced;
        Look { object: state.described(), is_changing }
    }

    /// The current source of the bytes.
    ///
    /// # Errors
    /// `ESTALE` if the bytes are in a conflict.
    pub(in crate::origin) fn source(&self) -> Result<Source> {
        self.object.state().source().ok_or(Errno::STALE)
    }

    /// Whether it has changes that are not uploaded yet.
    pub(in crate::origin) fn is_changed(&self) -> bool {
        self.object.state().is_changed()
    }

    /// Whether a foreign object has the key now.
    pub(in crate::origin) fn is_replaced(&self) -> bool {
        self.object.state().key_state == KeyState::Replaced
    }

    /// Whether its name was removed through this mount.
    pub(in crate::origin) fn is_removed(&self) -> bool {
        self.object.state().key_state == KeyState::Removed
    }

    /// Whether another handle has the object open for writing.
    pub(in crate::origin) fn has_writers_besides(&self) -> bool {
        let own = usize::from(self.mode.writes);
        self.object.state().writers > own
    }

    /// Writes at an offset. The bytes are in the journal when this returns.
    ///
    /// # Errors
    /// `EFBIG` beyond the size that the store accepts with a condition; those of the journal.
    pub(in crate::origin) fn write(&self, offset: u64, bytes: &[u8]) -> Result<usize> {
        self.change(|file, size_max| {
            if offset.saturating_add(bytes.len() as u64) > size_max {
                return Ok(Err(Errno::FBIG));
            }
            file.write(offset, bytes)?;
            Ok(Ok(bytes.len()))
        })
    }

    /// The same at the current end of the file.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub(in crate::origin) fn append(&self, bytes: &[u8]) -> Result<usize> {
        self.change(|file, size_max| {
            if file.size().saturating_add(bytes.len() as u64) > size_max {
                return Ok(Err(Errno::FBIG));
            }
            file.append(bytes)?;
            Ok(Ok(bytes.len()))
        })
    }

    /// Truncates or extends the file.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub(in crate::origin) fn resize(&self, size: u64) -> Result<()> {
        self.change(|file, size_max| {
            if size > size_max {
                return Ok(Err(Errno::FBIG));
            }
            if size != file.size() {
                file.resize(size)?;
            }
            Ok(Ok(0))
        })
        .map(drop)
    }

    fn change(
        &self,
        change: impl FnOnce(&StagedFile, u64) -> std::result::Result<Result<usize>, StagedError>,
    ) -> Result<usize> {
        if !self.mode.writes {
            return Err(Errno::BADF);
        }
        let _gate = self.object.gate.read();
        let file = self.staged()?;
        let size_max = self.writing.size_max(&file.base());
        let done = match change(&file, size_max) {
            Ok(done) => done,
            // write(2) reports a short write as a success.
            Err(StagedError::Short { written, .. }) if written > 0 => Ok(written),
            Err(error) => Err(self.writing.messages.of_staged(&error)),
        }?;
        let mut state = self.object.state();
        // Without a fraction, like the time that the store will report.
        let nanoseconds = match state.convention {
            Convention::S3fs => Time::now().nanoseconds,
            _ => 0,
        };
        state.modified = Time { nanoseconds, ..Time::now() };
        state.has_time = false;
        Ok(done)
    }

    /// The staged file; the first change creates it.
    fn staged(&self) -> Result<Arc<StagedFile>> {
        let mut state = self.object.state();
        if let Some(staged) = &state.staged {
            return Ok(Arc::clone(staged));
        }
        let object = state.object.as_ref().ok_or(Errno::STALE)?;
        let etag = object.etag.as_ref().filter(|etag| etag.is_strong()).ok_or(Errno::OPNOTSUPP)?;
        let base = Base::Object { etag: etag.as_str().to_owned(), size: object.size_bytes };
        let staged = self.writing.begin(&state.key, base)?;
        staged.keep(state.metadata_to_store());
        if state.key_state == KeyState::Removed {
            // The file has no name: only open handles can read it, so the log is unlinked.
            self.writing.forget(&staged);
        }
        let staged = Arc::new(staged);
        state.staged = Some(Arc::clone(&staged));
        Ok(staged)
    }

    /// Uploads all writes that returned before the call.
    ///
    /// # Errors
    /// `ESTALE` if another client changed the object first. After any other error the writes stay
    /// in the journal, and the upload is retried.
    pub(in crate::origin) fn upload(&self) -> Result<()> {
        {
            let _gate = self.object.gate.read();
            self.upload_within()?;
        }
        self.settle_metadata()
    }

    /// Does what a close promises: an upload, or a sync of the journal so that it survives a power
    /// cut.
    ///
    /// # Errors
    /// As [`Self::upload`].
    pub(in crate::origin) fn close(&self) -> Result<()> {
        if self.writing.options.close == Durable::Store {
            return self.upload();
        }
        let _gate = self.object.gate.read();
        let Some(staged) = self.to_upload().filter(|_| self.is_changed()) else { return Ok(()) };
        if staged.standing() == Standing::Conflict {
            return Err(Errno::STALE);
        }
        let synced = staged.log().sync();
        synced.map(drop).map_err(|error| self.writing.messages.of_staged(&error.into()))
    }

    /// The same, for a caller that holds the gate.
    pub(super) fn upload_within(&self) -> Result<()> {
        let Some(staged) = self.to_upload() else { return Ok(()) };
        if self.writing.convention.is_on() {
            staged.keep(self.object.state().metadata_to_store());
        }
        let synced = staged.sync();
        self.writing.pending.note(synced.as_ref().err());
        match synced {
            Ok(()) => {
                self.uploaded(&staged);
                Ok(())
            }
            Err(error) => {
                if matches!(error, StagedError::Conflict { .. }) {
                    self.in_conflict(&staged);
                }
                Err(self.writing.messages.of_staged(&error))
            }
        }
    }

    fn to_upload(&self) -> Option<Arc<StagedFile>> {
        let state = self.object.state();
        state.staged.clone().filter(|_| state.key_state != KeyState::Removed)
    }

    /// Records the object that the store has after an upload.
    fn uploaded(&self, staged: &StagedFile) {
        let Base::Object { etag, size } = staged.base() else { return };
        let etag = ETag::new(&etag);
        let is_known = |state: &State| state.etag() == Some(&etag);
        let key = {
            let state = self.object.state();
            if is_known(&state) {
                return;
            }
            Arc::clone(&state.key)
        };
        // The store determines the object's time.
        let found = self.writing.bucket.head(&key).ok();
        let object = found.filter(|found| found.etag.as_ref() == Some(&etag)).unwrap_or(Object {
            key: key.to_string(),
            size_bytes: size,
            etag: Some(etag.clone()),
            modified: Time { nanoseconds: 0, ..Time::now() },
            mark: None,
            kept: staged.metadata_to_store(),
        });
        // Invalidate the listing first: until the object is recorded, its local state is shown.
        self.writing.listings.invalidate_directory_of(&key);
        let mut state = self.object.state();
        // Another upload may have come in between. Or this log was dropped because the store has
        // all of it: then later changes have another log.
        let is_here = state.staged.as_ref().is_some_and(|now| std::ptr::eq(&**now, staged));
        let is_still = is_here && staged.base().etag() == Some(etag.as_str());
        if is_still && !is_known(&state) {
            state.object = Some(object);
            state.uploads += 1;
        }
    }

    /// Records a conflict: a foreign object has the key, and keeps it.
    fn in_conflict(&self, staged: &StagedFile) {
        let mut table = self.writing.table.lock();
        let mut state = self.object.state();
        let is_logged = std::mem::replace(&mut state.is_logged, true);
        state.key_state = KeyState::Replaced;
        let key = Arc::clone(&state.key);
        if table.get(&key).is_some_and(|known| Arc::ptr_eq(known, &self.object)) {
            table.remove(&key);
        }
        drop((state, table));
        self.writing.listings.invalidate_directory_of(&key);
        if !is_logged {
            let (path, stage) = (staged.path(), self.writing.journal.path().display());
            self.writing.messages.warn(format_args!(
                "{key} was changed by another client, whose version stays; the local changes are \
                 kept in {}: ogive bucket conflicts {stage} shows and copies them",
                path.display()
            ));
        }
    }

    /// Drops the log of a file once the store has all changes. The caller holds the gate.
    pub(super) fn settle(&self) {
        let staged = {
            let mut state = self.object.state();
            if state.is_changed() { None } else { state.staged.take() }
        };
        if let Some(staged) = staged {
            self.writing.retire(&staged);
        }
    }
}

impl Writing {
    /// Deletes the log of an uploaded file.
    fn retire(&self, staged: &StagedFile) {
        if let Err(error) = staged.log().retire() {
            // The next mount finds out that the store has the changes.
            self.messages.of_staged(&error.into());
        }
    }

    /// Deletes the log of a file that has no name any more.
    pub(super) fn forget(&self, staged: &StagedFile) {
        if let Err(error) = staged.discard() {
            self.messages.of_staged(&error);
        }
    }

    /// Closes an open file of the object.
    fn leave(self: &Arc<Self>, object: &Arc<OpenObject>, writes: bool) {
        let (mut settled, mut is_left) = (None, false);
        {
            let mut table = self.table.lock();
            let mut state = object.state();
            state.users -= 1;
            state.writers -= usize::from(writes);
            let is_done = state.key_state == KeyState::Removed || state.is_in_conflict();
            if state.writers == 0 && (is_done || !state.is_changed()) {
                settled = state.staged.take().filter(|_| !is_done);
            } else if state.writers == 0 && !state.is_pending {
                (state.is_pending, is_left) = (true, true);
            }
            let is_here = table.get(&state.key).is_some_and(|known| Arc::ptr_eq(known, object));
            if state.users == 0 && state.staged.is_none() && is_here {
                table.remove(&state.key);
            }
        }
        if let Some(staged) = settled {
            self.retire(&staged);
        }
        if is_left {
            self.upload_later(object);
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.writing.leave(&self.object, self.mode.writes);
    }
}
