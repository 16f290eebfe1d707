//! The operations that a request can ask for, with their arguments.

use ogive_origin::{Access, Allocation, Changes, FlagsForm, OFlags, RenameFlags, XattrFlags};

/// An operation with its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Read {
        from: Transfer,
        flags: OFlags,
    },
    /// Unless it may keep privileges, the writer must not leave the file privileged (`CAP_FSETID`).
    /// The flags are those of the file at this moment.
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
    /// Whether the requester has these rights.
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
    /// The flags that the file system itself keeps for a file.
    Flags {
        form: FlagsForm,
    },
    /// The flags stand in the payload.
    SetFlags {
        form: FlagsForm,
    },
    /// Any other `ioctl(2)`.
    Control,
    /// The kernel gives references back; no answer follows.
    Forget {
        lookups: u64,
    },
    /// The same for many inodes, which stand in the payload.
    ForgetMany {
        count: u32,
    },
    /// The thread that waits for this request has got a signal; no answer follows.
    Interrupt {
        unique: u64,
    },
    /// A request that only wants an empty answer ([`super::uring`]).
    Wakeup,
    /// The connection is about to end.
    Destroy,
    /// An operation that this file system does not have.
    Unknown,
    /// The arguments do not fit the operation.
    Malformed,
}

/// A range of bytes of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Transfer {
    pub(super) handle: u64,
    pub(super) offset: u64,
    pub(super) length_bytes: u32,
}
