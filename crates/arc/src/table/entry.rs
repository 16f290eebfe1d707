//! One entry: its word, its key, its value, and its place on a list.
//!
//! The key is there unless the entry is vacant; the value is there while it is live or dead. Both
//! are written and taken out under the sublist's lock, by a thread that has made sure that no other
//! can reach them (see [`meta`](super::meta)).
//!
//! Everything else but the word is read and written under the lock alone. It is in relaxed atomics
//! because that costs nothing and needs no promise. Only `used_in` is read and written by hits,
//! too.
#![allow(unsafe_code)]

use super::meta::Meta;
use crate::policy::duel::rules::{USES_MAX, one_use_more};
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// No entry: the end of a list.
pub(super) const NONE: u32 = u32::MAX;

/// A bit of the byte of uses: the entry is stale.
const STALE: u8 = 1 << 7;

/// One entry. All zero is a vacant one. With a key of 8 bytes it is one cache line.
#[repr(C)]
pub(crate) struct Entry<K, V> {
    pub(crate) meta: Meta,
    value: UnsafeCell<MaybeUninit<Arc<V>>>,
    weight_bytes: AtomicU64,
    stamp: AtomicU64,
    hash: AtomicU64,
    newer: AtomicU32,
    older: AtomicU32,
    used_in: AtomicU16,
    placed_in: AtomicU16,
    uses: AtomicU8,
    key: UnsafeCell<MaybeUninit<K>>,
}

macro_rules! plain {
    ($($(#[doc = $doc:literal])+ $name:ident, $set:ident: $type:ty;)+) => {
        $($(#[doc = $doc])+
        pub(crate) fn $name(&self) -> $type {
            self.$name.load(Relaxed)
        }

        pub(crate) fn $set(&self, value: $type) {
            self.$name.store(value, Relaxed);
        })+
    };
}

impl<K, V> Entry<K, V> {
    plain! {
        /// Weight, in bytes.
        weight_bytes, set_weight_bytes: u64;
        /// When it was put where it is on its list, by the cache's clock.
        stamp, set_stamp: u64;
        /// The next one towards the head; of a vacant entry, the next vacant one.
        newer, set_newer: u32;
        /// The next one towards the tail.
        older, set_older: u32;
        /// The key's hash.
        hash, set_hash: u64;
        /// On MFU: the age in which it was used last.
        used_in, set_used_in: u16;
        /// On MFU: the age it was placed in.
        placed_in, set_placed_in: u16;
    }

    /// Uses since it came in or was given another round, at most three.
    pub(crate) fn uses(&self) -> u8 {
        self.uses.load(Relaxed) & USES_MAX
    }

    /// Whether it was the oldest of MRU and MFU when it went to the window, and has not been used
    /// since.
    pub(crate) fn is_stale(&self) -> bool {
        self.uses.load(Relaxed) & STALE != 0
    }

    pub(crate) fn set_uses(&self, uses: u8, stale: bool) {
        self.uses.store(uses | if stale { STALE } else { 0 }, Relaxed);
    }

    /// Counts a use, after which it is not stale.
    pub(crate) fn count_use(&self) {
        self.set_uses(one_use_more(self.uses()), false);
    }

    /// # Safety
    /// The entry is not vacant, and does not become so while the reference lives: the caller
    /// has the lock, or has pinned it.
    pub(crate) unsafe fn key(&self) -> &K {
        // SAFETY: written before the entry was anything but vacant, and not since.
        unsafe { (*self.key.get()).assume_init_ref() }
    }

    /// # Safety
    /// The entry is live or dead, and does not become vacant while the reference lives: the
    /// caller has the lock, or has pinned it.
    pub(crate) unsafe fn value(&self) -> &Arc<V> {
        // SAFETY: written before the entry became live or dead, and not since.
        unsafe { (*self.value.get()).assume_init_ref() }
    }

    /// # Safety
    /// The entry is vacant and the caller has the lock.
    pub(crate) unsafe fn put_key(&self, key: K) {
        // SAFETY: no thread reads the key of a vacant entry.
        unsafe { (*self.key.get()).write(key) };
    }

    /// # Safety
    /// The entry is loading and the caller has the lock.
    pub(crate) unsafe fn put_value(&self, value: Arc<V>) {
        // SAFETY: no thread reads the value of a loading entry.
        unsafe { (*self.value.get()).write(value) };
    }

    /// # Safety
    /// The caller has made the entry vacant, still has the lock, and calls this for the first time
    /// since.
    pub(crate) unsafe fn take_key(&self) -> K {
        // SAFETY: it was written, is taken once, and no other thread can reach it.
        unsafe { (*self.key.get()).assume_init_read() }
    }

    /// # Safety
    /// As of [`Entry::take_key`], and the entry was live or dead before.
    pub(crate) unsafe fn take_value(&self) -> Arc<V> {
        // SAFETY: it was written, is taken once, and no other thread can reach it.
        unsafe { (*self.value.get()).assume_init_read() }
    }

    /// A vacant one.
    #[cfg(shuttle)]
    pub(super) fn vacant() -> Self {
        Self {
            meta: Meta::new(),
            value: UnsafeCell::new(MaybeUninit::uninit()),
            weight_bytes: AtomicU64::new(0),
            stamp: AtomicU64::new(0),
            newer: AtomicU32::new(0),
            older: AtomicU32::new(0),
            hash: AtomicU64::new(0),
            used_in: AtomicU16::new(0),
            placed_in: AtomicU16::new(0),
            uses: AtomicU8::new(0),
            key: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }
}
