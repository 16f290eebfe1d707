//! Small objects whose bytes arrive with the answer to their open.
//!
//! An open requests the object under the key. If a small object is about to be read, the same
//! request fetches its bytes: one round trip instead of two. The bytes stay with the open file
//! until they are read, so they belong to the object that was opened.
//!
//! # Bound
//! This is done only for an object that is not cached and whose size is known from a listing or an
//! earlier answer. One bound limits the unread bytes of all open files.

use super::directory::Item;
use super::open_file::strong_etag;
use super::{BucketOrigin, Node};
use crate::keys;
use crate::{Bucket, BucketError, ETag, Object};
use bytes::Bytes;
use ogive_origin::Identity;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The largest object that is fetched with its open: its transfer takes about as long as a round
/// trip. Larger objects are read in records, and not always from the start.
const OBJECT_MAX_BYTES: u64 = 128 << 10;
/// How many unread bytes all open files may hold.
const WAITING_MAX_BYTES: u64 = 16 << 20;

/// Whether the caller has cached the first record of a file.
pub(super) type IsCached<'a> = &'a dyn Fn(&Identity) -> bool;

/// The unread bytes of small objects.
#[derive(Default)]
pub(super) struct SmallObjects {
    waiting_bytes: Arc<AtomicU64>,
    /// How many opens fetched the bytes.
    taken: AtomicU64,
}

/// The bytes of an opened object.
pub(super) struct SmallObject {
    etag: ETag,
    bytes: Bytes,
    waiting_bytes: Arc<AtomicU64>,
}

impl SmallObject {
    /// A range of an object, if the bytes belong to it.
    pub(super) fn range(&self, object: &Object, range: Range<u64>) -> Option<Bytes> {
        let range = usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?;
        let is_same = object.etag.as_ref() == Some(&self.etag);
        (is_same && range.end <= self.bytes.len()).then(|| self.bytes.slice(range))
    }
}

impl Drop for SmallObject {
    fn drop(&mut self) {
        self.waiting_bytes.fetch_sub(self.bytes.len() as u64, Relaxed);
    }
}

impl SmallObjects {
    fn has_room(&self) -> bool {
        // Concurrent opens may exceed the bound by one object each.
        self.waiting_bytes.load(Relaxed) + OBJECT_MAX_BYTES <= WAITING_MAX_BYTES
    }

    fn begin(&self, object: &Object, bytes: Bytes) -> Option<SmallObject> {
        let etag = strong_etag(object).filter(|_| bytes.len() as u64 == object.size_bytes)?;
        self.waiting_bytes.fetch_add(bytes.len() as u64, Relaxed);
        self.taken.fetch_add(1, Relaxed);
        let waiting_bytes = Arc::clone(&self.waiting_bytes);
        Some(SmallObject { etag: etag.clone(), bytes, waiting_bytes })
    }

    /// How many bytes are unread.
    pub(super) fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes.load(Relaxed)
    }

    /// How many opens fetched the bytes.
    pub(super) fn taken(&self) -> u64 {
        self.taken.load(Relaxed)
    }
}

impl<B: Bucket> BucketOrigin<B> {
    /// The object of the last answer. It may be stale: it only decides how to ask.
    fn last_known(&self, key: &str) -> Option<Object> {
        let (directory, name) = keys::split(key);
        if let Some(snapshot) = self.listings.last(directory)
            && let Some(Some(Item::File(object))) = snapshot.find(name)
        {
            return Some(object.clone());
        }
        match self.objects.get(key)? {
            Item::File(object) => Some(object),
            Item::Directory => None,
        }
    }

    /// Requests the object to open, with its bytes if they are small and about to be read.
    pub(super) fn head_to_open(
        &self,
        node: &Node,
        key: &str,
        is_cached: Option<IsCached<'_>>,
    ) -> crate::Result<(Object, Option<SmallObject>)> {
        let is_wanted = is_cached.is_some_and(|is_cached| {
            self.small_objects.has_room()
                && self.last_known(key).is_some_and(|object| {
                    let is_small = (1..=OBJECT_MAX_BYTES).contains(&object.size_bytes);
                    let generation = self.generation(node);
                    is_small
                        && strong_etag(&object).is_some()
                        && !is_cached(&self.file_attributes(&object).identity(generation))
                })
        });
        if !is_wanted {
            return self.bucket.head(key).map(|object| (object, None));
        }
        let (object, bytes) = match self.bucket.head_with_bytes(key, OBJECT_MAX_BYTES) {
            // The store describes the object, but does not return its bytes.
            Err(BucketError::Archived { .. }) => (self.bucket.head(key)?, None),
            answer => answer?,
        };
        let small_object = bytes.and_then(|bytes| self.small_objects.begin(&object, bytes));
        Ok((object, small_object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unread_bytes_are_bounded_and_released() {
        let small_objects = SmallObjects::default();
        let bytes = Bytes::from(vec![0; OBJECT_MAX_BYTES as usize]);
        let object = Object {
            key: "k".to_owned(),
            size_bytes: OBJECT_MAX_BYTES,
            etag: Some(ETag::new("\"e\"")),
            modified: ogive_origin::Time { seconds: 0, nanoseconds: 0 },
            mark: None,
            kept: None,
        };
        let mut waiting = Vec::new();
        while small_objects.has_room() {
            waiting.push(small_objects.begin(&object, bytes.clone()).unwrap());
            assert!(small_objects.waiting_bytes() <= WAITING_MAX_BYTES);
        }
        assert_eq!(small_objects.waiting_bytes(), WAITING_MAX_BYTES);
        drop(waiting.pop());
        assert!(small_objects.has_room());
        drop(waiting);
        assert_eq!(small_objects.waiting_bytes(), 0);
    }
}
