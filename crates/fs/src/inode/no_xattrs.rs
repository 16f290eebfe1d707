//! Remembers which inodes have no extended attributes.
//!
//! Programs and the kernel ask for access lists, capabilities and labels of every file. `ls -l`
//! asks two or three times for each file, the kernel once before a write. Nearly all files have
//! none. The kernel caches only that a whole operation is not supported. So if a file has no
//! extended attributes, this is cached as long as its other attributes are.
//!
//! A change through the mount may overlap such a request. The request takes a mark before it asks,
//! and a change replaces the mark, so an outdated answer is not cached.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Smaller numbers are marks, larger ones times.
const FIRST_TIME: u64 = 1 << 48;

/// Until when an inode is known to have none.
#[derive(Debug, Default)]
pub(super) struct NoXattrs(AtomicU64);

/// The state before the origin was asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark(u64);

impl NoXattrs {
    /// Whether the inode is known to have none.
    pub(super) fn is_known(&self) -> bool {
        self.0.load(Ordering::Acquire) > now()
    }

    /// To be taken before the origin is asked.
    pub(super) fn mark(&self) -> Mark {
        Mark(self.0.load(Ordering::Acquire))
    }

    /// The origin has none. This is cached for `memory`.
    pub(super) fn learn(&self, mark: Mark, memory: Duration) {
        let memory = u64::try_from(memory.as_nanos()).unwrap_or(u64::MAX);
        let until = now().saturating_add(memory);
        let _ = self.0.compare_exchange(mark.0, until, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Some may have been set; called after the change.
    pub(super) fn forget(&self) {
        static MARKS: AtomicU64 = AtomicU64::new(1);
        let mark = MARKS.fetch_add(1, Ordering::Relaxed) % FIRST_TIME;
        self.0.store(mark, Ordering::Release);
    }
}

fn now() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    FIRST_TIME + u64::try_from(START.elapsed().as_nanos()).unwrap_or(u64::MAX - FIRST_TIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn a_missing_attribute_is_cached_until_it_expires_or_changes() {
        let bare = NoXattrs::default();
        assert!(!bare.is_known());
        bare.learn(bare.mark(), LONG);
        assert!(bare.is_known());
        bare.forget();
        assert!(!bare.is_known());
        bare.learn(bare.mark(), Duration::ZERO);
        assert!(!bare.is_known(), "it has expired");
        bare.learn(bare.mark(), Duration::MAX);
        assert!(bare.is_known());
    }

    #[test]
    fn an_answer_from_before_a_change_is_not_cached_after_it() {
        let bare = NoXattrs::default();
        let mark = bare.mark();
        bare.forget();
        bare.learn(mark, LONG);
        assert!(!bare.is_known());
        let mark = bare.mark();
        bare.forget();
        bare.forget();
        bare.learn(mark, LONG);
        assert!(!bare.is_known());
    }
}
