//! An open directory, and the entries that the kernel reads from it.
//!
//! # Locks
//! Two in each handle, both leaves. Neither is held across a request or while an entry is returned.

use super::BucketOrigin;
use super::directory::{self, Item, Snapshot};
use super::directory_reader::{DirectoryReader, PagedReader};
use crate::Bucket;
use ogive_origin::{DirectoryEntry, FileKind, Result};
use parking_lot::Mutex;
use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// An open directory.
#[derive(Debug, Default)]
pub struct Directory {
    pub(super) key: Box<str>,
    reading: Mutex<DirectoryReader>,
    /// The entry being returned, if the directory is read by pages.
    returned: Mutex<Option<(Box<str>, Item)>>,
    /// The directory has too many names to be listed whole.
    is_large: AtomicBool,
}

/// The entries before the names: `.` and `..`.
const DOTS: u64 = 2;

impl Directory {
    pub(super) fn of(key: &str) -> Self {
        Self { key: key.into(), ..Self::default() }
    }

    /// The target of a name in the listing being read. `also` is called with the listing if it is
    /// whole.
    pub(super) fn listed(&self, name: &str, also: impl FnOnce(&Snapshot)) -> Option<Item> {
        let whole = match &*self.reading.lock() {
            DirectoryReader::Whole(snapshot) => Some(Arc::clone(snapshot)),
            _ => None,
        };
        if let Some(snapshot) = whole {
            let item = snapshot.find(name)??.clone();
            also(&snapshot);
            return Some(item);
        }
        let returned = self.returned.lock();
        returned.as_ref().filter(|(returned, _)| **returned == *name).map(|(_, item)| item.clone())
    }
}

impl<B: Bucket> BucketOrigin<B> {
    pub(super) fn read_entries(
        &self,
        directory: &Directory,
        cookie: u64,
        visit: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Result<()> {
        let mut reading = std::mem::take(&mut *directory.reading.lock());
        let goes_on = match &reading {
            DirectoryReader::Nothing => false,
            DirectoryReader::Whole(_) => cookie > 0,
            DirectoryReader::Paged(reader) => cookie > 0 && reader.has(cookie.saturating_sub(DOTS)),
            DirectoryReader::Ended(count) if cookie >= *count => {
                *directory.reading.lock() = reading;
                return Ok(());
            }
            DirectoryReader::Ended(_) => false,
        };
        if !goes_on {
            reading = self.begin_reading(directory)?;
        }
        let own = self.numbers(&directory.key).inode;
        for (place, name) in (1..).zip([".", ".."]).skip(cookie.min(DOTS) as usize) {
            let (name, kind) = (OsStr::new(name), Some(FileKind::Directory));
            if !visit(DirectoryEntry { name, inode: own, kind, cookie: place }) {
                *directory.reading.lock() = reading;
                return Ok(());
            }
        }
        let mut report = |place: u64, name: &str, item: &Item| {
            let slash = if *item == Item::Directory { "/" } else { "" };
            let inode = self.numbers(&format!("{}{name}{slash}", directory.key)).inode;
            let (name, kind) = (OsStr::new(name), self.listed_kind(item));
            visit(DirectoryEntry { name, inode, kind, cookie: place + DOTS })
        };
        let after = cookie.saturating_sub(DOTS);
        match &mut reading {
            DirectoryReader::Whole(snapshot) => {
                let snapshot = Arc::clone(snapshot);
                *directory.reading.lock() = reading;
                let items = (1..).zip(snapshot.items()).skip(after as usize);
                for (place, (name, item)) in items {
                    if !report(place, name, item) {
                        break;
                    }
                }
                Ok(())
            }
            DirectoryReader::Paged(reader) => {
                let mut last = after;
                let read = reader.read(after, &mut |place, name, item| {
                    *directory.returned.lock() = Some((name.into(), item.clone()));
                    last = place;
                    report(place, name, item)
                });
                *directory.returned.lock() = None;
                self.hidden.fetch_add(std::mem::take(&mut reader.hidden), Relaxed);
                // After an error the next reader lists the directory again.
                if self.or_errno(read)? {
                    reading = DirectoryReader::Ended(last + DOTS);
                }
                *directory.reading.lock() = reading;
                Ok(())
            }
            DirectoryReader::Nothing | DirectoryReader::Ended(_) => Ok(()),
        }
    }

    /// Starts to read a directory.
    fn begin_reading(&self, directory: &Directory) -> Result<DirectoryReader> {
        let Directory { key, is_large, .. } = directory;
        let (rules, is_known) = (self.bucket.key_rules(), is_large.load(Relaxed));
        let listing = if is_known { None } else { Some(self.whole_listing(key)?) };
        let staged = self.writing.as_ref().map(|here| here.staged_in(key)).unwrap_or_default();
        let Some(listing) = listing.filter(|listing| listing.is_whole()) else {
            is_large.store(true, Relaxed);
            let pages = self.or_errno(directory::pages(&*self.bucket, key))?;
            let reader = PagedReader::in_pages(key, rules, pages, staged);
            return Ok(DirectoryReader::Paged(Box::new(reader)));
        };
        Ok(DirectoryReader::Whole(match staged.is_empty() {
            true => listing,
            false => Arc::new(listing.with(key, staged)),
        }))
    }
}
