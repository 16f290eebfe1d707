//! Giving pages back to the system without giving up their addresses.
#![allow(unsafe_code)]

/// Drops the contents of the whole pages within a range of private memory, which is of atomics
/// that are all zero, or may become so: the next read finds zeros.
#[cfg(all(target_os = "linux", not(miri), not(shuttle), not(loom)))]
pub(super) fn give_back(start: usize, len: usize) {
    use rustix::mm::{Advice, madvise};
    let page = rustix::param::page_size();
    let from = start.next_multiple_of(page);
    let to = (start + len) / page * page;
    if from < to {
        // SAFETY: the range lies within one allocation of the caller's, which consists of atomics
        // for which zero is a valid value at this moment. A failure leaves everything as it is.
        let _ = unsafe { madvise(from as *mut _, to - from, Advice::LinuxDontNeed) };
    }
}

#[cfg(not(all(target_os = "linux", not(miri), not(shuttle), not(loom))))]
pub(super) fn give_back(_: usize, _: usize) {}

/// Zeroed words as atomics, without touching them.
#[cfg(not(any(shuttle, loom)))]
pub(super) fn atomics(words: Box<[u64]>) -> Box<[std::sync::atomic::AtomicU64]> {
    let words = Box::into_raw(words) as *mut [std::sync::atomic::AtomicU64];
    // SAFETY: an `AtomicU64` has the size, the alignment and the values of a `u64`.
    unsafe { Box::from_raw(words) }
}
