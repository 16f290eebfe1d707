//! Records the reads of a mount: the file `trace` of the control directory.
//!
//! A program that opens the file starts a recording, reads records out of it, and ends it by
//! closing the file. Only one recording runs at a time. Without one, nothing is called here
//! ([`crate::observers`]). Each record read goes into a ring of bounded size, under a leaf lock.
//! When the ring is full, records are counted instead, and the trace has the count in their place.
//! The format is `ogive_kstat::trace`.
//!
//! Reads that the kernel's page cache answers never reach this process and are not recorded.

use crate::record::Version;
use ogive_kstat::trace::{Access, Event, HEADER_BYTES, Header, Kind, RECORD_BYTES};
use ogive_origin::Errno;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::time::{Instant, SystemTime};

/// Most records that wait to be read: 2 MiB. With 100 ms between two reads, that is 650,000 a
/// second.
const RING_RECORDS_MAX: usize = 1 << 16;

/// The recording of a mount.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    /// A leaf lock.
    ring: Mutex<Option<Ring>>,
}

#[derive(Debug)]
struct Ring {
    start: Instant,
    header: Option<Header>,
    waiting: VecDeque<Event>,
    dropped: u64,
}

impl Recording {
    /// Starts a recording.
    ///
    /// # Errors
    /// `EBUSY` if one is running.
    pub(crate) fn start(&self, record_size_bytes: u64) -> Result<(), Errno> {
        let mut ring = self.ring.lock();
        if ring.is_some() {
            return Err(Errno::BUSY);
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let header = Header {
            start_unix_ns: u64::try_from(now.as_nanos()).unwrap_or(u64::MAX),
            record_size_bytes: u32::try_from(record_size_bytes).unwrap_or(u32::MAX),
        };
        *ring = Some(Ring {
            start: Instant::now(),
            header: Some(header),
            waiting: VecDeque::new(),
            dropped: 0,
        });
        Ok(())
    }

    /// Ends the recording; reads that were not taken out are lost.
    pub(crate) fn stop(&self) {
        *self.ring.lock() = None;
    }

    /// Records a read, if a recording is running.
    pub(crate) fn note(&self, version: Version, index: u64, bytes: usize, access: Access) {
        let mut ring = self.ring.lock();
        // It may have ended meanwhile.
        let Some(ring) = ring.as_mut() else { return };
        if ring.waiting.len() >= RING_RECORDS_MAX {
            ring.dropped += 1;
            return;
        }
        let time_ns = ring.time_ns();
        if ring.dropped > 0 {
            let reads = std::mem::take(&mut ring.dropped);
            ring.waiting.push_back(Event::Dropped { time_ns, reads });
        }
        ring.waiting.push_back(Event::Read {
            time_ns,
            // Both halves, because neither alone is unique.
            object: (version >> 64) as u64 ^ version as u64,
            index,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            kind: Kind::Data,
            access,
        });
    }

    /// Takes out whole records, at most this many bytes; possibly none.
    pub(crate) fn take(&self, length_bytes: u32) -> Vec<u8> {
        let mut ring = self.ring.lock();
        let Some(ring) = ring.as_mut() else { return Vec::new() };
        let mut room = length_bytes as usize;
        let mut bytes = Vec::new();
        if room >= HEADER_BYTES
            && let Some(header) = ring.header.take()
        {
            bytes.extend_from_slice(&header.encode());
            room -= HEADER_BYTES;
        }
        let count = (room / RECORD_BYTES).min(ring.waiting.len());
        bytes.reserve(count * RECORD_BYTES);
        ring.waiting.drain(..count).for_each(|event| bytes.extend_from_slice(&event.encode()));
        if count < room / RECORD_BYTES && ring.dropped > 0 {
            let reads = std::mem::take(&mut ring.dropped);
            let time_ns = ring.time_ns();
            bytes.extend_from_slice(&Event::Dropped { time_ns, reads }.encode());
        }
        bytes
    }
}

impl Ring {
    fn time_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(bytes: &[u8]) -> Vec<Event> {
        assert_eq!(bytes.len() % RECORD_BYTES, 0);
        bytes.chunks(RECORD_BYTES).map(|b| Event::decode(b.try_into().unwrap()).unwrap()).collect()
    }

    #[test]
    fn records_read_during_a_recording_come_out_once() {
        let recording = Recording::default();
        recording.note(1, 1, 1, Access::Demand);
        assert!(recording.take(4096).is_empty());
        recording.start(131_072).unwrap();
        assert_eq!(recording.start(131_072), Err(Errno::BUSY));
        recording.note(7 << 64 | 3, 5, 100, Access::Demand);
        recording.note(9, 6, 200, Access::Prefetch);
        // Room for the header and one record.
        let first = recording.take(80);
        let header = Header::decode(first[..HEADER_BYTES].try_into().unwrap()).unwrap();
        assert_eq!(header.record_size_bytes, 131_072);
        let first = events(&first[HEADER_BYTES..]);
        let Event::Read { object: 4, index: 5, bytes: 100, access: Access::Demand, .. } = first[0]
        else {
            panic!("{first:?}");
        };
        let second = events(&recording.take(4096));
        assert!(matches!(second[..], [Event::Read { object: 9, access: Access::Prefetch, .. }]));
        assert!(recording.take(4096).is_empty());
        recording.stop();
        assert!(recording.take(4096).is_empty());
        recording.start(4096).unwrap();
    }

    #[test]
    fn reads_dropped_by_a_full_ring_are_counted_in_their_place() {
        let recording = Recording::default();
        recording.start(4096).unwrap();
        let (extra, all) = (10, RING_RECORDS_MAX as u64);
        (0..all + extra).for_each(|index| recording.note(1, index, 1, Access::Demand));
        let mut bytes = Vec::new();
        loop {
            let taken = recording.take(1 << 20);
            if taken.is_empty() {
                break;
            }
            bytes.extend(taken);
        }
        let events = events(&bytes[HEADER_BYTES..]);
        assert_eq!(events.len() as u64, all + 1);
        assert!(matches!(events.last(), Some(Event::Dropped { reads: 10, .. })));
        // After that the ring takes records again.
        recording.note(1, 0, 1, Access::Demand);
        assert_eq!(recording.take(4096).len(), RECORD_BYTES);
    }
}
