//! The size of a record: a power of two from 4 KiB to 1 MiB.

use std::fmt;
use std::str::FromStr;

use super::size::Size;

/// The size of a record: a power of two from 4 KiB to 1 MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordSize(pub(crate) u32);

/// The smallest record: a page.
const RECORD_SIZE_BYTES_MIN: u32 = 4 << 10;
/// The largest record: the largest read a FUSE request can carry.
const RECORD_SIZE_BYTES_MAX: u32 = 1 << 20;

impl FromStr for RecordSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Size(bytes) = text.parse()?;
        match u32::try_from(bytes) {
            Ok(size @ RECORD_SIZE_BYTES_MIN..=RECORD_SIZE_BYTES_MAX) if size.is_power_of_two() => {
                Ok(Self(size))
            }
            _ => Err("a record size is a power of two from 4K to 1M".to_owned()),
        }
    }
}

impl fmt::Display for RecordSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Size(u64::from(self.0)).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn record_sizes_are_powers_of_two_between_a_page_and_a_mebibyte() {
        assert_eq!("4K".parse(), Ok(RecordSize(4096)));
        assert_eq!("1M".parse(), Ok(RecordSize(1 << 20)));
        for text in ["2K", "2M", "96K", "0", "1G", "8T", "k"] {
            assert!(text.parse::<RecordSize>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_parses_or_is_refused(text in "\\PC{0,24}") {
            let _ = text.parse::<RecordSize>();
        }
    }
}
