//! Files and directories that only their owner may read, whatever the umask allows, because they
//! contain private data.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Options for open(2) that make a created file private.
#[must_use]
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Opens a file for writing and truncates it, or creates it.
///
/// # Errors
/// The errors of open(2).
pub fn create(path: &Path) -> io::Result<File> {
    options().write(true).create(true).truncate(true).open(path)
}

/// Creates a file that does not exist yet, for reading and writing.
///
/// # Errors
/// The errors of open(2).
pub fn create_new(path: &Path) -> io::Result<File> {
    options().read(true).write(true).create_new(true).open(path)
}

/// Writes a whole file.
///
/// # Errors
/// The errors of open(2) and write(2).
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    create(path)?.write_all(bytes.as_ref())
}

/// Creates a directory, and its missing parents.
///
/// # Errors
/// The errors of mkdir(2).
pub fn create_directories(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}
