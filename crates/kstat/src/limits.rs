//! Bounds on what a reader accepts, so that no input can cost more memory than its own size times
//! a small constant.

use crate::error::{ParseError, ParseErrorKind};

/// Longest input any reader takes, in bytes. The whole of `kstat -p` on a large illumos machine is
/// under 8 MiB; `arcstats` is 6 KiB.
pub const MAX_INPUT_BYTES: usize = 32 << 20;

/// Longest line a reader looks into, in bytes. The longest row OpenZFS writes is a dataset name of
/// 255 bytes behind a column of 37.
pub const MAX_LINE_BYTES: usize = 4096;

/// Most rows in one kstat. The largest OpenZFS writes (`arcstats`) has 148.
pub const MAX_ROWS: usize = 65_536;

/// Most kstats in one input: `kstat -p` of a machine with ten thousand datasets stays below.
pub const MAX_KSTATS: usize = 65_536;

/// Refuses an input that is too long.
pub(crate) fn check_length(input: &[u8]) -> Result<(), ParseError> {
    if input.len() > MAX_INPUT_BYTES {
        return Err(ParseError::new(1, ParseErrorKind::InputTooLong { bytes: input.len() }));
    }
    Ok(())
}
