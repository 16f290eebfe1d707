//! One operation on a file system, as plain data.
//!
//! It is generated once, performed on both sides, and written to the log as one line of JSON, which
//! can be replayed. Paths are relative to the root of a side. Contents are a seed and a length.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How a file is opened into a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenMode {
    /// Reading allowed.
    pub read: bool,
    /// Writing allowed.
    pub write: bool,
    /// `O_APPEND`.
    pub append: bool,
    /// `O_CREAT`.
    pub create: bool,
    /// `O_EXCL`.
    pub exclusive: bool,
    /// `O_TRUNC`.
    pub truncate: bool,
}

/// The flavours of `renameat2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RenameKind {
    /// An existing target is replaced.
    Plain,
    /// `RENAME_NOREPLACE`.
    NoReplace,
    /// `RENAME_EXCHANGE`.
    Exchange,
}

/// The flavours of `fallocate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AllocateKind {
    /// Mode 0: allocate and grow.
    Plain,
    /// `FALLOC_FL_KEEP_SIZE`.
    KeepSize,
    /// `FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE`.
    PunchHole,
    /// `FALLOC_FL_ZERO_RANGE`.
    ZeroRange,
}

/// How an extended attribute is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttributeRule {
    /// Create or replace.
    Any,
    /// `XATTR_CREATE`.
    Create,
    /// `XATTR_REPLACE`.
    Replace,
}

/// Files that are neither regular, directory nor link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SpecialKind {
    /// A named pipe.
    Fifo,
    /// A socket's name.
    Socket,
    /// The character device 1:3 (null); only root can make one.
    NullDevice,
}

/// The three kinds of advisory lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LockKind {
    /// `flock(2)`.
    Flock,
    /// `fcntl(F_SETLK)`: owned by the process.
    Process,
    /// `fcntl(F_OFD_SETLK)`: owned by the open file description.
    OpenFile,
}

/// A time as seconds and nanoseconds since 1970.
pub type Moment = (i64, u32);

/// Every modification time set by an operation is before this second (2001-09-09), and every time
/// from a clock is after it. So an earlier time must be equal on both sides. A later time means
/// that the file was modified since, which must hold on both sides as well.
pub const CLOCK_STARTS_SECONDS: i64 = 1_000_000_000;

/// One operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are the arguments of the call that names the variant")]
pub enum Operation {
    Open {
        slot: usize,
        path: PathBuf,
        mode: OpenMode,
        permissions: u32,
    },
    Close {
        slot: usize,
    },
    Write {
        slot: usize,
        offset: u64,
        length: usize,
        seed: u64,
    },
    /// A write at the descriptor's own position, which `O_APPEND` moves to the end.
    WriteHere {
        slot: usize,
        length: usize,
        seed: u64,
    },
    Read {
        slot: usize,
        offset: u64,
        length: usize,
    },
    ReadWhole {
        path: PathBuf,
    },
    DirectWrite {
        path: PathBuf,
        block: u64,
        blocks: usize,
        seed: u64,
    },
    DirectRead {
        path: PathBuf,
        block: u64,
        blocks: usize,
    },
    TruncatePath {
        path: PathBuf,
        size: u64,
    },
    TruncateOpen {
        slot: usize,
        size: u64,
    },
    Synchronize {
        slot: usize,
        data_only: bool,
    },
    Allocate {
        slot: usize,
        kind: AllocateKind,
        offset: u64,
        length: u64,
    },
    SeekHoles {
        path: PathBuf,
    },
    CopyRange {
        from: usize,
        from_offset: u64,
        to: usize,
        to_offset: u64,
        length: usize,
    },
    MapRead {
        path: PathBuf,
        offset: u64,
        length: usize,
    },
    MapWriteShared {
        path: PathBuf,
        offset: u64,
        length: usize,
        seed: u64,
    },
    MapWritePrivate {
        path: PathBuf,
        offset: u64,
        length: usize,
        seed: u64,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
        kind: RenameKind,
    },
    Link {
        from: PathBuf,
        to: PathBuf,
    },
    SymbolicLink {
        target: PathBuf,
        path: PathBuf,
    },
    ReadLink {
        path: PathBuf,
    },
    Unlink {
        path: PathBuf,
    },
    MakeDirectory {
        path: PathBuf,
        permissions: u32,
    },
    RemoveDirectory {
        path: PathBuf,
    },
    MakeSpecial {
        path: PathBuf,
        kind: SpecialKind,
        permissions: u32,
    },
    ReadDirectory {
        path: PathBuf,
    },
    /// Fill a new directory with many files, list it, empty and remove it.
    CrowdDirectory {
        path: PathBuf,
        files: usize,
    },
    Status {
        path: PathBuf,
        follow: bool,
    },
    StatusOpen {
        slot: usize,
    },
    Access {
        path: PathBuf,
        mode: u32,
    },
    ChangeMode {
        path: PathBuf,
        permissions: u32,
    },
    ChangeOwner {
        path: PathBuf,
        user: Option<u32>,
        group: Option<u32>,
    },
    SetTimes {
        path: PathBuf,
        accessed: Moment,
        modified: Moment,
        follow: bool,
    },
    SetAttribute {
        path: PathBuf,
        name: String,
        length: usize,
        seed: u64,
        rule: AttributeRule,
    },
    GetAttribute {
        path: PathBuf,
        name: String,
    },
    ListAttributes {
        path: PathBuf,
    },
    RemoveAttribute {
        path: PathBuf,
        name: String,
    },
    FileSystemStatus,
    LockConflict {
        path: PathBuf,
        held: LockKind,
        tried: LockKind,
        exclusive: bool,
    },
}

/// The kind of file of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileKind {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A pipe, socket or device.
    Special,
}

/// The result of `stat`, without the parts that differ between two copies of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attributes {
    /// Kind of file.
    pub kind: FileKind,
    /// Type and permission bits, as in `st_mode`.
    pub mode: u32,
    /// Owner.
    pub user: u32,
    /// Group.
    pub group: u32,
    /// Bytes; 0 for directories, whose size each file system chooses.
    pub size: u64,
    /// Number of names.
    pub links: u64,
    /// Device number of device nodes.
    pub device: u64,
    /// The modification time when it was set by an operation, `None` when a clock gave it.
    pub set_modified: Option<Moment>,
}

/// The result of an operation; equal on both sides, or the mount is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It worked and there is nothing to compare.
    Done,
    /// A count of bytes or a position.
    Count(u64),
    /// Contents.
    Bytes(Vec<u8>),
    /// Sorted names with the kind from `readdir`.
    Names(Vec<(Vec<u8>, FileKind)>),
    /// Attributes.
    Status(Box<Attributes>),
    /// Sorted texts.
    Texts(Vec<String>),
    /// The slot is empty on this side: nothing was done.
    EmptySlot,
}

/// An answer or an errno.
pub type Outcome = Result<Answer, rustix::io::Errno>;

/// The outcome for a report: contents shown by length and digest.
#[must_use]
pub fn describe(outcome: &Outcome) -> String {
    match outcome {
        Ok(Answer::Bytes(bytes)) => {
            format!("{} bytes, digest {:016x}", bytes.len(), crate::bytes::digest(bytes))
        }
        Ok(other) => format!("{other:?}"),
        Err(errno) => format!("errno {} ({errno})", errno.raw_os_error()),
    }
}
