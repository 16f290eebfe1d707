//! An open file that closes its own descriptor whenever a program closes one.
//!
//! FUSE reports each `close(2)` before it returns (`FLUSH`), but the end of the last use only some
//! time later (`RELEASE`). A descriptor kept until then would still count as a writer after the
//! program's last close. An `execve` of the file in the source would then fail with `ETXTBSY`. The
//! last `FLUSH` cannot be recognized: descriptors are copied, inherited, mapped and registered. So
//! at each `FLUSH` a file that is open for writing is *closed* here. An `O_PATH` descriptor
//! remains, which keeps the object and is no writer. Any later operation opens the object again
//! through it.
//!
//! # Invariants
//!
//! No write may be lost by this. So a file is closed only if it can be opened again despite any
//! later change of its permissions. Either the process may override permissions, or it owns the
//! file and gives itself the permission for a moment. Files on network file systems and on FUSE
//! stay open: there an open is a request, which the server may refuse.
//!
//! A file loses `O_APPEND` for good at the first write with an offset. Appends do not need the
//! flag, because [`DirectoryOrigin`](super::DirectoryOrigin) asks for it write by write, but a FUSE
//! file system below may.
//!
//! # Locks
//!
//! The file's lock, and inside it that of the object's descriptor. It is never held during a call
//! that waits.

use super::descriptor_cache::Descriptor;
use super::magic_link;
use super::node::{Node, Nodes, open_real};
use crate::{OFlags, Result, impersonation};
use parking_lot::Mutex;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, chmod, fcntl_getfl, fcntl_setfl, fstat};
use rustix::io::Errno;
use rustix::mount::{OpenTreeFlags, open_tree};
use rustix::process::geteuid;
use std::sync::Arc;

/// `S_IRUSR` and `S_IWUSR`.
const OWNER_READS_AND_WRITES: Mode = Mode::RUSR.union(Mode::WUSR);

/// An open file of a directory origin.
#[derive(Debug)]
pub struct OpenFile {
    node: Node,
    /// User and group that opened it.
    opened_for: Option<(u32, u32)>,
    held: Mutex<Held>,
}

#[derive(Clone, Debug)]
enum Held {
    /// Open by a descriptor to read and write, which may have `O_APPEND`.
    Open(Arc<Descriptor>, bool),
    /// Closed, with a descriptor that keeps the object and the flags for the next open.
    Closed(Arc<Descriptor>, OFlags),
}

impl OpenFile {
    /// A file that was opened with these flags.
    pub(super) fn new(node: &Node, fd: OwnedFd, flags: OFlags) -> Self {
        let descriptor = Descriptor::new(fd);
        node.is_open(&descriptor);
        let held = Mutex::new(Held::Open(descriptor, flags.contains(OFlags::APPEND)));
        let opened_for = impersonation::requester().ok().flatten();
        Self { node: node.clone(), opened_for, held }
    }

    /// The node of its object.
    pub(super) fn node(&self) -> &Node {
        &self.node
    }

    /// User and group that opened it; `None` for this process.
    pub(super) fn opened_for(&self) -> Option<(u32, u32)> {
        self.opened_for
    }

    /// A descriptor for everything but reading, writing and changing the size.
    pub(super) fn path(&self) -> Arc<Descriptor> {
        match &*self.held.lock() {
            Held::Open(descriptor, _) | Held::Closed(descriptor, _) => descriptor.clone(),
        }
    }

    /// A descriptor to read, and to make durable. It makes no writer of a file that was closed.
    ///
    /// # Errors
    /// If the file was closed, and cannot be opened again.
    pub(super) fn reader(&self, nodes: &Nodes) -> Result<Arc<Descriptor>> {
        let (path, flags) = match &*self.held.lock() {
            Held::Open(descriptor, _) => return Ok(descriptor.clone()),
            Held::Closed(path, flags) => (path.clone(), *flags),
        };
        let flags = (flags - OFlags::ACCMODE - OFlags::APPEND) | OFlags::RDONLY;
        open_again(nodes, &path, flags).map(Descriptor::new)
    }

    /// A descriptor to change the file, where offsets do not matter.
    ///
    /// # Errors
    /// As [`Self::reader`].
    pub(super) fn changer(&self, nodes: &Nodes) -> Result<Arc<Descriptor>> {
        self.open(nodes, false)
    }

    /// A descriptor to write at an offset. With `O_APPEND` the bytes would go to the end all the
    /// same. The program has cleared that flag since, or writes without it this once.
    ///
    /// # Errors
    /// As [`Self::reader`]; `EPERM` for a file that may only be appended to.
    pub(super) fn writer(&self, nodes: &Nodes) -> Result<Arc<Descriptor>> {
        self.open(nodes, true)
    }

