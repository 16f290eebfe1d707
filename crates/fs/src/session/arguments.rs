//! The fixed arguments of a request, field by field (`include/uapi/linux/fuse.h`, protocol 7.42).
//!
//! This module trusts no length: a number beyond the end is 0.

use super::operation::{Operation, Transfer};
use super::protocol::{opcode, u32_at, u64_at};
use ogive_origin::{
    Access, Allocation, Changes, FlagsForm, OFlags, RenameFlags, SetTime, Time, XattrFlags,
};
use rustix::ioctl::opcode as opcode_of;

/// Bits of `fuse_setattr_in::valid` (`FATTR_*`).
const SET_MODE: u32 = 1;
const SET_USER: u32 = 1 << 1;
const SET_GROUP: u32 = 1 << 2;
const SET_SIZE: u32 = 1 << 3;
const SET_ACCESSED: u32 = 1 << 4;
const SET_MODIFIED: u32 = 1 << 5;
const SET_BY_HANDLE: u32 = 1 << 6;
const SET_ACCESSED_NOW: u32 = 1 << 7;
const SET_MODIFIED_NOW: u32 = 1 << 8;
const SET_KILLS_PRIVILEGES: u32 = 1 << 11;
/// `FUSE_GETATTR_FH`.
const BY_HANDLE: u32 = 1;
/// `FUSE_FSYNC_FDATASYNC`.
const DATA_ONLY: u32 = 1;
/// `FUSE_WRITE_KILL_SUIDGID`.
const WRITE_KILLS_PRIVILEGES: u32 = 1 << 2;
/// `FUSE_SETXATTR_ACL_KILL_SGID`.
const ACL_KILLS_SET_GROUP_ID: u32 = 1;

/// `FS_IOC_GETFLAGS`, `FS_IOC_SETFLAGS`, `FS_IOC_FSGETXATTR` and `FS_IOC_FSSETXATTR` of
/// `linux/fs.h`.
pub(super) const GET_FLAGS: u32 = opcode_of::read::<std::ffi::c_long>(b'f', 1) as u32;
pub(super) const SET_FLAGS: u32 = opcode_of::write::<std::ffi::c_long>(b'f', 2) as u32;
pub(super) const GET_EXTENDED_FLAGS: u32 = opcode_of::read::<[u32; 7]>(b'X', 31) as u32;
pub(super) const SET_EXTENDED_FLAGS: u32 = opcode_of::write::<[u32; 7]>(b'X', 32) as u32;
const PLAIN_FLAGS_BYTES: u32 = 4;
pub(super) const EXTENDED_FLAGS_BYTES: u32 = 28;

/// The fixed arguments of an operation, whose length is in the operation's row.
#[derive(Clone, Copy)]
pub(super) struct Arguments<'a>(pub(super) &'a [u8]);

