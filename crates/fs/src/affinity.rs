//! Pins a thread to one processor for a while.
//!
//! A new thread inherits the affinity mask of the thread that starts it, for all its life. So a
//! pinned thread is unpinned before it starts another thread, and before it does anything slow.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::cell::Cell;
use std::io;

thread_local! {
    /// The affinity mask of this thread before it was pinned.
    static ALLOWED: Cell<Option<CpuSet>> = const { Cell::new(None) };
}

/// Whether the calling thread is pinned.
pub(crate) fn is_kept() -> bool {
    ALLOWED.get().is_some()
}

/// Whether the calling thread may run on a processor. The affinity mask of the process may exclude
/// some.
pub(crate) fn may_run_on(processor: usize) -> bool {
    let allowed = ALLOWED.get().map_or_else(|| sched_getaffinity(None), Ok);
    processor < CpuSet::MAX_CPU && allowed.is_ok_and(|allowed| allowed.is_set(processor))
}

/// Pins the calling thread to a processor, until [`let_go`].
///
/// # Errors
/// If the system does not let it run there.
pub(crate) fn keep_at(processor: usize) -> io::Result<()> {
    if processor >= CpuSet::MAX_CPU {
        return Err(io::Error::other("the number of a processor is too large"));
    }
    let allowed = match ALLOWED.get() {
        Some(allowed) => allowed,
        None => sched_getaffinity(None)?,
    };
    let mut one = CpuSet::new();
    one.set(processor);
    sched_setaffinity(None, &one)?;
    ALLOWED.set(Some(allowed));
    Ok(())
}

/// Restores the affinity mask of the calling thread.
pub(crate) fn let_go() {
    let Some(allowed) = ALLOWED.take() else { return };
    // The mask was valid a moment ago. If it no longer is, the thread stays on one processor.
    if let Err(errno) = sched_setaffinity(None, &allowed) {
        log::debug!("a thread stays at its processor: {errno}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::sched_getcpu;

    #[test]
    fn a_thread_is_kept_and_released() {
        let allowed = sched_getaffinity(None).unwrap();
        assert!(!is_kept());
        let_go();
        let mut visited = 0;
        for processor in (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor)) {
            keep_at(processor).unwrap();
            assert_eq!(sched_getcpu(), processor);
            assert!((0..processor).all(|other| may_run_on(other) == allowed.is_set(other)));
            assert!(is_kept());
            visited += 1;
        }
        assert_eq!(visited, allowed.count());
        let_go();
        assert!(sched_getaffinity(None).unwrap() == allowed);
        assert!(!is_kept());
    }

    #[test]
    fn at_a_processor_that_is_not_there_nothing_changes() {
        let allowed = sched_getaffinity(None).unwrap();
        keep_at(CpuSet::MAX_CPU - 1).unwrap_err();
        keep_at(CpuSet::MAX_CPU).unwrap_err();
        assert!(!is_kept() && !may_run_on(CpuSet::MAX_CPU - 1) && !may_run_on(CpuSet::MAX_CPU));
        assert!(sched_getaffinity(None).unwrap() == allowed);
    }
}
