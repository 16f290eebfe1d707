//! The memory of a sublist's entries: chunks that are never moved, and never freed while the cache
//! lives. So a reader without a lock can look at any slot whose number it has.
//!
//! Chunk `n` has 64 * 2^n slots. All zero is a vacant slot, so a chunk costs memory only where
//! slots are used. Pages of vacant slots can be given back to the system: they read as zero
//! afterwards, which is vacant.
//!
//! Chunk `n` of all sublists is one [block](super::blocks), in which they take turns every 512
//! slots. Sublists fill at the same pace. So a large block is filled from its beginning, and can
//! have huge pages without taking memory that is not needed.
#![allow(unsafe_code)]

use super::blocks::{Blocks, CHUNKS, RUN, chunk_len};
use super::entry::Entry;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The slots of one sublist, by number.
pub(crate) struct Slab<K, V> {
    /// Slots from the beginning of one run of this sublist to the next, as a power of two.
    stride_log: u32,
    number: u32,
    /// The first slot of each chunk.
    chunks: [AtomicPtr<Entry<K, V>>; CHUNKS],
    blocks: Arc<Blocks<K, V>>,
}

// SAFETY: a slab is shared between threads as its entries are. Many threads read keys and values
// (Sync). One thread writes them and another drops them (Send). The pointers are to its blocks.
unsafe impl<K: Send + Sync, V: Send + Sync> Send for Slab<K, V> {}
// SAFETY: as above.
unsafe impl<K: Send + Sync, V: Send + Sync> Sync for Slab<K, V> {}

/// The chunk of a slot, and its place in it.
#[inline]
const fn place(id: u32) -> (usize, usize) {
    let first = chunk_len(0) as u64;
    let number = id as u64 + first;
    let log = number.ilog2();
    ((log - first.ilog2()) as usize, (number ^ (1 << log)) as usize)
}

impl<K, V> Slab<K, V> {
    /// For the sublist of this number, one of those that share the blocks.
    pub(crate) fn new(blocks: Arc<Blocks<K, V>>, number: usize) -> Self {
        Self {
            stride_log: RUN.ilog2() + blocks.sublists().ilog2(),
            number: number as u32,
            chunks: std::array::from_fn(|_| AtomicPtr::new(null_mut())),
            blocks,
        }
    }

    /// How many slots, of all sublists, a slot of a chunk is after the first of this sublist.
    #[inline(always)]
    const fn offset(&self, at: usize) -> usize {
        ((at / RUN) << self.stride_log) | (at % RUN)
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
        // where it is until the blocks are dropped.
        Some(unsafe { &*first.add(self.offset(at)) })
    }

    /// The number of a slot of this slab. Looks through the chunks.
    pub(crate) fn number_of(&self, entry: &Entry<K, V>) -> Option<u32> {
        let address = std::ptr::from_ref(entry).addr();
        self.chunks.iter().enumerate().find_map(|(chunk, first)| {
            let first = first.load(Ordering::Acquire);
            let offset = address.wrapping_sub(first.addr()) / size_of::<Entry<K, V>>();
            let (run, within) = (offset >> self.stride_log, offset % (1 << self.stride_log));
            let at = run * RUN + within;
            let here = !first.is_null() && within < RUN && at < chunk_len(chunk);
            here.then(|| (chunk_len(chunk) - chunk_len(0) + at) as u32)
        })
    }

    /// Makes the chunk of a slot, if it is not there. Only under the sublist's lock. Returns
    /// false when there can be no more slots.
    pub(crate) fn provide(&self, id: u32) -> bool {
        let (chunk, _) = place(id);
        let Some(published) = self.chunks.get(chunk) else {
            return false;
        };
        if published.load(Ordering::Relaxed).is_null() {
            let Some(first) = self.blocks.first_of(chunk, self.number as usize) else {
                return false;
            };
            published.store(first, Ordering::Release);
        }
        true
    }

