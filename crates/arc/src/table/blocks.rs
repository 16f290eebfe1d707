//! The memory of all sublists' slots: one block for each chunk, in runs of 512 slots that the
//! sublists take in turn.
//!
//! A block is zeroed memory that the system has not backed yet. Large blocks ask for huge pages:
//! without them, looking up an entry among a million costs more for the page than for the entry.
//! All sublists fill a block at nearly the same pace. So what is taken before it is needed is two
//! or three huge pages, whatever the size of the cache.
//!
//! Once a part of a block has been given back, the block grows by small pages. Otherwise the
//! kernel's own thread (khugepaged) would find the holes and fill them again.
//!
//! A block is made once, by the first sublist that needs it, and stays until the cache is dropped.
#![allow(unsafe_code)]

use super::entry::Entry;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Chunks a sublist can have.
pub(super) const CHUNKS: usize = 26;

/// Slots of a sublist that lie side by side.
pub(super) const RUN: usize = 512;

/// Runs begin at a cache line, which the allocator may have to be helped to.
const LINE: usize = 64;

/// A huge page of the processors that this runs on, in bytes. Where it is larger, none is used.
const HUGE_BYTES: usize = 2 << 20;

/// A block is large, and made of huge pages, if it has at least this many.
const HUGE_PAGES_MIN: usize = 4;

/// Slots of a chunk.
pub(super) const fn chunk_len(chunk: usize) -> usize {
    64 << chunk
}

struct Block<K, V> {
    /// The memory from the allocator, and where the slots begin in it.
    start: *mut u8,
    layout: Layout,
    first: *mut Entry<K, V>,
    bytes: usize,
    /// It asks for huge pages.
    huge: AtomicBool,
}

/// The blocks of a cache.
pub(crate) struct Blocks<K, V> {
    of: [OnceLock<Block<K, V>>; CHUNKS],
    sublists: usize,
    entries: PhantomData<Entry<K, V>>,
}

// SAFETY: only the blocks have this memory, and they hand it out slot by slot. The contents of a
// slot are shared between threads as by its slab.
unsafe impl<K: Send + Sync, V: Send + Sync> Send for Blocks<K, V> {}
// SAFETY: as above.
unsafe impl<K: Send + Sync, V: Send + Sync> Sync for Blocks<K, V> {}

impl<K, V> Blocks<K, V> {
    /// For this many sublists, a power of two.
    pub(crate) fn new(sublists: usize) -> Self {
        debug_assert!(sublists.is_power_of_two(), "sublists are chosen by bits of the hash");
        Self { of: std::array::from_fn(|_| OnceLock::new()), sublists, entries: PhantomData }
    }

    pub(super) const fn sublists(&self) -> usize {
        self.sublists
    }

    /// The first slot of a sublist's chunk. Nothing, if there can be no such chunk.
    pub(super) fn first_of(&self, chunk: usize, sublist: usize) -> Option<*mut Entry<K, V>> {
        let slots = chunk_len(chunk).checked_mul(self.sublists)?;
        let bytes = slots.checked_mul(size_of::<Entry<K, V>>())?;
        let align = if bytes >= HUGE_PAGES_MIN * HUGE_BYTES { HUGE_BYTES } else { LINE };
        // The layout does not ask for this alignment: the system's allocator would then zero the
        // memory itself.
        let layout = Layout::from_size_align(bytes.checked_add(align)?, 16).ok()?;
        let block = self.of.get(chunk)?.get_or_init(|| Block::new(layout, align, bytes));
        // SAFETY: the sublist's first run lies within the block, as all runs before it do.
        Some(unsafe { block.first.add(sublist * RUN.min(chunk_len(chunk))) })
    }

    /// Has a chunk grow by small pages from now on.
    pub(super) fn grow_by_small_pages(&self, chunk: usize) {
        if let Some(block) = self.of.get(chunk).and_then(OnceLock::get) {
            block.grow_by_small_pages();
        }
    }
}

impl<K, V> Block<K, V> {
    fn new(layout: Layout, align: usize, bytes: usize) -> Self {
        const { assert!(align_of::<Entry<K, V>>() <= LINE, "slots begin at a line") };
        // SAFETY: the layout has a size.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            handle_alloc_error(layout);
        }
        let skip = start.align_offset(align);
        // Under an interpreter the offset may be unknown; the alignment asked for will do.
        let skip = if skip < align { skip } else { 0 };
        // SAFETY: the block is `align` bytes longer than its slots.
        let first = unsafe { start.add(skip) }.cast::<Entry<K, V>>();
        #[cfg(shuttle)]
        for at in 0..bytes / size_of::<Entry<K, V>>() {
            // SAFETY: the slot is within the block. These builds' atomics are not zero.
            unsafe { first.add(at).write(Entry::vacant()) };
        }
        let huge = align == HUGE_BYTES;
        if huge {
            super::pages::ask_for_huge_pages(first.addr(), bytes, true);
        }
        Self { start, layout, first, bytes, huge: AtomicBool::new(huge) }
    }

    fn grow_by_small_pages(&self) {
        if self.huge.load(Relaxed) && self.huge.swap(false, Relaxed) {
            super::pages::ask_for_huge_pages(self.first.addr(), self.bytes, false);
        }
    }
}

impl<K, V> Drop for Block<K, V> {
    fn drop(&mut self) {
        // The next owner of this memory has not asked for huge pages.
        self.grow_by_small_pages();
        // SAFETY: it was allocated with this layout, and this is the last reference to the blocks.
        // The contents of the slots have been taken out.
        unsafe { dealloc(self.start, self.layout) };
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn sublists_take_turns_in_a_block_and_large_ones_begin_at_a_huge_page() {
        let blocks: Blocks<u64, ()> = Blocks::new(8);
        let address = |chunk, sublist| blocks.first_of(chunk, sublist).map(|first| first.addr());
        let slot = size_of::<Entry<u64, ()>>();
        for (chunk, run) in [(0, 64), (2, 256), (3, 512), (5, 512)] {
            for sublist in 0..8 {
                let first = address(chunk, 0).map(|first| first + sublist * run * slot);
                assert_eq!(address(chunk, sublist), first);
            }
        }
        if !cfg!(miri) {
            // 8 times 2^15 slots of 64 bytes: 16 MiB, of which nothing is taken yet.
            let large = blocks.first_of(9, 3).map(|first| first.addr());
            assert_eq!(large.map(|first| first % HUGE_BYTES), Some(3 * RUN * slot));
        }
        assert_eq!(address(CHUNKS, 0), None);
    }
}
