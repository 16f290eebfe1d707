//! Waits for the releases of files that programs have closed already.
//!
//! FUSE sends a release some time after the last `close(2)` has returned. Some sources (NFS) hide a
//! removed file in its directory while it is open. Until its release they refuse to remove that
//! directory, though no program has the file open. So a refused request waits a moment for
//! releases, and retries after each.
//!
//! The lock is a leaf.

use parking_lot::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// How long a program waits that removes a directory in which another program has a file open.
pub(crate) const PATIENCE: Duration = Duration::from_millis(250);

/// Counts released files.
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

    /// Retries an operation after each release until it succeeds. At the time limit it retries once
    /// more, because a source may take a moment to close its own file.
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
            // Another thread does this meanwhile.
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
