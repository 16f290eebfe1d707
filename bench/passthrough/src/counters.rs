//! Counts reads of the origin, readable from outside without disturbing the readers.
//!
//! Each worker thread has counters of its own, so that counting shares no cache line. A read of the
//! hidden file [`FILE_NAME`] in the root of the mount makes the sum. Files of [`LARGE_FILE_BYTES`]
//! and more are counted separately, which distinguishes a scan of one big file from a working set
//! of small ones.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Name of the hidden file that shows the counters; it is in no listing.
pub const FILE_NAME: &str = ".passthrough";
/// From this size on a file's reads are counted as `large`.
pub const LARGE_FILE_BYTES: u64 = 256 << 20;

/// One thread's counters; aligned so that no two threads share a cache line.
#[derive(Default)]
#[repr(align(128))]
struct Counters {
    /// By [`Class`]: reads, bytes.
    reads: [AtomicU64; 2],
    bytes: [AtomicU64; 2],
}

/// Which column a file's reads are counted in.
#[derive(Clone, Copy)]
pub enum Class {
    /// Smaller than [`LARGE_FILE_BYTES`].
    Small = 0,
    /// The others.
    Large = 1,
}

static ALL: Mutex<Vec<Arc<Counters>>> = Mutex::new(Vec::new());

thread_local! {
    static MINE: Arc<Counters> = {
        let mine = Arc::new(Counters::default());
        ALL.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&mine));
        mine
    };
}

/// Counts one read of `bytes` that went to the origin.
pub fn count_read(class: Class, bytes: usize) {
    MINE.with(|mine| {
        let class = class as usize;
        // Only this thread writes, so a load and a store do; no locked instruction is needed.
        let reads = &mine.reads[class];
        reads.store(reads.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let total = &mine.bytes[class];
        total.store(total.load(Ordering::Relaxed) + bytes as u64, Ordering::Relaxed);
    });
}

/// The sums as `name value` lines.
pub fn render() -> String {
    let mut text = String::new();
    let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    for (class, suffix) in [(Class::Small, "small"), (Class::Large, "large")] {
        let class = class as usize;
        let reads: u64 = all.iter().map(|one| one.reads[class].load(Ordering::Relaxed)).sum();
        let bytes: u64 = all.iter().map(|one| one.bytes[class].load(Ordering::Relaxed)).sum();
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "reads_{suffix} {reads}\nbytes_{suffix} {bytes}");
    }
    text
}
