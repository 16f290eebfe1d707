//! Loads of records: from the second level, from the origin, here or on the threads that wait for
//! one or the other.
//!
//! A record that nobody has yet is *missing*: claimed, so that whoever else asks for it waits for
//! this load. Threads of the second level never wait for the origin: what they do not find goes on
//! to one that may.

use super::{Result, View};
use crate::handle::OpenFile;
use crate::record::{Entry, Key, Version, Worth};
use ogive_arc::{Access, Claim, Kind};
use ogive_origin::{Errno, Origin};
use std::sync::Arc;

/// A record that was claimed to be loaded. If it is dropped, another may claim it.
pub(super) struct Missing<O: Origin> {
    pub(super) open: Arc<OpenFile<O>>,
    pub(super) version: Version,
    pub(super) index: u64,
    /// It was asked for by a reader that goes on from record to record.
    pub(super) sequential: bool,
    pub(super) claim: Claim<Key, Entry>,
}

impl<O: Origin> View<O> {
    /// Starts loading records `first..=last` of an open file, as far as they are missing.
    pub(super) fn load_ahead(
        self: &Arc<Self>,
        open: &Arc<OpenFile<O>>,
        version: Version,
        records: std::ops::RangeInclusive<u64>,
        sequential: bool,
    ) {
        for index in records {
            let key = Key::record(version, index);
            let Some(claim) = self.cache.try_claim(&key, Kind::Data, Access::Demand) else {
                continue;
            };
            let missing = Missing { open: open.clone(), version, index, sequential, claim };
            let view = self.clone();
            if self.may_be_in_second_level(version, index) {
                self.workers.second_level_load(Box::new(move || {
                    if let Some(missing) = view.fill_from_second_level(missing) {
                        let waiting = view.clone();
                        view.workers.load(Box::new(move || waiting.fill_from_origin(missing)));
                    }
                }));
            } else {
                self.workers.load(Box::new(move || view.fill_from_origin(missing)));
            }
        }
    }

    /// Has a record loaded that nobody waits for; false if there is too much of that, and it is
    /// still missing.
    pub(super) fn load_for_later(self: &Arc<Self>, missing: Missing<O>) -> bool {
        let view = self.clone();
        let queued = if self.may_be_in_second_level(missing.version, missing.index) {
            self.workers.second_level_prefetch(Box::new(move || {
                match view.fill_from_second_level(missing) {
                    Some(missing) => drop(view.prefetch_from_origin(missing)),
                    None => view.counters.prefetch_ended(),
                }
            }))
        } else {
            return self.prefetch_from_origin(missing);
        };
        if !queued {
            self.counters.prefetch_ended();
        }
        queued
    }

    fn prefetch_from_origin(self: &Arc<Self>, missing: Missing<O>) -> bool {
        let view = self.clone();
        let queued = self.workers.prefetch(Box::new(move || {
            let Missing { open, version, index, sequential, claim } = missing;
            // Of an error whoever asks for the record itself gets to know.
            if let Ok((entry, weight_bytes)) =
                view.load_from_origin(&open, version, index, sequential)
            {
                drop(claim.fill(entry, weight_bytes));
            }
            view.counters.prefetch_ended();
        }));
        if !queued {
            self.counters.prefetch_ended();
        }
        queued
    }

    /// Whether the second level knows a record that looks like this one.
    pub(super) fn may_be_in_second_level(&self, version: Version, index: u64) -> bool {
        self.second_level.as_ref().is_some_and(|level| level.may_have(version, index))
    }

    /// Loads a missing record from the second level, on one of its threads; gives it back if it is
    /// missing still.
    pub(super) fn fill_from_second_level(&self, missing: Missing<O>) -> Option<Missing<O>> {
        let Missing { open, version, index, sequential, .. } = &missing;
        let pristine = self.begin_load(open, *version, *index).is_ok_and(|pristine| pristine);
        let read = self.second_level.as_ref()?.read_here(*version, *index, pristine);
        let Some(bytes) = read else { return Some(missing) };
        let (entry, weight_bytes) =
            self.second_level_record(open, *version, *index, *sequential, bytes);
        drop(missing.claim.fill(entry, weight_bytes));
        None
    }

