//! Renames. Stores cannot rename: the object is copied inside the store, and the old one is
//! deleted.
//!
//! Both requests have conditions. The copy requires the source that was looked up, and an unchanged
//! or absent target. An interrupted rename leaves the file under both names. If the store refuses
//! to delete the old name, the copy is removed again. For a directory all keys are copied before
//! the first is deleted, with a log in the journal.

use super::open_object::{KeyState, OpenObject};
use super::{OpenMode, Writing, is_strong};
use crate::journal::{Base, WriteId};
use crate::staged::{RenameError, delete_if_same, refusal, rename_directory};
use crate::{BucketError, Condition, CopyRequest, Object, WriteMetadata};
use ogive_origin::{Errno, Result};
use parking_lot::RwLockWriteGuard;
use std::ops::ControlFlow;
use std::sync::Arc;

impl Writing {
    /// Renames a file. The target may exist.
    ///
    /// # Errors
    /// `EEXIST` if the target exists and `is_new` is set; `EXDEV` if the store cannot copy without
    /// a risk to other clients' objects; `ESTALE` if either file was changed in the meantime; the
    /// store's error if it refuses to delete the old name.
    pub(in crate::origin) fn rename(
        self: &Arc<Self>,
        (from, to): (&str, &str),
        is_new: bool,
    ) -> Result<()> {
        let mode = OpenMode { writes: true, ..OpenMode::default() };
        let moving = self.open_asking(from, mode, &mut |key| {
            let object = self.bucket.head(key)?;
            object.check_free().map(|()| object)
        })?;
        let source = Arc::clone(moving.object());
        let target = self.open_object(to);
        let _gates = gates((from, &source), target.as_ref().map(|target| (to, target)));
        moving.upload_within()?;
        moving.settle();
        let object = {
            let state = source.state();
            let is_here = state.key_state == KeyState::Named && !state.is_changed();
            state.object.clone().filter(|_| is_here).ok_or(Errno::STALE)?
        };
        let there = self.head(to)?;
        let is_staged = target.as_ref().is_some_and(|target| target.state().is_changed());
        if is_new && (there.is_some() || is_staged) {
            return Err(Errno::EXIST);
        }
        let object = Object { kept: source.state().metadata_to_store(), ..object };
        let copied = self.copy(&object, to, there.as_ref())?;
        self.listings.invalidate_directory_of(to);
        self.keep_directory_of(from)?;
        match delete_if_same(&*self.bucket, &object) {
            Ok(()) | Err(BucketError::NotFound { .. }) => {}
            Err(BucketError::ConditionFailed { .. }) => self.messages.warn(format_args!(
                "another client changed {from} during its rename to {to}: {from} stays"
            )),
            Err(error) => {
                if !error.is_in_doubt() {
                    self.take_back((&object, &copied), there.is_none());
                }
                return Err(self.messages.errno(&error));
            }
        }
        let before = self.open_object(to);
        let is_target =
            |now: &Arc<OpenObject>| target.as_ref().is_some_and(|target| Arc::ptr_eq(now, target));
        if before.as_ref().is_some_and(is_target) {
            self.removed(to);
        }
        self.give_key(&source, (from, to), copied);
        for key in [from, to] {
            self.listings.invalidate_directory_of(key);
        }
        Ok(())
    }

    /// Undoes a copy, because the store refuses to delete the source.
    fn take_back(&self, (object, copied): (&Object, &Object), is_new: bool) {
        let (from, to) = (&object.key, &copied.key);
        if !is_new {
            self.messages.warn(format_args!(
                "the store refuses to delete {from}, and {to} was already replaced by its copy: \
                 the file has both names"
            ));
            return;
        }
        let taken = match self.bucket.head(from) {
            Ok(found) if found.etag == object.etag && copied.etag.is_some() => {
                delete_if_same(&*self.bucket, copied)
            }
            // The copy may be all that is left.
            Ok(_) | Err(BucketError::NotFound { .. }) => return,
            Err(error) => Err(error),
        };
        self.listings.invalidate_directory_of(to);
        match taken {
            // Another client has changed the copy, so it stays.
            Ok(()) | Err(BucketError::ConditionFailed { .. } | BucketError::NotFound { .. }) => {}
            Err(error) => self.messages.warn(format_args!(
                "the store refuses to delete both {from} and its copy {to}: remove {to} in the \
                 store ({error})"
            )),
        }
    }

    /// Records that an open object has another key and another object in the store.
    fn give_key(&self, source: &Arc<OpenObject>, (from, to): (&str, &str), copied: Object) {
        let mut table = self.table.lock();
        let mut state = source.state();
        if table.get(from).is_some_and(|known| Arc::ptr_eq(known, source)) {
            table.remove(from);
        }
        state.key = to.into();
        state.object = Some(copied);
        state.uploads += 1;
        match table.get(to) {
            None => {
                table.insert(to.into(), Arc::clone(source));
            }
            // A file that was opened under the new name in the meantime has its own lineage.
            Some(_) => state.key_state = KeyState::Replaced,
        }
    }

