//! Directories: the listing of a prefix.
//!
//! A [`Snapshot`] is one listing of one prefix, sorted by name. A program that reads a directory
//! takes one, and the attributes of its names come from it: one request serves 1,000 names. The
//! [listing cache](super::listing_cache) answers lookups from it as well.
//!
//! # Names
//! A directory is a common prefix of keys, or the marker `name/`. If an object and a directory
//! share a name, the directory is shown and the object is hidden. Keys that cannot be names are
//! hidden as well ([`crate::KeyRules`]). Both are counted.
//!
//! # Memory
//! One budget bounds the names of all snapshots ([`NameBudget`]), in open directories and in the
//! cache. A directory that does not fit is read page by page ([`super::directory_reader`]).

use super::name_budget::{NameBudget, NameShare};
use crate::keys;
use crate::{Bucket, Entry, KeyRules, Listing, Object, Pages, Result};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

/// Entries that one request asks for: the most that stores return.
pub(super) const PAGE: usize = 1000;
/// How many hidden keys one snapshot remembers.
const NAMELESS_MAX: usize = 1000;
/// How many names a directory may have to be listed whole.
pub(super) const WHOLE_MAX: usize = 100_000;
/// The same, in pages.
const PAGES_MAX: usize = WHOLE_MAX / PAGE;

/// The target of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    Directory,
    File(Object),
}

/// The listing of a prefix.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// Sorted by name, each name once.
    items: Vec<(Box<str>, Item)>,
    /// When the listing began.
    pub(super) taken: Instant,
    /// The listing is complete.
    is_whole: bool,
    /// The prefix exists: at least its marker was listed.
    exists: bool,
    /// How many keys are hidden.
    pub(super) hidden: u64,
    /// The first of the hidden keys, with the reason of each.
    pub(super) nameless: Vec<(Box<str>, &'static str)>,
    /// Its share of the name budget.
    share: NameShare,
}

/// An entry of a listing as a name in a directory.
pub(super) enum Named {
    Shown(Box<str>, Item),
    /// The marker of the directory itself.
    Marker,
    /// A key that cannot be a name.
    Hidden(Box<str>, &'static str),
}

impl Named {
    pub(super) fn of(rules: &KeyRules, prefix: &str, entry: Entry) -> Self {
        match rules.name_in(prefix, entry.key()) {
            Some(name) => {
                let name = Box::from(name);
                let is_directory = entry.key().ends_with('/');
                match entry {
                    Entry::Object(object) if !is_directory => Self::Shown(name, Item::File(object)),
                    _ => Self::Shown(name, Item::Directory),
                }
            }
            None if entry.key() == prefix => Self::Marker,
            None => Self::Hidden(entry.key().into(), rules.why_nameless(prefix, entry.key())),
        }
    }
}

/// Starts a listing of a directory by pages.
pub(super) fn pages(bucket: &impl Bucket, prefix: &str) -> Result<Box<dyn Pages>> {
    bucket.pages(&Listing { prefix, delimited: true, page: PAGE })
}

impl Snapshot {
    /// Lists a directory, up to [`WHOLE_MAX`] names.
    pub(super) fn take_most(
        bucket: &impl Bucket,
        prefix: &str,
        held: &Arc<NameBudget>,
    ) -> Result<Self> {
        Self::take(bucket, prefix, PAGES_MAX, held)
    }