    /// Gives the memory of vacant slots back, as far as whole pages go. Only under the lock,
    /// and all of these slots are vacant.
    pub(crate) fn give_back(&self, ids: Range<u32>) {
        let mut id = ids.start;
        while id < ids.end {
            let (chunk, at) = place(id);
            let run_end = (at / RUN + 1) * RUN;
            let count = (run_end.min(chunk_len(chunk)) - at).min((ids.end - id) as usize);
            let first = self.chunks[chunk].load(Ordering::Relaxed);
            if !first.is_null() {
                self.blocks.grow_by_small_pages(chunk);
                let bytes = size_of::<Entry<K, V>>();
                let start = first.addr() + self.offset(at) * bytes;
                super::pages::give_back(start, count * bytes);
            }
            id += count as u32;
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn slots_stay_where_they_are_and_belong_to_one_sublist() {
        let blocks = Arc::new(Blocks::new(4));
        let [slab, other]: [Slab<u64, ()>; 2] =
            [1, 2].map(|number| Slab::new(Arc::clone(&blocks), number));
        assert!(slab.get(0).is_none());
        let mut seen = Vec::new();
        for id in 0..1000 {
            assert!(slab.provide(id));
            let entry: *const _ = slab.get(id).expect("it was provided");
            seen.push(entry);
            assert!(other.provide(id));
        }
        let distinct: BTreeSet<_> = seen.iter().copied().collect();
        assert_eq!(distinct.len(), 1000);
        for (id, &entry) in seen.iter().enumerate() {
            let now: *const _ = slab.get(id as u32).expect("it stays");
            assert_eq!(now, entry);
            assert!(cfg!(miri) || (entry as usize).is_multiple_of(64), "a line each");
            assert_eq!(
                slab.get(id as u32).and_then(|entry| slab.number_of(entry)),
                Some(id as u32)
            );
            let others = other.get(id as u32).expect("it was provided");
            assert!(!distinct.contains(&std::ptr::from_ref(others)));
            assert_eq!((slab.number_of(others), other.number_of(others)), (None, Some(id as u32)));
        }
        slab.give_back(10..1000);
        assert_eq!(slab.get(999).map(|entry| entry.meta.load().pins()), Some(0));
    }

    /// Pages of a range that are in memory, or swapped out.
    #[cfg(all(target_os = "linux", not(miri)))]
    fn pages_in_use(start: usize, bytes: usize) -> usize {
        use std::os::unix::fs::FileExt;
        let page = rustix::param::page_size();
        let mut entries = vec![0; bytes / page * 8];
        let pagemap = std::fs::File::open("/proc/self/pagemap").expect("Linux has this file");
        pagemap.read_exact_at(&mut entries, (start / page * 8) as u64).expect("one a page");
        // Documentation/admin-guide/mm/pagemap.rst: bits 63 and 62, so the highest of eight bytes.
        entries.iter().skip(7).step_by(8).filter(|&&highest| highest & 0xC0 != 0).count()
    }

    /// Gives back what every second of many sublists has, and then the rest. With `exact` each page
    /// is counted. Otherwise there only have to be fewer in the end, because the kernel may do more
    /// with pages than was asked.
    #[cfg(all(target_os = "linux", not(miri)))]
    fn give_back_one_after_the_other(exact: bool) {
        const SUBLISTS: usize = 64;
        let blocks: Arc<Blocks<u64, ()>> = Arc::new(Blocks::new(SUBLISTS));
        let slabs: Vec<_> = (0..SUBLISTS).map(|n| Slab::new(Arc::clone(&blocks), n)).collect();
        let chunk = 6;
        let ids = (chunk_len(chunk) - chunk_len(0)) as u32..(2 * chunk_len(chunk) - 64) as u32;
        for slab in &slabs {
            for id in ids.clone() {
                assert!(slab.provide(id));
                slab.get(id).expect("it was provided").set_stamp(7);
            }
        }
        let bytes = chunk_len(chunk) * SUBLISTS * size_of::<Entry<u64, ()>>();
        let first = slabs[0].get(ids.start).expect("it was provided");
        let start = std::ptr::from_ref(first).addr();
        let pages = bytes / rustix::param::page_size();
        let in_use = || pages_in_use(start, bytes);
        if RUN * size_of::<Entry<u64, ()>>() < rustix::param::page_size() {
            return; // A page has slots of several sublists, and none is given back.
        }
        let full = in_use();
        assert!(full == pages || !exact, "{full} of {pages}");
        for (half, slab) in slabs.iter().step_by(2).enumerate() {
            slab.give_back(ids.clone());
            let left = pages - (half + 1) * pages / SUBLISTS;
            assert!(!exact || in_use() == left, "{} and not {left}", in_use());
        }
        for slab in slabs.iter().skip(1).step_by(2) {
            assert!(ids.clone().all(|id| slab.get(id).is_some_and(|entry| entry.stamp() == 7)));
            slab.give_back(ids.clone());
        }
        assert!(if exact { in_use() == 0 } else { in_use() < full }, "{} of {full}", in_use());
        // It may be used again.
        let again = slabs[3].get(ids.start).expect("it was provided");
        again.set_stamp(8);
        assert_eq!(again.stamp(), 8);
        assert!(!exact || in_use() == 1, "{}", in_use());
    }

    #[test]
    #[cfg(all(target_os = "linux", not(miri)))]
    fn a_sublist_gives_back_its_own_slots_though_all_share_the_huge_pages() {
        give_back_one_after_the_other(false);
    }

    #[test]
    #[cfg(all(target_os = "linux", not(miri)))]
    fn memory_is_given_back_to_the_last_page() {
        if !crate::skipped::only_nightly("how many pages there are is the kernel's") {
            give_back_one_after_the_other(true);
        }
    }

    #[test]
    fn a_key_may_ask_for_lines_of_its_own() {
        #[repr(align(64))]
        struct Key(#[allow(dead_code, reason = "only its size matters")] [u64; 8]);
        let slab: Slab<Key, ()> = Slab::new(Arc::new(Blocks::new(2)), 1);
        for id in 0..700 {
            assert!(slab.provide(id));
            let entry = std::ptr::from_ref(slab.get(id).expect("it was provided"));
            assert!(cfg!(miri) || entry.addr().is_multiple_of(64));
        }
    }

    #[test]
    fn the_last_slot_has_a_place() {
        assert_eq!(place(0), (0, 0));
        assert_eq!(place(63), (0, 63));
        assert_eq!(place(64), (1, 0));
        assert!(place(u32::MAX - 64).0 < CHUNKS + 1);
    }
}
