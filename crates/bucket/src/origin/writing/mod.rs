//! Changes of files through the mount: from the first write to the object in the store.
//!
//! # Invariants
//! - A write that returned is in the journal, and every reader of this mount sees it. After a sync
//!   or a close the store has the object, unless a close needs only the journal
//!   ([`WriteOptions::close`]).
//! - Each upload has a condition: the object that existed when the file was opened, or none. If
//!   another client was faster, its object stays, ours goes to the journal's `conflicts/`, and sync
//!   or close fails with `ESTALE`.
//! - An open file belongs to one lineage: the object that it was opened with, and those that this
//!   mount makes of it. A foreign object under the key ends the lineage
//!   ([`open_object::KeyState::Replaced`]); the next open of the name starts another one.
//! - A failed upload is *pending*: a thread retries it, and so does the next mount.
//!
//! # Locks
//! The table's, then an object's state. For the gates see [`open_object`].

mod handle;
mod metadata_updates;
mod open_object;
mod pending_uploads;
mod removal;
mod renames;

pub(super) use handle::Handle;
pub(super) use open_object::Source;

use super::listing_cache::ListingCache;
use super::messages::Messages;
use super::posix::Convention;
use crate::journal::{Base, Journal, Opened};
use crate::keys;
use crate::staged::{
    Durable, Options, RenameError, Renamed, StagedError, StagedFile, refusal, resume_rename,
};
use crate::{Bucket, BucketError, ETag, Object, ObjectMetadata};
use ogive_origin::{Errno, OFlags, Result, Time};
use open_object::{KeyState, OpenObject};
use parking_lot::Mutex;
use pending_uploads::PendingUploads;
use std::collections::HashMap;
use std::sync::Arc;

/// How files are written.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// How files are uploaded.
    pub staged: Options,
    /// How many keys a directory may have to be renamed.
    pub rename_max: usize,
    /// When a close returns.
    pub close: Durable,
    /// How to treat modes, owners and times that cannot be stored.
    pub chmod: Chmod,
}

/// How to treat modes, owners and times that cannot be stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Chmod {
    /// Setting them fails.
    #[default]
    Refuse,
    /// Setting them does nothing.
    Ignore,
}

impl Default for WriteOptions {
    fn default() -> Self {
        let (rename_max, close) = (crate::staged::RENAME_MAX, Durable::Store);
        Self { staged: Options::default(), rename_max, close, chmod: Chmod::default() }
    }
}

/// The open objects, and the journal of their changes.
pub(super) struct Writing {
    bucket: Arc<dyn Bucket>,
    journal: Journal,
    options: WriteOptions,
    convention: Convention,
    messages: Arc<Messages>,
    listings: Arc<ListingCache>,
    /// Objects that are open or pending, by key.
    table: Mutex<HashMap<Arc<str>, Arc<OpenObject>>>,
    pending: Arc<PendingUploads>,
}

/// The mode of an open.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OpenMode {
    pub(super) writes: bool,
    /// Truncate the file.
    pub(super) truncates: bool,
}

impl OpenMode {
    /// From the flags of open(2).
    pub(super) fn of(flags: OFlags) -> Self {
        let truncates = flags.contains(OFlags::TRUNC);
        let writes = truncates || flags.intersects(OFlags::WRONLY | OFlags::RDWR);
        Self { writes, truncates }
    }
}

impl Writing {
    /// Resumes the files that the journal holds, and uploads them as far as the store accepts them.
    ///
    /// # Errors
    /// A store that ignores a condition which protects other clients' objects; a directory rename
    /// that can be neither finished nor undone.
    pub(super) fn start(
        bucket: Arc<dyn Bucket>,
        opened: Opened,
        (options, convention): (WriteOptions, Convention),
        (messages, listings): (Arc<Messages>, Arc<ListingCache>),
    ) -> std::result::Result<Arc<Self>, StagedError> {
        let promises = bucket.promises();
        if !promises.create || !promises.overwrite {
            let what = "be written to safely: it ignores the conditions If-None-Match and If-Match \
                        of a PUT, so other clients' objects could be overwritten unnoticed";
            return Err(BucketError::Unsupported { what }.into());
        }
        let Opened { journal, staged, conflicts, renames, torn, .. } = opened;
        for log in torn {
            let (path, bytes) = (log.path.display(), log.bytes);
            messages.warn(format_args!("{path}: the last {bytes} bytes were never acknowledged"));
        }
        if !conflicts.is_empty() {
            let conflicts = ogive_text::counted(conflicts.len(), "conflict", "conflicts");
            let path = journal.path().display();
            messages.warn(format_args!(
                "the journal keeps {conflicts} with other clients: \"ogive bucket conflicts \
                 {path}\" lists the files"
            ));
        }
        for log in renames {
            let (from, to) = (log.state().from.clone(), log.state().to.clone());
            match resume_rename(&*bucket, log) {
                Ok(Renamed { moved, .. }) => {
                    messages
                        .warn(format_args!("the rename of {from} to {to}: {moved} objects moved"));
                }
                Err(RenameError::Staged(error)) => return Err(error),
                Err(error) => messages.warn(format_args!("the rename of {from} to {to}: {error}")),
            }
        }
        let (table, pending) = (Mutex::default(), Arc::new(PendingUploads::default()));
        let writing = Arc::new(Self {
            bucket,
            journal,
            options,
            convention,
            messages,
            listings,
            table,
            pending,
        });
        for log in staged {
            let file = StagedFile::resume(
                Arc::clone(&writing.bucket),
                log,
                writing.options.staged.clone(),
            );
            writing.take_up(file);
        }
        Ok(writing)
    }

