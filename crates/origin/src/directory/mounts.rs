//! The mounted file systems of objects with a handle.
//!
//! `open_by_handle_at(2)` needs an open object of the file system, and an open object prevents its
//! unmount. The root's object stays open as long as the view is mounted. File systems mounted
//! *below* the root must remain free to be unmounted. So after a second without use, their object
//! is closed. It is reopened on demand, by its first known name in the directory above. It is used
//! only if that name still leads to the same mount. Otherwise the objects of the mount are gone
//! (`ESTALE`), and the kernel looks them up again.
//!
//! The closing thread sleeps without a timeout while nothing is open. The locks are leaves: no call
//! under them may reach a file system.

use super::handle::{FileHandle, MountId};
use crate::Result;
use parking_lot::{Condvar, Mutex, RwLock};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Most mounted file systems below one origin; a node on any further one has a place.
const MOUNTS_MAX: usize = u16::MAX as usize;
/// An object is closed after this long without use, at the latest after twice as long.
const IDLE: Duration = Duration::from_secs(1);

/// The mounted file systems, by index. `Place` is the node of a directory.
#[derive(Debug)]
pub(super) struct Mounts<Place> {
    shared: Arc<Shared<Place>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared<Place> {
    table: RwLock<Vec<Arc<Mounted<Place>>>>,
    closing: Mutex<Closing>,
    wake: Condvar,
    idle: Duration,
}

#[derive(Debug, Default)]
struct Closing {
    /// Something may be open.
    due: bool,
    stopped: bool,
}

/// A mounted file system.
#[derive(Debug)]
struct Mounted<Place> {
    id: Mutex<MountId>,
    /// The number of its device.
    device: Option<u64>,
    /// Any object of it, opened to read. `None` while it is closed.
    fd: Mutex<Option<Arc<OwnedFd>>>,
    /// Where it was found; `None` for the root's mount.
    entrance: Option<Entrance<Place>>,
    /// It was used since the last check.
    used: AtomicBool,
}

/// How to reach a mount.
#[derive(Debug)]
pub(super) struct Entrance<Place> {
    pub(super) directory: Place,
    pub(super) name: Box<OsStr>,
    /// The object found there.
    pub(super) found: FileHandle,
}

impl<Place: Send + Sync + 'static> Mounts<Place> {
    pub(super) fn new() -> Self {
        Self::with_idle(IDLE)
    }

    /// Closes objects after this long without use.
    fn with_idle(idle: Duration) -> Self {
        let shared = Arc::new(Shared {
            table: RwLock::default(),
            closing: Mutex::default(),
            wake: Condvar::new(),
            idle,
        });
        Self { shared, thread: Mutex::default() }
    }

    /// The index of a known mount.
    pub(super) fn find(&self, id: MountId) -> Option<u16> {
        let table = self.shared.table.read();
        let position = table.iter().position(|mounted| *mounted.id.lock() == id)?;
        u16::try_from(position).ok()
    }

    /// Whether this is the mount with this index.
    pub(super) fn is(&self, index: u16, id: MountId) -> bool {
        let table = self.shared.table.read();
        table.get(usize::from(index)).is_some_and(|mounted| *mounted.id.lock() == id)
    }

    /// The device of the mount with this index.
    pub(super) fn device(&self, index: u16) -> Option<u64> {
        self.shared.table.read().get(usize::from(index))?.device
    }

    /// Adds a mount, of which `fd` is an open object; `None` if there are too many. The first is
    /// the root's.
    pub(super) fn add(
        &self,
        id: MountId,
        fd: OwnedFd,
        entrance: Option<Entrance<Place>>,
    ) -> Option<u16> {
        let closes = entrance.is_some();
        let mounted = Mounted {
            id: Mutex::new(id),
            device: rustix::fs::fstat(&fd).ok().map(|stat| stat.st_dev),
            fd: Mutex::new(Some(Arc::new(fd))),
            entrance,
            used: AtomicBool::new(true),
        };
        let mut table = self.shared.table.write();
        let index = match table.iter().position(|mounted| *mounted.id.lock() == id) {
            Some(index) => index,
            None if table.len() < MOUNTS_MAX => {
                table.push(Arc::new(mounted));
                table.len() - 1
            }
            None => return None,
        };
        drop(table);
        if closes {
            self.close_in_time();
        }
        u16::try_from(index).ok()
    }

    /// An open object of the mount with this index. If it was closed, `enter` reopens it: it
    /// returns the found object, its mount, and a descriptor opened to read.
    ///
    /// # Errors
    /// `ESTALE` if another mount or none is there; `EIO` for the mount of a root that has gone.
    pub(super) fn descriptor(
        &self,
        index: u16,
        enter: impl FnOnce(&Entrance<Place>) -> Result<(FileHandle, MountId, OwnedFd)>,
    ) -> Result<Arc<OwnedFd>> {
        let mounted = self.shared.table.read().get(usize::from(index)).cloned();
        let mounted = mounted.ok_or(Errno::STALE)?;
        // Checked first, so that a cache line that all threads read is written once a second.
        if !mounted.used.load(Ordering::Relaxed) {
            mounted.used.store(true, Ordering::Relaxed);
        }
        if let Some(fd) = mounted.fd.lock().clone() {
            return Ok(fd);
        }
        let entrance = mounted.entrance.as_ref().ok_or(Errno::IO)?;
        let (found, id, fd) = enter(entrance).map_err(|errno| match errno {
            Errno::NOENT | Errno::NOTDIR => Errno::STALE,
            errno => errno,
        })?;
        if found != entrance.found || id != *mounted.id.lock() {
            return Err(Errno::STALE);
        }
        let fd = Arc::new(fd);
        *mounted.fd.lock() = Some(fd.clone());
        self.close_in_time();
        Ok(fd)
    }

