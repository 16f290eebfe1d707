//! Attributes and generation of an object, by descriptor or by name.
//!
//! A generation tells objects apart that had the same inode number one after the other. Where the
//! file system has handles it is a digest of the handle; otherwise it is the time of birth, where
//! that is kept. An overlay has neither: what it gives as the time of birth is that of the file
//! below, and another one once the file has been copied up, by which an open file would turn into
//! another.

use super::crossing::Crossings;
use super::handle::{FileHandle, MountId};
use crate::{Attributes, FileKind, Result, Tag, Time};
use parking_lot::RwLock;
use rustix::fd::BorrowedFd;
use rustix::fs::{AtFlags, Statx, StatxFlags, StatxTimestamp, makedev};
use rustix::io::Errno;
use std::ffi::OsStr;

/// `OVERLAYFS_SUPER_MAGIC` of `linux/magic.h`.
const OVERLAY: u32 = 0x794c_7630;
/// Those of file systems that are told attributes with names: FUSE, NFS, SMB, CephFS.
const LIST_WITH_ATTRIBUTES: [u32; 5] = [0x6573_5546, 0x6969, 0xfe53_4d42, 0xff53_4d42, 0x00c3_6400];
/// Those of this machine's own kernel that open a file whenever its mode and their being writable
/// permit: ext4, XFS, Btrfs, F2FS, bcachefs, ZFS, tmpfs, overlayfs.
const OPEN_AS_FILES_PERMIT: [u32; 8] =
    [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0xca45_1a4e, 0x2fc1_2fc1, 0x0102_1994, OVERLAY];
/// Devices whose way is remembered; a further one is asked each time.
const DEVICES_MAX: usize = 256;

/// Where the generation of a device's objects comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Handle,
    Birth,
    Nothing,
}

/// What is known of a device.
#[derive(Clone, Copy, Debug)]
struct Known {
    device: u64,
    source: Source,
    lists_with_attributes: bool,
    opens_as_files_permit: bool,
}

/// What is known of an object that was looked at.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) attributes: Attributes,
    pub(super) generation: u64,
    /// Its handle and the id of its mount, where it has one.
    pub(super) handle: Option<(FileHandle, MountId)>,
}

/// Looks at objects. The lock guards the short list of devices. No file system
/// is asked before it is known that it does not ask back.
#[derive(Debug, Default)]
pub(super) struct Inspector {
    devices: RwLock<Vec<Known>>,
    pub(super) crossings: Crossings,
}

impl Inspector {
    /// The object that a name in a directory leads to, or the directory itself if the name is
    /// empty; a symbolic link is not followed.
    ///
    /// The two calls by name may see two objects; what is made of them is an object that does not
    /// exist, and whoever uses it is told so.
    pub(super) fn look(&self, directory: BorrowedFd<'_>, name: &OsStr) -> Result<Seen> {
        let asked = match handle(directory, name) {
            Err(errno @ (Errno::NOENT | Errno::NOTDIR)) => return Err(errno),
            asked => asked.ok(),
        };
        self.crossings.check(directory, name, asked.as_ref().map(|(_, id)| *id))?;
        let mut flags = AtFlags::SYMLINK_NOFOLLOW;
        flags.set(AtFlags::EMPTY_PATH, name.is_empty());
        let mask = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        let statx = rustix::fs::statx(directory, name, flags, mask)?;
        let device = makedev(statx.stx_dev_major, statx.stx_dev_minor);
        let attributes = attributes(&statx, device)?;
        let source = match self.known(device) {
            Some(known) => known.source,
            None => self.learn(device, asked.is_some(), directory, name)?,
        };
        let handle = asked.filter(|_| source == Source::Handle);
        let generation = match (source, &handle) {
            (_, Some((handle, _))) => handle.generation(),
            (Source::Birth | Source::Handle, None)
                if statx.stx_mask & StatxFlags::BTIME.bits() != 0 =>
            {
                (statx.stx_btime.tv_sec as u64)
                    .wrapping_mul(1_000_000_000)
                    .wrapping_add(u64::from(statx.stx_btime.tv_nsec))
            }
            _ => 0,
        };
        Ok(Seen { attributes, generation, handle })
    }

    fn known(&self, device: u64) -> Option<Known> {
        self.devices.read().iter().find(|known| known.device == device).copied()
    }

