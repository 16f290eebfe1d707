//! Between the origin's types and the protocol library's.

use crate::number::CONTROL_FIRST;
use crate::view::Told;
use ogive_origin::{Attributes, Caller, FileKind, OFlags, SetTime, Time};
use std::time::SystemTime;

/// Who asks.
pub(super) fn caller(request: &fuser::Request, umask: u32) -> Caller {
    Caller { user: request.uid(), group: request.gid(), umask }
}

/// How a file is to be opened.
pub(super) fn open_flags(flags: i32) -> OFlags {
    OFlags::from_bits_retain(flags as u32)
}

/// Attributes as the library wants them.
pub(super) fn attributes(told: &Told) -> fuser::FileAttr {
    let Attributes { accessed, modified, changed, .. } = told.attributes;
    fuser::FileAttr {
        ino: fuser::INodeNo(told.number),
        size: told.attributes.size_bytes,
        blocks: told.attributes.blocks,
        atime: accessed.into(),
        mtime: modified.into(),
        ctime: changed.into(),
        crtime: SystemTime::UNIX_EPOCH,
        kind: kind(told.attributes.kind),
        perm: told.attributes.permissions,
        nlink: told.attributes.links,
        uid: told.attributes.user,
        gid: told.attributes.group,
        rdev: encode_device(told.attributes.special_device),
        blksize: told.attributes.block_size_bytes,
        flags: 0,
    }
}

/// The answer to a lookup that found nothing and may be remembered: inode 0.
pub(super) fn absent() -> fuser::FileAttr {
    let never = SystemTime::UNIX_EPOCH;
    fuser::FileAttr {
        ino: fuser::INodeNo(0),
        size: 0,
        blocks: 0,
        atime: never,
        mtime: never,
        ctime: never,
        crtime: never,
        kind: fuser::FileType::RegularFile,
        perm: 0,
        nlink: 0,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 0,
        flags: 0,
    }
}

/// A node of the control directory: `size_bytes` is not known before it is opened.
pub(super) fn control(number: u64, permissions: u16, owner: (u32, u32)) -> fuser::FileAttr {
    let directory = number == CONTROL_FIRST;
    let now = SystemTime::now();
    fuser::FileAttr {
        ino: fuser::INodeNo(number),
        atime: now,
        mtime: now,
        ctime: now,
        kind: if directory { fuser::FileType::Directory } else { fuser::FileType::RegularFile },
        perm: permissions,
        nlink: if directory { 2 } else { 1 },
        uid: owner.0,
        gid: owner.1,
        blksize: 4096,
        ..absent()
    }
}

/// Kind of file as the library wants it.
pub(super) fn kind(kind: FileKind) -> fuser::FileType {
    match kind {
        FileKind::Regular => fuser::FileType::RegularFile,
        FileKind::Directory => fuser::FileType::Directory,
        FileKind::Symlink => fuser::FileType::Symlink,
        FileKind::Pipe => fuser::FileType::NamedPipe,
        FileKind::Socket => fuser::FileType::Socket,
        FileKind::CharacterDevice => fuser::FileType::CharDevice,
        FileKind::BlockDevice => fuser::FileType::BlockDevice,
    }
}

/// A time to set.
pub(super) fn set_time(time: fuser::TimeOrNow) -> SetTime {
    match time {
        fuser::TimeOrNow::Now => SetTime::Now,
        fuser::TimeOrNow::SpecificTime(time) => SetTime::To(Time::from(time)),
    }
}

/// A device number in the 32 bits that FUSE has for it (`new_encode_dev` of the kernel's
/// `include/linux/kdev_t.h`).
pub(super) fn encode_device(device: u64) -> u32 {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)
}

/// The way back (`new_decode_dev`).
pub(super) fn decode_device(encoded: u32) -> u64 {
    let major = (encoded & 0xf_ff00) >> 8;
    let minor = (encoded & 0xff) | ((encoded >> 12) & 0xf_ff00);
    rustix::fs::makedev(major, minor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn device_numbers_survive_the_protocol(major in 0u32..1 << 12, minor in 0u32..1 << 20) {
            let device = rustix::fs::makedev(major, minor);
            prop_assert_eq!(decode_device(encode_device(device)), device);
        }
    }
}
