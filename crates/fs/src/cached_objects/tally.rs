//! Bytes in the cache by version, in bounded memory.
//!
//! Up to [`OBJECTS_MAX`] objects everything is exact. Beyond twice as many, the objects with the
//! fewest bytes are dropped. This follows the counting of frequent items in little memory (Metwally
//! et al., "Efficient Computation of Frequent and Top-k Elements in Data Streams", ICDT '05). Here
//! the loss is bounded instead of added. The total is always exact.

use super::Figures;
use crate::record::Version;
use hashbrown::HashMap;
use ogive_arc::List;

/// Objects that are kept when there are too many.
const OBJECTS_MAX: usize = 1 << 16;

/// The resident bytes of an object, by list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Resident {
    pub(super) records: u64,
    pub(super) mru_bytes: u64,
    pub(super) mfu_bytes: u64,
}

impl Resident {
    pub(super) fn bytes(&self) -> u64 {
        self.mru_bytes + self.mfu_bytes
    }

    pub(super) fn note(&mut self, list: List, weight_bytes: u64) {
        self.records += 1;
        match list {
            List::Mru => self.mru_bytes += weight_bytes,
            List::Mfu => self.mfu_bytes += weight_bytes,
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.records += other.records;
        self.mru_bytes += other.mru_bytes;
        self.mfu_bytes += other.mfu_bytes;
    }

    pub(super) fn sub(&mut self, part: &Self) {
        self.records = self.records.saturating_sub(part.records);
        self.mru_bytes = self.mru_bytes.saturating_sub(part.mru_bytes);
        self.mfu_bytes = self.mfu_bytes.saturating_sub(part.mfu_bytes);
    }
}

/// The resident bytes, by version.
#[derive(Debug, Default)]
pub(super) struct Tally {
    objects: HashMap<Version, Figures>,
    total: Resident,
    undercount_max_bytes: u64,
}

impl Tally {
    pub(super) fn add(&mut self, version: Version, list: List, weight_bytes: u64) {
        self.total.note(list, weight_bytes);
        self.objects.entry(version).or_default().resident.note(list, weight_bytes);
        if self.objects.len() > 2 * OBJECTS_MAX {
            self.drop_half();
        }
    }

    fn drop_half(&mut self) {
        let mut bytes: Vec<u64> =
            self.objects.values().map(|figures| figures.resident.bytes()).collect();
        let (_, &mut bound, above) = bytes.select_nth_unstable(OBJECTS_MAX);
        let more = above.iter().filter(|bytes| **bytes > bound).count();
        let mut room = OBJECTS_MAX.saturating_sub(more);
        self.objects.retain(|_, figures| {
            let bytes = figures.resident.bytes();
            let takes_room = bytes == bound && room > 0;
            room -= usize::from(takes_room);
            bytes > bound || takes_room
        });
        // No dropped object had more, and each time the same one may have been dropped.
        self.undercount_max_bytes += bound;
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    /// All records, including those of dropped objects.
    pub(super) fn total(&self) -> Resident {
        self.total
    }

    /// The most bytes of an object that may be missing.
    pub(super) fn undercount_max_bytes(&self) -> u64 {
        self.undercount_max_bytes
    }

    pub(super) fn into_objects(self) -> HashMap<Version, Figures> {
        self.objects
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_objects_stay_and_at_most_the_stated_bytes_are_missing() {
        let mut tally = Tally::default();
        let all = 3 * OBJECTS_MAX as u64;
        for object in 0..all {
            tally.add(Version::from(object), List::Mru, 100);
            if object % 1000 == 0 {
                // One of a few large objects, which arrive in small pieces.
                tally.add(Version::from(all + object / 1000 % 5), List::Mfu, 5000);
            }
        }
        assert!(tally.len() <= 2 * OBJECTS_MAX);
        let large = 1 + (all - 1) / 1000;
        assert_eq!(tally.total().records, all + large);
        assert_eq!(tally.total().bytes(), 100 * all + 5000 * large);
        let missing = tally.undercount_max_bytes();
        assert!((100..5000).contains(&missing), "{missing}");
        let objects = tally.into_objects();
        for object in 0..5 {
            let bytes = objects[&Version::from(all + object)].resident.mfu_bytes;
            let real = 5000 * (large / 5 + u64::from(object < large % 5));
            assert!(bytes <= real && real - bytes <= missing, "{bytes} of {real}");
        }
    }
}
