//! A directory as an origin: local, NFS, CephFS, or any other file system that the kernel mounts.
//!
//! Objects have kernel file handles as names if possible ([`handle`]), so a mount over millions of
//! files keeps no descriptors and follows no paths. Each operation opens an `O_PATH` descriptor of
//! its object, or uses that of the last lookup in the same directory ([`lookup_descriptors`]). Some
//! system calls take only paths; they get the descriptor's magic link in `/proc/self/fd`, which the
//! kernel resolves without a lookup of names.
//!
//! Without handles, or without permission to open by them, objects have a place and an identity as
//! names ([`placed_object`]). A bounded number of them is open ([`descriptor_cache`]). Everything
//! starts at one descriptor of the directory ([`root`]), which is opened once.

mod credentials;
mod descriptor_cache;
mod file_systems;
mod fresh_lookup;
mod handle;
mod identity;
mod lookup_descriptors;
mod mounts;
mod name_folding;
mod nfs_client;
mod node;
mod open_file;
mod opening;
mod operations;
mod placed_object;
mod reopen_by_place;
mod rights;
mod root;
mod set_attributes;
mod submounts;
mod times;
mod unlinked;
mod whole_io;

pub use nfs_client::NfsClient;
pub use node::Node;
pub use open_file::OpenFile;
pub use submounts::Device;
pub use times::TrustTimes;

use crate::{Result, mount_table};
use descriptor_cache::Descriptor;
use node::Nodes;
use parking_lot::Mutex;
use rights::Rights;
use root::Root;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{CString, OsStr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A directory that is the authority for a mount.
#[derive(Debug)]
pub struct DirectoryOrigin {
    root: Root,
    nodes: Nodes,
    access_control_lists: bool,
    /// Reading files, and listing directories, changes no access times.
    spares_times: (bool, bool),
}

/// Why a directory cannot be an origin.
#[derive(Debug)]
pub struct OpenError {
    /// The directory.
    pub path: PathBuf,
    /// The error of the kernel.
    pub errno: Errno,
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot open the source directory {}: {}", self.path.display(), self.errno)
    }
}

impl std::error::Error for OpenError {}

impl DirectoryOrigin {
    /// Opens the directory at `path` without the file systems mounted below it: a mount point
    /// shows its original directory.
    ///
    /// # Errors
    /// The error of `open(2)`: missing, not a directory, not permitted.
    pub fn open(path: &Path) -> std::result::Result<Self, OpenError> {
        Self::open_root(path, false)
    }

    /// Opens the directory at `path` without the mounts below it: each mount point shows the
    /// directory's own contents there.
    ///
    /// # Errors
    /// As [`Self::open`]; `EPERM` without `CAP_SYS_ADMIN`.
    pub fn open_one_file_system(path: &Path) -> std::result::Result<Self, OpenError> {
        Self::open_root(path, true)
    }

    fn open_root(path: &Path, is_alone: bool) -> std::result::Result<Self, OpenError> {
        let fail = |errno| OpenError { path: path.to_owned(), errno };
        let root = Root::open(path, is_alone).map_err(fail)?;
        let descriptor = root.descriptor().map_err(fail)?;
        let mut nodes = Nodes::probe(descriptor.as_fd());
        if is_alone {
            nodes.inspector.is_one_file_system(root.mount());
        }
        // Registers the root's file system as the first known mount.
        nodes.root(descriptor.as_fd()).map_err(fail)?;
        let access_control_lists = root::keeps_access_control_lists(descriptor.as_fd());
        Ok(Self { root, nodes, access_control_lists, spares_times: (false, false) })
    }

    /// Makes reads of files, or listings of directories, leave access times unchanged, as far as
    /// this process may. Only root can do that for other users' files.
    #[must_use]
    pub fn sparing_access_times(self, of_files: bool, of_directories: bool) -> Self {
        Self { spares_times: (of_files, of_directories), ..self }
    }

