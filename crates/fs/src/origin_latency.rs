//! How long the origin takes for a record at present, and so how many records one thread reads.
//!
//! Handing a record over to another thread costs two context switches. That is nothing beside a
//! disk or a network, where as many threads as there are records have them all in flight at once.
//! It is more than the read itself where the record comes out of the origin's own page cache; there
//! one thread reads several. Which of the two holds changes from one moment to the next, so it is
//! measured, record by record.
//!
//! What counts is how long the thread waited for the origin. On a busy machine a thread that waits
//! for a processor takes as long as one that waits for a disk, and more threads would make it
//! worse. The kernel tells the two apart: it counts how often a thread has given up its processor
//! voluntarily.

use nix::sys::resource::{UsageWho, getrusage};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long one thread may be busy with records that others could read meanwhile.
const AT_ONCE: Duration = Duration::from_micros(500);
/// What a record takes that nothing is waited for: copying, at most.
const COPIED: Duration = Duration::from_micros(50);
/// The share that the latest record has in the average.
const WEIGHT: u64 = 8;

/// A recent average in nanoseconds; 0 until there is one. Two that are noted at the same moment may
/// count as one.
#[derive(Debug, Default)]
pub(crate) struct OriginLatency(AtomicU64);

/// The calling thread asks the origin for a record.
#[derive(Debug)]
pub(crate) struct TimedRead {
    since: Instant,
    given_away: Option<i64>,
}

impl TimedRead {
    /// It asks now.
    pub(crate) fn begin() -> Self {
        let given_away = given_away();
        Self { since: Instant::now(), given_away }
    }

    /// Since when.
    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    /// Whether it has given up its processor voluntarily since.
    fn has_waited(&self) -> bool {
        self.given_away.is_none() || self.given_away != given_away()
    }
}

/// How often the calling thread has waited so far, for anything but a processor.
fn given_away() -> Option<i64> {
    getrusage(UsageWho::RUSAGE_THREAD).ok().map(|usage| usage.voluntary_context_switches())
}

impl OriginLatency {
    /// Notes a record that the calling thread has got, after this time.
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

    /// How many records one thread reads, one after the other: between one and `most`. One while
    /// nothing is known.
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
    fn records_out_of_memory_are_read_together_and_slow_ones_each_by_itself() {
        let micros = Duration::from_micros;
        assert_eq!(after([]).records(8), 1, "nothing is known");
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
        // What it did not wait for counts little, however long the machine kept it from running.
        // A stop by a signal, or a page that is fetched, is a wait as well: not each time, though.
        assert!((0..1000).any(|_| records(TimedRead::begin()) == 8));
    }
}
