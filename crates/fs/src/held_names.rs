//! Bounds the memory of names that programs hold through open directories.
//!
//! Each handle that reads on in a listing holds it, even when the cache has evicted it long ago. In
//! a directory that changes all the time, each handle has a listing of its own. The table of
//! offsets of a directory that is read through grows as it is read. All of these share a part of
//! the cache's size, at least [`LEAST_BYTES`]. Beyond it a directory is read through
//! ([`crate::dir_cookies`]), and a table drops its oldest offsets.
//!
//! `names_held_bytes` in `ogivestats` shows the present size. It is freed with the handles.

use crate::listing::Listing;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The names' share of the cache's maximum.
const SHARE: u64 = 32;
/// The share's least size, however small the cache is: sixteen of the largest listings.
const LEAST_BYTES: u64 = 32 << 20;

/// The memory of all handles' names.
#[derive(Debug)]
pub(crate) struct HeldNames {
    bytes: AtomicU64,
    bytes_max: AtomicU64,
    /// The most that was held since memory was last given back.
    peak_bytes: AtomicU64,
}

impl Default for HeldNames {
    fn default() -> Self {
        Self {
            bytes: AtomicU64::new(0),
            bytes_max: AtomicU64::new(LEAST_BYTES),
            peak_bytes: AtomicU64::new(0),
        }
    }
}

impl HeldNames {
    /// Sets the cache's maximum, in bytes.
    pub(crate) fn set_cache_max(&self, cache_max_bytes: u64) {
        self.bytes_max.store((cache_max_bytes / SHARE).max(LEAST_BYTES), Ordering::Relaxed);
    }

    /// Bytes held now.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether the bound is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes() >= self.bytes_max.load(Ordering::Relaxed)
    }

    /// Holds a listing. `None` if no handle holds it yet and the bound is reached.
    pub(crate) fn hold(self: &Arc<Self>, listing: Arc<Listing>) -> Option<HeldListing> {
        if self.is_full() && !listing.is_held() {
            return None;
        }
        Some(HeldListing::new(listing, self.clone()))
    }

    /// Adds to the held bytes.
    pub(crate) fn add(&self, bytes: u64) {
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.peak_bytes.fetch_max(before + bytes, Ordering::Relaxed);
    }

    /// Whether much memory of names was freed, so that it should be given back; true once.
    pub(crate) fn has_shrunk(&self) -> bool {
        let (now, peak) = (self.bytes(), self.peak_bytes.load(Ordering::Relaxed));
        let has_shrunk = peak >= LEAST_BYTES / 4 && now <= peak / 2;
        let swap = |peak| {
            self.peak_bytes.compare_exchange(peak, now, Ordering::Relaxed, Ordering::Relaxed)
        };
        has_shrunk && swap(peak).is_ok()
    }

    /// Subtracts from the held bytes.
    pub(crate) fn remove(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// A held listing. However many handles hold it, it counts once.
#[derive(Debug)]
pub(crate) struct HeldListing {
    listing: Arc<Listing>,
    held: Arc<HeldNames>,
}

impl HeldListing {
    fn new(listing: Arc<Listing>, held: Arc<HeldNames>) -> Self {
        if listing.is_held_once_more() {
            held.add(listing.size_bytes() as u64);
        }
        Self { listing, held }
    }

    /// Whether both are the same listing.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.listing, &other.listing)
    }
}

impl Clone for HeldListing {
    fn clone(&self) -> Self {
        Self::new(self.listing.clone(), self.held.clone())
    }
}

impl Drop for HeldListing {
    fn drop(&mut self) {
        if self.listing.is_held_once_less() {
            self.held.remove(self.listing.size_bytes() as u64);
        }
    }
}

impl std::ops::Deref for HeldListing {
    type Target = Listing;

    fn deref(&self) -> &Listing {
        &self.listing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_counts_once_however_many_hold_it() {
        let held = Arc::new(HeldNames::default());
        let listing = Arc::new(Listing::of_names(["a", "b"]));
        let size_bytes = listing.size_bytes() as u64;
        let first = held.hold(listing.clone()).unwrap();
        let second = first.clone();
        assert!(first.is(&second) && held.hold(listing.clone()).is_some());
        assert_eq!(held.bytes(), size_bytes);
        drop(first);
        assert_eq!(held.bytes(), size_bytes);
        drop(second);
        assert_eq!(held.bytes(), 0);
    }

    #[test]
    fn memory_is_given_back_once_after_much_was_freed() {
        let held = HeldNames::default();
        held.add(LEAST_BYTES / 8);
        held.remove(LEAST_BYTES / 8);
        assert!(!held.has_shrunk(), "too little was freed");
        held.add(LEAST_BYTES);
        held.remove(LEAST_BYTES / 4);
        assert!(!held.has_shrunk(), "most of it is still held");
        held.remove(LEAST_BYTES / 2);
        assert!(held.has_shrunk() && !held.has_shrunk());
    }

    #[test]
    fn no_further_listing_is_held_when_it_is_full() {
        let held = Arc::new(HeldNames::default());
        let (one, other) = (Listing::of_names(["a"]), Arc::new(Listing::of_names(["b"])));
        let one = held.hold(Arc::new(one)).unwrap();
        held.set_cache_max(1 << 40);
        held.add((1 << 40) / SHARE);
        assert!(held.is_full() && held.hold(other.clone()).is_none());
        assert!(held.hold(one.listing.clone()).is_some(), "it is held already");
        held.remove((1 << 40) / SHARE);
        assert!(held.hold(other).is_some());
    }
}
