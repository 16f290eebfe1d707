//! The trait that a mount is built on: everything a file system may ask of the place behind it.
//!
//! The trait is node-based, as the kernel's own VFS is, and it takes the caller's credentials only
//! where an object comes into being: permission checks belong to whoever serves the mount.
//! All methods may block for as long as the origin takes; none holds a lock of the origin's while
//! it does.

use crate::{Attributes, FileKind, Identity, OFlags, RenameFlags, Result, Time, XattrFlags};
use std::ffi::{OsStr, OsString};

/// A place that holds objects and is the authority over them.
pub trait Origin: Send + Sync + 'static {
    /// Names an object whatever its paths; small, because a mount keeps one per known inode.
    type Node: Send + Sync + PartialEq;
    /// An open file.
    type File: Send + Sync;
    /// An open directory.
    type Directory: Send + Sync;

    /// The object at the top. Looked up anew on each call, so an origin that vanished and came
    /// back is found again.
    fn root(&self) -> Result<Found<Self::Node>>;

    /// Finds `name` in the directory `parent`.
    fn lookup(&self, parent: &Self::Node, name: &OsStr) -> Result<Found<Self::Node>>;

    /// Finds `name` in an open directory: what a listing with attributes calls for each entry.
    fn lookup_in(&self, parent: &Self::Directory, name: &OsStr) -> Result<Found<Self::Node>>;

    /// Whether `name` in the directory `parent` leads to `node`.
    fn leads_to(&self, parent: &Self::Node, name: &OsStr, node: &Self::Node) -> Result<bool>;

    /// Current attributes; of `file` where one is given, which works for unlinked files as well.
    fn attributes(&self, node: &Self::Node, file: Option<&Self::File>) -> Result<Attributes>;

    /// Changes attributes and returns the new ones.
    fn set_attributes(
        &self,
        node: &Self::Node,
        file: Option<&Self::File>,
        changes: &Changes,
    ) -> Result<Attributes>;

    /// Target of a symbolic link.
    fn read_link(&self, node: &Self::Node) -> Result<OsString>;

    /// Makes a directory, symbolic link or special file owned by `caller`.
    fn make(
        &self,
        parent: &Self::Node,
        name: &OsStr,
        what: Make<'_>,
        caller: Caller,
    ) -> Result<Found<Self::Node>>;

    /// Creates and opens a regular file owned by `caller`.
    fn create(
        &self,
        parent: &Self::Node,
        name: &OsStr,
        flags: OFlags,
        mode: u32,
        caller: Caller,
    ) -> Result<(Found<Self::Node>, Self::File)>;

    /// Gives `node` another name.
    fn link(
        &self,
        node: &Self::Node,
        file: Option<&Self::File>,
        parent: &Self::Node,
        name: &OsStr,
    ) -> Result<Found<Self::Node>>;

    /// Removes the name of anything but a directory.
    fn unlink(&self, parent: &Self::Node, name: &OsStr) -> Result<()>;

    /// Removes an empty directory.
    fn remove_directory(&self, parent: &Self::Node, name: &OsStr) -> Result<()>;

    /// Renames, with the flags of `renameat2(2)`.
    fn rename(
        &self,
        from: (&Self::Node, &OsStr),
        to: (&Self::Node, &OsStr),
        flags: RenameFlags,
    ) -> Result<()>;

    /// Opens a regular file.
    fn open(&self, node: &Self::Node, flags: OFlags) -> Result<Self::File>;

    /// Appends up to `length_bytes` bytes from `offset` to `into`. Fewer mean the end of the file.
    /// The room that `into` has is filled first and more is made only if there is more to read, so
    /// a caller who knows the size can avoid a large buffer for a small file.
    fn read_at(
        &self,
        file: &Self::File,
        offset: u64,
        length_bytes: usize,
        into: &mut Vec<u8>,
    ) -> Result<()>;

    /// Writes and returns how many bytes reached the origin, all of them unless it ran full.
    fn write_at(&self, file: &Self::File, offset: u64, bytes: &[u8]) -> Result<usize>;

    /// Called each time a descriptor of `file` is closed: the last chance to report an error of a
    /// write that the origin had accepted.
    fn flush(&self, file: &Self::File) -> Result<()>;

    /// Makes the file durable; its contents and what is needed to read them if `data_only`.
    fn sync(&self, file: &Self::File, data_only: bool) -> Result<()>;

    /// Allocates, punches or zeroes a range, with the mode bits of `fallocate(2)`.
    fn allocate(&self, file: &Self::File, allocation: Allocation) -> Result<()>;

    /// Next data or hole at or after `offset`.
    fn seek(&self, file: &Self::File, offset: u64, whence: Whence) -> Result<u64>;

    /// Copies within the origin and returns the number of bytes copied.
    fn copy_range(
        &self,
        from: (&Self::File, u64),
        to: (&Self::File, u64),
        length_bytes: usize,
    ) -> Result<usize>;

    /// Opens a directory for reading.
    fn open_directory(&self, node: &Self::Node) -> Result<Self::Directory>;

    /// Calls `visit` for each entry after `cookie` (0: from the start, which also refreshes a
    /// listing in progress), `.` and `..` among them, until there are no more or `visit` returns
    /// false.
    fn read_directory(
        &self,
        directory: &Self::Directory,
        cookie: u64,
        visit: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Result<()>;

    /// Current attributes of an open directory.
    fn directory_attributes(&self, directory: &Self::Directory) -> Result<Attributes>;

    /// Makes the directory's entries durable.
    fn sync_directory(&self, directory: &Self::Directory) -> Result<()>;

    /// Value of an extended attribute. With an empty `into` only its length is returned.
    fn get_xattr(&self, node: &Self::Node, name: &OsStr, into: &mut [u8]) -> Result<usize>;

    /// Sets an extended attribute.
    fn set_xattr(
        &self,
        node: &Self::Node,
        name: &OsStr,
        value: &[u8],
        flags: XattrFlags,
    ) -> Result<()>;

    /// Names of the extended attributes, each ended by NUL. With an empty `into` only the length.
    fn list_xattrs(&self, node: &Self::Node, into: &mut [u8]) -> Result<usize>;

    /// Removes an extended attribute.
    fn remove_xattr(&self, node: &Self::Node, name: &OsStr) -> Result<()>;

    /// Space and inodes of the file system that holds `node`.
    fn statistics(&self, node: &Self::Node) -> Result<FileSystemStatistics>;

    /// Whether the origin keeps POSIX access control lists.
    fn has_access_control_lists(&self) -> bool;
}

