//! The way of one read.
//!
//! A read of a cached record looks it up, holds it and answers from its bytes: nothing is copied
//! that was not asked for. Whatever is missing is loaded through the engine, one load a record
//! however many ask, from the handle that asked first. Sequential readers get the records ahead
//! of them loaded before they ask.

use super::loading::{Loaded, Missing, Wanted};
use super::{Result, View};
use crate::handle::OpenFile;
use crate::prefetch::Progress;
use crate::record::{Entry, Key, Version};
use crate::version::Contents;
use ogive_arc::{Access, Hold, Kind, LoadError};
use ogive_kstat::trace;
use ogive_origin::{Errno, Origin};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// One sequential reader is prefetched at most this share of the cache.
const PREFETCH_SHARE: u64 = 32;

/// One read on its way: what was asked and what is in hand.
pub(crate) struct Read<O: Origin> {
    open: Arc<OpenFile<O>>,
    version: Version,
    offset: u64,
    end: u64,
    pieces: Pieces,
    complete: bool,
    /// There is no page cache above to hand records over to.
    direct: bool,
    /// It went on where an earlier one had ended.
    sequential: bool,
}

/// Parts of records, one after the other. One is the common case and takes no allocation.
enum Pieces {
    None,
    One(Piece),
    Several(Vec<Piece>),
}

struct Piece {
    hold: Hold<Key, Entry>,
    range: Range<usize>,
    index: u64,
}

impl<O: Origin> View<O> {
    /// Begins a read of `length_bytes` at `offset` with what the cache has.
    pub(crate) fn begin_read(
        self: &Arc<Self>,
        handle: u64,
        offset: u64,
        length_bytes: u64,
    ) -> Result<Read<O>> {
        let open = self.file(handle)?;
        let contents = open.inode.contents().ok_or(Errno::BADF)?;
        let sequential = self.prefetch(&open, &contents, offset, length_bytes);
        let mut read = Read {
            open,
            version: contents.version,
            offset,
            end: offset.saturating_add(length_bytes),
            pieces: Pieces::None,
            complete: length_bytes == 0,
            direct: self.settings.direct_io,
            sequential,
        };
        read.collect(self.settings.record_size_bytes, |key, _| {
            Ok(self.cache.get_cached_only(&key, Access::Demand))
        })?;
        Ok(read)
    }

    /// Has a read completed by a thread of the second level, if that is likely to have what is
    /// missing; gives it back otherwise. `done` gets it on that thread, or on another that has
    /// waited for the origin.
    pub(crate) fn complete_from_second_level<Done, Reply>(
        self: &Arc<Self>,
        mut read: Read<O>,
        reply: Reply,
        done: Done,
    ) -> Option<(Read<O>, Reply)>
    where
        Done: FnOnce(&Arc<Self>, &Read<O>, Result<()>, Reply) + Send + 'static,
        Reply: Send + 'static,
    {
        let Some(missing) = self.claim_from_second_level(&read) else {
            return Some((read, reply));
        };
        self.load_rest_ahead(&read);
        let view = self.clone();
        self.workers.second_level_request(Box::new(move || {
            let missing = match view.fill_from_second_level(missing) {
                Ok(loaded) => {
                    let collected = view.collect_loaded(&mut read, loaded);
                    if collected.is_err() || read.is_complete() {
                        return done(&view, &read, collected, reply);
                    }
                    None
                }
                // Somebody has to wait for the origin, but not this thread.
                Err(missing) => Some(missing),
            };
            let waiting = view.clone();
            view.workers.request(Box::new(move || {
                let loaded = missing.map(|missing| waiting.fill_from_origin(*missing)).transpose();
                let completed = loaded.and_then(|loaded| {
                    loaded.map_or(Ok(()), |loaded| waiting.collect_loaded(&mut read, loaded))?;
                    waiting.complete_read(&mut read)
                });
                done(&waiting, &read, completed, reply);
            }));
        }));
        None
    }

    /// Takes the first missing record of a read, which its load has brought, and what else there is
    /// now. Not by looking the first up: it was missed, and is not to be counted or kept as one that
    /// was asked for twice.
    fn collect_loaded(&self, read: &mut Read<O>, loaded: Loaded) -> Result<()> {
        let mut first = Some(loaded);
        read.collect(self.settings.record_size_bytes, |key, _| {
            Ok(first.take().or_else(|| self.cache.get_cached_only(&key, Access::Demand)))
        })
    }

