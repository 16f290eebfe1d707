//! Directories: what the listing of a prefix says, and how long it is believed.
//!
//! A [`Snapshot`] is one listing of one prefix, sorted by name. A program that reads a directory
//! reads one, and the attributes of its names come out of it: 1,000 of them cost one request. A
//! snapshot that is *young*, not older than names and attributes may be, also answers lookups of
//! all names in it, and of all that are not in it if it is whole.
//!
//! # Names
//! A directory is a common prefix of keys, or the marker `name/`. Where an object has the name of a
//! directory, the directory has it, and the object is hidden. Keys that cannot be names are hidden
//! as well ([`crate::KeyRules`]). Both are counted.
//!
//! # Memory
//! The names of all snapshots that somebody has are counted together ([`NameBudget`]), be they young
//! or of an open directory. A directory for which there is no room is read page by page
//! ([`super::directory_reader`]). What is kept because it is young has a smaller bound of its own.
//!
//! # Locks
//! One, of the table of young snapshots; nothing is asked under it.

use super::name_budget::{NameBudget, NameShare};
use crate::keys;
use crate::{Bucket, Entry, KeyRules, Listing, Object, Pages, Result};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Entries that a request asks for: as many as stores give.
const PAGE: usize = 1000;
/// Keys without a name that one snapshot knows.
const NAMELESS_MAX: usize = 1000;
/// Pages of a directory that are taken whole, at most: as many names as may be young.
const PAGES_MAX: usize = YOUNG_MAX / PAGE;
/// Entries of all young snapshots together, at most, each snapshot counted as one; about 20 MiB.
const YOUNG_MAX: usize = 100_000;

/// What a name leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    Directory,
    File(Object),
}

/// What was listed under a prefix.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// Sorted by name, each name once.
    items: Vec<(Box<str>, Item)>,
    /// When the listing began.
    taken: Instant,
    /// Nothing was left out.
    is_whole: bool,
    /// The prefix exists: something was listed, if only its marker.
    exists: bool,
    /// How many keys cannot be shown.
    pub(super) hidden: u64,
    /// Which those are, and why: the first of them.
    pub(super) nameless: Vec<(Box<str>, &'static str)>,
    /// All of these, as far as they are counted.
    share: NameShare,
}

/// An entry of a listing as a name in a directory.
pub(super) enum Named {
    Shown(Box<str>, Item),
    /// The marker of the directory itself.
    Own,
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
            None if entry.key() == prefix => Self::Own,
            None => Self::Hidden(entry.key().into(), rules.why_nameless(prefix, entry.key())),
        }
    }
}

/// A listing of a directory that is read.
pub(super) fn pages(bucket: &impl Bucket, prefix: &str) -> Result<Box<dyn Pages>> {
    bucket.pages(&Listing { prefix, delimited: true, page: PAGE })
}

impl Snapshot {
    /// Lists the directory with this prefix, as far as directories are taken whole.
    pub(super) fn take_most(
        bucket: &impl Bucket,
        prefix: &str,
        held: &Arc<NameBudget>,
    ) -> Result<Self> {
        Self::take(bucket, prefix, PAGES_MAX, held)
    }

