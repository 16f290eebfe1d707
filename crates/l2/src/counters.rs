//! Everything that a second level counts. Names and meanings are rows of the table in
//! `ogive-stats`. A new counter is a row there, and the place that adds to its field.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

macro_rules! counters {
    ($($name:ident $doc:literal;)+) => {
        /// Counters of a second level, shared by its devices.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(#[doc = $doc] pub(crate) $name: AtomicU64,)+
        }

        /// Counters at one moment, since the level was opened. Times in nanoseconds.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counts {
            $(#[doc = $doc] pub $name: u64,)+
        }

        impl Counters {
            /// The counters now.
            pub(crate) fn counts(&self) -> Counts {
                Counts { $($name: self.$name.load(Ordering::Relaxed),)+ }
            }
        }

        impl Counts {
            /// Name and value of each, in the order of the table.
            pub fn fields(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($name), self.$name),)+].into_iter()
            }
        }
    };
}

ogive_stats::owned!(second_level counters);

impl Counters {
    /// A read was answered in its time.
    pub(crate) fn read_answered(&self, waited: Duration) {
        add(&self.l2_reads, 1);
        add(&self.l2_read_wait_ns, u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX));
    }
}

/// Adds to a counter.
pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}

/// CPU time of a thread, stage by stage.
pub(crate) struct Stopwatch(u64);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(thread_cpu_ns())
    }

    /// Adds the time since the last call to a counter.
    pub(crate) fn lap(&mut self, counter: &AtomicU64) {
        let now = thread_cpu_ns();
        add(counter, now.saturating_sub(self.0));
        self.0 = now;
    }
}

fn thread_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}
