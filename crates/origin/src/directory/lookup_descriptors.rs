//! Descriptors of objects that were looked up a moment ago.
//!
//! Between lookup and open, an object may lose its name: another program saves the file by a rename
//! over it. A file handle of an object without a name cannot be opened any more. On an ordinary
//! file system, however, a program that opens a path always gets one file or the other. So the
//! descriptor of a lookup is kept for a second, and used when the handle is stale.
//!
//! On NFS and similar file systems an open file stays in its directory when it is removed
//! ([`super::file_systems`]). There a kept descriptor would leave a file that no program has open,
//! for a second. So such a descriptor, open for reading, is kept only in one case. A program met a
//! removed file, and is about to open the file again by the same path. The descriptor serves only
//! that thread, and only its next open of that file.
//!
//! The last few directories of lookups are kept as well. A program that walks a tree makes most of
//! its requests in the same directory. Opening it again for each request costs more than the rest
//! ([`super::node::Nodes::within`]).
//!
//! The time is short because an open descriptor keeps the blocks of a deleted file, and prevents an
//! unmount of a file system below. A thread closes the descriptors. It sleeps until the oldest is
//! due, and without a timeout if none is kept. It also closes those that are nearly due. So a
//! thousand lookups a second do not cause a thousand wake-ups. The lock guards the queues;
//! descriptors are closed after it is released.

use super::descriptor_cache::Descriptor;
use super::handle::FileHandle;
use super::placed_object::ObjectIdentity;
use crate::impersonation::RequesterThread;
use parking_lot::{Condvar, Mutex};
use rustix::fd::OwnedFd;
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a descriptor is kept by default.
pub(super) const TIME: Duration = Duration::from_secs(1);
/// Descriptors that are due within this time after the oldest are closed with it.
const ROUND: Duration = Duration::from_millis(125);
/// The most that are kept.
const DESCRIPTORS_MAX: usize = 256;
/// The most directories that are kept: each use searches all of them.
const DIRECTORIES_MAX: usize = 16;

/// The descriptors of recent lookups.
#[derive(Debug)]
pub(super) struct LookupDescriptors {
    limit: usize,
    time: Duration,
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// One of each [`Queue`], the oldest first.
    queues: [VecDeque<Opened>; 3],
    stopped: bool,
}

/// The reason to keep a descriptor.
#[derive(Clone, Copy)]
enum Queue {
    Lookups,
    Readers,
    Directories,
}

#[derive(Debug)]
struct Opened {
    until: Instant,
    key: Key,
    fd: Arc<Descriptor>,
    /// The thread and user that it was opened for; `None` if it is an `O_PATH` descriptor.
    reader: Option<RequesterThread>,
}

/// The key of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Handle(u16, FileHandle),
    Object(ObjectIdentity),
}

impl LookupDescriptors {
    /// For a process that can spare this many descriptors; each is kept for `time`.
    pub(super) fn new(spare: usize, time: Duration) -> Self {
        let limit = spare.clamp(1, DESCRIPTORS_MAX);
        Self { limit, time, shared: Arc::default(), thread: Mutex::default() }
    }

    /// Sets the time for later descriptors.
    pub(super) fn set_time(&mut self, time: Duration) {
        self.time = time;
    }

    /// How many are kept.
    pub(super) fn kept(&self) -> usize {
        self.shared.state.lock().queues.iter().map(VecDeque::len).sum()
    }

    /// Closes them all; false if none was kept.
    pub(super) fn clear(&self) -> bool {
        let queues = std::mem::take(&mut self.shared.state.lock().queues);
        queues.iter().any(|queue| !queue.is_empty())
    }

    /// Keeps the descriptor of a lookup.
    pub(super) fn keep(&self, key: Key, fd: Arc<Descriptor>) {
        self.add(Queue::Lookups, (key, fd, None), self.limit);
    }

    /// Keeps a file that was opened for reading.
    pub(super) fn keep_reader(&self, key: Key, fd: OwnedFd, requester_thread: RequesterThread) {
        self.add(Queue::Readers, (key, Descriptor::new(fd), Some(requester_thread)), self.limit);
    }

    /// Keeps the descriptor of a directory.
    pub(super) fn keep_directory(&self, key: Key, fd: Arc<Descriptor>) {
        self.add(Queue::Directories, (key, fd, None), self.limit.min(DIRECTORIES_MAX));
    }

