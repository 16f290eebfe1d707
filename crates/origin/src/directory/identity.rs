//! Attributes and generation of an object, by descriptor or by name.
//!
//! A generation distinguishes objects that had the same inode number one after the other. If the
//! file system has handles, it is a digest of the handle. Otherwise it is the time of birth, if
//! that never changes ([`super::file_systems`]). An overlay has neither: its time of birth is that
//! of the lower file, and changes once the file is copied up. An open file would then turn into
//! another one. On FAT the kernel invents the number in a handle, so a handle proves nothing there
//! either.
//!
//! The mount of an object decides on the trust in its times ([`super::times`]), because a device
//! number may belong to another file system tomorrow.

use super::file_systems::{self, Kind, Sizes};
use super::handle::{FileHandle, MountId};
use super::submounts::{MNT_ID_UNIQUE, Submounts};
use super::times::{self, Proof, TrustTimes};
use crate::mount_table::{self, MountEntry};
use crate::{Attributes, FileKind, Needed, Result, Tag, Time};
use parking_lot::RwLock;
use rustix::fd::BorrowedFd;
use rustix::fs::{AtFlags, Statx, StatxFlags, StatxTimestamp, makedev};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// File systems that are remembered; a further one is probed each time.
const FILE_SYSTEMS_MAX: usize = 256;
/// All results of `stat(2)`.
const ALL: StatxFlags = StatxFlags::BASIC_STATS;
/// A change time this old, right after a change, is no real change time.
const CHANGE_TIME_OLD: Duration = Duration::from_secs(60);

/// The facts about a file system, by device and by the mount where an object was found.
#[derive(Clone, Copy, Debug)]
struct Known {
    device: u64,
    mount: u64,
    /// Its objects have stable handles.
    has_handles: bool,
    kind: Kind,
    proof: Proof,
}

/// A file system whose times prove nothing about contents.
#[derive(Debug)]
struct Doubted {
    device: u64,
    mount: u64,
    /// Its type and mount point, as far as known.
    name: String,
    why: &'static str,
}

/// The facts about an object after a look-up.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) attributes: Attributes,
    pub(super) generation: u64,
    /// Its handle and the id of its mount, where it has one.
    pub(super) handle: Option<(FileHandle, MountId)>,
    /// The kind of its file system.
    pub(super) kind: Kind,
}

/// Reads the facts of objects. The locks guard the short lists of file systems. A file system gets
/// no request before it is known that it does not send one back.
#[derive(Debug, Default)]
pub(super) struct Inspector {
    trust: TrustTimes,
    /// The entry of the table of mounts for the only mount. Its copy is in no table.
    only: Option<MountEntry>,
    /// Other users are let in by mode bits, even where a file system's own rules decide.
    pub(super) lets_in_by_mode: bool,
    file_systems: RwLock<Vec<Known>>,
    doubted: RwLock<Vec<Doubted>>,
    /// The objects of some file system have to be found by place.
    needs_places: AtomicBool,
    pub(super) submounts: Submounts,
}

impl Inspector {
    /// The object that a name in a directory leads to, or the directory itself if the name is
    /// empty; a symbolic link is not followed.
    ///
    /// The two calls by name may see two objects. Their combination is an object that does not
    /// exist, and its user gets an error.
    pub(super) fn look(&self, directory: BorrowedFd<'_>, name: &OsStr) -> Result<Seen> {
        let asked = match handle(directory, name) {
            // If a client returns `ESTALE` for an object that it finds by name, its cache is behind
            // the server.
            Err(errno @ (Errno::NOENT | Errno::NOTDIR | Errno::STALE)) => return Err(errno),
            asked => asked.ok(),
        };
        self.submounts.check(directory, name, asked.as_ref().map(|(_, id)| *id))?;
        let statx = ask(directory, name, ALL | StatxFlags::BTIME)?;
        let known = self.known(&statx, asked.is_some(), (directory, name))?;
        let Known { kind, proof, has_handles, .. } = known;
        let attributes = attributes(&statx, proof)?;
        let handle = asked.filter(|_| has_handles);
        let has_birth = statx.stx_mask & StatxFlags::BTIME.bits() != 0;
        let generation = match &handle {
            Some((handle, _)) => handle.generation(),
            None if has_birth && kind.birth_tells(attributes.kind == FileKind::Directory) => {
                (statx.stx_btime.tv_sec as u64)
                    .wrapping_mul(1_000_000_000)
                    .wrapping_add(u64::from(statx.stx_btime.tv_nsec))
            }
            None => 0,
        };
        Ok(Seen { attributes, generation, handle, kind })
    }

