//! Opening the file: a damaged file is set aside, a file of another kind is refused.
//!
//! On request, `redb` checks every page against its checksum, and this module always asks. A file
//! that fails is renamed, never removed, and a new one takes its place. A file that does not begin
//! like one of `redb` belongs to another program: it is left alone.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use redb::{Builder, Database, DatabaseError, TableHandle as _};

use super::{MOUNTS, NAMES, ROWS, Week};

/// First bytes of a file of `redb`.
const MAGIC: &[u8; 9] = b"redb\x1a\x0a\xa9\x0d\x0a";
/// Pages that are kept in memory, in bytes.
const CACHE_BYTES: usize = 1 << 20;

/// A week that can be used.
#[derive(Debug)]
pub struct Opened {
    /// The week.
    pub week: Week,
    /// A damaged file was here, and is now there: why, and where.
    pub set_aside: Option<(String, PathBuf)>,
}

/// Why a file cannot be used.
#[derive(Debug)]
pub enum Unusable {
    /// Another process has it open.
    InUse,
    /// It is a file of something else.
    Foreign,
    /// It cannot be read or written.
    Failed(io::Error),
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse => f.write_str("another process writes to it"),
            Self::Foreign => f.write_str("it is a file of something else"),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

/// The result of an attempt.
enum Failure {
    Unusable(Unusable),
    Damaged(String),
}

pub(super) fn open(path: &Path) -> Result<Opened, Unusable> {
    match attempt(path) {
        Ok(week) => Ok(Opened { week, set_aside: None }),
        Err(Failure::Unusable(unusable)) => Err(unusable),
        Err(Failure::Damaged(why)) => {
            let mut aside = path.as_os_str().to_owned();
            aside.push(".damaged");
            let aside = PathBuf::from(aside);
            std::fs::rename(path, &aside).map_err(Unusable::Failed)?;
            match attempt(path) {
                Ok(week) => Ok(Opened { week, set_aside: Some((why, aside)) }),
                Err(Failure::Unusable(unusable)) => Err(unusable),
                Err(Failure::Damaged(why)) => Err(Unusable::Failed(io::Error::other(why))),
            }
        }
    }
}

fn attempt(path: &Path) -> Result<Week, Failure> {
    let failed = |error| Failure::Unusable(Unusable::Failed(error));
    // Names of mounts and threads are in it: for its owner alone.
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(failed)?;
    if !is_ours(&mut file).map_err(failed)? {
        return Err(Failure::Unusable(Unusable::Foreign));
    }
    drop(file);
    // A library that reads what it did not write may hold something for impossible.
    catch_unwind(AssertUnwindSafe(|| database(path)))
        .unwrap_or_else(|_| Err(Failure::Damaged("its bytes contradict each other".to_owned())))
}

/// Whether a file is empty, or begins as one of `redb`.
fn is_ours(file: &mut File) -> io::Result<bool> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(false);
    }
    let mut head = Vec::new();
    file.take(MAGIC.len() as u64).read_to_end(&mut head)?;
    Ok(head.is_empty() || head == MAGIC)
}

fn database(path: &Path) -> Result<Week, Failure> {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES).set_check_integrity_on_open(true);
    let database = builder.create(path).map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => {
            Failure::Unusable(Unusable::InUse)
        }
        other => failure(other.into()),
    })?;
    if !has_only_ours(&database).map_err(failure)? {
        return Err(Failure::Unusable(Unusable::Foreign));
    }
    Week::new(database, path).map_err(failure)
}

/// Whether a database has no foreign table.
fn has_only_ours(database: &Database) -> Result<bool, redb::Error> {
    use redb::ReadableDatabase as _;
    let own = [ROWS.name(), NAMES.name(), MOUNTS.name()];
    let transaction = database.begin_read()?;
    let only_ours = transaction.list_tables()?.all(|table| own.contains(&table.name()));
    Ok(only_ours && transaction.list_multimap_tables()?.next().is_none())
}

/// Whether what went wrong is in the bytes of the file, or in reaching them.
fn failure(error: redb::Error) -> Failure {
    let is_bytes = |error: &io::Error| {
        matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof)
    };
    match error {
        redb::Error::Io(error) if !is_bytes(&error) => Failure::Unusable(Unusable::Failed(error)),
        other => Failure::Damaged(other.to_string()),
    }
}
