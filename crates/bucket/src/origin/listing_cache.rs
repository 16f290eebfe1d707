//! The listing cache: snapshots of directories that answer lookups.
//!
//! Until its TTL (`--metadata-ttl`) ends, a snapshot answers lookups of all names in it. A whole
//! snapshot also answers that a name does not exist. A change by this mount invalidates the
//! snapshot of the directory. So does an answer of the store that describes an object differently.
//! With `--offline stale` older snapshots stay as well, to be shown while the store does not
//! answer.
//!
//! # Bound
//! [`ENTRIES_MAX`] entries. Expired snapshots are evicted first, then half of the others.
//!
//! # Locks
//! One, of the table; a leaf, never held across a request.

use super::directory::{Item, PAGE, Snapshot, WHOLE_MAX};
use super::name_budget::NameBudget;
use crate::{Object, keys};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Entries of all cached snapshots, about 20 MiB. Each snapshot counts as one more entry.
const ENTRIES_MAX: usize = WHOLE_MAX;

/// The cached snapshots.
#[derive(Debug)]
pub(super) struct ListingCache {
    /// The TTL.
    age_max: Duration,
    /// Whether expired snapshots stay while there is room.
    keeps_stale: AtomicBool,
    table: Mutex<Table>,
    /// The budget for names of all snapshots.
    held: Arc<NameBudget>,
}

#[derive(Debug, Default)]
struct Table {
    snapshots: HashMap<Box<str>, Arc<Snapshot>>,
    entries: usize,
    /// At this number of snapshots the expired ones are dropped.
    sweep_at: usize,
    /// How many changes this mount has made.
    changes: u64,
}

/// A point in time before a listing started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark(u64);

impl Table {
    fn remove(&mut self, prefix: &str) {
        if let Some(snapshot) = self.snapshots.remove(prefix) {
            self.entries -= snapshot.entries();
        }
    }

    /// Drops the snapshots for which `is_wanted` returns false.
    fn retain(&mut self, mut is_wanted: impl FnMut(&Snapshot) -> bool) {
        self.snapshots.retain(|_, kept| is_wanted(kept));
        self.entries = self.snapshots.values().map(|kept| kept.entries()).sum();
    }
}

impl ListingCache {
    pub(super) fn new(age_max: Duration) -> Self {
        let (keeps_stale, table, held) = (AtomicBool::new(false), Mutex::default(), Arc::default());
        Self { age_max, keeps_stale, table, held }
    }

    /// The name budget of all snapshots, cached or not.
    pub(super) fn held(&self) -> &Arc<NameBudget> {
        &self.held
    }

    /// Whether the cache is on (the TTL is not zero).
    pub(super) fn is_enabled(&self) -> bool {
        !self.age_max.is_zero()
    }

    /// The snapshot of a prefix, unless it has expired.
    pub(super) fn get(&self, prefix: &str) -> Option<Arc<Snapshot>> {
        let snapshot = self.table.lock().snapshots.get(prefix).cloned()?;
        (snapshot.taken.elapsed() < self.age_max).then_some(snapshot)
    }

    /// Keeps expired snapshots from now on, while there is room.
    pub(super) fn keep_stale(&self) {
        self.keeps_stale.store(true, Relaxed);
    }

    /// The last snapshot of a prefix, expired or not.
    pub(super) fn last(&self, prefix: &str) -> Option<Arc<Snapshot>> {
        self.table.lock().snapshots.get(prefix).cloned()
    }

    /// Drops the listing of an object's directory if it differs from the store's current answer
    /// about the object.
    pub(super) fn invalidate_if_changed(&self, object: &Object) {
        let (prefix, name) = keys::split(&object.key);
        let mut table = self.table.lock();
        let listed = table.snapshots.get(prefix).and_then(|snapshot| snapshot.find(name));
        // A listing may give the time with another precision.
        let is_same =
            |listed: &Object| listed.etag == object.etag && listed.size_bytes == object.size_bytes;
        if listed.is_some_and(|item| !matches!(item, Some(Item::File(listed)) if is_same(listed))) {
            table.remove(prefix);
        }
    }

    /// Drops the listing of a key's directory because this mount changed it. A listing in flight is
    /// not cached either.
    pub(super) fn invalidate_directory_of(&self, key: &str) {
        let (directory, _) = keys::split(key.strip_suffix('/').unwrap_or(key));
        let mut table = self.table.lock();
        table.changes += 1;
        table.remove(directory);
    }

    /// Drops all listings.
    pub(super) fn invalidate_all(&self) {
        let mut table = self.table.lock();
        table.changes += 1;
        table.snapshots.clear();
        table.entries = 0;
    }

    /// Marks the start of a listing.
    pub(super) fn mark(&self) -> Mark {
        Mark(self.table.lock().changes)
    }

    /// Caches a snapshot, unless this mount changed something since `mark`. To make room, expired
    /// snapshots go first, then half of the others.
    pub(super) fn keep(&self, prefix: &str, snapshot: &Arc<Snapshot>, mark: Mark) {
        let keeps_stale = self.keeps_stale.load(Relaxed);
        let is_enabled = self.is_enabled() || keeps_stale;
        if !is_enabled || snapshot.entries() > ENTRIES_MAX {
            return;
        }
        let mut table = self.table.lock();
        if table.changes != mark.0 {
            return;
        }
        table.remove(prefix);
        let has_room = |table: &Table| table.entries + snapshot.entries() <= ENTRIES_MAX;
        let is_due = !keeps_stale && table.snapshots.len() >= table.sweep_at.max(PAGE);
        if is_due || !has_room(&table) {
            table.retain(|kept| kept.taken.elapsed() < self.age_max);
            table.sweep_at = 2 * table.snapshots.len();
        }
        while !has_room(&table) {
            // Any half will do: a snapshot that is needed is listed again.
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
    use crate::origin::directory::tests::bucket;

    #[test]
    fn cached_listings_are_bounded_even_those_of_empty_directories() {
        let (bucket, cache) = (bucket(20_000), ListingCache::new(Duration::from_secs(3600)));
        let keep = |prefix: &str, snapshot: &Arc<Snapshot>| {
            cache.keep(prefix, snapshot, cache.mark());
            let table = cache.table.lock();
            assert!(table.entries >= table.snapshots.len() && table.entries <= ENTRIES_MAX);
            assert!(table.snapshots.contains_key(prefix), "the latest is cached");
        };
        let take = |prefix: &str, pages| Snapshot::take(&bucket, prefix, pages, cache.held());
        let empty = Arc::new(take("e/", 1).expect("it is empty"));
        for number in 0..ENTRIES_MAX + 5 {
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