    /// Uploads the changes that an earlier mount left, or makes them pending.
    fn take_up(self: &Arc<Self>, file: StagedFile) {
        let key = file.key();
        let object = match file.base() {
            Base::New => None,
            Base::Object { etag, size } => Some(Object {
                key: key.clone(),
                size_bytes: size,
                etag: Some(ETag::new(&etag)),
                modified: Time::now(),
                mark: None,
                kept: None,
            }),
        };
        let size = file.size();
        let object = Arc::new(OpenObject::new(&key, object, Some(file), self.convention));
        // A second log of a key belongs to a file that was replaced while it was open.
        self.table.lock().insert(key.as_str().into(), Arc::clone(&object));
        object.state().join(true);
        let handle = Handle::new(self, object, OpenMode { writes: true, ..OpenMode::default() });
        match handle.upload() {
            Ok(()) => self
                .messages
                .warn(format_args!("{key}: {size} bytes of an earlier mount are uploaded now")),
            // Logged already.
            Err(Errno::STALE) => {}
            Err(errno) => self.messages.warn(format_args!(
                "{key}: {size} bytes of an earlier mount could not be uploaded yet: {errno}"
            )),
        }
    }

    /// Opens the object under a key.
    ///
    /// # Errors
    /// `ESTALE` if there is no object. For writing: `EOPNOTSUPP` without a strong ETag, `EPERM` for
    /// a blob that is not a block blob.
    pub(super) fn open(self: &Arc<Self>, key: &str, mode: OpenMode) -> Result<Handle> {
        self.open_asking(key, mode, &mut |key| self.bucket.head(key))
    }

    /// The same; `ask` requests the object from the store.
    pub(super) fn open_asking(
        self: &Arc<Self>,
        key: &str,
        mode: OpenMode,
        ask: &mut dyn FnMut(&str) -> crate::Result<Object>,
    ) -> Result<Handle> {
        loop {
            let known = self.open_object(key);
            let before = match &known {
                None => 0,
                Some(known) => {
                    let mut state = known.state();
                    if state.key_state == KeyState::Named && state.is_changed() {
                        state.join(mode.writes);
                        drop(state);
                        return Handle::cut(self, known, mode);
                    }
                    state.uploads
                }
            };
            let object = match ask(key) {
                Ok(object) => Some(object),
                Err(BucketError::NotFound { .. }) => None,
                Err(error) => return Err(self.messages.errno(&error)),
            };
            if let Some(object) = &object {
                self.listings.invalidate_if_changed(object);
                if mode.writes {
                    self.or_errno(object.check_rewritable())?;
                }
                if mode.writes && !is_strong(object) {
                    return Err(Errno::OPNOTSUPP);
                }
            }
            let mut table = self.table.lock();
            let now = table.get(key).cloned();
            let is_same = match (&now, &known) {
                (None, None) => true,
                (Some(now), Some(known)) => Arc::ptr_eq(now, known),
                _ => false,
            };
            if !is_same {
                continue;
            }
            if let Some(known) = now {
                let mut state = known.state();
                if state.uploads != before || state.is_changed() {
                    // The answer predates an upload or a change.
                    continue;
                }
                if object.as_ref().is_some_and(|found| state.etag() == found.etag.as_ref()) {
                    state.join(mode.writes);
                    drop((state, table));
                    return Handle::cut(self, &known, mode);
                }
                state.key_state = KeyState::Replaced;
                table.remove(key);
            }
            let Some(object) = object else { return Err(Errno::STALE) };
            let opened = Arc::new(OpenObject::new(key, Some(object), None, self.convention));
            opened.state().join(mode.writes);
            table.insert(key.into(), Arc::clone(&opened));
            drop(table);
            return Handle::cut(self, &opened, mode);
        }
    }

    /// Creates and opens a file. With `is_new` the key must be free.
    ///
    /// # Errors
    /// `EEXIST`; those of the journal.
    pub(super) fn create(
        self: &Arc<Self>,
        key: &str,
        is_new: bool,
        mode: OpenMode,
        kept: Option<ObjectMetadata>,
    ) -> Result<Handle> {
        loop {
            let is_there = match self.open_object(key) {
                Some(known) if known.state().is_changed() => true,
                _ => match self.bucket.head(key) {
                    Ok(_) => true,
                    Err(BucketError::NotFound { .. }) => false,
                    Err(error) => return Err(self.messages.errno(&error)),
                },
            };
            if is_there && is_new {
                return Err(Errno::EXIST);
            }
            if is_there {
                match self.open(key, mode) {
                    // It was removed in the meantime.
                    Err(Errno::STALE) => continue,
                    other => return other,
                }
            }
            let staged = self.begin(key, Base::New)?;
            let kept = kept.map(Arc::new);
            staged.keep(kept.clone());
            let opened = Arc::new(OpenObject::new(key, None, Some(staged), self.convention));
            {
                let mut state = opened.state();
                state.join(true);
                state.new_metadata = kept;
            }
            let before = self.table.lock().insert(key.into(), Arc::clone(&opened));
            if let Some(before) = before {
                // The store has no object for that file any more.
                before.state().key_state = KeyState::Replaced;
            }
            let handle = Handle::new(self, opened, OpenMode { writes: true, ..mode });
            if !mode.writes {
                // There is no writer whose close would upload it.
                handle.close()?;
            }
            return Ok(handle);
        }
    }

