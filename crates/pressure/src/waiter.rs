//! Waits for memory shortage by events alone, never by the clock.
//!
//! A thread blocks in poll(2), without a timeout, on the kernel's event descriptors and on one
//! eventfd that wakes or stops it. An idle system raises no event, so an idle waiter does not run;
//! [`Waiter::wakeups`] counts every return of poll to prove it. If no source has events, only the
//! eventfd is left, and the caller must wake the thread when it consumes memory.
//!
//! The kinds of kernel events:
//! - A PSI trigger ([`crate::psi`]) raises `POLLPRI` at a stall. It raises `POLLERR` once its
//!   cgroup is gone or PSI is switched off, and is dropped then.
//! - `memory.events.local` of cgroup v2 (Linux 5.2; else `memory.events`) raises `POLLPRI |
//!   POLLERR` since the last read of the descriptor, so it is read on every event. The event counts
//!   if `high`, `max` or `oom` has grown. It is watched in every cgroup up the hierarchy, because
//!   each may hold the limit that binds. `.local` leaves out the cgroups below, which may belong to
//!   other programs.
//! - `memory.pressure_level` of cgroup v1 at level `medium`, through `cgroup.event_control` and an
//!   eventfd, means that reclaim finds little. (`low` is any reclaim, also of clean page cache.)
//!   The innermost cgroup with a listener receives an event. So an event of the process's own
//!   cgroup differs from those of the cgroups above it.
//! - Thresholds of v1's `memory.usage_in_bytes`, registered the same way, lie below the limit by
//!   the caller's headrooms. They matter if a group holds hardly any page cache. A growing
//!   neighbour then meets the limit, and reclaim finds nothing. The neighbour is killed before any
//!   level is reported. v2 has no such thresholds; a `memory.high` below `memory.max` gives the
//!   time there.
//!
//! Order: a [`Waker`] sets its flag before it writes the eventfd, and the waiter reads the eventfd
//! before the flag, so no wake is lost. Several wakes before a wait are one wake.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::cgroup::Version;
use crate::level::Level;
use crate::psi;
use crate::source_status::SourceStatus;
use crate::stat_file::{StatFile, keyed};

/// The events that ended a wait; several can be true at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Events {
    /// [`Waker::stop`] was called, now or ever: the thread should end.
    pub stopped: bool,
    /// [`Waker::wake`] was called.
    pub woken: bool,
    /// Tasks stall for lack of memory (PSI), or v1 reclaim finds little.
    pub pressure: bool,
    /// The kernel reclaims memory from this process's own v1 cgroup and finds little. If usage is
    /// not near the limit, an administrator is lowering the limit or emptying the cgroup.
    pub squeezed: bool,
    /// A cgroup has reached its `memory.high` or `memory.max`.
    pub limit: bool,
    /// The usage of a v1 cgroup has crossed one of the thresholds, upwards or downwards.
    pub threshold: bool,
    /// The timeout has passed without another event.
    pub timed_out: bool,
}

impl Events {
    fn any(self) -> bool {
        self != Self::default()
    }
}

#[derive(Debug)]
struct Shared {
    wake: OwnedFd,
    stop: AtomicBool,
    wakeups: AtomicU64,
}

/// Wakes or stops a [`Waiter`] from any thread.
#[derive(Debug, Clone)]
pub struct Waker {
    shared: Arc<Shared>,
}

impl Waker {
    /// Ends the present wait, or the next one if none is in progress.
    pub fn wake(&self) {
        // The only possible failure is EAGAIN at a count of 2⁶⁴ − 2: the descriptor is readable
        // then.
        let _ = rustix::io::write(&self.shared.wake, &1_u64.to_ne_bytes());
    }

    /// Ends the present wait and all later ones with [`Events::stopped`].
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Release);
        self.wake();
    }

    /// How often the waiter has returned from poll(2).
    pub fn wakeups(&self) -> u64 {
        self.shared.wakeups.load(Ordering::Relaxed)
    }
}

/// A descriptor on which the kernel raises events.
#[derive(Debug)]
enum Watch {
    /// An armed PSI trigger.
    Trigger(File),
    /// A v2 events file, and the sum of its relevant counters at the last read.
    LimitEvents(StatFile, u64),
    /// An eventfd registered with v1's pressure levels, and whether it is of the process's own
    /// cgroup.
    PressureLevel(OwnedFd, bool),
    /// An eventfd registered with a threshold of v1's usage.
    Threshold(OwnedFd),
}

