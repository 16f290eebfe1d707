//! The sampled reads, one by one, from which a miss-ratio curve can be made.
//!
//! A ring of the latest reads, with their numbers. A reader gets a copy and skips the reads that it
//! has seen. So no reader takes a read away from another, and no program has to keep a file open.
//! The log has a lease, like the sampling that it belongs to. The format is
//! `ogive_kstat::sampled_reads`.

use super::LEASE;
use ogive_kstat::sampled_reads::{Entry, HEADER_BYTES, Header};
use std::collections::VecDeque;
use std::time::{Instant, SystemTime};

/// Most reads kept: 1 MiB, or two seconds of sampling.
pub(super) const ENTRIES_MAX: usize = 1 << 16;

/// The latest reads of a sampling.
#[derive(Debug)]
pub(super) struct Log {
    /// Distinguishes it from logs before and after it.
    began_unix_ns: u64,
    until: Instant,
    /// Records that programs had asked for when the log began.
    reads_before: u64,
    /// Number of the first entry.
    first: u64,
    entries: VecDeque<Entry>,
}

impl Log {
    /// `reads` counts the records that programs have asked for since the mount.
    pub(super) fn new(now: Instant, reads: u64) -> Self {
        let began = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self {
            began_unix_ns: u64::try_from(began.as_nanos()).unwrap_or(u64::MAX),
            until: now + LEASE,
            reads_before: reads,
            first: 0,
            entries: VecDeque::new(),
        }
    }

    /// Whether the lease has expired.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        now >= self.until
    }

    /// A record with this hash was read.
    pub(super) fn note(&mut self, hash: u64, bytes: u32, shift: u32) {
        if self.entries.len() == ENTRIES_MAX {
            self.entries.pop_front();
            self.first += 1;
        }
        let shift = u8::try_from(shift).unwrap_or(u8::MAX);
        self.entries.push_back(Entry { hash, bytes, shift });
    }

    /// The contents of the log. Renews the lease.
    pub(super) fn encode(&mut self, now: Instant, reads: u64) -> Vec<u8> {
        self.until = now + LEASE;
        let header = Header {
            sampling: self.began_unix_ns,
            first: self.first,
            next: self.first + self.entries.len() as u64,
            reads: reads.saturating_sub(self.reads_before),
        };
        let mut bytes = Vec::with_capacity(
            HEADER_BYTES + self.entries.len() * ogive_kstat::sampled_reads::ENTRY_BYTES,
        );
        bytes.extend_from_slice(&header.encode());
        self.entries.iter().for_each(|entry| bytes.extend_from_slice(&entry.encode()));
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ogive_kstat::sampled_reads::ENTRY_BYTES;

    fn read(bytes: &[u8]) -> (Header, Vec<Entry>) {
        let (head, rest) = bytes.split_first_chunk::<HEADER_BYTES>().unwrap();
        let (entries, left) = rest.as_chunks::<ENTRY_BYTES>();
        assert!(left.is_empty());
        let entries = entries.iter().map(|entry| Entry::decode(entry).unwrap()).collect();
        (Header::decode(head).unwrap(), entries)
    }

    #[test]
    fn every_reader_sees_the_same_log_with_new_reads_at_its_end() {
        let now = Instant::now();
        let mut log = Log::new(now, 100);
        log.note(7, 4096, 0);
        let (header, entries) = read(&log.encode(now, 101));
        assert_eq!((header.first, header.next, header.reads), (0, 1, 1));
        assert_eq!(entries, [Entry { hash: 7, bytes: 4096, shift: 0 }]);
        assert_eq!(read(&log.encode(now, 101)), (header, entries), "a reader takes nothing away");
        log.note(3, 100, 4);
        let (after, entries) = read(&log.encode(now, 150));
        assert_eq!((after.next, after.reads, after.sampling), (2, 50, header.sampling));
        assert_eq!(entries[1], Entry { hash: 3, bytes: 100, shift: 4 });
    }

    #[test]
    fn the_last_reads_are_kept_and_dropped_ones_leave_a_gap_in_the_numbers() {
        let now = Instant::now();
        let mut log = Log::new(now, 0);
        let all = ENTRIES_MAX as u64 + 10;
        (0..all).for_each(|hash| log.note(hash, 1, 0));
        let (header, entries) = read(&log.encode(now, all));
        assert_eq!((header.first, header.next), (10, all));
        assert_eq!((entries.len(), entries[0].hash), (ENTRIES_MAX, 10));
        assert_eq!(header.place_of(9), None);
        assert!(!log.is_over(now) && log.is_over(now + LEASE));
    }
}
