//! Sizes with a binary unit.

use std::fmt;

/// Bytes for people: below a KiB the exact number, above it one decimal.
///
/// `{:#}` leaves the decimal out if it is 0 or the number is a hundred or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self.0 < 1024 {
            return write!(f, "{} B", self.0);
        }
        let unit = (self.0.ilog2() / 10) as usize;
        let amount = self.0 as f64 / (1u64 << (10 * unit)) as f64;
        let says_nothing = f.alternate() && (amount >= 99.95 || amount.fract() < 0.05);
        let digits = usize::from(!says_nothing);
        write!(f, "{amount:.digits$} {}", UNITS[unit - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_the_unit_below_it() {
        let texts = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            ((1 << 20) - 1, "1024.0 KiB"),
            (1 << 20, "1.0 MiB"),
            (3 << 29, "1.5 GiB"),
            (u64::MAX, "16.0 EiB"),
        ];
        for (bytes, text) in texts {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
    }

    #[test]
    fn a_useless_decimal_can_be_left_out() {
        let texts = [
            (1023, "1023 B"),
            (8 << 30, "8 GiB"),
            (3 << 29, "1.5 GiB"),
            ((1 << 20) - 1, "1024 KiB"),
            (u64::MAX, "16 EiB"),
        ];
        for (bytes, text) in texts {
            assert_eq!(format!("{:#}", Bytes(bytes)), text);
        }
    }
}