    /// Copies an object to a key, with the metadata of `object`. The target must still be `there`,
    /// or absent. Returns the new object.
    pub(super) fn copy(&self, object: &Object, to: &str, there: Option<&Object>) -> Result<Object> {
        let (condition, base) = match there {
            None => (Condition::Absent, Base::New),
            Some(there) => {
                self.or_errno(there.check_rewritable())?;
                let etag = there.etag.clone().filter(|_| is_strong(there));
                let etag = etag.ok_or(Errno::OPNOTSUPP)?;
                let base = Base::Object { etag: etag.as_str().to_owned(), size: there.size_bytes };
                (Condition::Matches(etag), base)
            }
        };
        let mut log = [0; 16];
        getrandom::fill(&mut log).map_err(|_| Errno::IO)?;
        let mark = WriteId { log, through: 1 }.to_string();
        let beside = WriteMetadata::marked(&mark).with(object.kept.as_deref());
        let promises = self.bucket.promises();
        let is_refused = |in_parts| {
            !self.options.staged.is_only_writer && refusal(&promises, &base, in_parts).is_some()
        };
        let done = if !is_refused(true) {
            self.bucket.copy(CopyRequest {
                source: object,
                target: to,
                condition: &condition,
                beside,
            })
        } else if object.size_bytes <= self.options.staged.put_instead_max_bytes {
            let bytes = self.whole(object)?;
            self.bucket.put(to, bytes.into(), &condition, beside)
        } else {
            return Err(Errno::XDEV);
        };
        match done {
            Ok(made) => {
                // The store determines its time. If another client has changed it since, open files
                // continue with the object that was made here.
                let found = self.head(to)?;
                let is_ours = |found: &Object| found.mark.as_deref() == Some(&mark);
                let size_bytes = object.size_bytes;
                let made = Object { size_bytes, kept: object.kept.clone(), ..made };
                Ok(found.filter(is_ours).unwrap_or(made))
            }
            Err(error) if error.is_in_doubt() => {
                let found = self.head(to)?;
                let ours = found.filter(|found| found.mark.as_deref() == Some(&mark));
                ours.ok_or_else(|| self.messages.errno(&error))
            }
            Err(error) => Err(self.messages.errno(&error)),
        }
    }

    /// Reads a whole object.
    fn whole(&self, object: &Object) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(object.size_bytes as usize);
        if object.size_bytes == 0 {
            return Ok(bytes);
        }
        let range = 0..object.size_bytes;
        let got = self.bucket.get(&object.key, range, object.etag.as_ref(), &mut |piece| {
            bytes.extend_from_slice(&piece);
            ControlFlow::Continue(())
        });
        self.or_errno(got)?;
        if bytes.len() as u64 == object.size_bytes { Ok(bytes) } else { Err(Errno::IO) }
    }

    /// Renames a directory. The target must be empty or absent.
    ///
    /// # Errors
    /// `EBUSY` if a file in it is open for writing; `EXDEV` if it has too many objects, or the
    /// store ignores the condition of a copy; `ENOTEMPTY`.
    pub(in crate::origin) fn rename_directory(
        self: &Arc<Self>,
        from: &str,
        to: &str,
    ) -> Result<()> {
        // Without the condition, copies could overwrite objects that another client creates in the
        // meantime.
        if !self.bucket.promises().upload_create && !self.options.staged.is_only_writer {
            return Err(Errno::XDEV);
        }
        self.upload_below(from)?;
        if self.is_written_below(from) || self.is_written_below(to) {
            return Err(Errno::BUSY);
        }
        if !to.starts_with(from) {
            self.keep_directory_of(from)?;
        }
        let max = self.options.rename_max;
        let renamed = rename_directory(&*self.bucket, &self.journal, (from, to), max);
        self.listings.invalidate_all();
        match renamed {
            Ok(renamed) => {
                for key in renamed.left {
                    self.messages.warn(format_args!(
                        "another client changed {key} during the rename of {from}: it stays"
                    ));
                }
            }
            Err(error @ RenameError::Kept { .. }) => {
                self.messages.warn(format_args!("the rename of {from} to {to}: {error}"));
                return Err(error.errno());
            }
            Err(error) => {
                self.messages.warn(format_args!("{from} is not renamed to {to}: {error}"));
                return Err(error.errno());
            }
        }
        // Files that are open in it keep reading what the kernel and the cache have.
        let mut table = self.table.lock();
        table.retain(|key, known| {
            let stays = !key.starts_with(from);
            if !stays {
                known.state().key_state = KeyState::Replaced;
            }
            stays
        });
        Ok(())
    }
}

/// Takes the gates of the renamed object and of the one that it replaces.
fn gates<'a>(
    (from, source): (&str, &'a Arc<OpenObject>),
    target: Option<(&str, &'a Arc<OpenObject>)>,
) -> (RwLockWriteGuard<'a, ()>, Option<RwLockWriteGuard<'a, ()>>) {
    match target {
        None => (source.gate.write(), None),
        Some((to, target)) if from < to => {
            let gate = source.gate.write();
            (gate, Some(target.gate.write()))
        }
        Some((_, target)) => {
            let other = target.gate.write();
            (source.gate.write(), Some(other))
        }
    }
}
