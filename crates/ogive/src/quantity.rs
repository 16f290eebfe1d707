//! Sizes, shares of memory, durations and thread counts as people type them.
//!
//! Sizes are binary as everywhere in ZFS and mount(8): `128K`, `128KB` and `128KiB` are all 131,072
//! bytes. A value that is printed parses back to itself, so the defaults shown in `--help` can be
//! copied to a command line.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Size(pub(crate) u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const BINARY: parse_size::Config = parse_size::Config::new().with_binary();
        let hint = "give bytes or a unit, as in 128K, 512MiB or 4G";
        if !text.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(format!("not a size; {hint}"));
        }
        match BINARY.parse_size(text.trim_end()) {
            Ok(bytes) => Ok(Self(bytes)),
            Err(parse_size::Error::PosOverflow) => Err("more than 16 EiB".to_owned()),
            Err(_) => Err(format!("not a size; {hint}")),
        }
    }
}

impl fmt::Display for Size {
    /// The largest unit that divides the size, so nothing is rounded.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0;
        for (unit, shift) in [("E", 60), ("P", 50), ("T", 40), ("G", 30), ("M", 20), ("K", 10)] {
            if bytes != 0 && bytes.trailing_zeros() >= shift {
                return write!(f, "{}{unit}", bytes >> shift);
            }
        }
        write!(f, "{bytes}")
    }
}

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

/// A length of time: `1s`, `250ms`, `1m 30s`; a bare number is in seconds, as in fstab options of
/// other file systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let error =
            || "not a length of time; give seconds or a unit, as in 1s, 250ms or 5m".to_owned();
        // Only digits and one point: f64's own parser would also take "inf", "nan" and "1e300".
        if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            let seconds: f64 = text.parse().map_err(|_| error())?;
            return Duration::try_from_secs_f64(seconds).map(Self).map_err(|_| error());
        }
        humantime::parse_duration(text).map(Self).map_err(|_| error())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

/// A value, or the word `auto` for the one ogive chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Auto<T> {
    /// Let ogive choose.
    Auto,
    /// Exactly this.
    Exactly(T),
}

impl<T> Auto<T> {
    /// The value, if one was given.
    pub(crate) fn exactly(self) -> Option<T> {
        match self {
            Self::Auto => None,
            Self::Exactly(value) => Some(value),
        }
    }
}

impl<T: FromStr> FromStr for Auto<T>
where
    T::Err: fmt::Display,
{
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        text.parse().map(Self::Exactly).map_err(|reason| format!("{reason}, or the word auto"))
    }
}

impl<T: fmt::Display> fmt::Display for Auto<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Exactly(value) => value.fmt(f),
        }
    }
}

/// A number of threads or things, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) u64);

impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(0) | Err(_) => Err("give a whole number of at least 1".to_owned()),
            Ok(number) => Ok(Self(number)),
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn size(text: &str) -> Result<u64, String> {
        text.parse().map(|Size(bytes)| bytes)
    }

    #[test]
    fn units_are_binary_with_or_without_the_i() {
        for text in ["128K", "128k", "128KB", "128KiB", "131072", "131072B", "0.125M"] {
            assert_eq!(size(text), Ok(131_072), "{text}");
        }
        assert_eq!(size("4G"), Ok(4 << 30));
        assert_eq!(size("1.5T"), Ok(3 << 39));
        assert_eq!(size("0"), Ok(0));
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", " ", "G", "-1", "+1", "4Q", "4 G B", "0x10", "inf", "50%", "1,5G", "16E"] {
            assert!(size(text).is_err(), "{text:?} gave {:?}", size(text));
        }
    }

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

    #[test]
    fn record_sizes_are_powers_of_two_between_a_page_and_a_mebibyte() {
        assert_eq!("4K".parse(), Ok(RecordSize(4096)));
        assert_eq!("1M".parse(), Ok(RecordSize(1 << 20)));
        for text in ["2K", "2M", "96K", "0", "1G", "8T", "k"] {
            assert!(text.parse::<RecordSize>().is_err(), "{text}");
        }
    }

    #[test]
    fn spans_with_and_without_units() {
        for (text, millis) in
            [("1s", 1000), ("1", 1000), ("0.25", 250), ("250ms", 250), ("1m 30s", 90_000), ("0", 0)]
        {
            assert_eq!(text.parse(), Ok(Span(Duration::from_millis(millis))), "{text}");
        }
        for text in
            ["", ".", "1.2.3", "inf", "nan", "1e3", "-1", "1 parsec", "99999999999999999999999"]
        {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }

    #[test]
    fn auto_and_counts() {
        assert_eq!("auto".parse(), Ok(Auto::<Count>::Auto));
        assert_eq!("3".parse(), Ok(Auto::Exactly(Count(3))));
        assert!("0".parse::<Auto<Count>>().is_err());
        assert!("Auto".parse::<Auto<Count>>().is_err());
    }

    proptest! {
        #[test]
        fn a_printed_size_parses_back(bytes: u64) {
            prop_assert_eq!(size(&Size(bytes).to_string()), Ok(bytes));
        }

        #[test]
        fn a_whole_number_of_a_unit_is_exact(number in 0_u64..1 << 24, unit in 0_usize..5) {
            let (letter, shift) = [("K", 10), ("M", 20), ("G", 30), ("T", 40), ("B", 0)][unit];
            let expected = number << shift;
            prop_assert_eq!(size(&format!("{number}{letter}")), Ok(expected));
            if letter != "B" {
                prop_assert_eq!(size(&format!("{number}{letter}iB")), Ok(expected));
                prop_assert_eq!(size(&format!("{number}{}", letter.to_lowercase())), Ok(expected));
            }
        }

        #[test]
        fn nothing_typed_panics(text in "\\PC{0,24}") {
            let _ = text.parse::<Size>();
            let _ = text.parse::<MemorySize>();
            let _ = text.parse::<RecordSize>();
            let _ = text.parse::<Auto<Span>>();
        }

        #[test]
        fn a_share_never_exceeds_the_limit(percent in 1_u8..=100, limit: u64) {
            prop_assert!(MemorySize::Percent(percent).bytes(limit) <= limit);
        }

        #[test]
        fn a_printed_span_parses_back(millis in 0_u64..1 << 50) {
            let span = Span(Duration::from_millis(millis));
            prop_assert_eq!(span.to_string().parse(), Ok(span));
        }
    }
}
