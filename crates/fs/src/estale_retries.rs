//! Threads whose request was refused with `ESTALE`, and that come back after another path walk.
//!
//! A request that is answered with `ESTALE` makes the kernel walk the path again and retry once.
//! Both happen within the system call of one thread (`do_filp_open` in `fs/namei.c`). The second
//! request has nothing left to check. It must not be refused again, because the program would get
//! the error. So refused threads are remembered until they are back.
//!
//! Not every thread comes back. Its path may be gone, or the walk may have found an object of
//! another type, which ended the system call. A later request of that thread is not a retry. So the
//! outcome of the walk is remembered as well.
//!
//! A walk ends with a lookup of the object that the retry then names. The name may differ from the
//! known one: a file may have several names, and its old name may lead to a directory by now. In
//! two cases a thread comes back without such a lookup. It walked no path (`open(".")`), or a path
//! of a file system on top of this one (overlayfs). It does not come back if the known name led
//! elsewhere. After a second refusal the program has got the error, and only a new lookup makes its
//! next request a retry.
//!
//! A killed thread is forgotten after a while.
//!
//! The origin itself may have answered `ESTALE`: the object is gone. A network file system caches
//! names, and would lead the walk to the same object again. So during a walk the server must
//! revalidate each name that such a thread looks up.
//!
//! The locks are leaves.

use crate::inode::Name;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::ffi::OsStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a thread may take to look the path up and come back.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the path walk of a thread may take after it met a removed object.
const WALK: Duration = Duration::from_secs(2);
/// The most threads that are expected back. Beyond it the late ones are dropped, or all if fewer
/// than half are late. The program of a dropped thread may get `ESTALE`.
const THREADS_MAX: usize = 1 << 14;
/// The most threads whose lookups revalidate names: each lookup scans all of them.
const STALE_MAX: usize = 1024;

/// Threads that are expected back.
pub(crate) struct EstaleRetries {
    patience: Duration,
    threads: Mutex<HashMap<u32, Refused>>,
    /// The number of these threads, so that lookups of other threads need no lock.
    count: AtomicUsize,
    /// Threads that got `ESTALE`, and when.
    stale: Mutex<HashMap<u32, Instant>>,
    /// The number of these threads.
    stale_count: AtomicUsize,
}

/// The lookups of a thread since it was refused.
struct Refused {
    since: Instant,
    /// The number of the object that the thread asked for, and the object's known name.
    object: (Name, u64),
    /// The object that it found under that name since.
    found: Option<u64>,
    /// The object that it found last, under any name.
    found_last: Option<u64>,
    /// It had come back already: only a lookup makes its next request a retry.
    is_second: bool,
}

impl Default for EstaleRetries {
    fn default() -> Self {
        Self::with_patience(PATIENCE)
    }
}

impl EstaleRetries {
    /// With another time limit for a thread to come back.
    pub(crate) fn with_patience(patience: Duration) -> Self {
        Self {
            patience,
            threads: Mutex::default(),
            count: AtomicUsize::new(0),
            stale: Mutex::default(),
            stale_count: AtomicUsize::new(0),
        }
    }

    /// Notes that a thread gets `ESTALE`, after which it walks a path again.
    pub(crate) fn met_stale(&self, thread: u32) {
        let mut stale = self.stale.lock();
        if stale.len() >= STALE_MAX {
            stale.retain(|_, since| since.elapsed() < WALK);
        }
        if stale.len() < STALE_MAX {
            stale.insert(thread, Instant::now());
        }
        self.stale_count.store(stale.len(), Ordering::Relaxed);
    }

    /// Whether the source must revalidate a name that a thread looks up.
    pub(crate) fn revalidates(&self, thread: u32) -> bool {
        if self.stale_count.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let mut stale = self.stale.lock();
        stale.retain(|_, since| since.elapsed() < WALK);
        self.stale_count.store(stale.len(), Ordering::Relaxed);
        stale.contains_key(&thread)
    }

    /// Notes that a thread is about to be refused; `is_second` if it had come back.
    pub(crate) fn expect(&self, thread: u32, object: (Name, u64), is_second: bool) {
        let since = Instant::now();
        let mut threads = self.threads.lock();
        let mut late = Vec::new();
        if threads.len() >= THREADS_MAX {
            let is_late = |refused: &Refused| since - refused.since >= self.patience;
            late.extend(threads.extract_if(|_, refused| is_late(refused)));
            if late.len() < THREADS_MAX / 2 {
                late.extend(threads.drain());
            }
        }
        let refused = Refused { since, object, found: None, found_last: None, is_second };
        let replaced = threads.insert(thread, refused);
        self.count.store(threads.len(), Ordering::Relaxed);
        drop(threads);
        drop((late, replaced));
    }

    /// A thread has looked up a name, which led to an object.
    pub(crate) fn found(&self, thread: u32, (parent, name): (u64, &OsStr), number: u64) {
        // The kernel orders a thread's own refusal before its lookup.
        if self.count.load(Ordering::Relaxed) > 0
            && let Some(refused) = self.threads.lock().get_mut(&thread)
        {
            refused.found_last = Some(number);
            if refused.object.0.is(parent, name) {
                refused.found = Some(number);
            }
        }
    }

