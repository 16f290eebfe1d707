//! Operations on directory entries: directories, links, renames, special files.

use std::ffi::CStr;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::access::Side;
use crate::operation::{Answer, FileKind, Operation, Outcome, RenameKind, SpecialKind};

/// The kind of file that a file type stands for.
#[must_use]
pub fn kind_of(file_type: FileType) -> FileKind {
    match file_type {
        FileType::RegularFile => FileKind::Regular,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Link,
        _ => FileKind::Special,
    }
}

/// The operations on names, `None` for all others.
pub(crate) fn by_path(side: &Side, operation: &Operation) -> Option<Outcome> {
    let done = match operation {
        Operation::Rename { from, to, kind } => rename(&side.path(from), &side.path(to), *kind),
        Operation::Link { from, to } => {
            rustix::fs::linkat(CWD, side.path(from), CWD, side.path(to), AtFlags::empty())
        }
        Operation::SymbolicLink { target, path } => rustix::fs::symlink(target, side.path(path)),
        Operation::Unlink { path } => rustix::fs::unlink(side.path(path)),
        Operation::MakeDirectory { path, permissions } => {
            rustix::fs::mkdir(side.path(path), Mode::from_raw_mode(*permissions))
        }
        Operation::RemoveDirectory { path } => rustix::fs::rmdir(side.path(path)),
        Operation::MakeSpecial { path, kind, permissions } => {
            make_special(&side.path(path), *kind, *permissions)
        }
        Operation::ReadLink { path } => return Some(read_link(&side.path(path))),
        Operation::ReadDirectory { path } => {
            return Some(read_directory(&side.path(path)).map(Answer::Names));
        }
        Operation::CrowdDirectory { path, files } => {
            return Some(crowd(&side.path(path), *files));
        }
        _ => return None,
    };
    Some(done.map(|()| Answer::Done))
}

fn rename(from: &Path, to: &Path, kind: RenameKind) -> Result<(), Errno> {
    match kind {
        RenameKind::Plain => rustix::fs::rename(from, to),
        RenameKind::NoReplace => {
            rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)
        }
        RenameKind::Exchange => {
            rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::EXCHANGE)
        }
    }
}

fn make_special(path: &Path, kind: SpecialKind, permissions: u32) -> Result<(), Errno> {
    let (file_type, device) = match kind {
        SpecialKind::Fifo => (FileType::Fifo, 0),
        SpecialKind::Socket => (FileType::Socket, 0),
        SpecialKind::NullDevice => (FileType::CharacterDevice, rustix::fs::makedev(1, 3)),
    };
    rustix::fs::mknodat(CWD, path, file_type, Mode::from_raw_mode(permissions), device)
}

fn read_link(path: &Path) -> Outcome {
    let target = rustix::fs::readlink(path, Vec::new())?;
    Ok(Answer::Texts(vec![target.to_string_lossy().into_owned()]))
}

/// All names of a directory except `.` and `..`, sorted, with the kinds from `readdir` (or from
/// `lstat` if it has none). A name that is listed twice is here twice.
///
/// # Errors
/// The errno of `open` or `getdents`.
pub fn read_directory(path: &Path) -> Result<Vec<(Vec<u8>, FileKind)>, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(path, flags, Mode::empty())?;
    let mut names = Vec::new();
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        let name: &CStr = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let mut file_type = entry.file_type();
        if file_type == FileType::Unknown {
            let status = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
            file_type = FileType::from_raw_mode(status.st_mode);
        }
        names.push((name.to_bytes().to_vec(), kind_of(file_type)));
    }
    names.sort();
    Ok(names)
}

/// Makes a directory with many files, lists it completely, removes every second file, lists again,
/// and removes all. The answer is the number of names in the first listing; a wrong second listing
/// changes it.
fn crowd(path: &Path, files: usize) -> Outcome {
    rustix::fs::mkdir(path, Mode::from_raw_mode(0o755))?;
    let name = |number: usize| path.join(format!("a-name-of-the-crowd-{number:06}"));
    for number in 0..files {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        rustix::fs::open(name(number), flags, Mode::from_raw_mode(0o600))?;
    }
    let first = read_directory(path)?.len();
    for number in (0..files).step_by(2) {
        rustix::fs::unlink(name(number))?;
    }
    let second = read_directory(path)?.len();
    for number in (1..files).step_by(2) {
        rustix::fs::unlink(name(number))?;
    }
    rustix::fs::rmdir(path)?;
    if second != files / 2 {
        return Ok(Answer::Texts(vec![format!("{second} names left of {files}")]));
    }
    Ok(Answer::Count(first as u64))
}
