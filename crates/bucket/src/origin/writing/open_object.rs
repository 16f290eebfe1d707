//! An open object, shared by all files that have it open through the mount.
//!
//! All open files of an object share one of these. So a reader sees at once what a writer has
//! staged, and goes on with the new object once it is uploaded. The bytes of a file come from the
//! staged file as long as somebody may write, or from the object with its ETag.
//!
//! # Locks
//! `gate`: changes and uploads hold it for reading, also across requests. A removal or a rename
//! holds it for writing. Two gates are taken in the order of the keys. `state`: never held across a
//! request, but held while a log is created.

use crate::origin::posix::Convention;
use crate::staged::{StagedFile, Standing};
use crate::{ETag, Object, ObjectMetadata};
use ogive_origin::Time;
use parking_lot::{Mutex, MutexGuard, RwLock};
use std::sync::Arc;

/// An object that is open.
pub(super) struct OpenObject {
    pub(super) gate: RwLock<()>,
    state: Mutex<State>,
}

/// Whether the key leads to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It does.
    Named,
    /// A foreign object has the key by now, or none has.
    Replaced,
    /// It was removed through the mount, or another was given its name.
    Removed,
}

/// The state of an open object.
pub(super) struct State {
    pub(super) key: Arc<str>,
    /// The object in the store; `None` if it is new and nothing of it was uploaded.
    pub(super) object: Option<Object>,
    /// Its changes, from the first one until no file is open for writing.
    pub(super) staged: Option<Arc<StagedFile>>,
    pub(super) place: Place,
    /// Open files, and others that need it to stay.
    pub(super) users: usize,
    /// The users that may change it.
    pub(super) writers: usize,
    /// When it was changed last.
    pub(super) modified: Time,
    /// How often another object became the one in the store by what was done here.
    pub(super) uploads: u64,
    /// It was open for writing: its contents may be others than when it was opened.
    pub(super) is_written: bool,
    /// It waits to be uploaded by the thread for that.
    pub(super) is_pending: bool,
    /// The log has said that its changes met a foreign change.
    pub(super) is_told: bool,
    /// The metadata that it is to have, if the store has others.
    pub(super) noted: Option<Arc<ObjectMetadata>>,
    /// It was given a time since it was written last.
    pub(super) has_time: bool,
    /// In whose words that is kept.
    pub(super) convention: Convention,
}

/// Where the bytes of a file come from.
pub(in crate::origin) enum Source {
    /// An object.
    Object(Object),
    /// A staged file.
    Staged(Arc<StagedFile>),
}

impl OpenObject {
    /// An object as it is in the store, or a new one.
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
            place: Place::Named,
            users: 0,
            writers: 0,
            modified: Time::now(),
            uploads: 0,
            is_written: false,
            is_pending: false,
            is_told: false,
            noted: None,
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
    /// Adds a user, which makes it stay.
    pub(super) fn join(&mut self, writes: bool) {
        self.users += 1;
        if writes {
            self.writers += 1;
            self.is_written = true;
        }
    }

    /// Whether it has changes that the store has not, as far as is known here.
    pub(super) fn is_changed(&self) -> bool {
        self.staged.as_ref().is_some_and(|file| {
            file.log().with_state(|state| {
                state.is_changed() || state.base().etag() != self.etag().map(ETag::as_str)
            })
        })
    }

    /// Whether its changes met a foreign change.
    pub(super) fn is_in_conflict(&self) -> bool {
        self.staged.as_ref().is_some_and(|file| file.standing() == Standing::Conflict)
    }

    /// The ETag that every read of the object requires.
    pub(super) fn etag(&self) -> Option<&ETag> {
        self.object.as_ref().and_then(|object| object.etag.as_ref())
    }

    /// Its metadata in the store, without the mark.
    pub(super) fn kept(&self) -> Option<Arc<ObjectMetadata>> {
        self.object.as_ref().and_then(|object| object.kept.clone())
    }

    /// The source of its bytes now; `None` if only a conflict has them.
    pub(super) fn source(&self) -> Option<Source> {
        match (&self.staged, &self.object) {
            (Some(staged), _) => Some(Source::Staged(Arc::clone(staged))),
            (None, object) => object.clone().map(Source::Object),
        }
    }

    /// The object to show: without a tag while the store has another one.
    pub(super) fn described(&self) -> Object {
        match (&self.staged, &self.object) {
            (Some(staged), object) if object.is_none() || self.is_changed() => Object {
                key: self.key.to_string(),
                size_bytes: staged.size(),
                etag: None,
                modified: self.modified,
                mark: None,
                kept: self.to_keep(),
            },
            (_, Some(object)) => {
                Object { key: self.key.to_string(), kept: self.to_keep(), ..object.clone() }
            }
            (_, None) => Object {
                key: self.key.to_string(),
                size_bytes: 0,
                etag: None,
                modified: self.modified,
                mark: None,
                kept: self.to_keep(),
            },
        }
    }
}
