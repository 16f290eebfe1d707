//! Bytes that a seed reproduces, so logs contain numbers instead of contents.

/// `length` bytes that depend on `seed` alone: the same seed gives the same bytes everywhere.
#[must_use]
pub fn filled(seed: u64, length: usize) -> Vec<u8> {
    let mut generator = fastrand::Rng::with_seed(seed);
    let mut bytes = vec![0; length];
    generator.fill(&mut bytes);
    bytes
}

/// The 64-bit XXH3 hash of `bytes`; used wherever contents are compared but not shown.
#[must_use]
pub fn digest(bytes: &[u8]) -> u64 {
    twox_hash::XxHash3_64::oneshot(bytes)
}

/// The first offset at which two slices differ, `None` when they are equal.
/// A shorter slice differs at its end.
#[must_use]
pub fn first_difference(left: &[u8], right: &[u8]) -> Option<usize> {
    if left == right {
        return None;
    }
    let common = left.len().min(right.len());
    Some((0..common).find(|&at| left[at] != right[at]).unwrap_or(common))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_the_bytes() {
        assert_eq!(filled(7, 100), filled(7, 100));
        assert_ne!(filled(7, 100), filled(8, 100));
    }

    #[test]
    fn the_first_difference_is_found() {
        assert_eq!(first_difference(b"abc", b"abc"), None);
        assert_eq!(first_difference(b"abc", b"abd"), Some(2));
        assert_eq!(first_difference(b"abc", b"ab"), Some(2));
        assert_eq!(first_difference(b"", b"a"), Some(0));
    }
}
