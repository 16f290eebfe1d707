//! What a request can ask for, with what it says of it.

use ogive_origin::{Access, Allocation, Changes, FlagsForm, OFlags, RenameFlags, XattrFlags};

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
    /// Whether the requester may do this.
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
    /// The thread that waits for this request has got a signal; there is no answer.
    Interrupt {
        unique: u64,
    },
    /// Only an answer, with nothing in it ([`super::uring`]).
    Wakeup,
    /// The connection is about to end.
    Destroy,
    /// What this file system does not do.
    Unknown,
    /// The arguments are not what the operation has.
    Malformed,
}

/// Which bytes of which open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Transfer {
    pub(super) handle: u64,
    pub(super) offset: u64,
    pub(super) length_bytes: u32,
}
