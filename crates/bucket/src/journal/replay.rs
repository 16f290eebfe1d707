//! Opening a journal: every log in its directory is replayed, and the mount gets the resulting
//! files.
//!
//! A log that ends within a record is cut before it, because no call has reported that record as
//! durable. A damaged log is an error, or is moved to `damaged/`. No file that may hold bytes is
//! deleted.

use super::directory::{CONFLICTS, DAMAGED, JournalDirectory, exists, logs_in};
use super::error::JournalError;
use super::format::{Base, LogKind, Record};
use super::log::Log;
use super::rename_log::{RenameKey, RenameLog};
use super::staged_log::StagedLog;
use super::state::State;
use super::upload_log::UploadLog;
use ogive_l2::{Cipher, MasterKey};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How to open a journal.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenOptions {
    /// The cipher of a new journal.
    pub cipher: Cipher,
    /// Whether damaged logs are moved to `damaged/` and listed in [`Opened::damaged`]. Otherwise
    /// the first one is an error.
    pub sets_damaged_aside: bool,
}

/// A journal, and its contents.
#[derive(Debug)]
pub struct Opened {
    /// The journal.
    pub journal: Journal,
    /// Files with changes that are not uploaded, the oldest first.
    pub staged: Vec<StagedLog>,
    /// Files whose objects another client had changed.
    pub conflicts: Vec<StagedLog>,
    /// Unfinished renames of directories, the oldest first.
    pub renames: Vec<RenameLog>,
    /// Multipart uploads that may still exist.
    pub uploads: Vec<UploadLog>,
    /// Logs that ended within a record.
    pub torn: Vec<Torn>,
    /// Logs that were set aside, and why.
    pub damaged: Vec<JournalError>,
}

/// A log that ended within a record. No call has reported that record as durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torn {
    /// The log.
    pub path: PathBuf,
    /// How many bytes were cut off.
    pub bytes: u64,
}

/// The journal of a mount. Dropping the last part of it unlocks the directory.
#[derive(Debug, Clone)]
pub struct Journal {
    folder: Arc<JournalDirectory>,
}

impl Journal {
    /// Opens the journal of a source, or creates it in an empty or missing directory.
    ///
    /// # Errors
    /// [`JournalError`]: each variant names the next step. Nothing was deleted.
    pub fn open(
        path: &Path,
        source: &str,
        master: &MasterKey,
        options: OpenOptions,
    ) -> Result<Opened, JournalError> {
        let folder = JournalDirectory::open(path, source, master, options.cipher)?;
        Replay::of(Arc::new(folder), options)
    }

    /// Starts to stage changes of an object, or a new one. They are durable after the first sync.
    ///
    /// # Errors
    /// [`JournalError::Full`] and others.
    pub fn stage(&self, key: &str, base: Base) -> Result<StagedLog, JournalError> {
        StagedLog::begin(Arc::clone(&self.folder), key, base)
    }

    /// Starts the rename of a directory, given by the prefixes of its old and new keys: logs all
    /// keys, durably.
    ///
    /// # Errors
    /// [`JournalError::Full`] and others.
    pub fn log_rename(
        &self,
        names: (&str, &str),
        keys: Vec<RenameKey>,
    ) -> Result<RenameLog, JournalError> {
        RenameLog::begin(Arc::clone(&self.folder), names, keys)
    }

    /// Records that a multipart upload to an address is about to begin. `began` is in seconds since
    /// the epoch.
    ///
    /// # Errors
    /// [`JournalError::Full`] and others.
    pub fn note_upload(&self, address: &str, began: u64) -> Result<UploadLog, JournalError> {
        UploadLog::begin(Arc::clone(&self.folder), address, began)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// How many pieces of all files are in memory.
    pub fn pieces(&self) -> u64 {
        self.folder.pieces.load(Ordering::Relaxed)
    }
}

/// The replay of all logs.
struct Replay {
    folder: Arc<JournalDirectory>,
    options: OpenOptions,
    renames: Vec<RenameLog>,
    uploads: Vec<UploadLog>,
    torn: Vec<Torn>,
    damaged: Vec<JournalError>,
}

impl Replay {
    fn of(folder: Arc<JournalDirectory>, options: OpenOptions) -> Result<Opened, JournalError> {
        let mut replay = Self {
            folder: Arc::clone(&folder),
            options,
            renames: Vec::new(),
            uploads: Vec::new(),
            torn: Vec::new(),
            damaged: Vec::new(),
        };
        let (here, in_conflict) =
            (logs_in(folder.path())?, logs_in(&folder.path().join(CONFLICTS))?);
        let damaged = folder.path().join(DAMAGED);
        let aside = if exists(&damaged)? { logs_in(&damaged)? } else { Vec::new() };
        let taken = here.iter().chain(&in_conflict).chain(&aside).map(|(sequence, _)| *sequence);
        let next = taken.max().map_or(0, |last| last.saturating_add(1));
        folder.number_from(next);
        let (mut staged, mut conflicts) = (Vec::new(), Vec::new());
        for (logs, to) in [(here, &mut staged), (in_conflict, &mut conflicts)] {
            for (_, path) in logs {
                if path.extension() == Some(OsStr::new("log")) {
                    to.extend(replay.log(&path)?);
                } else if exists(&path.with_extension("log"))? {
                    // The copy of an unfinished compaction; its original exists.
                    folder.delete(&path)?;
                }
            }
        }
        let Self { renames, uploads, torn, damaged, .. } = replay;
        let journal = Journal { folder };
        Ok(Opened { journal, staged, conflicts, renames, uploads, torn, damaged })
    }

    /// Replays a log, or sets it aside.
    fn log(&mut self, path: &Path) -> Result<Option<StagedLog>, JournalError> {
        match self.replay(path) {
            Err(error @ JournalError::Damaged { .. }) if self.options.sets_damaged_aside => {
                self.folder.set_aside(path)?;
                self.damaged.push(error);
                Ok(None)
            }
            replayed => replayed,
        }
    }

    fn report_torn(&mut self, path: &Path, bytes: u64) {
        if bytes > 0 {
            self.torn.push(Torn { path: path.to_owned(), bytes });
        }
    }

    fn replay(&mut self, path: &Path) -> Result<Option<StagedLog>, JournalError> {
        let Some(file) = self.folder.open_log(path)? else {
            return Ok(None);
        };
        if file.header().kind == LogKind::Rename {
            let (rename, torn_bytes) = RenameLog::resume(Arc::clone(&self.folder), file)?;
            self.report_torn(path, torn_bytes);
            self.renames.extend(rename);
            return Ok(None);
        }
        if file.header().kind == LogKind::Upload {
            let (upload, torn_bytes) = UploadLog::resume(Arc::clone(&self.folder), file)?;
            self.report_torn(path, torn_bytes);
            self.uploads.extend(upload);
            return Ok(None);
        }
        let mut state: Option<State> = None;
        let scanned = file.scan(&mut |place, record| match (&mut state, record) {
            (Some(state), record) => state.apply(place, record),
            (None, Record::Begin { key, base }) => {
                state = Some(State::new(key, base));
                Ok(())
            }
            (None, _) => Err("the first record does not name a file"),
        })?;
        self.report_torn(path, scanned.torn_bytes);
        let Some(state) = state else {
            // Not even the first record is complete, so no call has returned for this log.
            self.folder.delete(path)?;
            return Ok(None);
        };
        let log = Log::resume(file, scanned)?;
        Ok(Some(StagedLog::resumed(Arc::clone(&self.folder), log, state)))
    }
}
