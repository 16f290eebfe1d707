//! Bounds of the readers: an input may cost no more memory than its own size times a small
//! constant.

use crate::error::{ParseError, ParseErrorKind};

/// Longest input of a reader, in bytes. The whole `kstat -p` of a large illumos machine is under 8
/// MiB, and `arcstats` is 6 KiB.
pub const MAX_INPUT_BYTES: usize = 32 << 20;

/// Longest line of a reader, in bytes. The longest row that OpenZFS writes is a dataset name of 255
/// bytes after 37 columns.
pub const MAX_LINE_BYTES: usize = 4096;

/// Most rows in one kstat. OpenZFS's largest (`arcstats`) has 148.
pub const MAX_ROWS: usize = 65_536;

/// Most kstats in one input. `kstat -p` of a machine with ten thousand datasets has fewer.
pub const MAX_KSTATS: usize = 65_536;

/// Refuses an input that is too long.
pub(crate) fn check_length(input: &[u8]) -> Result<(), ParseError> {
    if input.len() > MAX_INPUT_BYTES {
        return Err(ParseError::new(1, ParseErrorKind::InputTooLong { bytes: input.len() }));
    }
    Ok(())
}
