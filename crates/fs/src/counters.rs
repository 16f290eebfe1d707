//! What a mount counts beside the engine.
//!
//! Counters are striped by thread, so that threads which answer reads do not pass a cache line to
//! and fro; a reader adds the stripes up.

use crate::latency::Latency;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

const STRIPES: usize = 16;

/// Everything counted.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
enum Counter {
    ReadRequests,
    ReadBytes,
    OriginReads,
    OriginBytes,
    WriteRequests,
    WrittenBytes,
    StreamHits,
    StreamMisses,
    PrefetchIssued,
    PrefetchEnded,
    HandedOver,
    SecondLevelBytes,
    RingAnswered,
    RingWaited,
    RingQueued,
    RingNudged,
    PassthroughOpens,
    PassthroughRefused,
    Panics,
    Last,
}

const COUNTERS: usize = Counter::Last as usize;

/// What became of a request that came through a ring.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// The cache had what it asked for.
    Answered,
    /// The thread that received it asked the origin.
    Waited,
    /// Another thread, which may wait for the origin, took it.
    Queued,
    /// It was made so that the kernel looks at its queue again.
    Nudged,
}

/// One thread's share; on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Stripe([AtomicU64; COUNTERS]);

/// Counters of a mount.
#[derive(Default)]
pub(crate) struct Counters {
    stripes: [Stripe; STRIPES],
    streams_max: AtomicU64,
    /// How long reads of the origin took.
    pub(crate) origin_latency: Latency,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Reads of programs that reached the daemon.
    pub(crate) read_requests: u64,
    /// Bytes they were answered with.
    pub(crate) read_bytes: u64,
    /// Reads of the origin.
    pub(crate) origin_reads: u64,
    /// Bytes they brought.
    pub(crate) origin_bytes: u64,
    /// Writes of programs, or of the kernel for them.
    pub(crate) write_requests: u64,
    /// Bytes written through.
    pub(crate) written_bytes: u64,
    /// Reads that went on where a sequential stream stood.
    pub(crate) stream_hits: u64,
    /// Reads that did not.
    pub(crate) stream_misses: u64,
    /// Most streams seen on one handle.
    pub(crate) streams_max: u64,
    /// Prefetches started.
    pub(crate) prefetch_issued: u64,
    /// Prefetches under way.
    pub(crate) prefetch_active: u64,
    /// Records handed over to the kernel's page cache.
    pub(crate) handed_over: u64,
    /// Bytes that the second level brought.
    pub(crate) second_level_bytes: u64,
    /// Requests through rings that were answered where they arrived.
    pub(crate) ring_answered: u64,
    /// Those for which the thread that received them asked the origin.
    pub(crate) ring_waited: u64,
    /// Those that were queued for threads which wait for the origin.
    pub(crate) ring_queued: u64,
    /// Those that were made so that the kernel looks at a queue that got a slot.
    pub(crate) ring_nudged: u64,
    /// Opens of files that the kernel then read and wrote itself.
    pub(crate) passthrough_opens: u64,
    /// Those of files that it was to read and write itself, and could not.
    pub(crate) passthrough_refused: u64,
    /// Panics of the threads that answer requests.
    pub(crate) panics: u64,
}

thread_local! {
    static STRIPE: usize = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES
    };
}

impl Counters {
    fn add(&self, counter: Counter, amount: u64) {
        let stripe = STRIPE.with(|stripe| *stripe);
        self.stripes[stripe].0[counter as usize].fetch_add(amount, Ordering::Relaxed);
    }

    fn sum(&self, counter: Counter) -> u64 {
        let cell = |stripe: &Stripe| stripe.0[counter as usize].load(Ordering::Relaxed);
        self.stripes.iter().map(cell).fold(0, u64::wrapping_add)
    }

    /// A read was answered.
    pub(crate) fn read(&self, bytes: u64) {
        self.add(Counter::ReadRequests, 1);
        self.add(Counter::ReadBytes, bytes);
    }

    /// The origin was read, in so much time.
    pub(crate) fn origin_read(&self, bytes: u64, took: Duration) {
        self.origin_latency.add(took);
        self.add(Counter::OriginReads, 1);
        self.add(Counter::OriginBytes, bytes);
    }

    /// Bytes reached the origin.
    pub(crate) fn written(&self, bytes: u64) {
        self.add(Counter::WriteRequests, 1);
        self.add(Counter::WrittenBytes, bytes);
    }

