//! Operations on attributes: status, permissions, owners, times, extended attributes.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{
    Access, AtFlags, CWD, FileType, Gid, Mode, Stat, Timespec, Timestamps, Uid, XattrFlags,
};
use rustix::io::Errno;

use crate::access::Side;
use crate::bytes::filled;
use crate::directory_entries::kind_of;
use crate::operation::{
    Answer, AttributeRule, Attributes, CLOCK_STARTS_SECONDS, FileKind, Moment, Operation, Outcome,
};

/// The attributes that must be equal in two copies of a file.
pub(crate) fn comparable(status: &Stat) -> Attributes {
    let file_type = FileType::from_raw_mode(status.st_mode);
    let kind = kind_of(file_type);
    let device_node = matches!(file_type, FileType::CharacterDevice | FileType::BlockDevice);
    Attributes {
        kind,
        mode: status.st_mode,
        user: status.st_uid,
        group: status.st_gid,
        size: if kind == FileKind::Directory { 0 } else { status.st_size.unsigned_abs() },
        links: status.st_nlink,
        device: if device_node { status.st_rdev } else { 0 },
        set_modified: set_by_hand(modified(status)),
    }
}

/// The modification time.
pub(crate) fn modified(status: &Stat) -> Moment {
    (status.st_mtime, u32::try_from(status.st_mtime_nsec).unwrap_or(u32::MAX))
}

fn set_by_hand(moment: Moment) -> Option<Moment> {
    (moment.0 < CLOCK_STARTS_SECONDS).then_some(moment)
}

/// The attributes of an open file.
pub(crate) fn of_open_file(file: &OwnedFd) -> Result<Attributes, Errno> {
    Ok(comparable(&rustix::fs::fstat(file)?))
}

/// The operations on attributes, `None` for all others.
pub(crate) fn by_path(side: &Side, operation: &Operation) -> Option<Outcome> {
    Some(match operation {
        Operation::Status { path, follow } => status(&side.path(path), *follow),
        Operation::Access { path, mode } => {
            rustix::fs::access(side.path(path), Access::from_bits_truncate(*mode))
                .map(|()| Answer::Done)
        }
        Operation::ChangeMode { path, permissions } => {
            rustix::fs::chmod(side.path(path), Mode::from_raw_mode(*permissions))
                .map(|()| Answer::Done)
        }
        Operation::ChangeOwner { path, user, group } => rustix::fs::chownat(
            CWD,
            side.path(path),
            user.map(Uid::from_raw),
            group.map(Gid::from_raw),
            AtFlags::SYMLINK_NOFOLLOW,
        )
        .map(|()| Answer::Done),
        Operation::SetTimes { path, accessed, modified, follow } => {
            set_times(&side.path(path), *accessed, *modified, *follow)
        }
        Operation::FileSystemStatus => file_system_status(side.root()),
        _ => return extended(side, operation),
    })
}

fn status(path: &Path, follow: bool) -> Outcome {
    let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
    Ok(Answer::Status(Box::new(comparable(&rustix::fs::statat(CWD, path, flags)?))))
}

/// Sets both times, and returns both as the file then shows them.
fn set_times(path: &Path, accessed: Moment, modified_at: Moment, follow: bool) -> Outcome {
    let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
    let timespec = |moment: Moment| Timespec { tv_sec: moment.0, tv_nsec: moment.1.into() };
    let times =
        Timestamps { last_access: timespec(accessed), last_modification: timespec(modified_at) };
    rustix::fs::utimensat(CWD, path, &times, flags)?;
    let status = rustix::fs::statat(CWD, path, flags)?;
    Ok(Answer::Texts(vec![
        format!("accessed {}.{:09}", status.st_atime, status.st_atime_nsec),
        format!("modified {:?}", modified(&status)),
    ]))
}

/// Size of the file system and length of names. Free space changes with the writes of other programs,
/// so it is not compared.
fn file_system_status(root: &Path) -> Outcome {
    let status = rustix::fs::statvfs(root)?;
    Ok(Answer::Texts(vec![
        format!("bytes {}", status.f_blocks * status.f_frsize),
        format!("files {}", status.f_files),
        format!("name length {}", status.f_namemax),
    ]))
}

fn extended(side: &Side, operation: &Operation) -> Option<Outcome> {
    Some(match operation {
        Operation::SetAttribute { path, name, length, seed, rule } => {
            let flags = match rule {
                AttributeRule::Any => XattrFlags::empty(),
                AttributeRule::Create => XattrFlags::CREATE,
                AttributeRule::Replace => XattrFlags::REPLACE,
            };
            let value = filled(*seed, *length);
            rustix::fs::lsetxattr(side.path(path), name.as_str(), &value, flags)
                .map(|()| Answer::Done)
        }
        Operation::GetAttribute { path, name } => {
            get_attribute(&side.path(path), name).map(Answer::Bytes)
        }
        Operation::ListAttributes { path } => list_attributes(&side.path(path)).map(Answer::Texts),
        Operation::RemoveAttribute { path, name } => {
            rustix::fs::lremovexattr(side.path(path), name.as_str()).map(|()| Answer::Done)
        }
        _ => return None,
    })
}

/// The value of an extended attribute. As in most programs, a first call gives its size, which must
/// be the size of the value.
pub(crate) fn get_attribute(path: &Path, name: &str) -> Result<Vec<u8>, Errno> {
    let size = rustix::fs::lgetxattr_query(path, name)?;
    let mut value = vec![0; size];
    let count = rustix::fs::lgetxattr(path, name, &mut value[..])?;
    value.truncate(count);
    Ok(value)
}

/// The sorted names of all extended attributes.
pub(crate) fn list_attributes(path: &Path) -> Result<Vec<String>, Errno> {
    let size = rustix::fs::llistxattr_query(path)?;
    let mut list = vec![0_u8; size];
    let count = rustix::fs::llistxattr(path, &mut list[..])?;
    list.truncate(count);
    let mut names: Vec<String> = list
        .split(|&byte| byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect();
    names.sort();
    Ok(names)
}

/// Sets only the modification time; links are not followed.
///
/// # Errors
/// The errno of `utimensat`.
pub fn restore_modified(path: &Path, moment: Moment) -> Result<(), Errno> {
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT },
        last_modification: Timespec { tv_sec: moment.0, tv_nsec: moment.1.into() },
    };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)
}

/// The modification time of a path; links are not followed.
///
/// # Errors
/// The errno of `lstat`.
pub fn modified_of(path: &Path) -> Result<Moment, Errno> {
    Ok(modified(&rustix::fs::lstat(path)?))
}