    /// Lists the directory with this prefix, at most `pages` of it: one page in any case, and more
    /// while there is room for their names.
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
                Named::Own => {}
                Named::Hidden(key, why) => {
                    hidden += 1;
                    if nameless.len() < NAMELESS_MAX {
                        nameless.push((key, why));
                    }
                }
            }
            // Whether there is more is not asked for: that would be another page.
            if seen == pages.saturating_mul(PAGE) || (seen > PAGE && !has_room) {
                is_whole = false;
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        let exists = seen > 0;
        // Of two with one name the directory comes first, and stays.
        let is_file = |item: &Item| !matches!(item, Item::Directory);
        items.sort_by(|a: &(Box<str>, Item), b| (&a.0, is_file(&a.1)).cmp(&(&b.0, is_file(&b.1))));
        items.dedup_by(|later, kept| {
            let is_same = later.0 == kept.0;
            // A directory may be told by its marker and by what is in it.
            if let (true, Item::File(object)) = (is_same, &later.1) {
                hidden += 1;
                if nameless.len() < NAMELESS_MAX {
                    nameless.push((object.key.as_str().into(), "a directory has its name"));
                }
            }
            is_same
        });
        items.shrink_to_fit();
        share.set(items.len() + nameless.len());
        Ok(Self { items, taken, is_whole, exists, hidden, nameless, share })
    }

    /// The same with objects in it that the store has otherwise, or not at all.
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

    /// What a name leads to; `None` if that is not known, `Some(None)` if it leads nowhere.
    pub(super) fn find(&self, name: &str) -> Option<Option<&Item>> {
        match self.items.binary_search_by(|(known, _)| (**known).cmp(name)) {
            Ok(at) => Some(Some(&self.items[at].1)),
            Err(_) => self.is_whole.then_some(None),
        }
    }

    /// The objects from a name on, which is among them or not.
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

    /// What it counts as among those that are young.
    fn entries(&self) -> usize {
        1 + self.items.len() + self.nameless.len()
    }

    pub(super) fn exists(&self) -> bool {
        self.exists
    }

    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }
}

/// Snapshots that may still be believed.
#[derive(Debug)]
pub(super) struct ListingCache {
    /// How long one may be believed.
    age_max: Duration,
    /// Those that are too old are kept as well, while there is room.
    keeps_old: AtomicBool,
    table: Mutex<Table>,
    /// Names of all snapshots that there are.
    held: Arc<NameBudget>,
}

#[derive(Debug, Default)]
struct Table {
    snapshots: HashMap<Box<str>, Arc<Snapshot>>,
    entries: usize,
    /// With so many snapshots the old ones are looked for.
    sweep_at: usize,
    /// How often something was changed by what is done here.
    changes: u64,
}

/// A moment before a listing was begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark(u64);

impl Table {
    fn remove(&mut self, prefix: &str) {
        if let Some(snapshot) = self.snapshots.remove(prefix) {
            self.entries -= snapshot.entries();
        }
    }

    /// Keeps those that are wanted.
    fn retain(&mut self, mut is_wanted: impl FnMut(&Snapshot) -> bool) {
        self.snapshots.retain(|_, kept| is_wanted(kept));
        self.entries = self.snapshots.values().map(|kept| kept.entries()).sum();
    }
}

impl ListingCache {
    pub(super) fn new(age_max: Duration) -> Self {
        let (keeps_old, table, held) = (AtomicBool::new(false), Mutex::default(), Arc::default());
        Self { age_max, keeps_old, table, held }
    }

    /// Names of all snapshots that there are, young or not.
    pub(super) fn held(&self) -> &Arc<NameBudget> {
        &self.held
    }

    /// Whether anything is believed at all.
    pub(super) fn is_enabled(&self) -> bool {
        !self.age_max.is_zero()
    }

    /// The young snapshot of a prefix.
    pub(super) fn get(&self, prefix: &str) -> Option<Arc<Snapshot>> {
        let snapshot = self.table.lock().snapshots.get(prefix).cloned()?;
        (snapshot.taken.elapsed() < self.age_max).then_some(snapshot)
    }

    /// From now on those that are too old to be believed are kept, while there is room.
    pub(super) fn keep_stale(&self) {
        self.keeps_old.store(true, Relaxed);
    }

    /// The last snapshot of a prefix, however old.
    pub(super) fn last(&self, prefix: &str) -> Option<Arc<Snapshot>> {
        self.table.lock().snapshots.get(prefix).cloned()
    }

    /// An object was asked for by itself: a listing that says something else of it is believed no
    /// more.
    pub(super) fn invalidate_if_changed(&self, object: &Object) {
        let (prefix, name) = keys::split(&object.key);
        let mut table = self.table.lock();
        let listed = table.snapshots.get(prefix).and_then(|snapshot| snapshot.find(name));
        // A listing may tell the time of an object with another precision.
        let is_same =
            |listed: &Object| listed.etag == object.etag && listed.size_bytes == object.size_bytes;
        if listed.is_some_and(|item| !matches!(item, Some(Item::File(listed)) if is_same(listed))) {
            table.remove(prefix);
        }
    }

