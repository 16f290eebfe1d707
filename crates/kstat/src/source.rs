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

/// What is asked for at first: more than any of the files has.
const READ_BYTES: usize = 32 << 10;

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
         running `ogive mount`, or a directory that has arcstats in it or in spl/kstat/zfs",
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
        match File::open(&path).and_then(whole) {
            Ok(bytes) => named::parse("zfs", name, &bytes)
                .map_err(|error| SourceError::Parse { path, error }),
            Err(error) if is_absent(&error) => Err(self.absent(path, error)),
            Err(error) => Err(SourceError::Read { path, error }),
        }
    }

    /// Reads what the columns of [`crate::arcstat`] need: `arcstats`, and `zfetchstats` and
    /// `ogivestats` if they are there.
    ///
    /// # Errors
    /// As [`Source::kstat`]; an absent one of the others is none.
    pub fn snapshot(&self) -> Result<Snapshot, SourceError> {
        let arcstats = self.kstat("arcstats")?;
        let mut kstats = vec![arcstats];
        for name in ["zfetchstats", "ogivestats"] {
            match self.kstat(name) {
                Ok(kstat) => kstats.push(kstat),
                Err(SourceError::NoKernelKstats { .. } | SourceError::NotASource { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Snapshot::from_kstats(&kstats))
    }

    fn absent(&self, path: PathBuf, error: io::Error) -> SourceError {
        if self.is_kernel {
            SourceError::NoKernelKstats { path, error }
        } else {
            SourceError::NotASource { path, error }
        }
    }
}

/// All bytes of a file, or as many as are certainly too many. Each read of a mount's control file
/// is a request to its daemon, so one asks for more than there will be, and a second one for the
/// end.
fn whole(mut file: File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; READ_BYTES];
    let mut filled = 0;
    while filled <= limits::MAX_INPUT_BYTES {
        if filled == bytes.len() {
            bytes.resize(2 * filled, 0);
        }
        match file.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
