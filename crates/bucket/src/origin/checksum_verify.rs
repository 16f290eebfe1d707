//! Verifies objects: compares the checksum of the bytes that were read with the one that the store
//! reports.
//!
//! If the store reports a checksum at the open of an object, each record that is read is summed.
//! Once all records have been read, their sums are combined and compared ([`crate::checksum`]). The
//! sums belong to a key and an ETag, so files may read the records in any order. Records from the
//! cache are not summed: an object with a cached part is not verified.
//!
//! An object with a wrong checksum is *spoilt*. This is logged and counted. All reads of the object
//! fail with `EIO` until it has another ETag or the mount ends. By then programs have read its
//! bytes: a part of an object cannot be verified by itself.
//!
//! # Locks
//! One, a leaf. Records are summed outside the lock. Their sums are combined under it, once for
//! each object.

use crate::checksum::Sums;
use crate::{Checksum, ETag, Object};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// How many records of all objects have sums in memory; some 16 MiB.
const RECORDS_MAX: usize = 1_000_000;
/// The weight of an object in addition to its records, for its key and ETag.
const OBJECT_RECORDS: usize = 16;
/// How many spoilt objects are remembered.
const SPOILT_MAX: usize = 10_000;

/// An object: its key and ETag.
type Id = (Box<str>, Box<str>);

fn id(key: &str, etag: &ETag) -> Id {
    (key.into(), etag.as_str().into())
}

/// The sums of the records that were read.
#[derive(Debug, Default)]
pub(super) struct ChecksumVerifier {
    table: Mutex<Table>,
    /// Read without a lock, since spoilt objects are rare.
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
    /// Adds the sum of a record. Returns the object's checksum if it is complete and wrong.
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
                // The unfinished ones may never be finished.
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

    /// Whether an object was found to be spoilt.
    pub(super) fn is_corrupt(&self, object: &Object) -> bool {
        let Some(etag) = object.etag.as_ref().filter(|_| self.is_any_spoilt.load(Relaxed)) else {
            return false;
        };
        self.table.lock().spoilt.contains(&id(&object.key, etag))
    }

    pub(super) fn report(&self, report: &mut dyn FnMut(&str, u64)) {
        report("origin_checksums_matched", self.matched.load(Relaxed));
        report("origin_checksum_mismatches", self.mismatched.load(Relaxed));
    }
}

/// An object whose records are summed.
pub(super) struct Summing {
    pub(super) object: Object,
    pub(super) checksum: Checksum,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Algorithm;

    #[test]
    fn partly_read_objects_are_bounded_however_small_they_are() {
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