impl Arguments<'_> {
    /// Reads the arguments of a request with this opcode.
    pub(super) fn operation(self, opcode: u32) -> Operation {
        match opcode {
            opcode::LOOKUP => Operation::Lookup,
            opcode::FORGET => Operation::Forget { lookups: self.u64(0) },
            opcode::GETATTR => self.attributes(),
            opcode::SETATTR => self.set_attributes(),
            opcode::READLINK => Operation::ReadLink,
            opcode::SYMLINK => Operation::Symlink,
            opcode::MKNOD => {
                let (mode, device, umask) = (self.u32(0), self.u32(4), self.u32(8));
                Operation::MakeNode { mode, device, umask }
            }
            opcode::MKDIR => Operation::MakeDirectory { mode: self.u32(0), umask: self.u32(4) },
            opcode::UNLINK => Operation::Unlink,
            opcode::RMDIR => Operation::RemoveDirectory,
            opcode::RENAME => self.rename(RenameFlags::empty()),
            opcode::LINK => Operation::Link { node: self.u64(0) },
            opcode::OPEN => Operation::Open { flags: self.flags(0) },
            // After the size: flags of the call, the lock owner, flags of the file.
            opcode::READ => Operation::Read { from: self.transfer(), flags: self.flags(32) },
            opcode::WRITE => self.write(),
            opcode::STATFS => Operation::Statistics,
            opcode::RELEASE => Operation::Release { handle: self.u64(0) },
            opcode::FSYNC => self.sync(),
            opcode::SETXATTR => self.set_xattr(),
            opcode::GETXATTR => Operation::GetXattr { size_bytes: self.u32(0) },
            opcode::LISTXATTR => Operation::ListXattrs { size_bytes: self.u32(0) },
            opcode::REMOVEXATTR => Operation::RemoveXattr,
            opcode::FLUSH => Operation::Flush { handle: self.u64(0) },
            opcode::OPENDIR => Operation::OpenDirectory,
            opcode::READDIR => Operation::List(self.transfer()),
            opcode::RELEASEDIR => Operation::ReleaseDirectory { handle: self.u64(0) },
            opcode::FSYNCDIR => Operation::SyncDirectory { handle: self.u64(0) },
            opcode::ACCESS => Operation::Access { wanted: Access::from_bits_retain(self.u32(0)) },
            opcode::CREATE => {
                let (flags, mode, umask) = (self.flags(0), self.u32(4), self.u32(8));
                Operation::Create { flags, mode, umask }
            }
            opcode::INTERRUPT => Operation::Interrupt { unique: self.u64(0) },
            opcode::DESTROY => Operation::Destroy,
            opcode::IOCTL => self.control(),
            opcode::NOTIFY_REPLY => Operation::Wakeup,
            opcode::BATCH_FORGET => Operation::ForgetMany { count: self.u32(0) },
            opcode::FALLOCATE => self.allocate(),
            opcode::READDIRPLUS => Operation::ListWithAttributes(self.transfer()),
            opcode::RENAME2 => self.rename(RenameFlags::from_bits_retain(self.u32(8))),
            opcode::LSEEK => {
                let (handle, offset, whence) = (self.u64(0), self.u64(8), self.u32(16));
                Operation::Seek { handle, offset, whence }
            }
            opcode::COPY_FILE_RANGE => self.copy_range(),
            _ => Operation::Unknown,
        }
    }

    fn write(self) -> Operation {
        let kills_privileges = self.u32(20) & WRITE_KILLS_PRIVILEGES != 0;
        Operation::Write { to: self.transfer(), kills_privileges, flags: self.flags(32) }
    }

    fn attributes(self) -> Operation {
        let handle = (self.u32(0) & BY_HANDLE != 0).then(|| self.u64(8));
        Operation::Attributes { handle }
    }

    /// `struct fuse_setattr_in`.
    fn set_attributes(self) -> Operation {
        let valid = self.u32(0);
        let has = |bit: u32| valid & bit != 0;
        let time = |is_set, is_now, seconds_at, nanoseconds_at| {
            has(is_set).then(|| match has(is_now) {
                true => SetTime::Now,
                // The kernel's seconds are signed.
                false => SetTime::To(Time {
                    seconds: self.u64(seconds_at) as i64,
                    nanoseconds: self.u32(nanoseconds_at),
                }),
            })
        };
        let changes = Changes {
            permissions: has(SET_MODE).then(|| self.u32(68)),
            user: has(SET_USER).then(|| self.u32(76)),
            group: has(SET_GROUP).then(|| self.u32(80)),
            size_bytes: has(SET_SIZE).then(|| self.u64(16)),
            accessed: time(SET_ACCESSED, SET_ACCESSED_NOW, 32, 56),
            modified: time(SET_MODIFIED, SET_MODIFIED_NOW, 40, 60),
        };
        let handle = has(SET_BY_HANDLE).then(|| self.u64(8));
        let kills_privileges = has(SET_KILLS_PRIVILEGES);
        Operation::SetAttributes { handle, changes, kills_privileges }
    }

    fn rename(self, flags: RenameFlags) -> Operation {
        Operation::Rename { new_parent: self.u64(0), flags }
    }

    fn sync(self) -> Operation {
        Operation::Sync { handle: self.u64(0), data_only: self.u32(8) & DATA_ONLY != 0 }
    }

    fn set_xattr(self) -> Operation {
        let flags = XattrFlags::from_bits_retain(self.u32(4));
        // The short form ends before this flag; the bytes beyond it are zero.
        let kills_set_group_id = self.u32(8) & ACL_KILLS_SET_GROUP_ID != 0;
        Operation::SetXattr { size_bytes: self.u32(0), flags, kills_set_group_id }
    }

    /// The kernel asks for flags itself, after it has checked that the user may set them
    /// (`fuse_fileattr_get` and `fuse_fileattr_set` of `fs/fuse/ioctl.c`).
    fn control(self) -> Operation {
        let (plain, extended) = (FlagsForm::Plain, FlagsForm::Extended);
        match (self.u32(12), self.u32(24), self.u32(28)) {
            (GET_FLAGS, 0, PLAIN_FLAGS_BYTES) => Operation::Flags { form: plain },
            (SET_FLAGS, PLAIN_FLAGS_BYTES, 0) => Operation::SetFlags { form: plain },
            (GET_EXTENDED_FLAGS, 0, EXTENDED_FLAGS_BYTES) => Operation::Flags { form: extended },
            (SET_EXTENDED_FLAGS, EXTENDED_FLAGS_BYTES, 0) => Operation::SetFlags { form: extended },
            _ => Operation::Control,
        }
    }

    fn allocate(self) -> Operation {
        let (offset, length_bytes) = (self.u64(8), self.u64(16));
        let allocation = Allocation { offset, length_bytes, mode: self.u32(24) };
        Operation::Allocate { handle: self.u64(0), allocation }
    }

    fn copy_range(self) -> Operation {
        Operation::CopyRange {
            from: (self.u64(0), self.u64(8)),
            to_node: self.u64(16),
            to: (self.u64(24), self.u64(32)),
            length_bytes: self.u64(40),
        }
    }

    /// `struct fuse_read_in`, which requests to list a directory share, and `fuse_write_in`.
    fn transfer(self) -> Transfer {
        Transfer { handle: self.u64(0), offset: self.u64(8), length_bytes: self.u32(16) }
    }

    fn flags(self, at: usize) -> OFlags {
        OFlags::from_bits_retain(self.u32(at))
    }

    fn u32(self, at: usize) -> u32 {
        u32_at(self.0, at)
    }

    fn u64(self, at: usize) -> u64 {
        u64_at(self.0, at)
    }
}
