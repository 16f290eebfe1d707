//! Nodes of a directory origin, and how they are opened.

use super::handle::FileHandle;
use super::recent::Recent;
use crate::{Attributes, FileKind, Found, OFlags, Result, Time};
use parking_lot::RwLock;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, Stat};
use rustix::io::Errno;
use std::ffi::{OsStr, c_int};
use std::sync::Arc;

/// Most mounted file systems below one origin; a node on any further one keeps a descriptor.
const MOUNTS_MAX: usize = u16::MAX as usize;

/// An object below the origin's directory.
#[derive(Debug)]
pub struct Node(Name);

#[derive(Debug)]
enum Name {
    /// By handle: nothing is kept open.
    Handle { mount: u16, handle: FileHandle },
    /// By an open `O_PATH` descriptor.
    Descriptor { fd: OwnedFd, device: u64, inode: u64, generation: u64 },
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (
                Name::Handle { mount, handle },
                Name::Handle { mount: other_mount, handle: other_handle },
            ) => mount == other_mount && handle == other_handle,
            (
                Name::Descriptor { device, inode, generation, .. },
                Name::Descriptor { device: d, inode: i, generation: g, .. },
            ) => (device, inode, generation) == (d, i, g),
            _ => false,
        }
    }
}

/// An `O_PATH` descriptor of a node, borrowed from it or opened for the occasion.
pub(super) enum PathDescriptor<'a> {
    Borrowed(BorrowedFd<'a>),
    Owned(OwnedFd),
}

impl AsFd for PathDescriptor<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Borrowed(fd) => *fd,
            Self::Owned(fd) => fd.as_fd(),
        }
    }
}

/// A mounted file system that handles were seen on.
#[derive(Debug)]
struct MountedFileSystem {
    id: c_int,
    /// Any open object on it; `open_by_handle_at` wants one.
    fd: Arc<OwnedFd>,
}

/// Turns descriptors into nodes and back. The lock guards only the short list of mounts and is
/// never held across a system call that may reach the origin.
#[derive(Debug)]
pub(super) struct Nodes {
    by_handle: bool,
    mounts: RwLock<Vec<MountedFileSystem>>,
    recent: Recent,
}

impl Nodes {
    /// Finds out whether objects below `root` can be opened by handle.
    pub(super) fn probe(root: BorrowedFd<'_>) -> Self {
        let by_handle = match FileHandle::of(root) {
            Ok((handle, _)) => match open_real(root, OFlags::RDONLY | OFlags::DIRECTORY) {
                Ok(mount) => handle.open(mount.as_fd(), OFlags::PATH).is_ok(),
                Err(_) => false,
            },
            Err(_) => false,
        };
        Self { by_handle, mounts: RwLock::new(Vec::new()), recent: Recent::default() }
    }

    /// Whether nodes are kept by handle rather than by descriptor.
    pub(super) fn by_handle(&self) -> bool {
        self.by_handle
    }

    /// The object that `fd` refers to, as a node.
    pub(super) fn found(&self, fd: OwnedFd) -> Result<Found<Node>> {
        self.identify(fd).map(|(found, _)| found)
    }

    /// The same for an object that is likely to be opened next.
    pub(super) fn found_and_kept(&self, fd: OwnedFd) -> Result<Found<Node>> {
        let (found, fd) = self.identify(fd)?;
        if let (Name::Handle { mount, handle }, Some(fd)) = (&found.node.0, fd) {
            self.recent.keep(*mount, handle.clone(), fd);
        }
        Ok(found)
    }

    /// The node, and the descriptor if the node does not need it.
    fn identify(&self, fd: OwnedFd) -> Result<(Found<Node>, Option<OwnedFd>)> {
        let stat = rustix::fs::fstat(&fd)?;
        let attributes = attributes(&stat)?;
        let handle = FileHandle::of(fd.as_fd());
        let generation = match &handle {
            Ok((handle, _)) => handle.generation(),
            Err(_) => birth_time(fd.as_fd()),
        };
        if self.by_handle
            && let Ok((handle, mount_id)) = handle
            && let Some(mount) = self.mount(mount_id, fd.as_fd())
        {
            let node = Node(Name::Handle { mount, handle });
            return Ok((Found { node, attributes, generation }, Some(fd)));
        }
        let Attributes { device, inode, .. } = attributes;
        let node = Node(Name::Descriptor { fd, device, inode, generation });
        Ok((Found { node, attributes, generation }, None))
    }

    /// Whether a name in a directory leads to the node.
    pub(super) fn leads_to(
        &self,
        parent: BorrowedFd<'_>,
        name: &OsStr,
        node: &Node,
    ) -> Result<bool> {
        match &node.0 {
            Name::Handle { mount, handle } => {
                let (found, mount_id) = FileHandle::at(parent, name)?;
                let mounts = self.mounts.read();
                let known = mounts.get(usize::from(*mount)).map(|mount| mount.id);
                Ok(found == *handle && known == Some(mount_id))
            }
            Name::Descriptor { .. } => {
                let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let fd = rustix::fs::openat(parent, name, flags, Mode::empty())?;
                Ok(self.identify(fd)?.0.node == *node)
            }
        }
    }