    /// Attributes of an object whose file system was checked before.
    pub(super) fn attributes(&self, fd: BorrowedFd<'_>) -> Result<Attributes> {
        self.some_attributes(fd, ALL)
    }

    /// The same, if only some attributes are needed.
    pub(super) fn attributes_needed(
        &self,
        fd: BorrowedFd<'_>,
        needed: Needed,
    ) -> Result<Attributes> {
        self.some_attributes(
            fd,
            match needed {
                Needed::Version => ALL - StatxFlags::ATIME,
                Needed::Size => StatxFlags::SIZE,
                Needed::Links => StatxFlags::NLINK,
            },
        )
    }

    fn some_attributes(&self, fd: BorrowedFd<'_>, mask: StatxFlags) -> Result<Attributes> {
        let place = (fd, OsStr::new(""));
        let statx = ask(place.0, place.1, mask)?;
        let proof = match self.find(&statx) {
            Some(known) => known.proof,
            None => self.known(&statx, handle(place.0, place.1).is_ok(), place)?.proof,
        };
        attributes(&statx, proof)
    }

    /// The same right after its modification time was set. If the change time equals that old time,
    /// it is no real change time.
    pub(super) fn attributes_once_set(&self, fd: BorrowedFd<'_>) -> Result<Attributes> {
        let attributes = self.attributes(fd)?;
        let is_old = attributes.changed.after(CHANGE_TIME_OLD) < Time::now();
        if attributes.tag != Tag::Times || attributes.modified != attributes.changed || !is_old {
            return Ok(attributes);
        }
        self.doubt(fd, "its change time proved settable");
        Ok(Attributes { tag: Tag::Nothing, ..attributes })
    }

    /// Sets the user's trust in times.
    pub(super) fn trust_times(&mut self, trust: TrustTimes) {
        self.trust = trust;
        self.file_systems.get_mut().clear();
        self.doubted.get_mut().clear();
    }

    /// The origin has no other mount than this one.
    pub(super) fn is_one_file_system(&mut self, only: Option<&MountEntry>) {
        self.only = only.cloned();
        self.file_systems.get_mut().clear();
    }

