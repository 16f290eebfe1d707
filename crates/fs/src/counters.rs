//! The counters of a mount, without those of the engine.
//!
//! Names and meanings are rows of the table in `ogive-stats`. A new counter is a row there whose
//! owner is `mount`, and the place here that adds to it.
//! Counters are striped by thread, so that threads which answer reads do not pass a cache line back
//! and forth. A reader adds up the stripes.

use crate::latency::Latency;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

const STRIPES: usize = 16;

macro_rules! counters {
    ($($name:ident $doc:literal;)+) => {
        /// Every counter: a row of `ogivestats` each, and the source of other files.
        #[derive(Clone, Copy, Debug)]
        #[repr(usize)]
        #[expect(non_camel_case_types, reason = "the names of the rows")]
        enum Counter {
            $($name,)+
            stream_hits,
            stream_misses,
            prefetch_issued,
            prefetch_ended,
            second_level_bytes,
            last,
        }

        /// The counters at one moment.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct Counts {
            $(#[doc = $doc] pub(crate) $name: u64,)+
            /// Reads that continued a sequential stream.
            pub(crate) stream_hits: u64,
            /// Reads that fitted no stream.
            pub(crate) stream_misses: u64,
            /// Most streams seen on one handle.
            pub(crate) streams_max: u64,
            /// Prefetches started.
            pub(crate) prefetch_issued: u64,
            /// Prefetches in flight.
            pub(crate) prefetch_active: u64,
            /// Bytes read from the second level.
            pub(crate) second_level_bytes: u64,
        }

        impl Counters {
            /// The counters now.
            pub(crate) fn counts(&self) -> Counts {
                let ended = self.sum(Counter::prefetch_ended);
                let issued = self.sum(Counter::prefetch_issued);
                Counts {
                    $($name: self.sum(Counter::$name),)+
                    stream_hits: self.sum(Counter::stream_hits),
                    stream_misses: self.sum(Counter::stream_misses),
                    streams_max: self.streams_max.load(Ordering::Relaxed),
                    prefetch_issued: issued,
                    prefetch_active: issued.saturating_sub(ended),
                    second_level_bytes: self.sum(Counter::second_level_bytes),
                }
            }
        }

        impl Counts {
            /// Name and value of each row of `ogivestats`, in the order of the table.
            pub(crate) fn fields(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)+].into_iter()
            }
        }
    };
}

ogive_stats::owned!(mount counters);

const COUNTERS: usize = Counter::last as usize;

/// The outcome of a request that came through a ring.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// The cache had the answer.
    Answered,
    /// The thread that received it asked the origin.
    Waited,
    /// It was queued for another thread, which may wait for the origin.
    Queued,
    /// It was sent only to wake its queue.
    Nudged,
}

/// The counters of some threads, on cache lines of their own.
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
        self.add(Counter::read_requests, 1);
        self.add(Counter::read_bytes, bytes);
    }

    /// The origin was read, in this time.
    pub(crate) fn origin_read(&self, bytes: u64, took: Duration) {
        self.origin_latency.add(took);
        self.add(Counter::origin_reads, 1);
        self.add(Counter::origin_bytes, bytes);
    }

    /// Bytes reached the origin.
    pub(crate) fn written(&self, bytes: u64) {
        self.add(Counter::write_requests, 1);
        self.add(Counter::written_bytes, bytes);
    }

    /// A read continued a stream of its handle, or fitted none.
    pub(crate) fn stream(&self, hit: bool, streams: usize) {
        self.add(if hit { Counter::stream_hits } else { Counter::stream_misses }, 1);
        if streams as u64 > self.streams_max.load(Ordering::Relaxed) {
            self.streams_max.fetch_max(streams as u64, Ordering::Relaxed);
        }
    }

    /// A prefetch started.
    pub(crate) fn prefetch_issued(&self) {
        self.add(Counter::prefetch_issued, 1);
    }

    /// A prefetch ended, successfully or not.
    pub(crate) fn prefetch_ended(&self) {
        self.add(Counter::prefetch_ended, 1);
    }

    /// Prefetches in flight.
    pub(crate) fn prefetch_active(&self) -> u64 {
        // Reads the ended ones first: a prefetch that is issued meanwhile makes the result too
        // large, not too small.
        let ended = self.sum(Counter::prefetch_ended);
        self.sum(Counter::prefetch_issued).saturating_sub(ended)
    }

    /// A record was handed over to the page cache.
    pub(crate) fn handed_over(&self) {
        self.add(Counter::handed_over, 1);
    }

    /// The second level was read.
    pub(crate) fn second_level_read(&self, bytes: u64) {
        self.add(Counter::second_level_bytes, bytes);
    }

    /// A request came through a ring.
    pub(crate) fn ring(&self, way: Way) {
        let counter = match way {
            Way::Answered => Counter::ring_answered,
            Way::Waited => Counter::ring_waited,
            Way::Queued => Counter::ring_queued,
            Way::Nudged => Counter::ring_nudged,
        };
        self.add(counter, 1);
    }

    /// A file was opened, with the kernel or this process to read and write it.
    pub(crate) fn opened(&self, by_kernel: bool) {
        let counter =
            if by_kernel { Counter::passthrough_opens } else { Counter::passthrough_refused };
        self.add(counter, 1);
    }

    /// A request panicked, or other work did.
    pub(crate) fn panicked(&self) {
        self.add(Counter::panics, 1);
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
