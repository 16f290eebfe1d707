//! The trait under a mount: every operation that a file system may need from its source.
//!
//! Like the kernel's VFS, the trait works on nodes. It takes the caller's credentials only for the
//! creation of an object. Permission checks belong to the mount, or to an origin that asks its
//! source as the requester ([`crate::on_behalf_of`]). All methods may block as long as the origin
//! takes, except [`Origin::read_run`] of an origin that reads in the background. None of them holds
//! a lock of the origin meanwhile.

use crate::{
    Access, Attributes, Errno, FileKind, Identity, OFlags, ReadAhead, RenameFlags, Result, Run,
    RunSink, Time, XattrFlags,
};
use rustix::fd::OwnedFd;
use std::ffi::{OsStr, OsString};
use std::time::Duration;

/// A place that holds objects and is the authority over them.
pub trait Origin: Send + Sync + 'static {
    /// Names an object independently of its paths; small, because a mount keeps one per known
    /// inode.
    type Node: Send + Sync + PartialEq;
    /// An open file.
    type File: Send + Sync;
    /// An open directory.
    type Directory: Send + Sync;

    /// The root object: the original one, even if its path leads elsewhere by now.
    ///
    /// # Errors
    /// `ESTALE` if it was removed; any error of an origin that has gone.
    fn root(&self) -> Result<Found<Self::Node>>;

    /// Checks that the origin as a whole is available. An origin that had gone is used again if it
    /// has come back and proves to be the same.
    ///
    /// # Errors
    /// The reason why it is not available.
    fn check_health(&self) -> Result<()>;

    /// The last known availability, without a request.
    fn availability(&self) -> Availability {
        Availability::default()
    }

    /// Reports the origin's own counters, name by name.
    fn counters(&self, _tell: &mut dyn FnMut(&str, u64)) {}

    /// Reports the objects that it has met and cannot show as names of a directory, with the
    /// reason.
    fn hidden(&self, _tell: &mut dyn FnMut(&str, &str)) {}

    /// Reports the known file systems whose times prove nothing, with the reason. Nothing of their
    /// files is cached from one open to the next.
    fn untrusted_times(&self, _tell: &mut dyn FnMut(&str, &str)) {}

    /// Finds `name` in the directory `parent`.
    fn lookup(&self, parent: &Self::Node, name: &OsStr) -> Result<Found<Self::Node>>;

    /// The same for a thread that met a removed object (`ESTALE`), without any cached answer for
    /// the name. The default caches nothing.
    fn revalidate_name(&self, parent: &Self::Node, name: &OsStr) -> Result<Found<Self::Node>> {
        self.lookup(parent, name)
    }

    /// Finds `name` in an open directory. A listing with attributes calls this for each entry.
    fn lookup_in(&self, parent: &Self::Directory, name: &OsStr) -> Result<Found<Self::Node>>;

    /// Whether `name` in the directory `parent` leads to `node`.
    fn leads_to(&self, parent: &Self::Node, name: &OsStr, node: &Self::Node) -> Result<bool>;

    /// Current attributes; of `file` if one is given, which also works for unlinked files.
    fn attributes(&self, node: &Self::Node, file: Option<&Self::File>) -> Result<Attributes>;

    /// Attributes of which only some are needed; the others may be older. A source that is far away
    /// may then need a smaller request.
    fn attributes_needed(
        &self,
        node: &Self::Node,
        file: Option<&Self::File>,
        _needed: Needed,
    ) -> Result<Attributes> {
        self.attributes(node, file)
    }

    /// Whether a request for the times of a file first sends its written data to the source.
    fn flushes_before_times(&self, _file: &Self::Node) -> bool {
        false
    }

    /// Changes attributes and returns the new ones.
    fn set_attributes(
        &self,
        node: &Self::Node,
        file: Option<&Self::File>,
        changes: &Changes,
    ) -> Result<Attributes>;

    /// Checks that the thread's requester has these rights to an object; `file` may be an open file
    /// of it. Only an origin that acts as the requester can; the default is `ENOSYS`.
    fn access(&self, _: &Self::Node, _file: Option<&Self::File>, _wanted: Access) -> Result<()> {
        Err(Errno::NOSYS)
    }

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

    /// Whether a directory is empty except for removed files that are open, or were a moment ago.
    fn has_only_hidden_files(&self, _parent: &Self::Node, _name: &OsStr) -> bool {
        false
    }

    /// Renames, with the flags of `renameat2(2)`.
    fn rename(
        &self,
        from: (&Self::Node, &OsStr),
        to: (&Self::Node, &OsStr),
        flags: RenameFlags,
    ) -> Result<()>;

    /// Opens a regular file.
    fn open(&self, node: &Self::Node, flags: OFlags) -> Result<Self::File>;

    /// The same for a file whose first bytes will be read next: an origin that is far away may
    /// fetch them with the open. `is_kept` says whether the caller has the first record of a file
    /// with such an identity, and so does not need it. The default opens.
    fn open_unread(
        &self,
        node: &Self::Node,
        flags: OFlags,
        _is_kept: &dyn Fn(&Identity) -> bool,
    ) -> Result<Self::File> {
        self.open(node, flags)
    }

    /// Appends up to `length_bytes` bytes from `offset` to `into`. Fewer mean the end of the file.
    /// The capacity of `into` is filled first, and grows only if there is more to read. So a
    /// caller that knows the size can avoid a large buffer for a small file.
    fn read_at(
        &self,
        file: &Self::File,
        offset: u64,
        length_bytes: usize,
        into: &mut Vec<u8>,
    ) -> Result<()>;

    /// Reads a run of records and passes each to `sink` as soon as it arrives. A reader of the
    /// first record need not wait for the last.
    ///
    /// - *Order*: the records come in ascending order, without a gap, from one thread at a time.
    /// - *End of the file*: a record shorter than the others is the last of the file, and of the
    ///   run. It is empty where the file ends just before it or earlier.
    /// - *Errors*: the records before an error are good. The error goes to [`RunSink::end`] and
    ///   applies to every record that did not arrive.
    /// - *Callers*: any thread that may wait for the origin. With [`Origin::reads_in_background`],
    ///   any thread at all: the call returns before the run has ended, and threads of the origin
    ///   call `sink`. `file` is borrowed only for the call; the origin keeps what the run needs of
    ///   it.
    ///
    /// The default reads one record after the other with [`Origin::read_at`] on the calling thread.
    fn read_run<S: RunSink>(&self, file: &Self::File, run: Run, mut sink: S) {
        let result = crate::record_run::read_one_by_one(self, file, run, &mut sink);
        sink.end(result);
    }

    /// Whether [`Origin::read_run`] returns before the run has ended.
    fn reads_in_background(&self) -> bool {
        false
    }

    /// How far ahead of sequential readers to read now. Called often, so it must not wait.
    fn read_ahead(&self) -> ReadAhead {
        ReadAhead::default()
    }

    /// Whether prefetch is allowed now. The origin may refuse because requests cost money or it
    /// must be spared, and counts that. Demand reads are always allowed.
    fn may_read_ahead(&self) -> bool {
        true
    }

    /// Whether the size in a file's attributes is how much can be read. It is not if contents are
    /// made at each read; two reads then return different bytes.
    fn size_is_reliable(&self, _file: &Self::File, _size_bytes: u64) -> bool {
        true
    }

    /// Reads once at an offset, whatever the file's size is said to be. Returns the number of
    /// bytes, 0 at the end.
    fn read_some(&self, file: &Self::File, offset: u64, into: &mut [u8]) -> Result<usize> {
        let mut bytes = Vec::with_capacity(into.len());
        self.read_at(file, offset, into.len(), &mut bytes)?;
        into[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    /// Whether bytes that were read of `file` proved to differ from the origin's. Reads of it then
    /// fail with `EIO`, whatever is cached. Called for each read, so it must not wait.
    fn is_corrupt(&self, _file: &Self::File) -> bool {
        false
    }

    /// The identity of the contents to which an open file is pinned, if the origin guarantees that.
    /// Once the object has other contents, reading fails with `ESTALE`. The identity and the
    /// attributes of such a file are known without a request.
    fn pinned_identity(&self, _file: &Self::File) -> Option<Identity> {
        None
    }

    /// A descriptor through which the kernel of this machine can open the same file, and read and
    /// write its bytes without this process. `None` if no such file exists. It need not serve any
    /// other purpose.
    fn descriptor(&self, _file: &Self::File) -> Option<Result<OwnedFd>> {
        None
    }

    /// Writes at an offset, whatever the flags of `file`, and returns how many bytes reached the
    /// origin: all of them unless it ran full.
    fn write_at(&self, file: &Self::File, offset: u64, bytes: &[u8]) -> Result<usize>;

    /// The same at the present end of the file: no byte of another writer is overwritten.
    fn append(&self, file: &Self::File, bytes: &[u8]) -> Result<usize>;

    /// Size of a file in bytes, if it is known without a request to a server far away; otherwise
    /// `None`.
    fn local_size(&self, _file: &Self::File) -> Option<u64> {
        None
    }

    /// Called each time a program closes a descriptor of `file`, before that returns: the last
    /// chance to report an error of an accepted write. More operations may follow, through copies
    /// of the descriptor or maps of the file.
    fn flush(&self, file: &Self::File) -> Result<()>;

    /// Makes the file durable; with `data_only`, its contents and the metadata needed to read them.
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

    /// Calls `visit` for each entry after `cookie`, including `.` and `..`, until there are no
    /// more or `visit` returns false. 0 starts from the beginning, and refreshes a listing in
    /// progress.
    fn read_directory(
        &self,
        directory: &Self::Directory,
        cookie: u64,
        visit: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Result<()>;

    /// Whether names on this device come with attributes. Called for each answer, so it must not
    /// wait.
    fn lists_with_attributes(&self, _device: u64) -> bool {
        false
    }

    /// The least time for which a client in between caches attributes that came with names.
    fn attribute_ttl(&self) -> Duration {
        Duration::ZERO
    }

    /// Makes the next read of a directory fetch attributes from the source itself. A client in
    /// between could send attributes with names that are older than its own limit for attributes.
    fn invalidate_names(&self, _directory: &Self::Directory) {}

    /// Whether different spellings of a name lead to the same object on this device. A change by
    /// one name then changes unknown other names. Called for each answer, so it must not wait.
    fn folds_case(&self, _device: u64) -> bool {
        false
    }

    /// The same for the objects that names in a directory lead to.
    fn folds_case_in(&self, _directory: &Self::Node) -> bool {
        false
    }

    /// Whether no file of this kind has capabilities (`security.capability`). The kernel asks for
    /// them before a write, so this must not wait.
    fn lacks_capabilities(&self, _file: &Self::Node) -> bool {
        false
    }

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

    /// Flags of a regular file or a directory (`chattr(1)`), in one of their two forms.
    fn flags(&self, node: &Self::Node, form: FlagsForm) -> Result<FileFlags>;

    /// Sets them. Permissions are not checked here.
    fn set_flags(&self, node: &Self::Node, flags: FileFlags) -> Result<()>;

    /// Space and inodes of the file system that holds `node`.
    fn statistics(&self, node: &Self::Node) -> Result<FileSystemStatistics>;

    /// Whether nodes keep the places of their objects. The origin must then learn of every new
    /// place and every rename.
    fn keeps_places(&self) -> bool {
        false
    }

    /// `found` was looked up and is the same object as `known`, the node that stays in use.
    fn met_again(&self, _known: &Self::Node, _found: &Self::Node) {}

    /// No request for `node` will follow, unless a lookup finds it again.
    fn forgotten(&self, _node: &Self::Node) {}

    /// `node` is about to be moved: until then it may be here as well as at its old place.
    fn expect_at(&self, _node: &Self::Node, _at: (&Self::Node, &OsStr)) {}

    /// `node` was moved. If an expected move has failed, it was "moved" back.
    fn has_moved(
        &self,
        _node: &Self::Node,
        _from: (&Self::Node, &OsStr),
        _to: (&Self::Node, &OsStr),
    ) {
    }

    /// Whether the origin keeps POSIX access control lists.
    fn has_access_control_lists(&self) -> bool;
}

/// The attributes that the caller needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needed {
    /// Those that determine the version of an object's contents: all but the access time.
    Version,
    /// The size.
    Size,
    /// How many names it has.
    Links,
}

/// An object that was looked up or made.
#[derive(Debug)]
pub struct Found<Node> {
    /// Its name for further operations.
    pub node: Node,
    /// Its attributes at that moment.
    pub attributes: Attributes,
    /// Distinguishes objects that had the same inode number one after the other; the same for the
    /// same object on every lookup.
    pub generation: u64,
}

impl<Node> Found<Node> {
    /// Identity of the object's contents at the moment of the lookup.
    pub fn identity(&self) -> Identity {
        self.attributes.identity(self.generation)
    }
}

/// Whether an origin as a whole is available.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Availability {
    /// The error with which it has gone, and since when; `None` while it is available.
    pub gone: Option<(rustix::io::Errno, Time)>,
    /// How often it has gone so far.
    pub losses: u64,
    /// While it is gone, known names and cached records are still served.
    pub shows_stale: bool,
}

/// The user for whom an object is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// User that will own it.
    pub user: u32,
    /// Group that will own it, unless the directory has the set-group-id bit.
    pub group: u32,
    /// Permission bits to leave out, unless the directory has a default access control list.
    pub umask: u32,
}

/// The object to create.
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

/// The two forms that flags of files have, of `linux/fs.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagsForm {
    /// A number (`FS_IOC_GETFLAGS`, `ioctl_iflags(2)`).
    Plain,
    /// `struct fsxattr`, with extent sizes and the number of a project (`FS_IOC_FSGETXATTR`).
    Extended,
}

/// Flags of a file, as its file system has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFlags {
    /// `FS_*_FL`.
    Plain(u32),
    /// `struct fsxattr`.
    Extended([u32; 7]),
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

/// The kind of data to seek.
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
    /// Kind, if the listing has it.
    pub kind: Option<FileKind>,
    /// The offset after this entry.
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
