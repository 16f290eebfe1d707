//! The log of a directory rename: its keys and its progress.
//!
//! Stores cannot rename: each object is copied, and the old one is deleted. The log lists all
//! objects before the first copy, and records the end of copying before the first deletion. So the
//! next mount knows whether to undo the copies or to finish.

use super::directory::JournalDirectory;
use super::error::JournalError;
use super::format::{LogKind, Record};
use super::log::{Log, LogFile};
use super::staged_log::WriteId;
use std::path::PathBuf;
use std::sync::Arc;

/// An object below the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenameKey {
    /// The rest of its key after the directory's prefix; empty for the directory's marker.
    pub rest: String,
    /// The ETag in the listing.
    pub etag: String,
    /// Its size in bytes.
    pub size: u64,
}

/// A rename in progress.
#[derive(Debug)]
pub struct RenameLog {
    folder: Arc<JournalDirectory>,
    log: Log,
    state: RenameState,
}

/// The content of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RenameState {
    /// The prefix of the old keys, with its slash.
    pub from: String,
    /// The prefix of the new ones, with its slash.
    pub to: String,
    /// All keys below it.
    pub keys: Vec<RenameKey>,
    /// Whether all keys are logged. Nothing is copied before.
    pub is_listed: bool,
    /// Whether all keys are copied. Nothing is deleted before.
    pub is_copied: bool,
}

impl RenameState {
    /// Applies a record.
    ///
    /// # Errors
    /// If the record does not belong there.
    pub fn apply(&mut self, record: Record<'_>) -> Result<(), &'static str> {
        match record {
            Record::RenameBegin { from, to } if self.from.is_empty() => {
                (self.from, self.to) = (from.to_owned(), to.to_owned());
            }
            Record::RenameKey { rest, etag, size } if !self.is_listed => {
                let (rest, etag) = (rest.to_owned(), etag.to_owned());
                self.keys.push(RenameKey { rest, etag, size });
            }
            Record::RenameListed => self.is_listed = true,
            Record::RenameCopied if self.is_listed => self.is_copied = true,
            Record::Durable => {}
            _ => return Err("the record does not belong in the log of a rename"),
        }
        Ok(())
    }
}

impl RenameLog {
    /// Logs all keys, durably.
    pub(super) fn begin(
        folder: Arc<JournalDirectory>,
        (from, to): (&str, &str),
        keys: Vec<RenameKey>,
    ) -> Result<Self, JournalError> {
        let log = folder.new_log(LogKind::Rename)?;
        let mut begun = Self { folder, log, state: RenameState::default() };
        begun.log_keys((from, to), &keys).inspect_err(|_| {
            // No object was copied. If this fails, the next mount deletes the log.
            let _ = begun.folder.delete(&begun.log.file().path());
        })?;
        Ok(begun)
    }

    fn log_keys(
        &mut self,
        (from, to): (&str, &str),
        keys: &[RenameKey],
    ) -> Result<(), JournalError> {
        self.append_record(&Record::RenameBegin { from, to })?;
        for RenameKey { rest, etag, size } in keys {
            self.append_record(&Record::RenameKey { rest, etag, size: *size })?;
        }
        self.append_record(&Record::RenameListed)?;
        self.sync()
    }

    /// Resumes an existing log. An incomplete list is deleted, since nothing was copied: `None`.
    pub(super) fn resume(
        folder: Arc<JournalDirectory>,
        file: LogFile,
    ) -> Result<(Option<Self>, u64), JournalError> {
        let mut state = RenameState::default();
        let scanned = file.scan(&mut |_, record| state.apply(record))?;
        let log = Log::resume(file, scanned)?;
        let found = Self { folder, log, state };
        if found.state.is_listed {
            return Ok((Some(found), scanned.torn_bytes));
        }
        found.end()?;
        Ok((None, scanned.torn_bytes))
    }

    fn append_record(&mut self, record: &Record<'_>) -> Result<(), JournalError> {
        self.log.append(record)?;
        self.state.apply(record.clone()).expect("the records come in their order");
        Ok(())
    }

    fn sync(&mut self) -> Result<(), JournalError> {
        if let Some((file, count)) = self.log.unsynced()? {
            let done = file.sync();
            self.log.synced(&file, count, done.is_err());
            done?;
        }
        Ok(())
    }

    /// The content of the log.
    pub fn state(&self) -> &RenameState {
        &self.state
    }

    /// Where the log is.
    pub fn path(&self) -> PathBuf {
        self.log.file().path()
    }

    /// The mark of the copy of a key, by its index in [`RenameState::keys`].
    pub fn mark(&self, key: usize) -> WriteId {
        WriteId { log: self.log.file().header().log, through: key as u64 + 1 }
    }

    /// Records, durably, that all keys are copied.
    ///
    /// # Errors
    /// [`JournalError`]: the caller has to undo the rename.
    pub fn copied(&mut self) -> Result<(), JournalError> {
        self.append_record(&Record::RenameCopied)?;
        self.sync()
    }

    /// Deletes the log of a rename that is finished or undone.
    ///
    /// # Errors
    /// [`JournalError::Io`].
    pub fn end(self) -> Result<(), JournalError> {
        self.folder.delete(&self.log.file().path())
    }
}
