//! The number of different keys of a trace and their total weight. Sizes in percent refer to that
//! weight.
//!
//! It is exact while the keys fit into a bounded table. Beyond that, the keys below a hash
//! threshold represent all. The threshold is halved whenever they are too many (Flajolet, "On
//! Adaptive Sampling", 1990). With 4 million kept keys the error is about 0.05%.

use std::hash::BuildHasher as _;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use crate::policy::Request;
use crate::sampling::{rate, sample_hash};

/// Kept keys at most; the table takes 16 bytes each.
const KEYS_MAX: usize = 1 << 22;

/// The count.
#[derive(Debug)]
pub struct Footprint {
    sampled: HashTable<(u64, u64)>,
    hasher: FixedState,
    threshold: u64,
    keys_max: usize,
    kept_bytes: u64,
}

impl Default for Footprint {
    fn default() -> Self {
        Self::with_limit(KEYS_MAX)
    }
}

impl Footprint {
    /// Keeps at most this many keys.
    #[must_use]
    pub fn with_limit(keys_max: usize) -> Self {
        Self {
            sampled: HashTable::new(),
            hasher: FixedState::with_seed(0),
            threshold: u64::MAX,
            keys_max: keys_max.max(1),
            kept_bytes: 0,
        }
    }

    /// Counts the keys of some requests. The weight of a key is that of its first request.
    pub fn add(&mut self, requests: &[Request]) {
        for request in requests {
            if sample_hash(request.key) > self.threshold {
                continue;
            }
            let hash = self.hasher.hash_one(request.key);
            if self.sampled.find(hash, |(key, _)| *key == request.key).is_some() {
                continue;
            }
            let hasher = &self.hasher;
            let entry = (request.key, request.bytes);
            self.sampled.insert_unique(hash, entry, |(key, _)| hasher.hash_one(*key));
            self.kept_bytes = self.kept_bytes.saturating_add(request.bytes);
            while self.sampled.len() > self.keys_max {
                self.halve();
            }
        }
    }

    fn halve(&mut self) {
        self.threshold /= 2;
        let threshold = self.threshold;
        self.sampled.retain(|(key, _)| sample_hash(*key) <= threshold);
        self.kept_bytes = self.sampled.iter().map(|(_, bytes)| *bytes).fold(0, u64::saturating_add);
    }

    /// Number of different keys.
    #[must_use]
    pub fn keys(&self) -> u64 {
        (self.sampled.len() as f64 / rate(self.threshold)).round() as u64
    }

    /// Weight of all different keys, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (self.kept_bytes as f64 / rate(self.threshold)).round() as u64
    }

    /// Whether the numbers are exact.
    #[must_use]
    pub const fn is_exact(&self) -> bool {
        self.threshold == u64::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_footprint_is_exact_while_it_fits_and_estimated_beyond() {
        let requests: Vec<Request> =
            (0..60_000_u64).map(|n| Request::new(n % 20_000, 1 + n % 20_000 % 3)).collect();
        let bytes: u64 = (0..20_000_u64).map(|key| 1 + key % 3).sum();
        let mut exact = Footprint::default();
        exact.add(&requests);
        assert_eq!((exact.keys(), exact.bytes(), exact.is_exact()), (20_000, bytes, true));
        let mut sampled = Footprint::with_limit(4000);
        sampled.add(&requests);
        assert!(!sampled.is_exact());
        assert!(sampled.keys().abs_diff(20_000) < 1000, "{}", sampled.keys());
        assert!(sampled.bytes().abs_diff(bytes) < 2000, "{}", sampled.bytes());
    }
}
