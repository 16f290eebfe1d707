//! The top of the origin: one descriptor, opened once and held.
//!
//! Everything else is found relative to it, so later changes to its *path* do not matter. The
//! directory may be renamed, covered by another mount or unmounted lazily: writes still go to the
//! original place. A second lookup of the path could lead to another file system. It could be the
//! directory below a mount point, and fill the system disk.
//!
//! A root can be *gone*. The disk was pulled out, the file system was shut down after an error, or
//! the directory was removed. Or the server is dead, or has forgotten the directory. Only an
//! operation with a typical error starts the check. It asks the directory itself, in a way that
//! cached answers cannot satisfy ([`answers`]).
//!
//! A root can *come back* as another directory at the same path: a disk is mounted again, or a
//! server is started again. Only then the path is looked up again. The directory there is accepted
//! only if it proves to be the same directory of the same file system ([`Identity`]). Without proof
//! the root stays gone until the view is mounted again.
//!
//! If the file system has an identity of its own, a gone root is closed. It can then be unmounted,
//! checked and mounted again, which an open descriptor would prevent.
//!
//! The origin may be one file system *alone*. Then the descriptor leads into a copy of its mount
//! that is mounted nowhere, so nothing is mounted in it. Every mount point below shows its original
//! directory, as in a bind mount.

use super::handle::{FileHandle, file_system_uuid};
use super::{file_systems, identity, magic_link, node};
use crate::availability::is_of_the_whole;
use crate::mount_table::{self, MountEntry};
use crate::{Attributes, Result};
use parking_lot::Mutex;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags};
use rustix::io::Errno;
use rustix::mount::{OpenTreeFlags, open_tree};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The directory at the top. The lock is held to copy or replace a pointer, and by each thread that
/// looks for a returned root, one at a time.
#[derive(Debug)]
pub(super) struct Root {
    path: PathBuf,
    /// Mounts below it do not belong to it.
    is_alone: bool,
    /// Its entry in the table of mounts when it was opened.
    mount: Option<MountEntry>,
    identity: Identity,
    /// `None` after it has gone and was closed.
    held: Mutex<Option<Arc<OwnedFd>>>,
    seeking: Mutex<()>,
}

/// The identity of a file system and of the directory in it.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    /// Made with the file system, and stored on it.
    uuid: Option<[u8; 16]>,
    /// Otherwise its names in the table of mounts.
    names: Option<(String, OsString, OsString)>,
    handle: Option<FileHandle>,
    inode: u64,
    /// Removed directories have no links. Some file systems do not count links.
    linked: bool,
}

impl Root {
    pub(super) fn open(path: &Path, is_alone: bool) -> Result<Self> {
        let fd = open(path)?;
        let identity = Identity::of(fd.as_fd())?;
        let mount = mount_of(fd.as_fd());
        let held = Mutex::new(Some(Arc::new(entered(fd, is_alone)?)));
        let path = path.to_owned();
        Ok(Self { path, is_alone, mount, identity, held, seeking: Mutex::new(()) })
    }

    /// The entry of the file system in the table of mounts when it was opened.
    pub(super) fn mount(&self) -> Option<&MountEntry> {
        self.mount.as_ref()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether mounts below it do not belong to it.
    pub(super) fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// The directory.
    ///
    /// # Errors
    /// `EIO` while it is gone.
    pub(super) fn descriptor(&self) -> Result<Arc<OwnedFd>> {
        self.held.lock().clone().ok_or(Errno::IO)
    }

    /// Checks by its attributes that the directory still exists.
    ///
    /// # Errors
    /// `ESTALE` after it was removed.
    pub(super) fn check(&self, attributes: &Attributes) -> Result<()> {
        if self.identity.linked && attributes.links == 0 { Err(Errno::STALE) } else { Ok(()) }
    }

    /// Checks that the directory answers. If it does not, `replaced` gets the successor of the
    /// closed descriptor, if any.
    ///
    /// # Errors
    /// The error of the directory.
    pub(super) fn check_health(&self, replaced: impl Fn(Option<&Arc<OwnedFd>>)) -> Result<()> {
        let _alone = self.seeking.lock();
        let held = self.held.lock().clone();
        let errno = match &held {
            Some(fd) => match answers(fd.as_fd(), self.identity.linked) {
                Ok(()) => return Ok(()),
                Err(errno) => errno,
            },
            None => Errno::IO,
        };
        if let Some(fd) = self.come_back() {
            let fd = Arc::new(fd);
            *self.held.lock() = Some(fd.clone());
            replaced(Some(&fd));
            return Ok(());
        }
        if held.is_some() && self.identity.uuid.is_some() {
            *self.held.lock() = None;
            replaced(None);
        }
        Err(errno)
    }

    /// Opens the directory at the path, if it is the former one.
    fn come_back(&self) -> Option<OwnedFd> {
        let fd = open(&self.path).ok()?;
        answers(fd.as_fd(), self.identity.linked).ok()?;
        let found = Identity::of(fd.as_fd()).ok()?;
        self.identity.is_proved_by(&found).then(|| entered(fd, self.is_alone).ok()).flatten()
    }
}

/// The same directory; if it is alone, without the mounts below it.
fn entered(fd: OwnedFd, is_alone: bool) -> Result<OwnedFd> {
    if !is_alone {
        return Ok(fd);
    }
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    open_tree(&fd, c"", flags)
}

impl Identity {
    fn of(fd: BorrowedFd<'_>) -> Result<Self> {
        let stat = rustix::fs::fstat(fd)?;
        let real = node::open_real(fd, OFlags::RDONLY | OFlags::DIRECTORY).ok();
        let uuid = real.and_then(|real| file_system_uuid(real.as_fd()));
        let names = if uuid.is_none() { names(fd) } else { None };
        let handle = FileHandle::of(fd).ok().map(|(handle, _)| handle);
        Ok(Self { uuid, names, handle, inode: stat.st_ino, linked: stat.st_nlink > 0 })
    }