    fn open(&self, nodes: &Nodes, is_positioned: bool) -> Result<Arc<Descriptor>> {
        loop {
            let (path, flags) = match &mut *self.held.lock() {
                Held::Open(descriptor, appends) => {
                    if is_positioned && *appends {
                        let flags = fcntl_getfl(&**descriptor)?;
                        fcntl_setfl(&**descriptor, flags - OFlags::APPEND)?;
                        *appends = false;
                    }
                    return Ok(descriptor.clone());
                }
                Held::Closed(path, flags) => (path.clone(), *flags),
            };
            let opened = Descriptor::new(open_again(nodes, &path, flags)?);
            let mut held = self.held.lock();
            let is_still = matches!(&*held, Held::Closed(now, _) if Arc::ptr_eq(now, &path));
            if is_still {
                self.node.is_open(&opened);
                *held = Held::Open(opened, flags.contains(OFlags::APPEND));
            }
        }
    }

    /// A program has closed one of its descriptors: so does this file.
    ///
    /// # Errors
    /// Those of earlier writes, as `close(2)` reports them.
    pub(super) fn close(&self, nodes: &Nodes) -> Result<()> {
        let Held::Open(descriptor, _) = self.held.lock().clone() else { return Ok(()) };
        if self.can_be_opened_again(nodes, &descriptor)
            && let Ok(path) = nodes.with_room(|| path_of(&descriptor))
        {
            self.keep_only(&descriptor, path)?;
        }
        match Arc::try_unwrap(descriptor) {
            Ok(descriptor) => descriptor.close(),
            // It is in use, perhaps by the file itself; closing a copy returns the same errors.
            Err(shared) => {
                let copy = nodes.with_room(|| rustix::io::fcntl_dupfd_cloexec(&*shared, 0))?;
                Descriptor::from(copy).close()
            }
        }
    }

    /// Whether the next open with the same flags must succeed. A file system without that property
    /// is not asked for attributes: an NFS client flushes writes before it answers.
    fn can_be_opened_again(&self, nodes: &Nodes, descriptor: &Descriptor) -> bool {
        let device = nodes.device_of(&self.node);
        let is_own = || fstat(descriptor).is_ok_and(|stat| stat.st_uid == geteuid().as_raw());
        device.is_some_and(|device| nodes.inspector.opens_as_files_permit(device))
            && (nodes.overrides_permissions || is_own())
    }

    /// Continues with a descriptor that keeps the object, unless the file was reopened meanwhile.
    fn keep_only(&self, descriptor: &Arc<Descriptor>, path: OwnedFd) -> Result<()> {
        let mut held = self.held.lock();
        if matches!(&*held, Held::Open(now, _) if Arc::ptr_eq(now, descriptor)) {
            let flags = fcntl_getfl(&**descriptor)?;
            let path = Descriptor::new(path);
            self.node.is_open(&path);
            *held = Held::Closed(path, flags);
        }
        Ok(())
    }
}

/// A descriptor that keeps the object of another descriptor.
fn path_of(descriptor: &Descriptor) -> Result<OwnedFd> {
    // Without its clone flag, `open_tree(2)` only opens the object, at half the cost of the path by
    // /proc. That path still works where a container forbids the call.
    let flags = OpenTreeFlags::AT_EMPTY_PATH | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    open_tree(descriptor, c"", flags).or_else(|_| open_real(descriptor.as_fd(), OFlags::PATH))
}

fn open_again(nodes: &Nodes, path: &Descriptor, flags: OFlags) -> Result<OwnedFd> {
    let open = |flags| nodes.with_room(|| open_real(path.as_fd(), flags));
    let (mut opened, mut flags) = (open(flags), flags);
    if opened.as_ref().is_err_and(|errno| *errno == Errno::PERM) && flags.contains(OFlags::NOATIME)
    {
        // Another user owns the file by now.
        flags -= OFlags::NOATIME;
        opened = open(flags);
    }
    match opened {
        Err(Errno::ACCESS) => with_permission(path, || open(flags)),
        other => other,
    }
}

