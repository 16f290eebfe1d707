//! Padding: records are made longer before they are sealed, so that lengths reveal less.
//!
//! How well a record compresses reveals something of its contents, and the length is visible on the
//! device. With padding there are few lengths on the device: multiples of a step, or powers of two.
//! The real lengths stand behind the record, sealed with it:
//!
//! ```text
//! compressed bytes │ zeroes │ length of the compressed bytes, 4 │ length of the record, 4
//! ```
//!
//! A record with a padded length already, which does not compress to less, is left unchanged. So
//! most incompressible records cost nothing: sizes of records are powers of two.
//!
//! Whether a record is padded stands in its header, so that devices may be read with any setting.

use crate::compression::Stored;
use crate::format::{RECORD_MAX_BYTES, UNIT_BYTES};
use std::fmt;

/// Bytes at the end of a padded record.
const LENGTHS_BYTES: usize = 8;

/// The lengths that records are padded to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Padding {
    /// They are as they are.
    #[default]
    Off,
    /// Multiples of this many bytes, a power of two.
    Step(u32),
    /// Powers of two.
    PowerOfTwo,
}

impl fmt::Display for Padding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Step(step) if step % 1024 == 0 => write!(f, "{}K", step / 1024),
            Self::Step(step) => write!(f, "{step}"),
            Self::PowerOfTwo => f.write_str("power-of-two"),
        }
    }
}

impl std::str::FromStr for Padding {
    type Err = String;

    /// `off`, `power-of-two`, or a size as in `4K`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "give off, power-of-two, or a power of two from 512 to 1M, as in 4K or 16K".to_owned()
        };
        match text {
            "off" => return Ok(Self::Off),
            "power-of-two" => return Ok(Self::PowerOfTwo),
            _ => {}
        }
        let (digits, shift) = match text.as_bytes().last() {
            Some(b'K') => (&text[..text.len() - 1], 10),
            Some(b'M') => (&text[..text.len() - 1], 20),
            _ => (text, 0),
        };
        let number: u32 = digits.parse().map_err(|_| wrong())?;
        let step = number.checked_mul(1 << shift).ok_or_else(wrong)?;
        let range = UNIT_BYTES as u32..=RECORD_MAX_BYTES as u32;
        let is_step = range.contains(&step) && step.is_power_of_two();
        is_step.then_some(Self::Step(step)).ok_or_else(wrong)
    }
}

impl Padding {
    /// The shortest padded length that is at least so long.
    fn at_least(self, length: usize) -> usize {
        match self {
            Self::Off => length,
            Self::Step(step) => length.next_multiple_of(step.max(1) as usize),
            Self::PowerOfTwo => length.next_power_of_two().max(UNIT_BYTES as usize),
        }
    }

    /// Most bytes that a record of this length is sealed as.
    pub(crate) fn room(self, length: usize) -> usize {
        if self.at_least(length) == length { length } else { self.at_least(length + LENGTHS_BYTES) }
    }
}

/// A record, ready to be sealed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Padded<'a> {
    pub(crate) stored: Stored,
    pub(crate) bytes: &'a [u8],
    /// Length of the record, as the device shows it.
    pub(crate) plain_bytes: usize,
    /// Bytes of padding; 0 without.
    pub(crate) padding_bytes: usize,
}

/// Pads records, for one thread, whose buffer it reuses.
#[derive(Debug, Default)]
pub(crate) struct Padder {
    padding: Padding,
    buffer: Vec<u8>,
}

impl Padder {
    pub(crate) fn new(padding: Padding) -> Self {
        Self { padding, buffer: Vec::new() }
    }

    /// A record and its compressed bytes, ready to be sealed.
    pub(crate) fn pad<'a>(
        &'a mut self,
        plain: &'a [u8],
        (stored, bytes): (Stored, &'a [u8]),
    ) -> Padded<'a> {
        let plain_bytes = self.padding.room(plain.len());
        let as_it_is = |stored, bytes| Padded { stored, bytes, plain_bytes, padding_bytes: 0 };
        if self.padding == Padding::Off {
            return as_it_is(stored, bytes);
        }
        let room = self.padding.at_least(bytes.len() + LENGTHS_BYTES);
        let pays = stored != Stored::Plain && room < plain_bytes;
        let (stored, bytes, room) =
            if pays { (stored, bytes, room) } else { (Stored::Plain, plain, plain_bytes) };
        if !pays && plain_bytes == plain.len() {
            return as_it_is(stored, bytes);
        }
        self.buffer.clear();
        self.buffer.extend_from_slice(bytes);
        self.buffer.resize(room - LENGTHS_BYTES, 0);
        // Both are at most 1 MiB.
        self.buffer.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.buffer.extend_from_slice(&(plain.len() as u32).to_le_bytes());
        let padding_bytes = room - bytes.len();
        Padded { stored, bytes: &self.buffer, plain_bytes, padding_bytes }
    }
}

