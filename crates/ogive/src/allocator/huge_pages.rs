//! Growing by huge pages.
//!
//! The first touch of new memory costs more than the read that fills it: a fault and a page to
//! clear for every 4 KiB. So a serving process grows by one huge page at a time
//! ([`use_huge_pages`]). The arena of jemalloc asks for memory through our [`map`]. [`map`] lets
//! the system back those 2 MiB at once, with one fault, if it can. Freed records are used again
//! before the arena grows.
//!
//! Huge pages have a bad name for taking unneeded memory and not returning it. Here:
//!
//! - At most 2 MiB is taken before it is needed.
//! - After that, the range is marked as not to be made huge. Otherwise the kernel's own thread
//!   (khugepaged) would find the holes that a purge leaves, and fill them again.
//! - Freeing a part of a huge page frees nothing by itself. The kernel only notes that the part is
//!   not mapped any more. Resident memory sinks, but the page stays whole until memory is short. A
//!   cache that watches free memory would see no gain and shrink further. So [`purge`] first
//!   declares the part free for the taking (`MADV_FREE`), and the kernel then splits the page. The
//!   rest is small pages from then on.
//! - If the system has no huge page, the touch brings one small page, as without this module.
//!
//! The hooks stay for the life of the process, and their targets are set before them. The arena
//! grows under a lock of jemalloc, so a hook takes no lock and allocates nothing.

use rustix::mm::{Advice, madvise};
use std::ffi::{CStr, c_uint, c_void};
use std::sync::OnceLock;
use tikv_jemalloc_sys::{extent_hooks_t, mallctl};

const EXTENT_HOOKS: &CStr = c"arena.0.extent_hooks";
const GROW_LIMIT: &CStr = c"arena.0.retain_grow_limit";

/// The unit by which the arena grows: a huge page of these processors. On processors with larger
/// huge pages, the arena never gets one.
const HUGE_BYTES: usize = 2 << 20;

/// jemalloc's own hooks, and ours, which call them.
static DEFAULT_HOOKS: OnceLock<extent_hooks_t> = OnceLock::new();
static HOOKS: OnceLock<extent_hooks_t> = OnceLock::new();

/// Has the memory of this process grow by huge pages from now on, where the system has them.
pub(crate) fn use_huge_pages() {
    if let Err(error) = install_hooks() {
        log::debug!("memory grows by small pages: the allocator says error {error}");
    }
}

fn install_hooks() -> Result<(), i32> {
    let mut limit_bytes = HUGE_BYTES;
    let mut current: *mut extent_hooks_t = std::ptr::null_mut();
    // SAFETY: this control takes a `size_t`.
    unsafe { control(GROW_LIMIT, std::ptr::null_mut::<usize>(), &raw mut limit_bytes)? };
    // SAFETY: this control gives a pointer to hooks.
    unsafe { control(EXTENT_HOOKS, &raw mut current, std::ptr::null_mut())? };
    // SAFETY: hooks in use live as long as the process, and nothing writes to them.
    let default = *DEFAULT_HOOKS.get_or_init(|| unsafe { *current });
    let ours = HOOKS.get_or_init(|| extent_hooks_t {
        alloc: Some(map),
        purge_forced: Some(purge),
        // As the default ones would, but without asking: nothing is unmapped, only purged.
        dalloc: None,
        ..default
    });
    let mut ours = std::ptr::from_ref(ours).cast_mut();
    // SAFETY: this control takes a pointer to hooks, which is kept. These live as long as the
    // process; jemalloc does not write to them.
    unsafe { control(EXTENT_HOOKS, std::ptr::null_mut(), &raw mut ours) }
}

/// Reads one of jemalloc's values, sets one, or both; a null pointer stands for neither.
///
/// # Safety
/// `Value` is the type that the control of this name has.
unsafe fn control<Value>(name: &CStr, old: *mut Value, new: *mut Value) -> Result<(), i32> {
    let size = |value: *mut Value| if value.is_null() { 0 } else { size_of::<Value>() };
    let (mut old_size, new_size) = (size(old), size(new));
    // SAFETY: the name is NUL-terminated, each pointer is null or leads to a value of this type,
    // and the sizes say which.
    let error =
        unsafe { mallctl(name.as_ptr(), old.cast(), &raw mut old_size, new.cast(), new_size) };
    if error == 0 { Ok(()) } else { Err(error) }
}

