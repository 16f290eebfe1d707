//! The position of a reader in an open directory.
//!
//! A directory of usual size is listed whole. The listing stays with the handle, and the attributes
//! of its names come from it. A directory that exceeds the budget ([`super::name_budget`]), or has
//! too many names, is read page by page. The handle then holds the entries that it returned last
//! and the next page.
//!
//! # Places
//! The place of an entry counts from 1, in the order in which the entries were first returned,
//! after `.` and `..`. A reader that seeks back too far in a paged directory lists it again and
//! counts the places. Names that were added or removed in the meantime shift them.
//!
//! # Names
//! As in a [`Snapshot`], with one difference. When a page returns an object, a directory of the
//! same name may follow on a later page. So the entry is the object, and the directory is not
//! returned again; a lookup of the name finds the directory.
//!
//! # Locks
//! The handle's, a leaf. A paged reader is taken out of it while it reads.

use super::directory::{Item, Named, Snapshot};
use crate::{KeyRules, Object, Pages, Result};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// How many entries a reader may seek back without a new listing: more than one answer to the
/// kernel holds.
const BACK_MAX: u64 = 1 << 13;

/// How far a reader has come.
#[derive(Debug, Default)]
pub(super) enum DirectoryReader {
    #[default]
    Nothing,
    Whole(Arc<Snapshot>),
    Paged(Box<PagedReader>),
    /// All entries were returned, this many; none is in memory.
    Ended(u64),
}

/// A reader of a directory by pages.
pub(super) struct PagedReader {
    prefix: Box<str>,
    rules: &'static KeyRules,
    /// The remaining pages, if any.
    pages: Option<Box<dyn Pages>>,
    /// The entries returned last, and those that have arrived but were not returned.
    window: VecDeque<(Box<str>, Item)>,
    /// The place before the first entry of the window.
    first: u64,
    /// Returned objects whose name a later directory may have. Each name is a prefix of the next.
    above: Vec<Box<str>>,
    /// Staged files that were not returned yet, by name.
    staged: HashMap<Box<str>, Object>,
    /// How many hidden keys have arrived since this was last read.
    pub(super) hidden: u64,
}

