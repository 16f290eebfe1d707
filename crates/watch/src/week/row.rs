//! One minute as bytes, and back.
//!
//! The first byte is the version of the format; the rest is compressed. It has the number of
//! series, the number of each, the form of each (only zero, one value, or three), and the values. A
//! value is the upper three bytes of an `f32`, which hold four digits and more. The file is
//! untrusted input: for any bytes, [`decode`] returns a minute or none.

use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

/// The form that is written, and the only one that is read.
const FORM: u8 = 1;
/// Bytes of a minute that are looked at, after they are unpacked: all series with three values.
const BYTES_MAX: u64 = 64 << 10;
/// Bytes of a value.
const VALUE_BYTES: usize = 3;

const ZERO: u8 = 0;
const ONE: u8 = 1;
const THREE: u8 = 3;

/// The values of a series in a minute, or in several.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    pub(super) mean: f32,
    pub(super) min: f32,
    pub(super) max: f32,
}

/// A minute: what each series was, by its number.
pub(super) type Row = Vec<(u16, Spread)>;

/// The bytes of a minute.
pub(super) fn encode(row: &[(u16, Spread)]) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(row.len() * 6);
    let count = u16::try_from(row.len()).unwrap_or(u16::MAX);
    let row = &row[..usize::from(count)];
    out.extend_from_slice(&count.to_le_bytes());
    for (number, _) in row {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend(row.iter().map(|(_, spread)| spread.kind()));
    for (_, spread) in row {
        let all = [spread.mean, spread.min, spread.max];
        for value in &all[..usize::from(spread.kind())] {
            out.extend_from_slice(&value.to_be_bytes()[..VALUE_BYTES]);
        }
    }
    let mut packed = DeflateEncoder::new(vec![FORM], Compression::new(6));
    packed.write_all(&out)?;
    packed.finish()
}

/// A minute out of its bytes; `None` if they are none.
pub(super) fn decode(bytes: &[u8]) -> Option<Row> {
    let (form, packed) = bytes.split_first()?;
    if *form != FORM {
        return None;
    }
    let mut text = Vec::new();
    DeflateDecoder::new(packed).take(BYTES_MAX).read_to_end(&mut text).ok()?;
    let mut rest = text.as_slice();
    let count = usize::from(u16::from_le_bytes(take::<2>(&mut rest)?));
    let numbers: Vec<u16> =
        (0..count).map(|_| Some(u16::from_le_bytes(take(&mut rest)?))).collect::<Option<_>>()?;
    let kinds = rest.get(..count)?;
    rest = &rest[count..];
    let mut row = Vec::with_capacity(count);
    for (number, kind) in numbers.into_iter().zip(kinds) {
        let mut value =
            || take::<VALUE_BYTES>(&mut rest).map(|[a, b, c]| f32::from_be_bytes([a, b, c, 0]));
        let spread = match *kind {
            ZERO => Spread::of(0.0),
            ONE => Spread::of(value()?),
            THREE => Spread { mean: value()?, min: value()?, max: value()? },
            _ => return None,
        };
        if [spread.mean, spread.min, spread.max].iter().all(|value| value.is_finite()) {
            row.push((number, spread));
        }
    }
    Some(row)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, left) = rest.split_first_chunk()?;
    *rest = left;
    Some(*taken)
}

impl Spread {
    /// One value all the time.
    pub(super) fn of(value: f32) -> Self {
        Self { mean: value, min: value, max: value }
    }

    fn kind(&self) -> u8 {
        match () {
            () if self.min != self.max => THREE,
            () if self.mean == 0.0 => ZERO,
            () => ONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_minute_comes_back_to_four_digits(
            values in prop::collection::vec((any::<u16>(), -1e12_f32..1e12, 0_f32..1e6), 0..300)
        ) {
            let row: Row = values
                .iter()
                .map(|&(number, mean, half)| {
                    (number, Spread { mean, min: mean - half, max: mean + half })
                })
                .collect();
            let back = decode(&encode(&row).unwrap()).unwrap();
            prop_assert_eq!(back.len(), row.len());
            for ((number, answer), (own, spread)) in back.iter().zip(&row) {
                prop_assert_eq!(number, own);
                let pairs =
                    [(answer.mean, spread.mean), (answer.min, spread.min), (answer.max, spread.max)];
                for (answer, own) in pairs {
                    prop_assert!((answer - own).abs() <= own.abs() * 1e-4, "{} for {}", answer, own);
                }
            }
        }

        #[test]
        fn any_bytes_are_a_minute_or_none(mut bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode(&bytes);
            if let Some(first) = bytes.first_mut() {
                *first = FORM;
            }
            let _ = decode(&bytes);
            // And what is unpacked from them.
            let mut packed = DeflateEncoder::new(vec![FORM], Compression::fast());
            packed.write_all(&bytes).unwrap();
            let _ = decode(&packed.finish().unwrap());
        }
    }

    #[test]
    fn data_that_expands_without_end_is_cut() {
        let mut packed = DeflateEncoder::new(vec![FORM], Compression::best());
        packed.write_all(&vec![0; 64 << 20]).unwrap();
        let bytes = packed.finish().unwrap();
        assert_eq!(decode(&bytes), Some(Row::new()), "as many as its first bytes say: none");
    }

    #[test]
    fn an_idle_series_takes_next_to_nothing() {
        let row: Row = (0..150).map(|number| (number, Spread::of(0.0))).collect();
        let bytes = encode(&row).unwrap();
        assert!(bytes.len() < 260, "{} bytes", bytes.len());
    }
}
