//! Descriptors of recently used objects, as many as the process can spare.
//!
//! An object without a handle is opened by name, and its descriptor is kept for the next operation.
//! The descriptors are in a ring of a fixed size. A clock hand evicts those that were not used
//! since its last pass (CLOCK). Objects do not own descriptors; each has a weak pointer to its own.
//! So the ring, or an open file of a program, lends its descriptor to all other users of the
//! object.
//!
//! # The limit
//!
//! The ring takes at most half of the files that the process may open. A new descriptor never
//! waits: it evicts an old one. If programs hold so many files open that the process has no
//! descriptor left, an operation takes one from the ring and tries again
//! ([`Descriptors::with_room`]). It fails only if the ring is empty.
//!
//! The lock guards the ring; descriptors are closed after it is released.

use parking_lot::Mutex;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Most descriptors kept: each one pins an inode in the kernel's memory.
const KEPT_MAX: usize = 16 * 1024;
/// Fewest.
const KEPT_MIN: usize = 8;
/// Share of the files the process may have open.
const SHARE: u64 = 2;
/// Closed at a time when the process has no descriptor left, at least.
const ROOM: usize = 16;
const NOWHERE: u32 = u32::MAX;

/// An open object.
#[derive(Debug)]
pub(super) struct Descriptor {
    fd: OwnedFd,
    /// It was used since the last pass of the hand.
    used: AtomicBool,
    /// Its place in the ring.
    place: AtomicU32,
}

impl Descriptor {
    /// A descriptor that the ring does not own.
    pub(super) fn new(fd: OwnedFd) -> Arc<Self> {
        Arc::new(Self::from(fd))
    }

    /// Closes it.
    ///
    /// # Errors
    /// Those of earlier writes, as `close(2)` reports them. It is closed in any case.
    pub(super) fn close(self) -> Result<(), Errno> {
        nix::unistd::close(self.fd).map_err(|errno| Errno::from_raw_os_error(errno as i32))
    }

    /// Marks it as used.
    pub(super) fn touch(&self) {
        // Checked first, so that a cache line that all threads read is written once per round of
        // the hand.
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }
}

impl From<OwnedFd> for Descriptor {
    fn from(fd: OwnedFd) -> Self {
        let (used, place) = (AtomicBool::new(false), AtomicU32::new(NOWHERE));
        Self { fd, used, place }
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The ring.
#[derive(Debug)]
pub(super) struct Descriptors {
    limit: usize,
    ring: Mutex<Ring>,
}

#[derive(Debug, Default)]
struct Ring {
    places: Vec<Option<Arc<Descriptor>>>,
    free: Vec<u32>,
    hand: usize,
}

impl Default for Descriptors {
    /// As many as this process can spare.
    fn default() -> Self {
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Self::new(usize::try_from(files / SHARE).unwrap_or(usize::MAX))
    }
}

impl Descriptors {
    /// At most `limit` descriptors.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit: limit.clamp(KEPT_MIN, KEPT_MAX), ring: Mutex::default() }
    }

    /// Most descriptors that are kept.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// How many are kept.
    pub(super) fn kept(&self) -> usize {
        let ring = self.ring.lock();
        ring.places.len() - ring.free.len()
    }

    /// Keeps a descriptor until the ring needs its place.
    pub(super) fn keep(&self, fd: OwnedFd) -> Arc<Descriptor> {
        let descriptor = Descriptor::new(fd);
        let mut ring = self.ring.lock();
        let pushed_out = ring.insert(descriptor.clone(), self.limit);
        drop(ring);
        drop(pushed_out);
        descriptor
    }

    /// Drops a descriptor whose object is not known any more.
    pub(super) fn release(&self, descriptor: &Arc<Descriptor>) {
        let place = descriptor.place.load(Ordering::Relaxed);
        let mut ring = self.ring.lock();
        let kept = ring
            .places
            .get_mut(place as usize)
            .and_then(|kept| kept.take_if(|kept| Arc::ptr_eq(kept, descriptor)));
        if kept.is_some() {
            ring.free.push(place);
        }
        drop(ring);
        drop(kept);
    }

    /// Runs a function that opens a file. If the process or the system has no descriptor left, it
    /// closes some kept ones and runs the function again.
    ///
    /// # Errors
    /// Those of `open`; `EMFILE` and `ENFILE` only when nothing is kept.
    pub(super) fn with_room<T>(
        &self,
        mut open: impl FnMut() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        loop {
            match open() {
                Err(errno @ (Errno::MFILE | Errno::NFILE)) => {
                    if !self.make_room() {
                        return Err(errno);
                    }
                }
                other => return other,
            }
        }
    }

    /// Closes all that are kept.
    pub(super) fn close_all(&self) {
        let mut ring = self.ring.lock();
        let closed = std::mem::take(&mut *ring);
        drop(ring);
        drop(closed);
    }

    /// Closes some; false if the ring was empty.
    fn make_room(&self) -> bool {
        let mut ring = self.ring.lock();
        let kept = ring.places.len() - ring.free.len();
        let wanted = ROOM.max(kept / 8).min(kept);
        let closed: Vec<_> = (0..wanted).map(|_| ring.take_unused()).collect();
        drop(ring);
        !closed.is_empty()
    }
}

impl Ring {
    /// Adds a descriptor and returns the one that was evicted for it.
    fn insert(&mut self, new: Arc<Descriptor>, limit: usize) -> Option<Arc<Descriptor>> {
        let mut pushed_out = None;
        let place = match self.free.pop() {
            Some(place) => place as usize,
            None if self.places.len() < limit => {
                self.places.push(None);
                self.places.len() - 1
            }
            None => {
                pushed_out = self.take_unused();
                self.free.pop().expect("the place of the evicted descriptor") as usize
            }
        };
        new.place.store(place as u32, Ordering::Relaxed);
        self.places[place] = Some(new);
        pushed_out
    }

