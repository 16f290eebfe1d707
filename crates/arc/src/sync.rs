//! The engine's locks and atomics: the standard library's, or shuttle's if the crate is built with
//! `--cfg shuttle`. With shuttle, schedules can be explored and replayed.
//!
//! Locks here do not poison. No code of the cache's users runs under a lock except `K: Eq` and `K:
//! Clone`. Both run before anything is changed, so a panic in them leaves the structure behind the
//! lock whole.

#[cfg(not(shuttle))]
use std::sync as imp;

#[cfg(shuttle)]
use shuttle::sync as imp;

pub(crate) use imp::atomic;
pub(crate) use imp::{Mutex, MutexGuard};

use crate::counters::{Counters, Event};
use imp::Condvar;
use std::sync::{PoisonError, TryLockError};
use std::time::Instant;

/// Takes the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a lock; counts it, and counts and times the wait if there is one.
pub(crate) fn lock_counted<'a, T>(mutex: &'a Mutex<T>, counters: &Counters) -> MutexGuard<'a, T> {
    counters.count(Event::Locks);
    if let Some(guard) = try_lock(mutex) {
        return guard;
    }
    let start = Instant::now();
    let guard = lock(mutex);
    counters.count(Event::LockWaits);
    counters.add(Event::LockWaitNs, elapsed_ns(start));
    guard
}

/// Nanoseconds since `start`.
pub(crate) fn elapsed_ns(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Takes the lock if it is free.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// A condition that threads wait for.
#[derive(Debug)]
pub(crate) struct Condition(Condvar);

impl Condition {
    pub(crate) fn new() -> Self {
        Self(Condvar::new())
    }

    /// Gives the lock back, waits for [`Condition::notify_all`], takes the lock again. May
    /// wake for no reason.
    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes all waiters.
    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}