impl std::fmt::Debug for PagedReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PagedReader").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl PagedReader {
    /// A reader of these pages, combined with the staged files.
    pub(super) fn in_pages(
        prefix: &str,
        rules: &'static KeyRules,
        pages: Box<dyn Pages>,
        staged: Vec<Object>,
    ) -> Self {
        let name = |object: &Object| object.key.get(prefix.len()..).map(Box::from);
        let staged = staged.into_iter().filter_map(|object| Some((name(&object)?, object)));
        Self {
            prefix: prefix.into(),
            rules,
            pages: Some(pages),
            window: VecDeque::new(),
            first: 0,
            above: Vec::new(),
            staged: staged.collect(),
            hidden: 0,
        }
    }

    /// Whether it can read from a place on without a new listing.
    pub(super) fn has(&self, place: u64) -> bool {
        place >= self.first
    }

    /// Calls `visit` for the entries after a place, until it returns false. Whether the end was
    /// reached.
    ///
    /// # Errors
    /// Those of the store. The reader cannot be used after one.
    pub(super) fn read(
        &mut self,
        after: u64,
        visit: &mut dyn FnMut(u64, &str, &Item) -> bool,
    ) -> Result<bool> {
        let mut place = after;
        loop {
            let kept_from = after.max(place.saturating_sub(BACK_MAX));
            while self.first < kept_from && self.window.pop_front().is_some() {
                self.first += 1;
            }
            while let Some((name, item)) = self.window.get((place - self.first) as usize) {
                if !visit(place + 1, name, item) {
                    return Ok(false);
                }
                place += 1;
            }
            if !self.fill()? {
                return Ok(true);
            }
        }
    }

    /// Fetches the next entries. Whether there are more.
    fn fill(&mut self) -> Result<bool> {
        let Some(pages) = &mut self.pages else { return Ok(false) };
        let page = pages.next()?;
        if page.is_empty() {
            self.pages = None;
            let left = std::mem::take(&mut self.staged).into_iter();
            self.window.extend(left.map(|(name, object)| (name, Item::File(object))));
            return Ok(!self.window.is_empty());
        }
        for entry in page {
            let (name, item) = match Named::of(self.rules, &self.prefix, entry) {
                Named::Shown(name, item) => (name, item),
                Named::Marker => continue,
                Named::Hidden(..) => {
                    self.hidden += 1;
                    continue;
                }
            };
            while self.above.last().is_some_and(|above| !name.starts_with(&**above)) {
                self.above.pop();
            }
            if self.above.last().is_some_and(|above| *above == name) {
                // It was returned as an object, or by its marker.
                continue;
            }
            self.above.push(name.clone());
            let item = match self.staged.remove(&name) {
                Some(object) if item != Item::Directory => Item::File(object),
                _ => item,
            };
            self.window.push_back((name, item));
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::directory::pages;
    use crate::{Bucket as _, BucketError, Fault, MemoryBucket, Operation};
    use ogive_origin::{DirectoryEntry, Origin as _};
    use std::time::Duration;

    fn reader(bucket: &MemoryBucket, staged: Vec<Object>) -> PagedReader {
        PagedReader::in_pages("d/", bucket.key_rules(), pages(bucket, "d/").unwrap(), staged)
    }

    /// At most `most` names after a place, and whether they reached the end.
    fn read(reader: &mut PagedReader, after: u64, most: usize) -> (Vec<String>, bool) {
        let mut names = Vec::new();
        let mut place = after;
        let is_all = reader.read(after, &mut |number, name, _| {
            place += 1;
            assert_eq!(number, place);
            let has_room = names.len() < most;
            if has_room {
                names.push(name.to_owned());
            }
            has_room
        });
        (names, is_all.unwrap())
    }

    #[test]
    fn a_directory_of_any_size_is_read_with_few_names_in_memory_and_each_page_once() {
        let bucket = MemoryBucket::new();
        for number in 0..25_500 {
            bucket.foreign_put(&format!("d/{number:05}"), "x");
        }
        let mut reader = reader(&bucket, Vec::new());
        let mut all = Vec::new();
        loop {
            let (names, is_all) = read(&mut reader, all.len() as u64, 700);
            all.extend(names);
            assert!(reader.window.len() <= 1700, "{} entries", reader.window.len());
            if is_all {
                break;
            }
        }
        assert_eq!(all.len(), 25_500);
        assert!(all.is_sorted());
        assert_eq!(bucket.requests(Operation::List), 26);
        // One read to the end keeps only as much as a reader may seek back.
        let mut at_once = self::reader(&bucket, Vec::new());
        assert_eq!(read(&mut at_once, 0, usize::MAX).0, all);
        assert!(at_once.window.len() as u64 <= BACK_MAX + 1000);
        assert!(at_once.has(25_500 - BACK_MAX) && !at_once.has(0));
        // A reader may start at any place.
        let (names, _) = read(&mut self::reader(&bucket, Vec::new()), 12_345, 2);
        assert_eq!(names, ["12345", "12346"]);
    }

    #[test]
    fn a_name_is_returned_once_and_staged_files_with_their_local_state() {
        let bucket = MemoryBucket::new();
        for key in ["d/", "d/a", "d/a!", "d/a!b", "d/a/x", "d/b/", "d/b/y", "d/c"] {
            bucket.foreign_put(key, "x");
        }
        let staged = |key: &str| Object { size_bytes: 9, key: key.to_owned(), ..object() };
        let mut reader = reader(&bucket, vec![staged("d/c"), staged("d/new")]);
        let mut sizes = Vec::new();
        let read = reader.read(0, &mut |_, name, item| {
            sizes.push((
                name.to_owned(),
                match item {
                    Item::Directory => None,
                    Item::File(object) => Some(object.size_bytes),
                },
            ));
            true
        });
        assert!(read.unwrap());
        let of = |name: &str, size| (name.to_owned(), size);
        let one = Some(1);
        let expected = [of("a", one), of("a!", one), of("a!b", one), of("b", None)];
        assert_eq!(sizes, [&expected[..], &[of("c", Some(9)), of("new", Some(9))]].concat());
    }

    #[test]
    fn a_directory_too_large_to_be_listed_whole_is_shown_with_attributes() {
        let bucket = MemoryBucket::new();
        (0..100_500).for_each(|number| drop(bucket.foreign_put(&format!("{number:06}"), "x")));
        let origin = crate::origin::tests::origin(&bucket, Duration::ZERO);
        let root = origin.root().unwrap().node;
        let directory = origin.open_directory(&root).unwrap();
        let (mut names, mut cookie) = (Vec::new(), 0);
        let heads = bucket.requests(Operation::Head);
        loop {
            let mut returned = 0;
            let from = cookie;
            let visit = &mut |entry: DirectoryEntry<'_>| {
                returned += 1;
                cookie = entry.cookie;
                if entry.cookie > 2 {
                    let found = origin.lookup_in(&directory, entry.name).unwrap();
                    assert_eq!(found.attributes.size_bytes, 1);
                    names.push(entry.name.to_owned());
                }
                returned < 3000
            };
            origin.read_directory(&directory, from, visit).unwrap();
            if returned < 3000 {
                break;
            }
        }
        assert!(names.len() == 100_500 && names.is_sorted());
        assert_eq!(bucket.requests(Operation::Head), heads, "attributes come with the names");
        // The reader remembers the end.
        let lists = bucket.requests(Operation::List);
        origin.read_directory(&directory, cookie, &mut |_| panic!("no entry is left")).unwrap();
        assert_eq!(bucket.requests(Operation::List), lists);
        // A reader that seeks back lists the directory again. After an error it does so too, and
        // misses no entry.
        let failure = BucketError::TimedOut { key: String::new(), seconds: 1 };
        (0..60).for_each(|_| bucket.doom(Operation::List, Fault::Slow(Duration::ZERO)));
        bucket.doom(Operation::List, Fault::Fails(failure));
        let returned = &mut |_: DirectoryEntry<'_>| true;
        assert!(origin.read_directory(&directory, 50_002, returned).is_err());
        let mut again = None;
        let visit = &mut |entry: DirectoryEntry<'_>| {
            again = Some(entry.name.to_owned());
            false
        };
        origin.read_directory(&directory, 50_002, visit).unwrap();
        assert_eq!(again.unwrap(), "050000");
    }

    fn object() -> Object {
        let bucket = MemoryBucket::new();
        bucket.foreign_put("k", "x");
        bucket.head("k").unwrap()
    }
}
