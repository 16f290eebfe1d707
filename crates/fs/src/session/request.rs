//! What a request asks for (`include/uapi/linux/fuse.h`, protocol 7.42), whichever way it came.
//!
//! A request is a header, the fixed arguments of its operation, and a payload: names, bytes to
//! write. By the device they stand one behind the other ([`fixed_bytes`]), in a ring each has a
//! place of its own. Names stand in the payload ([`names`]).

use super::protocol::{Header, opcode, u32_at, u64_at};
use crate::number::Numbers;
use ogive_origin::{
    Access, Allocation, Changes, FileFlags, FlagsForm, OFlags, RenameFlags, SetTime, Time,
    XattrFlags,
};
use rustix::ioctl::opcode as opcode_of;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

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
const GET_FLAGS: u32 = opcode_of::read::<std::ffi::c_long>(b'f', 1) as u32;
const SET_FLAGS: u32 = opcode_of::write::<std::ffi::c_long>(b'f', 2) as u32;
const GET_EXTENDED_FLAGS: u32 = opcode_of::read::<[u32; 7]>(b'X', 31) as u32;
const SET_EXTENDED_FLAGS: u32 = opcode_of::write::<[u32; 7]>(b'X', 32) as u32;
const PLAIN_FLAGS_BYTES: u32 = 4;
const EXTENDED_FLAGS_BYTES: u32 = 28;

/// Longest value of an extended attribute, and list of their names, of `linux/limits.h`
/// (`XATTR_SIZE_MAX`, `XATTR_LIST_MAX`).
pub(super) const XATTR_MAX_BYTES: usize = 65_536;
/// More than any answer has but listings, extended attributes and link targets.
const SMALL_ANSWER_BYTES: usize = 256;
/// Longest target of a symbolic link (`PATH_MAX`).
const LINK_MAX_BYTES: usize = 4096;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Read {
        from: Transfer,
        flags: OFlags,
    },
    /// The writer may not change files and leave them privileged (`CAP_FSETID`); its file has these
    /// flags at this moment.
    Write {
        to: Transfer,
        kills_privileges: bool,
        flags: OFlags,
    },
    Lookup,
    Attributes {
        handle: Option<u64>,
    },
    SetAttributes {
        handle: Option<u64>,
        changes: Changes,
        kills_privileges: bool,
    },
    ReadLink,
    Symlink,
    MakeNode {
        mode: u32,
        device: u32,
        umask: u32,
    },
    MakeDirectory {
        mode: u32,
        umask: u32,
    },
    Unlink,
    RemoveDirectory,
    Rename {
        new_parent: u64,
        flags: RenameFlags,
    },
    Link {
        node: u64,
    },
    /// Whether whoever asks may do this.
    Access {
        wanted: Access,
    },
    Open {
        flags: OFlags,
    },
    Create {
        flags: OFlags,
        mode: u32,
        umask: u32,
    },
    Flush {
        handle: u64,
    },
    Sync {
        handle: u64,
        data_only: bool,
    },
    Release {
        handle: u64,
    },
    OpenDirectory,
    /// The offset is a cookie.
    List(Transfer),
    ListWithAttributes(Transfer),
    SyncDirectory {
        handle: u64,
    },
    ReleaseDirectory {
        handle: u64,
    },
    Statistics,
    SetXattr {
        size_bytes: u32,
        flags: XattrFlags,
        kills_set_group_id: bool,
    },
    GetXattr {
        size_bytes: u32,
    },
    ListXattrs {
        size_bytes: u32,
    },
    RemoveXattr,
    Allocate {
        handle: u64,
        allocation: Allocation,
    },
    Seek {
        handle: u64,
        offset: u64,
        whence: u32,
    },
    CopyRange {
        from: (u64, u64),
        to_node: u64,
        to: (u64, u64),
        length_bytes: u64,
    },
    /// The file system's own flags of a file.
    Flags {
        form: FlagsForm,
    },
    /// They stand in the payload.
    SetFlags {
        form: FlagsForm,
    },
    /// Any other `ioctl(2)`.
    Control,
    /// The kernel gives references back; nothing is answered.
    Forget {
        lookups: u64,
    },
    /// The same of many inodes, which stand in the payload.
    ForgetMany {
        count: u32,
    },
    /// Whoever waits for this request has got a signal; nothing is answered.
    Interrupt {
        unique: u64,
    },
    /// Only an answer, with nothing in it ([`super::uring`]).
    Nudge,
    /// The connection is about to end.
    Destroy,
    /// What this file system does not do.
    Unknown,
    /// The arguments are not what the operation has.
    Malformed,
}