impl Watch {
    fn poll_fd(&self) -> PollFd<'_> {
        match self {
            Self::Trigger(file) => PollFd::new(file, PollFlags::PRI),
            Self::LimitEvents(file, _) => PollFd::new(file, PollFlags::PRI),
            Self::PressureLevel(fd, _) | Self::Threshold(fd) => PollFd::new(fd, PollFlags::IN),
        }
    }

    /// Processes the result of poll; false if the source is gone.
    fn take(&mut self, reported: PollFlags, events: &mut Events) -> bool {
        if reported.is_empty() {
            return true;
        }
        match self {
            Self::Trigger(_) if reported.intersects(PollFlags::ERR | PollFlags::HUP) => false,
            Self::Trigger(_) => {
                events.pressure = true;
                true
            }
            Self::LimitEvents(file, last) => match file.with_text(limit_count) {
                Ok(count) => {
                    events.limit |= count > *last;
                    *last = count;
                    true
                }
                Err(_) => false,
            },
            Self::PressureLevel(fd, own) => {
                events.pressure = true;
                events.squeezed |= *own;
                drain(fd)
            }
            Self::Threshold(fd) => {
                events.threshold = true;
                drain(fd)
            }
        }
    }
}

/// Waits for memory pressure. Belongs to one thread; [`Waker`]s belong to all.
#[derive(Debug)]
pub struct Waiter {
    shared: Arc<Shared>,
    watches: Vec<Watch>,
    notes: Vec<SourceStatus>,
}

impl Waiter {
    pub(crate) fn new(
        psi_paths: &[PathBuf],
        levels: &[Level],
        headrooms_bytes: &[u64],
    ) -> io::Result<Self> {
        let shared = Shared {
            wake: nonblocking_eventfd()?,
            stop: AtomicBool::new(false),
            wakeups: AtomicU64::new(0),
        };
        let mut waiter = Self { shared: Arc::new(shared), watches: Vec::new(), notes: Vec::new() };
        for path in psi_paths {
            match psi::arm(path) {
                Ok((file, meaning)) => {
                    waiter.add(Watch::Trigger(file), "PSI trigger", path, meaning)
                }
                Err(error) => waiter.notes.push(SourceStatus::absent("PSI trigger", path, error)),
            }
        }
        let own = levels.iter().position(|level| level.version == Version::V1);
        for (index, level) in levels.iter().enumerate() {
            match level.version {
                Version::V2 => waiter.watch_limit_events(&level.directory),
                Version::V1 => {
                    waiter.watch_pressure_level(&level.directory, own == Some(index));
                    if let Some(limit_bytes) = level.limit_bytes() {
                        waiter.watch_thresholds(&level.directory, limit_bytes, headrooms_bytes);
                    }
                }
            }
        }
        Ok(waiter)
    }

    fn add(&mut self, watch: Watch, source: &'static str, path: &Path, meaning: &str) {
        self.notes.push(SourceStatus::used(source, path, meaning.to_owned()));
        self.watches.push(watch);
    }

    fn watch_limit_events(&mut self, directory: &Path) {
        let source = "cgroup v2 limit events";
        let local = directory.join("memory.events.local");
        let path = if local.exists() { local } else { directory.join("memory.events") };
        let opened = StatFile::open(&path).and_then(|file| {
            let count = file.with_text(limit_count)?;
            Ok(Watch::LimitEvents(file, count))
        });
        match opened {
            Ok(watch) => self.add(watch, source, &path, "woken at memory.high and memory.max"),
            Err(error) => self.notes.push(SourceStatus::absent(source, path, error)),
        }
    }

    fn watch_pressure_level(&mut self, directory: &Path, own: bool) {
        let source = "cgroup v1 pressure level";
        let path = directory.join("memory.pressure_level");
        match register(directory, &path, "medium") {
            Ok(fd) => {
                self.add(Watch::PressureLevel(fd, own), source, &path, "woken at level medium");
            }
            Err(error) => self.notes.push(SourceStatus::absent(source, path, error)),
        }
    }

    fn watch_thresholds(&mut self, directory: &Path, limit_bytes: u64, headrooms_bytes: &[u64]) {
        let source = "cgroup v1 usage threshold";
        let path = directory.join("memory.usage_in_bytes");
        for headroom_bytes in headrooms_bytes {
            let Some(threshold_bytes) = limit_bytes.checked_sub(*headroom_bytes) else { continue };
            match register(directory, &path, &threshold_bytes.to_string()) {
                Ok(fd) => {
                    let meaning = format!("woken at {threshold_bytes} bytes");
                    self.add(Watch::Threshold(fd), source, &path, &meaning);
                }
                Err(error) => self.notes.push(SourceStatus::absent(source, &path, error)),
            }
        }
    }

    /// A handle to wake or stop this waiter with.
    pub fn waker(&self) -> Waker {
        Waker { shared: Arc::clone(&self.shared) }
    }

    /// How often [`Waiter::wait`] has returned from poll(2), for any reason.
    pub fn wakeups(&self) -> u64 {
        self.shared.wakeups.load(Ordering::Relaxed)
    }

    /// Whether any source has events. If not, only [`Waker`]s end a wait, and the caller must call
    /// [`crate::Sources::read`] by itself.
    pub fn has_events(&self) -> bool {
        !self.watches.is_empty()
    }

    /// The events that the waiter uses and those that are not available, for people.
    pub fn describe(&self) -> Vec<SourceStatus> {
        self.notes.clone()
    }

