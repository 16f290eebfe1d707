//! Whether a ring's thread stays on the processor of its queue.
//!
//! A woken thread may run anywhere, and the scheduler prefers an idle processor. For a single
//! program that is right. If the thread were pinned, each answer would move the program to the idle
//! processor, and its next request to the queue there. Where no processor is idle, a move gains
//! nothing and costs time. So the thread is pinned then, on the processor of the program.
//!
//! The fourth field of `/proc/loadavg` (runnable threads; `fs/proc/loadavg.c`) shows whether a
//! processor is idle. It is read once in [`LOOK_EVERY`] answers. Only a thread that does nothing
//! but answer from the cache is pinned. It is unpinned before it waits or hands a request over. It
//! is never pinned to a processor outside the daemon's own affinity mask.

use super::RingLayout;
use crate::affinity;
use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Answers between two reads of the load, each of which costs a few microseconds.
const LOOK_EVERY: u32 = 64;
/// A thread is pinned when at least this many of the last eight reads found no idle processor,
const BUSY_TO_KEEP: u32 = 6;
/// and unpinned when this few did.
const BUSY_TO_LET_GO: u32 = 2;

/// The processor of one ring's thread.
pub(super) struct Pinning {
    /// The processor of the ring's queue, if it has exactly one.
    processor: Option<usize>,
    /// How many processors run.
    processors: usize,
    load: Option<File>,
    until_look: Cell<u32>,
    /// The results of the last reads, one bit each.
    busy: Cell<u8>,
}

impl Pinning {
    /// For a ring of a machine with this many running processors.
    pub(super) fn new(layout: &RingLayout, processors: usize) -> Self {
        let processor = match layout.queues[..] {
            [queue] if layout.has_queue_threads => Some(usize::from(queue)),
            _ => None,
        };
        Self {
            processor,
            processors,
            load: File::open("/proc/loadavg").ok(),
            until_look: Cell::new(LOOK_EVERY),
            busy: Cell::new(0),
        }
    }

    /// The thread has answered from the cache.
    pub(super) fn answered(&self) {
        let until_look = self.until_look.get() - 1;
        if until_look > 0 {
            return self.until_look.set(until_look);
        }
        self.until_look.set(LOOK_EVERY);
        let (Some(processor), Some(running)) = (self.processor, self.running()) else { return };
        let busy = self.busy.get() << 1 | u8::from(running >= self.processors);
        self.busy.set(busy);
        match (affinity::is_kept(), busy.count_ones()) {
            (false, BUSY_TO_KEEP..) if affinity::may_run_on(processor) => {
                if let Err(error) = affinity::keep_at(processor) {
                    log::debug!("cannot pin to processor {processor}: {error}");
                }
            }
            (true, ..=BUSY_TO_LET_GO) => affinity::let_go(),
            _ => {}
        }
    }

    /// The thread is about to wait or hand over.
    pub(super) fn something_else(&self) {
        self.busy.set(0);
        affinity::let_go();
    }

    /// Runnable threads of the machine.
    fn running(&self) -> Option<usize> {
        let mut bytes = [0; 128];
        let length = self.load.as_ref()?.read_at(&mut bytes, 0).ok()?;
        running(&bytes[..length])
    }
}

/// Reads `/proc/loadavg`: `0.20 0.18 0.12 1/80 11206`.
fn running(text: &[u8]) -> Option<usize> {
    let fields = std::str::from_utf8(text).ok()?;
    fields.split(' ').nth(3)?.split_once('/')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
    use std::io::Write as _;

    /// A thread on a machine with this many runnable threads.
    fn placement_with(layout: &RingLayout, processors: usize, running: usize) -> Pinning {
        let mut load = tempfile::tempfile().unwrap();
        writeln!(load, "0.20 0.18 0.12 {running}/80 11206").unwrap();
        Pinning { load: Some(load), ..Pinning::new(layout, processors) }
    }

    /// A thread of one queue, with as many runnable threads as processors.
    fn placement(queue: u16, processors: usize) -> Pinning {
        let layout = RingLayout { queues: vec![queue], has_queue_threads: true };
        placement_with(&layout, processors, processors)
    }

    fn answer_looks(placement: &Pinning, looks: u32) {
        for _ in 0..looks * LOOK_EVERY {
            placement.answered();
        }
    }

    fn first_allowed() -> u16 {
        let allowed = sched_getaffinity(None).unwrap();
        (0..CpuSet::MAX_CPU).find(|&number| allowed.is_set(number)).unwrap() as u16
    }

    #[test]
    fn the_number_that_run_is_read() {
        assert_eq!(running(b"0.20 0.18 0.12 1/80 11206\n"), Some(1));
        assert_eq!(running(b"2.07 3.82 4.55 15/190 20616\n"), Some(15));
        for wrong in [&b""[..], b"\xff", b"1 2 3", b"1 2 3 4 5", b"1 2 3 x/4 5", b"1 2 3 -1/4"] {
            assert_eq!(running(wrong), None, "{wrong:?}");
        }
        assert_eq!(placement(0, 7).running(), Some(7));
        let layout = RingLayout { queues: vec![0], has_queue_threads: true };
        let real = Pinning::new(&layout, 1);
        assert!(real.load.is_none() || real.running().is_some(), "also the one of this machine");
    }

    #[test]
    fn without_an_idle_processor_a_thread_is_pinned_until_it_does_something_else() {
        let queue = first_allowed();
        let placement = placement(queue, 1);
        answer_looks(&placement, BUSY_TO_KEEP - 1);
        assert!(!affinity::is_kept());
        answer_looks(&placement, 1);
        assert!(affinity::is_kept());
        assert_eq!(sched_getcpu(), usize::from(queue));
        placement.something_else();
        assert!(!affinity::is_kept());
        answer_looks(&placement, BUSY_TO_KEEP - 1);
        assert!(!affinity::is_kept());
    }

    #[test]
    fn a_thread_is_not_pinned_to_a_processor_it_may_not_use() {
        let allowed = sched_getaffinity(None).unwrap();
        let first = first_allowed();
        let is_other = |number: &usize| *number != usize::from(first) && allowed.is_set(*number);
        let Some(other) = (0..CpuSet::MAX_CPU).find(is_other) else {
            return crate::skipped::skipped("this thread may run on one processor only");
        };
        let mut one = CpuSet::new();
        one.set(usize::from(first));
        sched_setaffinity(None, &one).unwrap();
        answer_looks(&placement(other as u16, 1), 16);
        assert!(!affinity::is_kept());
        assert!(sched_getaffinity(None).unwrap() == one);
    }

    #[test]
    fn with_an_idle_processor_a_thread_is_unpinned() {
        let queue = first_allowed();
        affinity::keep_at(usize::from(queue)).unwrap();
        let layout = RingLayout { queues: vec![queue], has_queue_threads: true };
        let placement = placement_with(&layout, 2, 1);
        placement.busy.set(u8::MAX);
        answer_looks(&placement, 8 - BUSY_TO_LET_GO - 1);
        assert!(affinity::is_kept());
        answer_looks(&placement, 1);
        assert!(!affinity::is_kept());
    }

    #[test]
    fn a_ring_of_several_queues_runs_anywhere() {
        let layout = RingLayout { queues: vec![first_allowed(), 1], has_queue_threads: false };
        answer_looks(&placement_with(&layout, 1, 1), 16);
        assert!(!affinity::is_kept());
    }
}
