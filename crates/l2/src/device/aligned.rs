//! Memory that O_DIRECT accepts.

use std::fmt;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// A page of memory at a multiple of its size.
#[derive(Clone, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C, align(4096))]
struct Page([u8; 4096]);

/// Bytes at a multiple of 4 KiB, which every device accepts.
#[derive(Default)]
pub struct AlignedBuffer(Vec<Page>);

impl fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedBuffer({} bytes)", self.0.len() * 4096)
    }
}

impl AlignedBuffer {
    /// At least this many zeroes.
    pub fn zeroed(len_bytes: usize) -> Self {
        Self(vec![Page::new_zeroed(); len_bytes.div_ceil(4096)])
    }

    /// The bytes; their number is a multiple of 4,096.
    pub fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The bytes, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.as_mut_bytes()
    }

    /// The first `len_bytes`; the buffer grows if it has fewer.
    pub fn first(&mut self, len_bytes: usize) -> &mut [u8] {
        let pages = len_bytes.div_ceil(4096);
        if self.0.len() < pages {
            self.0.resize(pages, Page::new_zeroed());
        }
        &mut self.0.as_mut_bytes()[..len_bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_start_at_a_page() {
        for length in [0, 1, 4096, 5000, 1 << 20] {
            let mut buffer = AlignedBuffer::zeroed(length);
            assert!(buffer.bytes().len() >= length);
            assert_eq!(buffer.bytes().as_ptr().addr() % 4096, 0);
            assert_eq!(buffer.first(length + 9).len(), length + 9);
            assert_eq!(buffer.bytes().as_ptr().addr() % 4096, 0);
        }
    }
}
