//! Conflicts: files whose objects another client changed first, kept so that they can be recovered.
//!
//! Reading takes no lock and changes nothing, so it is safe while a mount uses the journal. A
//! conflict has all bytes that were written through the mount. The other bytes of the file belonged
//! to the object that was overwritten, and are lost.

use super::directory::{CONFLICTS, LOCK, exists, logs_in, open_directory, read_identity};
use super::error::JournalError;
use super::extents::Span;
use super::format::{LOG_HEADER_BYTES, LogHeader, LogKind, Record};
use super::log::LogFile;
use super::staged_log::Snapshot;
use super::state::State;
use ogive_l2::MasterKey;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file whose object another client changed first.
#[derive(Debug)]
pub struct Conflict {
    path: PathBuf,
    snapshot: Snapshot,
}

/// All conflicts in a journal, the oldest first.
///
/// # Errors
/// [`JournalError`], for example for the first log that cannot be read.
pub fn conflicts(path: &Path, master: &MasterKey) -> Result<Vec<Conflict>, JournalError> {
    let directory = open_directory(path)?;
    let Some((identity, _)) = read_identity(path, &directory, master)? else {
        // A mount that never used the journal leaves only the lock.
        let was_one = exists(&path.join(LOCK))?;
        return if was_one {
            Ok(Vec::new())
        } else {
            Err(JournalError::NoJournal(path.to_owned()))
        };
    };
    let directory = Arc::new(directory);
    let mut found = Vec::new();
    for (_, path) in logs_in(&path.join(CONFLICTS))? {
        if path.extension() == Some(OsStr::new("log")) {
            found.extend(Conflict::read(path, &directory, &identity, master)?);
        }
    }
    Ok(found)
}

/// How many files in a journal wait for their upload. Needs no key, and changes nothing.
///
/// # Errors
/// If the directory cannot be listed, or a log cannot be read.
pub fn count_staged(path: &Path) -> Result<usize, JournalError> {
    let mut count = 0;
    for (_, path) in logs_in(path)? {
        let mut start = [0; LOG_HEADER_BYTES];
        let read = File::open(&path).and_then(|mut file| file.read_exact(&mut start));
        match read.map_err(|error| (error.kind(), error)) {
            Ok(()) => {
                let header = LogHeader::parse(&start);
                count += usize::from(header.is_ok_and(|header| header.kind == LogKind::File));
            }
            // It was deleted in the meantime, or is empty so far.
            Err((io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof, _)) => {}
            Err((_, error)) => return Err(JournalError::io("cannot read", &path, error)),
        }
    }
    Ok(count)
}

impl Conflict {
    fn read(
        path: PathBuf,
        directory: &Arc<File>,
        identity: &LogHeader,
        master: &MasterKey,
    ) -> Result<Option<Self>, JournalError> {
        let error = |error| JournalError::io("cannot read", &path, error);
        let mut file = match File::open(&path) {
            // It was deleted in the meantime.
            Err(gone) if gone.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(error)?,
        };
        let mut start = [0; LOG_HEADER_BYTES];
        file.read_exact(&mut start).map_err(error)?;
        let damaged = |why| JournalError::Damaged { path: path.clone(), at: 0, why };
        let header = LogHeader::parse(&start)
            .map_err(|_| damaged("its header does not match its checksum"))?;
        let keys = header.keys(master.expose());
        let is_ours = header.journal == identity.journal
            && header.kind == LogKind::File
            && LogHeader::is_authentic(&start, &keys);
        if !is_ours {
            return Err(damaged("it is the log of another journal"));
        }
        let log = LogFile::new((file, path.clone()), Arc::clone(directory), header, keys);
        let mut state: Option<State> = None;
        log.scan(&mut |place, record| match (&mut state, record) {
            (Some(state), record) => state.apply(place, record),
            (None, Record::Begin { key, base }) => {
                state = Some(State::new(key, base));
                Ok(())
            }
            (None, _) => Err("the first record does not name a file"),
        })?;
        let snapshot = state.map(|state| Snapshot::of(Arc::new(log), state));
        Ok(snapshot.map(|snapshot| Self { path, snapshot }))
    }

    /// The log.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Key of the object.
    pub fn key(&self) -> &str {
        self.snapshot.state().key()
    }

    /// Size of the file in bytes.
    pub fn size(&self) -> u64 {
        self.snapshot.state().size()
    }

    /// The ranges that were not written through the mount. Their bytes were in the overwritten
    /// object.
    pub fn missing(&self) -> Vec<Range<u64>> {
        let mut at = 0;
        let mut missing = Vec::new();
        for span in self.snapshot.spans(0..self.size()) {
            let end = at + span.bytes();
            if matches!(span, Span::Base(_)) {
                missing.push(at..end);
            }
            at = end;
        }
        missing
    }

    /// Copies the conflict to an empty file, durably. Missing ranges become holes.
    ///
    /// # Errors
    /// [`JournalError`], also for the target.
    pub fn copy_to(&self, file: &File, name: &Path) -> Result<(), JournalError> {
        let error = |error| JournalError::io("cannot write", name, error);
        let mut at = 0;
        for span in self.snapshot.spans(0..self.size()) {
            if let Span::Staged(piece) = span {
                file.write_all_at(&self.snapshot.piece(piece)?, at).map_err(error)?;
            }
            at += span.bytes();
        }
        file.set_len(self.size()).and_then(|()| file.sync_all()).map_err(error)
    }

    /// Deletes the log, once its bytes are recovered or not needed.
    ///
    /// # Errors
    /// [`JournalError::Io`].
    pub fn delete(self) -> Result<(), JournalError> {
        std::fs::remove_file(&self.path)
            .map_err(|error| JournalError::io("cannot delete", &self.path, error))
    }
}