/// Opens a file whose owner has removed the permission while a program had it open.
fn with_permission(path: &Descriptor, open: impl FnOnce() -> Result<OwnedFd>) -> Result<OwnedFd> {
    let link = magic_link(path.as_fd());
    let mode = Mode::from_raw_mode(fstat(path)?.st_mode & 0o7777);
    chmod(link.as_c_str(), mode | OWNER_READS_AND_WRITES).map_err(|_| Errno::ACCESS)?;
    let opened = open();
    if let Err(errno) = chmod(link.as_c_str(), mode) {
        let mode = mode.as_raw_mode();
        log::error!(
            "a file whose owner took away the permission to write has it again, because \
                     its mode cannot be set back to {mode:o}: {errno}"
        );
    }
    opened
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Caller, Changes, DirectoryOrigin, Found, Origin};
    use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
    use std::ffi::OsStr;
    use std::path::Path;

    struct Fixture {
        directory: tempfile::TempDir,
        origin: DirectoryOrigin,
        node: Node,
        file: OpenFile,
    }

    /// A file that was created with these flags, and is open.
    fn fixture(flags: OFlags) -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        let origin = DirectoryOrigin::open(directory.path()).unwrap();
        let root = origin.root().unwrap().node;
        let (user, group) = (geteuid().as_raw(), rustix::process::getegid().as_raw());
        let caller = Caller { user, group, umask: 0 };
        let created = origin.create(&root, OsStr::new("file"), flags, 0o644, caller);
        let (Found { node, .. }, file) = created.unwrap();
        Fixture { directory, origin, node, file }
    }

    impl Fixture {
        fn contents(&self) -> Vec<u8> {
            std::fs::read(self.directory.path().join("file")).unwrap()
        }

        /// Descriptors of this process that write to a file in the directory.
        fn writers(&self) -> usize {
            writers_below(self.directory.path())
        }

        fn is_kept_open(&self) -> bool {
            matches!(&*self.file.held.lock(), Held::Open(..))
        }
    }

    fn writers_below(directory: &Path) -> usize {
        let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let of_files = descriptors.filter(|entry| {
            std::fs::read_link(entry.path()).is_ok_and(|path| path.starts_with(directory))
        });
        let flags = |entry: std::fs::DirEntry| {
            let name = entry.file_name().into_string().unwrap();
            let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{name}")).ok()?;
            let flags = text.lines().find_map(|line| line.strip_prefix("flags:"))?;
            u32::from_str_radix(flags.trim(), 8).ok().map(OFlags::from_bits_retain)
        };
        let may_write = |flags: &OFlags| flags.intersects(OFlags::WRONLY | OFlags::RDWR);
        of_files.filter_map(flags).filter(may_write).count()
    }

    /// The local file systems under the temporary directory. Elsewhere the tests of closed files
    /// prove nothing.
    fn is_closed_here(fixture: &Fixture) -> bool {
        let device = fixture.origin.attributes(&fixture.node, Some(&fixture.file)).unwrap().device;
        let is_local = fixture.origin.nodes.inspector.opens_as_files_permit(device);
        if !is_local {
            crate::skipped::skipped("the temporary directory is on no local file system");
        }
        is_local
    }

    #[test]
    fn a_file_that_a_program_has_closed_has_no_writer() {
        let fixture = fixture(OFlags::RDWR);
        if !is_closed_here(&fixture) {
            return;
        }
        let Fixture { origin, file, node, .. } = &fixture;
        origin.write_at(file, 0, b"first").unwrap();
        assert_eq!(fixture.writers(), 1);
        origin.flush(file).unwrap();
        assert_eq!(fixture.writers(), 0);
        // Only a change makes a writer of it.
        let mut bytes = Vec::new();
        origin.read_at(file, 1, 100, &mut bytes).unwrap();
        assert_eq!(bytes, b"irst");
        origin.sync(file, false).unwrap();
        assert_eq!(origin.attributes(node, Some(file)).unwrap().size_bytes, 5);
        let mode = Changes { permissions: Some(0o755), ..Changes::default() };
        origin.set_attributes(node, Some(file), &mode).unwrap();
        origin.flush(file).unwrap();
        assert_eq!(fixture.writers(), 0);
        // A later write through a copy of the descriptor arrives.
        origin.write_at(file, 5, b" second").unwrap();
        assert_eq!((fixture.contents(), fixture.writers()), (b"first second".to_vec(), 1));
        origin.flush(file).unwrap();
        assert_eq!(fixture.writers(), 0);
        let size = Changes { size_bytes: Some(3), ..Changes::default() };
        assert_eq!(origin.set_attributes(node, Some(file), &size).unwrap().size_bytes, 3);
        assert_eq!(fixture.contents(), b"fir");
    }

    #[test]
    fn a_file_without_a_name_is_written_after_it_was_closed() {
        let fixture = fixture(OFlags::WRONLY);
        let Fixture { origin, file, node, .. } = &fixture;
        origin.write_at(file, 0, b"1234").unwrap();
        std::fs::remove_file(fixture.directory.path().join("file")).unwrap();
        origin.flush(file).unwrap();
        origin.write_at(file, 4, b"5").unwrap();
        let attributes = origin.attributes(node, Some(file)).unwrap();
        assert_eq!((attributes.links, attributes.size_bytes), (0, 5));
    }

    #[test]
    fn a_file_is_appended_to_whatever_its_flags_and_still_written_at_an_offset() {
        for flags in [OFlags::RDWR, OFlags::RDWR | OFlags::APPEND] {
            let fixture = fixture(flags);
            let Fixture { origin, file, .. } = &fixture;
            origin.append(file, b"one").unwrap();
            std::fs::write(fixture.directory.path().join("file"), "one two").unwrap();
            origin.append(file, b" three").unwrap();
            origin.write_at(file, 0, b"O").unwrap();
            origin.flush(file).unwrap();
            origin.write_at(file, 4, b"T").unwrap();
            origin.append(file, b" four").unwrap();
            assert_eq!(fixture.contents(), b"One Two three four");
            assert_eq!(origin.local_size(file), Some(18));
        }
    }

    #[test]
    fn a_file_that_might_not_be_reopened_stays_open() {
        let mut fixture = fixture(OFlags::WRONLY);
        if !is_closed_here(&fixture) {
            return;
        }
        let somebody = rustix::fs::Uid::from_raw(geteuid().as_raw() + 1);
        let path = fixture.directory.path().join("file");
        if rustix::fs::chown(&path, Some(somebody), None).is_err() {
            return crate::skipped::skipped("only root gives files away");
        }
        fixture.origin.nodes.overrides_permissions = false;
        fixture.origin.flush(&fixture.file).unwrap();
        assert!(fixture.is_kept_open(), "another user owns it");
        fixture.origin.nodes.overrides_permissions = true;
        fixture.origin.flush(&fixture.file).unwrap();
        assert!(!fixture.is_kept_open());
    }

    #[test]
    fn removing_the_permission_loses_no_write_of_an_open_file() {
        let mut fixture = fixture(OFlags::RDWR);
        if !is_closed_here(&fixture) {
            return;
        }
        fixture.origin.nodes.overrides_permissions = false;
        let Fixture { origin, file, .. } = &fixture;
        origin.write_at(file, 0, b"12").unwrap();
        origin.flush(file).unwrap();
        let path = fixture.directory.path().join("file");
        rustix::fs::chmod(&path, Mode::from_raw_mode(0)).unwrap();
        let written = std::thread::scope(|scope| {
            let write = || {
                // Capabilities belong to a thread, and this one ends.
                let CapabilitySets { effective, permitted, inheritable } =
                    capabilities(None).unwrap();
                let without = CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
                let effective = effective - without;
                set_capabilities(None, CapabilitySets { effective, permitted, inheritable })
                    .unwrap();
                assert!(std::fs::OpenOptions::new().write(true).open(&path).is_err());
                origin.write_at(file, 2, b"34")
            };
            scope.spawn(write).join().unwrap()
        });
        assert_eq!(written, Ok(2));
        let mode = rustix::fs::stat(&path).unwrap().st_mode & 0o7777;
        assert_eq!(mode, 0, "and the mode is unchanged");
        rustix::fs::chmod(&path, Mode::from_raw_mode(0o600)).unwrap();
        assert_eq!(fixture.contents(), b"1234");
    }

    #[test]
    fn writes_during_a_close_all_arrive_where_they_belong() {
        const EACH: u64 = 300;
        let fixture = fixture(OFlags::RDWR | OFlags::APPEND);
        let Fixture { origin, file, .. } = &fixture;
        std::thread::scope(|scope| {
            for writer in 0..3 {
                scope.spawn(move || {
                    for number in 0..EACH {
                        let bytes = [writer as u8 + 1; 10];
                        origin.write_at(file, (number * 3 + writer) * 10, &bytes).unwrap();
                    }
                });
            }
            scope.spawn(|| (0..EACH).for_each(|_| origin.flush(file).unwrap()));
        });
        let contents = fixture.contents();
        assert_eq!(contents.len() as u64, 3 * EACH * 10);
        let is_right = |(at, byte): (usize, &u8)| usize::from(*byte) == at / 10 % 3 + 1;
        assert!(contents.iter().enumerate().all(is_right));
    }
}
