//! Promise: a hit allocates nothing.
#![cfg(not(shuttle))]
#![allow(clippy::unwrap_used)]

use ogive_arc::policy::PlainArc;
use ogive_arc::{Access, Cache, Kind, Source};
use std::cell::Cell;

/// Counts the calling thread's allocations through the allocator itself.
mod counting {
    use super::Cell;

    thread_local! {
        static COUNT: Cell<u64> = const { Cell::new(0) };
    }

    /// Allocations of this thread so far.
    pub(super) fn allocations() -> u64 {
        COUNT.with(Cell::get)
    }

    #[global_allocator]
    static ALLOCATOR: stats_alloc_shim::Counting = stats_alloc_shim::Counting;

    mod stats_alloc_shim {
        use std::alloc::{GlobalAlloc, Layout, System};

        pub(super) struct Counting;

        // SAFETY: every call is passed on to the system's allocator as it is.
        unsafe impl GlobalAlloc for Counting {
            unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
                super::COUNT.with(|count| count.set(count.get() + 1));
                // SAFETY: the caller's promises are the system allocator's.
                unsafe { System.alloc(layout) }
            }

            unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
                // SAFETY: the caller's promises are the system allocator's.
                unsafe { System.dealloc(pointer, layout) }
            }
        }
    }
}

fn allocated(work: impl FnOnce()) -> u64 {
    let before = counting::allocations();
    work();
    counting::allocations() - before
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocated(|| drop(std::hint::black_box(Box::new(5)))), 1);
}

#[test]
fn a_hit_of_the_cache_allocates_nothing() {
    let cache: Cache<u64, u64> = Cache::builder(1000).sublists(4).build();
    (0..1000).for_each(|key| drop(cache.insert(key, key, 1, Kind::Data, Access::Demand)));
    // The first round promotes, the second hits in MFU.
    for _ in 0..2 {
        let count = allocated(|| {
            for key in 0..1000 {
                let hold = cache.get(&key, Access::Demand).unwrap();
                assert_eq!(*hold.clone(), key);
                let load = || Err::<(u64, u64), ()>(());
                let (_, source) =
                    cache.get_or_load(&key, Kind::Data, Access::Demand, load).unwrap();
                assert_eq!(source, Source::Hit);
            }
        });
        assert_eq!(count, 0);
    }
}

#[test]
fn a_hit_of_the_policy_allocates_nothing() {
    let mut policy = PlainArc::new(1000);
    for key in 0..1000_u64 {
        policy.access(key, 1, Kind::Data);
    }
    let count = allocated(|| {
        for key in (0..1000).chain(0..1000) {
            assert!(policy.access(key, 1, Kind::Data).is_hit());
        }
    });
    assert_eq!(count, 0);
}
