//! Decompresses sources: gzip, xz and Zstandard, recognised by their first bytes. The memory of
//! decoders and the size of their output are bounded.

use std::io::{self, BufRead, Read};

/// Memory for the window of an xz or Zstandard decoder at most.
const WINDOW_BYTES_MAX: u64 = 256 << 20;

/// The compression of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Xz,
    Zstandard,
}

impl Compression {
    /// The compression by the first bytes.
    pub(crate) fn of(prefix: &[u8]) -> Self {
        if prefix.starts_with(&[0x1f, 0x8b]) {
            Self::Gzip
        } else if prefix.starts_with(&[0xfd, b'7', b'z', b'X', b'Z', 0]) {
            Self::Xz
        } else if prefix.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            Self::Zstandard
        } else {
            Self::None
        }
    }

    /// A reader of the decompressed bytes.
    pub(crate) fn reader<'r>(self, source: impl BufRead + 'r) -> io::Result<Box<dyn Read + 'r>> {
        Ok(match self {
            Self::None => Box::new(source),
            Self::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(source)),
            Self::Xz => {
                let flags = xz2::stream::CONCATENATED;
                let stream = xz2::stream::Stream::new_stream_decoder(WINDOW_BYTES_MAX, flags)?;
                Box::new(xz2::bufread::XzDecoder::new_stream(source, stream))
            }
            Self::Zstandard => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(source)?;
                decoder.window_log_max(WINDOW_BYTES_MAX.ilog2())?;
                Box::new(decoder)
            }
        })
    }
}

/// Decompresses a whole file into at most `bytes_max` of memory.
///
/// # Errors
///
/// The error of the decoder, or more than `bytes_max`.
pub(crate) fn decompress(source: &[u8], bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let reader = Compression::of(source).reader(source)?;
    reader.take(bytes_max + 1).read_to_end(&mut out)?;
    if out.len() as u64 > bytes_max {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("more than {} MiB when decompressed", bytes_max >> 20),
        ));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn each_compression_is_recognised_and_decoded() {
        let text = b"a;b;c 42\n".repeat(1000);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&text).unwrap();
        let mut xz = xz2::write::XzEncoder::new(Vec::new(), 1);
        xz.write_all(&text).unwrap();
        let zstd = zstd::encode_all(&text[..], 1).unwrap();
        for packed in [gzip.finish().unwrap(), xz.finish().unwrap(), zstd, text.clone()] {
            assert_eq!(decompress(&packed, 1 << 20).unwrap(), text);
            assert!(decompress(&packed, 100).is_err());
        }
    }
}