/// An object that was looked up or made.
#[derive(Debug)]
pub struct Found<Node> {
    /// Its name for further operations.
    pub node: Node,
    /// Its attributes at that moment.
    pub attributes: Attributes,
    /// Tells objects apart that had the same inode number one after the other; the same for the
    /// same object on every lookup.
    pub generation: u64,
}

impl<Node> Found<Node> {
    /// Identity of the object's contents at the moment of the lookup.
    pub fn identity(&self) -> Identity {
        self.attributes.identity(self.generation)
    }
}

/// On whose behalf an object is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// User that will own it.
    pub user: u32,
    /// Group that will own it, unless the directory's set-group-id bit says otherwise.
    pub group: u32,
    /// Permission bits to leave out, unless the directory has a default access control list.
    pub umask: u32,
}

/// What to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Make<'a> {
    /// A directory with these permission bits.
    Directory {
        /// Permission bits before the umask.
        mode: u32,
    },
    /// A symbolic link.
    Symlink {
        /// Where it points.
        target: &'a OsStr,
    },
    /// A pipe, socket, device or empty regular file.
    Special {
        /// Kind and permission bits before the umask.
        mode: u32,
        /// Device number of a device node.
        device: u64,
    },
}

/// How to set a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetTime {
    /// To the origin's current time.
    Now,
    /// To this time.
    To(Time),
}

/// Attributes to change; `None` leaves one as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Permission bits.
    pub permissions: Option<u32>,
    /// Owner.
    pub user: Option<u32>,
    /// Group.
    pub group: Option<u32>,
    /// Size in bytes: truncates or extends.
    pub size_bytes: Option<u64>,
    /// Access time.
    pub accessed: Option<SetTime>,
    /// Modification time.
    pub modified: Option<SetTime>,
}

/// A range for `fallocate(2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// `FALLOC_FL_*` bits.
    pub mode: u32,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub length_bytes: u64,
}

/// What to seek.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whence {
    /// The next byte that is data.
    Data,
    /// The next hole; the end of the file counts as one.
    Hole,
}

/// One entry of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectoryEntry<'a> {
    /// Name, without slash.
    pub name: &'a OsStr,
    /// Inode number.
    pub inode: u64,
    /// Kind, where the listing says it.
    pub kind: Option<FileKind>,
    /// Where to go on after this entry.
    pub cookie: u64,
}

/// Space and inodes of a file system, as `statvfs(3)` gives them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileSystemStatistics {
    /// Preferred block size in bytes.
    pub block_size_bytes: u32,
    /// Unit of the block counts in bytes.
    pub fragment_size_bytes: u32,
    /// Blocks in all.
    pub blocks: u64,
    /// Free blocks.
    pub blocks_free: u64,
    /// Free blocks for unprivileged users.
    pub blocks_available: u64,
    /// Inodes in all.
    pub inodes: u64,
    /// Free inodes.
    pub inodes_free: u64,
    /// Longest name in bytes.
    pub name_max_bytes: u32,
}
