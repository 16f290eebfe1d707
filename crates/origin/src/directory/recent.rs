//! Descriptors of objects that were looked up a moment ago.
//!
//! Between looking a name up and opening what it leads to, the object may lose that name: somebody
//! saves the file by renaming another over it. A file handle of an object without a name cannot be
//! opened any more, while a program that opens a path on an ordinary file system always gets one
//! file or the other. So the descriptor of a lookup is kept for a second, and found here when the
//! handle has gone stale.
//!
//! Not for longer, because an open descriptor keeps the blocks of a deleted file allocated. A
//! thread closes them; it sleeps until the oldest has had its time, and for as long as it takes
//! when there are none. With the oldest it closes those that are nearly as old, so that a thousand
//! lookups a second do not wake it a thousand times. The lock guards the queue; descriptors are
//! closed after it is released.

use super::handle::FileHandle;
use parking_lot::{Condvar, Mutex};
use rustix::fd::OwnedFd;
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a descriptor is kept, unless told otherwise.
pub(super) const TIME: Duration = Duration::from_secs(1);
/// By how much less those are kept that are closed together with an older one.
const ROUND: Duration = Duration::from_millis(125);
/// How many are kept.
const DESCRIPTORS_MAX: usize = 256;

/// The descriptors of the last lookups.
#[derive(Debug)]
pub(super) struct Recent {
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
    queue: VecDeque<Lookup>,
    stopped: bool,
}

#[derive(Debug)]
struct Lookup {
    until: Instant,
    mount: u16,
    handle: FileHandle,
    fd: OwnedFd,
}

impl Recent {
    /// Of a process that can spare so many descriptors; each is kept for so long.
    pub(super) fn new(spare: usize, time: Duration) -> Self {
        let limit = spare.clamp(1, DESCRIPTORS_MAX);
        Self { limit, time, shared: Arc::default(), thread: Mutex::default() }
    }

    /// Keeps those to come for another time.
    pub(super) fn set_time(&mut self, time: Duration) {
        self.time = time;
    }

    /// Closes them all; false if there are none.
    pub(super) fn clear(&self) -> bool {
        let lookups = std::mem::take(&mut self.shared.state.lock().queue);
        !lookups.is_empty()
    }

    /// Keeps the descriptor of a lookup.
    pub(super) fn keep(&self, mount: u16, handle: FileHandle, fd: OwnedFd) {
        let until = Instant::now() + self.time;
        let mut state = self.shared.state.lock();
        let was_empty = state.queue.is_empty();
        let is_full = state.queue.len() >= self.limit;
        let oldest = if is_full { state.queue.pop_front() } else { None };
        state.queue.push_back(Lookup { until, mount, handle, fd });
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
            // Later lookups push the descriptors out.
            Err(error) => log::warn!("cannot start a thread to close descriptors: {error}"),
        }
    }

    /// A copy of the descriptor of this object, if it was looked up lately.
    pub(super) fn find(&self, mount: u16, handle: &FileHandle) -> Option<OwnedFd> {
        let state = self.shared.state.lock();
        let same = |lookup: &&Lookup| lookup.mount == mount && lookup.handle == *handle;
        state.queue.iter().rev().find(same)?.fd.try_clone().ok()
    }
}

impl Drop for Recent {
    fn drop(&mut self) {
        self.shared.state.lock().stopped = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.lock().take() {
            // It has nothing to panic about, and if it did the panic was reported.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn close_in_time(&self) {
        let mut state = self.state.lock();
        while !state.stopped {
            let Some(until) = state.queue.front().map(|lookup| lookup.until) else {
                self.wake.wait(&mut state);
                continue;
            };
            let due = due(state.queue.iter().map(|lookup| lookup.until), Instant::now());
            if due == 0 {
                self.wake.wait_until(&mut state, until);
                continue;
            }
            let expired: Vec<Lookup> = state.queue.drain(..due).collect();
            drop(state);
            drop(expired);
            state = self.state.lock();
        }
    }
}

/// How many of them, oldest first, are to be closed now.
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
    use rustix::fd::AsFd;

    #[test]
    fn those_that_are_nearly_as_old_are_closed_with_the_oldest() {
        let now = Instant::now();
        let at = |ms: u64| now + Duration::from_millis(ms);
        let due = |times: &[u64], now| due(times.iter().map(|ms| at(*ms)), now);
        assert_eq!(due(&[], now), 0);
        assert_eq!(due(&[1, 2], now), 0, "the oldest has time left");
        assert_eq!(due(&[0, 1, 100, 125, 126, 900], now), 4);
        // A lookup each millisecond: not one wake-up each, but one for all of a round.
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
        // However long the files take to be made, none is closed for its age.
        let mut recent = Recent::new(usize::MAX, Duration::from_secs(3600));
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
            recent.keep(7, handle.clone(), file.into());
            handles.push((handle, inode));
        }
        for (handle, _) in &handles[..10] {
            assert!(recent.find(7, handle).is_none(), "there is a limit");
        }
        for (handle, inode) in &handles[10..] {
            assert!(recent.find(8, handle).is_none(), "another mount");
            let found = std::fs::File::from(recent.find(7, handle).unwrap());
            assert_eq!(found.metadata().unwrap().ino(), *inode);
        }
        let is_empty = |recent: &Recent| recent.shared.state.lock().queue.is_empty();
        assert!(!is_empty(&recent) && recent.clear() && is_empty(&recent));
        recent.set_time(Duration::ZERO);
        let file = create(0);
        let (handle, _) = FileHandle::of(file.as_fd()).unwrap();
        recent.keep(7, handle, file.into());
        eventually("a descriptor whose time has come is closed", || is_empty(&recent));
    }
}