    /// Lists at most `pages` pages of a directory: always the first, and more while the budget has
    /// room.
    pub(super) fn take(
        bucket: &impl Bucket,
        prefix: &str,
        pages: usize,
        held: &Arc<NameBudget>,
    ) -> Result<Self> {
        let taken = Instant::now();
        let mut items = Vec::new();
        let (mut hidden, mut seen, mut is_whole) = (0, 0, true);
        let (mut nameless, rules) = (Vec::new(), bucket.key_rules());
        let mut share = NameShare::of(held);
        let listing = Listing { prefix, delimited: true, page: PAGE };
        bucket.list(&listing, &mut |entry| {
            seen += 1;
            let has_room = share.grow();
            match Named::of(rules, prefix, entry) {
                Named::Shown(name, item) => items.push((name, item)),
                Named::Marker => {}
                Named::Hidden(key, why) => {
                    hidden += 1;
                    if nameless.len() < NAMELESS_MAX {
                        nameless.push((key, why));
                    }
                }
            }
            // Do not find out whether more entries follow: that would take another page.
            if seen == pages.saturating_mul(PAGE) || (seen > PAGE && !has_room) {
                is_whole = false;
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        let exists = seen > 0;
        // Of two items with one name the directory sorts first, and is kept.
        let is_file = |item: &Item| !matches!(item, Item::Directory);
        items.sort_by(|a: &(Box<str>, Item), b| (&a.0, is_file(&a.1)).cmp(&(&b.0, is_file(&b.1))));
        items.dedup_by(|later, kept| {
            let is_same = later.0 == kept.0;
            // A directory may be listed both by its marker and by the keys below it.
            if let (true, Item::File(object)) = (is_same, &later.1) {
                hidden += 1;
                if nameless.len() < NAMELESS_MAX {
                    nameless.push((object.key.as_str().into(), "a directory has the same name"));
                }
            }
            is_same
        });
        items.shrink_to_fit();
        share.set(items.len() + nameless.len());
        Ok(Self { items, taken, is_whole, exists, hidden, nameless, share })
    }

    /// A copy in which staged objects replace or extend what the store listed.
    pub(super) fn with(&self, prefix: &str, objects: Vec<Object>) -> Self {
        let Self { taken, is_whole, exists, hidden, .. } = *self;
        let mut items = self.items.clone();
        for object in objects {
            let (directory, name) = keys::split(&object.key);
            if directory != prefix {
                continue;
            }
            let name = Box::<str>::from(name);
            match items.binary_search_by(|(known, _)| known.cmp(&name)) {
                // A directory hides an object of its name.
                Ok(at) if items[at].1 == Item::Directory => {}
                Ok(at) => items[at].1 = Item::File(object),
                Err(at) => items.insert(at, (name, Item::File(object))),
            }
        }
        let (nameless, mut share) = (self.nameless.clone(), self.share.beside());
        share.set(items.len() + nameless.len());
        Self { items, taken, is_whole, exists, hidden, nameless, share }
    }

    /// The target of a name; `None` if it is unknown, `Some(None)` if the name does not exist.
    pub(super) fn find(&self, name: &str) -> Option<Option<&Item>> {
        match self.items.binary_search_by(|(known, _)| (**known).cmp(name)) {
            Ok(at) => Some(Some(&self.items[at].1)),
            Err(_) => self.is_whole.then_some(None),
        }
    }

    /// The objects from a name on; the name need not be listed.
    pub(super) fn files_from(&self, name: &str) -> impl Iterator<Item = &Object> {
        let at = self.items.partition_point(|(known, _)| **known < *name);
        self.items[at..].iter().filter_map(|(_, item)| match item {
            Item::File(object) => Some(object),
            Item::Directory => None,
        })
    }

    pub(super) fn items(&self) -> &[(Box<str>, Item)] {
        &self.items
    }

    /// Its size in cache entries.
    pub(super) fn entries(&self) -> usize {
        1 + self.items.len() + self.nameless.len()
    }

    pub(super) fn exists(&self) -> bool {
        self.exists
    }

    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::MemoryBucket;

    pub(in crate::origin) fn bucket(names: usize) -> MemoryBucket {
        let bucket = MemoryBucket::new();
        (0..names).for_each(|number| drop(bucket.foreign_put(&format!("d/{number:04}"), "x")));
        bucket
    }

    #[test]
    fn names_of_all_listings_share_one_budget() {
        let (bucket, held) = (bucket(1500), Arc::new(NameBudget::of(2000)));
        let take = || Snapshot::take_most(&bucket, "d/", &held).expect("it is there");
        let whole = take();
        assert_eq!((whole.items().len(), held.names()), (1500, 1501));
        let before = bucket.requests(crate::Operation::List);
        let part = take();
        assert_eq!((whole.is_whole(), part.is_whole(), part.items().len()), (true, false, 1001));
        drop(part);
        assert_eq!(bucket.requests(crate::Operation::List) - before, 2);
        assert_eq!(held.names(), 1501);
        let page = Snapshot::take(&bucket, "d/", 1, &held).expect("one page always has room");
        assert_eq!((page.items().len(), held.names()), (1000, 2502));
        let other = whole.with("d/", Vec::new());
        assert_eq!(held.names(), 4003);
        drop((whole, other));
        assert_eq!(held.names(), 1001);
        drop(page);
        assert!(take().is_whole(), "there is room again");
        assert_eq!(held.names(), 0);
    }
}