    /// The row of the table for an object's mount.
    fn mount_of<'a>(
        &'a self,
        mounts: &'a [MountEntry],
        statx: &Statx,
        place: (BorrowedFd<'_>, &OsStr),
    ) -> Option<&'a MountEntry> {
        self.only.as_ref().or_else(|| mount_of(mounts, statx, place))
    }

    /// Reports the known file systems whose times prove nothing, with the reason.
    pub(super) fn untrusted_times(&self, tell: &mut dyn FnMut(&str, &str)) {
        for doubted in &*self.doubted.read() {
            tell(&doubted.name, doubted.why);
        }
    }

    /// Makes all known file systems count as this kind.
    #[cfg(test)]
    pub(super) fn pretend(&self, kind: Kind, has_handles: bool) {
        self.needs_places.store(!kind.finds_by_handle(), Ordering::Relaxed);
        for known in &mut *self.file_systems.write() {
            (known.kind, known.has_handles) = (kind, has_handles);
        }
    }

    fn find(&self, statx: &Statx) -> Option<Known> {
        let (device, mount) = (device(statx), statx.stx_mnt_id);
        let known = self.file_systems.read();
        known.iter().find(|known| known.device == device && known.mount == mount).copied()
    }

    fn known(
        &self,
        statx: &Statx,
        has_handle: bool,
        place: (BorrowedFd<'_>, &OsStr),
    ) -> Result<Known> {
        match self.find(statx) {
            Some(known) => Ok(known),
            None => self.learn(statx, has_handle, place),
        }
    }

    /// The last known mount with this device number.
    pub(super) fn kind(&self, device: u64) -> Kind {
        let known = self.file_systems.read();
        let last = known.iter().rev().find(|known| known.device == device);
        last.map_or_else(Kind::default, |known| known.kind)
    }

    /// Notes whether names on this device fold case.
    pub(super) fn is_known_to_fold(&self, device: u64, folds: bool) {
        let mut file_systems = self.file_systems.write();
        for known in file_systems.iter_mut().filter(|known| known.device == device) {
            (known.kind.folds_case, known.kind.is_case_known) = (folds, true);
        }
    }

    /// Whether the objects of a known file system have to be found by place.
    pub(super) fn needs_places(&self) -> bool {
        self.needs_places.load(Ordering::Relaxed)
    }

    /// Whether names on this device come with attributes, as far as known.
    pub(super) fn lists_with_attributes(&self, device: u64) -> bool {
        self.kind(device).lists_with_attributes
    }

    /// Whether only their own modes decide about opening files on this device, as far as known.
    pub(super) fn opens_as_files_permit(&self, device: u64) -> bool {
        self.kind(device).opens_as_files_permit
    }

    /// Reads the facts of a file system from an object on it.
    fn learn(
        &self,
        statx: &Statx,
        has_handle: bool,
        place: (BorrowedFd<'_>, &OsStr),
    ) -> Result<Known> {
        let kind = match kind(place.0, place.1) {
            Err(errno) if !has_handle => return Err(errno),
            kind => kind.unwrap_or_default(),
        };
        let mounts = mount_table::read().unwrap_or_default();
        let mount = self.mount_of(&mounts, statx, place);
        let proof = mount.map_or(Proof::Nothing, |mount| times::proof(&mounts, mount));
        let known = Known {
            device: device(statx),
            mount: statx.stx_mnt_id,
            has_handles: has_handle && !kind.makes_up_numbers,
            kind,
            proof: self.trust.allows(proof),
        };
        if !kind.finds_by_handle() {
            self.needs_places.store(true, Ordering::Relaxed);
        }
        let mut file_systems = self.file_systems.write();
        let is_first = file_systems.is_empty();
        if file_systems.len() == FILE_SYSTEMS_MAX {
            // Otherwise one that was unmounted long ago would stay for ever. The root's will be
            // probed again.
            file_systems.remove(0);
        }
        file_systems.push(known);
        drop(file_systems);
        if let Some(mount) = mount.filter(|_| self.lets_in_by_mode && !is_first)
            && file_systems::is_elsewhere(&mount.fstype)
        {
            let name = format!("{} at {}", mount.fstype, mount.mount_point.display());
            log::warn!(
                event = "permissions_by_mode",
                file_system = name.as_str();
                "{name} has its own rules for users, but below this source its mode bits decide; \
                 give it an ogive mount of its own"
            );
        }
        // If contents are made when they are read, no promise would make them valid later.
        if known.proof == Proof::Nothing && known.kind.sizes != Sizes::MadeUp {
            let why = match self.trust {
                TrustTimes::Never => "--trust-times never",
                _ => "a program may hide a change there by putting an old time back",
            };
            // The code that opened the origin reports the first one.
            self.note_doubt(&known, mount, why, !is_first);
        }
        Ok(known)
    }

    /// The times of its file system have proved to be wrong.
    fn doubt(&self, fd: BorrowedFd<'_>, why: &'static str) {
        let Ok(statx) = ask(fd, OsStr::new(""), StatxFlags::TYPE) else { return };
        let (device, mount) = (device(&statx), statx.stx_mnt_id);
        if matches!(self.trust, TrustTimes::Always | TrustTimes::Unchanging) {
            return;
        }
        let mut file_systems = self.file_systems.write();
        let it =
            file_systems.iter_mut().find(|known| known.device == device && known.mount == mount);
        let Some(it) = it.filter(|known| known.proof != Proof::Nothing) else { return };
        it.proof = Proof::Nothing;
        let known = *it;
        drop(file_systems);
        let mounts = mount_table::read().unwrap_or_default();
        let mount = self.mount_of(&mounts, &statx, (fd, OsStr::new("")));
        self.note_doubt(&known, mount, why, true);
    }

    fn note_doubt(&self, known: &Known, at: Option<&MountEntry>, why: &'static str, is_said: bool) {
        let (device, mount) = (known.device, known.mount);
        let name = match at {
            Some(at) => format!("{} at {}", at.fstype, at.mount_point.display()),
            None => "a file system that is mounted nowhere".to_owned(),
        };
        let mut doubted = self.doubted.write();
        if doubted.iter().any(|other| other.device == device && other.mount == mount) {
            return;
        }
        if is_said {
            log::warn!(
                event = "times_doubted",
                file_system = name.as_str();
                "contents of {name} are not kept between opens: {why}"
            );
        }
        if doubted.len() == FILE_SYSTEMS_MAX {
            doubted.remove(0);
        }
        doubted.push(Doubted { device, mount, name, why });
    }
}

fn device(statx: &Statx) -> u64 {
    makedev(statx.stx_dev_major, statx.stx_dev_minor)
}

/// The kernel's facts about an object, and about its mount.
fn ask(directory: BorrowedFd<'_>, name: &OsStr, needed: StatxFlags) -> Result<Statx> {
    let mask = needed | StatxFlags::MNT_ID | MNT_ID_UNIQUE;
    rustix::fs::statx(directory, name, this(name), mask)
}

/// The flag that names an object itself: by a name in a directory, which may be a symbolic link's,
/// or by its own descriptor. With that flag alone, Linux 6.11 walks no path. After a path walk, an
/// NFS client returns `ESTALE` for an open file that has lost its last name.
pub(super) fn this(name: &OsStr) -> AtFlags {
    if name.is_empty() { AtFlags::EMPTY_PATH } else { AtFlags::SYMLINK_NOFOLLOW }
}

/// The row of the table for an object's mount. The table has the ids that may be given again.
pub(super) fn mount_of<'a>(
    mounts: &'a [MountEntry],
    statx: &Statx,
    (directory, name): (BorrowedFd<'_>, &OsStr),
) -> Option<&'a MountEntry> {
    let flags = this(name) | AtFlags::STATX_DONT_SYNC;
    let id = rustix::fs::statx(directory, name, flags, StatxFlags::MNT_ID)
        .ok()
        .filter(|found| found.stx_mask & StatxFlags::MNT_ID.bits() != 0)
        .map(|found| found.stx_mnt_id);
    match id {
        Some(id) => mounts.iter().find(|mount| u64::from(mount.id) == id),
        // Before Linux 5.8.
        None => {
            let device = (statx.stx_dev_major, statx.stx_dev_minor);
            mounts.iter().find(|mount| mount.device == device)
        }
    }
}

