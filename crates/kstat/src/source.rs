//! Where kstats are read from: a directory that has a file `arcstats`.
//!
//! On Linux OpenZFS publishes `/proc/spl/kstat/zfs`; an ogive mount publishes the same files in its
//! control directory. Both are directories of files in the format of [`crate::named`], so there is
//! one reader. Every call reads anew; nothing is kept open, so a source outlives the mount or the
//! module it reads from and heals when it returns.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::arcstat::Snapshot;
use crate::error::ParseError;
use crate::kstat::Kstat;
use crate::limits;
use crate::named;

/// OpenZFS's kstats on Linux, below the root of the file system.
const KERNEL_DIRECTORY: &str = "proc/spl/kstat/zfs";

/// A directory of named kstats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    directory: PathBuf,
    is_kernel: bool,
}

/// A source could not be read.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The host has no OpenZFS (or none loaded).
    #[error(
        "no OpenZFS kstats on this host ({}: {error}): give a mount point: ogive stat MNT",
        .path.display()
    )]
    NoKernelKstats {
        /// The file that was tried.
        path: PathBuf,
        /// Why it could not be opened.
        error: io::Error,
    },
    /// The directory has no `arcstats`.
    #[error(
        "{} is not a kstat directory or a mounted cache ({error}): give the mount point of a \
         running `ogive mount`",
        .path.display()
    )]
    NotASource {
        /// The file that was tried.
        path: PathBuf,
        /// Why it could not be opened.
        error: io::Error,
    },
    /// A file is there and cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file is there and is not a kstat.
    #[error("{}: {error}", .path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: ParseError,
    },
}

impl Source {
    /// OpenZFS's own kstats, `/proc/spl/kstat/zfs`.
    pub fn kernel() -> Self {
        Self::kernel_below(Path::new("/"))
    }

    /// The same below another root directory, for tests and for captures of a machine.
    pub fn kernel_below(root: &Path) -> Self {
        Self { directory: root.join(KERNEL_DIRECTORY), is_kernel: true }
    }

    /// A directory that has `arcstats` in it, such as the control directory of a mount.
    pub fn directory(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), is_kernel: false }
    }

    /// The directory read from.
    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// Reads one kstat of the directory.
    ///
    /// # Errors
    /// [`SourceError`]: not there, not readable, or not a named kstat.
    pub fn kstat(&self, name: &str) -> Result<Kstat, SourceError> {
        let path = self.directory.join(name);
        let mut bytes = Vec::new();
        let limit = limits::MAX_INPUT_BYTES as u64 + 1;
        let read = File::open(&path).and_then(|file| file.take(limit).read_to_end(&mut bytes));
        match read {
            Ok(_) => named::parse("zfs", name, &bytes)
                .map_err(|error| SourceError::Parse { path, error }),
            Err(error) if is_absent(&error) => Err(self.absent(path, error)),
            Err(error) => Err(SourceError::Read { path, error }),
        }
    }

    /// Reads what the columns of [`crate::arcstat`] need: `arcstats`, and `zfetchstats` if it is
    /// there.
    ///
    /// # Errors
    /// As [`Source::kstat`]; an absent `zfetchstats` is none.
    pub fn snapshot(&self) -> Result<Snapshot, SourceError> {
        let arcstats = self.kstat("arcstats")?;
        match self.kstat("zfetchstats") {
            Ok(zfetchstats) => Ok(Snapshot::from_kstats([&arcstats, &zfetchstats])),
            Err(SourceError::NoKernelKstats { .. } | SourceError::NotASource { .. }) => {
                Ok(Snapshot::from_kstats([&arcstats]))
            }
            Err(error) => Err(error),
        }
    }

    fn absent(&self, path: PathBuf, error: io::Error) -> SourceError {
        if self.is_kernel {
            SourceError::NoKernelKstats { path, error }
        } else {
            SourceError::NotASource { path, error }
        }
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
