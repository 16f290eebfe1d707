//! What can be wrong with a journal; each message names the next step.

use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};

/// Why the journal refuses.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The system refused.
    #[error("{what} {path}: {error}")]
    Io {
        /// The action that failed, such as `cannot write to`.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's word.
        error: io::Error,
    },
    /// The disk of the journal is full. Nothing that was written before is lost.
    #[error(
        "there is no room for this write in the staging journal {0}: what was written before is \
         kept; free some space there, or sync files so that they are uploaded"
    )]
    Full(PathBuf),
    /// All files that are written have too many pieces. Nothing that was written before is lost.
    #[error(
        "the files that are written have more pieces than the staging journal {0} may keep in \
         memory: what was written before is kept; close or sync files so that they are uploaded"
    )]
    Crowded(PathBuf),
    /// A sync failed: what is on the disk is unknown.
    #[error(
        "a sync of {0} has failed before: what it holds may not survive a power cut; upload it by \
         closing the file, and look at the disk"
    )]
    Unsynced(PathBuf),
    /// Another mount holds the lock.
    #[error("the staging journal {0} is in use by another mount; give each mount its own --stage")]
    InUse(PathBuf),
    /// The journal of another source.
    #[error(
        "the staging journal {path} holds writes for {holds}, not for {wanted}: mount {holds} with \
         it so that they are uploaded, or name another --stage"
    )]
    OtherSource {
        /// The directory.
        path: PathBuf,
        /// Its source.
        holds: String,
        /// The one that is to be mounted.
        wanted: String,
    },
    /// It was sealed with another key.
    #[error("{0} was sealed with another key: give the key that it was made with")]
    WrongKey(PathBuf),
    /// A key was given where there was a passphrase, or the other way round.
    #[error("the staging journal {path} was made with {was}")]
    WrongKind {
        /// The directory.
        path: PathBuf,
        /// What it was made with, and what to do.
        was: &'static str,
    },
    /// Making the key of the passphrase takes more memory than allowed.
    #[error(
        "{path} asks for {passes} passes over {memory_kib} KiB to make a key of the passphrase, \
         which is more than --l2-kdf-max allows"
    )]
    Costly {
        /// The file that says so.
        path: PathBuf,
        /// Memory to fill, in KiB.
        memory_kib: u32,
        /// How often.
        passes: u32,
    },
    /// No key can be made of the passphrase.
    #[error("no key can be made of the passphrase: {0}")]
    Secret(ogive_l2::SecretError),
    /// A directory with something else in it.
    #[error("{0} is no staging journal and is not empty: name an empty directory for --stage")]
    NotAJournal(PathBuf),
    /// A directory without one.
    #[error("{0} is no staging journal: name the directory that was given as --stage")]
    NoJournal(PathBuf),
    /// A version that is not known here.
    #[error("{path} has version {version} of the format; this program knows version 1")]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u16,
    },
    /// Bytes that were durable are not what they were.
    #[error(
        "{path} is damaged at byte {at}: {why}; writes that were durable cannot be read back. \
         Nothing was deleted: restore the file, or set it aside in {}, and mount again",
        aside(path).display()
    )]
    Damaged {
        /// The log.
        path: PathBuf,
        /// Where in it, in bytes.
        at: u64,
        /// What is wrong there.
        why: &'static str,
    },
    /// The system gave no random bytes.
    #[error("the system gave no random bytes for a log's key: {0}")]
    Random(getrandom::Error),
    /// A key, an ETag or an upload id longer than any store has.
    #[error("a name of {0} bytes is too long for the staging journal")]
    NameTooLong(usize),
    /// More records or bytes than a log or a file can have.
    #[error("{0} cannot take another record, or the file would be larger than 2^63 - 1 bytes")]
    TooLarge(PathBuf),
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Where a damaged log is set aside.
fn aside(log: &Path) -> PathBuf {
    log.parent().unwrap_or(Path::new("")).join("damaged")
}

impl JournalError {
    /// The error of a system call.
    pub fn errno(&self) -> Errno {
        match self {
            Self::Full(_) | Self::Crowded(_) => Errno::NOSPC,
            // Each file that is not uploaded has its log open.
            Self::Io { error, .. } if is_out_of_descriptors(error) => Errno::NFILE,
            Self::NameTooLong(_) => Errno::NAMETOOLONG,
            Self::TooLarge(_) => Errno::FBIG,
            _ => Errno::IO,
        }
    }

    /// An error of the system, about a file; a full disk and a used-up quota have words of their
    /// own.
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
    fn too_many_files_are_reported_with_what_they_are() {
        let errno = |errno| JournalError::io("cannot make", Path::new("/j"), errno).errno();
        assert_eq!((errno(Errno::MFILE), errno(Errno::NFILE)), (Errno::NFILE, Errno::NFILE));
        assert_eq!((errno(Errno::IO), errno(Errno::NOSPC)), (Errno::IO, Errno::NOSPC));
    }
}