    fn add(
        &self,
        queue: Queue,
        (key, fd, reader): (Key, Arc<Descriptor>, Option<RequesterThread>),
        limit: usize,
    ) {
        let opened = Opened { until: Instant::now() + self.time, key, fd, reader };
        let mut state = self.shared.state.lock();
        let queue = &mut state.queues[queue as usize];
        // The earlier descriptors in it must be closed first.
        let was_empty = queue.is_empty();
        let oldest = if queue.len() >= limit { queue.pop_front() } else { None };
        queue.push_back(opened);
        drop(state);
        drop(oldest);
        if was_empty {
            self.wake_or_start();
        }
    }

    fn wake_or_start(&self) {
        let mut thread = self.thread.lock();
        if thread.is_some() {
            drop(thread);
            self.shared.wake.notify_one();
            return;
        }
        let shared = self.shared.clone();
        let started = std::thread::Builder::new()
            .name("origin_recent".into())
            .spawn(move || shared.close_in_time());
        match started {
            Ok(started) => *thread = Some(started),
            // Later lookups evict the descriptors.
            Err(error) => log::warn!("cannot start a thread to close descriptors: {error}"),
        }
    }

    /// The descriptor of this object, if it was looked up recently.
    pub(super) fn find(&self, key: &Key) -> Option<Arc<Descriptor>> {
        self.last(Queue::Lookups, |opened| opened.key == *key)
    }

    /// The file that was opened for this reader; it is returned only once.
    pub(super) fn take_reader(
        &self,
        key: &Key,
        requester_thread: RequesterThread,
    ) -> Option<Arc<Descriptor>> {
        let readers = &mut self.shared.state.lock().queues[Queue::Readers as usize];
        let is_it = |opened: &Opened| opened.reader == Some(requester_thread) && opened.key == *key;
        let place = readers.iter().rposition(is_it)?;
        readers.remove(place).map(|opened| opened.fd)
    }

    /// The descriptor of this directory, if a name was looked up in it recently.
    pub(super) fn directory(&self, mount: u16, handle: &FileHandle) -> Option<Arc<Descriptor>> {
        self.last(Queue::Directories, |opened| {
            matches!(&opened.key, Key::Handle(on, known) if *on == mount && known == handle)
        })
    }

    fn last(&self, queue: Queue, is_it: impl Fn(&Opened) -> bool) -> Option<Arc<Descriptor>> {
        let state = self.shared.state.lock();
        let mut kept = state.queues[queue as usize].iter().rev();
        kept.find(|opened| is_it(opened)).map(|opened| opened.fd.clone())
    }
}

impl Drop for LookupDescriptors {
    fn drop(&mut self) {
        self.shared.state.lock().stopped = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.lock().take() {
            // It does not panic, and a panic would have been reported.
            let _ = thread.join();
        }
    }
}

impl State {
    /// When the oldest is due.
    fn until(&self) -> Option<Instant> {
        self.queues.iter().filter_map(|queue| queue.front()).map(|oldest| oldest.until).min()
    }
}

impl Shared {
    fn close_in_time(&self) {
        let mut state = self.state.lock();
        while !state.stopped {
            let Some(until) = state.until() else {
                self.wake.wait(&mut state);
                continue;
            };
            let now = Instant::now();
            let mut closed = Vec::new();
            for queue in &mut state.queues {
                let due = due(queue.iter().map(|opened| opened.until), now);
                closed.extend(queue.drain(..due));
            }
            if closed.is_empty() {
                self.wake.wait_until(&mut state, until);
                continue;
            }
            drop(state);
            drop(closed);
            state = self.state.lock();
        }
    }
}

