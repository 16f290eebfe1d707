//! The note of a multipart upload, made before the upload begins and deleted when the store has
//! ended it.
//!
//! A store keeps, and bills, the parts of an upload that nobody completes or aborts. The note tells
//! the next mount of it.

use super::directory::Folder;
use super::error::JournalError;
use super::format::{LogKind, Record};
use super::log::{Log, LogFile};
use std::sync::Arc;

/// An upload that may be under way.
#[derive(Debug)]
pub struct UploadLog {
    folder: Arc<Folder>,
    log: Log,
    noted: Noted,
}

/// The content of the note.
#[derive(Debug, Default)]
struct Noted {
    address: String,
    began: u64,
    id: Option<String>,
}

impl Noted {
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
    /// Notes an upload to an address that is about to begin, at a time in seconds since the epoch.
    pub(super) fn begin(
        folder: Arc<Folder>,
        address: &str,
        began: u64,
    ) -> Result<Self, JournalError> {
        let log = folder.new_log(LogKind::Upload)?;
        let mut begun = Self { folder, log, noted: Noted::default() };
        begun.say(&Record::Upload { address, began }).inspect_err(|_| {
            // It says nothing.
            let _ = begun.folder.delete(&begun.log.file().path());
        })?;
        Ok(begun)
    }

    /// Takes up a note that was found. `None` if it says nothing: it is deleted.
    pub(super) fn resume(
        folder: Arc<Folder>,
        file: LogFile,
    ) -> Result<(Option<Self>, u64), JournalError> {
        let mut noted = Noted::default();
        let scanned = file.scan(&mut |_, record| noted.apply(&record))?;
        let found = Self { folder, log: Log::resume(file, scanned)?, noted };
        if !found.noted.address.is_empty() {
            return Ok((Some(found), scanned.torn_bytes));
        }
        found.end()?;
        Ok((None, scanned.torn_bytes))
    }

    fn say(&mut self, record: &Record<'_>) -> Result<(), JournalError> {
        self.log.append(record)?;
        self.noted.apply(record).expect("the records come in their order");
        Ok(())
    }

    /// The store has given it an id. Durable when this returns: parts follow.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn named(&mut self, id: &str) -> Result<(), JournalError> {
        self.say(&Record::UploadId(id))?;
        self.log.file().sync()
    }

    /// Address of the object, without a query.
    pub fn address(&self) -> &str {
        &self.noted.address
    }

    /// When it was about to begin, in seconds since the epoch.
    pub fn began(&self) -> u64 {
        self.noted.began
    }

    /// The store's id of it, if it is known.
    pub fn id(&self) -> Option<&str> {
        self.noted.id.as_deref()
    }

    /// Forgets the upload, which has ended.
    ///
    /// # Errors
    /// [`JournalError::Io`].
    pub fn end(self) -> Result<(), JournalError> {
        self.folder.delete(&self.log.file().path())
    }
}