    /// Something was changed in the directory of a key, which may end in a slash: what was listed
    /// there before, or is being listed, is believed no more.
    pub(super) fn invalidate_directory_of(&self, key: &str) {
        let (directory, _) = keys::split(key.strip_suffix('/').unwrap_or(key));
        let mut table = self.table.lock();
        table.changes += 1;
        table.remove(directory);
    }

    /// Nothing that was listed is believed any more.
    pub(super) fn invalidate_all(&self) {
        let mut table = self.table.lock();
        table.changes += 1;
        table.snapshots.clear();
        table.entries = 0;
    }

    /// To be taken before a listing is begun.
    pub(super) fn mark(&self) -> Mark {
        Mark(self.table.lock().changes)
    }

    /// Keeps a snapshot for as long as it is young, if nothing was changed here since it was begun.
    /// Where there is no room once the old ones are gone, half of the others go.
    pub(super) fn keep(&self, prefix: &str, snapshot: &Arc<Snapshot>, mark: Mark) {
        let keeps_old = self.keeps_old.load(Relaxed);
        let is_enabled = self.is_enabled() || keeps_old;
        if !is_enabled || snapshot.entries() > YOUNG_MAX {
            return;
        }
        let mut table = self.table.lock();
        if table.changes != mark.0 {
            return;
        }
        table.remove(prefix);
        let has_room = |table: &Table| table.entries + snapshot.entries() <= YOUNG_MAX;
        let is_due = !keeps_old && table.snapshots.len() >= table.sweep_at.max(PAGE);
        if is_due || !has_room(&table) {
            table.retain(|kept| kept.taken.elapsed() < self.age_max);
            table.sweep_at = 2 * table.snapshots.len();
        }
        while !has_room(&table) {
            // Any half of them, the first as well: what matters is asked for again.
            let mut goes = false;
            table.retain(|_| {
                goes = !goes;
                !goes
            });
        }
        table.entries += snapshot.entries();
        table.snapshots.insert(prefix.into(), Arc::clone(snapshot));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryBucket;

    fn bucket(names: usize) -> MemoryBucket {
        let bucket = MemoryBucket::new();
        (0..names).for_each(|number| drop(bucket.foreign_put(&format!("d/{number:04}"), "x")));
        bucket
    }

    #[test]
    fn names_of_all_listings_are_counted_and_a_large_one_has_to_find_room() {
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
        let page = Snapshot::take(&bucket, "d/", 1, &held).expect("a page has room in any case");
        assert_eq!((page.items().len(), held.names()), (1000, 2502));
        let other = whole.with("d/", Vec::new());
        assert_eq!(held.names(), 4003);
        drop((whole, other));
        assert_eq!(held.names(), 1001);
        drop(page);
        assert!(take().is_whole(), "there is room again");
        assert_eq!(held.names(), 0);
    }

    #[test]
    fn young_listings_are_bounded_also_those_of_empty_directories() {
        let (bucket, cache) = (bucket(20_000), ListingCache::new(Duration::from_secs(3600)));
        let keep = |prefix: &str, snapshot: &Arc<Snapshot>| {
            cache.keep(prefix, snapshot, cache.mark());
            let table = cache.table.lock();
            assert!(table.entries >= table.snapshots.len() && table.entries <= YOUNG_MAX);
            assert!(table.snapshots.contains_key(prefix), "the latest is there");
        };
        let take = |prefix: &str, pages| Snapshot::take(&bucket, prefix, pages, cache.held());
        let empty = Arc::new(take("e/", 1).expect("nothing is there"));
        for number in 0..YOUNG_MAX + 5 {
            keep(&number.to_string(), &empty);
        }
        let large = Arc::new(take("d/", 50).expect("20,000 names"));
        for number in 0..20 {
            keep(&format!("d{number}"), &large);
        }
        cache.invalidate_all();
        assert_eq!(cache.table.lock().entries, 0);
        drop((empty, large));
        assert_eq!(cache.held().names(), 0);
    }
}
