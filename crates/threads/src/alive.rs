//! Counts the threads of a kind that have not ended, so that a caller can wait for them for a
//! limited time.
//!
//! The lock is a leaf.

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::Duration;

/// A count of threads that a caller can wait for.
#[derive(Clone, Default)]
pub struct Alive(Arc<(Mutex<usize>, Condvar)>);

/// One counted thread. It is dropped when the thread ends.
pub struct Present(Alive);

impl Alive {
    /// Counts one more thread.
    #[must_use]
    pub fn enter(&self) -> Present {
        *self.0.0.lock() += 1;
        Present(self.clone())
    }

    /// Waits until all have ended, but at most for `patience`. Returns how many have not.
    #[must_use]
    pub fn wait(&self, patience: Duration) -> usize {
        let (alive, ended) = &*self.0;
        let mut alive = alive.lock();
        ended.wait_while_for(&mut alive, |alive| *alive > 0, patience);
        *alive
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        let (alive, ended) = &*self.0.0;
        *alive.lock() -= 1;
        ended.notify_all();
    }
}
