//! Counters by object, from a sample of the records that are read.
//!
//! A record is sampled if the highest bits of a hash of its key are zero: either all of its events
//! are counted, or none. That is the spatial sampling of SHARDS (Waldspurger et al., "Efficient MRC
//! Construction with SHARDS", FAST '15, section 3). It needs no memory for the other records, and
//! preserves how often a record is read again. Each count is scaled by the sampling rate of its
//! time.
//!
//! The rate adapts. A sampling starts with every record. Whenever it would count more than
//! [`SAMPLES_A_SECOND`], it continues with half of the records. So a mount that answers a million
//! hits a second spends some milliseconds of each second on it, and one that answers ten counts
//! exactly.
//!
//! The sampled reads can also be read one by one ([`log`]).
//!
//! The caller holds the lock of a sampling, and passes the time.

mod log;

use self::log::Log;
use crate::record::Version;
use hashbrown::HashMap;
use std::time::{Duration, Instant};

/// How long sampling continues after a program has read it.
pub(crate) const LEASE: Duration = Duration::from_secs(30);
/// Most samples per second, at some hundred nanoseconds each.
const SAMPLES_A_SECOND: u32 = 1 << 15;
/// The lowest rate: one record in 2^20.
const SHIFT_MAX: u32 = 20;
/// Most objects that are counted; beyond it, those with the fewest reads are dropped.
const OBJECTS_MAX: usize = 8192;

/// The counters of an object. All are estimates: each sample is scaled by the rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Records that programs read.
    pub(crate) reads: u64,
    /// Reads whose record had to be loaded.
    pub(crate) misses: u64,
    /// Bytes that came from the origin, read ahead or not.
    pub(crate) origin_bytes: u64,
    /// Bytes that came from the second level.
    pub(crate) second_level_bytes: u64,
}

/// An event of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// With the length of the record.
    Read(u32),
    Miss,
    Origin(u64),
    SecondLevel(u64),
}

/// The outcome for a record that the hash selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Picked {
    Counted,
    /// It was counted, and the mask changes from now on.
    LessFromNowOn,
    /// The lease is over.
    Over,
}

/// The figures of a sampling.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sampled {
    /// Time since the start.
    pub(crate) elapsed: Duration,
    /// One record in this many is sampled now.
    pub(crate) one_in: u64,
    /// The sum of all objects, including the dropped ones.
    pub(crate) total: Counts,
    /// By object.
    pub(crate) counts: HashMap<Version, Counts>,
}

/// A running sampling.
#[derive(Debug)]
pub(crate) struct Sampling {
    began: Instant,
    until: Instant,
    shift: u32,
    /// The start of the current second, and its samples so far.
    second: (Instant, u32),
    total: Counts,
    counts: HashMap<Version, Counts>,
    log: Option<Log>,
}

