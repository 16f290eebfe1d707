//! An open object, shared by all handles that have it open through the mount.
//!
//! A reader sees at once what a writer has staged, and continues with the new object after its
//! upload. While a writer has the object open, the bytes come from the staged file. Otherwise they
//! come from the object with its ETag.
//!
//! # Locks
//! `gate`: changes and uploads hold it for reading, also across requests. A removal or a rename
//! holds it for writing. Two gates are taken in the order of their keys. `state`: never held across
//! a request, but held while a log is created.

use crate::origin::posix::Convention;
use crate::staged::{StagedFile, Standing};
use crate::{ETag, Object, ObjectMetadata};
use ogive_origin::Time;
use parking_lot::{Mutex, MutexGuard, RwLock};
use std::sync::Arc;

/// An open object.
pub(super) struct OpenObject {
    pub(super) gate: RwLock<()>,
    state: Mutex<State>,
}

/// Whether the key still leads to this object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyState {
    /// It does.
    Named,
    /// The key holds a foreign object, or none.
    Replaced,
    /// The name was removed through the mount, or given to another object.
    Removed,
}

/// The state of an open object.
pub(super) struct State {
    pub(super) key: Arc<str>,
    /// The object in the store; `None` for a new file before its first upload.
    pub(super) object: Option<Object>,
    /// Its changes, from the first one until no handle is open for writing.
    pub(super) staged: Option<Arc<StagedFile>>,
    pub(super) key_state: KeyState,
    /// Handles and other users that keep it open.
    pub(super) users: usize,
    /// How many of the users may write.
    pub(super) writers: usize,
    /// When it was changed last.
    pub(super) modified: Time,
    /// How often this mount replaced the object in the store.
    pub(super) uploads: u64,
    /// It was open for writing: its contents may differ from those at another handle's open.
    pub(super) is_written: bool,
    /// It is queued for the upload thread.
    pub(super) is_pending: bool,
    /// The conflict was logged.
    pub(super) is_logged: bool,
    /// The new metadata, if they are not stored yet.
    pub(super) new_metadata: Option<Arc<ObjectMetadata>>,
    /// A program set its time after the last write.
    pub(super) has_time: bool,
    /// The convention of its metadata.
    pub(super) convention: Convention,
}

/// The source of a file's bytes.
pub(in crate::origin) enum Source {
    /// An object.
    Object(Object),
    /// A staged file.
    Staged(Arc<StagedFile>),
}

impl OpenObject {
    /// An object of the store, or a new one.
    pub(super) fn new(
        key: &str,
        object: Option<Object>,
        staged: Option<StagedFile>,
        convention: Convention,
    ) -> Self {
        let state = State {
            key: key.into(),
            object,
            staged: staged.map(Arc::new),
            key_state: KeyState::Named,
            users: 0,
            writers: 0,
            modified: Time::now(),
            uploads: 0,
            is_written: false,
            is_pending: false,
            is_logged: false,
            new_metadata: None,
            has_time: false,
            convention,
        };
        Self { gate: RwLock::default(), state: Mutex::new(state) }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    /// Adds a user.
    pub(super) fn join(&mut self, writes: bool) {
        self.users += 1;
        if writes {
            self.writers += 1;
            self.is_written = true;
        }
    }

    /// Whether it has changes that are not known to be in the store.
    pub(super) fn is_changed(&self) -> bool {
        self.staged.as_ref().is_some_and(|file| {
            file.log().with_state(|state| {
                state.is_changed() || state.base().etag() != self.etag().map(ETag::as_str)
            })
        })
    }

    /// Whether its changes are in a conflict.
    pub(super) fn is_in_conflict(&self) -> bool {
        self.staged.as_ref().is_some_and(|file| file.standing() == Standing::Conflict)
    }

    /// Its ETag in the store.
    pub(super) fn etag(&self) -> Option<&ETag> {
        self.object.as_ref().and_then(|object| object.etag.as_ref())
    }

    /// Its metadata in the store, without the mark.
    pub(super) fn kept(&self) -> Option<Arc<ObjectMetadata>> {
        self.object.as_ref().and_then(|object| object.kept.clone())
    }

    /// The current source of its bytes; `None` if only a conflict has them.
    pub(super) fn source(&self) -> Option<Source> {
        match (&self.staged, &self.object) {
            (Some(staged), _) => Some(Source::Staged(Arc::clone(staged))),
            (None, object) => object.clone().map(Source::Object),
        }
    }

    /// The object to show. It has no ETag while the store has another object.
    pub(super) fn described(&self) -> Object {
        match (&self.staged, &self.object) {
            (Some(staged), object) if object.is_none() || self.is_changed() => Object {
                key: self.key.to_string(),
                size_bytes: staged.size(),
                etag: None,
                modified: self.modified,
                mark: None,
                kept: self.metadata_to_store(),
            },
            (_, Some(object)) => Object {
                key: self.key.to_string(),
                kept: self.metadata_to_store(),
                ..object.clone()
            },
            (_, None) => Object {
                key: self.key.to_string(),
                size_bytes: 0,
                etag: None,
                modified: self.modified,
                mark: None,
                kept: self.metadata_to_store(),
            },
        }
    }
}
