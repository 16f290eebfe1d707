//! The journal's directory: its lock, its identity, and the files of its logs.
//!
//! # Invariants
//! - One mount at a time holds the lock.
//! - The identity names the journal's source, authenticated with the journal's key. A directory
//!   without an identity must be empty.
//! - A log is created, replaced and moved durably: each change of a name is synced.

use super::error::JournalError;
use super::format::{
    FormatError, LOG_HEADER_BYTES, LogHeader, LogKind, RECORD_HEADER_BYTES, Record,
};
use super::log::{Log, LogFile, Scanned};
use ogive_l2::{Cipher, MasterKey};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub(super) const LOCK: &str = "lock";
const IDENTITY: &str = "identity";
pub(super) const CONFLICTS: &str = "conflicts";
pub(super) const DAMAGED: &str = "damaged";
/// Names that may exist in a directory before it becomes a journal.
const HARMLESS: [&str; 5] = [LOCK, "identity.new", "lost+found", PASSPHRASE[0], PASSPHRASE[1]];
/// The file of a passphrase's parameters, and its name until it is durable.
pub(super) const PASSPHRASE: [&str; 2] = ["passphrase", "passphrase.new"];

/// The directory of a journal.
#[derive(Debug)]
pub(super) struct JournalDirectory {
    path: PathBuf,
    directory: Arc<File>,
    conflicts: File,
    /// Dropped last, so that the directory is unlocked last.
    _lock: Lock,
    master: MasterKey,
    journal: [u8; 16],
    cipher: Cipher,
    sequence: AtomicU64,
    /// Whether this mount created the journal and has not used it.
    is_unused: AtomicBool,
    /// How many pieces of all files are in memory.
    pub(super) pieces: AtomicU64,
}

impl Drop for JournalDirectory {
    /// An unused journal is removed: a mount that failed must not claim the directory for its
    /// bucket.
    fn drop(&mut self) {
        if !*self.is_unused.get_mut() {
            return;
        }
        // The identity goes first: without it the other files belong to no source.
        let removed = std::fs::remove_file(self.path.join(IDENTITY))
            .and_then(|()| std::fs::remove_dir(self.path.join(CONFLICTS)))
            .and_then(|()| match std::fs::remove_file(self.path.join(PASSPHRASE[0])) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => self.directory.sync_all(),
            });
        if let Err(error) = removed {
            log::warn!("{}: cannot remove the empty staging journal: {error}", self.path.display());
        }
    }
}

/// The lock of a directory, until it is dropped.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process holds it open from fork until exec.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

impl JournalDirectory {
    /// Opens and locks the journal of a source, or creates one in an empty or missing directory.
    pub(super) fn open(
        path: &Path,
        source: &str,
        master: &MasterKey,
        cipher: Cipher,
    ) -> Result<Self, JournalError> {
        make_directory(path)?;
        refuse_what_is_no_journal(path)?;
        let lock = lock(path)?;
        let directory = open_directory(path)?;
        let found = read_identity(path, &directory, master)?;
        let is_unused = AtomicBool::new(found.is_none());
        let (journal, cipher) = match found {
            Some((header, holds)) if holds == source => (header.journal, header.cipher),
            Some((_, holds)) => {
                let (path, wanted) = (path.to_owned(), source.to_owned());
                return Err(JournalError::OtherSource { path, holds, wanted });
            }
            None => make_identity(path, &directory, source, master, cipher)?,
        };
        make_directory(&path.join(CONFLICTS))?;
        let conflicts = open_directory(&path.join(CONFLICTS))?;
        directory.sync_all().map_err(|error| JournalError::io("cannot sync", path, error))?;
        Ok(Self {
            path: path.to_owned(),
            directory: Arc::new(directory),
            conflicts,
            _lock: lock,
            master: master.clone(),
            journal,
            cipher,
            sequence: AtomicU64::new(0),
            is_unused,
            pieces: AtomicU64::new(0),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Sets the first sequence number for new logs. Logs move between directories, so no number may
    /// be used twice.
    pub(super) fn number_from(&self, next: u64) {
        self.sequence.store(next, Ordering::Relaxed);
    }

    /// Creates an empty log.
    pub(super) fn new_log(&self, kind: LogKind) -> Result<Log, JournalError> {
        self.is_unused.store(false, Ordering::Relaxed);
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed);
        let path = self.path.join(format!("{sequence:016x}.log"));
        let (cipher, journal) = (self.cipher, self.journal);
        let header = LogHeader { kind, cipher, journal, log: random()?, salt: random()? };
        self.create(&path, header)
    }

    /// Creates an empty log that will replace another one.
    pub(super) fn new_copy(&self, of: &LogHeader, path: &Path) -> Result<Log, JournalError> {
        let copy = Self::copy_of(path);
        // A copy of an earlier attempt may exist. The original is intact.
        match std::fs::remove_file(&copy) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(JournalError::io("cannot delete", &copy, error));
            }
            _ => {}
        }
        self.create(&copy, LogHeader { salt: random()?, ..*of })
    }

    /// The name of a log's copy until it replaces the log.
    pub(super) fn copy_of(path: &Path) -> PathBuf {
        path.with_extension("new")
    }

