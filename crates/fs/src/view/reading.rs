//! One read: which of its records it holds, and how it gets the others.
//!
//! A read of a cached record looks it up, holds it and answers from its bytes: it copies only the
//! bytes that were asked for. A missing record is loaded once however many readers ask, by the
//! handle that asked first ([`super::load`]).
//!
//! ```text
//!                       begun: takes what the cache has
//!                                      │
//!                                ┌───────────┐
//!           ┌──────────────────► │ advancing │
//!           │                    └─────┬─────┘
//!           │           ┌─────────────┬┴────────────┬──────────────┐
//!           │      not cached     it is being   the file ends  everything
//!           │                       loaded       too early     is in hand
//!           │      ┌─────────┐   ┌─────────┐  ┌────────────┐  ┌──────────┐
//!           │      │ claimed │   │ loading │  │ ends short │  │ complete │
//!           │      └────┬────┘   └────┬────┘  └─────┬──────┘  └──────────┘
//!           └───────────┴─────────────┴─────────────┘
//!             the record comes           it has grown
//! ```
//!
//! [`View::advance`] is the engine: it takes the records that are cached by now, and returns the
//! [`Stage`] of the read. There are two ways to wait for a missing record:
//!
//! - [`View::complete_read`] waits on the calling thread, which may wait for the origin. It loads
//!   the first missing record itself, and the others with it if they come quickly.
//! - [`View::complete_elsewhere`] leaves a continuation with the load, and no thread waits. It is
//!   for records of the second level, and for an origin that reads in the background.
//!
//! A read *ends short* only where no page cache is above. Below a page cache the kernel asks for
//! attributes, and so finds out by itself whether a file has grown.

use super::load::{Demand, Load, Loaded, MissingRecord, Start};
use super::read_ahead::Ahead;
use super::{Result, View};
use crate::handle::OpenFile;
use crate::record::{Entry, Key, Version};
use crate::version::Contents;
use ogive_arc::{Access, Claim, Hold, Joined, Kind, LoadError, Lookup};
use ogive_origin::{Errno, Needed, Origin};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

/// Pieces of a read that need no allocation: 1 MiB in records of 128 KiB, and one more.
const PIECES: usize = 9;
/// One read in flight: the requested range and the records in hand.
pub(crate) struct Read<O: Origin> {
    open: Arc<OpenFile<O>>,
    version: Version,
    offset: u64,
    end: u64,
    pieces: Pieces,
    /// The last piece is in hand: the last of the requested range, or of the file.
    at_end: bool,
    /// The file's growth was already checked, or the kernel checks it by itself.
    may_end_short: bool,
    /// The records behind the first missing one are claimed already.
    rest_is_claimed: bool,
    /// A page cache above takes the bytes, so the cache may evict its copy first.
    is_handed_over: bool,
    /// It started where an earlier read had ended.
    sequential: bool,
    /// The range that is not prefetched because requests cost money.
    held_back: Range<u64>,
}

/// Where a read stands, and what it waits for.
enum Stage<O: Origin> {
    /// The whole requested range is in hand.
    Complete,
    /// This read has to load the first missing record.
    Claimed(MissingRecord<O>, Claim<Key, Entry>),
    /// Another load of the first missing record is in flight.
    Loading(Joined<Key, Entry>),
    /// The file ended before the end of the range, and may have grown since.
    EndsShort,
}