    /// Index of the mount with this id, on which `object` lies; `None` if it cannot be kept open.
    fn mount(&self, id: c_int, object: BorrowedFd<'_>) -> Option<u16> {
        let position = |mounts: &[MountedFileSystem]| mounts.iter().position(|m| m.id == id);
        if let Some(index) = position(&self.mounts.read()) {
            return u16::try_from(index).ok();
        }
        // Only directories and regular files: opening a pipe or a device has side effects. Most
        // objects that are seen first on a mount are its root.
        let stat = rustix::fs::fstat(object).ok()?;
        if !matches!(
            FileKind::from_mode(stat.st_mode),
            Some(FileKind::Directory | FileKind::Regular)
        ) {
            return None;
        }
        let fd = Arc::new(open_real(object, OFlags::RDONLY | OFlags::NONBLOCK).ok()?);
        let mut mounts = self.mounts.write();
        if let Some(index) = position(&mounts) {
            return u16::try_from(index).ok();
        }
        if mounts.len() >= MOUNTS_MAX {
            return None;
        }
        mounts.push(MountedFileSystem { id, fd });
        u16::try_from(mounts.len() - 1).ok()
    }

    fn mount_descriptor(&self, mount: u16) -> Result<Arc<OwnedFd>> {
        let mounts = self.mounts.read();
        mounts.get(usize::from(mount)).map(|mount| mount.fd.clone()).ok_or(Errno::STALE)
    }

    /// An `O_PATH` descriptor of the node.
    pub(super) fn path_descriptor<'a>(&self, node: &'a Node) -> Result<PathDescriptor<'a>> {
        match &node.0 {
            Name::Handle { mount, handle } => {
                let flags = OFlags::PATH | OFlags::NOFOLLOW;
                let opened = handle.open(self.mount_descriptor(*mount)?.as_fd(), flags);
                let fd = match opened {
                    Err(Errno::STALE) => self.recent.find(*mount, handle).ok_or(Errno::STALE),
                    other => other,
                };
                fd.map(PathDescriptor::Owned)
            }
            Name::Descriptor { fd, .. } => Ok(PathDescriptor::Borrowed(fd.as_fd())),
        }
    }

    /// Opens the node for real.
    pub(super) fn open(&self, node: &Node, flags: OFlags) -> Result<OwnedFd> {
        match &node.0 {
            Name::Handle { mount, handle } => {
                match handle.open(self.mount_descriptor(*mount)?.as_fd(), flags) {
                    Err(Errno::STALE) => {
                        let fd = self.recent.find(*mount, handle).ok_or(Errno::STALE)?;
                        open_real(fd.as_fd(), flags)
                    }
                    other => other,
                }
            }
            Name::Descriptor { fd, .. } => open_real(fd.as_fd(), flags),
        }
    }
}

/// Opens the object of an `O_PATH` descriptor for real.
fn open_real(fd: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd> {
    rustix::fs::openat(
        CWD,
        super::magic_link(fd).as_c_str(),
        (flags | OFlags::CLOEXEC) - OFlags::NOFOLLOW,
        Mode::empty(),
    )
}

/// Where there are no handles the time of birth tells reused inode numbers apart; 0 where the
/// file system does not keep it.
fn birth_time(fd: BorrowedFd<'_>) -> u64 {
    use rustix::fs::{AtFlags, StatxFlags};
    match rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::BTIME) {
        Ok(statx) if statx.stx_mask & StatxFlags::BTIME.bits() != 0 => (statx.stx_btime.tv_sec
            as u64)
            .wrapping_mul(1_000_000_000)
            .wrapping_add(u64::from(statx.stx_btime.tv_nsec)),
        _ => 0,
    }
}

/// Attributes from what `fstat(2)` says.
///
/// # Errors
/// `EIO` for a kind of file that Linux does not have.
pub(super) fn attributes(stat: &Stat) -> Result<Attributes> {
    Ok(Attributes {
        device: stat.st_dev,
        inode: stat.st_ino,
        kind: FileKind::from_mode(stat.st_mode).ok_or(Errno::IO)?,
        permissions: (stat.st_mode & 0o7777) as u16,
        links: u32::try_from(stat.st_nlink).unwrap_or(u32::MAX),
        user: stat.st_uid,
        group: stat.st_gid,
        special_device: stat.st_rdev,
        size_bytes: stat.st_size.max(0) as u64,
        blocks: stat.st_blocks.max(0) as u64,
        block_size_bytes: u32::try_from(stat.st_blksize).unwrap_or(4096),
        accessed: time(stat.st_atime, stat.st_atime_nsec as i64),
        modified: time(stat.st_mtime, stat.st_mtime_nsec as i64),
        changed: time(stat.st_ctime, stat.st_ctime_nsec as i64),
    })
}

fn time(seconds: i64, nanoseconds: i64) -> Time {
    Time { seconds, nanoseconds: nanoseconds.clamp(0, 999_999_999) as u32 }
}
