//! The names in a directory, read once and kept as one piece.
//!
//! A listing is immutable. It is read whole when a program starts to read a directory, so that
//! later changes never disturb the reader.
//!
//! An offset into it is a position with the listing's number above it. The kernel keeps the names
//! of several readers in one list, in the order of their offsets. Without the number it would read
//! on in one listing where another ended. Offsets have 30 bits. 32-bit programs take 31 bits, but
//! half of that range is for directories larger than [`NAMES_MAX`]. Those are read through
//! ([`crate::dir_cookies`]).

use ogive_origin::{DirectoryEntry, Errno, FileKind, Origin};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Most names that a listing keeps; about 2 MiB with names of 32 bytes.
const NAMES_MAX: usize = 1 << 15;
/// Bits of a cookie for the position of the name before it, below [`NAMES_MAX`]. The bits above are
/// the listing's number.
const POSITION_BITS: u32 = 15;
const NUMBER_BITS: u32 = 15;

/// The names of one directory.
#[derive(Debug)]
pub(crate) struct Listing {
    /// The part above the position in its cookies: not 0, and different from all recent listings'.
    number: u64,
    names: Vec<u8>,
    entries: Vec<Name>,
    /// How many handles hold it ([`crate::held_names`]).
    holders: AtomicUsize,
}

#[derive(Debug)]
struct Name {
    inode: u64,
    end: u32,
    kind: Option<FileKind>,
}

impl Listing {
    fn empty() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed) % ((1 << NUMBER_BITS) - 1) + 1;
        Self { number, names: Vec::new(), entries: Vec::new(), holders: AtomicUsize::new(0) }
    }

    /// A listing of these names, all of files.
    #[cfg(test)]
    pub(crate) fn of_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut listing = Self::empty();
        for name in names {
            let (name, kind) = (OsStr::new(name), Some(FileKind::Regular));
            assert!(listing.push(DirectoryEntry { name, inode: 2, kind, cookie: 0 }));
        }
        listing
    }

    /// Whether a handle holds it.
    pub(crate) fn is_held(&self) -> bool {
        self.holders.load(Ordering::Relaxed) > 0
    }

    /// Adds a handle that holds it; returns whether it is the first.
    pub(crate) fn is_held_once_more(&self) -> bool {
        self.holders.fetch_add(1, Ordering::Relaxed) == 0
    }

    /// Removes a handle that holds it; returns whether it was the last.
    pub(crate) fn is_held_once_less(&self) -> bool {
        self.holders.fetch_sub(1, Ordering::Relaxed) == 1
    }

    /// Reads the directory, with attributes if they will be needed next. `None` if it has too many
    /// names to keep.
    pub(crate) fn read<O: Origin>(
        origin: &O,
        directory: &O::Directory,
        attributes: bool,
    ) -> Result<Option<Self>, Errno> {
        let mut listing = Self::empty();
        let mut fits = true;
        let mut visit = |entry: DirectoryEntry<'_>| {
            fits = listing.push(entry);
            fits
        };
        match attributes {
            true => read_with_attributes(origin, directory, &mut visit)?,
            false => origin.read_directory(directory, 0, &mut visit)?,
        }
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

    /// The number of names.
    pub(crate) fn count(&self) -> usize {
        self.entries.len()
    }

    /// Whether this listing gave out a cookie.
    pub(crate) fn gave_out(&self, cookie: u64) -> bool {
        cookie >> POSITION_BITS == self.number
    }

    /// Calls `visit` for each entry from `cookie` on, 0 for the first, until it returns false.
    pub(crate) fn visit(&self, cookie: u64, visit: &mut dyn FnMut(DirectoryEntry<'_>) -> bool) {
        // A cookie of another listing belongs to another handle, or is very old. Its position is as
        // good as any.
        let position = cookie & ((1 << POSITION_BITS) - 1);
        let first = if cookie == 0 { 0 } else { position as usize + 1 };
        let first = first.min(self.entries.len());
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
                cookie: self.number << POSITION_BITS | position as u64,
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

/// Reads a directory from its start, for an origin that gets attributes with names. So no request
/// for each entry has to follow.
///
/// A FUSE source sends attributes with the first piece of a directory. It sends them with each
/// further piece if an entry of the piece before was looked up. So one entry of each piece is
/// looked up.
pub(crate) fn read_with_attributes<O: Origin>(
    origin: &O,
    directory: &O::Directory,
    visit: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
) -> Result<(), Errno> {
    /// Fewer than any piece has: 32 KiB of the longest names, each with 152 more bytes.
    const NAMES_A_LOOK: usize = 64;
    let mut count = 0;
    origin.read_directory(directory, 0, &mut |entry| {
        if entry.name != "." && entry.name != ".." {
            if count % NAMES_A_LOOK == 0 {
                // Whether the entry still exists matters only when it is used.
                let _ = origin.lookup_in(directory, entry.name);
            }
            count += 1;
        }
        visit(entry)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dir_cookies::is_through;

    #[test]
    fn reading_on_from_any_cookie_gives_the_rest() {
        let mut listing = Listing::empty();
        let names: Vec<String> = (0..100).map(|i| "x".repeat(i % 7) + &i.to_string()).collect();
        for (inode, name) in names.iter().enumerate() {
            let name = OsStr::new(name);
            let kind = Some(FileKind::Regular);
            assert!(listing.push(DirectoryEntry { name, inode: inode as u64, kind, cookie: 0 }));
        }
        let mut cookies = vec![0];
        listing.visit(0, &mut |entry| {
            assert!(listing.gave_out(entry.cookie) && !is_through(entry.cookie));
            assert!(entry.cookie < 1 << 31, "32-bit programs can read on as well");
            cookies.push(entry.cookie);
            true
        });
        for (from, cookie) in cookies.into_iter().enumerate() {
            let mut seen = Vec::new();
            listing.visit(cookie, &mut |entry| {
                seen.push(entry.name.to_str().unwrap().to_owned());
                true
            });
            assert_eq!(seen, names[from..]);
        }
        let other = Listing::empty();
        assert_ne!(other.number, listing.number);
        listing.visit(0, &mut |entry| {
            assert!(!other.gave_out(entry.cookie));
            true
        });
    }

    #[test]
    fn a_listing_has_a_limit() {
        let mut listing = Listing::empty();
        let name = OsStr::new("n");
        for inode in 0..NAMES_MAX as u64 {
            assert!(listing.push(DirectoryEntry { name, inode, kind: None, cookie: 0 }));
        }
        assert!(!listing.push(DirectoryEntry { name, inode: 0, kind: None, cookie: 0 }));
        let mut last = 0;
        listing.visit(0, &mut |entry| {
            last = entry.cookie;
            true
        });
        assert!(listing.gave_out(last), "the last position also fits");
        listing.visit(last, &mut |_| panic!("no name follows the last"));
    }
}
