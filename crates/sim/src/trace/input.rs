//! The bytes of a trace: a file or standard input, decompressed, in lines or fixed records.
//!
//! Compression is recognised by content (gzip, xz, zstd), whatever the name. The buffer is bounded
//! by the longest line, or by the caller's lookahead.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::Fault;

/// Longest line of a text format, in bytes.
pub(crate) const LINE_BYTES_MAX: usize = 64 << 10;
/// Bytes that are read at a time.
const CHUNK_BYTES: usize = 256 << 10;
/// Memory of an xz stream at most, in bytes: the dictionary of `xz -9e` is 64 MiB.
const XZ_MEMORY_BYTES: u64 = 256 << 20;

/// A reader that counts its bytes, for a progress bar.
struct Counted<R> {
    inner: R,
    bytes: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.bytes.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// Buffered bytes with their position.
pub(crate) struct Input {
    reader: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    is_over: bool,
    /// Offset of `start` in the decompressed bytes.
    offset: u64,
    line: u64,
}

impl Input {
    /// Opens a file, or standard input for `-`. Adds the compressed bytes read to `progress`.
    pub(crate) fn open(path: &Path, progress: Arc<AtomicU64>) -> io::Result<Self> {
        if path == Path::new("-") {
            return Self::new(io::stdin(), progress);
        }
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(io::Error::other("the path is a directory"));
        }
        Self::new(file, progress)
    }

    /// Reads from any reader.
    pub(crate) fn new(
        raw: impl Read + Send + 'static,
        progress: Arc<AtomicU64>,
    ) -> io::Result<Self> {
        let mut raw =
            BufReader::with_capacity(CHUNK_BYTES, Counted { inner: raw, bytes: progress });
        let mut magic = Vec::with_capacity(8);
        raw.by_ref().take(6).read_to_end(&mut magic)?;
        let whole = io::Cursor::new(magic.clone()).chain(raw);
        let reader: Box<dyn Read + Send> = match magic[..] {
            [0x1f, 0x8b, ..] => Box::new(flate2::read::MultiGzDecoder::new(whole)),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(zstd::Decoder::new(whole)?),
            [0xfd, b'7', b'z', b'X', b'Z', 0] => {
                let flags = xz2::stream::CONCATENATED;
                let stream = xz2::stream::Stream::new_stream_decoder(XZ_MEMORY_BYTES, flags)?;
                Box::new(xz2::bufread::XzDecoder::new_stream(BufReader::new(whole), stream))
            }
            _ => Box::new(whole),
        };
        Ok(Self {
            reader,
            buffer: vec![0; CHUNK_BYTES],
            start: 0,
            end: 0,
            is_over: false,
            offset: 0,
            line: 0,
        })
    }

    /// Offset of the next byte.
    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    /// Number of the last line read, from 1.
    pub(crate) const fn line_number(&self) -> u64 {
        self.line
    }

    /// Reads until the buffer has at least `bytes`, or until the end.
    fn fill(&mut self, bytes: usize) -> io::Result<()> {
        if self.end - self.start >= bytes || self.is_over {
            return Ok(());
        }
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.buffer.len() < bytes {
            self.buffer.resize(bytes, 0);
        }
        while self.end < bytes && !self.is_over {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.is_over = true,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The next bytes, at most `bytes` of them, without consuming them.
    pub(crate) fn peek(&mut self, bytes: usize) -> io::Result<&[u8]> {
        self.fill(bytes)?;
        Ok(&self.buffer[self.start..self.end.min(self.start + bytes)])
    }

    fn take(&mut self, bytes: usize) -> &[u8] {
        let start = self.start;
        self.start += bytes;
        self.offset += bytes as u64;
        &self.buffer[start..start + bytes]
    }

    /// The next `N` bytes; `None` at the end.
    pub(crate) fn record<const N: usize>(&mut self) -> Result<Option<[u8; N]>, Fault> {
        self.fill(N)?;
        match self.end - self.start {
            0 => Ok(None),
            left if left < N => {
                self.take(left);
                Err(Fault::Record(format!("the trace ends {} bytes short of a record", N - left)))
            }
            _ => {
                let mut record = [0; N];
                record.copy_from_slice(self.take(N));
                Ok(Some(record))
            }
        }
    }

    /// The next line without its end; `None` at the end.
    pub(crate) fn line(&mut self) -> Result<Option<&str>, Fault> {
        let mut searched = 0;
        let length = loop {
            let at_hand = &self.buffer[self.start..self.end];
            if let Some(at) = at_hand[searched..].iter().position(|&byte| byte == b'\n') {
                break searched + at + 1;
            }
            searched = at_hand.len();
            if self.is_over {
                break searched;
            }
            if searched > LINE_BYTES_MAX {
                return Err(Fault::End(format!(
                    "a line of more than {LINE_BYTES_MAX} bytes: this is not a text format; give the \
                     format with --format"
                )));
            }
            self.fill(searched + 1)?;
        };
        if length == 0 {
            return Ok(None);
        }
        self.line += 1;
        let line = self.take(length);
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = std::str::from_utf8(line);
        text.map(Some).map_err(|_| Fault::Record("not UTF-8 text".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn lines(bytes: &[u8]) -> Vec<String> {
        let mut input = Input::new(io::Cursor::new(bytes.to_vec()), Arc::default()).unwrap();
        let mut lines = Vec::new();
        while let Ok(Some(line)) = input.line() {
            lines.push(line.to_owned());
        }
        lines
    }

    #[test]
    fn every_compression_is_recognised_by_content() {
        let text = "1\n2\r\n\nlast".as_bytes();
        let expected = ["1", "2", "", "last"];
        assert_eq!(lines(text), expected);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text).unwrap();
        let gzip = gzip.finish().unwrap();
        assert_eq!(lines(&gzip), expected);
        let two_members = [&gzip[..], &gzip].concat();
        assert_eq!(lines(&two_members).len(), 7);
        assert_eq!(lines(&zstd::encode_all(text, 3).unwrap()), expected);
    }

    #[test]
    fn an_endless_line_is_refused_in_bounded_memory() {
        let mut input = Input::new(io::repeat(b'x'), Arc::default()).unwrap();
        assert!(matches!(input.line(), Err(Fault::End(_))));
        assert!(input.buffer.len() < 2 * CHUNK_BYTES);
    }

    #[test]
    fn a_short_record_at_the_end_is_a_fault() {
        let mut input = Input::new(&b"12345678abc"[..], Arc::default()).unwrap();
        assert_eq!(input.record::<8>().unwrap(), Some(*b"12345678"));
        assert!(matches!(input.record::<8>(), Err(Fault::Record(_))));
        assert!(matches!(input.record::<8>(), Ok(None)));
    }
}
