//! The object cache: the store's last answer about each key that had a request of its own.
//!
//! Three users read it:
//! - An open takes the size of an object from it, to fetch a small one in the same request
//!   ([`super::small_object_open`]).
//! - Attributes take the metadata of an object from it ([`super::metadata`]).
//! - While the store is offline, lookups take names from it ([`super::offline`]).
//!
//! An answer may be stale. For the first use it only decides how to ask; the second compares ETags;
//! the third is what `--offline stale` promises.
//!
//! # The caches of a key
//! | cache | holds | bound | evicted when full |
//! |---|---|---|---|
//! | [`super::listing_cache`] | the names and objects of a directory | `ENTRIES_MAX` | expired ones, then half |
//! | this cache | an object, or that a name is a directory | see below | half |
//! | [`super::checksum_verify`] | checksums of the records of an object that were read | `RECORDS_MAX` | all |
//! | [`super::writing`] | an object that is open or changed here | one a file | nothing |
//!
//! # Bound
//! [`KNOWN_MAX`] answers if metadata or stale names are shown; [`OPENED_MAX`] otherwise.
//!
//! # Locks
//! One, of the table; a leaf, never held across a request.

use super::directory::Item;
use crate::bounded::Bounded;
use crate::{Object, ObjectMetadata};
use parking_lot::{Condvar, Mutex};
use std::collections::HashSet;
use std::sync::Arc;

/// How many answers are kept if metadata or stale names are shown; about 50 MiB.
const KNOWN_MAX: usize = 100_000;
/// How many answers are kept if only opens read them.
const OPENED_MAX: usize = 4096;

/// The last answer about each key.
pub(super) struct ObjectCache {
    table: Mutex<Table>,
    /// Signals that a request in [`Table::asked`] has ended.
    answered: Condvar,
}

struct Table {
    items: Bounded<Box<str>, Item>,
    /// Keys with a request in flight.
    asked: HashSet<Box<str>>,
}

impl ObjectCache {
    /// A cache for opens only, or a large one for metadata and stale names as well.
    pub(super) fn new(is_large: bool) -> Self {
        let items = Bounded::new(if is_large { KNOWN_MAX } else { OPENED_MAX });
        let table = Mutex::new(Table { items, asked: HashSet::new() });
        Self { table, answered: Condvar::new() }
    }

    pub(super) fn insert(&self, key: &str, item: Item) {
        self.table.lock().items.insert(key.into(), item);
    }

    pub(super) fn insert_object(&self, object: &Object) {
        self.insert(&object.key, Item::File(object.clone()));
    }

    pub(super) fn get(&self, key: &str) -> Option<Item> {
        self.table.lock().items.get(key).cloned()
    }

    /// The metadata of an object, if the last answer had the same ETag.
    pub(super) fn metadata_of(&self, object: &Object) -> Option<Arc<ObjectMetadata>> {
        let table = self.table.lock();
        let Some(Item::File(known)) = table.items.get(&*object.key) else { return None };
        known.kept.clone().filter(|_| object.etag.is_some() && known.etag == object.etag)
    }

    pub(super) fn len(&self) -> usize {
        self.table.lock().items.len()
    }

    /// Registers a request for a key; false if one is in flight.
    pub(super) fn begin(&self, key: &str) -> bool {
        self.table.lock().asked.insert(key.into())
    }

    /// Ends the request for a key.
    pub(super) fn end(&self, key: &str) {
        self.table.lock().asked.remove(key);
        self.answered.notify_all();
    }

    /// Waits for the request in flight for a key, if there is one.
    pub(super) fn wait(&self, key: &str) {
        let mut table = self.table.lock();
        while table.asked.contains(key) {
            self.answered.wait(&mut table);
        }
    }
}
