//! Checksums of whole objects, combined from those of their records.
//!
//! A store has one checksum for an object, and a read covers only a part of it. CRCs combine: the
//! CRCs of two pieces and the length of the second give the CRC of both. So each record is summed
//! when it is read, in any order. Once all have been read, their sums give the checksum of the
//! object.
//!
//! This module does no I/O.

use crc_fast::CrcAlgorithm;

/// The algorithm of a checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// CRC-64/NVME: S3 stores it for every object that was uploaded without another checksum.
    Crc64Nvme,
    /// CRC-32C (Castagnoli, iSCSI).
    Crc32c,
}

impl Algorithm {
    fn crc(self) -> CrcAlgorithm {
        match self {
            Self::Crc64Nvme => CrcAlgorithm::Crc64Nvme,
            Self::Crc32c => CrcAlgorithm::Crc32Iscsi,
        }
    }

    /// The checksum of some bytes.
    pub fn of(self, bytes: &[u8]) -> u64 {
        crc_fast::checksum(self.crc(), bytes)
    }
}

/// The checksum of a whole object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum {
    /// Its algorithm.
    pub algorithm: Algorithm,
    /// Its value.
    pub value: u64,
}

/// The sums of the records of one object that were read so far.
#[derive(Debug)]
pub(crate) struct Sums {
    size_bytes: u64,
    record_size_bytes: u64,
    records: Vec<Option<u64>>,
    missing: usize,
}

impl Sums {
    /// How many records an object has.
    pub(crate) fn records_of(size_bytes: u64, record_size_bytes: u64) -> usize {
        usize::try_from(size_bytes.div_ceil(record_size_bytes.max(1))).unwrap_or(usize::MAX)
    }

    /// The sums of an object before its first read.
    pub(crate) fn new(size_bytes: u64, record_size_bytes: u64) -> Self {
        let missing = Self::records_of(size_bytes, record_size_bytes);
        Self { size_bytes, record_size_bytes, records: vec![None; missing], missing }
    }

    /// Adds the sum of a record. For a record that was read twice the later sum counts.
    pub(crate) fn add(&mut self, index: u64, sum: u64) {
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        if let Some(record) = self.records.get_mut(at)
            && record.replace(sum).is_none()
        {
            self.missing -= 1;
        }
    }

    /// How many records the object has.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// The checksum of the object, once all records have been read.
    pub(crate) fn whole(&self, algorithm: Algorithm) -> Option<u64> {
        if self.missing > 0 {
            return None;
        }
        let mut start = 0;
        let mut whole = algorithm.of(&[]);
        for sum in self.records.iter().flatten() {
            let length = self.record_size_bytes.min(self.size_bytes - start);
            whole = crc_fast::checksum_combine(algorithm.crc(), whole, *sum, length);
            start += length;
        }
        Some(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn checksums_are_those_of_the_standards() {
        assert_eq!(Algorithm::Crc64Nvme.of(b"123456789"), 0xae8b_1486_0a79_9888);
        assert_eq!(Algorithm::Crc32c.of(b"123456789"), 0xe306_9283);
    }

    proptest! {
        #[test]
        fn sums_of_records_in_any_order_combine_to_the_objects_checksum(
            body in proptest::collection::vec(any::<u8>(), 1..2000),
            record_size in 1_usize..300,
            order in any::<u64>(),
        ) {
            for algorithm in [Algorithm::Crc64Nvme, Algorithm::Crc32c] {
                let mut sums = Sums::new(body.len() as u64, record_size as u64);
                let mut records: Vec<(u64, &[u8])> = (0..).zip(body.chunks(record_size)).collect();
                fastrand::Rng::with_seed(order).shuffle(&mut records);
                let (last, first) = records.split_last().unwrap();
                for (index, bytes) in first {
                    sums.add(*index, algorithm.of(bytes));
                    sums.add(*index, algorithm.of(bytes));
                }
                prop_assert_eq!(sums.whole(algorithm), None);
                sums.add(u64::MAX, 0);
                sums.add(last.0, algorithm.of(last.1));
                prop_assert_eq!(sums.whole(algorithm), Some(algorithm.of(&body)));
            }
        }
    }
}