/// Maps memory for the arena: one huge page, if the request has that size and the system has one.
/// The touch happens here, because only one thread at a time grows the arena. Several threads that
/// touch a new huge page would each clear one, and all but one would discard it.
///
/// # Safety
/// As jemalloc's hook of this name: `size` is a multiple of the page size, and so on.
unsafe extern "C" fn map(
    hooks: *mut extent_hooks_t,
    new_address: *mut c_void,
    size: usize,
    alignment: usize,
    zero: *mut bool,
    commit: *mut bool,
    arena: c_uint,
) -> *mut c_void {
    let Some(default) = DEFAULT_HOOKS.get().and_then(|hooks| hooks.alloc) else {
        return std::ptr::null_mut();
    };
    let huge = new_address.is_null() && size == HUGE_BYTES;
    let alignment = if huge { alignment.max(HUGE_BYTES) } else { alignment };
    // SAFETY: all is passed on, with an alignment that is a power of two and no less than asked.
    let start = unsafe { default(hooks, new_address, size, alignment, zero, commit, arena) };
    if huge && !start.is_null() && start.addr().is_multiple_of(HUGE_BYTES) {
        // Advice is no promise: without it these are ordinary pages. The first advice joins this
        // range to the ones before it, and their marks must then be equal. Otherwise the number of
        // mappings grows, and a process may have at most 65,530.
        // SAFETY: the range was mapped a moment ago, and no other code knows it.
        unsafe {
            let _ = madvise(start, size, Advice::LinuxNoHugepage);
            let _ = madvise(start, size, Advice::LinuxHugepage);
            start.cast::<u8>().write_volatile(0);
            let _ = madvise(start, size, Advice::LinuxNoHugepage);
        }
    }
    start
}

/// Returns pages to the system, including those of a partly unmapped huge page.
///
/// # Safety
/// As jemalloc's hook of this name: the pages are the arena's, and nothing uses them.
unsafe extern "C" fn purge(
    hooks: *mut extent_hooks_t,
    address: *mut c_void,
    size: usize,
    offset: usize,
    length: usize,
    arena: c_uint,
) -> bool {
    let start = address.wrapping_byte_add(offset);
    for part in parts_of_huge_pages(start.addr(), length).into_iter().flatten() {
        let part_start = start.with_addr(part.start);
        // SAFETY: the part lies within the pages that are given back.
        let _ = unsafe { madvise(part_start, part.len(), Advice::LinuxFree) };
    }
    let default = DEFAULT_HOOKS.get().and_then(|hooks| hooks.purge_forced);
    // SAFETY: all is passed on.
    default.is_none_or(|purge| unsafe { purge(hooks, address, size, offset, length, arena) })
}

/// The part of a range inside huge pages that it does not cover completely.
fn parts_of_huge_pages(start: usize, length: usize) -> [Option<std::ops::Range<usize>>; 2] {
    let end = start + length;
    let (whole_from, whole_to) = (start.next_multiple_of(HUGE_BYTES), end - end % HUGE_BYTES);
    if whole_from >= whole_to {
        return [Some(start..end), None];
    }
    let part = |range: std::ops::Range<usize>| (!range.is_empty()).then_some(range);
    [part(start..whole_from), part(whole_to..end)]
}

#[cfg(test)]
mod tests {
    use super::super::release_memory;
    use super::super::tests::{RECORD_BYTES, alone, anonymous_bytes, keep_every_second, kib_of};
    use super::*;
    use crate::skipped::only_nightly;
    use std::fs::File;
    use std::ops::Range;
    use std::os::unix::fs::FileExt;

    fn mappings() -> usize {
        std::fs::read_to_string("/proc/self/maps").unwrap().lines().count()
    }

