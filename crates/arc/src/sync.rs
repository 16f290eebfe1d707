//! The seam between the engine and its locks: the standard library's, or shuttle's when
//! the crate is built with `--cfg shuttle`, so that schedules can be explored and replayed.
//!
//! Locks here do not poison. No code of the cache's users runs under a lock except `K: Eq`
//! and `K: Clone`, and both run before anything is changed, so a panic in them leaves the
//! structure behind the lock whole.

#[cfg(not(shuttle))]
use std::sync as imp;

#[cfg(shuttle)]
use shuttle::sync as imp;

pub(crate) use imp::atomic;
pub(crate) use imp::{Mutex, MutexGuard};

use imp::Condvar;
use std::sync::{PoisonError, TryLockError};

/// Takes the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the lock if nobody has it.
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

    /// Wakes all who wait.
    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}
