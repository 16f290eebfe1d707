//! What a request asks for (`include/uapi/linux/fuse.h`, protocol 7.42).
//!
//! The operations that programs make often are read here; all others are [`Operation::Other`], and
//! so is one whose arguments do not have the length they should. Names stand in the payload
//! ([`names`]).

use super::protocol::{self, Head};
use ogive_origin::{Changes, OFlags, RenameFlags, SetTime, Time};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// `enum fuse_opcode`.
const LOOKUP: u32 = 1;
const GETATTR: u32 = 3;
const SETATTR: u32 = 4;
const READLINK: u32 = 5;
const MKDIR: u32 = 9;
const UNLINK: u32 = 10;
const RMDIR: u32 = 11;
const RENAME: u32 = 12;
const OPEN: u32 = 14;
const READ: u32 = 15;
const WRITE: u32 = 16;
const RELEASE: u32 = 18;
const FSYNC: u32 = 20;
const GETXATTR: u32 = 22;
const LISTXATTR: u32 = 23;
const FLUSH: u32 = 25;
const OPENDIR: u32 = 27;
const READDIR: u32 = 28;
const RELEASEDIR: u32 = 29;
const CREATE: u32 = 35;
const IOCTL: u32 = 39;
const NOTIFY_REPLY: u32 = 41;
const READDIRPLUS: u32 = 44;
const RENAME2: u32 = 45;

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
/// `FUSE_GETATTR_FH`.
const BY_HANDLE: u32 = 1;
/// `FUSE_FSYNC_FDATASYNC`.
const DATA_ONLY: u32 = 1;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Read(Transfer),
    Write(Transfer),
    Lookup,
    Attributes {
        handle: Option<u64>,
    },
    SetAttributes {
        handle: Option<u64>,
        changes: Changes,
    },
    ReadLink,
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
    ReleaseDirectory {
        handle: u64,
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
    GetXattr {
        size_bytes: u32,
    },
    ListXattrs {
        size_bytes: u32,
    },
    /// `ioctl`.
    Control,
    /// Only an answer, with nothing in it ([`super::nudge`]).
    Nudge,
    Other,
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
    pub(super) node: u64,
    /// Who asks.
    pub(super) user: u32,
    pub(super) group: u32,
    pub(super) thread: u32,
    pub(super) operation: Operation,
    /// Length of the fixed arguments.
    arguments_bytes: usize,
    /// Length of what follows them.
    pub(super) payload_bytes: usize,
}

impl Request {
    /// Reads a head whose payload stands in a buffer of `capacity_bytes`; `None` if the lengths in
    /// it contradict each other.
    pub(super) fn parse(head: &Head, capacity_bytes: usize) -> Option<Self> {
        let (arguments_bytes, payload_bytes) = protocol::lengths(head, capacity_bytes)?;
        let arguments = Arguments(protocol::arguments(head, arguments_bytes));
        let operation = match protocol::opcode(head) {
            READ => Operation::Read(arguments.transfer()?),
            WRITE => {
                let brings = |wanted: &Transfer| wanted.length_bytes as usize == payload_bytes;
                Operation::Write(arguments.transfer().filter(brings)?)
            }
            opcode => arguments.operation(opcode).unwrap_or(Operation::Other),
        };
        let (user, group, thread) = protocol::caller(head);
        let node = protocol::node(head);
        Some(Self { node, user, group, thread, operation, arguments_bytes, payload_bytes })
    }

    /// The header and the fixed arguments of this request: with the payload after them, what a
    /// reader of the device would have read.
    pub(super) fn pieces<'a>(&self, head: &'a Head) -> [&'a [u8]; 2] {
        [protocol::header(head), protocol::arguments(head, self.arguments_bytes)]
    }
}

/// The fixed arguments of an operation.
#[derive(Clone, Copy)]
struct Arguments<'a>(&'a [u8]);