impl Operation {
    /// Whether the kernel may ask for it in the name of anybody who has a descriptor, or in
    /// nobody's. Before it reads or finds the end of a file it asks for attributes.
    pub(super) fn is_of_open_file(&self) -> bool {
        match self {
            Self::Read { .. }
            | Self::Write { .. }
            | Self::Attributes { .. }
            | Self::Flush { .. }
            | Self::Sync { .. }
            | Self::Release { .. }
            | Self::List(_)
            | Self::ListWithAttributes(_)
            | Self::SyncDirectory { .. }
            | Self::ReleaseDirectory { .. }
            | Self::Allocate { .. }
            | Self::Seek { .. }
            | Self::CopyRange { .. }
            | Self::Forget { .. }
            | Self::ForgetMany { .. }
            | Self::Nudge
            | Self::Destroy => true,
            Self::SetAttributes { handle, .. } => handle.is_some(),
            _ => false,
        }
    }
}

/// Which bytes of which open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Transfer {
    pub(super) handle: u64,
    pub(super) offset: u64,
    pub(super) length_bytes: u32,
}

/// A request whose lengths agree with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) unique: u64,
    pub(super) node: u64,
    /// Who asks.
    pub(super) user: u32,
    pub(super) group: u32,
    pub(super) thread: u32,
    pub(super) operation: Operation,
    /// Length of what follows the fixed arguments.
    pub(super) payload_bytes: usize,
}

impl Request {
    /// Reads a request with these fixed arguments and as much payload.
    pub(super) fn new(header: &Header, arguments: &[u8], payload_bytes: usize) -> Self {
        let Header { opcode, unique, node, user, group, thread, .. } = *header;
        let has_length = |dialect| fixed_bytes(opcode, dialect) == Some(arguments.len());
        let operation = if fixed_bytes(opcode, Dialect::SHORT).is_none() {
            Operation::Unknown
        } else if has_length(Dialect::SHORT) || has_length(Dialect::LONG) {
            match Arguments(arguments).operation(opcode) {
                Operation::Write { to, .. } if to.length_bytes as usize != payload_bytes => {
                    Operation::Malformed
                }
                operation => operation,
            }
        } else {
            Operation::Malformed
        };
        Self { unique, node, user, group, thread, operation, payload_bytes }
    }

    /// Reads a request that stands in one piece, and says where its payload begins; `None` if its
    /// lengths contradict each other.
    pub(super) fn parse(message: &[u8], dialect: Dialect) -> Option<(Self, usize)> {
        let header = Header::parse(message)?;
        let after = message.get(super::protocol::REQUEST_HEADER_BYTES..)?;
        if header.total_bytes != message.len() {
            return None;
        }
        let fixed_bytes = fixed_bytes(header.opcode, dialect).unwrap_or(0);
        let arguments = after.get(..fixed_bytes).unwrap_or(after);
        let payload_bytes = after.len() - arguments.len();
        let mut request = Self::new(&header, arguments, payload_bytes);
        if let (false, Operation::Flags { .. } | Operation::SetFlags { .. }) =
            (dialect.checked_flags, request.operation)
        {
            request.operation = Operation::Control;
        }
        Some((request, message.len() - payload_bytes))
    }

    /// Whether it is about the control directory.
    pub(super) fn is_control(&self) -> bool {
        Numbers::is_control(self.node)
    }

    /// Whether it must be carried out even if nobody waits for it any more: what is open would
    /// never be closed.
    pub(super) fn ends_something(&self) -> bool {
        matches!(
            self.operation,
            Operation::Flush { .. }
                | Operation::Release { .. }
                | Operation::ReleaseDirectory { .. }
                | Operation::Forget { .. }
                | Operation::ForgetMany { .. }
        )
    }

    /// How many bytes an answer may need.
    pub(super) fn answer_max_bytes(&self) -> usize {
        match self.operation {
            Operation::List(wanted) | Operation::ListWithAttributes(wanted) => {
                wanted.length_bytes as usize
            }
            Operation::GetXattr { size_bytes } | Operation::ListXattrs { size_bytes } => {
                (size_bytes as usize).clamp(SMALL_ANSWER_BYTES, XATTR_MAX_BYTES)
            }
            Operation::ReadLink => LINK_MAX_BYTES,
            Operation::Read { from, .. } => from.length_bytes as usize,
            _ => SMALL_ANSWER_BYTES,
        }
    }
}

/// What was agreed on of the form of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dialect {
    /// Extended attributes are set with flags of FUSE's own (`FUSE_SETXATTR_EXT`).
    pub(super) long_set_xattr: bool,
    /// The kernel looks who may set flags of files before it asks: since Linux 5.13, protocol 7.33,
    /// and so certainly with 7.34.
    pub(super) checked_flags: bool,
}