    /// Whether a thread's request for an object is a retry, which it can be only once.
    pub(crate) fn is_retry(&self, thread: u32, number: u64) -> bool {
        self.take(thread).is_some_and(|refused| {
            let is_the_same = !refused.is_second && refused.object.1 == number;
            let is_expected = refused.found_last == Some(number)
                || refused.found.map_or(is_the_same, |found| found == number);
            is_expected && refused.since.elapsed() < self.patience
        })
    }

    /// A thread does not come back: the lookup of its path has failed.
    pub(crate) fn give_up(&self, thread: u32) {
        self.take(thread);
    }

    fn take(&self, thread: u32) -> Option<Refused> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut threads = self.threads.lock();
        let refused = threads.remove(&thread);
        self.count.store(threads.len(), Ordering::Relaxed);
        refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: (u64, &str) = (1, "name");
    /// The name and the number of the refused object.
    const NUMBER: u64 = 3;

    /// With a time limit that never expires, however slow the machine is.
    fn retries() -> EstaleRetries {
        EstaleRetries::with_patience(Duration::from_secs(3600))
    }

    fn refuse(retries: &EstaleRetries, thread: u32, is_second: bool) {
        let name = Name::of(PLACE.0, PLACE.1.as_ref());
        retries.expect(thread, (name, NUMBER), is_second);
    }

    fn find(retries: &EstaleRetries, thread: u32, name: &str, number: u64) {
        retries.found(thread, (PLACE.0, name.as_ref()), number);
    }

    #[test]
    fn only_a_thread_that_met_a_removed_object_revalidates_names() {
        let retries = retries();
        assert!(!retries.revalidates(7));
        retries.met_stale(7);
        assert!(retries.revalidates(7) && !retries.revalidates(8));
        for thread in 0..2 * STALE_MAX as u32 {
            retries.met_stale(thread);
        }
        assert!(retries.stale.lock().len() <= STALE_MAX, "there is a limit");
        retries.stale.lock().values_mut().for_each(|since| *since -= WALK);
        assert!(!retries.revalidates(7));
        assert_eq!(retries.stale_count.load(Ordering::Relaxed), 0, "then it costs nothing");
    }

    #[test]
    fn a_thread_that_was_refused_may_come_back_once() {
        let retries = retries();
        assert!(!retries.is_retry(7, NUMBER));
        refuse(&retries, 7, false);
        assert!(!retries.is_retry(8, NUMBER));
        assert!(retries.is_retry(7, NUMBER), "it walked no path");
        assert!(!retries.is_retry(7, NUMBER));
        refuse(&retries, 7, false);
        retries.give_up(7);
        assert!(!retries.is_retry(7, NUMBER));
        // A fanotify watcher does not come back. Its next open has to be checked.
        refuse(&retries, 7, false);
        assert!(!retries.is_retry(7, NUMBER + 1));
    }

    #[test]
    fn a_thread_is_back_only_with_the_object_it_found_under_the_name() {
        let retries = retries();
        refuse(&retries, 7, false);
        find(&retries, 7, "name", 2);
        find(&retries, 8, "name", 9);
        find(&retries, 7, "other", 4);
        find(&retries, 7, "name", 3);
        assert!(retries.is_retry(7, 3));
        // A path walk of another file system on top of this one.
        refuse(&retries, 7, false);
        find(&retries, 7, "other", 4);
        assert!(retries.is_retry(7, 3));
        // The walk met a file instead of a directory; later the thread opens another file.
        refuse(&retries, 7, false);
        find(&retries, 7, "name", 3);
        assert!(!retries.is_retry(7, 4));
        assert!(!retries.is_retry(7, 3), "that was its one return");
    }

    #[test]
    fn a_walk_may_end_under_another_name_and_pass_the_known_one() {
        let retries = retries();
        refuse(&retries, 7, false);
        // A directory has the name by which the file was known.
        find(&retries, 7, "name", 9);
        find(&retries, 7, "other", 3);
        assert!(retries.is_retry(7, 3));
        refuse(&retries, 7, false);
        find(&retries, 7, "name", 9);
        find(&retries, 7, "other", 4);
        assert!(!retries.is_retry(7, 3));
    }

    #[test]
    fn after_a_second_refusal_only_a_lookup_brings_a_thread_back() {
        let retries = retries();
        refuse(&retries, 7, true);
        assert!(!retries.is_retry(7, 3), "the program got the error: this is a new call");
        refuse(&retries, 7, true);
        find(&retries, 7, "name", 3);
        assert!(retries.is_retry(7, 3));
    }

    #[test]
    fn expected_threads_are_bounded_and_the_latest_is_kept() {
        let retries = retries();
        for thread in 0..2 * THREADS_MAX as u32 + 5 {
            refuse(&retries, thread, false);
            assert!(retries.threads.lock().len() <= THREADS_MAX);
        }
        assert!(retries.is_retry(2 * THREADS_MAX as u32, NUMBER));
    }

    #[test]
    fn a_thread_that_takes_too_long_is_not_back_and_is_forgotten() {
        let retries = EstaleRetries::with_patience(Duration::ZERO);
        refuse(&retries, 7, false);
        find(&retries, 7, "name", 3);
        assert!(!retries.is_retry(7, 3));
        (0..=THREADS_MAX as u32).for_each(|thread| refuse(&retries, thread, false));
        assert_eq!(retries.threads.lock().len(), 1, "the others are");
    }
}