impl Arguments<'_> {
    fn operation(self, opcode: u32) -> Option<Operation> {
        Some(match opcode {
            LOOKUP => self.exactly(0).map(|_| Operation::Lookup)?,
            GETATTR => {
                let this = self.exactly(16)?;
                let handle = (this.u32(0) & BY_HANDLE != 0).then(|| this.u64(8));
                Operation::Attributes { handle }
            }
            SETATTR => self.set_attributes()?,
            READLINK => self.exactly(0).map(|_| Operation::ReadLink)?,
            MKDIR => {
                let this = self.exactly(8)?;
                Operation::MakeDirectory { mode: this.u32(0), umask: this.u32(4) }
            }
            UNLINK => self.exactly(0).map(|_| Operation::Unlink)?,
            RMDIR => self.exactly(0).map(|_| Operation::RemoveDirectory)?,
            RENAME => {
                let new_parent = self.exactly(8)?.u64(0);
                Operation::Rename { new_parent, flags: RenameFlags::empty() }
            }
            RENAME2 => {
                let this = self.exactly(16)?;
                let flags = RenameFlags::from_bits_retain(this.u32(8));
                Operation::Rename { new_parent: this.u64(0), flags }
            }
            OPEN => Operation::Open { flags: self.exactly(8)?.flags() },
            RELEASE => Operation::Release { handle: self.exactly(24)?.u64(0) },
            FSYNC => {
                let this = self.exactly(16)?;
                Operation::Sync { handle: this.u64(0), data_only: this.u32(8) & DATA_ONLY != 0 }
            }
            GETXATTR => Operation::GetXattr { size_bytes: self.exactly(8)?.u32(0) },
            LISTXATTR => Operation::ListXattrs { size_bytes: self.exactly(8)?.u32(0) },
            FLUSH => Operation::Flush { handle: self.exactly(24)?.u64(0) },
            OPENDIR => self.exactly(8).map(|_| Operation::OpenDirectory)?,
            READDIR => Operation::List(self.transfer()?),
            RELEASEDIR => Operation::ReleaseDirectory { handle: self.exactly(24)?.u64(0) },
            CREATE => {
                let this = self.exactly(16)?;
                let (mode, umask) = (this.u32(4), this.u32(8));
                Operation::Create { flags: this.flags(), mode, umask }
            }
            READDIRPLUS => Operation::ListWithAttributes(self.transfer()?),
            IOCTL => Operation::Control,
            NOTIFY_REPLY => Operation::Nudge,
            _ => return None,
        })
    }

    /// `struct fuse_read_in`, which requests to list a directory share, and `fuse_write_in`.
    fn transfer(self) -> Option<Transfer> {
        let this = self.exactly(40)?;
        Some(Transfer { handle: this.u64(0), offset: this.u64(8), length_bytes: this.u32(16) })
    }

    /// `struct fuse_setattr_in`.
    fn set_attributes(self) -> Option<Operation> {
        let this = self.exactly(88)?;
        let valid = this.u32(0);
        let has = |bit: u32| valid & bit != 0;
        let time = |is_set, is_now, seconds_at, nanoseconds_at| {
            has(is_set).then(|| match has(is_now) {
                true => SetTime::Now,
                // The kernel's seconds are signed.
                false => SetTime::To(Time {
                    seconds: this.u64(seconds_at) as i64,
                    nanoseconds: this.u32(nanoseconds_at),
                }),
            })
        };
        let changes = Changes {
            permissions: has(SET_MODE).then(|| this.u32(68)),
            user: has(SET_USER).then(|| this.u32(76)),
            group: has(SET_GROUP).then(|| this.u32(80)),
            size_bytes: has(SET_SIZE).then(|| this.u64(16)),
            accessed: time(SET_ACCESSED, SET_ACCESSED_NOW, 32, 56),
            modified: time(SET_MODIFIED, SET_MODIFIED_NOW, 40, 60),
        };
        let handle = has(SET_BY_HANDLE).then(|| this.u64(8));
        Some(Operation::SetAttributes { handle, changes })
    }

    fn exactly(self, bytes: usize) -> Option<Self> {
        (self.0.len() == bytes).then_some(self)
    }

    fn flags(self) -> OFlags {
        OFlags::from_bits_retain(self.u32(0))
    }

    fn u32(self, at: usize) -> u32 {
        protocol::u32_at(self.0, at)
    }

    fn u64(self, at: usize) -> u64 {
        protocol::u64_at(self.0, at)
    }
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

#[cfg(test)]
mod tests {
    use super::super::protocol::HEAD_BYTES;
    use super::super::protocol::tests::head;
    use super::*;
    use proptest::prelude::*;

