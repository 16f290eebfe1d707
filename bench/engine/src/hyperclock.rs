//! RocksDB's HyperClockCache, by the few functions of `hyperclock.cc`. A page is passed as the
//! pointer to its bytes. All pages of a cache have one length, which the cache's deleter knows. So
//! a hit reads them without another step.
//!
//! The only unsafe code of this program. It relies on the C++ side. That keeps a page from `insert`
//! until it calls `hyperclock_drop` with it, once, and not while there is a handle to it.

#![allow(unsafe_code, reason = "another language's cache")]

use crate::caches::Candidate;
use std::ptr::NonNull;

#[repr(C)]
struct Raw {
    _opaque: [u8; 0],
}

#[repr(C)]
struct Handle {
    _opaque: [u8; 0],
}

// SAFETY: these are the declarations of hyperclock.cc.
unsafe extern "C" {
    fn hyperclock_new(entries: usize, page_bytes: usize) -> *mut Raw;
    fn hyperclock_free(cache: *mut Raw);
    fn hyperclock_lookup(cache: *mut Raw, key: u64, page: *mut *mut u8) -> *mut Handle;
    fn hyperclock_release(cache: *mut Raw, handle: *mut Handle);
    fn hyperclock_insert(cache: *mut Raw, key: u64, page: *mut u8);
}

/// Drops a page the cache has no use for any more.
// SAFETY: the name is this program's own; no other library defines it.
#[unsafe(no_mangle)]
extern "C" fn hyperclock_drop(page: *mut u8, bytes: usize) {
    // SAFETY: the cache gives back what `insert` took out of a box of so many bytes, once.
    drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(page, bytes)) });
}

pub struct HyperClock {
    cache: NonNull<Raw>,
    page_bytes: usize,
}

// SAFETY: RocksDB's caches may be used, and freed, by any thread.
unsafe impl Send for HyperClock {}
// SAFETY: RocksDB's caches may be used by several threads at once.
unsafe impl Sync for HyperClock {}

impl HyperClock {
    pub fn new(entries: usize, page_bytes: usize) -> Self {
        // SAFETY: takes no pointer; what it returns is checked.
        let cache = NonNull::new(unsafe { hyperclock_new(entries, page_bytes) });
        let cache = cache.expect("a deleter for pages of this length (hyperclock.cc)");
        Self { cache, page_bytes }
    }
}

impl HyperClock {
    fn insert_page(&self, key: u64, page: Box<[u8]>) {
        assert_eq!(page.len(), self.page_bytes, "pages of a cache are of one length");
        let page = Box::into_raw(page).cast::<u8>();
        // SAFETY: the cache lives as long as `self`; the page is its own now, and its deleter
        // knows the length.
        unsafe { hyperclock_insert(self.cache.as_ptr(), key, page) };
    }
}

impl Drop for HyperClock {
    fn drop(&mut self) {
        // SAFETY: `new` made it, and no other code frees it. No handle is out: they are of `get`.
        unsafe { hyperclock_free(self.cache.as_ptr()) };
    }
}

/// A handle, until it is dropped.
struct Pin<'a>(&'a HyperClock, NonNull<Handle>);

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is of this cache's look-up and was not released before.
        unsafe { hyperclock_release(self.0.cache.as_ptr(), self.1.as_ptr()) };
    }
}

impl Candidate for HyperClock {
    fn name(&self) -> &'static str {
        "HyperClockCache"
    }
    fn get(&self, key: u64, read: &mut dyn FnMut(&[u8])) -> bool {
        let mut page = std::ptr::null_mut();
        // SAFETY: the cache lives as long as `self`, and `page` may be written.
        let handle = unsafe { hyperclock_lookup(self.cache.as_ptr(), key, &raw mut page) };
        let Some(handle) = NonNull::new(handle) else { return false };
        let pin = Pin(self, handle);
        // SAFETY: a page of so many bytes, as `insert` checked. No thread writes it, and the cache
        // keeps it while `pin` lives.
        read(unsafe { std::slice::from_raw_parts(page, self.page_bytes) });
        drop(pin);
        true
    }
    fn insert(&self, key: u64) {
        self.insert_page(key, vec![1; self.page_bytes].into_boxed_slice());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A found value is the one that was put in under that key, however often it was evicted. No
    /// more entries are held than there is room for.
    #[test]
    fn finds_what_was_put_in() {
        const ROOM: usize = 256;
        let cache = HyperClock::new(ROOM, 64);
        let page = |key: u64| key.to_le_bytes().repeat(8).into_boxed_slice();
        for key in 0..4 * ROOM as u64 {
            cache.insert_page(key, page(key));
            assert!(cache.get(key, &mut |found| assert_eq!(found, &*page(key))));
        }
        let held = (0..4 * ROOM as u64)
            .filter(|&key| cache.get(key, &mut |found| assert_eq!(found, &*page(key))))
            .count();
        assert!((ROOM * 9 / 10..=ROOM).contains(&held), "{held} of {ROOM} are held");
    }
}