    /// Keeps the descriptors of recent lookups for this long, instead of for a second. A file that
    /// loses its name meanwhile can then still be opened. Until its descriptor is closed, the
    /// blocks of a deleted file are not free.
    #[must_use]
    pub fn keeping_lookups(mut self, time: Duration) -> Self {
        self.nodes.keep_lookups(time);
        self
    }

    /// Sets the trust in times; called before the first lookup.
    #[must_use]
    pub fn trusting_times(mut self, trust: TrustTimes) -> Self {
        self.nodes.inspector.trust_times(trust);
        self
    }

    /// The type of the source's file system, if a server or another program decides about
    /// permissions there. Its mode bits may then not count.
    pub fn decides_rights_elsewhere(&self) -> Option<String> {
        let mount = self.root.mount()?;
        file_systems::is_elsewhere(&mount.fstype).then(|| mount.fstype.clone())
    }

    /// The only user that the kernel lets into the source: the owner of a FUSE mount without
    /// `allow_other`.
    pub fn only_user(&self) -> Option<u32> {
        self.root.mount()?.only_user()
    }

    /// The caching times of the NFS client of the source, if it is on NFS.
    pub fn nfs_client(&self) -> Option<NfsClient> {
        NfsClient::of(self.root.mount()?)
    }

    /// The mount points below the directory, as far as they belong to the origin.
    pub fn mounted_below(&self) -> Vec<PathBuf> {
        if self.root.is_alone() {
            return Vec::new();
        }
        let mounts = mount_table::read().unwrap_or_default();
        let below = mount_table::below(&mounts, self.root.path());
        below.map(|mount| mount.mount_point.clone()).collect()
    }

    /// Logs the file systems below the source that decide on rights elsewhere. For a mount whose
    /// mode bits are checked for other users.
    #[must_use]
    pub fn letting_in_by_mode(mut self) -> Self {
        self.nodes.inspector.lets_in_by_mode = true;
        self.nodes.inspector.submounts.is_shared = true;
        self
    }

    /// Lets the source decide on the rights of this process's user, the only user.
    #[must_use]
    pub fn leaving_rights_to_source(mut self) -> Self {
        self.nodes.rights = Rights::Sole;
        self
    }

    /// Asks the source as the user for whom the thread acts ([`crate::on_behalf_of`]), with that
    /// user's rights instead of its own. A thread without a requester is refused.
    ///
    /// # Errors
    /// The missing privilege.
    pub fn asking_for_requesters(mut self) -> std::result::Result<Self, &'static str> {
        rights::can_switch()?;
        self.nodes.rights = Rights::Requesters;
        self.nodes.inspector.submounts.is_shared = true;
        Ok(self)
    }

    /// A cell for the device number of the mount that serves this origin. Once it is set, names
    /// that lead back to that mount are refused with `ELOOP`.
    pub fn served_as(&self) -> Arc<OnceLock<Device>> {
        self.nodes.inspector.submounts.own()
    }

    /// The path that the directory had when it was opened.
    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// Whether objects are kept by kernel file handle. If not, they are kept by place and identity,
    /// which takes more memory and a few more system calls.
    pub fn keeps_handles(&self) -> bool {
        self.nodes.by_handle()
    }
}

/// An open directory of a directory origin.
#[derive(Debug)]
pub struct OpenDirectory {
    fd: Arc<Descriptor>,
    node: Node,
    /// A descriptor has one position; reading moves it. Readers of one handle take turns.
    position: Mutex<()>,
}

/// An `O_PATH` descriptor of a name's object; a symbolic link is not followed.
fn open_name(parent: impl AsFd, name: &OsStr) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

/// The path that resolves to exactly the object of `fd`.
fn magic_link(fd: BorrowedFd<'_>) -> CString {
    CString::new(format!("/proc/self/fd/{}", fd.as_raw_fd()))
        .expect("a decimal number has no NUL byte")
}

/// `errno` of the calling thread.
fn errno() -> Errno {
    std::io::Error::last_os_error().raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}

#[cfg(test)]
mod tests;
