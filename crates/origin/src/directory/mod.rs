//! A directory as an origin: local, NFS, CephFS, or whatever else the kernel mounts.
//!
//! Objects are named by kernel file handle where possible ([`handle`]), so that a mount over
//! millions of files keeps no descriptors and follows no paths. Operations on an object go
//! through an `O_PATH` descriptor opened for the occasion and, where a system call takes only
//! paths, through its magic link in `/proc/self/fd`, which the kernel resolves to the very object
//! without looking at names.

mod credentials;
mod handle;
mod node;
mod operations;
mod recent;

pub use node::Node;

use crate::Result;
use node::Nodes;
use parking_lot::Mutex;
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::CString;
use std::path::{Path, PathBuf};

/// A directory that is the authority for a mount.
#[derive(Debug)]
pub struct DirectoryOrigin {
    path: PathBuf,
    nodes: Nodes,
    access_control_lists: bool,
}

/// Why a directory cannot be an origin.
#[derive(Debug)]
pub struct OpenError {
    /// The directory.
    pub path: PathBuf,
    /// What the kernel said.
    pub errno: Errno,
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot open the source directory {}: {}", self.path.display(), self.errno)
    }
}

impl std::error::Error for OpenError {}

impl DirectoryOrigin {
    /// Opens the directory at `path`, which must be absolute.
    ///
    /// # Errors
    /// What `open(2)` says: missing, not a directory, not permitted.
    pub fn open(path: &Path) -> std::result::Result<Self, OpenError> {
        let fail = |errno| OpenError { path: path.to_owned(), errno };
        let root = open_root(path).map_err(fail)?;
        let nodes = Nodes::probe(rustix::fd::AsFd::as_fd(&root));
        let access_control_lists = !matches!(
            rustix::fs::getxattr_query(path, c"system.posix_acl_access"),
            Err(Errno::OPNOTSUPP)
        );
        Ok(Self { path: path.to_owned(), nodes, access_control_lists })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether objects are kept by kernel file handle. If not, each known object keeps a file
    /// descriptor open, and the process limit bounds how many can be known.
    pub fn keeps_handles(&self) -> bool {
        self.nodes.by_handle()
    }
}

/// An open file of a directory origin.
#[derive(Debug)]
pub struct OpenFile {
    fd: OwnedFd,
}

/// An open directory of a directory origin.
#[derive(Debug)]
pub struct OpenDirectory {
    fd: OwnedFd,
    /// A descriptor has one position; reading moves it. Readers of one handle take turns.
    position: Mutex<()>,
}

fn open_root(path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty())
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