    /// Whether only the same directory of the same file system can look like this.
    fn is_proved_by(&self, found: &Self) -> bool {
        let same_file_system = match (self.uuid, &self.names) {
            (Some(_), _) => self.uuid == found.uuid && self.handle.is_some(),
            (None, Some(_)) => found.uuid.is_none() && self.names == found.names,
            (None, None) => false,
        };
        same_file_system && self.handle == found.handle && self.inode == found.inode
    }
}

/// Type, source and mounted directory of a file system, if they identify it. They do if its
/// contents are elsewhere. A local one could be another with the same names.
fn names(fd: BorrowedFd<'_>) -> Option<(String, OsString, OsString)> {
    let mount = mount_of(fd)?;
    let is_elsewhere = file_systems::is_elsewhere(&mount.fstype) && mount.fstype != "fuseblk";
    // A word such as `portal` names the kind of server, not the server.
    let is_place = mount.source.as_bytes().iter().any(|byte| matches!(byte, b'/' | b':'));
    let MountEntry { fstype, source, root, .. } = mount;
    (is_elsewhere && is_place).then_some((fstype, source, root))
}

/// The entry in the table of mounts for the file system of a directory.
fn mount_of(fd: BorrowedFd<'_>) -> Option<MountEntry> {
    let statx = rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::empty()).ok()?;
    let mounts = mount_table::read().ok()?;
    identity::mount_of(&mounts, &statx, (fd, OsStr::new(""))).cloned()
}

/// Makes requests that cached answers alone cannot satisfy.
///
/// An open is refused by xfs after a shutdown and by a dead FUSE server. A network server must
/// report the time of the last change. ext4 and btrfs refuse a sync after a shutdown
/// (`ext4_sync_file`, `btrfs_sync_file`). Missing permission to open, read or sync the directory
/// proves nothing.
fn answers(fd: BorrowedFd<'_>, linked: bool) -> Result<()> {
    let of_the_whole = |result: Result<()>| match result {
        Err(errno) if is_of_the_whole(errno) => Err(errno),
        _ => Ok(()),
    };
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC;
    match rustix::fs::statx(fd, c"", flags, StatxFlags::BASIC_STATS) {
        Ok(statx) if linked && statx.stx_nlink == 0 => return Err(Errno::STALE),
        Ok(_) | Err(Errno::ACCESS | Errno::PERM) => {}
        Err(errno) => return Err(errno),
    }
    of_the_whole(rustix::fs::fstatfs(fd).map(drop))?;
    match node::open_real(fd, OFlags::RDONLY | OFlags::DIRECTORY) {
        Ok(directory) => of_the_whole(rustix::fs::fsync(directory)),
        Err(errno) => of_the_whole(Err(errno)),
    }
}

fn open(path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty())
}

/// Whether the file system of `fd` keeps access control lists.
pub(super) fn keeps_access_control_lists(fd: BorrowedFd<'_>) -> bool {
    let path = magic_link(fd);
    let asked = rustix::fs::getxattr_query(path.as_c_str(), c"system.posix_acl_access");
    !matches!(asked, Err(Errno::OPNOTSUPP))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity { uuid: None, names: None, handle: None, inode: 2, linked: true }
    }

    #[test]
    fn only_proof_brings_a_root_back() {
        let here = tempfile::tempdir().unwrap();
        let handle = FileHandle::of(open(here.path()).unwrap().as_fd()).ok().map(|(h, _)| h);
        if handle.is_none() {
            crate::skipped::skipped(format_args!("no file handles on {}", here.path().display()));
            return;
        }
        let disk = || Identity { uuid: Some([1; 16]), handle: handle.clone(), ..identity() };
        assert!(disk().is_proved_by(&disk()));
        assert!(!disk().is_proved_by(&Identity { uuid: Some([2; 16]), ..disk() }));
        assert!(!disk().is_proved_by(&Identity { handle: None, ..disk() }));
        assert!(!disk().is_proved_by(&Identity { inode: 3, ..disk() }), "another directory");
        let network = |source: &str| Identity {
            names: Some(("fuse.sshfs".into(), source.into(), "/".into())),
            ..identity()
        };
        assert!(network("host:/a").is_proved_by(&network("host:/a")));
        assert!(!network("host:/a").is_proved_by(&network("host:/b")));
        assert!(!network("host:/a").is_proved_by(&disk()));
        assert!(!identity().is_proved_by(&identity()), "both have no identity");
    }

    #[test]
    fn a_removed_directory_does_not_answer_and_a_renamed_one_does() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("source");
        std::fs::create_dir(&path).unwrap();
        let root = Root::open(&path, false).unwrap();
        assert_eq!(root.check_health(|_| ()), Ok(()));
        std::fs::rename(&path, directory.path().join("renamed")).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert_eq!(root.check_health(|_| panic!("it has not gone")), Ok(()));
        std::fs::remove_dir(directory.path().join("renamed")).unwrap();
        assert_eq!(root.check_health(|fd| assert!(fd.is_none())), Err(Errno::STALE));
        assert!(root.check_health(|_| panic!("that is another directory")).is_err());
    }
}
