//! Where the kernel above believes that a file ends.
//!
//! FUSE sends what is appended as a write to that place, and what a program writes elsewhere
//! although its file is open to append (`RWF_NOAPPEND`) looks the same but for the place. So it
//! has to be known between which sizes the kernel's lies. It believes what it was told last, or
//! where its own last write ended; which of two answers it has taken last cannot be known, so both
//! count until it says so itself, by appending.
//!
//! # Invariant
//!
//! The kernel's size is never outside. Where it may be anything, nothing is concluded from it.

/// The least and the greatest size that the kernel may believe in, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BelievedSize {
    least: u64,
    greatest: u64,
}

impl BelievedSize {
    /// It may be any.
    pub(crate) const UNKNOWN: Self = Self { least: 0, greatest: u64::MAX };

    /// It is this one.
    pub(crate) fn exactly(bytes: u64) -> Self {
        Self { least: bytes, greatest: bytes }
    }

    /// The least that it may be.
    pub(crate) fn least(self) -> u64 {
        self.least
    }

    /// The greatest that it may be.
    pub(crate) fn greatest(self) -> u64 {
        self.greatest
    }

    /// The kernel was told this size, and may have taken it or not.
    pub(crate) fn may_be(&mut self, bytes: u64) {
        self.may_have_shrunk_to(bytes);
        self.may_have_grown_to(bytes);
    }

    /// It was told that a file ends there by being given fewer bytes than it wanted.
    pub(crate) fn may_have_shrunk_to(&mut self, bytes: u64) {
        self.least = self.least.min(bytes);
    }

    /// Something was done to a file that may have made it longer.
    pub(crate) fn may_have_grown_to(&mut self, bytes: u64) {
        self.greatest = self.greatest.max(bytes);
    }

    /// The kernel has written up to there.
    pub(crate) fn has_written_to(&mut self, bytes: u64) {
        self.least = self.least.max(bytes);
        self.greatest = self.greatest.max(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_that_the_kernel_believes_in_is_never_outside() {
        let mut believed = BelievedSize::exactly(10);
        believed.has_written_to(12);
        assert_eq!(believed, BelievedSize::exactly(12));
        believed.has_written_to(3);
        assert_eq!(believed, BelievedSize::exactly(12), "a write in the middle");
        believed.may_be(20);
        believed.may_be(5);
        believed.may_have_shrunk_to(4);
        believed.may_have_shrunk_to(9);
        assert_eq!((believed.least(), believed.greatest()), (4, 20));
        believed.has_written_to(15);
        assert_eq!((believed.least(), believed.greatest()), (15, 20));
        let mut unknown = BelievedSize::UNKNOWN;
        unknown.may_be(7);
        assert_eq!(unknown, BelievedSize::UNKNOWN);
    }
}
