//! Loads of records: from the second level, from the origin, here or on the threads that wait for
//! one or the other.
//!
//! A record that nobody has yet is *missing*: claimed, so that whoever else asks for it waits for
//! this load. Threads of the second level never wait for the origin: what they do not find goes on
//! to one that may.

use super::{Result, View};
use crate::handle::OpenFile;
use crate::record::{Entry, Key, Version, Worth};
use crate::second_level::SecondLevel;
use ogive_arc::{Access, Claim, Hold, Kind};
use ogive_origin::{Errno, Origin};
use std::sync::Arc;

/// A record, and by which open file it is read.
pub(super) struct Wanted<O: Origin> {
    pub(super) open: Arc<OpenFile<O>>,
    pub(super) version: Version,
    pub(super) index: u64,
    /// It was asked for by a reader that goes on from record to record.
    pub(super) sequential: bool,
}

/// A record that was claimed to be loaded. If it is dropped, another may claim it.
pub(super) struct Missing<O: Origin> {
    pub(super) wanted: Wanted<O>,
    pub(super) claim: Claim<Key, Entry>,
}

/// A record with its bytes, as the engine holds it.
pub(super) type Loaded = Hold<Key, Entry>;

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
            let wanted = Wanted { open: open.clone(), version, index, sequential };
            let missing = Missing { wanted, claim };
            let view = self.clone();
            if self.may_be_in_second_level(&missing.wanted) {
                self.workers.second_level_load(Box::new(move || {
                    if let Err(missing) = view.fill_from_second_level(missing) {
                        let waiting = view.clone();
                        view.workers
                            .load(Box::new(move || drop(waiting.fill_from_origin(*missing))));
                    }
                }));
            } else {
                self.workers.load(Box::new(move || view.fill(missing)));
            }
        }
    }

    /// Has a record loaded that nobody waits for; false if there is too much of that, and it is
    /// still missing.
    pub(super) fn load_for_later(self: &Arc<Self>, missing: Missing<O>) -> bool {
        let view = self.clone();
        let queued = if self.may_be_in_second_level(&missing.wanted) {
            self.workers.second_level_prefetch(Box::new(move || {
                let Err(missing) = view.fill_from_second_level(missing) else {
                    return view.counters.prefetch_ended();
                };
                let waiting = view.clone();
                let queued = view.workers.prefetch(Box::new(move || {
                    waiting.fill_unasked(*missing, |wanted| waiting.load_from_origin(wanted));
                }));
                if !queued {
                    view.counters.prefetch_ended();
                }
            }))
        } else {
            self.workers.prefetch(Box::new(move || {
                view.fill_unasked(missing, |wanted| view.load_record(wanted));
            }))
        };
        if !queued {
            self.counters.prefetch_ended();
        }
        queued
    }

    /// Ends a prefetch. Of an error whoever asks for the record itself gets to know.
    fn fill_unasked(
        &self,
        missing: Missing<O>,
        load: impl FnOnce(&Wanted<O>) -> Result<(Entry, u64)>,
    ) {
        let Missing { wanted, claim } = missing;
        if let Ok((entry, weight_bytes)) = load(&wanted) {
            drop(claim.fill(entry, weight_bytes));
        }
        self.counters.prefetch_ended();
    }

    /// Whether the second level is worth asking: it knows a record that looks like this one, and
    /// nothing was written to the file.
    pub(super) fn may_be_in_second_level(&self, wanted: &Wanted<O>) -> bool {
        let Wanted { open, version, index, .. } = wanted;
        self.second_level.as_ref().is_some_and(|level| {
            let contents = open.inode.contents();
            contents.is_some_and(|now| now.version == *version && now.pristine)
                && level.may_have(*version, *index)
        })
    }

    /// Loads a missing record from the second level, on one of its threads; gives it back if it is
    /// missing still.
    pub(super) fn fill_from_second_level(
        &self,
        missing: Missing<O>,
    ) -> std::result::Result<Loaded, Box<Missing<O>>> {
        let wanted = &missing.wanted;
        let pristine = self.begin_load(wanted).is_ok_and(|pristine| pristine);
        let read = self.second_level.as_ref().and_then(|level| {
            let bytes = level.read_here(wanted.version, wanted.index, pristine)?;
            Some(self.second_level_record(level, wanted, bytes))
        });
        match read {
            Some((entry, weight_bytes)) => Ok(missing.claim.fill(entry, weight_bytes)),
            None => Err(Box::new(missing)),
        }
    }

    /// Loads a missing record from the origin.
    pub(super) fn fill_from_origin(&self, missing: Missing<O>) -> Result<Loaded> {
        let Missing { wanted, claim } = missing;
        match self.load_from_origin(&wanted) {
            Ok((entry, weight_bytes)) => Ok(claim.fill(entry, weight_bytes)),
            Err(errno) => {
                claim.fail(errno);
                Err(errno)
            }
        }
    }

    /// Loads a missing record from wherever it is.
    fn fill(&self, missing: Missing<O>) {
        let Missing { wanted, claim } = missing;
        match self.load_record(&wanted) {
            Ok((entry, weight_bytes)) => drop(claim.fill(entry, weight_bytes)),
            Err(errno) => claim.fail(errno),
        }
    }

    /// Reads a record from the second level or the origin, and its weight.
    pub(super) fn load_record(&self, wanted: &Wanted<O>) -> Result<(Entry, u64)> {
        if let Some(level) = &self.second_level {
            let pristine = self.begin_load(wanted)?;
            if let Some(bytes) = level.read(wanted.version, wanted.index, pristine) {
                return Ok(self.second_level_record(level, wanted, bytes));
            }
        }
        self.load_from_origin(wanted)
    }

    /// What the second level had.
    fn second_level_record(
        &self,
        level: &SecondLevel,
        wanted: &Wanted<O>,
        bytes: Vec<u8>,
    ) -> (Entry, u64) {
        self.counters.second_level_read(bytes.len() as u64);
        let start = wanted.index * self.settings.record_size_bytes;
        let worth = level.worth(start, wanted.sequential);
        self.record(wanted, start, bytes, worth)
    }

    /// Dooms a load that begins where a change is under way; and whether nothing was written
    /// under this version: a write that begins later dooms the load, whatever it finds.
    fn begin_load(&self, wanted: &Wanted<O>) -> Result<bool> {
        let Wanted { open, version, index, .. } = wanted;
        let record_size = self.settings.record_size_bytes;
        let start = index.checked_mul(record_size).ok_or(Errno::FBIG)?;
        if open.inode.is_changing(&(start..start.saturating_add(record_size))) {
            self.cache.invalidate(&Key::record(*version, *index));
        }
        let contents = open.inode.contents();
        Ok(contents.is_some_and(|now| now.version == *version && now.pristine))
    }

    fn load_from_origin(&self, wanted: &Wanted<O>) -> Result<(Entry, u64)> {
        let pristine = self.begin_load(wanted)?;
        let Wanted { open, version, index, sequential } = wanted;
        let record_size = self.settings.record_size_bytes;
        let start = index * record_size;
        let known = open.inode.contents().map_or(u64::MAX, |contents| contents.size_bytes);
        // One byte more than the file is known to have: reading none of it proves the end.
        let expected = known.saturating_sub(start).saturating_add(1).min(record_size);
        let mut bytes = Vec::with_capacity(expected as usize);
        self.origin.read_at(&open.file, start, record_size as usize, &mut bytes)?;
        self.counters.origin_read(bytes.len() as u64);
        let worth = match &self.second_level {
            Some(second_level) if pristine && self.is_still(open, *version) => {
                second_level.worth(start, *sequential)
            }
            _ => Worth::Fleeting,
        };
        Ok(self.record(wanted, start, bytes, worth))
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
        wanted: &Wanted<O>,
        start: u64,
        mut bytes: Vec<u8>,
        worth: Worth,
    ) -> (Entry, u64) {
        let end = start + bytes.len() as u64;
        if (bytes.len() as u64) < self.settings.record_size_bytes {
            // Before the record can be found in the cache: a write beyond this end has to know
            // that this record must go.
            wanted.open.inode.update_contents(|contents| {
                if contents.version == wanted.version {
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
