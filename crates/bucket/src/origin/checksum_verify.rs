//! Verifies objects: compares the checksum of what was read with the one that the store shows.
//!
//! Where the store shows the checksum of an object at its opening, each record that is read is
//! summed up. When all records have been read, their sums are compared ([`crate::checksum`]). The
//! sums belong to one key and ETag, whatever file reads them and in whatever order. Records from
//! the cache are not summed up. So an object of which a part was cached before is not verified.
//!
//! An object with another checksum is *spoilt*. That is logged and counted, and all reads of it
//! fail with `EIO` until it has another ETag or the mount ends. Programs have read its bytes by
//! then: no part of an object can be verified by itself.
//!
//! # Locks
//! One, a leaf. Records are summed up outside it; their sums are combined under it, once for each
//! object.

use crate::checksum::Sums;
use crate::{Checksum, ETag, Object};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Records of all objects together of which sums are kept; some 16 MiB.
const RECORDS_MAX: usize = 1_000_000;
/// The weight of an object besides its records, for its key and tag.
const OBJECT_RECORDS: usize = 16;
/// Spoilt objects that are remembered.
const SPOILT_MAX: usize = 10_000;

/// An object: its key and ETag.
type Id = (Box<str>, Box<str>);

fn id(key: &str, etag: &ETag) -> Id {
    (key.into(), etag.as_str().into())
}

/// Sums of what passes.
#[derive(Debug, Default)]
pub(super) struct ChecksumVerifier {
    table: Mutex<Table>,
    /// Looked at without a lock: there hardly ever is one.
    is_any_spoilt: AtomicBool,
    matched: AtomicU64,
    mismatched: AtomicU64,
}

#[derive(Debug, Default)]
struct Table {
    sums: HashMap<Id, Sums>,
    records: usize,
    spoilt: HashSet<Id>,
}

impl ChecksumVerifier {
    /// A record of an object has passed. What the object's sum is, if it is not what it should be.
    pub(super) fn passed(
        &self,
        object: &Object,
        (checksum, record_size): (Checksum, usize),
        (index, sum): (u64, u64),
    ) -> Option<u64> {
        let id = id(&object.key, object.etag.as_ref()?);
        let mut table = self.table.lock();
        if !table.sums.contains_key(&id) {
            let records = OBJECT_RECORDS + Sums::records_of(object.size_bytes, record_size as u64);
            if records > RECORDS_MAX {
                return None;
            }
            if table.records + records > RECORDS_MAX {
                // Unfinished ones may never be finished.
                (table.records, table.sums) = (0, HashMap::new());
            }
            table.records += records;
            table.sums.insert(id.clone(), Sums::new(object.size_bytes, record_size as u64));
        }
        let sums = table.sums.get_mut(&id)?;
        sums.add(index, sum);
        let whole = sums.whole(checksum.algorithm)?;
        let records = OBJECT_RECORDS + sums.len();
        table.sums.remove(&id);
        table.records -= records;
        if whole == checksum.value {
            self.matched.fetch_add(1, Relaxed);
            return None;
        }
        if table.spoilt.len() >= SPOILT_MAX {
            table.spoilt.clear();
        }
        table.spoilt.insert(id);
        self.is_any_spoilt.store(true, Relaxed);
        self.mismatched.fetch_add(1, Relaxed);
        Some(whole)
    }

    /// Whether an object was found to be another one than the store says.
    pub(super) fn is_corrupt(&self, object: &Object) -> bool {
        let Some(etag) = object.etag.as_ref().filter(|_| self.is_any_spoilt.load(Relaxed)) else {
            return false;
        };
        self.table.lock().spoilt.contains(&id(&object.key, etag))
    }

    pub(super) fn tell(&self, tell: &mut dyn FnMut(&str, u64)) {
        tell("origin_checksums_matched", self.matched.load(Relaxed));
        tell("origin_checksum_mismatches", self.mismatched.load(Relaxed));
    }
}

/// An object whose records are summed up.
pub(super) struct Summing {
    pub(super) object: Object,
    pub(super) checksum: Checksum,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Algorithm;

    #[test]
    fn objects_that_are_never_read_whole_are_bounded_however_small_they_are() {
        let (checked, checksum) =
            (ChecksumVerifier::default(), Checksum { algorithm: Algorithm::Crc32c, value: 0 });
        for number in 0..RECORDS_MAX / OBJECT_RECORDS + 5 {
            let object = Object {
                key: number.to_string(),
                size_bytes: 20,
                etag: Some(ETag::new("\"e\"")),
                modified: ogive_origin::Time { seconds: 0, nanoseconds: 0 },
                mark: None,
                kept: None,
            };
            assert_eq!(checked.passed(&object, (checksum, 10), (0, 0)), None);
            let table = checked.table.lock();
            assert!(table.records >= OBJECT_RECORDS * table.sums.len());
            assert!(
                table.records <= RECORDS_MAX
                    && table
                        .sums
                        .contains_key(&id(&object.key, object.etag.as_ref().expect("it has one"),))
            );
        }
    }
}