    /// Claims the first missing record of a read if the second level may have it.
    fn claim_from_second_level(&self, read: &Read<O>) -> Option<Missing<O>> {
        let wanted = read.wanted(read.reached() / self.settings.record_size_bytes);
        if !self.may_be_in_second_level(&wanted) {
            return None;
        }
        let key = Key::record(wanted.version, wanted.index);
        let claim = self.cache.try_claim(&key, Kind::Data, Access::Demand)?;
        Some(Missing { wanted, claim })
    }

    /// Completes a read, waiting for the origin where it must.
    pub(crate) fn complete_read(self: &Arc<Self>, read: &mut Read<O>) -> Result<()> {
        self.load_rest(read)?;
        if read.direct && read.ends_short() {
            self.read_past_growth(read)?;
        }
        Ok(())
    }

    fn load_rest(self: &Arc<Self>, read: &mut Read<O>) -> Result<()> {
        let record_size = self.settings.record_size_bytes;
        self.load_rest_ahead(read);
        let mut wanted = read.wanted(0);
        read.collect(record_size, |key, index| {
            wanted.index = index;
            let load = || self.load_record(&wanted);
            let loaded = self.cache.get_or_load(&key, Kind::Data, Access::Demand, load);
            loaded.map(|(hold, _)| Some(hold)).map_err(errno)
        })
    }

    /// A program that reads past the end of a file as it was may be following one that grows
    /// behind the mount. Below a page cache the kernel asks for attributes and finds out.
    fn read_past_growth(self: &Arc<Self>, read: &mut Read<O>) -> Result<()> {
        let end = read.reached();
        let attributes = self.origin.attributes(&read.open.inode.node, Some(&read.open.file))?;
        if attributes.size_bytes <= end {
            return Ok(());
        }
        self.notice_size(&read.open.inode, attributes.size_bytes);
        let contents = read.open.inode.contents().ok_or(Errno::BADF)?;
        (read.version, read.pieces, read.complete) = (contents.version, Pieces::None, false);
        self.load_rest(read)
    }

    /// Notes that the file has this size now. If nobody told the mount, it was changed behind it,
    /// and what is cached of its end is not true any more.
    pub(super) fn notice_size(&self, inode: &crate::inode::Inode<O>, size_bytes: u64) {
        if inode.contents().is_some_and(|known| known.size_bytes != size_bytes) {
            let replaced = self.versions.replaced(size_bytes);
            inode.update_contents(|known| {
                if known.size_bytes != size_bytes {
                    *known = replaced;
                }
            });
        }
    }

    /// Starts loading all missing records of a read but the first, which is the caller's.
    fn load_rest_ahead(self: &Arc<Self>, read: &Read<O>) {
        let record_size = self.settings.record_size_bytes;
        let next = read.reached() / record_size + 1;
        let size_bytes = read.open.inode.contents().map_or(0, |known| known.size_bytes);
        let last = read.end.saturating_sub(1).min(size_bytes.saturating_sub(1)) / record_size;
        self.load_ahead(&read.open, read.version, next..=last, read.sequential);
    }

    /// Starts loading what a sequential reader is going to ask for; whether this is one.
    fn prefetch(
        self: &Arc<Self>,
        open: &Arc<OpenFile<O>>,
        contents: &Contents,
        offset: u64,
        length_bytes: u64,
    ) -> bool {
        let distance = self.prefetch_distance.load(Ordering::Relaxed);
        let record_size = self.settings.record_size_bytes;
        if distance == 0 || contents.size_bytes <= record_size {
            return false;
        }
        let (progress, streams) = {
            let mut streams = open.streams.lock();
            let size = contents.size_bytes;
            (streams.on_read(offset, length_bytes, size, distance), streams.len())
        };
        self.counters.stream(progress != Progress::Miss, streams);
        let Progress::Hit(range) = progress else {
            return false;
        };
        if range.is_empty() {
            return true;
        }
        self.limit_prefetch();
        for index in range.start / record_size..=(range.end - 1) / record_size {
            let key = Key::record(contents.version, index);
            let Some(claim) = self.cache.try_claim(&key, Kind::Data, Access::Prefetch) else {
                continue;
            };
            self.counters.prefetch_issued();
            if self.recording.is_on() {
                let left = contents.size_bytes.saturating_sub(index * record_size);
                let bytes = left.min(record_size) as usize;
                self.recording.note(contents.version, index, bytes, trace::Access::Prefetch);
            }
            let version = contents.version;
            let wanted = Wanted { open: open.clone(), version, index, sequential: true };
            if !self.load_for_later(Missing { wanted, claim }) {
                break;
            }
        }
        true
    }

