//! How many threads of a kind have not ended, for whoever ends them and has no time to lose.
//!
//! The lock is a leaf.

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::Duration;

/// A count of threads that can be waited for.
#[derive(Clone, Default)]
pub struct Alive(Arc<(Mutex<usize>, Condvar)>);

/// One of them; dropped when it has ended.
pub struct Present(Alive);

impl Alive {
    /// One more.
    #[must_use]
    pub fn enter(&self) -> Present {
        *self.0.0.lock() += 1;
        Present(self.clone())
    }

    /// Waits until all have ended, but no longer than `patience`; returns how many have not.
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