impl Dialect {
    const SHORT: Self = Self { long_set_xattr: false, checked_flags: true };
    const LONG: Self = Self { long_set_xattr: true, checked_flags: true };
}

/// Length of the fixed arguments of an operation; `None` if this file system does not do it.
fn fixed_bytes(opcode: u32, dialect: Dialect) -> Option<usize> {
    Some(match opcode {
        opcode::READ | opcode::WRITE | opcode::READDIR | opcode::READDIRPLUS => 40,
        opcode::NOTIFY_REPLY => 40,
        opcode::SETATTR => 88,
        opcode::COPY_FILE_RANGE => 56,
        opcode::IOCTL | opcode::FALLOCATE => 32,
        opcode::RELEASE | opcode::FLUSH | opcode::RELEASEDIR | opcode::LSEEK => 24,
        opcode::GETATTR | opcode::MKNOD | opcode::CREATE | opcode::RENAME2 => 16,
        opcode::FSYNC | opcode::FSYNCDIR => 16,
        opcode::SETXATTR if dialect.long_set_xattr => 16,
        opcode::SETXATTR | opcode::MKDIR | opcode::RENAME | opcode::LINK | opcode::OPEN => 8,
        opcode::OPENDIR | opcode::GETXATTR | opcode::LISTXATTR | opcode::ACCESS => 8,
        opcode::FORGET | opcode::BATCH_FORGET | opcode::INTERRUPT => 8,
        opcode::LOOKUP | opcode::READLINK | opcode::SYMLINK | opcode::STATFS => 0,
        opcode::UNLINK | opcode::RMDIR | opcode::REMOVEXATTR | opcode::DESTROY => 0,
        _ => return None,
    })
}

/// The fixed arguments of an operation.
#[derive(Clone, Copy)]
struct Arguments<'a>(&'a [u8]);

impl Arguments<'_> {
    /// They have the length that the operation's have.
    fn operation(self, opcode: u32) -> Operation {
        match opcode {
            opcode::READ => {
                // Behind the size: flags of the read, the owner of locks, those of the file.
                let flags = OFlags::from_bits_retain(self.u32(32));
                Operation::Read { from: self.transfer(), flags }
            }
            opcode::WRITE => {
                let kills_privileges = self.u32(20) & WRITE_KILLS_PRIVILEGES != 0;
                let flags = OFlags::from_bits_retain(self.u32(32));
                Operation::Write { to: self.transfer(), kills_privileges, flags }
            }
            opcode::LOOKUP => Operation::Lookup,
            opcode::GETATTR => {
                let handle = (self.u32(0) & BY_HANDLE != 0).then(|| self.u64(8));
                Operation::Attributes { handle }
            }
            opcode::SETATTR => self.set_attributes(),
            opcode::ACCESS => Operation::Access { wanted: Access::from_bits_retain(self.u32(0)) },
            opcode::OPEN => Operation::Open { flags: self.flags() },
            opcode::RELEASE => Operation::Release { handle: self.u64(0) },
            opcode::FSYNC => {
                Operation::Sync { handle: self.u64(0), data_only: self.u32(8) & DATA_ONLY != 0 }
            }
            opcode::GETXATTR => Operation::GetXattr { size_bytes: self.u32(0) },
            opcode::LISTXATTR => Operation::ListXattrs { size_bytes: self.u32(0) },
            opcode::FLUSH => Operation::Flush { handle: self.u64(0) },
            opcode::OPENDIR => Operation::OpenDirectory,
            opcode::READDIR => Operation::List(self.transfer()),
            opcode::READDIRPLUS => Operation::ListWithAttributes(self.transfer()),
            opcode::RELEASEDIR => Operation::ReleaseDirectory { handle: self.u64(0) },
            opcode::FSYNCDIR => Operation::SyncDirectory { handle: self.u64(0) },
            opcode::STATFS => Operation::Statistics,
            opcode::IOCTL => self.control(),
            opcode::FORGET => Operation::Forget { lookups: self.u64(0) },
            opcode::BATCH_FORGET => Operation::ForgetMany { count: self.u32(0) },
            opcode::INTERRUPT => Operation::Interrupt { unique: self.u64(0) },
            opcode::NOTIFY_REPLY => Operation::Nudge,
            opcode::DESTROY => Operation::Destroy,
            other => self.of_names(other),
        }
    }

    /// The kernel asks for flags of its own accord, after it has looked who may set which
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

    /// Operations that change names or extended attributes.
    fn of_names(self, opcode: u32) -> Operation {
        match opcode {
            opcode::READLINK => Operation::ReadLink,
            opcode::SYMLINK => Operation::Symlink,
            opcode::UNLINK => Operation::Unlink,
            opcode::RMDIR => Operation::RemoveDirectory,
            opcode::REMOVEXATTR => Operation::RemoveXattr,
            opcode::MKNOD => {
                let (mode, device, umask) = (self.u32(0), self.u32(4), self.u32(8));
                Operation::MakeNode { mode, device, umask }
            }
            opcode::MKDIR => Operation::MakeDirectory { mode: self.u32(0), umask: self.u32(4) },
            opcode::CREATE => {
                let (mode, umask) = (self.u32(4), self.u32(8));
                Operation::Create { flags: self.flags(), mode, umask }
            }
            opcode::LINK => Operation::Link { node: self.u64(0) },
            opcode::RENAME => {
                let new_parent = self.u64(0);
                Operation::Rename { new_parent, flags: RenameFlags::empty() }
            }
            opcode::RENAME2 => {
                let flags = RenameFlags::from_bits_retain(self.u32(8));
                Operation::Rename { new_parent: self.u64(0), flags }
            }
            opcode::SETXATTR => {
                let flags = XattrFlags::from_bits_retain(self.u32(4));
                // Beyond the short form there are zeroes.
                let kills_set_group_id = self.u32(8) & ACL_KILLS_SET_GROUP_ID != 0;
                Operation::SetXattr { size_bytes: self.u32(0), flags, kills_set_group_id }
            }
            other => self.of_ranges(other),
        }
    }

    /// Rare operations on a range of a file, and what this file system does not do.
    fn of_ranges(self, opcode: u32) -> Operation {
        match opcode {
            opcode::FALLOCATE => {
                let allocation = Allocation {
                    offset: self.u64(8),
                    length_bytes: self.u64(16),
                    mode: self.u32(24),
                };
                Operation::Allocate { handle: self.u64(0), allocation }
            }
            opcode::LSEEK => {
                let (handle, offset, whence) = (self.u64(0), self.u64(8), self.u32(16));
                Operation::Seek { handle, offset, whence }
            }
            opcode::COPY_FILE_RANGE => Operation::CopyRange {
                from: (self.u64(0), self.u64(8)),
                to_node: self.u64(16),
                to: (self.u64(24), self.u64(32)),
                length_bytes: self.u64(40),
            },
            _ => Operation::Unknown,
        }
    }

    /// `struct fuse_read_in`, which requests to list a directory share, and `fuse_write_in`.
    fn transfer(self) -> Transfer {
        Transfer { handle: self.u64(0), offset: self.u64(8), length_bytes: self.u32(16) }
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

    fn flags(self) -> OFlags {
        OFlags::from_bits_retain(self.u32(0))
    }

    fn u32(self, at: usize) -> u32 {
        u32_at(self.0, at)
    }

    fn u64(self, at: usize) -> u64 {
        u64_at(self.0, at)
    }
}

