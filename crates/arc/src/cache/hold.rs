//! A hold: a pin on an entry, and the way to its value.
//!
//! While an entry is pinned, its slot keeps its key and its value, and the core of the cache stays.
//! A live entry's core stays because the cache is there: a cache that ends makes its entries dead
//! first. A dead entry's core stays because it has a keeper for each dead entry.
//!
//! So a hold is two pointers, without a count of its own. The sublist and the slot of an entry
//! follow from them. They are needed only when the last pin of a parked, removed or demoted entry
//! is released.
#![allow(unsafe_code)]

use super::core::Core;
use crate::table::{Entry, Sublist, Word};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

/// A claim on an entry of a [`Cache`](crate::Cache). While there is one, the entry is not evicted.
/// An eviction that meets it takes it off its list, and the last release puts it back at the head.
///
/// The value stays what it was when the hold was taken, whatever happens to the key. An entry that
/// is removed or replaced while it is held is freed with its last hold. Cloning takes another hold.
///
/// Taking, cloning and dropping a hold write the entry's own line and nothing else. The last
/// release takes the sublist's lock only if the entry was parked, removed or demoted.
pub struct Hold<K, V> {
    entry: NonNull<Entry<K, V>>,
    core: NonNull<Core<K, V>>,
    /// A hold may drop the core: the last hold of a cache that has gone does.
    owns: PhantomData<Arc<Core<K, V>>>,
}

// SAFETY: a hold gives out `&V`, and its drop may drop a key and a value, like an `Arc` of both.
// The pointers lead to data that threads share anyway.
unsafe impl<K: Send + Sync, V: Send + Sync> Send for Hold<K, V> {}
// SAFETY: as above.
unsafe impl<K: Send + Sync, V: Send + Sync> Sync for Hold<K, V> {}

impl<K, V> Hold<K, V> {
    /// For a caller that has pinned this entry of the cache. The entry is live or dead, or will be.
    #[inline(always)]
    pub(crate) fn of(core: &Core<K, V>, entry: &Entry<K, V>) -> Self {
        let (entry, core) = (NonNull::from(entry), NonNull::from(core));
        Self { entry, core, owns: PhantomData }
    }

    /// Pins the entry of a slot if it is live; returns its word before.
    #[inline(always)]
    pub(crate) fn pin(core: &Core<K, V>, sublist: &Sublist<K, V>, id: u32) -> Option<(Self, Word)> {
        let entry = sublist.entry(id)?;
        let word = entry.meta.pin_live()?;
        Some((Self::of(core, entry), word))
    }

    #[inline(always)]
    pub(crate) fn entry(&self) -> &Entry<K, V> {
        // SAFETY: slots stay while the core does, and the core stays while there is a pin.
        unsafe { self.entry.as_ref() }
    }

    #[inline]
    fn core(&self) -> &Core<K, V> {
        // SAFETY: the core stays while there is a pin, see above.
        unsafe { self.core.as_ref() }
    }

    /// The key of the entry.
    #[inline]
    pub(crate) fn key(&self) -> &K {
        // SAFETY: the entry is pinned and live or dead.
        unsafe { self.entry().key() }
    }

    /// The value, without the claim on its entry. It lives as long as there is a reference to it.
    /// Its bytes are not counted once the entry has left the cache.
    #[must_use]
    #[inline]
    pub fn value(&self) -> &Arc<V> {
        // SAFETY: the entry is pinned and live or dead.
        unsafe { self.entry().value() }
    }
}

impl<K, V> Deref for Hold<K, V> {
    type Target = V;

    #[inline]
    fn deref(&self) -> &V {
        self.value()
    }
}

impl<K, V> Clone for Hold<K, V> {
    fn clone(&self) -> Self {
        self.entry().meta.pin_again();
        let Self { entry, core, owns } = *self;
        Self { entry, core, owns }
    }
}

impl<K, V> Drop for Hold<K, V> {
    #[inline(always)]
    fn drop(&mut self) {
        // Looked at before the pin goes: after it the core may be gone.
        let over = self.core().is_over();
        if !self.entry().meta.unpin(over) {
            release(self.core, self.entry);
        }
    }
}

/// Lets the last pin go under the lock. The core may go with it when this returns, so no caller may
/// have a reference to it.
#[cold]
#[inline(never)]
fn release<K, V>(core: NonNull<Core<K, V>>, entry: NonNull<Entry<K, V>>) {
    // SAFETY: the core and its slots stay while there is a pin, and there is this one.
    let (held, entry) = unsafe { (core.as_ref(), entry.as_ref()) };
    let core = held.this.upgrade().expect("a pin keeps the core");
    let sublist = core.sublist_of(entry.hash());
    let id = sublist.slot_of(entry).expect("a held entry is in its sublist");
    core.release(sublist, id);
}

impl<K, V: fmt::Debug> fmt::Debug for Hold<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hold").field(self.value()).finish()
    }
}
