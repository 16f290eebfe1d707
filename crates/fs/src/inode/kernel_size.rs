//! Where the kernel above believes that a file ends.
//!
//! FUSE sends what is appended as a write to that place. Of a large append past the page cache a
//! later part may come first, which looks the same but for the place. So it has to be known between
//! which sizes the kernel's lies. It believes what it was told last, or where its own last write
//! ended, and says so itself by appending.
//!
//! Answers to several threads are under way at once: one that was given before the kernel appended
//! may be taken after it, as long as no write has ended since it was asked for. So what is told is
//! kept apart until the kernel is known to have passed it over: until two writes later.
//!
//! # Invariant
//!
//! The kernel's size is never outside. Where it may be anything, nothing is concluded from it.

use std::sync::atomic::{AtomicU64, Ordering};

/// The least and the greatest of some sizes, in bytes; none has a least above its greatest.
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

/// The sizes that the kernel was told of a file that was never opened.
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
    pub(super) fn tell(&self, bytes: u64) {
        self.least.fetch_min(bytes, Ordering::Relaxed);
        self.greatest.fetch_max(bytes, Ordering::Relaxed);
    }

    /// What the kernel believes when the file is opened.
    pub(super) fn believed(&self) -> KernelSize {
        let least = self.least.load(Ordering::Relaxed);
        let greatest = self.greatest.load(Ordering::Relaxed);
        if least > greatest {
            return KernelSize::UNKNOWN;
        }
        let sizes = Sizes { least, greatest };
        // Any of the answers may still be in flight.
        KernelSize { sizes, told: sizes, ..KernelSize::UNKNOWN }
    }
}

/// The least and the greatest size that the kernel may believe in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelSize {
    sizes: Sizes,
    /// The sizes it was told since the last write that did not begin where another had ended.
    told: Sizes,
    /// The sizes it was told between that write and the one of its kind before.
    told_before: Sizes,
    /// Where its last write ended.
    written_to: Option<u64>,
}

impl KernelSize {
    /// It may be any.
    pub(crate) const UNKNOWN: Self = Self {
        sizes: Sizes { least: 0, greatest: u64::MAX },
        told: Sizes::NONE,
        told_before: Sizes::NONE,
        written_to: None,
    };

    /// It is this one, and no answer to an earlier question counts any more.
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

    /// The kernel was told this size, and may have taken it or not.
    pub(crate) fn may_be(&mut self, bytes: u64) {
        let size = Sizes::one(bytes);
        self.sizes = self.sizes.and(size);
        self.told = self.told.and(size);
    }

    /// A read was answered with fewer bytes than asked for, which says that the file ends there.
    pub(crate) fn may_have_shrunk_to(&mut self, bytes: u64) {
        if bytes < self.sizes.least {
            self.may_be(bytes);
        }
    }

    /// Something was done to a file that may have made it longer.
    pub(crate) fn may_have_grown_to(&mut self, bytes: u64) {
        self.sizes.greatest = self.sizes.greatest.max(bytes);
    }

    /// The kernel has appended there, and so has said what it believed by then. It may have got an
    /// answer since.
    pub(crate) fn appends_at(&mut self, bytes: u64) {
        if bytes < self.sizes.least {
            // A write before the believed end is no append, and says nothing of the end.
            return;
        }
        // A long write comes in parts, and only its end makes older answers void. It may be one
        // that goes on from here, or another one; where one begins elsewhere the last has ended.
        if self.written_to.is_some_and(|end| end != bytes) {
            self.told_before = std::mem::replace(&mut self.told, Sizes::NONE);
        }
        self.sizes = Sizes::one(bytes).and(self.told).and(self.told_before);
    }

    /// The kernel has written up to there.
    pub(crate) fn has_written_to(&mut self, bytes: u64) {
        self.sizes.least = self.sizes.least.max(bytes);
        self.sizes.greatest = self.sizes.greatest.max(bytes);
        self.written_to = Some(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(believed: KernelSize) -> (u64, u64) {
        (believed.least(), believed.greatest())
    }

    #[test]
    fn the_kernels_size_is_always_within_the_range() {
        let mut believed = KernelSize::exactly(10);
        believed.has_written_to(12);
        assert_eq!(range(believed), (12, 12));
        believed.has_written_to(3);
        assert_eq!(range(believed), (12, 12), "a write in the middle");
        believed.may_be(20);
        believed.may_be(5);
        believed.may_have_shrunk_to(4);
        believed.may_have_shrunk_to(9);
        assert_eq!(range(believed), (4, 20));
        believed.has_written_to(15);
        assert_eq!(range(believed), (15, 20));
        let mut unknown = KernelSize::UNKNOWN;
        unknown.may_be(7);
        assert_eq!(range(unknown), (0, u64::MAX));
    }

    #[test]
    fn a_write_before_the_end_says_nothing_of_it() {
        let mut believed = KernelSize::exactly(10);
        believed.appends_at(3);
        assert_eq!(range(believed), (10, 10));
    }

    #[test]
    fn an_answer_in_flight_may_be_taken_after_an_append_has_begun() {
        let mut believed = KernelSize::exactly(10);
        believed.may_be(50);
        // The answer has not been taken yet.
        believed.appends_at(10);
        believed.has_written_to(12);
        assert_eq!(range(believed), (12, 50));
        // Now it has; and so has another that was given when that append had begun.
        believed.may_be(60);
        believed.appends_at(50);
        believed.has_written_to(52);
        assert_eq!(range(believed), (52, 60));
        // One that began elsewhere has ended meanwhile, so the first answer is void.
        believed.appends_at(60);
        believed.has_written_to(61);
        believed.appends_at(70);
        assert_eq!(range(believed), (70, 70));
    }

    #[test]
    fn parts_of_one_append_void_no_answer() {
        let mut believed = KernelSize::exactly(0);
        believed.may_be(1000);
        for part in 0..5 {
            believed.appends_at(part * 10);
            believed.has_written_to(part * 10 + 10);
        }
        assert_eq!(range(believed), (50, 1000));
    }

    #[test]
    fn before_a_file_is_opened_every_size_the_kernel_was_told_counts() {
        let told = KernelSizes::default();
        assert_eq!(range(told.believed()), range(KernelSize::UNKNOWN));
        told.tell(7);
        assert_eq!(range(told.believed()), (7, 7));
        told.tell(3);
        told.tell(5);
        assert_eq!(range(told.believed()), (3, 7));
        let mut believed = told.believed();
        believed.appends_at(5);
        assert_eq!(range(believed), (3, 7), "the other answers may be under way");
    }
}