    /// Loads a missing record from the origin.
    pub(super) fn fill_from_origin(&self, missing: Missing<O>) {
        let Missing { open, version, index, sequential, claim } = missing;
        match self.load_from_origin(&open, version, index, sequential) {
            Ok((entry, weight_bytes)) => drop(claim.fill(entry, weight_bytes)),
            Err(errno) => claim.fail(errno),
        }
    }

    /// Reads a record from the second level or the origin, and its weight.
    pub(super) fn load_record(
        &self,
        open: &OpenFile<O>,
        version: Version,
        index: u64,
        sequential: bool,
    ) -> Result<(Entry, u64)> {
        if let Some(second_level) = &self.second_level {
            let pristine = self.begin_load(open, version, index)?;
            if let Some(bytes) = second_level.read(version, index, pristine) {
                return Ok(self.second_level_record(open, version, index, sequential, bytes));
            }
        }
        self.load_from_origin(open, version, index, sequential)
    }

    /// What the second level had.
    fn second_level_record(
        &self,
        open: &OpenFile<O>,
        version: Version,
        index: u64,
        sequential: bool,
        bytes: Vec<u8>,
    ) -> (Entry, u64) {
        self.counters.second_level_read(bytes.len() as u64);
        let start = index * self.settings.record_size_bytes;
        let worth = match &self.second_level {
            Some(second_level) => second_level.worth(start, sequential),
            None => Worth::Fleeting,
        };
        self.record(open, version, start, bytes, worth)
    }

    /// Dooms a load that begins where a change is under way; and whether nothing was written
    /// under this version: a write that begins later dooms the load, whatever it finds.
    fn begin_load(&self, open: &OpenFile<O>, version: Version, index: u64) -> Result<bool> {
        let record_size = self.settings.record_size_bytes;
        let start = index.checked_mul(record_size).ok_or(Errno::FBIG)?;
        if open.inode.is_changing(&(start..start.saturating_add(record_size))) {
            self.cache.invalidate(&Key::record(version, index));
        }
        let contents = open.inode.contents();
        Ok(contents.is_some_and(|now| now.version == version && now.pristine))
    }

    fn load_from_origin(
        &self,
        open: &OpenFile<O>,
        version: Version,
        index: u64,
        sequential: bool,
    ) -> Result<(Entry, u64)> {
        let pristine = self.begin_load(open, version, index)?;
        let record_size = self.settings.record_size_bytes;
        let start = index * record_size;
        let known = open.inode.contents().map_or(u64::MAX, |contents| contents.size_bytes);
        // One byte more than the file is known to have: reading none of it proves the end.
        let expected = known.saturating_sub(start).saturating_add(1).min(record_size);
        let mut bytes = Vec::with_capacity(expected as usize);
        self.origin.read_at(&open.file, start, record_size as usize, &mut bytes)?;
        self.counters.origin_read(bytes.len() as u64);
        let worth = match &self.second_level {
            Some(second_level) if pristine && self.is_still(open, version) => {
                second_level.worth(start, sequential)
            }
            _ => Worth::Fleeting,
        };
        Ok(self.record(open, version, start, bytes, worth))
    }

    /// Whether an open file is now what its version says: what has just been read of it is then
    /// that version's, because times only go forward.
    fn is_still(&self, open: &OpenFile<O>, version: Version) -> bool {
        let attributes = self.origin.attributes(&open.inode.node, Some(&open.file));
        attributes.is_ok_and(|now| now.identity(open.inode.generation).digest(0) == version)
    }

    /// The entry of a record that begins at `start`.
    fn record(
        &self,
        open: &OpenFile<O>,
        version: Version,
        start: u64,
        mut bytes: Vec<u8>,
        worth: Worth,
    ) -> (Entry, u64) {
        let end = start + bytes.len() as u64;
        if (bytes.len() as u64) < self.settings.record_size_bytes {
            // Before the record can be found in the cache: a write beyond this end has to know
            // that this record must go.
            open.inode.update_contents(|contents| {
                if contents.version == version {
                    contents.size_bytes = contents.size_bytes.min(end);
                }
            });
            bytes.shrink_to_fit();
        }
        let entry = Entry::Record(bytes, worth);
        let weight_bytes = entry.weight_bytes();
        (entry, weight_bytes)
    }
}
