//! The allocator: what it is told when the process starts, and giving memory back.
//!
//! A cache that evicts must be able to give memory back. The C library's allocator keeps what lies
//! below the last live allocation of a heap, and records of 128 KiB among small allocations leave
//! it holding most of what was freed. jemalloc keeps freed pages apart, uses them again first, and
//! gives them to the system when it is told to: whenever the cache has shrunk, the file system
//! calls [`release_memory`]. Its background threads, which would do so by the clock, are left out:
//! an idle mount makes no wake-ups.
//!
//! All threads share one arena. With the eight that jemalloc would have on two processors, a record
//! freed by one thread lies in another's arena when the next is loaded, and a cache of 100 MiB
//! under random misses was seen to take 161 to 180 MiB; with one it takes 114, at the same speed.
//!
//! Small allocations are served from each thread's own cache, which keeps up to so many of each
//! size that were freed, 200 unless told otherwise. They count as allocated, and the run of pages
//! that each lies in stays. Inodes are freed in the order the kernel lets go of them, that is in
//! any: after a prune of 100,000 the caches held a third of their memory. With 16 they hold a
//! twentieth. What has to be fetched more often may cost some CPU: listing 50,000 files and asking
//! for their attributes took 6 to 23% more in the median of three rounds, with spreads that
//! overlap.
//!
//! A mount's memory grows by huge pages: [`huge_pages`] has the arena do so.
//!
//! There is no state here and no lock of ours: jemalloc reads its settings once, when it starts,
//! and a purge takes its locks. So any thread may ask for one, at any time.
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

    /// What is resident is so for the whole process, so a test that counts it is done in one of
    /// its own, in which it is run again by its path.
    pub(super) fn alone(path: &str, test: impl FnOnce()) {
        if std::env::var_os(ALONE).is_some() {
            return test();
        }
        let ran = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", path])
            .env(ALONE, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && said.contains("1 passed"), "{path}: {said}");
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