    /// Whether names of this device come with attributes, as far as is known.
    pub(super) fn lists_with_attributes(&self, device: u64) -> bool {
        self.known(device).is_some_and(|known| known.lists_with_attributes)
    }

    /// Whether files of this device are opened by nobody's leave but that of their own modes, as far
    /// as is known.
    pub(super) fn opens_as_files_permit(&self, device: u64) -> bool {
        self.known(device).is_some_and(|known| known.opens_as_files_permit)
    }

    /// Finds out about a device by an object on it.
    fn learn(
        &self,
        device: u64,
        has_handle: bool,
        directory: BorrowedFd<'_>,
        name: &OsStr,
    ) -> Result<Source> {
        let (source, magic) = match (has_handle, magic(directory, name)) {
            (true, magic) => (Source::Handle, magic.unwrap_or(0)),
            (false, magic) => match magic? {
                OVERLAY => (Source::Nothing, OVERLAY),
                magic => (Source::Birth, magic),
            },
        };
        let lists_with_attributes = LIST_WITH_ATTRIBUTES.contains(&magic);
        let opens_as_files_permit = OPEN_AS_FILES_PERMIT.contains(&magic);
        let mut devices = self.devices.write();
        if devices.len() < DEVICES_MAX && devices.iter().all(|known| known.device != device) {
            let known = Known { device, source, lists_with_attributes, opens_as_files_permit };
            devices.push(known);
        }
        Ok(source)
    }
}

fn handle(directory: BorrowedFd<'_>, name: &OsStr) -> Result<(FileHandle, MountId)> {
    if name.is_empty() { FileHandle::of(directory) } else { FileHandle::at(directory, name) }
}

/// Which kind of file system an object is on.
fn magic(directory: BorrowedFd<'_>, name: &OsStr) -> Result<u32> {
    let statfs = if name.is_empty() {
        rustix::fs::fstatfs(directory)?
    } else {
        rustix::fs::fstatfs(super::open_name(directory, name)?)?
    };
    Ok(statfs.f_type as u32)
}

fn attributes(statx: &Statx, device: u64) -> Result<Attributes> {
    let mode = u32::from(statx.stx_mode);
    Ok(Attributes {
        device,
        inode: statx.stx_ino,
        kind: FileKind::from_mode(mode).ok_or(Errno::IO)?,
        permissions: (mode & 0o7777) as u16,
        links: statx.stx_nlink,
        user: statx.stx_uid,
        group: statx.stx_gid,
        special_device: makedev(statx.stx_rdev_major, statx.stx_rdev_minor),
        size_bytes: statx.stx_size,
        blocks: statx.stx_blocks,
        block_size_bytes: statx.stx_blksize,
        accessed: time(statx.stx_atime),
        modified: time(statx.stx_mtime),
        changed: time(statx.stx_ctime),
        tag: Tag::Times,
    })
}

fn time(time: StatxTimestamp) -> Time {
    Time { seconds: time.tv_sec, nanoseconds: time.tv_nsec.min(999_999_999) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::AsFd;

    #[test]
    fn by_name_and_by_descriptor_an_object_looks_as_fstat_says() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("file"), "12345").unwrap();
        std::os::unix::fs::symlink("file", directory.path().join("link")).unwrap();
        let top = std::fs::File::open(directory.path()).unwrap();
        for path in ["file", "link", "/dev/null", "/proc", "/dev/pts", "/sys"] {
            let (path, inspector) = (OsStr::new(path), Inspector::default());
            let Ok(fd) = crate::directory::open_name(&top, path) else { continue };
            let stat = rustix::fs::fstat(&fd).unwrap();
            let expected = crate::directory::node::attributes(&stat).unwrap();
            let by_descriptor = inspector.look(fd.as_fd(), OsStr::new("")).unwrap();
            let by_name = inspector.look(top.as_fd(), path).unwrap();
            assert_eq!(by_descriptor.attributes, expected);
            assert_eq!(by_name.attributes, expected);
            assert_eq!(by_name.generation, by_descriptor.generation);
            assert_eq!(
                Inspector::default().look(top.as_fd(), path).unwrap().generation,
                by_name.generation
            );
        }
        let missing = Inspector::default().look(top.as_fd(), OsStr::new("missing"));
        assert!(matches!(missing, Err(Errno::NOENT)));
    }
}