/// The inodes that the kernel gives references of back, and how many of each.
pub(super) fn forgotten(payload: &[u8], count: u32) -> impl Iterator<Item = (u64, u64)> {
    payload.chunks_exact(16).take(count as usize).map(|one| (u64_at(one, 0), u64_at(one, 8)))
}

/// The names in a payload, each of which ends with a zero byte; `None` if they are not `N`, or one
/// is empty.
pub(super) fn names<const N: usize>(payload: &[u8]) -> Option<[OsString; N]> {
    let mut rest = payload;
    let mut names = [const { OsString::new() }; N];
    for name in &mut names {
        let length = rest.iter().position(|byte| *byte == 0).filter(|length| *length > 0)?;
        *name = OsStr::from_bytes(&rest[..length]).to_owned();
        rest = &rest[length + 1..];
    }
    rest.is_empty().then_some(names)
}

/// The name at the beginning of a payload and the bytes behind it, of which there are to be so
/// many; `None` if there are others.
pub(super) fn name_and_value(payload: &[u8], size_bytes: u32) -> Option<(OsString, &[u8])> {
    let length = payload.iter().position(|byte| *byte == 0).filter(|length| *length > 0)?;
    let value = &payload[length + 1..];
    (value.len() == size_bytes as usize)
        .then(|| (OsStr::from_bytes(&payload[..length]).to_owned(), value))
}

/// The flags in a payload; `None` if there are fewer bytes.
pub(super) fn flags(payload: &[u8], form: FlagsForm) -> Option<FileFlags> {
    match form {
        FlagsForm::Plain => payload.first_chunk().map(|b| FileFlags::Plain(u32::from_ne_bytes(*b))),
        FlagsForm::Extended if payload.len() < EXTENDED_FLAGS_BYTES as usize => None,
        FlagsForm::Extended => {
            Some(FileFlags::Extended(std::array::from_fn(|field| u32_at(payload, 4 * field))))
        }
    }
}

#[cfg(test)]
mod tests;