    fn parse(opcode: u32, arguments: &[u8]) -> Operation {
        Request::parse(&head(opcode, arguments, 0), 4096).unwrap().operation
    }

    fn transfer(handle: u64, offset: u64, size: u32) -> Vec<u8> {
        let mut arguments = [handle.to_ne_bytes(), offset.to_ne_bytes()].concat();
        arguments.extend_from_slice(&size.to_ne_bytes());
        arguments.resize(40, 0);
        arguments
    }

    /// Arguments of so many bytes with numbers at these places.
    fn arguments(bytes: usize, small: &[(usize, u32)], large: &[(usize, u64)]) -> Vec<u8> {
        let mut arguments = vec![0; bytes];
        for (at, number) in small {
            arguments[*at..at + 4].copy_from_slice(&number.to_ne_bytes());
        }
        for (at, number) in large {
            arguments[*at..at + 8].copy_from_slice(&number.to_ne_bytes());
        }
        arguments
    }

    #[test]
    fn a_read_says_what_it_wants() {
        let request = Request::parse(&head(15, &transfer(3, 8192, 4096), 0), 1 << 20).unwrap();
        let wanted = Transfer { handle: 3, offset: 8192, length_bytes: 4096 };
        assert_eq!((request.operation, request.node), (Operation::Read(wanted), 99));
        assert_eq!((request.user, request.group, request.thread), (1, 2, 3));
    }

    #[test]
    fn a_write_must_bring_the_bytes_it_speaks_of() {
        let arguments = transfer(3, 0, 512);
        assert!(Request::parse(&head(16, &arguments, 512), 512).is_some());
        assert!(Request::parse(&head(16, &arguments, 511), 512).is_none());
        assert!(Request::parse(&head(16, &arguments, 512), 511).is_none());
    }

    #[test]
    fn the_pieces_of_a_request_are_what_the_device_would_give() {
        // LOOKUP has no fixed arguments: the name alone, as payload.
        let lookup = head(1, &[], 5);
        let request = Request::parse(&lookup, 4096).unwrap();
        assert_eq!(request.operation, Operation::Lookup);
        assert_eq!(request.pieces(&lookup).map(<[u8]>::len), [40, 0]);
        let listing = head(44, &transfer(1, 0, 1 << 20), 0);
        let request = Request::parse(&listing, 4096).unwrap();
        assert!(matches!(request.operation, Operation::ListWithAttributes(_)));
        assert_eq!(request.pieces(&listing).map(<[u8]>::len), [40, 40]);
    }

    #[test]
    fn attributes_are_asked_for_by_number_or_by_handle() {
        let by_number = arguments(16, &[], &[(8, 7)]);
        assert_eq!(parse(3, &by_number), Operation::Attributes { handle: None });
        let by_handle = arguments(16, &[(0, 1)], &[(8, 7)]);
        assert_eq!(parse(3, &by_handle), Operation::Attributes { handle: Some(7) });
    }