fn handle(directory: BorrowedFd<'_>, name: &OsStr) -> Result<(FileHandle, MountId)> {
    if name.is_empty() { FileHandle::of(directory) } else { FileHandle::at(directory, name) }
}

/// The kind of an object's file system.
fn kind(directory: BorrowedFd<'_>, name: &OsStr) -> Result<Kind> {
    if name.is_empty() {
        Kind::of_object(directory)
    } else {
        Kind::of_object(super::open_name(directory, name)?)
    }
}

/// # Errors
/// `EIO` for a kind of file that Linux does not have.
fn attributes(statx: &Statx, proof: Proof) -> Result<Attributes> {
    let mode = u32::from(statx.stx_mode);
    let kind = FileKind::from_mode(mode).ok_or(Errno::IO)?;
    Ok(Attributes {
        device: device(statx),
        inode: statx.stx_ino,
        kind,
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
        tag: tag(proof, kind, statx),
    })
}

/// The tag of the contents of an object.
fn tag(proof: Proof, kind: FileKind, statx: &Statx) -> Tag {
    match proof {
        Proof::All => Tag::Times,
        Proof::Contents if kind != FileKind::Directory => Tag::Times,
        // Everything is unchanged since this mount was made.
        Proof::Image if statx.stx_mask & MNT_ID_UNIQUE.bits() != 0 && !BOOT.is_empty() => {
            let mut hasher = blake3::Hasher::new();
            hasher.update(&BOOT).update(&statx.stx_mnt_id.to_le_bytes());
            let hash = hasher.finalize();
            let (half, _) = hash.as_bytes().split_at(16);
            Tag::Contents(u128::from_le_bytes(half.try_into().expect("half of 32 bytes")))
        }
        _ => Tag::Nothing,
    }
}

