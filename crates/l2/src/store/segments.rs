//! The table of segments: the sequence, key and contents that are expected of each.

use super::Usage;
use crate::cipher::{SegmentKey, SharedKey};
use parking_lot::RwLock;

/// A segment, as far as known. Without a sequence, none of its contents can be trusted.
#[derive(Clone, Default)]
pub(super) struct Segment {
    pub(super) sequence: u64,
    pub(super) key: Option<SharedKey>,
    pub(super) contents: Contents,
}

/// The contents of a segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Contents {
    pub(super) records: u64,
    pub(super) plain_bytes: u64,
    pub(super) stored_bytes: u64,
    pub(super) frequent_bytes: u64,
    pub(super) prefetched_bytes: u64,
    /// Bytes of its summary; 0 while it has none.
    pub(super) summary_bytes: u64,
}

impl Contents {
    pub(super) fn add(&mut self, plain_bytes: u64, stored_bytes: u64, provenance: u8) {
        use crate::format::provenance::{MFU, PREFETCHED};
        self.records += 1;
        self.plain_bytes += plain_bytes;
        self.stored_bytes += stored_bytes;
        self.frequent_bytes += if provenance & MFU == 0 { 0 } else { stored_bytes };
        self.prefetched_bytes += if provenance & PREFETCHED == 0 { 0 } else { stored_bytes };
    }
}

pub(super) struct Segments(RwLock<Vec<Segment>>);

impl Segments {
    pub(super) fn new(count: u64) -> Self {
        Self(RwLock::new(vec![Segment::default(); usize::try_from(count).unwrap_or(0)]))
    }

    /// Sequence and key that records of a segment are sealed with.
    pub(super) fn seal_of(&self, number: u32) -> Option<(u64, SharedKey)> {
        let table = self.0.read();
        let segment = table.get(number as usize)?;
        Some((segment.sequence, segment.key.clone()?))
    }

    /// The segment to write next: one that was never written, or the oldest.
    pub(super) fn oldest(&self) -> Option<(u32, u64)> {
        let table = self.0.read();
        let oldest = table.iter().enumerate().min_by_key(|(_, segment)| segment.sequence);
        oldest.map(|(number, segment)| (number as u32, segment.sequence))
    }

    /// From now on this is expected there.
    pub(super) fn set(&self, number: u32, segment: Segment) {
        if let Some(place) = self.0.write().get_mut(number as usize) {
            *place = segment;
        }
    }

    /// Changes the known contents.
    pub(super) fn update(&self, number: u32, change: impl FnOnce(&mut Contents)) {
        if let Some(segment) = self.0.write().get_mut(number as usize) {
            change(&mut segment.contents);
        }
    }

    pub(super) fn size_bytes(&self) -> u64 {
        let table = self.0.read();
        let keys = table.iter().filter(|segment| segment.key.is_some()).count();
        (table.capacity() * size_of::<Segment>() + keys * SegmentKey::size_bytes()) as u64
    }

    pub(super) fn usage(&self) -> Usage {
        let table = self.0.read();
        let mut usage = Usage { segments: (0, table.len() as u64), ..Usage::default() };
        for segment in table.iter().filter(|segment| segment.sequence != 0) {
            let contents = &segment.contents;
            usage.segments.0 += 1;
            usage.plain_bytes += contents.plain_bytes;
            usage.stored_bytes += contents.stored_bytes;
            usage.frequent_bytes += contents.frequent_bytes;
            usage.prefetched_bytes += contents.prefetched_bytes;
            usage.summary_bytes += contents.summary_bytes;
            usage.summaries += u64::from(contents.summary_bytes > 0);
        }
        usage
    }
}