    /// Takes a descriptor that was not used since the last pass of the hand, and frees its place.
    /// The ring must not be empty.
    fn take_unused(&mut self) -> Option<Arc<Descriptor>> {
        // At most two rounds: the first clears the marks.
        for _ in 0..2 * self.places.len() + 1 {
            let place = self.hand % self.places.len();
            self.hand = place + 1;
            let marked = |kept: &Arc<Descriptor>| kept.used.swap(false, Ordering::Relaxed);
            if self.places[place].as_ref().is_some_and(|kept| !marked(kept)) {
                self.free.push(place as u32);
                return self.places[place].take();
            }
        }
        // Uses mark entries faster than the hand moves.
        let place = self.places.iter().position(Option::is_some)?;
        self.free.push(place as u32);
        self.places[place].take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open() -> OwnedFd {
        std::fs::File::open("/").unwrap().into()
    }

    #[test]
    fn used_descriptors_stay_and_the_limit_holds() {
        let descriptors = Descriptors::new(10);
        let used = Arc::downgrade(&descriptors.keep(open()));
        let unused = Arc::downgrade(&descriptors.keep(open()));
        for _ in 0..100 {
            used.upgrade().expect("in use all the time").touch();
            descriptors.keep(open());
            let kept = descriptors.ring.lock().places.iter().flatten().count();
            assert!(kept <= 10 && descriptors.kept() == kept);
        }
        assert!(unused.upgrade().is_none());
    }

    #[test]
    fn a_released_descriptor_makes_room_for_another() {
        let descriptors = Descriptors::new(8);
        let kept: Vec<_> = (0..8).map(|_| Arc::downgrade(&descriptors.keep(open()))).collect();
        descriptors.release(&kept[3].upgrade().unwrap());
        assert!(kept[3].upgrade().is_none() && descriptors.kept() == 7);
        descriptors.keep(open());
        let left = kept.iter().filter(|kept| kept.upgrade().is_some()).count();
        assert_eq!(left, 7, "nothing was evicted");
        // A descriptor that the ring never had, or no longer has, has no place in it.
        let other = Descriptor::new(open());
        descriptors.release(&other);
        assert_eq!(kept.iter().filter(|kept| kept.upgrade().is_some()).count(), 7);
    }

    #[test]
    fn an_open_without_a_free_descriptor_empties_the_ring() {
        let descriptors = Descriptors::new(100);
        let kept: Vec<_> = (0..40).map(|_| Arc::downgrade(&descriptors.keep(open()))).collect();
        let left = || kept.iter().filter(|kept| kept.upgrade().is_some()).count();
        let mut tries = 0;
        let result = descriptors.with_room(|| {
            tries += 1;
            if left() > 10 { Err(Errno::MFILE) } else { Ok(tries) }
        });
        assert_eq!(result, Ok(3), "sixteen at a time");
        assert_eq!(descriptors.with_room(|| Err::<(), _>(Errno::NFILE)), Err(Errno::NFILE));
        assert_eq!((left(), descriptors.kept()), (0, 0));
        let mut tries = 0;
        let result = descriptors.with_room(|| {
            tries += 1;
            Err::<(), _>(Errno::ACCESS)
        });
        assert_eq!((result, tries), (Err(Errno::ACCESS), 1), "other errors are answers");
    }
}
