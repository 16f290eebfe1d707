//! The names in a directory, read once and kept as one piece.
//!
//! A listing is immutable. It is read whole when a program starts to read a directory, so that
//! reading on is never disturbed by changes, and offsets into it are simply positions. Directories
//! larger than [`NAMES_MAX`] are not kept: they are read through, with the origin's own cookies.

use ogive_origin::{DirectoryEntry, Errno, FileKind, Origin};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Most names that a listing keeps; about 2 MiB with names of 32 bytes.
const NAMES_MAX: usize = 1 << 15;

/// The names of one directory.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    names: Vec<u8>,
    entries: Vec<Name>,
}

#[derive(Debug)]
struct Name {
    inode: u64,
    end: u32,
    kind: Option<FileKind>,
}

impl Listing {
    /// Reads the directory; `None` if it has too many names to keep.
    pub(crate) fn read<O: Origin>(
        origin: &O,
        directory: &O::Directory,
    ) -> Result<Option<Self>, Errno> {
        let mut listing = Self::default();
        let mut fits = true;
        origin.read_directory(directory, 0, &mut |entry| {
            fits = listing.push(entry);
            fits
        })?;
        listing.names.shrink_to_fit();
        listing.entries.shrink_to_fit();
        Ok(fits.then_some(listing))
    }

    fn push(&mut self, entry: DirectoryEntry<'_>) -> bool {
        let end = self.names.len() + entry.name.len();
        let Ok(end) = u32::try_from(end) else {
            return false;
        };
        if self.entries.len() == NAMES_MAX {
            return false;
        }
        self.names.extend_from_slice(entry.name.as_bytes());
        self.entries.push(Name { inode: entry.inode, end, kind: entry.kind });
        true
    }

    /// Calls `visit` for each entry from position `cookie` on until it returns false.
    pub(crate) fn visit(&self, cookie: u64, visit: &mut dyn FnMut(DirectoryEntry<'_>) -> bool) {
        let first = usize::try_from(cookie).unwrap_or(usize::MAX).min(self.entries.len());
        let mut start = match first {
            0 => 0,
            _ => self.entries[first - 1].end as usize,
        };
        for (position, entry) in self.entries.iter().enumerate().skip(first) {
            let name = &self.names[start..entry.end as usize];
            start = entry.end as usize;
            let proceed = visit(DirectoryEntry {
                name: OsStr::from_bytes(name),
                inode: entry.inode,
                kind: entry.kind,
                cookie: position as u64 + 1,
            });
            if !proceed {
                return;
            }
        }
    }

    /// Memory it takes, in bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        self.names.capacity() + self.entries.capacity() * size_of::<Name>() + size_of::<Self>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_on_from_any_cookie_gives_the_rest() {
        let mut listing = Listing::default();
        let names: Vec<String> = (0..100).map(|i| "x".repeat(i % 7) + &i.to_string()).collect();
        for (inode, name) in names.iter().enumerate() {
            let name = OsStr::new(name);
            let kind = Some(FileKind::Regular);
            assert!(listing.push(DirectoryEntry { name, inode: inode as u64, kind, cookie: 0 }));
        }
        for from in 0..=101u64 {
            let mut seen = Vec::new();
            listing.visit(from, &mut |entry| {
                assert_eq!(entry.cookie, entry.inode + 1);
                seen.push(entry.name.to_str().unwrap().to_owned());
                true
            });
            assert_eq!(seen, names[(from as usize).min(100)..]);
        }
    }

    #[test]
    fn a_listing_has_a_limit() {
        let mut listing = Listing::default();
        let name = OsStr::new("n");
        for inode in 0..NAMES_MAX as u64 {
            assert!(listing.push(DirectoryEntry { name, inode, kind: None, cookie: 0 }));
        }
        assert!(!listing.push(DirectoryEntry { name, inode: 0, kind: None, cookie: 0 }));
    }
}
