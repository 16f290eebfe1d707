//! The trait that a mount is built on: everything a file system may ask of the place behind it.
//!
//! The trait is node-based, as the kernel's own VFS is, and it takes the caller's credentials only
//! where an object comes into being: permission checks belong to whoever serves the mount, or to
//! an origin that asks its source in the name of whom the thread acts for ([`crate::on_behalf_of`]).
//! All methods may block for as long as the origin takes, except [`Origin::read_run`] of an origin
//! that says so; none holds a lock of the origin's while it does.

use crate::{
    Access, Attributes, Errno, FileKind, Identity, OFlags, ReadAhead, RenameFlags, Result, Run,
    RunSink, Time, XattrFlags,
};
use rustix::fd::OwnedFd;
use std::ffi::{OsStr, OsString};
use std::time::Duration;

/// A place that holds objects and is the authority over them.
pub trait Origin: Send + Sync + 'static {
    /// Names an object whatever its paths; small, because a mount keeps one per known inode.
    type Node: Send + Sync + PartialEq;
    /// An open file.
    type File: Send + Sync;
    /// An open directory.
    type Directory: Send + Sync;

    /// The object at the top: the one that was there in the beginning, wherever its path may lead
    /// by now.
    ///
    /// # Errors
    /// `ESTALE` if it was removed; whatever an origin says that has gone.
    fn root(&self) -> Result<Found<Self::Node>>;

    /// Asks whether the origin as a whole is there still. One that has gone is taken up again here
    /// if it has come back and proves to be the same.
    ///
    /// # Errors
    /// Why it is not.
    fn sound(&self) -> Result<()>;

    /// What is known of that without asking.
    fn standing(&self) -> Standing {
        Standing::default()
    }

    /// Tells what the origin counts of its own work, name by name.
    fn counters(&self, _tell: &mut dyn FnMut(&str, u64)) {}

    /// Tells what it has and cannot show as a name of a directory, and why, as far as it came
    /// across it.
    fn hidden(&self, _tell: &mut dyn FnMut(&str, &str)) {}

    /// Tells of which file systems, met so far, nothing is kept from one opening to the next because
    /// their times prove nothing, and why.
    fn doubted(&self, _tell: &mut dyn FnMut(&str, &str)) {}

    /// Finds `name` in the directory `parent`.
    fn lookup(&self, parent: &Self::Node, name: &OsStr) -> Result<Found<Self::Node>>;

    /// The same for a thread that was told that the object is gone (`ESTALE`): nothing that is
    /// remembered of the name is believed. The default remembers nothing.
    fn lookup_anew(&self, parent: &Self::Node, name: &OsStr) -> Result<Found<Self::Node>> {
        self.lookup(parent, name)
    }

    /// Finds `name` in an open directory: what a listing with attributes calls for each entry.
    fn lookup_in(&self, parent: &Self::Directory, name: &OsStr) -> Result<Found<Self::Node>>;

    /// Whether `name` in the directory `parent` leads to `node`.
    fn leads_to(&self, parent: &Self::Node, name: &OsStr, node: &Self::Node) -> Result<bool>;

    /// Current attributes; of `file` where one is given, which works for unlinked files as well.
    fn attributes(&self, node: &Self::Node, file: Option<&Self::File>) -> Result<Attributes>;

    /// Attributes of which only some are needed; the others may be of an earlier moment. A source
    /// that is far away may have to be asked for less.
    fn attributes_needed(
        &self,
        node: &Self::Node,
        file: Option<&Self::File>,
        _needed: Needed,
    ) -> Result<Attributes> {
        self.attributes(node, file)
    }

    /// Whether whoever asks for the times of a file has what was written to it brought to the source
    /// first.
    fn flushes_to_tell_times(&self, _file: &Self::Node) -> bool {
        false
    }

    /// Changes attributes and returns the new ones.
    fn set_attributes(
        &self,
        node: &Self::Node,
        file: Option<&Self::File>,
        changes: &Changes,
    ) -> Result<Attributes>;

    /// Asks whether whoever the thread acts for may do this with an object, of which `file` may be
    /// open. Only an origin that asks in the name of others knows; the default is `ENOSYS`.
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

    /// Whether a directory has nothing in it but files that were removed and that somebody has open,
    /// or had a moment ago.
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

    /// The same for a file whose first bytes are going to be read: an origin that is far away may
    /// ask for both at once. `is_kept` says whether the caller has the first record of a file with
    /// such an identity, and so does not need it. The default opens.
    fn open_unread(
        &self,
        node: &Self::Node,
        flags: OFlags,
        _is_kept: &dyn Fn(&Identity) -> bool,
    ) -> Result<Self::File> {
        self.open(node, flags)
    }

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

    /// Reads a run of records and hands each to `sink` as soon as its bytes are here, so that
    /// whoever wants the first need not wait for the last.
    ///
    /// - *Order*: the records come in ascending order, without a gap, from one thread at a time.
    /// - *End of the file*: a record shorter than the others is the last of the file, and of the
    ///   run. It is empty where the file ends just before it or earlier.
    /// - *Errors*: what came before an error is good. The error goes to [`RunSink::end`] and stands
    ///   for every record that did not come.
    /// - *Who may call*: any thread that may wait for the origin. Where
    ///   [`Origin::reads_in_background`], any thread at all: the call returns before the run has
    ///   ended, and `sink` is called by threads of the origin's. `file` is borrowed for the call
    ///   alone; what the run needs of it the origin keeps for itself.
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

    /// How far ahead of sequential readers to read now. Asked often, so it must not wait.
    fn read_ahead(&self) -> ReadAhead {
        ReadAhead::default()
    }

    /// Whether something may be asked for now that nobody waits for. Where it may not, because
    /// requests cost money or the origin is to be spared, the origin counts that; what somebody
    /// waits for is asked for in any case.
    fn may_read_ahead(&self) -> bool {
        true
    }

    /// Whether the size in the attributes of a file tells how much can be read of it. It need not
    /// where contents are made when they are read. Nothing that is read there is what is read next.
    fn size_tells(&self, _file: &Self::File, _size_bytes: u64) -> bool {
        true
    }

    /// Reads once at an offset, however large the file is said to be; returns how many bytes came,
    /// none at its end.
    fn read_some(&self, file: &Self::File, offset: u64, into: &mut [u8]) -> Result<usize> {
        let mut bytes = Vec::with_capacity(into.len());
        self.read_at(file, offset, into.len(), &mut bytes)?;
        into[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    /// Whether what was read of `file` was found to be other bytes than the origin has: reads of it
    /// then fail with `EIO`, whatever is cached. Asked with each read, so it must not wait.
    fn is_spoilt(&self, _file: &Self::File) -> bool {
        false
    }

    /// The identity of the contents that everything read of `file` is of, where the origin vouches
    /// for that: once the object has others, reading fails with `ESTALE`. It is known without
    /// asking, and so are the attributes of such a file.
    fn contents_of(&self, _file: &Self::File) -> Option<Identity> {
        None
    }

    /// A descriptor by which the kernel of this machine can open what `file` is of, and read and
    /// write the same bytes without asking here; `None` where there is no such file. It need be
    /// good for nothing else.
    fn descriptor(&self, _file: &Self::File) -> Option<Result<OwnedFd>> {
        None
    }

    /// Writes at an offset, however `file` was opened, and returns how many bytes reached the
    /// origin, all of them unless it ran full.
    fn write_at(&self, file: &Self::File, offset: u64, bytes: &[u8]) -> Result<usize>;

    /// The same at the end of the file, wherever that is by then: no byte that somebody else has
    /// written meanwhile is written over.
    fn append(&self, file: &Self::File, bytes: &[u8]) -> Result<usize>;

    /// Size of a file in bytes as far as it is known without asking anybody who is far away; `None`
    /// if nothing is.
    fn size_at_hand(&self, _file: &Self::File) -> Option<u64> {
        None
    }

    /// Called each time a program closes a descriptor of `file`, before that has returned: the last
    /// chance to report an error of a write that the origin had accepted. More may come by `file`
    /// all the same, by copies of the descriptor or maps of the file.
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

    /// Whether, on this device, names come with the attributes of what they lead to, so that asking
    /// for those right afterwards costs nothing. It does where a network or another program is
    /// between, and there asking for each by itself is slow.
    fn lists_with_attributes(&self, _device: u64) -> bool {
        false
    }

    /// For how long at least a client between believes in attributes that came with names.
    fn attributes_believed(&self) -> Duration {
        Duration::ZERO
    }

    /// Has the next reading of a directory bring attributes with names from the source itself, where
    /// a client between would tell names that it keeps for longer than it believes in attributes.
    fn drop_kept_names(&self, _directory: &Self::Directory) {}

    /// Whether, on this device, any spelling of a name leads to the same object: then a change by
    /// one name is one of names that nobody can tell. Asked with each answer, so it must not wait.
    fn folds_case(&self, _device: u64) -> bool {
        false
    }

    /// The same of what a name in a directory would lead to.
    fn folds_case_in(&self, _directory: &Self::Node) -> bool {
        false
    }

    /// Whether no file like this one has capabilities (`security.capability`). The kernel asks for
    /// them before a write, so it must not wait.
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

    /// Sets them. Whether somebody may is not asked here.
    fn set_flags(&self, node: &Self::Node, flags: FileFlags) -> Result<()>;

    /// Space and inodes of the file system that holds `node`.
    fn statistics(&self, node: &Self::Node) -> Result<FileSystemStatistics>;

    /// Whether nodes remember where their objects were found, so that the origin has to be told
    /// when one is found elsewhere, or is moved.
    fn keeps_places(&self) -> bool {
        false
    }

    /// `found` was looked up and is the object that `known` names, which is the node that stays.
    fn met_again(&self, _known: &Self::Node, _found: &Self::Node) {}

    /// Nobody is going to ask for `node` any more, unless it is found again.
    fn forgotten(&self, _node: &Self::Node) {}

    /// `node` is about to be moved: until that is done it may be here as well as where it was.
    fn expect_at(&self, _node: &Self::Node, _at: (&Self::Node, &OsStr)) {}

    /// `node` was moved. If a move that was expected has failed, it was "moved" back.
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

/// The attributes that somebody needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needed {
    /// Those that tell which version of its contents an object has: all but the access time.
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

/// Whether an origin as a whole is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The error it has gone with, and since when; `None` while it is there.
    pub gone: Option<(rustix::io::Errno, Time)>,
    /// How often it has gone so far.
    pub losses: u64,
    /// While it is gone, what is known of it is shown, and what is cached is read.
    pub shows_stale: bool,
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
