//! One side of the comparison: a root directory and the files held open below it.
//!
//! A side performs an [`Operation`] with plain system calls and reports the result. It does not
//! judge the result; the comparison does.
//!
//! Opens are non-blocking, so a pipe without a partner answers instead of waiting.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::operation::{Answer, OpenMode, Operation, Outcome};
use crate::{attributes, contents, directory_entries, locks};

/// How many files a side holds open at most.
pub const SLOTS: usize = 8;

/// A root directory and its open files.
#[derive(Debug)]
pub struct Side {
    root: PathBuf,
    slots: Vec<Option<OwnedFd>>,
    prober: Option<PathBuf>,
}

impl Side {
    /// A side rooted at `root` with no file open. `prober` is the program that tries locks from
    /// another process (see [`locks`]).
    #[must_use]
    pub fn new(root: &Path, prober: Option<PathBuf>) -> Side {
        Side {
            root: root.to_path_buf(),
            slots: std::iter::repeat_with(|| None).take(SLOTS).collect(),
            prober,
        }
    }

    /// The root directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The full path of a path below this side's root.
    #[must_use]
    pub fn path(&self, relative: &Path) -> PathBuf {
        self.root.join(relative)
    }

    /// Closes every open file.
    pub fn close_all(&mut self) {
        self.slots.fill_with(|| None);
    }

    /// Makes one operation.
    pub fn apply(&mut self, operation: &Operation) -> Outcome {
        match operation {
            Operation::Open { slot, path, mode, permissions } => {
                self.slots[*slot] = None;
                let opened = open(&self.path(path), *mode, *permissions)?;
                self.slots[*slot] = Some(opened);
                Ok(Answer::Done)
            }
            Operation::Close { slot } => {
                self.slots[*slot] = None;
                Ok(Answer::Done)
            }
            Operation::Write { slot, offset, length, seed } => {
                self.with(*slot, |file| contents::write_at(file, *offset, *length, *seed))
            }
            Operation::WriteHere { slot, length, seed } => {
                self.with(*slot, |file| contents::write_here(file, *length, *seed))
            }
            Operation::Read { slot, offset, length } => {
                self.with(*slot, |file| contents::read_at(file, *offset, *length))
            }
            Operation::TruncateOpen { slot, size } => self.with(*slot, |file| {
                rustix::fs::ftruncate(file, *size)?;
                Ok(Answer::Done)
            }),
            Operation::Synchronize { slot, data_only } => {
                self.with(*slot, |file| contents::synchronize(file, *data_only))
            }
            Operation::Allocate { slot, kind, offset, length } => {
                self.with(*slot, |file| contents::allocate(file, *kind, *offset, *length))
            }
            Operation::StatusOpen { slot } => self
                .with(*slot, |file| Ok(Answer::Status(Box::new(attributes::of_open_file(file)?)))),
            Operation::CopyRange { from, from_offset, to, to_offset, length } => {
                let (Some(source), Some(target)) = (&self.slots[*from], &self.slots[*to]) else {
                    return Ok(Answer::EmptySlot);
                };
                contents::copy_range(source, *from_offset, target, *to_offset, *length)
            }
            Operation::LockConflict { path, held, tried, exclusive } => {
                let Some(prober) = &self.prober else {
                    return Ok(Answer::Done);
                };
                locks::conflict(prober, &self.path(path), *held, *tried, *exclusive)
            }
            _ => self.apply_by_path(operation),
        }
    }

    /// The operations that name their file by path alone.
    fn apply_by_path(&self, operation: &Operation) -> Outcome {
        if let Some(outcome) = contents::by_path(self, operation) {
            return outcome;
        }
        if let Some(outcome) = directory_entries::by_path(self, operation) {
            return outcome;
        }
        attributes::by_path(self, operation).unwrap_or(Err(Errno::NOSYS))
    }

