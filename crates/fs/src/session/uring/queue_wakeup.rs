//! Makes the kernel look at a queue again.
//!
//! A request that finds no free slot waits in its queue. It is put into a slot only when an answer
//! is committed in that queue. A slot that is added stays empty, however many requests wait
//! (`fuse_uring_do_register` and `fuse_uring_next_fuse_req` in the kernel's `fs/fuse/dev_uring.c`).
//! Where all other slots wait for an origin that hangs, there may be no such answer for ever, and
//! hits would wait beside an empty slot.
//!
//! So a thread that adds a slot wakes its queue up. It makes the kernel make one more request
//! there, which the new slot takes. The answer to that, which is empty, fetches the next request.
//! The request is about any open file. Where no file is open, there are no hits either.

use crate::affinity;
use crate::view::View;
use ogive_origin::Origin;
use std::io;

/// Nudges the queues that just got a slot. If that fails a request that waits there is fetched
/// after the next that is answered, as without a nudge.
pub(super) fn wake<O: Origin>(view: &View<O>, queues: &[u16]) {
    let Some(number) = view.any_open_file() else { return };
    for queue in queues {
        let nudge = || Ok(view.kernel.ask_for_a_request(number)?);
        // A request is put into the queue of the processor it is made on.
        if let Err(error) = on_processor(usize::from(*queue), nudge) {
            // The connection has ended, or the processor is not ours to run on.
            log::debug!("cannot nudge queue {queue}: {error}");
        }
    }
}

/// Does something on one processor, if the calling thread may run there.
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
