//! The allocator: its settings at the start of the process, and returning memory.
//!
//! A cache that evicts must be able to return memory. The C library's allocator keeps everything
//! below the last live allocation of a heap. With records of 128 KiB among small allocations it
//! keeps most of the freed memory. The allocator here is jemalloc, which keeps freed pages apart,
//! uses them again first, and returns them on request. After each shrink of the cache, the file
//! system calls [`release_memory`]. Background threads of jemalloc would do so by the clock. They
//! are off, because an idle mount has no wake-ups.
//!
//! All threads share one arena. By default jemalloc has eight of them on two processors. A record
//! freed by one thread may then lie in another's arena when the next record is loaded. A cache of
//! 100 MiB under random misses then took 161 to 180 MiB; with one arena it takes 114, at the same
//! speed.
//!
//! Each thread has a cache for small allocations, which keeps up to 200 freed ones of each size by
//! default. They count as allocated, and their runs of pages stay. The kernel forgets inodes in any
//! order, so these caches held a third of the memory after a prune of 100,000 inodes. With 16 of
//! each size they hold a twentieth. The price is some CPU. Listing 50,000 files with their
//! attributes took 6 to 23% more (medians of three rounds, with overlapping spreads).
//!
//! A mount's memory grows by huge pages: [`huge_pages`] configures the arena.
//!
//! This module has no state and no lock of its own. jemalloc reads its settings once at the start,
//! and a purge takes jemalloc's locks. So any thread may ask for a purge at any time.
//!
//! All unsafe code of the program is in this module and `huge_pages`, because the library has no
//! safe wrapper for a purge or for hooks.

#![allow(unsafe_code)]

mod huge_pages;

pub(crate) use huge_pages::use_huge_pages;

use std::ffi::CStr;
use tikv_jemalloc_sys::mallctl;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Read by jemalloc when it starts (`malloc_conf` in its manual): the first word of a slice is the
/// pointer it looks for. The environment variable `_RJEM_MALLOC_CONF` still overrides it.
// SAFETY: the symbol is jemalloc's own and defined nowhere else; the text is NUL-terminated.
#[unsafe(export_name = "_rjem_malloc_conf")]
pub(crate) static MALLOC_CONF: &[u8] = b"narenas:1,tcache_nslots_small_max:16\0";

/// `MALLCTL_ARENAS_ALL` of jemalloc.h, as part of the name of a control.
const PURGE_ALL_ARENAS: &CStr = c"arena.4096.purge";

/// Gives all memory that was freed back to the system.
pub(crate) fn release_memory() {
    let none = std::ptr::null_mut();
    // SAFETY: the name is NUL-terminated; this control takes and gives no value, for which null
    // pointers and a length of 0 stand.
    let error = unsafe { mallctl(PURGE_ALL_ARENAS.as_ptr(), none, none.cast(), none, 0) };
    if error != 0 {
        log::debug!("the allocator does not purge: error {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::process::Command;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU64, Ordering};

    pub(super) const RECORD_BYTES: usize = 128 << 10;

    /// kB of a line of a file of /proc/self.
    pub(super) fn kib_of(file: &str, name: &str) -> u64 {
        let text = std::fs::read_to_string(Path::new("/proc/self").join(file)).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim_matches([':', ' ', 'k', 'B']).parse().unwrap()
    }

    /// Resident, but for pages of the program's file, which come and go as the kernel likes.
    pub(super) fn anonymous_bytes() -> u64 {
        kib_of("smaps_rollup", "Anonymous") << 10
    }

    /// So that nothing that is left lies at the end of anything.
    pub(super) fn keep_every_second<Value>(values: &mut Vec<Value>) {
        let mut number = 0;
        values.retain(|_| {
            number += 1;
            number % 2 == 0
        });
    }

    /// Says that this is a process of the test's own.
    const ALONE: &str = "OGIVE_TEST_ALONE";

    /// Resident memory belongs to the whole process. So a test that counts it runs in a process of
    /// its own: it starts itself again by its path.
    pub(super) fn alone(path: &str, test: impl FnOnce()) {
        if std::env::var_os(ALONE).is_some() {
            return test();
        }
        let ran = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", path])
            .env(ALONE, "1")
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && output.contains("1 passed"), "{path}: {output}");
    }

    #[test]
    fn records_are_given_back() {
        alone("allocator::tests::records_are_given_back", || {
            let mib = 1u64 << 20;
            let mut records: Vec<Vec<u8>> = (0..1024).map(|_| vec![1; RECORD_BYTES]).collect();
            let full = anonymous_bytes();
            assert!(full > 128 * mib);
            keep_every_second(&mut records);
            release_memory();
            let half = anonymous_bytes();
            assert!(half + 50 * mib < full, "{half} of {full} bytes are resident");
            drop(records);
            release_memory();
            let empty = anonymous_bytes();
            assert!(empty + 50 * mib < half, "{empty} of {half} bytes are resident");
        });
    }

    /// Freed in no order by threads that live on, with what their caches keep.
    #[test]
    fn inodes_are_given_back() {
        alone("allocator::tests::inodes_are_given_back", || {
            const THREADS: usize = 8;
            const COUNT: usize = 50_000;
            // Every place is visited once.
            const STEP: usize = 17_777;
            type Inode = [u8; 176];
            let before = anonymous_bytes();
            let (all_have, all_freed) = (Barrier::new(THREADS), Barrier::new(THREADS + 1));
            let may_end = Barrier::new(THREADS + 1);
            let full = AtomicU64::new(0);
            let empty = std::thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        let mut inodes: Vec<Option<Box<Inode>>> =
                            (0..COUNT).map(|_| Some(Box::new([1; size_of::<Inode>()]))).collect();
                        all_have.wait();
                        full.fetch_max(anonymous_bytes(), Ordering::Relaxed);
                        (0..COUNT).for_each(|at| inodes[at * STEP % COUNT] = None);
                        drop(inodes);
                        all_freed.wait();
                        may_end.wait();
                    });
                }
                all_freed.wait();
                release_memory();
                let empty = anonymous_bytes();
                may_end.wait();
                empty
            });
            let grown = full.into_inner() - before;
            assert!(grown >= (THREADS * COUNT * size_of::<Inode>()) as u64, "{grown} bytes");
            let left = empty.saturating_sub(before);
            assert!(left < 6 << 20, "{left} of {grown} bytes are resident");
        });
    }
}
