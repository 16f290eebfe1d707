//! Compression of records, where it pays.

use crate::format::RECORD_MAX_BYTES;
use std::fmt;

/// A record is stored compressed only if that saves one byte in this many, as in OpenZFS.
const WORTH_SHARE: usize = 8;

/// The compression to try on records that are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Nothing.
    Off,
    /// LZ4 blocks: a tenth of what decompression costs otherwise.
    #[default]
    Lz4,
    /// Zstandard at a level from 1 to 19.
    Zstd(i32),
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Lz4 => f.write_str("lz4"),
            Self::Zstd(level) => write!(f, "zstd:{level}"),
        }
    }
}

impl std::str::FromStr for Compression {
    type Err = String;

    /// `lz4`, `zstd`, `zstd:N` or `off`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text}: give lz4, zstd:N with N from 1 to 19, or off");
        match text {
            "off" => Ok(Self::Off),
            "lz4" => Ok(Self::Lz4),
            "zstd" => Ok(Self::Zstd(1)),
            _ => {
                let level = text.strip_prefix("zstd:").and_then(|level| level.parse().ok());
                level.filter(|level| (1..=19).contains(level)).map(Self::Zstd).ok_or_else(wrong)
            }
        }
    }
}

/// How the bytes of a record are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// As they are.
    Plain,
    /// As an LZ4 block.
    Lz4,
    /// As a Zstandard frame.
    Zstd,
}

impl Stored {
    /// Its number on a device.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The way of a number.
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::Plain, Self::Lz4, Self::Zstd].into_iter().find(|stored| stored.number() == number)
    }
}

/// Compresses record after record; for one thread.
pub struct Compressor {
    way: Way,
    buffer: Vec<u8>,
}

enum Way {
    Off,
    Lz4,
    Zstd(Box<zstd::bulk::Compressor<'static>>),
}

impl Compressor {
    /// # Errors
    /// If Zstandard cannot have its memory.
    pub fn new(compression: Compression) -> std::io::Result<Self> {
        let way = match compression {
            Compression::Off => Way::Off,
            Compression::Lz4 => Way::Lz4,
            Compression::Zstd(level) => Way::Zstd(Box::new(zstd::bulk::Compressor::new(level)?)),
        };
        Ok(Self { way, buffer: Vec::new() })
    }

    /// A compressor that leaves everything unchanged.
    pub fn none() -> Self {
        Self { way: Way::Off, buffer: Vec::new() }
    }

    /// The bytes as they will be stored.
    pub fn compress<'a>(&'a mut self, plain: &'a [u8]) -> (Stored, &'a [u8]) {
        let room = match &self.way {
            Way::Off => return (Stored::Plain, plain),
            Way::Lz4 => lz4_flex::block::get_maximum_output_size(plain.len()),
            Way::Zstd(_) => zstd::zstd_safe::compress_bound(plain.len()),
        };
        if self.buffer.len() < room {
            self.buffer.resize(room, 0);
        }
        let (stored, length) = match &mut self.way {
            Way::Off => return (Stored::Plain, plain),
            Way::Lz4 => (Stored::Lz4, lz4_flex::block::compress_into(plain, &mut self.buffer).ok()),
            Way::Zstd(context) => {
                (Stored::Zstd, context.compress_to_buffer(plain, self.buffer.as_mut_slice()).ok())
            }
        };
        match length {
            Some(length) if length > 0 && length <= plain.len() - plain.len() / WORTH_SHARE => {
                (stored, &self.buffer[..length])
            }
            _ => (Stored::Plain, plain),
        }
    }
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}

/// Decompresses, for one thread, whose contexts it reuses.
#[derive(Default)]
pub struct Decompressor {
    zstd: Option<zstd::bulk::Decompressor<'static>>,
}

impl fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decompressor").finish_non_exhaustive()
    }
}

impl Decompressor {
    /// Fills `plain` with the decompressed bytes; false if they have another length.
    #[must_use]
    pub fn decompress(&mut self, way: Stored, stored: &[u8], plain: &mut [u8]) -> bool {
        if plain.len() > RECORD_MAX_BYTES {
            return false;
        }
        let length = match way {
            Stored::Plain => {
                if stored.len() == plain.len() {
                    plain.copy_from_slice(stored);
                }
                Some(stored.len())
            }
            Stored::Lz4 => lz4_flex::block::decompress_into(stored, plain).ok(),
            Stored::Zstd => {
                if self.zstd.is_none() {
                    self.zstd = zstd::bulk::Decompressor::new().ok();
                }
                let context = self.zstd.as_mut();
                context.and_then(|context| context.decompress_to_buffer(stored, plain).ok())
            }
        };
        length == Some(plain.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_compresses_well_comes_back() {
        let text: Vec<u8> = (0..100_000u32).flat_map(|i| (i / 64).to_le_bytes()).collect();
        for (compression, expected) in [
            (Compression::Lz4, Stored::Lz4),
            (Compression::Zstd(3), Stored::Zstd),
            (Compression::Off, Stored::Plain),
        ] {
            let mut compressor = Compressor::new(compression).unwrap();
            let (way, stored) = compressor.compress(&text);
            assert_eq!(way, expected);
            let mut plain = vec![1; text.len()];
            let mut decompressor = Decompressor::default();
            assert!(decompressor.decompress(way, stored, &mut plain));
            assert_eq!(plain, text);
            let mut longer = vec![0; text.len() + 1];
            assert!(!decompressor.decompress(way, stored, &mut longer), "a length that lies");
            assert!(!decompressor.decompress(way, stored, &mut plain[1..]), "a length that lies");
        }
    }

    #[test]
    fn a_record_that_hardly_compresses_is_stored_as_it_is() {
        let mut random = fastrand::Rng::with_seed(1);
        let noise: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(9000).collect();
        for compression in [Compression::Lz4, Compression::Zstd(1)] {
            let mut compressor = Compressor::new(compression).unwrap();
            assert_eq!(compressor.compress(&noise), (Stored::Plain, &noise[..]));
        }
    }

    #[test]
    fn names_of_ways_are_read() {
        assert_eq!("zstd:7".parse(), Ok(Compression::Zstd(7)));
        assert_eq!("lz4".parse::<Compression>().unwrap().to_string(), "lz4");
        for wrong in ["", "gzip", "zstd:0", "zstd:20", "zstd:x", "LZ4"] {
            assert!(wrong.parse::<Compression>().is_err(), "{wrong}");
        }
    }
}