    /// A read went on where a stream of a handle stood, or did not.
    pub(crate) fn stream(&self, hit: bool, streams: usize) {
        self.add(if hit { Counter::StreamHits } else { Counter::StreamMisses }, 1);
        if streams as u64 > self.streams_max.load(Ordering::Relaxed) {
            self.streams_max.fetch_max(streams as u64, Ordering::Relaxed);
        }
    }

    /// A prefetch started.
    pub(crate) fn prefetch_issued(&self) {
        self.add(Counter::PrefetchIssued, 1);
    }

    /// A prefetch ended, well or not.
    pub(crate) fn prefetch_ended(&self) {
        self.add(Counter::PrefetchEnded, 1);
    }

    /// Prefetches under way.
    pub(crate) fn prefetch_active(&self) -> u64 {
        // Those that have ended first: one that is issued meanwhile makes too many, not too few.
        let ended = self.sum(Counter::PrefetchEnded);
        self.sum(Counter::PrefetchIssued).saturating_sub(ended)
    }

    /// A record was handed over to the page cache.
    pub(crate) fn handed_over(&self) {
        self.add(Counter::HandedOver, 1);
    }

    /// The second level was read.
    pub(crate) fn second_level_read(&self, bytes: u64) {
        self.add(Counter::SecondLevelBytes, bytes);
    }

    /// A request came through a ring.
    pub(crate) fn ring(&self, way: Way) {
        let counter = match way {
            Way::Answered => Counter::RingAnswered,
            Way::Waited => Counter::RingWaited,
            Way::Queued => Counter::RingQueued,
            Way::Nudged => Counter::RingNudged,
        };
        self.add(counter, 1);
    }

    /// A file was opened that the kernel was to read and write itself, and does so or does not.
    pub(crate) fn opened(&self, by_kernel: bool) {
        let counter =
            if by_kernel { Counter::PassthroughOpens } else { Counter::PassthroughRefused };
        self.add(counter, 1);
    }

    /// A request panicked, or what is done beside them.
    pub(crate) fn panicked(&self) {
        self.add(Counter::Panics, 1);
    }

    /// The counters now.
    pub(crate) fn counts(&self) -> Counts {
        let ended = self.sum(Counter::PrefetchEnded);
        let issued = self.sum(Counter::PrefetchIssued);
        Counts {
            read_requests: self.sum(Counter::ReadRequests),
            read_bytes: self.sum(Counter::ReadBytes),
            origin_reads: self.sum(Counter::OriginReads),
            origin_bytes: self.sum(Counter::OriginBytes),
            write_requests: self.sum(Counter::WriteRequests),
            written_bytes: self.sum(Counter::WrittenBytes),
            stream_hits: self.sum(Counter::StreamHits),
            stream_misses: self.sum(Counter::StreamMisses),
            streams_max: self.streams_max.load(Ordering::Relaxed),
            prefetch_issued: issued,
            prefetch_active: issued.saturating_sub(ended),
            handed_over: self.sum(Counter::HandedOver),
            second_level_bytes: self.sum(Counter::SecondLevelBytes),
            ring_answered: self.sum(Counter::RingAnswered),
            ring_waited: self.sum(Counter::RingWaited),
            ring_queued: self.sum(Counter::RingQueued),
            ring_nudged: self.sum(Counter::RingNudged),
            passthrough_opens: self.sum(Counter::PassthroughOpens),
            passthrough_refused: self.sum(Counter::PassthroughRefused),
            panics: self.sum(Counter::Panics),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_all_threads_add_up() {
        let counters = Counters::default();
        std::thread::scope(|scope| {
            for _ in 0..40 {
                scope.spawn(|| {
                    counters.read(10);
                    counters.origin_read(7, Duration::ZERO);
                    counters.stream(true, 3);
                    counters.prefetch_issued();
                });
            }
        });
        counters.prefetch_ended();
        let counts = counters.counts();
        assert_eq!((counts.read_requests, counts.read_bytes), (40, 400));
        assert_eq!((counts.origin_reads, counts.origin_bytes), (40, 280));
        assert_eq!((counts.stream_hits, counts.stream_misses, counts.streams_max), (40, 0, 3));
        assert_eq!((counts.prefetch_issued, counts.prefetch_active), (40, 39));
    }
}