/// The identity of this boot of the kernel: ids of mounts start again at each boot.
static BOOT: LazyLock<Vec<u8>> =
    LazyLock::new(|| std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default());

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
            let by_descriptor = inspector.look(fd.as_fd(), OsStr::new("")).unwrap();
            let by_name = inspector.look(top.as_fd(), path).unwrap();
            assert_eq!(inspector.attributes(fd.as_fd()).unwrap(), by_name.attributes);
            assert_eq!(by_descriptor.attributes, by_name.attributes);
            let Attributes { device, inode, special_device, links, .. } = by_name.attributes;
            assert_eq!((device, inode, special_device), (stat.st_dev, stat.st_ino, stat.st_rdev));
            assert_eq!(u64::from(links), stat.st_nlink);
            let Attributes { permissions, user, group, size_bytes, .. } = by_name.attributes;
            assert_eq!(u32::from(permissions), stat.st_mode & 0o7777);
            assert_eq!((user, group, size_bytes), (stat.st_uid, stat.st_gid, stat.st_size as u64));
            let Attributes { modified, changed, .. } = by_name.attributes;
            assert_eq!((modified.seconds, changed.seconds), (stat.st_mtime, stat.st_ctime));
            assert_eq!(by_name.generation, by_descriptor.generation);
            assert_eq!(
                Inspector::default().look(top.as_fd(), path).unwrap().generation,
                by_name.generation
            );
        }
        let missing = Inspector::default().look(top.as_fd(), OsStr::new("missing"));
        assert!(matches!(missing, Err(Errno::NOENT)));
    }

    #[test]
    fn the_file_system_and_the_user_decide_on_trust_in_times() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("file"), "12345").unwrap();
        let top = std::fs::File::open(directory.path()).unwrap();
        let process = std::fs::File::open("/proc/self").unwrap();
        let mut inspector = Inspector::default();
        let tag = |inspector: &Inspector, top: &std::fs::File, name: &str| {
            inspector.look(top.as_fd(), OsStr::new(name)).unwrap().attributes.tag
        };
        let reported = |inspector: &Inspector| {
            let mut reported = Vec::new();
            inspector.untrusted_times(&mut |what, why| reported.push(format!("{what}: {why}")));
            reported
        };
        assert_eq!(tag(&inspector, &process, "stat"), Tag::Nothing, "it is new at each read");
        assert_eq!(tag(&inspector, &process, ""), Tag::Nothing);
        assert_eq!(reported(&inspector), [""; 0], "no promise would make it valid later");

        inspector.trust_times(TrustTimes::Always);
        assert_eq!(reported(&inspector), [""; 0]);
        assert_eq!(tag(&inspector, &top, "file"), Tag::Times);
        assert_eq!(tag(&inspector, &process, "stat"), Tag::Times, "if the user says so");
        assert_eq!(tag(&inspector, &process, ""), Tag::Nothing, "but for directories");
        inspector.trust_times(TrustTimes::Never);
        assert_eq!(tag(&inspector, &top, "file"), Tag::Nothing);
        assert_eq!(reported(&inspector).len(), 1);
        assert!(reported(&inspector)[0].ends_with(": --trust-times never"));
    }

    #[test]
    fn a_change_time_that_was_set_is_not_trusted_any_more() {
        let directory = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(directory.path().join("file")).unwrap();
        let inspector = Inspector::default();
        let known = inspector.look(file.as_fd(), OsStr::new("")).unwrap().attributes;
        let set = |time| file.set_modified(Time { seconds: time, nanoseconds: 7 }.into()).unwrap();
        set(1_000_000_000);
        let own = inspector.attributes_once_set(file.as_fd()).unwrap();
        assert_eq!((own.modified.seconds, own.tag), (1_000_000_000, known.tag));
        // No file system with a change time of its own can imitate this.
        inspector.doubt(file.as_fd(), "its change time was set");
        assert_eq!(inspector.attributes(file.as_fd()).unwrap().tag, Tag::Nothing);
        let mut reported = Vec::new();
        inspector.untrusted_times(&mut |_, why| reported.push(why.to_owned()));
        inspector.doubt(file.as_fd(), "said once");
        assert_eq!(reported, ["its change time was set"]);
    }
}
