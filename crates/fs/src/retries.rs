//! Threads that were told to look a path up again.
//!
//! A request answered with `ESTALE` makes the kernel walk the path anew, asking for every name, and
//! send the request once more, all within the system call of one thread (`do_filp_open` in
//! `fs/namei.c`). The second request has nothing left to check, and must not be refused again: the
//! program would see the error. So threads that were refused are remembered until they are back.
//!
//! One that does not come back, because the path is gone or its process was killed, is forgotten
//! after a while. The lock is a leaf.

use hashbrown::HashMap;
use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// How long a thread may take to come back, in which it looks a path up.
const PATIENCE: Duration = Duration::from_secs(10);
/// Threads remembered before those that did not come back are looked for.
const THREADS_MAX: usize = 1024;

/// Threads that are expected back.
#[derive(Default)]
pub(crate) struct Retries(Mutex<HashMap<u32, Instant>>);

impl Retries {
    /// Notes that a thread is about to be refused.
    pub(crate) fn expect(&self, thread: u32) {
        let now = Instant::now();
        let mut threads = self.0.lock();
        if threads.len() >= THREADS_MAX {
            threads.retain(|_, refused| now.duration_since(*refused) < PATIENCE);
        }
        threads.insert(thread, now);
    }

    /// Whether a thread is back, which it can be only once.
    pub(crate) fn is_retry(&self, thread: u32) -> bool {
        let refused = self.0.lock().remove(&thread);
        refused.is_some_and(|refused| refused.elapsed() < PATIENCE)
    }

    /// A thread does not come back: looking up its path has failed.
    pub(crate) fn give_up(&self, thread: u32) {
        self.0.lock().remove(&thread);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_was_refused_may_come_back_once() {
        let retries = Retries::default();
        assert!(!retries.is_retry(7));
        retries.expect(7);
        assert!(!retries.is_retry(8));
        assert!(retries.is_retry(7));
        assert!(!retries.is_retry(7));
        retries.expect(7);
        retries.give_up(7);
        assert!(!retries.is_retry(7));
    }
}