    fn create(&self, path: &Path, header: LogHeader) -> Result<Log, JournalError> {
        let file = create_new(path)?;
        let keys = header.keys(self.master.expose());
        let file = LogFile::new((file, path.to_owned()), Arc::clone(&self.directory), header, keys);
        Log::begin(file).inspect_err(|_| {
            // It is empty.
            let _ = std::fs::remove_file(path);
        })
    }

    /// Renames a copy over its original. Returns whether that is durable.
    pub(super) fn put_in_place(&self, copy: &Log, path: &Path) -> Result<bool, JournalError> {
        let from = copy.file().path();
        std::fs::rename(&from, path)
            .map_err(|error| JournalError::io("cannot rename", &from, error))?;
        copy.file().moved_to(path.to_owned());
        Ok(self.directory.sync_all().is_ok())
    }

    /// Deletes a log.
    pub(super) fn delete(&self, path: &Path) -> Result<(), JournalError> {
        std::fs::remove_file(path).map_err(|error| JournalError::io("cannot delete", path, error))
    }

    /// Moves a log to the conflicts, durably.
    pub(super) fn move_to_conflicts(&self, path: &Path) -> Result<PathBuf, JournalError> {
        self.move_to(CONFLICTS, &self.conflicts, path)
    }

    /// Moves a damaged log to `damaged/`, durably.
    pub(super) fn set_aside(&self, path: &Path) -> Result<(), JournalError> {
        let folder = self.path.join(DAMAGED);
        make_directory(&folder)?;
        self.move_to(DAMAGED, &open_directory(&folder)?, path).map(drop)
    }

    /// Moves a log to another directory, durably. If the name exists there, the log gets another
    /// number: either may be the only copy of a program's writes. The journal is locked, so no
    /// other process creates files there.
    fn move_to(&self, name: &str, folder: &File, path: &Path) -> Result<PathBuf, JournalError> {
        let mut to = self.path.join(name).join(path.file_name().unwrap_or_default());
        while exists(&to)? {
            let sequence = self.sequence.fetch_add(1, Ordering::Relaxed);
            to.set_file_name(format!("{sequence:016x}.log"));
        }
        std::fs::rename(path, &to)
            .map_err(|error| JournalError::io("cannot rename", path, error))?;
        for directory in [folder, &*self.directory] {
            directory.sync_all().map_err(|error| JournalError::io("cannot sync", &to, error))?;
        }
        Ok(to)
    }

    /// Opens an existing log. A power cut may leave a log shorter than a header and a record, or
    /// one of zeroes only, before its creation was durable. Such a log is deleted.
    pub(super) fn open_log(&self, path: &Path) -> Result<Option<LogFile>, JournalError> {
        let error = |error| JournalError::io("cannot read", path, error);
        let mut file = File::options().read(true).write(true).open(path).map_err(error)?;
        let mut start = Vec::new();
        (&file).take(LOG_HEADER_BYTES as u64).read_to_end(&mut start).map_err(error)?;
        let length = file.metadata().map_err(error)?.len();
        let damaged = |why| JournalError::Damaged { path: path.to_owned(), at: 0, why };
        let header = match LogHeader::parse(&start) {
            Ok(header) => header,
            Err(FormatError::Version(version)) => {
                return Err(JournalError::Version { path: path.to_owned(), version });
            }
            Err(FormatError::Damaged) => {
                let shortest = (LOG_HEADER_BYTES + RECORD_HEADER_BYTES) as u64;
                if length <= shortest || is_zero(&mut file).map_err(error)? {
                    self.delete(path)?;
                    return Ok(None);
                }
                return Err(damaged("its header does not match its checksum"));
            }
        };
        let keys = header.keys(self.master.expose());
        let is_ours =
            start.first_chunk().is_some_and(|start| LogHeader::is_authentic(start, &keys));
        if header.journal != self.journal || header.cipher != self.cipher || !is_ours {
            return Err(damaged("it is the log of another journal"));
        }
        let place = (file, path.to_owned());
        Ok(Some(LogFile::new(place, Arc::clone(&self.directory), header, keys)))
    }
}

/// The logs in a directory, and copies of logs, by their numbers.
pub(super) fn logs_in(directory: &Path) -> Result<Vec<(u64, PathBuf)>, JournalError> {
    let error = |error| JournalError::io("cannot list", directory, error);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(error)? {
        let path = entry.map_err(error)?.path();
        let digits = path.file_stem().and_then(OsStr::to_str).filter(|digits| digits.len() == 16);
        let sequence = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let is_log = path.extension().is_some_and(|kind| kind == "log" || kind == "new");
        if let (Some(sequence), true) = (sequence, is_log) {
            found.push((sequence, path));
        }
    }
    found.sort();
    Ok(found)
}

pub(super) fn make_directory(path: &Path) -> Result<(), JournalError> {
    ogive_private::create_directories(path)
        .map_err(|error| JournalError::io("cannot make the directory", path, error))
}

pub(super) fn open_directory(path: &Path) -> Result<File, JournalError> {
    File::open(path).map_err(|error| JournalError::io("cannot open", path, error))
}