    #[test]
    fn only_what_is_marked_is_set() {
        let fields = (
            [(56, 21), (60, 22), (68, 0o100_640), (76, 1000), (80, 1001)],
            [(8, 5), (16, 4096), (32, u64::MAX), (40, 12)],
        );
        let with = |valid| {
            let mut bytes = arguments(88, &fields.0, &fields.1);
            bytes[..4].copy_from_slice(&u32::to_ne_bytes(valid));
            match parse(4, &bytes) {
                Operation::SetAttributes { handle, changes } => (handle, changes),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(with(0), (None, Changes::default()));
        let (handle, changes) = with(1 | 2 | 4 | 8 | 16 | 64 | 32 | 256);
        assert_eq!(handle, Some(5));
        let accessed = SetTime::To(Time { seconds: -1, nanoseconds: 21 });
        let wanted = Changes {
            permissions: Some(0o100_640),
            user: Some(1000),
            group: Some(1001),
            size_bytes: Some(4096),
            accessed: Some(accessed),
            modified: Some(SetTime::Now),
        };
        assert_eq!(changes, wanted);
        let modified = Some(SetTime::To(Time { seconds: 12, nanoseconds: 22 }));
        assert_eq!(with(32).1, Changes { modified, ..Changes::default() });
    }

    #[test]
    fn the_other_operations_say_what_they_want() {
        let flags = OFlags::RDWR | OFlags::APPEND;
        let open = arguments(8, &[(0, flags.bits())], &[]);
        assert_eq!(parse(14, &open), Operation::Open { flags });
        let create = arguments(16, &[(0, flags.bits()), (4, 0o100_600), (8, 0o22)], &[]);
        assert_eq!(parse(35, &create), Operation::Create { flags, mode: 0o100_600, umask: 0o22 });
        let make = arguments(8, &[(0, 0o755), (4, 0o22)], &[]);
        assert_eq!(parse(9, &make), Operation::MakeDirectory { mode: 0o755, umask: 0o22 });
        let rename = arguments(16, &[(8, 1)], &[(0, 44)]);
        let flags = RenameFlags::NOREPLACE;
        assert_eq!(parse(45, &rename), Operation::Rename { new_parent: 44, flags });
        let flags = RenameFlags::empty();
        assert_eq!(parse(12, &rename[..8]), Operation::Rename { new_parent: 44, flags });
        let sync = arguments(16, &[(8, 1)], &[(0, 6)]);
        assert_eq!(parse(20, &sync), Operation::Sync { handle: 6, data_only: true });
        let handle = arguments(24, &[], &[(0, 6)]);
        assert_eq!(parse(18, &handle), Operation::Release { handle: 6 });
        assert_eq!(parse(25, &handle), Operation::Flush { handle: 6 });
        assert_eq!(parse(29, &handle), Operation::ReleaseDirectory { handle: 6 });
        let size = arguments(8, &[(0, 100)], &[]);
        assert_eq!(parse(22, &size), Operation::GetXattr { size_bytes: 100 });
        assert_eq!(parse(23, &size), Operation::ListXattrs { size_bytes: 100 });
        assert_eq!(parse(27, &size), Operation::OpenDirectory);
        assert_eq!(
            [parse(5, &[]), parse(10, &[]), parse(11, &[])],
            [Operation::ReadLink, Operation::Unlink, Operation::RemoveDirectory]
        );
    }

    #[test]
    fn what_is_rare_or_of_another_length_is_left_to_the_library() {
        // SYMLINK, MKNOD, and an OPEN of four bytes.
        assert_eq!(parse(6, &[]), Operation::Other);
        assert_eq!(parse(39, &[0; 32]), Operation::Control);
        assert_eq!(parse(41, &[0; 40]), Operation::Nudge);
        assert_eq!(parse(8, &[0; 16]), Operation::Other);
        assert_eq!(parse(14, &[0; 4]), Operation::Other);
    }

    #[test]
    fn names_end_with_a_zero_byte_and_there_are_as_many_as_expected() {
        assert_eq!(names(b"a\0").unwrap(), ["a"]);
        assert_eq!(names(b"a\0bc\0").unwrap(), ["a", "bc"]);
        assert_eq!(names::<1>(b"a\0b\0"), None);
        assert_eq!(names::<2>(b"a\0b"), None);
        assert_eq!(names::<1>(b"\0"), None);
        assert_eq!(names::<1>(b""), None);
    }

    proptest! {
        #[test]
        fn no_head_leads_out_of_its_buffers(bytes in proptest::collection::vec(any::<u8>(), HEAD_BYTES),
            small in any::<bool>(), opcode in 0u32..60, payload in 0u32..8192, total in 0u32..8192) {
            let mut head: Head = bytes.try_into().unwrap();
            if small {
                head[..4].copy_from_slice(&total.to_ne_bytes());
                head[4..8].copy_from_slice(&opcode.to_ne_bytes());
                head[272..276].copy_from_slice(&payload.to_ne_bytes());
            }
            if let Some(request) = Request::parse(&head, 4096) {
                let length: usize = request.pieces(&head).iter().map(|piece| piece.len()).sum();
                let total = u32::from_ne_bytes(head[..4].try_into().unwrap()) as usize;
                prop_assert_eq!(length + request.payload_bytes, total);
                prop_assert!(request.payload_bytes <= 4096);
            }
        }

        #[test]
        fn any_payload_is_names_or_none(payload in proptest::collection::vec(0u8..3, 0..12)) {
            if let Some([first, second]) = names(&payload) {
                prop_assert_eq!(first.len() + second.len() + 2, payload.len());
            }
        }
    }
}