    /// Waits until an event; forever without a `timeout`.
    ///
    /// # Errors
    /// poll(2) fails for lack of kernel memory, never for a signal.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<Events> {
        // A timeout beyond the clock's range means no timeout.
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut events = Events::default();
        loop {
            if self.shared.stop.load(Ordering::Acquire) {
                events.stopped = true;
                return Ok(events);
            }
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            let reported = self.poll_once(left)?;
            self.take_reported(&reported, &mut events);
            if self.shared.stop.load(Ordering::Acquire) {
                events.stopped = true;
            }
            if events.any() {
                return Ok(events);
            }
            if deadline.is_some_and(|at| at <= Instant::now()) {
                events.timed_out = true;
                return Ok(events);
            }
        }
    }

    /// The result of poll for the wake descriptor and then for each watch; empty after a signal.
    fn poll_once(&self, left: Option<Duration>) -> io::Result<Vec<PollFlags>> {
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let mut fds = Vec::with_capacity(1 + self.watches.len());
        fds.push(PollFd::new(&self.shared.wake, PollFlags::IN));
        fds.extend(self.watches.iter().map(Watch::poll_fd));
        let polled = poll(&mut fds, left.as_ref());
        self.shared.wakeups.fetch_add(1, Ordering::Relaxed);
        match polled {
            Ok(_) => Ok(fds.iter().map(PollFd::revents).collect()),
            Err(rustix::io::Errno::INTR) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    fn take_reported(&mut self, reported: &[PollFlags], events: &mut Events) {
        let Some((&wake, reported)) = reported.split_first() else {
            return;
        };
        if !wake.is_empty() {
            drain(&self.shared.wake);
            events.woken = true;
        }
        let mut reported = reported.iter();
        self.watches.retain_mut(|watch| {
            let flags = reported.next().copied().unwrap_or(PollFlags::empty());
            watch.take(flags, events)
        });
    }
}

/// How often the cgroup met its limits: the counters that grow when memory is short here.
fn limit_count(text: &str) -> u64 {
    ["high", "max", "oom"].iter().filter_map(|key| keyed(text, key)).fold(0, u64::saturating_add)
}

fn nonblocking_eventfd() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

/// Registers an eventfd with an event file of v1, by
/// `Documentation/admin-guide/cgroup-v1/memory.rst` §9 and §11. The numbers of both descriptors and
/// the level or threshold are written to `cgroup.event_control`. The registration lives as long as
/// the eventfd.
fn register(directory: &Path, path: &Path, argument: &str) -> io::Result<OwnedFd> {
    let notify = nonblocking_eventfd()?;
    let file = File::open(path)?;
    let mut control = File::options().write(true).open(directory.join("cgroup.event_control"))?;
    let request = format!("{} {} {argument}", notify.as_raw_fd(), file.as_fd().as_raw_fd());
    control.write_all(request.as_bytes())?;
    Ok(notify)
}

/// Resets an eventfd to zero; false if it cannot be read any more.
fn drain(fd: &OwnedFd) -> bool {
    match rustix::io::read(fd, &mut [0; 8]) {
        Ok(_) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => true,
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_event_counts_if_a_relevant_counter_grew() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memory.events.local");
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        write("low 0\nhigh 3\nmax 1\noom 0\noom_kill 0\n");
        let mut watch = Watch::LimitEvents(StatFile::open(&path).unwrap(), 4);
        let mut take = |flags| {
            let mut events = Events::default();
            assert!(watch.take(flags, &mut events));
            events
        };
        assert_eq!(take(PollFlags::empty()), Events::default());
        write("low 9\nhigh 3\nmax 1\noom 0\noom_kill 0\n");
        let changed = PollFlags::PRI | PollFlags::ERR;
        assert_eq!(take(changed), Events::default(), "`low` is protection, not shortage");
        write("low 9\nhigh 4\nmax 1\noom 0\noom_kill 0\n");
        assert!(take(changed).limit);
        assert_eq!(take(changed), Events::default(), "reported once");
    }

    #[test]
    fn a_trigger_that_is_gone_is_dropped_without_an_event() {
        let mut watch = Watch::Trigger(tempfile::tempfile().unwrap());
        let mut events = Events::default();
        assert!(watch.take(PollFlags::PRI, &mut events));
        assert!(events.pressure);
        let mut events = Events::default();
        assert!(!watch.take(PollFlags::PRI | PollFlags::ERR, &mut events));
        assert_eq!(events, Events::default());
    }

    #[test]
    fn a_pressure_level_is_reset_after_its_event() {
        let fd = nonblocking_eventfd().unwrap();
        rustix::io::write(&fd, &2_u64.to_ne_bytes()).unwrap();
        let mut watch = Watch::PressureLevel(fd, true);
        let mut events = Events::default();
        assert!(watch.take(PollFlags::IN, &mut events));
        assert!(events.pressure && events.squeezed);
        let Watch::PressureLevel(fd, _) = &watch else { unreachable!() };
        assert_eq!(rustix::io::read(fd, &mut [0; 8]), Err(rustix::io::Errno::AGAIN));
    }
}
