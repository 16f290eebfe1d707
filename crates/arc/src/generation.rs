//! Forgetting all entries of one object at once.
//!
//! Put a generation into the key. To forget everything about the object, advance its generation.
//! Keys of the old generation are never asked for again, and their entries age out. That is one
//! addition, however many entries there are. A load in flight for an old key ends under the old
//! key.

use std::sync::atomic::{AtomicU64, Ordering};

/// The generation of one object.
///
/// ```
/// use ogive_arc::{Access, Cache, Generation, Kind};
///
/// let cache: Cache<(u64, u64, u64), &str> = Cache::new(1 << 20);
/// let object = 7;
/// let generation = Generation::default();
/// cache.insert((object, generation.current(), 0), "old", 4096, Kind::Data, Access::Demand);
/// generation.advance();
/// assert!(cache.get(&(object, generation.current(), 0), Access::Demand).is_none());
/// ```
#[derive(Debug, Default)]
pub struct Generation(AtomicU64);

impl Generation {
    /// The generation to make keys with.
    #[must_use]
    pub fn current(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Leaves all keys made so far behind. Returns the new generation.
    pub fn advance(&self) -> u64 {
        self.0.fetch_add(1, Ordering::AcqRel) + 1
    }
}