fn create_new(path: &Path) -> Result<File, JournalError> {
    ogive_private::create_new(path).map_err(|error| JournalError::io("cannot create", path, error))
}

/// Refuses a directory without an identity unless it is empty.
pub(super) fn refuse_what_is_no_journal(path: &Path) -> Result<(), JournalError> {
    let error = |error| JournalError::io("cannot list", path, error);
    let mut is_empty = true;
    for entry in std::fs::read_dir(path).map_err(error)? {
        let name = entry.map_err(error)?.file_name();
        if name == IDENTITY {
            return Ok(());
        }
        is_empty &= HARMLESS.iter().any(|harmless| name == *harmless);
    }
    if is_empty { Ok(()) } else { Err(JournalError::NotAJournal(path.to_owned())) }
}

pub(super) fn lock(path: &Path) -> Result<Lock, JournalError> {
    let name = path.join(LOCK);
    let mut options = ogive_private::options();
    options.read(true).write(true).create(true).truncate(false);
    let file =
        options.open(&name).map_err(|error| JournalError::io("cannot open", &name, error))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Lock(file)),
        Err(Errno::WOULDBLOCK) => Err(JournalError::InUse(path.to_owned())),
        Err(error) => Err(JournalError::io("cannot lock", &name, error)),
    }
}

/// Whether a directory is a journal already.
pub(super) fn has_identity(path: &Path) -> Result<bool, JournalError> {
    exists(&path.join(IDENTITY))
}

/// Whether a path exists. An error is not the same as absence.
pub(super) fn exists(path: &Path) -> Result<bool, JournalError> {
    match path.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(JournalError::io("cannot look at", path, error)),
    }
}

/// The identity of a journal, and its source.
pub(super) fn read_identity(
    path: &Path,
    directory: &File,
    master: &MasterKey,
) -> Result<Option<(LogHeader, String)>, JournalError> {
    let path = path.join(IDENTITY);
    let error = |error| JournalError::io("cannot read", &path, error);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(other) => return Err(error(other)),
    };
    let mut start = Vec::new();
    (&file).take(LOG_HEADER_BYTES as u64).read_to_end(&mut start).map_err(error)?;
    let damaged = |at, why| JournalError::Damaged { path: path.clone(), at, why };
    let header = match (LogHeader::parse(&start), start.first_chunk()) {
        (Ok(header), Some(start)) if header.kind == LogKind::Identity => {
            if !LogHeader::is_authentic(start, &header.keys(master.expose())) {
                return Err(JournalError::WrongKey(path.with_file_name("")));
            }
            header
        }
        (Err(FormatError::Version(version)), _) => {
            return Err(JournalError::Version { path, version });
        }
        _ => return Err(damaged(0, "its header does not match its checksum")),
    };
    let directory = directory.try_clone().map_err(error)?;
    let keys = header.keys(master.expose());
    let log = LogFile::new((file, path.clone()), Arc::new(directory), header, keys);
    let mut source = None;
    let Scanned { end, .. } = log.scan(&mut |_, record| match record {
        Record::Source(is) => {
            source = Some(is.to_owned());
            Ok(())
        }
        _ => Err("the record does not belong in an identity"),
    })?;
    // It was made durable before it was renamed to its name, so it cannot be torn.
    let source = source.ok_or_else(|| damaged(end, "it does not name its source"))?;
    Ok(Some((header, source)))
}

/// Makes a directory the journal of a source.
fn make_identity(
    path: &Path,
    directory: &File,
    source: &str,
    master: &MasterKey,
    cipher: Cipher,
) -> Result<([u8; 16], Cipher), JournalError> {
    let (name, fresh) = (path.join(IDENTITY), path.join("identity.new"));
    let error = |error| JournalError::io("cannot write", &name, error);
    if fresh.exists() {
        std::fs::remove_file(&fresh).map_err(error)?;
    }
    let journal = random()?;
    let kind = LogKind::Identity;
    let header = LogHeader { kind, cipher, journal, log: random()?, salt: random()? };
    let file = create_new(&fresh)?;
    let (keys, folder) = (header.keys(master.expose()), directory.try_clone().map_err(error)?);
    let mut log = Log::begin(LogFile::new((file, fresh.clone()), Arc::new(folder), header, keys))?;
    log.append(&Record::Source(source))?;
    log.file().sync_data()?;
    std::fs::rename(&fresh, &name).map_err(error)?;
    directory.sync_all().map_err(error)?;
    Ok((journal, cipher))
}

fn random<const LENGTH: usize>() -> Result<[u8; LENGTH], JournalError> {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).map_err(JournalError::Random)?;
    Ok(bytes)
}

/// Whether a file has no bytes other than zeroes.
fn is_zero(file: &mut File) -> io::Result<bool> {
    use std::io::Seek as _;
    file.rewind()?;
    let mut bytes = vec![0; 64 << 10];
    loop {
        match file.read(&mut bytes)? {
            0 => return Ok(true),
            count if bytes[..count].iter().any(|byte| *byte != 0) => return Ok(false),
            _ => {}
        }
    }
}