    fn with(&self, slot: usize, work: impl FnOnce(&OwnedFd) -> Outcome) -> Outcome {
        match &self.slots[slot] {
            Some(file) => work(file),
            None => Ok(Answer::EmptySlot),
        }
    }
}

/// Opens a file as `mode` says.
fn open(path: &Path, mode: OpenMode, permissions: u32) -> Result<OwnedFd, Errno> {
    let mut flags = OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    flags |= match (mode.read, mode.write) {
        (true, true) => OFlags::RDWR,
        (false, true) => OFlags::WRONLY,
        (_, false) => OFlags::RDONLY,
    };
    for (is_set, flag) in [
        (mode.append, OFlags::APPEND),
        (mode.create, OFlags::CREATE),
        (mode.exclusive, OFlags::EXCL),
        (mode.truncate && mode.write, OFlags::TRUNC),
    ] {
        if is_set {
            flags |= flag;
        }
    }
    rustix::fs::open(path, flags, Mode::from_raw_mode(permissions))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{FileKind, RenameKind};

    fn side() -> (tempfile::TempDir, Side) {
        let directory = tempfile::tempdir().unwrap();
        let side = Side::new(directory.path(), None);
        (directory, side)
    }

    fn create(slot: usize, path: &str) -> Operation {
        let mode = OpenMode {
            read: true,
            write: true,
            append: false,
            create: true,
            exclusive: false,
            truncate: false,
        };
        Operation::Open { slot, path: path.into(), mode, permissions: 0o644 }
    }

    #[test]
    fn written_bytes_are_read() {
        let (_directory, mut side) = side();
        assert_eq!(side.apply(&create(0, "a")), Ok(Answer::Done));
        let write = Operation::Write { slot: 0, offset: 10, length: 5, seed: 3 };
        assert_eq!(side.apply(&write), Ok(Answer::Count(5)));
        let mut expected = vec![0; 10];
        expected.extend(crate::bytes::filled(3, 5));
        let read = Operation::ReadWhole { path: "a".into() };
        assert_eq!(side.apply(&read), Ok(Answer::Bytes(expected)));
    }

    #[test]
    fn an_unlinked_open_file_is_still_read() {
        let (_directory, mut side) = side();
        side.apply(&create(1, "a")).unwrap();
        side.apply(&Operation::Write { slot: 1, offset: 0, length: 4, seed: 9 }).unwrap();
        side.apply(&Operation::Unlink { path: "a".into() }).unwrap();
        let read = Operation::Read { slot: 1, offset: 0, length: 10 };
        assert_eq!(side.apply(&read), Ok(Answer::Bytes(crate::bytes::filled(9, 4))));
        let status = Operation::Status { path: "a".into(), follow: false };
        assert_eq!(side.apply(&status), Err(Errno::NOENT));
    }

    #[test]
    fn renames_keep_their_flags() {
        let (_directory, mut side) = side();
        side.apply(&create(0, "a")).unwrap();
        side.apply(&create(0, "b")).unwrap();
        let rename = |kind| Operation::Rename { from: "a".into(), to: "b".into(), kind };
        assert_eq!(side.apply(&rename(RenameKind::NoReplace)), Err(Errno::EXIST));
        assert_eq!(side.apply(&rename(RenameKind::Exchange)), Ok(Answer::Done));
        assert_eq!(side.apply(&rename(RenameKind::Plain)), Ok(Answer::Done));
        let list = Operation::ReadDirectory { path: "".into() };
        assert_eq!(side.apply(&list), Ok(Answer::Names(vec![(b"b".to_vec(), FileKind::Regular)])));
    }

    #[test]
    fn a_directory_that_was_crowded_is_gone_afterwards() {
        let (_directory, mut side) = side();
        let crowd = Operation::CrowdDirectory { path: "crowd".into(), files: 300 };
        assert_eq!(side.apply(&crowd), Ok(Answer::Count(300)));
        let list = Operation::ReadDirectory { path: "".into() };
        assert_eq!(side.apply(&list), Ok(Answer::Names(vec![])));
    }
}
