//! The size of a file that the kernel above has cached.
//!
//! FUSE sends an append as a write at that size. Of a large append past the page cache, a later
//! part may arrive first, and only its offset differs from a whole append. To tell them apart, this
//! module keeps bounds of the kernel's size. The kernel has cached the size of the latest reply, or
//! the end of its own last write, and shows it when it appends.
//!
//! Replies to several threads are in flight at once. A reply that was sent before the kernel
//! appended may still be taken after the append, unless a write has ended since its request. So the
//! sizes in replies are kept until the kernel has certainly passed them over: until two writes
//! later.
//!
//! # Invariant
//!
//! The kernel's size is always within the bounds. Where the bounds are unknown, nothing follows
//! from them.

use std::sync::atomic::{AtomicU64, Ordering};

/// The least and the greatest of some sizes, in bytes. With no sizes, the least is above the
/// greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sizes {
    least: u64,
    greatest: u64,
}

impl Sizes {
    const NONE: Self = Self { least: u64::MAX, greatest: 0 };

    fn and(self, other: Self) -> Self {
        let least = self.least.min(other.least);
        Self { least, greatest: self.greatest.max(other.greatest) }
    }

    fn one(bytes: u64) -> Self {
        Self { least: bytes, greatest: bytes }
    }
}

/// The sizes in replies about a file that was never opened.
#[derive(Debug)]
pub(super) struct KernelSizes {
    least: AtomicU64,
    greatest: AtomicU64,
}

impl Default for KernelSizes {
    fn default() -> Self {
        let Sizes { least, greatest } = Sizes::NONE;
        Self { least: AtomicU64::new(least), greatest: AtomicU64::new(greatest) }
    }
}

impl KernelSizes {
    pub(super) fn report(&self, bytes: u64) {
        self.least.fetch_min(bytes, Ordering::Relaxed);
        self.greatest.fetch_max(bytes, Ordering::Relaxed);
    }

    /// The kernel's size when the file is opened.
    pub(super) fn on_open(&self) -> KernelSize {
        let least = self.least.load(Ordering::Relaxed);
        let greatest = self.greatest.load(Ordering::Relaxed);
        if least > greatest {
            return KernelSize::UNKNOWN;
        }
        let sizes = Sizes { least, greatest };
        // Any of the replies may still be in flight.
        KernelSize { sizes, reported: sizes, ..KernelSize::UNKNOWN }
    }
}

/// The bounds of the size that the kernel may have cached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelSize {
    sizes: Sizes,
    /// The sizes in replies since the last write that did not begin where another had ended.
    reported: Sizes,
    /// The sizes in replies between that write and the one of its kind before.
    reported_before: Sizes,
    /// The end of its last write.
    written_to: Option<u64>,
}

impl KernelSize {
    /// Any size.
    pub(crate) const UNKNOWN: Self = Self {
        sizes: Sizes { least: 0, greatest: u64::MAX },
        reported: Sizes::NONE,
        reported_before: Sizes::NONE,
        written_to: None,
    };

    /// Exactly this size; no earlier reply counts any more.
    pub(crate) fn exactly(bytes: u64) -> Self {
        Self { sizes: Sizes::one(bytes), ..Self::UNKNOWN }
    }

    /// The least that it may be.
    pub(crate) fn least(self) -> u64 {
        self.sizes.least
    }

    /// The greatest that it may be.
    pub(crate) fn greatest(self) -> u64 {
        self.sizes.greatest
    }

    /// A reply gave the kernel this size, and the kernel may have taken it or not.
    pub(crate) fn may_be(&mut self, bytes: u64) {
        let size = Sizes::one(bytes);
        self.sizes = self.sizes.and(size);
        self.reported = self.reported.and(size);
    }

    /// A read was answered with fewer bytes than it asked for, which means that the file ends
    /// there.
    pub(crate) fn may_have_shrunk_to(&mut self, bytes: u64) {
        if bytes < self.sizes.least {
            self.may_be(bytes);
        }
    }

    /// An operation may have made the file longer.
    pub(crate) fn may_have_grown_to(&mut self, bytes: u64) {
        self.sizes.greatest = self.sizes.greatest.max(bytes);
    }

    /// The kernel has appended at this offset, which was its cached size then. It may have taken a
    /// reply since.
    pub(crate) fn appends_at(&mut self, bytes: u64) {
        if bytes < self.sizes.least {
            // A write before the cached end is no append, and says nothing about the end.
            return;
        }
        // A long write comes in parts, and only its end voids older replies. This may be its next
        // part or another write. If it begins elsewhere, the last write has ended.
        if self.written_to.is_some_and(|end| end != bytes) {
            self.reported_before = std::mem::replace(&mut self.reported, Sizes::NONE);
        }
        self.sizes = Sizes::one(bytes).and(self.reported).and(self.reported_before);
    }

    /// The kernel has written up to this offset.
    pub(crate) fn has_written_to(&mut self, bytes: u64) {
        self.sizes.least = self.sizes.least.max(bytes);
        self.sizes.greatest = self.sizes.greatest.max(bytes);
        self.written_to = Some(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(size: KernelSize) -> (u64, u64) {
        (size.least(), size.greatest())
    }

    #[test]
    fn the_kernels_size_is_always_within_the_range() {
        let mut size = KernelSize::exactly(10);
        size.has_written_to(12);
        assert_eq!(range(size), (12, 12));
        size.has_written_to(3);
        assert_eq!(range(size), (12, 12), "a write in the middle");
        size.may_be(20);
        size.may_be(5);
        size.may_have_shrunk_to(4);
        size.may_have_shrunk_to(9);
        assert_eq!(range(size), (4, 20));
        size.has_written_to(15);
        assert_eq!(range(size), (15, 20));
        let mut unknown = KernelSize::UNKNOWN;
        unknown.may_be(7);
        assert_eq!(range(unknown), (0, u64::MAX));
    }

    #[test]
    fn a_write_before_the_end_says_nothing_about_it() {
        let mut size = KernelSize::exactly(10);
        size.appends_at(3);
        assert_eq!(range(size), (10, 10));
    }

    #[test]
    fn an_answer_in_flight_may_be_taken_after_an_append_has_begun() {
        let mut size = KernelSize::exactly(10);
        size.may_be(50);
        // The reply has not been taken yet.
        size.appends_at(10);
        size.has_written_to(12);
        assert_eq!(range(size), (12, 50));
        // Now it has, and so has another that was sent when that append had begun.
        size.may_be(60);
        size.appends_at(50);
        size.has_written_to(52);
        assert_eq!(range(size), (52, 60));
        // The append that began elsewhere has ended meanwhile, so the first reply is void.
        size.appends_at(60);
        size.has_written_to(61);
        size.appends_at(70);
        assert_eq!(range(size), (70, 70));
    }

    #[test]
    fn parts_of_one_append_void_no_answer() {
        let mut size = KernelSize::exactly(0);
        size.may_be(1000);
        for part in 0..5 {
            size.appends_at(part * 10);
            size.has_written_to(part * 10 + 10);
        }
        assert_eq!(range(size), (50, 1000));
    }

    #[test]
    fn before_a_file_is_opened_every_size_in_a_reply_counts() {
        let reported = KernelSizes::default();
        assert_eq!(range(reported.on_open()), range(KernelSize::UNKNOWN));
        reported.report(7);
        assert_eq!(range(reported.on_open()), (7, 7));
        reported.report(3);
        reported.report(5);
        assert_eq!(range(reported.on_open()), (3, 7));
        let mut size = reported.on_open();
        size.appends_at(5);
        assert_eq!(range(size), (3, 7), "the other replies may be in flight");
    }
}