    /// How to treat attributes that cannot be stored.
    pub(super) fn chmod(&self) -> Chmod {
        self.options.chmod
    }

    /// The open object under a key.
    fn open_object(&self, key: &str) -> Option<Arc<OpenObject>> {
        self.table.lock().get(key).cloned()
    }

    /// Starts to stage changes.
    fn begin(&self, key: &str, base: Base) -> Result<StagedFile> {
        let bucket = Arc::clone(&self.bucket);
        StagedFile::begin(bucket, &self.journal, key, base, self.options.staged.clone())
            .map_err(|error| self.messages.of_staged(&error))
    }

    /// The largest size of a file. Without safe multipart uploads it has to fit into one request.
    /// Otherwise the changed bytes have to fit into the parts that the store accepts.
    fn size_max(&self, base: &Base) -> u64 {
        let staged = &self.options.staged;
        match refusal(&self.bucket.promises(), base, true) {
            Some(_) if !staged.is_only_writer => staged.put_instead_max_bytes,
            _ => base.size().saturating_add(staged.limits.new_max_bytes()),
        }
    }

    /// How many bytes of memory uploads hold.
    pub(super) fn uploads_held_bytes(&self) -> u64 {
        self.options.staged.uploads.held_bytes()
    }

    /// The object to show under a key, if its changes are not uploaded yet.
    pub(super) fn staged_at(&self, key: &str) -> Option<Object> {
        let known = self.open_object(key)?;
        let state = known.state();
        state.is_changed().then(|| state.described())
    }

    /// The same for all files in a directory.
    pub(super) fn staged_in(&self, directory: &str) -> Vec<Object> {
        let known: Vec<_> = {
            let table = self.table.lock();
            let inside = |key: &str| keys::split(key).0 == directory;
            table.iter().filter(|(key, _)| inside(key)).map(|(_, known)| known.clone()).collect()
        };
        let described = |known: Arc<OpenObject>| {
            let state = known.state();
            state.is_changed().then(|| state.described())
        };
        known.into_iter().filter_map(described).collect()
    }

    /// Uploads changed files below a directory that are not open for writing.
    fn upload_below(self: &Arc<Self>, directory: &str) -> Result<()> {
        let below: Vec<_> = {
            let table = self.table.lock();
            let below = table.iter().filter(|(key, _)| key.starts_with(directory));
            below.map(|(_, known)| Arc::clone(known)).collect()
        };
        for object in below {
            {
                let mut state = object.state();
                if !state.is_changed() || state.writers > 0 {
                    continue;
                }
                state.join(false);
            }
            Handle::new(self, object, OpenMode::default()).upload()?;
        }
        Ok(())
    }

    /// How many files have changes that are not uploaded, and how many bytes those are.
    pub(super) fn pending(&self) -> (u64, u64) {
        let known: Vec<_> = self.table.lock().values().cloned().collect();
        let sizes = known.iter().filter_map(|known| {
            let state = known.state();
            let staged = state.staged.as_ref().filter(|_| state.is_changed())?;
            Some(staged.log().with_state(crate::journal::State::staged_bytes))
        });
        sizes.fold((0, 0), |(files, all), bytes| (files + 1, all + bytes))
    }

    /// How many pieces the changed files have in the journal.
    pub(super) fn pieces(&self) -> u64 {
        self.journal.pieces()
    }

    /// How often a pending upload has panicked.
    pub(super) fn panics(&self) -> u64 {
        self.pending.panics()
    }

    /// Whether a file below a directory has changes, or a writer.
    fn is_written_below(&self, directory: &str) -> bool {
        let table = self.table.lock();
        table.iter().filter(|(key, _)| key.starts_with(directory)).any(|(_, known)| {
            let state = known.state();
            state.writers > 0 || state.is_changed()
        })
    }

    /// Ends the upload thread, after a last attempt for each file.
    pub(super) fn end(&self) {
        let left = self.pending.end();
        if left > 0 {
            let left = ogive_text::counted(left, "file was", "files were");
            let path = self.journal.path().display();
            self.messages.warn(format_args!(
                "{left} not uploaded and stayed in {path}: mount this bucket again \
                 with --stage {path}"
            ));
        }
    }
}

fn is_strong(object: &Object) -> bool {
    object.etag.as_ref().is_some_and(ETag::is_strong)
}
