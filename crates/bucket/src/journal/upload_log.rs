//! The note of a multipart upload. It is written before the upload begins, and deleted when the
//! store has ended it.
//!
//! A store keeps and bills the parts of an upload that is neither completed nor aborted. The note
//! lets the next mount abort it.

use super::directory::JournalDirectory;
use super::error::JournalError;
use super::format::{LogKind, Record};
use super::log::{Log, LogFile};
use std::sync::Arc;

/// A multipart upload that may still exist.
#[derive(Debug)]
pub struct UploadLog {
    folder: Arc<JournalDirectory>,
    log: Log,
    note: UploadNote,
}

/// The content of the note.
#[derive(Debug, Default)]
struct UploadNote {
    address: String,
    began: u64,
    id: Option<String>,
}

impl UploadNote {
    fn apply(&mut self, record: &Record<'_>) -> Result<(), &'static str> {
        match record {
            Record::Upload { address, began } if self.address.is_empty() => {
                (self.address, self.began) = ((*address).to_owned(), *began);
            }
            Record::UploadId(id) if !self.address.is_empty() => self.id = Some((*id).to_owned()),
            Record::Durable => {}
            _ => return Err("the record does not belong in the note of an upload"),
        }
        Ok(())
    }
}

impl UploadLog {
    /// Writes a note before an upload. `began` is in seconds since the epoch.
    pub(super) fn begin(
        folder: Arc<JournalDirectory>,
        address: &str,
        began: u64,
    ) -> Result<Self, JournalError> {
        let log = folder.new_log(LogKind::Upload)?;
        let mut begun = Self { folder, log, note: UploadNote::default() };
        begun.append(&Record::Upload { address, began }).inspect_err(|_| {
            // It is empty.
            let _ = begun.folder.delete(&begun.log.file().path());
        })?;
        Ok(begun)
    }

    /// Resumes an existing note. An empty one is deleted: `None`.
    pub(super) fn resume(
        folder: Arc<JournalDirectory>,
        file: LogFile,
    ) -> Result<(Option<Self>, u64), JournalError> {
        let mut note = UploadNote::default();
        let scanned = file.scan(&mut |_, record| note.apply(&record))?;
        let found = Self { folder, log: Log::resume(file, scanned)?, note };
        if !found.note.address.is_empty() {
            return Ok((Some(found), scanned.torn_bytes));
        }
        found.end()?;
        Ok((None, scanned.torn_bytes))
    }

    fn append(&mut self, record: &Record<'_>) -> Result<(), JournalError> {
        self.log.append(record)?;
        self.note.apply(record).expect("the records come in their order");
        Ok(())
    }

    /// Records the upload's id, durably: parts may follow.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn named(&mut self, id: &str) -> Result<(), JournalError> {
        self.append(&Record::UploadId(id))?;
        self.log.file().sync()
    }

    /// The address of the object, without a query.
    pub fn address(&self) -> &str {
        &self.note.address
    }

    /// The time of the note, in seconds since the epoch.
    pub fn began(&self) -> u64 {
        self.note.began
    }

    /// The upload's id in the store, if it is known.
    pub fn id(&self) -> Option<&str> {
        self.note.id.as_deref()
    }

    /// Deletes the note of an upload that has ended.
    ///
    /// # Errors
    /// [`JournalError::Io`].
    pub fn end(self) -> Result<(), JournalError> {
        self.folder.delete(&self.log.file().path())
    }
}
