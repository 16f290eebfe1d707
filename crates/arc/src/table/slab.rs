//! The memory of a sublist's entries: chunks that are never moved and never freed while the
//! sublist lives, so a reader without a lock can look at any slot it has a number of.
//!
//! Chunk `n` has 64 * 2^n slots; all zero is a vacant slot, so a chunk costs memory only where
//! slots are used, and vacant pages can be given back to the system: they are zero again when
//! they are next read, which is what they say anyway.
#![allow(unsafe_code)]

use super::entry::Entry;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

const FIRST: u32 = 64;
const CHUNKS: usize = 26;

/// Chunks begin at a cache line, which the allocator may have to be helped to.
const LINE: usize = 64;

/// The slots of one sublist, by number.
pub(crate) struct Slab<K, V> {
    /// The first slot of each chunk.
    chunks: [AtomicPtr<Entry<K, V>>; CHUNKS],
    /// What the allocator gave for it.
    blocks: Box<[AtomicPtr<u8>; CHUNKS]>,
}

// SAFETY: a slab is shared between threads as its entries are: keys and values are read by many
// (Sync), and written by one thread and dropped by another (Send). The pointers are its own.
unsafe impl<K: Send + Sync, V: Send + Sync> Send for Slab<K, V> {}
// SAFETY: as above.
unsafe impl<K: Send + Sync, V: Send + Sync> Sync for Slab<K, V> {}

const fn chunk_len(chunk: usize) -> usize {
    (FIRST as usize) << chunk
}

/// The chunk of a slot, and its place in it.
#[inline]
const fn place(id: u32) -> (usize, usize) {
    let number = id as u64 + FIRST as u64;
    let log = number.ilog2();
    ((log - FIRST.ilog2()) as usize, (number ^ (1 << log)) as usize)
}

impl<K, V> Slab<K, V> {
    pub(crate) fn new() -> Self {
        Self {
            chunks: std::array::from_fn(|_| AtomicPtr::new(null_mut())),
            blocks: Box::new(std::array::from_fn(|_| AtomicPtr::new(null_mut()))),
        }
    }

    fn layout(chunk: usize) -> Option<Layout> {
        let bytes = chunk_len(chunk).checked_mul(size_of::<Entry<K, V>>())?.checked_add(LINE)?;
        Layout::from_size_align(bytes, align_of::<Entry<K, V>>().min(16)).ok()
    }

    /// The entry of a slot, if its chunk is there.
    #[inline(always)]
    pub(crate) fn get(&self, id: u32) -> Option<&Entry<K, V>> {
        let (chunk, at) = place(id);
        let first = self.chunks.get(chunk)?.load(Ordering::Acquire);
        if first.is_null() {
            return None;
        }
        // SAFETY: a chunk that is published is initialised, has more than `at` slots, and stays
        // where it is until the slab is dropped.
        Some(unsafe { &*first.add(at) })
    }

    /// The number of a slot of this slab. Looks through the chunks.
    pub(crate) fn number_of(&self, entry: &Entry<K, V>) -> Option<u32> {
        let address = std::ptr::from_ref(entry).addr();
        self.chunks.iter().enumerate().find_map(|(chunk, first)| {
            let first = first.load(Ordering::Acquire);
            let at = address.wrapping_sub(first.addr()) / size_of::<Entry<K, V>>();
            let here = !first.is_null() && at < chunk_len(chunk);
            here.then(|| (chunk_len(chunk) - chunk_len(0) + at) as u32)
        })
    }

    /// Makes the chunk of a slot, if it is not there. Only under the sublist's lock. Returns
    /// false when there can be no more slots.
    pub(crate) fn provide(&self, id: u32) -> bool {
        let (chunk, _) = place(id);
        if chunk >= CHUNKS {
            return false;
        }
        if !self.chunks[chunk].load(Ordering::Relaxed).is_null() {
            return true;
        }
        let Some(layout) = Self::layout(chunk) else {
            return false;
        };
        // SAFETY: the layout has a size.
        let block = unsafe { alloc_zeroed(layout) };
        if block.is_null() {
            handle_alloc_error(layout);
        }
        let skip = block.align_offset(LINE);
        // Under an interpreter the offset may be unknown; the alignment asked for will do.
        let skip = if skip < LINE { skip } else { 0 };
        // SAFETY: the block is LINE bytes longer than its slots.
        let first = unsafe { block.add(skip) }.cast::<Entry<K, V>>();
        #[cfg(any(shuttle, loom))]
        for at in 0..chunk_len(chunk) {
            // SAFETY: the slot is within the block. These builds' atomics are not zero.
            unsafe { first.add(at).write(Entry::vacant()) };
        }
        self.blocks[chunk].store(block, Ordering::Relaxed);
        self.chunks[chunk].store(first, Ordering::Release);
        true
    }

    /// Gives the memory of vacant slots back, as far as whole pages go. Only under the lock,
    /// and all of these slots are vacant.
    pub(crate) fn give_back(&self, ids: Range<u32>) {
        for chunk in 0..CHUNKS {
            let first_id = chunk_len(chunk) as u64 - u64::from(FIRST);
            let end_id = first_id + chunk_len(chunk) as u64;
            let from = u64::from(ids.start).max(first_id);
            let to = u64::from(ids.end).min(end_id);
            let first = self.chunks[chunk].load(Ordering::Relaxed);
            if from < to && !first.is_null() {
                let bytes = size_of::<Entry<K, V>>();
                let start = first as usize + (from - first_id) as usize * bytes;
                super::pages::give_back(start, (to - from) as usize * bytes);
            }
        }
    }
}

impl<K, V> Drop for Slab<K, V> {
    fn drop(&mut self) {
        for chunk in 0..CHUNKS {
            let block = *self.blocks[chunk].get_mut();
            if let Some(layout) = Self::layout(chunk)
                && !block.is_null()
            {
                // SAFETY: it was allocated with this layout, and nobody has the slab any more.
                unsafe { dealloc(block, layout) };
            }
        }
    }
}

#[cfg(all(test, not(shuttle), not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn slots_stay_where_they_are_and_are_next_to_each_other() {
        let slab: Slab<u64, ()> = Slab::new();
        assert!(slab.get(0).is_none());
        let mut seen = Vec::new();
        for id in 0..1000 {
            assert!(slab.provide(id));
            let entry: *const _ = slab.get(id).expect("it was provided");
            seen.push(entry);
        }
        for (id, &entry) in seen.iter().enumerate() {
            let now: *const _ = slab.get(id as u32).expect("it stays");
            assert_eq!(now, entry);
            assert!(cfg!(miri) || (entry as usize).is_multiple_of(LINE), "a line each");
            assert_eq!(
                slab.get(id as u32).and_then(|entry| slab.number_of(entry)),
                Some(id as u32)
            );
        }
        let mut distinct = seen.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 1000);
        slab.give_back(10..1000);
        assert_eq!(slab.get(999).map(|entry| entry.meta.load().pins()), Some(0));
    }

    #[test]
    fn the_last_slot_has_a_place() {
        assert_eq!(place(0), (0, 0));
        assert_eq!(place(63), (0, 63));
        assert_eq!(place(64), (1, 0));
        assert!(place(u32::MAX - 64).0 < CHUNKS + 1);
    }
}
