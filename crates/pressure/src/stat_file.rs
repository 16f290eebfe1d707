//! A small kernel file that is opened once and read from its beginning many times.
//!
//! procfs and cgroups generate the text of a file at every read from offset 0. So one open
//! descriptor serves for good and needs no path lookup, even if the process later loses the right
//! to open the file. The text goes to a buffer on the caller's stack.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes for the longest file read here, `memory.stat` of cgroup v1 and v2 (under 4 KiB in 6.18).
const BUFFER_BYTES: usize = 16 << 10;

#[derive(Debug)]
pub(crate) struct StatFile {
    file: File,
}

impl StatFile {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        // Opening a directory or an unreadable file (a root cgroup's) succeeds, so reading it must
        // fail here.
        let opened = Self { file };
        opened.with_text(|_| ())?;
        Ok(opened)
    }

    /// Passes the present text to `parse`. Bytes that are not UTF-8 end the text.
    pub(crate) fn with_text<R>(&self, parse: impl FnOnce(&str) -> R) -> io::Result<R> {
        let mut buffer = [0; BUFFER_BYTES];
        let mut length = 0;
        while length < buffer.len() {
            match self.file.read_at(&mut buffer[length..], length as u64) {
                Ok(0) => break,
                Ok(read) => length += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let text = match std::str::from_utf8(&buffer[..length]) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&buffer[..error.valid_up_to()]).unwrap_or(""),
        };
        Ok(parse(text))
    }

    /// The single number in a cgroup file; `None` for `max` (no limit).
    pub(crate) fn number(&self) -> io::Result<Option<u64>> {
        self.with_text(|text| match text.trim() {
            "max" => Ok(None),
            text => text.parse().map(Some).map_err(|_| {
                io::Error::new(io::ErrorKind::InvalidData, format!("not a number: {text:?}"))
            }),
        })?
    }
}

impl AsFd for StatFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The number after `key` in a text of `key value` lines (`memory.stat`, `memory.events`).
pub(crate) fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_file_shows_changes_and_a_key_is_matched_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memory.current");
        std::fs::write(&path, "123\n").unwrap();
        let file = StatFile::open(&path).unwrap();
        assert_eq!(file.number().unwrap(), Some(123));
        std::fs::write(&path, "max\n").unwrap();
        assert_eq!(file.number().unwrap(), None);
        std::fs::write(&path, "12x\n").unwrap();
        assert_eq!(file.number().unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert!(StatFile::open(directory.path()).is_err());
        let stat = "inactive_file_total 9\ninactive_file 7\nactive_file 5\n";
        assert_eq!(keyed(stat, "inactive_file"), Some(7));
        assert_eq!(keyed(stat, "file"), None);
    }
}
