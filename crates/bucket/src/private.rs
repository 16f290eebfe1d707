//! Files and directories that this user alone may read: they show what users have, and a umask
//! that lets others read does not change that.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// How to open such a file; a new one is for this user alone.
#[must_use]
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Opens a file to write it anew, and makes it where there is none.
///
/// # Errors
/// Those of open(2).
pub fn create(path: &Path) -> io::Result<File> {
    options().write(true).create(true).truncate(true).open(path)
}

/// Makes a file that is not there yet, to read and to write.
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

/// Makes a directory, and those above it, where there is none.
///
/// # Errors
/// Those of mkdir(2).
pub fn create_directories(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}
