//! The allocator.
//!
//! A cache that evicts must be able to give memory back. The C library's allocator keeps what lies
//! below the last live allocation of a heap, and records of 128 KiB among small allocations leave
//! it holding most of what was freed. jemalloc purges pages that stay unused for some ten seconds
//! from a thread of its own (`background_threads`), which sleeps while there is nothing to purge.

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;