/// How many of them, oldest first, are due now.
fn due(until: impl Iterator<Item = Instant>, now: Instant) -> usize {
    let mut until = until.peekable();
    match until.peek() {
        Some(oldest) if *oldest <= now => until.take_while(|until| *until <= now + ROUND).count(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eventually::eventually;
    use crate::impersonation;
    use rustix::fd::AsFd;

    #[test]
    fn descriptors_that_are_nearly_as_old_are_closed_with_the_oldest() {
        let now = Instant::now();
        let at = |ms: u64| now + Duration::from_millis(ms);
        let due = |times: &[u64], now| due(times.iter().map(|ms| at(*ms)), now);
        assert_eq!(due(&[], now), 0);
        assert_eq!(due(&[1, 2], now), 0, "the oldest has time left");
        assert_eq!(due(&[0, 1, 100, 125, 126, 900], now), 4);
        // With a lookup each millisecond, one wake-up serves all of a round.
        let times: Vec<u64> = (0..1000).collect();
        let (mut closed, mut wakes) = (0, 0);
        while closed < times.len() {
            closed += due(&times[closed..], at(times[closed]));
            wakes += 1;
        }
        assert_eq!(wakes, 8);
    }

    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_descriptor_is_found_by_its_handle_and_closed_in_time() {
        let directory = tempfile::tempdir().unwrap();
        // However long making the files takes, none expires.
        let mut recent = LookupDescriptors::new(usize::MAX, Duration::from_secs(3600));
        let create = |number: usize| {
            std::fs::File::create(directory.path().join(number.to_string())).unwrap()
        };
        let mut handles = Vec::new();
        for number in 0..DESCRIPTORS_MAX + 10 {
            let file = create(number);
            let Ok((handle, _)) = FileHandle::of(file.as_fd()) else {
                crate::skipped::skipped(format_args!(
                    "no file handles on {}",
                    directory.path().display()
                ));
                return;
            };
            let inode = file.metadata().unwrap().ino();
            recent.keep(Key::Handle(7, handle.clone()), Descriptor::new(file.into()));
            handles.push((handle, inode));
        }
        for (handle, _) in &handles[..10] {
            assert!(recent.find(&Key::Handle(7, handle.clone())).is_none(), "there is a limit");
        }
        for (handle, inode) in &handles[10..] {
            assert!(recent.find(&Key::Handle(8, handle.clone())).is_none(), "another mount");
            let found = recent.find(&Key::Handle(7, handle.clone())).unwrap();
            assert_eq!(rustix::fs::fstat(&*found).unwrap().st_ino, *inode);
        }
        let is_empty = |recent: &LookupDescriptors| recent.shared.state.lock().until().is_none();
        assert!(!is_empty(&recent) && recent.clear() && is_empty(&recent));
        recent.set_time(Duration::ZERO);
        let file = create(0);
        let (handle, _) = FileHandle::of(file.as_fd()).unwrap();
        recent.keep(Key::Handle(7, handle), Descriptor::new(file.into()));
        eventually("an expired descriptor is closed", || is_empty(&recent));
    }

    #[test]
    fn a_file_opened_for_a_reader_serves_only_that_reader_and_once() {
        let recent = LookupDescriptors::new(usize::MAX, Duration::from_secs(3600));
        let requester_thread = |user, thread| {
            let requester = crate::Requester { user, group: 1, thread, groups: |_| Vec::new() };
            crate::on_behalf_of(requester, impersonation::requester_thread).unwrap()
        };
        let key = |inode| Key::Object(ObjectIdentity { device: 1, inode, generation: 3 });
        let open = || OwnedFd::from(std::fs::File::open("/").unwrap());
        let gets = |inode, user, thread| {
            recent.take_reader(&key(inode), requester_thread(user, thread)).is_some()
        };
        recent.keep(key(2), Descriptor::new(open()));
        assert!(!gets(2, 5, 7), "it is an `O_PATH` descriptor");
        recent.keep_reader(key(2), open(), requester_thread(5, 7));
        assert!(!gets(3, 5, 7) && !gets(2, 6, 7) && !gets(2, 5, 8));
        assert!(gets(2, 5, 7) && !gets(2, 5, 7));
    }

    #[test]
    fn the_last_directories_are_kept_until_they_expire() {
        let directory = tempfile::tempdir().unwrap();
        let mut recent = LookupDescriptors::new(usize::MAX, Duration::from_secs(3600));
        let mut handles = Vec::new();
        for number in 0..DIRECTORIES_MAX + 1 {
            let path = directory.path().join(number.to_string());
            std::fs::create_dir(&path).unwrap();
            let fd = OwnedFd::from(std::fs::File::open(&path).unwrap());
            let Ok((handle, _)) = FileHandle::of(fd.as_fd()) else {
                crate::skipped::skipped(format_args!("no file handles on {}", path.display()));
                return;
            };
            recent.keep_directory(Key::Handle(7, handle.clone()), Descriptor::new(fd));
            handles.push(handle);
        }
        let found =
            |recent: &LookupDescriptors, number: usize| recent.directory(7, &handles[number]);
        assert!(found(&recent, 0).is_none(), "there is a limit");
        assert!((1..handles.len()).all(|number| found(&recent, number).is_some()));
        assert!(recent.directory(8, &handles[1]).is_none(), "another mount");
        assert!(recent.clear() && !recent.clear() && found(&recent, 2).is_none());
        // A lookup that is kept for long does not extend the time of a later directory.
        let open = |number: usize| {
            OwnedFd::from(std::fs::File::open(directory.path().join(number.to_string())).unwrap())
        };
        recent.keep(Key::Handle(7, handles[3].clone()), Descriptor::new(open(3)));
        recent.set_time(Duration::ZERO);
        recent.keep_directory(Key::Handle(7, handles[4].clone()), Descriptor::new(open(4)));
        eventually("an expired directory is closed", || found(&recent, 4).is_none());
        assert!(recent.find(&Key::Handle(7, handles[3].clone())).is_some());
    }
}
