//! Waits for files that programs have closed, and whose release the kernel has not sent yet.
//!
//! FUSE sends a release some time after the last `close(2)` has returned. A source that hides a
//! removed file in its directory while it is open (NFS) refuses to remove that directory until
//! then, though no program has the file open. So a refused request waits a moment for releases, and
//! tries again after each.
//!
//! The lock is a leaf.

use parking_lot::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// How long a program is kept waiting that removes a directory in which another has a file open.
pub(crate) const PATIENCE: Duration = Duration::from_millis(250);

/// Counts files that were released.
#[derive(Debug, Default)]
pub(crate) struct LateReleases {
    count: Mutex<u64>,
    changed: Condvar,
}

impl LateReleases {
    /// A file was released.
    pub(crate) fn note(&self) {
        *self.count.lock() += 1;
        self.changed.notify_all();
    }

    /// Tries something after each release, until it succeeds or a time is over, and then once more:
    /// a source may take a moment to close its own file.
    pub(crate) fn retry<T, E>(
        &self,
        patience: Duration,
        mut attempt: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        let until = Instant::now() + patience;
        loop {
            let before = *self.count.lock();
            let result = attempt();
            if result.is_ok() {
                return result;
            }
            let mut count = self.count.lock();
            while *count == before {
                if self.changed.wait_until(&mut count, until).timed_out() {
                    drop(count);
                    return attempt();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_removal_is_tried_again_after_each_release() {
        let (releases, mut tries) = (LateReleases::default(), 0);
        let result = releases.retry(Duration::from_secs(3600), || {
            tries += 1;
            // As another thread does meanwhile.
            releases.note();
            if tries < 3 { Err(()) } else { Ok(tries) }
        });
        assert_eq!(result, Ok(3));
    }

    #[test]
    fn stopping_waits_with_a_bound() {
        let (releases, mut tries) = (LateReleases::default(), 0);
        let result = releases.retry(Duration::ZERO, || {
            tries += 1;
            Err::<(), ()>(())
        });
        assert_eq!((result, tries), (Err(()), 2));
    }
}