/// Parts of records, in order. Most reads have one, which takes no allocation.
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
    /// Begins a read of `length_bytes` at `offset` with the cached records. `past_pages` says that
    /// no page cache takes the bytes, because the program opened the file with `O_DIRECT`. `None`
    /// for a file that is read from the origin each time ([`Self::read_from_origin`]).
    pub(crate) fn begin_read(
        self: &Arc<Self>,
        handle: u64,
        offset: u64,
        length_bytes: u64,
        past_pages: bool,
    ) -> Result<Option<Read<O>>> {
        let open = self.file(handle)?;
        if !open.size_is_reliable {
            return Ok(None);
        }
        let contents = self.contents_read_by(&open)?;
        let Ahead { is_sequential, held_back } =
            self.prefetch(&open, &contents, offset, length_bytes);
        let mut read = Read {
            open,
            version: contents.version,
            offset,
            end: offset.saturating_add(length_bytes),
            pieces: Pieces::None,
            at_end: length_bytes == 0,
            may_end_short: !self.settings.direct_io,
            rest_is_claimed: false,
            is_handed_over: self.settings.exclusive && !self.settings.direct_io && !past_pages,
            sequential: is_sequential,
            held_back,
        };
        let record_size = self.settings.record_size_bytes;
        while !read.at_end {
            let key = Key::record(read.version, read.reached() / record_size);
            let Some(hold) = self.cache.get_cached_only(&key, Access::Demand) else { break };
            read.take(record_size, hold);
        }
        Ok(Some(read))
    }

    /// Reads the origin's present bytes at an offset, and caches nothing.
    pub(crate) fn read_from_origin(
        &self,
        handle: u64,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize> {
        self.origin.read_some(&self.file(handle)?.file, offset, into)
    }

    /// The contents that this open file reads.
    ///
    /// # Errors
    /// `EIO` where the bytes of the file were found to be wrong. `ESTALE` where the file is pinned
    /// to the contents that it was opened with, and the inode has others by now. Neither may this
    /// file read records of the others, nor may its records be cached as theirs.
    pub(super) fn contents_read_by(&self, open: &OpenFile<O>) -> Result<Contents> {
        let contents = open.inode.contents().ok_or(Errno::BADF)?;
        if self.origin.is_corrupt(&open.file) {
            return Err(Errno::IO);
        }
        if contents.version != open.version && self.origin.pinned_identity(&open.file).is_some() {
            return Err(Errno::STALE);
        }
        Ok(contents)
    }

    /// Whether some reads complete without a thread that waits.
    pub(crate) fn completes_elsewhere(&self) -> bool {
        self.second_level.is_some() || self.origin.reads_in_background()
    }

    /// Completes a read without the calling thread. The first missing record has to come from the
    /// second level or from an origin that reads in the background; otherwise the read is returned.
    /// `done` runs on the thread that brings the last record.
    pub(crate) fn complete_elsewhere<Done, Reply>(
        self: &Arc<Self>,
        read: Read<O>,
        reply: Reply,
        done: Done,
    ) -> Option<(Read<O>, Reply)>
    where
        Done: FnOnce(&Arc<Self>, Result<Read<O>>, Reply) + Send + 'static,
        Reply: Send + 'static,
    {
        let missing = read.next_missing(self.settings.record_size_bytes);
        if !self.origin.reads_in_background() && !self.may_be_in_second_level(&missing) {
            return Some((read, reply));
        }
        self.complete_in_background(read, move |view, read| done(view, read, reply));
        None
    }

    /// Takes the cached records, up to the first that is missing.
    fn advance(&self, read: &mut Read<O>) -> Stage<O> {
        let record_size = self.settings.record_size_bytes;
        while !read.at_end {
            let missing = read.next_missing(record_size);
            match self.cache.get_or_claim(&missing.key(), Kind::Data, Access::Demand) {
                Lookup::Hit(hold) => read.take(record_size, hold),
                Lookup::Claimed(claim) => return Stage::Claimed(missing, claim),
                Lookup::Loading(joined) => return Stage::Loading(joined),
            }
        }
        if read.is_complete() { Stage::Complete } else { Stage::EndsShort }
    }

    /// Completes a read on the calling thread, which waits for the origin where it must.
    pub(crate) fn complete_read(self: &Arc<Self>, mut read: Read<O>) -> Result<Read<O>> {
        let record_size = self.settings.record_size_bytes;
        let mut loads_rest_here = self.loads_rest_here(&read);
        loop {
            match self.advance(&mut read) {
                Stage::Complete => return Ok(read),
                Stage::Claimed(missing, claim) => {
                    let rest =
                        loads_rest_here.then(|| self.claim_rest(&read).map_while(|load| load));
                    if rest.is_none() {
                        self.load_rest_elsewhere(&mut read);
                    }
                    let hold = Load::here(self, missing, claim, rest.into_iter().flatten())?;
                    read.take(record_size, hold);
                }
                Stage::Loading(joined) => {
                    if !loads_rest_here {
                        self.load_rest_elsewhere(&mut read);
                    }
                    read.resume(record_size, joined.wait().map_err(errno)?);
                }
                Stage::EndsShort => {
                    self.look_for_growth(&mut read)?;
                    loads_rest_here = self.loads_rest_here(&read);
                }
            }
        }
    }

    /// Completes a read on the threads that bring its records.
    fn complete_in_background<Done>(self: &Arc<Self>, mut read: Read<O>, done: Done)
    where
        Done: FnOnce(&Arc<Self>, Result<Read<O>>) + Send + 'static,
    {
        let view = self.clone();
        match self.advance(&mut read) {
            Stage::Complete => done(self, Ok(read)),
            Stage::Claimed(missing, claim) => {
                let rest = self.claim_rest_once(&mut read);
                let held_back = std::mem::take(&mut read.held_back);
                let (open, version) = (read.open.clone(), read.version);
                let then = move |loaded: Result<Loaded>| {
                    view.resume_in_background(read, loaded.map(Some), done);
                };
                let mut start = Start::new(self.origin.read_ahead().run_bytes);
                start.demanded(Load::begin(self, missing, claim, Demand::Request(Box::new(then))));
                rest.for_each(|load| start.demanded(load));
                // The request is made in any case. A longer one costs no more, and saves later
                // requests.
                self.lengthen(&mut start, &open, version, held_back);
                start.finish();
            }
            Stage::Loading(joined) => {
                self.load_rest_elsewhere(&mut read);
                joined.then(move |end| {
                    view.resume_in_background(read, end.map_err(errno), done);
                });
            }
            Stage::EndsShort => {
                // The size comes from the origin, on a thread that may wait for it.
                self.workers.request(Box::new(move || {
                    let completed = view.complete_read(read);
                    done(&view, completed);
                }));
            }
        }
    }

    /// Continues a read with a loaded record, or without one if the load was given up.
    fn resume_in_background<Done>(
        self: &Arc<Self>,
        mut read: Read<O>,
        loaded: Result<Option<Loaded>>,
        done: Done,
    ) where
        Done: FnOnce(&Arc<Self>, Result<Read<O>>) + Send + 'static,
    {
        match loaded {
            Ok(loaded) => {
                read.resume(self.settings.record_size_bytes, loaded);
                self.complete_in_background(read, done);
            }
            Err(errno) => done(self, Err(errno)),
        }
    }

    /// A program that reads past the known end of a file may be following one that grows behind the
    /// mount.
    fn look_for_growth(self: &Arc<Self>, read: &mut Read<O>) -> Result<()> {
        read.may_end_short = true;
        let size_bytes = self.size_of(&read.open)?;
        if size_bytes <= read.reached() {
            return Ok(());
        }
        self.notice_size(&read.open.inode, size_bytes);
        read.version = self.contents_read_by(&read.open)?.version;
        (read.pieces, read.at_end, read.rest_is_claimed) = (Pieces::None, false, false);
        Ok(())
    }

    /// The size of an open file now, in bytes.
    pub(super) fn size_of(&self, open: &OpenFile<O>) -> Result<u64> {
        let (node, file) = (&open.inode.node, Some(&open.file));
        Ok(self.origin.attributes_needed(node, file, Needed::Size)?.size_bytes)
    }

    /// Notes the present size of a file. If the size did not change through the mount, the file was
    /// changed behind it, and the cached record of its end is stale.
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

    /// Whether the thread that waits for a read loads all of its records itself. It does if they
    /// are few enough for one thread, and the second level need not be asked.
    fn loads_rest_here(&self, read: &Read<O>) -> bool {
        let records = (read.end - read.reached()).div_ceil(self.settings.record_size_bytes);
        self.second_level.is_none() && records <= self.records_at_once()
    }

    /// Has other threads load all missing records of a read but the first, once.
    fn load_rest_elsewhere(self: &Arc<Self>, read: &mut Read<O>) {
        let mut start = Start::new(self.origin.read_ahead().run_bytes);
        self.claim_rest_once(read).for_each(|load| start.demanded(load));
        start.finish();
    }

    /// Claims all missing records of a read but the first, the first time only.
    fn claim_rest_once(
        self: &Arc<Self>,
        read: &mut Read<O>,
    ) -> impl Iterator<Item = Load<O>> + use<O> {
        let is_claimed = std::mem::replace(&mut read.rest_is_claimed, true);
        (!is_claimed).then(|| self.claim_rest(read)).into_iter().flatten().flatten()
    }

    /// Claims all missing records of a read but the first. `None` for a record that is cached or
    /// being loaded.
    fn claim_rest(
        self: &Arc<Self>,
        read: &Read<O>,
    ) -> impl Iterator<Item = Option<Load<O>>> + use<O> {
        let record_size = self.settings.record_size_bytes;
        let next = read.reached() / record_size + 1;
        let size_bytes = read.open.inode.contents().map_or(0, |known| known.size_bytes);
        let last = read.end.saturating_sub(1).min(size_bytes.saturating_sub(1)) / record_size;
        let (view, open, version, sequential) =
            (self.clone(), read.open.clone(), read.version, read.sequential);
        (next..=last).map(move |index| {
            let missing = MissingRecord { open: open.clone(), version, index, sequential };
            let claim = view.cache.try_claim(&missing.key(), Kind::Data, Access::Demand)?;
            Some(Load::begin(&view, missing, claim, Demand::Rest))
        })
    }

    /// Answers a read with the bytes of its records, and hands over the records that the page cache
    /// has now.
    pub(crate) fn finish_read(&self, read: &Read<O>, answer: impl FnOnce(&[&[u8]])) {
        let length_bytes = read.reached() - read.offset;
        self.counters.read(length_bytes);
        if read.ends_short() {
            let end = read.reached();
            read.open.inode.update_kernel_size(|size| size.may_have_shrunk_to(end));
        }
        if self.observers.are_active() {
            for piece in read.pieces.iter() {
                let bytes = piece.hold.bytes().len();
                self.observers.read(read.version, piece.index, bytes);
            }
        }
        match &read.pieces {
            Pieces::None => answer(&[]),
            Pieces::One(piece) => answer(&[piece.bytes()]),
            Pieces::Several(pieces) => {
                answer(&pieces.iter().map(Piece::bytes).collect::<SmallVec<[_; PIECES]>>());
            }
        }
        if read.is_handed_over {
            read.pieces.iter().for_each(|piece| self.hand_over(read, piece));
        }
    }

    /// Hands over a record that was read whole, at once or by a sequential reader that reached its
    /// end. The kernel has the bytes now, and asks for them again only if its page cache could not
    /// keep them. The record is then among the first to be evicted, unless it was asked for a
    /// second time.
    fn hand_over(&self, read: &Read<O>, piece: &Piece) {
        let to_its_end = piece.range.end == piece.hold.bytes().len();
        let key = Key::record(read.version, piece.index);
        if to_its_end && (piece.range.start == 0 || read.sequential) && self.cache.hand_over(&key) {
            self.counters.handed_over();
            if !self.is_for_later(read) {
                self.cache.demote(&key);
            }
        }
    }

    /// Whether the next open of the file may find these contents. If its times prove nothing, or
    /// not yet, a copy of the kernel's pages would be useless.
    fn is_for_later(&self, read: &Read<O>) -> bool {
        let contents = read.open.inode.contents();
        self.versions.is_sole_writer()
            || contents.is_some_and(|now| now.pristine && now.version == read.version)
    }
}

