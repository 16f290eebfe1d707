//! The errors of a journal; each message names the next step.

use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};

/// Why an operation of the journal failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The system reported an error.
    #[error("{what} {path}: {error}")]
    Io {
        /// The action that failed, such as `cannot write to`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The disk of the journal is full. Earlier writes are kept.
    #[error(
        "the disk of the staging journal {0} is full: earlier writes are kept; free some space \
         there, or sync files so that they are uploaded"
    )]
    Full(PathBuf),
    /// The files being written have too many pieces. Earlier writes are kept.
    #[error(
        "the written files have more pieces than the staging journal {0} may keep in memory: \
         earlier writes are kept; close or sync files so that they are uploaded"
    )]
    Crowded(PathBuf),
    /// A sync failed, so the state of the disk is unknown.
    #[error(
        "an earlier sync of {0} failed: its bytes may not survive a power cut; close the file to \
         upload it, and check the disk"
    )]
    Unsynced(PathBuf),
    /// Another mount holds the lock.
    #[error("the staging journal {0} is in use by another mount; give each mount its own --stage")]
    InUse(PathBuf),
    /// The journal belongs to another source.
    #[error(
        "the staging journal {path} holds writes for {holds}, not for {wanted}: mount {holds} with \
         it to upload them, or use another --stage"
    )]
    OtherSource {
        /// The directory.
        path: PathBuf,
        /// Its source.
        holds: String,
        /// The one to mount.
        wanted: String,
    },
    /// The journal was sealed with another key.
    #[error("{0} was sealed with another key: give the original key")]
    WrongKey(PathBuf),
    /// A key was given instead of a passphrase, or the other way round.
    #[error("the staging journal {path} was created with {was}")]
    WrongKind {
        /// The directory.
        path: PathBuf,
        /// The kind of key of the journal, and the next step.
        was: &'static str,
    },
    /// Deriving the key takes more work than allowed.
    #[error(
        "{path} requires {passes} passes over {memory_kib} KiB to derive a key from the \
         passphrase, which is more than --l2-kdf-max allows"
    )]
    Costly {
        /// The file with the parameters.
        path: PathBuf,
        /// Memory to fill, in KiB.
        memory_kib: u32,
        /// How many passes.
        passes: u32,
    },
    /// Deriving the key failed.
    #[error("cannot derive a key from the passphrase: {0}")]
    Secret(ogive_l2::SecretError),
    /// The directory has other files in it.
    #[error("{0} is not a staging journal and not empty: give --stage an empty directory")]
    NotAJournal(PathBuf),
    /// The directory has no journal.
    #[error("{0} is not a staging journal: give the directory that was used with --stage")]
    NoJournal(PathBuf),
    /// An unknown version of the format.
    #[error("{path} has format version {version}, but this program supports only version 1")]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u16,
    },
    /// Durable bytes have changed.
    #[error(
        "{path} is damaged at byte {at}: {why}; durable writes cannot be read back. Nothing was \
         deleted: restore the file, or move it to {}, and mount again",
        aside(path).display()
    )]
    Damaged {
        /// The log.
        path: PathBuf,
        /// The offset of the damage, in bytes.
        at: u64,
        /// The kind of damage.
        why: &'static str,
    },
    /// The system has no random bytes.
    #[error("cannot get random bytes for a log's key: {0}")]
    Random(getrandom::Error),
    /// A key, an ETag or an upload id that is longer than any store's.
    #[error("a name of {0} bytes is too long for the staging journal")]
    NameTooLong(usize),
    /// More records than a log, or more bytes than a file, can have.
    #[error("{0} cannot take another record, or the file would be larger than 2^63 - 1 bytes")]
    TooLarge(PathBuf),
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// The directory for damaged logs.
fn aside(log: &Path) -> PathBuf {
    log.parent().unwrap_or(Path::new("")).join("damaged")
}

impl JournalError {
    /// The errno for a program.
    pub fn errno(&self) -> Errno {
        match self {
            Self::Full(_) | Self::Crowded(_) => Errno::NOSPC,
            // Each staged file keeps its log open.
            Self::Io { error, .. } if is_out_of_descriptors(error) => Errno::NFILE,
            Self::NameTooLong(_) => Errno::NAMETOOLONG,
            Self::TooLarge(_) => Errno::FBIG,
            _ => Errno::IO,
        }
    }

    /// An error of the system about a file. A full disk and an exceeded quota have their own
    /// variant.
    pub(super) fn io(what: &'static str, path: &Path, error: impl Into<io::Error>) -> Self {
        let error = error.into();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::Full(path.to_owned())
            }
            _ => Self::Io { what, path: path.to_owned(), error },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_open_files_keep_their_errno() {
        let errno = |errno| JournalError::io("cannot make", Path::new("/j"), errno).errno();
        assert_eq!((errno(Errno::MFILE), errno(Errno::NFILE)), (Errno::NFILE, Errno::NFILE));
        assert_eq!((errno(Errno::IO), errno(Errno::NOSPC)), (Errno::IO, Errno::NOSPC));
    }
}
