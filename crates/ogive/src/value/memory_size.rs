//! A size, or a share of the memory that this process may use.

use std::fmt;
use std::str::FromStr;

use super::size::Size;

/// A size, or a share of the memory this machine or its control group may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemorySize {
    /// So many bytes.
    Bytes(u64),
    /// So many percent of the memory limit, from 1 to 100.
    Percent(u8),
}

impl FromStr for MemorySize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(number) = text.strip_suffix('%') else {
            return text
                .parse()
                .map(|Size(bytes)| Self::Bytes(bytes))
                .map_err(|reason: String| format!("{reason}, or a share of memory, as in 50%"));
        };
        match number.trim_end().parse::<u8>() {
            Ok(percent @ 1..=100) => Ok(Self::Percent(percent)),
            _ => Err("a share of memory is a whole number from 1% to 100%".to_owned()),
        }
    }
}

impl fmt::Display for MemorySize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => Size(*bytes).fmt(f),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl MemorySize {
    /// The number of bytes, given the memory limit in bytes.
    pub(crate) fn bytes(self, memory_limit_bytes: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            // Divided first: a limit near 2^64 (none set) must not overflow, and a percent of what
            // is lost in the division is less than 100 bytes.
            Self::Percent(percent) => memory_limit_bytes / 100 * u64::from(percent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shares_of_memory() {
        assert_eq!("50%".parse(), Ok(MemorySize::Percent(50)));
        assert_eq!("512MiB".parse(), Ok(MemorySize::Bytes(512 << 20)));
        for text in ["0%", "101%", "%", "-5%", "5.5%", "5%%"] {
            assert!(text.parse::<MemorySize>().is_err(), "{text}");
        }
        assert_eq!(MemorySize::Percent(25).bytes(8 << 30), (8 << 30) / 100 * 25);
        assert_eq!(MemorySize::Percent(100).bytes(u64::MAX), u64::MAX / 100 * 100);
        assert_eq!(MemorySize::Bytes(7).bytes(1), 7);
    }

    proptest! {
        #[test]
        fn a_share_never_exceeds_the_limit(percent in 1_u8..=100, limit: u64) {
            prop_assert!(MemorySize::Percent(percent).bytes(limit) <= limit);
        }

        #[test]
        fn any_text_parses_or_is_refused(text in "\\PC{0,24}") {
            let _ = text.parse::<MemorySize>();
        }
    }
}