    /// Resident memory does not show whether a partly mapped page was returned, so this asks the
    /// kernel about each remaining page. Only root may.
    #[test]
    fn parts_of_huge_pages_are_given_back() {
        if only_nightly("whether and when there are huge pages is the kernel's") {
            return;
        }
        alone("allocator::huge_pages::tests::parts_of_huge_pages_are_given_back", || {
            const COUNT: usize = 1024;
            let mib = 1u64 << 20;
            use_huge_pages();
            let (before, mappings_before) = (anonymous_bytes(), mappings());
            let faults_before = faults();
            let mut records: Vec<Vec<u8>> =
                (0..COUNT).map(|at| vec![at as u8; RECORD_BYTES]).collect();
            let faults = faults() - faults_before;
            let huge = kib_of("smaps_rollup", "AnonHugePages") << 10;
            let full = anonymous_bytes();
            let bytes = (COUNT * RECORD_BYTES) as u64;
            // Some of it lies in what was mapped before.
            assert!(
                full + mib > before + bytes && full < before + bytes + 4 * mib,
                "{before} to {full}"
            );
            // However many there are, they are next to each other and marked alike.
            let mapped = mappings() - mappings_before;
            assert!(mapped < 8, "{mapped} more mappings");
            if huge < bytes / 2 {
                eprintln!("half skipped: this system gave {huge} bytes of huge pages");
            } else {
                let (pages, small) = (bytes / 4096, (bytes - huge.min(bytes)) / 4096);
                assert!(faults < small + pages / 16, "{faults} faults for {pages} pages");
            }
            keep_every_second(&mut records);
            release_memory();
            let half = anonymous_bytes();
            assert!(half - before < bytes / 2 + 4 * mib, "{before}, {full}, {half}");
            for (at, record) in records.iter().enumerate() {
                assert!(record.iter().all(|byte| *byte == (2 * at + 1) as u8));
            }
            match compound_pages(&records) {
                // A page that the kernel was busy with is left whole.
                Ok(compound) => assert!(compound * 10 <= COUNT * RECORD_BYTES / 4096, "{compound}"),
                Err(error) => eprintln!("half skipped: {error}"),
            }
            // Taken again, it is as good as new.
            records.extend((0..COUNT / 2).map(|_| vec![0; RECORD_BYTES]));
            assert!(records[COUNT / 2..].iter().flatten().all(|byte| *byte == 0));
            drop(records);
            release_memory();
            let empty = anonymous_bytes();
            assert!(empty < before + 4 * mib, "{before}, {full}, {empty}");
        });
    }

    /// How many pages of the records are part of a larger one.
    fn compound_pages(records: &[Vec<u8>]) -> std::io::Result<usize> {
        const FRAME: u64 = (1 << 55) - 1;
        const COMPOUND: u64 = 1 << 15 | 1 << 16;
        let frames = File::open("/proc/self/pagemap")?;
        let flags = File::open("/proc/kpageflags")?;
        let word = |file: &File, index: u64| {
            let mut word = [0; 8];
            file.read_exact_at(&mut word, index * 8).map(|()| u64::from_ne_bytes(word))
        };
        let mut compound = 0;
        for page in records.iter().flat_map(|record| record.chunks_exact(4096)) {
            let frame = word(&frames, page.as_ptr().addr() as u64 / 4096)? & FRAME;
            compound += usize::from(word(&flags, frame)? & COMPOUND != 0);
        }
        Ok(compound)
    }

    fn faults() -> u64 {
        let text = std::fs::read_to_string("/proc/self/stat").unwrap();
        let after_name = text.rsplit(')').next().unwrap();
        after_name.split_whitespace().nth(7).unwrap().parse().unwrap()
    }

    #[test]
    fn parts_of_huge_pages_are_distinguished_from_whole_ones() {
        let huge = HUGE_BYTES;
        let parts = |range: Range<usize>| parts_of_huge_pages(range.start, range.len());
        assert_eq!(parts(huge..3 * huge), [None, None]);
        assert_eq!(parts(huge..huge + 4096), [Some(huge..huge + 4096), None]);
        assert_eq!(parts(huge - 4096..huge), [Some(huge - 4096..huge), None]);
        let across = huge - 4096..huge + 4096;
        assert_eq!(parts(across.clone()), [Some(across), None]);
        let more = huge - 4096..2 * huge + 4096;
        let ends = [Some(huge - 4096..huge), Some(2 * huge..2 * huge + 4096)];
        assert_eq!(parts(more), ends);
        assert_eq!(parts(huge..2 * huge + 4096), [None, Some(2 * huge..2 * huge + 4096)]);
        assert_eq!(parts(huge - 4096..2 * huge), [Some(huge - 4096..huge), None]);
    }
}