impl<O: Origin> Read<O> {
    /// Whether the whole requested range is in hand.
    pub(crate) fn is_complete(&self) -> bool {
        self.at_end && (self.may_end_short || !self.ends_short())
    }

    /// The first record that is not in hand.
    fn next_missing(&self, record_size: u64) -> MissingRecord<O> {
        let Self { open, version, sequential, .. } = self;
        let index = self.reached() / record_size;
        MissingRecord { open: open.clone(), version: *version, index, sequential: *sequential }
    }

    /// First byte that is not in hand.
    fn reached(&self) -> u64 {
        self.offset + self.pieces.iter().map(|piece| piece.range.len() as u64).sum::<u64>()
    }

    fn ends_short(&self) -> bool {
        self.at_end && self.reached() < self.end
    }

    /// Takes the record of a load. After a load that was given up, the record is looked up again.
    /// The records behind it may have been part of the same run, so they are claimed again.
    fn resume(&mut self, record_size: u64, loaded: Option<Loaded>) {
        match loaded {
            Some(hold) => self.take(record_size, hold),
            None => self.rest_is_claimed = false,
        }
    }

    /// Takes the first record that is not in hand. The last piece is the end of the requested range
    /// or of the file.
    fn take(&mut self, record_size: u64, hold: Hold<Key, Entry>) {
        let at = self.reached();
        let index = at / record_size;
        let length = hold.bytes().len();
        let start = (at - index * record_size) as usize;
        let needed = start + (self.end - at).min(record_size - start as u64) as usize;
        let range = start.min(length)..needed.min(length);
        self.at_end = length < needed || at + range.len() as u64 == self.end;
        self.pieces.push(Piece { hold, range, index });
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

/// The error of a load, as the waiting program gets it.
pub(super) fn errno(error: LoadError<Errno>) -> Errno {
    match error {
        LoadError::Failed(errno) => errno,
        LoadError::Panicked => Errno::IO,
    }
}