/// A hash of a record's key. Its bits are as good as random, because versions are keyed hashes.
pub(crate) fn hash(version: Version, index: u64) -> u64 {
    let version = (version >> 64) as u64 ^ version as u64;
    let mixed = version ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // The finalizer of SplitMix64 (Steele et al., OOPSLA '14).
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Counts {
    /// Adds the counters of another object.
    pub(crate) fn add(&mut self, other: &Self) {
        self.reads += other.reads;
        self.misses += other.misses;
        self.origin_bytes += other.origin_bytes;
        self.second_level_bytes += other.second_level_bytes;
    }

    /// Subtracts a part.
    pub(crate) fn sub(&mut self, part: &Self) {
        self.reads = self.reads.saturating_sub(part.reads);
        self.misses = self.misses.saturating_sub(part.misses);
        self.origin_bytes = self.origin_bytes.saturating_sub(part.origin_bytes);
        self.second_level_bytes = self.second_level_bytes.saturating_sub(part.second_level_bytes);
    }

    fn note(&mut self, event: Event, shift: u32) {
        match event {
            Event::Read(_) => self.reads += 1 << shift,
            Event::Miss => self.misses += 1 << shift,
            Event::Origin(bytes) => self.origin_bytes += bytes << shift,
            Event::SecondLevel(bytes) => self.second_level_bytes += bytes << shift,
        }
    }
}

impl Sampling {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            began: now,
            until: now + LEASE,
            shift: 0,
            second: (now, 0),
            total: Counts::default(),
            counts: HashMap::new(),
            log: None,
        }
    }

    /// Whether the lease has expired.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        now >= self.until
    }

    /// A program reads the sampling.
    pub(crate) fn renew(&mut self, now: Instant) {
        self.until = now + LEASE;
    }

    /// The highest bits of a hash, which are zero if its record is sampled.
    pub(crate) fn mask(&self) -> u64 {
        !(u64::MAX >> self.shift)
    }

    /// Counts an event of a record with this hash.
    pub(crate) fn note(
        &mut self,
        hash: u64,
        version: Version,
        event: Event,
        now: Instant,
    ) -> Picked {
        if self.is_over(now) {
            return Picked::Over;
        }
        // A thread may have read the mask before it changed.
        if hash & self.mask() != 0 {
            return Picked::Counted;
        }
        if let Event::Read(bytes) = event {
            self.log.take_if(|log| log.is_over(now));
            if let Some(log) = &mut self.log {
                log.note(hash, bytes, self.shift);
            }
        }
        self.total.note(event, self.shift);
        self.counts.entry(version).or_default().note(event, self.shift);
        if self.counts.len() > OBJECTS_MAX {
            self.forget_half();
        }
        self.second.1 += 1;
        if self.second.1 < SAMPLES_A_SECOND {
            return Picked::Counted;
        }
        let was_fast = now.saturating_duration_since(self.second.0) < Duration::from_secs(1);
        self.second = (now, 0);
        if was_fast && self.shift < SHIFT_MAX {
            self.shift += 1;
            return Picked::LessFromNowOn;
        }
        Picked::Counted
    }

    fn forget_half(&mut self) {
        let mut reads: Vec<u64> = self.counts.values().map(|counts| counts.reads).collect();
        let middle = reads.len() / 2;
        let (_, &mut bound, above) = reads.select_nth_unstable(middle);
        // Of those with as many reads as the median, keep as many as fit.
        let more = above.iter().filter(|reads| **reads > bound).count();
        let mut room = (OBJECTS_MAX / 2).saturating_sub(more);
        self.counts.retain(|_, counts| {
            let takes_room = counts.reads == bound && room > 0;
            room -= usize::from(takes_room);
            counts.reads > bound || takes_room
        });
    }

    /// The last sampled reads, one by one, which are kept from now on. `reads` counts all records
    /// that programs have asked for since the mount.
    pub(crate) fn reads(&mut self, now: Instant, reads: u64) -> Vec<u8> {
        self.log.take_if(|log| log.is_over(now));
        self.log.get_or_insert_with(|| Log::new(now, reads)).encode(now, reads)
    }

    pub(crate) fn sampled(&self, now: Instant) -> Sampled {
        Sampled {
            elapsed: now.saturating_duration_since(self.began),
            one_in: 1 << self.shift,
            total: self.total,
            counts: self.counts.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_mount_is_counted_exactly() {
        let start = Instant::now();
        let mut sampling = Sampling::new(start);
        for read in 0..100_000_u64 {
            let now = start + Duration::from_micros(100 * read);
            let (version, index) = (Version::from(read % 7), read % 100);
            let hash = hash(version, index);
            assert_eq!(sampling.note(hash, version, Event::Read(4096), now), Picked::Counted);
            if read % 7 == 0 {
                sampling.note(hash, version, Event::Origin(10), now);
            }
        }
        let sampled = sampling.sampled(start + Duration::from_secs(10));
        assert_eq!((sampled.one_in, sampled.total.reads), (1, 100_000));
        assert_eq!(sampled.counts.len(), 7);
        assert_eq!(sampled.counts[&1].reads, 14_286);
        assert_eq!(sampled.counts[&0].origin_bytes, 142_860);
        assert_eq!(sampled.counts[&1].origin_bytes, 0);
    }

    /// Two million reads a second of 200,000 records of ten objects, each read as often.
    #[test]
    fn a_fast_mount_is_sampled_and_the_estimates_stay_close() {
        let start = Instant::now();
        let mut sampling = Sampling::new(start);
        let all = 4_000_000_u64;
        let mut counted = 0_u64;
        for read in 0..all {
            let now = start + Duration::from_nanos(500 * read);
            let (version, index) = (Version::from(read % 10), read / 10 % 20_000);
            let hash = hash(version, index);
            if hash & sampling.mask() == 0 {
                counted += 1;
                sampling.note(hash, version, Event::Read(4096), now);
            }
        }
        let sampled = sampling.sampled(start + Duration::from_secs(2));
        assert!(sampled.one_in >= 32, "{} in a second", sampled.one_in);
        // Six times as many until the rate is found, and then one second's worth per second.
        assert!(counted <= 8 * u64::from(SAMPLES_A_SECOND), "{counted} were counted");
        let share = sampled.total.reads as f64 / all as f64;
        assert!((share - 1.0).abs() < 0.1, "{share} of all reads");
        for (version, counts) in &sampled.counts {
            let share = counts.reads as f64 / (all / 10) as f64;
            assert!((share - 1.0).abs() < 0.25, "{share} of the reads of {version}");
        }
    }

    #[test]
    fn objects_that_are_hardly_read_are_dropped() {
        let start = Instant::now();
        let mut sampling = Sampling::new(start);
        let mut note = |object: u64, times: u64| {
            for _ in 0..times {
                // Slow enough for all to be counted.
                sampling.second = (start, 0);
                sampling.note(0, Version::from(object), Event::Read(4096), start);
            }
            assert!(sampling.counts.len() <= OBJECTS_MAX);
        };
        (0..100).for_each(|object| note(object, 5));
        (100..50_000).for_each(|object| note(object, 1));
        let sampled = sampling.sampled(start);
        assert!((0..100).all(|object| sampled.counts[&object].reads == 5));
        assert_eq!(sampled.total.reads, 500 + 49_900, "the total has them all");
        assert_eq!(sampling.note(0, 1, Event::Read(4096), start + LEASE), Picked::Over);
    }

    #[test]
    fn reads_are_kept_one_by_one_while_a_program_asks_for_them() {
        use ogive_kstat::sampled_reads::{ENTRY_BYTES, HEADER_BYTES};
        let start = Instant::now();
        let mut sampling = Sampling::new(start);
        let entries = |bytes: Vec<u8>| (bytes.len() - HEADER_BYTES) / ENTRY_BYTES;
        sampling.note(0, 1, Event::Read(4096), start);
        assert_eq!(entries(sampling.reads(start, 1)), 0, "no program had asked yet");
        sampling.note(0, 1, Event::Miss, start);
        sampling.note(0, 1, Event::Read(4096), start);
        assert_eq!(entries(sampling.reads(start, 2)), 1, "a miss is no read");
        // Another file's reader keeps the sampling running.
        sampling.renew(start + LEASE);
        sampling.note(0, 1, Event::Read(4096), start + LEASE);
        assert!(sampling.log.is_none(), "no program asks any more");
        assert_eq!(entries(sampling.reads(start + LEASE, 3)), 0, "this is a new log");
    }
}