    /// The root has gone and was closed, or `root` replaces it. It is on the same file system, so
    /// handles mean the same objects as before.
    pub(super) fn root_replaced(&self, root: Option<(MountId, OwnedFd)>) {
        let Some(first) = self.shared.table.read().first().cloned() else { return };
        let replaced = match root {
            Some((id, fd)) => {
                *first.id.lock() = id;
                first.fd.lock().replace(Arc::new(fd))
            }
            None => first.fd.lock().take(),
        };
        drop(replaced);
    }

    fn close_in_time(&self) {
        let mut closing = self.shared.closing.lock();
        if closing.due {
            return;
        }
        closing.due = true;
        drop(closing);
        self.shared.wake.notify_one();
        let mut thread = self.thread.lock();
        if thread.is_some() {
            return;
        }
        let shared = self.shared.clone();
        let started = std::thread::Builder::new()
            .name("origin_mounts".into())
            .spawn(move || shared.close_idle());
        match started {
            Ok(started) => *thread = Some(started),
            Err(error) => {
                log::warn!("cannot start a thread; mounts below the source stay busy: {error}");
            }
        }
    }
}

impl<Place> Drop for Mounts<Place> {
    fn drop(&mut self) {
        self.shared.closing.lock().stopped = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.lock().take() {
            // It does not panic, and a panic would have been reported.
            let _ = thread.join();
        }
    }
}

impl<Place> Shared<Place> {
    fn close_idle(&self) {
        let mut closing = self.closing.lock();
        while !closing.stopped {
            if !closing.due {
                self.wake.wait(&mut closing);
                continue;
            }
            self.wake.wait_for(&mut closing, self.idle);
            if closing.stopped {
                return;
            }
            closing.due = false;
            drop(closing);
            let is_used = self.let_go();
            closing = self.closing.lock();
            closing.due |= is_used;
        }
    }

    /// Closes objects that were not used since the last check; returns whether any is still open.
    fn let_go(&self) -> bool {
        let mut is_used = false;
        let table = self.table.read().clone();
        for mounted in table.iter().filter(|mounted| mounted.entrance.is_some()) {
            if mounted.used.swap(false, Ordering::Relaxed) {
                is_used |= mounted.fd.lock().is_some();
            } else {
                let idle = mounted.fd.lock().take();
                drop(idle);
            }
        }
        is_used
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eventually::eventually;
    use rustix::fd::AsFd;

    fn open(path: &std::path::Path) -> (FileHandle, MountId, OwnedFd) {
        let fd: OwnedFd = std::fs::File::open(path).unwrap().into();
        let (handle, id) = FileHandle::of(fd.as_fd()).unwrap();
        (handle, id, fd)
    }

    #[test]
    fn an_idle_mount_is_closed_and_reopened_if_it_is_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let (here, there) = (directory.path(), directory.path().join("there"));
        std::fs::create_dir(&there).unwrap();
        if FileHandle::of(std::fs::File::open(here).unwrap().as_fd()).is_err() {
            crate::skipped::skipped(format_args!("no file handles on {}", here.display()));
            return;
        }
        let known = |idle| {
            let mounts = Mounts::<()>::with_idle(idle);
            let (found, id, fd) = open(here);
            let entrance = Entrance { directory: (), name: OsStr::new("m").into(), found };
            let index = mounts.add(id, fd, Some(entrance)).unwrap();
            assert_eq!(mounts.find(id), Some(index));
            (mounts, index)
        };
        let is_open = |mounts: &Mounts<()>| mounts.shared.table.read()[0].fd.lock().is_some();
        // This test closes objects only by its own calls, because the thread would wait for longer.
        let (mounts, index) = known(Duration::from_secs(3600));
        mounts.descriptor(index, |_| panic!("it is open")).unwrap();
        assert!(mounts.shared.let_go() && is_open(&mounts), "it was used");
        assert!(!mounts.shared.let_go() && !is_open(&mounts));
        assert_eq!(mounts.descriptor(index, |_| Ok(open(&there))).unwrap_err(), Errno::STALE);
        assert_eq!(mounts.descriptor(index, |_| Err(Errno::NOENT)).unwrap_err(), Errno::STALE);
        mounts.descriptor(index, |_| Ok(open(here))).unwrap();
        assert!(is_open(&mounts));
        // The thread does so by itself in time, also a second time.
        let (mounts, index) = known(Duration::ZERO);
        let is_closed = || !is_open(&mounts) && !mounts.shared.closing.lock().due;
        eventually("an idle mount is let go of", is_closed);
        mounts.descriptor(index, |_| Ok(open(here))).unwrap();
        eventually("an idle mount is let go of again", is_closed);
    }

    #[test]
    fn the_root_is_never_idle() {
        let mounts = Mounts::<()>::new();
        let (_, id, fd) = open(std::path::Path::new("/"));
        let index = mounts.add(id, fd, None).unwrap();
        assert!(!mounts.shared.let_go() && !mounts.shared.let_go());
        mounts.descriptor(index, |_| panic!("it is open")).unwrap();
        mounts.root_replaced(None);
        assert_eq!(mounts.descriptor(index, |_| panic!("no way")).unwrap_err(), Errno::IO);
    }
}
