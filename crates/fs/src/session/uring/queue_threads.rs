//! How many threads serve a processor's queue, and which of them may wait for the origin.
//!
//! Only the thread that gave the kernel a slot can take the request in it. So a thread that waits
//! for the origin must not leave a free slot behind. Each thread has a ring with one slot, which
//! holds its present request, and the kernel puts the next request into another thread's slot. A
//! hand-over would cost a change of threads; this does not. Hits are answered as long as one thread
//! is free.
//!
//! All threads but one may wait at the same time. When the last one wants to wait, another is
//! started first, up to [`THREADS_MAX`]. They stay. An idle thread sleeps, and few of them ever
//! wake, because the kernel prefers the slot that became free last.
//!
//! The lock is held while a thread is started. Only threads that want to start one wait for it.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads of a queue. When all but one of them wait, further requests are handed over.
const THREADS_MAX: usize = 64;

/// The threads of one processor's queue.
#[derive(Debug)]
pub(super) struct QueueThreads {
    members: AtomicUsize,
    waiting: AtomicUsize,
    /// No more members: there are enough, or one could not be started.
    is_full: Mutex<bool>,
}

/// Permission to wait for the origin; given back when dropped.
pub(super) struct Permit<'a>(&'a QueueThreads);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl QueueThreads {
    /// With one member.
    pub(super) fn new() -> Self {
        Self {
            members: AtomicUsize::new(1),
            waiting: AtomicUsize::new(0),
            is_full: Mutex::new(false),
        }
    }

    /// Permission for a member to wait, if another member is free meanwhile. `add_thread` adds a
    /// member and returns whether it could.
    pub(super) fn permit(&self, add_thread: impl FnOnce() -> bool) -> Option<Permit<'_>> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let permit = Permit(self);
        (self.has_one_free() || self.grow(add_thread)).then_some(permit)
    }

    fn has_one_free(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) < self.members.load(Ordering::Relaxed)
    }

    fn grow(&self, add_thread: impl FnOnce() -> bool) -> bool {
        let mut is_full = self.is_full.lock();
        // Another thread may have been started while this one waited for the lock.
        if self.has_one_free() {
            return true;
        }
        if *is_full || !add_thread() {
            *is_full = true;
            return false;
        }
        let members = self.members.fetch_add(1, Ordering::Relaxed) + 1;
        *is_full = members >= THREADS_MAX;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn one_thread_is_always_free() {
        let queue_threads = QueueThreads::new();
        let enlisted = Cell::new(0);
        let add_thread = || {
            enlisted.set(enlisted.get() + 1);
            true
        };
        let first = queue_threads.permit(add_thread).unwrap();
        assert_eq!(enlisted.get(), 1);
        let second = queue_threads.permit(add_thread).unwrap();
        assert_eq!(enlisted.get(), 2);
        drop((first, second));
        // The started threads are still there.
        let again =
            [queue_threads.permit(add_thread).unwrap(), queue_threads.permit(add_thread).unwrap()];
        assert_eq!(enlisted.get(), 2);
        drop(again);
    }

    #[test]
    fn the_threads_of_a_queue_are_bounded() {
        let queue_threads = QueueThreads::new();
        let leaves: Vec<_> =
            std::iter::from_fn(|| queue_threads.permit(|| true)).take(1000).collect();
        assert_eq!(leaves.len(), THREADS_MAX - 1);
        drop(leaves);
        assert!(queue_threads.permit(|| panic!("there are enough")).is_some());
    }

    #[test]
    fn a_thread_that_cannot_be_started_is_tried_once() {
        let queue_threads = QueueThreads::new();
        assert!(queue_threads.permit(|| false).is_none());
        assert!(queue_threads.permit(|| panic!("asked again")).is_none());
        assert_eq!(queue_threads.waiting.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn threads_that_want_to_wait_at_once_all_get_permits() {
        let queue_threads = QueueThreads::new();
        let enlisted = AtomicUsize::new(0);
        let barrier = std::sync::Barrier::new(16);
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    let leave = queue_threads.permit(|| {
                        enlisted.fetch_add(1, Ordering::Relaxed);
                        true
                    });
                    barrier.wait();
                    assert!(leave.is_some());
                });
            }
        });
        assert_eq!(enlisted.load(Ordering::Relaxed), 16);
    }
}