    /// Keeps the distance of prefetching to a share of the cache as large as it now is: what is
    /// evicted before it is read was read for nothing.
    pub(super) fn limit_prefetch(&self) {
        let room_bytes = self.cache.level().target_bytes / PREFETCH_SHARE;
        let distance_bytes = self.settings.prefetch_max_bytes.min(room_bytes);
        self.prefetch_distance.store(distance_bytes, Ordering::Relaxed);
    }

    /// Answers a read with its bytes, and lets go of what the page cache has now.
    pub(crate) fn finish_read(&self, read: &Read<O>, answer: impl FnOnce(&[u8])) {
        let length_bytes = read.reached() - read.offset;
        self.counters.read(length_bytes);
        if self.recording.is_on() {
            for piece in read.pieces.iter() {
                let bytes = piece.hold.bytes().len();
                self.recording.note(read.version, piece.index, bytes, trace::Access::Demand);
            }
        }
        match &read.pieces {
            Pieces::None => answer(&[]),
            Pieces::One(piece) => answer(piece.bytes()),
            Pieces::Several(pieces) => {
                let mut bytes = Vec::with_capacity(length_bytes as usize);
                pieces.iter().for_each(|piece| bytes.extend_from_slice(piece.bytes()));
                answer(&bytes);
            }
        }
        if self.settings.exclusive && !read.direct {
            read.pieces.iter().for_each(|piece| self.hand_over(read, piece));
        }
    }

    /// Forgets the bytes of a record that was read whole, at once or by a sequential reader that
    /// has come to its end, and keeps its history: the kernel has the bytes now, and asks for them
    /// again only if its page cache could not keep them.
    fn hand_over(&self, read: &Read<O>, piece: &Piece) {
        let to_its_end = piece.range.end == piece.hold.bytes().len();
        if to_its_end
            && (piece.range.start == 0 || read.sequential)
            && self.cache.demote(&Key::record(read.version, piece.index))
        {
            self.counters.handed_over();
        }
    }
}

impl<O: Origin> Read<O> {
    /// Whether everything that was asked for is in hand.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete && !(self.direct && self.ends_short())
    }

    fn wanted(&self, index: u64) -> Wanted<O> {
        let Self { open, version, sequential, .. } = self;
        Wanted { open: open.clone(), version: *version, index, sequential: *sequential }
    }

    /// First byte that is not in hand.
    fn reached(&self) -> u64 {
        self.offset + self.pieces.iter().map(|piece| piece.range.len() as u64).sum::<u64>()
    }

    fn ends_short(&self) -> bool {
        self.complete && self.reached() < self.end
    }

    /// Takes record after record from `get` until the read is complete, the file ends, or there
    /// is no record to be had.
    fn collect(
        &mut self,
        record_size: u64,
        mut get: impl FnMut(Key, u64) -> Result<Option<Hold<Key, Entry>>>,
    ) -> Result<()> {
        while !self.complete {
            let at = self.reached();
            let index = at / record_size;
            let Some(hold) = get(Key::record(self.version, index), index)? else {
                return Ok(());
            };
            let length = hold.bytes().len();
            let start = (at - index * record_size) as usize;
            let wanted = start + (self.end - at).min(record_size - start as u64) as usize;
            let range = start.min(length)..wanted.min(length);
            self.complete = length < wanted || at + range.len() as u64 == self.end;
            self.pieces.push(Piece { hold, range, index });
        }
        Ok(())
    }
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        &self.hold.bytes()[self.range.clone()]
    }
}

impl Pieces {
    fn iter(&self) -> std::slice::Iter<'_, Piece> {
        match self {
            Self::None => [].iter(),
            Self::One(piece) => std::slice::from_ref(piece).iter(),
            Self::Several(pieces) => pieces.iter(),
        }
    }

    fn push(&mut self, piece: Piece) {
        *self = match std::mem::replace(self, Self::None) {
            Self::None => Self::One(piece),
            Self::One(first) => Self::Several(vec![first, piece]),
            Self::Several(mut pieces) => {
                pieces.push(piece);
                Self::Several(pieces)
            }
        };
    }
}

/// The error of a load as the program that waited for it sees it.
pub(super) fn errno(error: LoadError<Errno>) -> Errno {
    match error {
        LoadError::Failed(errno) => errno,
        LoadError::Panicked => Errno::IO,
    }
}
