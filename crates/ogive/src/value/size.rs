//! Sizes in bytes.
//!
//! Sizes are binary as everywhere in ZFS and mount(8): `128K`, `128KB` and `128KiB` are all 131,072
//! bytes. A printed size parses back to itself, so users can copy the defaults in `--help`.

use std::fmt;
use std::str::FromStr;

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
    fn other_text_is_refused() {
        for text in ["", " ", "G", "-1", "+1", "4Q", "4 G B", "0x10", "inf", "50%", "1,5G", "16E"] {
            assert!(size(text).is_err(), "{text:?} gave {:?}", size(text));
        }
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
        fn any_text_parses_or_is_refused(text in "\\PC{0,24}") {
            let _ = text.parse::<Size>();
        }
    }
}
