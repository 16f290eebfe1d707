//! Wakes a queue that got another slot.
//!
//! A request that finds no free slot waits in its queue. The kernel puts it into a slot only when
//! an answer is committed in that queue. An added slot stays empty, however many requests wait
//! (`fuse_uring_do_register` and `fuse_uring_next_fuse_req` in the kernel's `fs/fuse/dev_uring.c`).
//! If all other slots wait for an origin that hangs, no answer may ever come. Hits would then wait
//! although a slot is empty.
//!
//! So a thread that adds a slot wakes its queue: it makes the kernel send one more request there,
//! which the new slot takes. The answer to that request is empty, and fetches the next request. The
//! request names any open file. Without an open file there are no hits either.

use crate::affinity;
use crate::view::View;
use ogive_origin::Origin;
use std::io;

/// Wakes the queues that just got a slot. If that fails, a waiting request is fetched after the
/// next answer in its queue.
pub(super) fn wake<O: Origin>(view: &View<O>, queues: &[u16]) {
    let Some(number) = view.any_open_file() else { return };
    for queue in queues {
        let nudge = || Ok(view.kernel.ask_for_a_request(number)?);
        // A request goes into the queue of the processor that makes it.
        if let Err(error) = on_processor(usize::from(*queue), nudge) {
            // The connection has ended, or this process may not run on the processor.
            log::debug!("cannot wake queue {queue}: {error}");
        }
    }
}

/// Runs an action on one processor, if the calling thread may run there.
fn on_processor(processor: usize, action: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    affinity::keep_at(processor)?;
    let done = action();
    affinity::let_go();
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu};

    #[test]
    fn a_thread_may_run_where_it_might_before() {
        let allowed = sched_getaffinity(None).unwrap();
        let mut visited = 0;
        for processor in (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor)) {
            on_processor(processor, || {
                assert_eq!(sched_getcpu(), processor);
                visited += 1;
                Ok(())
            })
            .unwrap();
            assert!(sched_getaffinity(None).unwrap() == allowed);
        }
        assert_eq!(visited, allowed.count());
    }

    #[test]
    fn on_a_processor_that_is_not_there_nothing_is_done() {
        on_processor(CpuSet::MAX_CPU - 1, || panic!("done")).unwrap_err();
        on_processor(CpuSet::MAX_CPU, || panic!("done")).unwrap_err();
    }

    #[test]
    fn without_a_connection_it_does_no_harm() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("file"), "bytes").unwrap();
        let session = crate::session::tests::session(directory.path());
        wake(&session.view, &[0]);
        let known = session.view.lookup(1, "file".as_ref(), 0).unwrap();
        session.view.open(known.number, ogive_origin::OFlags::RDONLY, 0).unwrap();
        assert_eq!(session.view.any_open_file(), Some(known.number));
        wake(&session.view, &[0, u16::MAX]);
    }
}
