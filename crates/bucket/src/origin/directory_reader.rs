//! A reader of an open directory.
//!
//! The listing of a directory of usual size is taken whole and stays with the handle; the
//! attributes of its names come out of it. A directory that does not fit into the budget
//! ([`super::name_budget`]), or has more names than are taken whole, is read page by page. The
//! handle then has the entries that it returned last and the page that follows.
//!
//! # Places
//! The place of an entry is the one in which it was first returned, from 1 on, with `.` and `..`. A
//! reader that goes back in a directory that is read by pages has it listed again and counts the
//! places. Names that were added or removed meanwhile shift them.
//!
//! # Names
//! As in a [`Snapshot`], with one difference. A page does not say that a directory follows which
//! has the name of an object in it. So the entry is the object, and no second entry follows; a
//! lookup of the name finds the directory.
//!
//! # Locks
//! That of a handle, a leaf. A reader by pages is taken out of it while it reads.

use super::directory::{Item, Named, Snapshot};
use crate::{KeyRules, Object, Pages, Result};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Entries that a reader may go back in: more than an answer to the kernel has.
const BACK_MAX: u64 = 1 << 13;

/// How far a reader has come.
#[derive(Debug, Default)]
pub(super) enum DirectoryReader {
    #[default]
    Nothing,
    Whole(Arc<Snapshot>),
    PagedReader(Box<PagedReader>),
    /// So many entries were returned, to the end; none is held.
    Ended(u64),
}

/// A directory that is read through.
pub(super) struct PagedReader {
    prefix: Box<str>,
    rules: &'static KeyRules,
    /// The pages to come, if there are more.
    pages: Option<Box<dyn Pages>>,
    /// The entries returned last, and those that have arrived besides.
    window: VecDeque<(Box<str>, Item)>,
    /// The place before the first of them.
    first: u64,
    /// The objects told that a directory may still have the name of: each begins with the one
    /// before it, and what is told next with the last.
    above: Vec<Box<str>>,
    /// Changed files that were not returned yet, by name.
    staged: HashMap<Box<str>, Object>,
    /// Keys that cannot be shown, among those that came since this was looked at.
    pub(super) hidden: u64,
}

impl std::fmt::Debug for PagedReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PagedReader").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl PagedReader {
    /// One whose entries come in pages, with what is changed here.
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

    /// Whether it can be read from a place on.
    pub(super) fn has(&self, place: u64) -> bool {
        place >= self.first
    }

    /// Calls `visit` for the entries after a place, with the place of each, until it returns false.
    /// Whether the end was reached.
    ///
    /// # Errors
    /// Those of the store; then the reader is useless.
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

    /// Has the next entries come, if there are any.
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
                Named::Own => continue,
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

    fn through(bucket: &MemoryBucket, staged: Vec<Object>) -> PagedReader {
        PagedReader::in_pages("d/", bucket.key_rules(), pages(bucket, "d/").unwrap(), staged)
    }

    /// The names after a place, at most so many, and whether those were all.
    fn read(through: &mut PagedReader, after: u64, most: usize) -> (Vec<String>, bool) {
        let mut names = Vec::new();
        let mut place = after;
        let is_all = through.read(after, &mut |number, name, _| {
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
        let mut through = through(&bucket, Vec::new());
        let mut all = Vec::new();
        loop {
            let (names, is_all) = read(&mut through, all.len() as u64, 700);
            all.extend(names);
            assert!(through.window.len() <= 1700, "{} entries", through.window.len());
            if is_all {
                break;
            }
        }
        assert_eq!(all.len(), 25_500);
        assert!(all.is_sorted());
        assert_eq!(bucket.requests(Operation::List), 26);
        // In one go no more is kept than a reader may go back.
        let mut at_once = self::through(&bucket, Vec::new());
        assert_eq!(read(&mut at_once, 0, usize::MAX).0, all);
        assert!(at_once.window.len() as u64 <= BACK_MAX + 1000);
        assert!(at_once.has(25_500 - BACK_MAX) && !at_once.has(0));
        // And from anywhere.
        let (names, _) = read(&mut self::through(&bucket, Vec::new()), 12_345, 2);
        assert_eq!(names, ["12345", "12346"]);
    }

    #[test]
    fn a_name_is_returned_once_and_changed_files_as_they_are_here() {
        let bucket = MemoryBucket::new();
        for key in ["d/", "d/a", "d/a!", "d/a!b", "d/a/x", "d/b/", "d/b/y", "d/c"] {
            bucket.foreign_put(key, "x");
        }
        let staged = |key: &str| Object { size_bytes: 9, key: key.to_owned(), ..object() };
        let mut through = through(&bucket, vec![staged("d/c"), staged("d/new")]);
        let mut sizes = Vec::new();
        let read = through.read(0, &mut |_, name, item| {
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
    fn a_directory_with_more_names_than_are_taken_whole_is_shown_with_attributes() {
        let bucket = MemoryBucket::new();
        (0..100_500).for_each(|number| drop(bucket.foreign_put(&format!("{number:06}"), "x")));
        let origin = crate::origin::tests::origin(&bucket, Duration::ZERO);
        let root = origin.root().unwrap().node;
        let directory = origin.open_directory(&root).unwrap();
        let (mut names, mut cookie) = (Vec::new(), 0);
        let heads = bucket.requests(Operation::Head);
        loop {
            let mut told = 0;
            let from = cookie;
            let visit = &mut |entry: DirectoryEntry<'_>| {
                told += 1;
                cookie = entry.cookie;
                if entry.cookie > 2 {
                    let found = origin.lookup_in(&directory, entry.name).unwrap();
                    assert_eq!(found.attributes.size_bytes, 1);
                    names.push(entry.name.to_owned());
                }
                told < 3000
            };
            origin.read_directory(&directory, from, visit).unwrap();
            if told < 3000 {
                break;
            }
        }
        assert!(names.len() == 100_500 && names.is_sorted());
        assert_eq!(bucket.requests(Operation::Head), heads, "attributes come with the names");
        // The end is known.
        let lists = bucket.requests(Operation::List);
        origin.read_directory(&directory, cookie, &mut |_| panic!("there is no more")).unwrap();
        assert_eq!(bucket.requests(Operation::List), lists);
        // A reader that goes back reads anew; after an error, too, and misses nothing.
        let failure = BucketError::TimedOut { key: String::new(), seconds: 1 };
        (0..60).for_each(|_| bucket.doom(Operation::List, Fault::Slow(Duration::ZERO)));
        bucket.doom(Operation::List, Fault::Fails(failure));
        let told = &mut |_: DirectoryEntry<'_>| true;
        assert!(origin.read_directory(&directory, 50_002, told).is_err());
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
