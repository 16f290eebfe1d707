//! Changes behind the mount, directly in its source, where the mount cannot see them.
//!
//! Each change is made to a file of the source and equally to its copy in the mirror. The list has
//! the changes that a cache easily misses. The size stays, the time is set back, two changes fall
//! into one clock tick, or the name gets another file.

use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::attributes::{modified_of, restore_modified};
use crate::bytes::filled;
use crate::contents::{read_whole, write_fully};

/// The ways to change a regular file behind a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// Some bytes are overwritten, the size stays.
    SameSize,
    /// As [`Change::SameSize`], and the modification time is set back to what it was.
    TimeRestored,
    /// Two overwrites of one place, one right after the other.
    Twice,
    /// The file is emptied and gets its old size back: all zeros.
    EmptiedAndExtended,
    /// The file is overwritten with other bytes of the same length.
    Rewritten,
    /// Bytes are appended.
    Grown,
    /// The file is cut in half.
    Shrunk,
    /// Another file with other bytes, the same size and the same time takes the name.
    Replaced,
}

/// All changes.
pub const CHANGES: [Change; 8] = [
    Change::SameSize,
    Change::TimeRestored,
    Change::Twice,
    Change::EmptiedAndExtended,
    Change::Rewritten,
    Change::Grown,
    Change::Shrunk,
    Change::Replaced,
];

/// Makes `change` to the file at `path` (in the source or in the mirror, never in the mount).
/// The bytes depend only on `seed` and the file's size.
///
/// # Errors
/// The errno of the call that failed.
pub fn make(path: &Path, change: Change, seed: u64) -> Result<(), Errno> {
    let before = modified_of(path)?;
    let file = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let size = rustix::fs::fstat(&file)?.st_size.unsigned_abs();
    let offset = if size == 0 { 0 } else { seed % size };
    let length = usize::try_from((size - offset).min(10_000)).unwrap_or(0);
    match change {
        Change::SameSize => {
            write_fully(&file, offset, &filled(seed, length))?;
        }
        Change::TimeRestored => {
            write_fully(&file, offset, &filled(seed, length))?;
            restore_modified(path, before)?;
        }
        Change::Twice => {
            write_fully(&file, offset, &filled(seed, length))?;
            write_fully(&file, offset, &filled(seed.wrapping_add(1), length))?;
        }
        Change::EmptiedAndExtended => {
            rustix::fs::ftruncate(&file, 0)?;
            rustix::fs::ftruncate(&file, size)?;
        }
        Change::Rewritten => {
            rustix::fs::ftruncate(&file, 0)?;
            write_fully(&file, 0, &filled(seed, usize::try_from(size).unwrap_or(0)))?;
        }
        Change::Grown => {
            write_fully(&file, size, &filled(seed, 5000))?;
        }
        Change::Shrunk => rustix::fs::ftruncate(&file, size / 2)?,
        Change::Replaced => replace(path, seed)?,
    }
    Ok(())
}

/// Gives the name to a new file of the same size, time, permissions and owner. The directory's own
/// time is set back too. The subject of the test is the file, and a change of a directory behind
/// the mount may show late.
fn replace(path: &Path, seed: u64) -> Result<(), Errno> {
    let status = rustix::fs::lstat(path)?;
    let parent = path.parent().ok_or(Errno::INVAL)?;
    let parent_modified = modified_of(parent)?;
    let replacement = parent.join(".ogive-torture-replacement");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = rustix::fs::open(&replacement, flags, Mode::from_raw_mode(0o600))?;
    let mut bytes = read_whole(path)?;
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte ^= (seed as u8 | 1).wrapping_add(at as u8 & 0xfe);
    }
    write_fully(&file, 0, &bytes)?;
    let user = rustix::fs::Uid::from_raw(status.st_uid);
    let group = rustix::fs::Gid::from_raw(status.st_gid);
    rustix::fs::fchown(&file, Some(user), Some(group))?;
    rustix::fs::fchmod(&file, Mode::from_raw_mode(status.st_mode & 0o7777))?;
    for name in crate::attributes::list_attributes(path)? {
        let value = crate::attributes::get_attribute(path, &name)?;
        rustix::fs::fsetxattr(&file, &name, &value, rustix::fs::XattrFlags::empty())?;
    }
    drop(file);
    restore_modified(&replacement, crate::attributes::modified(&status))?;
    rustix::fs::renameat(CWD, &replacement, CWD, path)?;
    restore_modified(parent, parent_modified)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_changes_the_bytes_and_keeps_the_named_attributes() {
        for change in CHANGES {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("file");
            let old = filled(1, 20_000);
            std::fs::write(&path, &old).unwrap();
            // Long ago, so that any later time differs without a tick of the clock.
            restore_modified(&path, (1_000_000_000, 0)).unwrap();
            let time = modified_of(&path).unwrap();
            make(&path, change, 77).unwrap();
            let new = std::fs::read(&path).unwrap();
            assert_ne!(new, old, "{change:?}");
            match change {
                Change::Grown => assert_eq!(new.len(), 25_000),
                Change::Shrunk => assert_eq!(new.len(), 10_000),
                _ => assert_eq!(new.len(), 20_000, "{change:?}"),
            }
            let kept = matches!(change, Change::TimeRestored | Change::Replaced);
            assert_eq!(modified_of(&path).unwrap() == time, kept, "{change:?}");
        }
    }

    #[test]
    fn a_change_is_the_same_in_two_copies() {
        for change in CHANGES {
            let directory = tempfile::tempdir().unwrap();
            let (one, two) = (directory.path().join("one"), directory.path().join("two"));
            std::fs::write(&one, filled(5, 9_000)).unwrap();
            std::fs::copy(&one, &two).unwrap();
            make(&one, change, 1234).unwrap();
            make(&two, change, 1234).unwrap();
            assert_eq!(std::fs::read(&one).unwrap(), std::fs::read(&two).unwrap(), "{change:?}");
        }
    }
}
