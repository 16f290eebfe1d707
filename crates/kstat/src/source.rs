//! Reads kstats from a directory that contains a file `arcstats`.
//!
//! On Linux OpenZFS publishes `/proc/spl/kstat/zfs`, and an ogive mount publishes the same files in
//! its control directory. Both have the format of [`crate::named`], so one reader serves both.
//! Every call opens and reads the files again. So a source outlives its mount or module and works
//! again when it returns.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::arcstat::Snapshot;
use crate::error::ParseError;
use crate::kstat::Kstat;
use crate::limits;
use crate::named;

/// Bytes of the first read, more than any of the files has.
const READ_BYTES: usize = 32 << 10;

/// OpenZFS's kstats on Linux, relative to the root directory.
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
    /// The host has no OpenZFS, or it is not loaded.
    #[error(
        "no OpenZFS kstats on this host ({}: {error}); name the mount point of an ogive mount",
        .path.display()
    )]
    NoKernelKstats {
        /// The file that was tried.
        path: PathBuf,
        /// The reason.
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
        /// The reason.
        error: io::Error,
    },
    /// A file exists and cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// A file exists and is not a kstat.
    #[error("{}: {error}", .path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// The fault.
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

    /// A directory that contains `arcstats`, such as the control directory of a mount.
    pub fn directory(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), is_kernel: false }
    }

    /// The directory that is read.
    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// Reads one kstat of the directory.
    ///
    /// # Errors
    /// The kstat does not exist, cannot be read, or is not a named kstat.
    pub fn kstat(&self, name: &str) -> Result<Kstat, SourceError> {
        let path = self.directory.join(name);
        match File::open(&path).and_then(whole) {
            Ok(bytes) => named::parse("zfs", name, &bytes)
                .map_err(|error| SourceError::Parse { path, error }),
            Err(error) if is_absent(&error) => Err(self.absent(path, error)),
            Err(error) => Err(SourceError::Read { path, error }),
        }
    }

    /// Reads the kstats that the columns of [`crate::arcstat`] need: `arcstats`, and `zfetchstats`
    /// and `ogivestats` if they exist.
    ///
    /// # Errors
    /// As [`Source::kstat`]; a missing `zfetchstats` or `ogivestats` is not an error.
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

/// Reads all bytes of a file, up to one more than the limit. Each read of a mount's control file is
/// a request to its daemon. So the first read asks for more than the file has, and the second finds
/// the end.
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
