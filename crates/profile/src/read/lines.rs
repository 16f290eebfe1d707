//! Reads lines of outside text: bounded in length, any bytes, any line end. Invalid UTF-8 is
//! replaced.

use std::borrow::Cow;
use std::io::{self, BufRead};

/// Bytes of one line at most; the rest of a longer one is skipped.
const LINE_BYTES_MAX: usize = 1 << 20;

/// Reads lines into one buffer.
pub(crate) struct Lines<R> {
    source: R,
    line: Vec<u8>,
    /// The number of the current line, from 1.
    pub(crate) number: u64,
    /// The number of cut lines.
    pub(crate) cut: u64,
    /// The error that ended reading early.
    pub(crate) error: Option<io::Error>,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(source: R) -> Self {
        Self { source, line: Vec::new(), number: 0, cut: 0, error: None }
    }

    /// The next line without its end. An error ends the lines and stays in `error`.
    pub(crate) fn next(&mut self) -> Option<Cow<'_, str>> {
        match self.fill() {
            Ok(false) => None,
            Err(error) => {
                self.error = Some(error);
                None
            }
            Ok(true) => {
                self.number += 1;
                while matches!(self.line.last(), Some(b'\n' | b'\r')) {
                    self.line.pop();
                }
                Some(String::from_utf8_lossy(&self.line))
            }
        }
    }

    fn fill(&mut self) -> io::Result<bool> {
        self.line.clear();
        let mut any = false;
        loop {
            let available = match self.source.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // A compressed file is truncated: the line up to there still counts.
                Err(error) if any => {
                    self.error = Some(error);
                    return Ok(true);
                }
                Err(error) => return Err(error),
            };
            if available.is_empty() || self.error.is_some() {
                return Ok(any);
            }
            any = true;
            let end = memchr::memchr(b'\n', available);
            let taken = end.map_or(available.len(), |end| end + 1);
            let room = LINE_BYTES_MAX.saturating_sub(self.line.len());
            if taken > room && room > 0 {
                self.cut += 1;
            }
            self.line.extend_from_slice(&available[..taken.min(room)]);
            self.source.consume(taken);
            if end.is_some() {
                return Ok(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_make_lines_of_bounded_length() {
        let mut bytes = b"one\r\n\n\xff\xfe\n".to_vec();
        bytes.extend(std::iter::repeat_n(b'x', LINE_BYTES_MAX + 5));
        bytes.extend(b"\nlast");
        let mut lines = Lines::new(io::BufReader::with_capacity(7, &bytes[..]));
        let mut seen = Vec::new();
        while let Some(line) = lines.next() {
            seen.push(line.chars().count());
        }
        assert_eq!(seen, [3, 0, 2, LINE_BYTES_MAX, 4]);
        assert_eq!((lines.number, lines.cut), (5, 1));
    }
}
