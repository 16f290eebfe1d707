//! Files and directories that only this user may read, whatever the umask allows: they show what
//! users have.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Options for open(2) that create a private file, where they create one.
#[must_use]
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Opens a file for writing, empties it, and creates it if it does not exist.
///
/// # Errors
/// Those of open(2).
pub fn create(path: &Path) -> io::Result<File> {
    options().write(true).create(true).truncate(true).open(path)
}

/// Creates a file that does not exist yet, for reading and writing.
///
/// # Errors
/// Those of open(2).
pub fn create_new(path: &Path) -> io::Result<File> {
    options().read(true).write(true).create_new(true).open(path)
}

/// Writes a whole file.
///
/// # Errors
/// Those of open(2) and write(2).
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    create(path)?.write_all(bytes.as_ref())
}

/// Creates a directory, and those above it, where they are missing.
///
/// # Errors
/// Those of mkdir(2).
pub fn create_directories(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}
