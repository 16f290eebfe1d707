//! How long the origin takes for a record at present, and so how many records one thread reads.
//!
//! Handing a record over to another thread costs two context switches. Compared with a disk or a
//! network that is nothing: with a thread for each record, all are in flight at once. It costs more
//! than the read itself if the record comes out of the origin's own page cache; then one thread
//! reads several. Which case holds changes from moment to moment, so every record is measured.
//!
//! The measure is how long the thread waited for the origin. On a busy machine a thread that waits
//! for a processor takes as long as one that waits for a disk. There, more threads would only make
//! it worse. The kernel distinguishes them: it counts how often a thread has given up its processor
//! voluntarily.

use nix::sys::resource::{UsageWho, getrusage};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long one thread may take for records that others could read in parallel.
const AT_ONCE: Duration = Duration::from_micros(500);
/// The most that a record takes without a wait, for the copy alone.
const COPIED: Duration = Duration::from_micros(50);
/// The weight of the latest record in the average.
const WEIGHT: u64 = 8;

/// A recent average in nanoseconds; 0 until there is one. Two records at the same moment may count
/// as one.
#[derive(Debug, Default)]
pub(crate) struct OriginLatency(AtomicU64);

/// Measures one record, which the calling thread reads.
#[derive(Debug)]
pub(crate) struct TimedRead {
    since: Instant,
    given_away: Option<i64>,
}

impl TimedRead {
    /// Starts the measurement.
    pub(crate) fn begin() -> Self {
        let given_away = given_away();
        Self { since: Instant::now(), given_away }
    }

    /// Its start.
    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    /// Whether the thread has given up its processor voluntarily since.
    fn has_waited(&self) -> bool {
        self.given_away.is_none() || self.given_away != given_away()
    }
}

/// How often the calling thread has waited so far, for anything but a processor.
fn given_away() -> Option<i64> {
    getrusage(UsageWho::RUSAGE_THREAD).ok().map(|usage| usage.voluntary_context_switches())
}

impl OriginLatency {
    /// Notes a record that the calling thread has read in this time.
    pub(crate) fn note(&self, timed: &TimedRead, took: Duration) {
        self.note_record(if timed.has_waited() { took } else { took.min(COPIED) });
    }

    /// Notes how long a record took.
    pub(crate) fn note_record(&self, took: Duration) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).clamp(1, u64::MAX / WEIGHT);
        let average = match self.0.load(Ordering::Relaxed) {
            0 => took,
            average => average - average / WEIGHT + took / WEIGHT,
        };
        self.0.store(average.max(1), Ordering::Relaxed);
    }

    /// How many records one thread reads, one after the other: between one and `most`. One before
    /// any measurement.
    pub(crate) fn records(&self, most: u64) -> u64 {
        let average = self.0.load(Ordering::Relaxed);
        let records = (AT_ONCE.as_nanos() as u64).checked_div(average).unwrap_or(0);
        records.min(most).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(took: impl IntoIterator<Item = Duration>) -> OriginLatency {
        let latency = OriginLatency::default();
        took.into_iter().for_each(|took| latency.note_record(took));
        latency
    }

    #[test]
    fn records_out_of_memory_are_read_together_and_slow_ones_one_by_one() {
        let micros = Duration::from_micros;
        assert_eq!(after([]).records(8), 1, "nothing was measured");
        assert_eq!(after([micros(25)]).records(8), 8);
        assert_eq!(after([micros(125)]).records(8), 4);
        assert_eq!(after([micros(20_000)]).records(8), 1);
        assert_eq!(after([Duration::ZERO]).records(8), 8);
        assert_eq!(after([Duration::MAX, Duration::MAX]).records(8), 1);
        assert_eq!(after([micros(25)]).records(0), 1, "records of more than a run");
    }

    #[test]
    fn it_follows_an_origin_that_becomes_slow_and_fast_again() {
        let micros = Duration::from_micros;
        let latency = after([micros(25); 100]);
        latency.note_record(micros(20_000));
        assert_eq!(latency.records(8), 1);
        (0..50).for_each(|_| latency.note_record(micros(25)));
        assert_eq!(latency.records(8), 8);
    }

    #[test]
    fn a_thread_that_waits_for_something_waits_for_the_origin() {
        let second = Duration::from_secs(1);
        let records = |timed: TimedRead| {
            let latency = OriginLatency::default();
            latency.note(&timed, second);
            latency.records(8)
        };
        let timed = TimedRead::begin();
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(records(timed), 1);
        assert_eq!(records(TimedRead { given_away: None, ..TimedRead::begin() }), 1, "unknown");
        // A read without a wait counts little, however long the machine kept the thread from
        // running. A stop by a signal and a page fault are waits as well, though not each time.
        assert!((0..1000).any(|_| records(TimedRead::begin()) == 8));
    }
}