/// Takes the padding off an unsealed record: its compressed bytes, and the length of the record.
/// `None` if the lengths are impossible.
pub(crate) fn unpad(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let (bytes, plain) = bytes.split_last_chunk::<4>()?;
    let (bytes, compressed) = bytes.split_last_chunk::<4>()?;
    let [plain, compressed] =
        [*plain, *compressed].map(|length| u32::from_le_bytes(length) as usize);
    let possible = (1..=RECORD_MAX_BYTES).contains(&plain) && (1..=plain).contains(&compressed);
    Some((bytes.get(..compressed).filter(|_| possible)?, plain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compression::{Compression, Compressor, Decompressor};
    use std::collections::BTreeSet;

    fn kinds() -> [Padding; 5] {
        [512, 4096, 1 << 17]
            .map(Padding::Step)
            .into_iter()
            .chain([Padding::Off, Padding::PowerOfTwo])
            .collect::<Vec<_>>()
            .try_into()
            .unwrap()
    }

    #[test]
    fn padded_records_come_back_and_have_few_lengths() {
        let mut random = fastrand::Rng::with_seed(3);
        for padding in kinds() {
            let mut padder = Padder::new(padding);
            let mut compressor = Compressor::new(Compression::Lz4).unwrap();
            let mut lengths = BTreeSet::new();
            for _ in 0..300 {
                let mut plain = vec![7; random.usize(1..=1 << 17)];
                let noise = random.usize(0..=plain.len());
                random.fill(&mut plain[..noise]);
                let compressed = compressor.compress(&plain);
                let padded = padder.pad(&plain, compressed);
                let is_padded = padded.padding_bytes > 0;
                let is_whole = padded.bytes == plain || padding == Padding::Off;
                assert_eq!(is_padded, !is_whole, "{padding}");
                assert!(padded.bytes.len() <= padding.room(plain.len()));
                assert_eq!(padded.plain_bytes, padding.room(plain.len()));
                lengths.extend([padded.bytes.len(), padded.plain_bytes]);
                let (bytes, length) = match is_padded {
                    true => unpad(padded.bytes).unwrap(),
                    false => (padded.bytes, padded.plain_bytes),
                };
                let mut found = vec![0; length];
                let mut decompressor = Decompressor::default();
                assert!(decompressor.decompress(padded.stored, bytes, &mut found));
                assert!(found == plain, "{padding}");
            }
            match padding {
                Padding::Off => assert!(lengths.len() > 400),
                Padding::Step(step) => {
                    assert!(lengths.iter().all(|length| length.is_multiple_of(step as usize)));
                }
                Padding::PowerOfTwo => {
                    assert!(lengths.iter().all(|length| length.is_power_of_two()))
                }
            }
        }
    }

    #[test]
    fn a_whole_record_that_does_not_compress_costs_nothing() {
        let mut noise = vec![0; 1 << 17];
        fastrand::Rng::with_seed(4).fill(&mut noise);
        for padding in kinds() {
            let padded = Padder::new(padding).pad(&noise, (Stored::Plain, &noise)).bytes.len();
            assert_eq!(padded, noise.len(), "{padding}");
        }
    }

    #[test]
    fn impossible_lengths_are_refused() {
        for (compressed, plain) in [(0, 1), (1, 0), (2, 1), (93, 93), (1, u32::MAX), (u32::MAX, 9)]
        {
            let mut bytes = vec![0; 100];
            bytes[92..96].copy_from_slice(&u32::to_le_bytes(compressed));
            bytes[96..].copy_from_slice(&u32::to_le_bytes(plain));
            assert_eq!(unpad(&bytes), None, "{compressed} {plain}");
        }
        (0..8).for_each(|length| assert_eq!(unpad(&vec![1; length]), None));
    }

    #[test]
    fn steps_are_powers_of_two() {
        assert_eq!("16K".parse(), Ok(Padding::Step(16 << 10)));
        assert_eq!("1M".parse::<Padding>().unwrap().to_string(), "1024K");
        for padding in kinds() {
            assert_eq!(padding.to_string().parse(), Ok(padding));
        }
        for wrong in ["", "on", "K", "3K", "256", "2M", "-1", "4k", "99999999M"] {
            assert!(wrong.parse::<Padding>().is_err(), "{wrong}");
        }
    }
}
