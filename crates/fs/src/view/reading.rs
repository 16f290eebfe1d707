//! The way of one read.
//!
//! A read of a cached record looks it up, holds it and answers from its bytes: nothing is copied
//! that was not asked for. Whatever is missing is loaded ([`super::load`]), one load a record
//! however many ask, from the handle that asked first. Sequential readers get the records ahead
//! of them loaded before they ask.
//!
//! Two ways lead to the missing records. A thread that may wait for the origin loads the first one
//! itself, and the others with it if they are soon there; else it joins the loads of the others
//! ([`View::complete_read`]). Where the record comes from
//! the second level, or from an origin that reads in the background, the read goes from record to
//! record by continuations, and no thread waits for any ([`View::complete_elsewhere`]).

use super::load::{Asker, Load, Loaded, Start, Wanted};
use super::{Result, View};
use crate::handle::OpenFile;
use crate::prefetch::Progress;
use crate::record::{Entry, Key, Version};
use crate::version::Contents;
use ogive_arc::{Access, Hold, Kind, LoadError, Lookup};
use ogive_origin::{Errno, Needed, Origin, ReadAhead};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// One thread reads at most so much at once. A large read is of as much.
const RUN_MAX_BYTES: u64 = 1 << 20;
/// Pieces of a read that take no allocation: those of 1 MiB in records of 128 KiB, and one more.
const PIECES: usize = 9;
/// One sequential reader is prefetched at most this share of the cache.
const PREFETCH_SHARE: u64 = 32;
/// The same where the origin reads in the background: it asks for as much as its way holds.
const PREFETCH_SHARE_FAR: u64 = 16;
/// All of them together, where the origin reads in the background and no queue bounds it.
const PREFETCH_SHARE_OF_ALL: u64 = 8;

/// One read on its way: what was asked and what is in hand.
pub(crate) struct Read<O: Origin> {
    open: Arc<OpenFile<O>>,
    version: Version,
    offset: u64,
    end: u64,
    pieces: Pieces,
    complete: bool,
    /// There is no page cache above.
    direct: bool,
    /// A page cache above takes the bytes, and the cache is to give way to it.
    is_handed_over: bool,
    /// It went on where an earlier one had ended.
    sequential: bool,
    /// What would have been prefetched, were it not for what requests cost.
    held_back: Range<u64>,
}

/// What a read means for those that follow.
#[derive(Default)]
struct Ahead {
    is_sequential: bool,
    held_back: Range<u64>,
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
    /// Begins a read of `length_bytes` at `offset` with what the cache has. `past_pages` says that
    /// no page cache takes the bytes, because the program has opened the file so (`O_DIRECT`). `None`
    /// for a file that is to be read from the origin each time ([`Self::read_from_origin`]).
    pub(crate) fn begin_read(
        self: &Arc<Self>,
        handle: u64,
        offset: u64,
        length_bytes: u64,
        past_pages: bool,
    ) -> Result<Option<Read<O>>> {
        let open = self.file(handle)?;
        if !open.size_tells {
            return Ok(None);
        }
        let contents = self.contents_read_by(&open)?;
        let ahead = self.prefetch(&open, &contents, offset, length_bytes);
        let mut read = Read {
            open,
            version: contents.version,
            offset,
            end: offset.saturating_add(length_bytes),
            pieces: Pieces::None,
            complete: length_bytes == 0,
            direct: self.settings.direct_io,
            is_handed_over: self.settings.exclusive && !self.settings.direct_io && !past_pages,
            sequential: ahead.is_sequential,
            held_back: ahead.held_back,
        };
        let record_size = self.settings.record_size_bytes;
        while !read.complete {
            let key = Key::record(read.version, read.reached() / record_size);
            let Some(hold) = self.cache.get_cached_only(&key, Access::Demand) else { break };
            read.take(record_size, hold);
        }
        Ok(Some(read))
    }

    /// Reads what the origin has at an offset at this moment, and keeps nothing of it.
    pub(crate) fn read_from_origin(
        &self,
        handle: u64,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize> {
        self.origin.read_some(&self.file(handle)?.file, offset, into)
    }

    /// The contents that a read by this open file is of.
    ///
    /// # Errors
    /// `EIO` where the bytes of the file were found to be none of it;
    /// `ESTALE` where the origin vouches for the contents that the file was opened with, and the
    /// inode has others by now: what is cached of those is not this file's, and what this file
    /// reads must neither be kept as theirs nor come among their pages.
    pub(super) fn contents_read_by(&self, open: &OpenFile<O>) -> Result<Contents> {
        let contents = open.inode.contents().ok_or(Errno::BADF)?;
        if self.origin.is_spoilt(&open.file) {
            return Err(Errno::IO);
        }
        if contents.version != open.version && self.origin.contents_of(&open.file).is_some() {
            return Err(Errno::STALE);
        }
        Ok(contents)
    }

    /// Whether there are reads that no thread need wait for.
    pub(crate) fn completes_elsewhere(&self) -> bool {
        self.second_level.is_some() || self.origin.reads_in_background()
    }

    /// Has a read completed without the calling thread, if its first missing record comes from the
    /// second level or from an origin that reads in the background; gives it back otherwise. `done`
    /// gets it on the thread that brings the last of it.
    pub(crate) fn complete_elsewhere<Done, Reply>(
        self: &Arc<Self>,
        read: Read<O>,
        reply: Reply,
        done: Done,
    ) -> Option<(Read<O>, Reply)>
    where
        Done: FnOnce(&Arc<Self>, &Read<O>, Result<()>, Reply) + Send + 'static,
        Reply: Send + 'static,
    {
        let wanted = read.next_wanted(self.settings.record_size_bytes);
        if !self.origin.reads_in_background() && !self.may_be_in_second_level(&wanted) {
            return Some((read, reply));
        }
        self.go_on(read, None, move |view, read, result| done(view, read, result, reply));
        None
    }

    /// Goes on with a read that has got a record: looks the next ones up, until one has to be
    /// loaded or the read is complete.
    fn go_on<Done>(self: &Arc<Self>, mut read: Read<O>, loaded: Option<Loaded>, done: Done)
    where
        Done: FnOnce(&Arc<Self>, &Read<O>, Result<()>) + Send + 'static,
    {
        let record_size = self.settings.record_size_bytes;
        let is_first = loaded.is_none();
        if let Some(hold) = loaded {
            read.take(record_size, hold);
        }
        while !read.complete {
            let wanted = read.next_wanted(record_size);
            let view = self.clone();
            match self.cache.get_or_claim(&wanted.key(), Kind::Data, Access::Demand) {
                Lookup::Hit(hold) => read.take(record_size, hold),
                Lookup::Claimed(claim) => {
                    let rest = is_first.then(|| self.claim_rest(&read));
                    let held_back = std::mem::take(&mut read.held_back);
                    let (open, version) = (read.open.clone(), read.version);
                    let then = move |loaded| match loaded {
                        Ok(loaded) => view.go_on(read, Some(loaded), done),
                        Err(errno) => done(&view, &read, Err(errno)),
                    };
                    let asker = Asker::Request(Box::new(then));
                    let mut start = Start::new(self.origin.read_ahead().run_bytes);
                    start.demanded(Load::begin(self, wanted, claim, asker));
                    rest.into_iter().flatten().flatten().for_each(|load| start.demanded(load));
                    // The request is made in any case: longer it costs no more, and the next ones
                    // need not be made.
                    self.lengthen(&mut start, &open, version, held_back);
                    return start.finish();
                }
                Lookup::Loading(joined) => {
                    if is_first {
                        self.load_rest_ahead(&read);
                    }
                    return joined.then(move |end| match end.map_err(errno) {
                        Ok(loaded) => view.go_on(read, loaded, done),
                        Err(errno) => done(&view, &read, Err(errno)),
                    });
                }
            }
        }
        if read.is_complete() {
            return done(self, &read, Ok(()));
        }
        // The origin has to be asked whether the file has grown.
        let view = self.clone();
        self.workers.request(Box::new(move || {
            let completed = view.complete_read(&mut read);
            done(&view, &read, completed);
        }));
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
        let records = (read.end - read.reached()).div_ceil(record_size);
        let all_here = self.second_level.is_none() && records <= self.records_at_once();
        if !all_here {
            self.load_rest_ahead(read);
        }
        while !read.complete {
            let wanted = read.next_wanted(record_size);
            let hold = match self.cache.get_or_claim(&wanted.key(), Kind::Data, Access::Demand) {
                Lookup::Hit(hold) => hold,
                Lookup::Claimed(claim) => {
                    let following = all_here.then(|| self.claim_rest(read).map_while(|load| load));
                    Load::here(self, wanted, claim, following.into_iter().flatten())?
                }
                Lookup::Loading(joined) => match joined.wait().map_err(errno)? {
                    Some(hold) => hold,
                    // It was given up.
                    None => continue,
                },
            };
            read.take(record_size, hold);
        }
        Ok(())
    }

    /// A program that reads past the end of a file as it was may be following one that grows
    /// behind the mount. Below a page cache the kernel asks for attributes and finds out.
    fn read_past_growth(self: &Arc<Self>, read: &mut Read<O>) -> Result<()> {
        let end = read.reached();
        let size_bytes = self.size_of(&read.open)?;
        if size_bytes <= end {
            return Ok(());
        }
        self.notice_size(&read.open.inode, size_bytes);
        let contents = self.contents_read_by(&read.open)?;
        (read.version, read.pieces, read.complete) = (contents.version, Pieces::None, false);
        self.load_rest(read)
    }

    /// The size of an open file now, in bytes.
    pub(super) fn size_of(&self, open: &OpenFile<O>) -> Result<u64> {
        let (node, file) = (&open.inode.node, Some(&open.file));
        Ok(self.origin.attributes_needed(node, file, Needed::Size)?.size_bytes)
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
        let mut start = Start::new(self.origin.read_ahead().run_bytes);
        self.claim_rest(read).flatten().for_each(|load| start.demanded(load));
        start.finish();
    }

    /// Claims all missing records of a read but the first; nothing for those that somebody has.
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
            let wanted = Wanted { open: open.clone(), version, index, sequential };
            let claim = view.cache.try_claim(&wanted.key(), Kind::Data, Access::Demand)?;
            Some(Load::begin(&view, wanted, claim, Asker::Rest))
        })
    }

    /// How many records one thread reads at once, of an origin that keeps a thread waiting.
    pub(super) fn records_at_once(&self) -> u64 {
        self.pace.records(RUN_MAX_BYTES / self.settings.record_size_bytes)
    }

    /// Starts loading what a sequential reader is going to ask for, or tells what is held back.
    fn prefetch(
        self: &Arc<Self>,
        open: &Arc<OpenFile<O>>,
        contents: &Contents,
        offset: u64,
        length_bytes: u64,
    ) -> Ahead {
        let distance = self.prefetch_distance.load(Ordering::Relaxed);
        let record_size = self.settings.record_size_bytes;
        if distance == 0 || contents.size_bytes <= record_size {
            return Ahead::default();
        }
        let reach = self.origin.read_ahead();
        let reach = ReadAhead { most_bytes: reach.most_bytes.min(distance), ..reach };
        let (progress, streams) = {
            let mut streams = open.streams.lock();
            let size = contents.size_bytes;
            (streams.on_read(offset, length_bytes, size, &reach), streams.len())
        };
        self.counters.stream(progress != Progress::Miss, streams);
        let Progress::Hit(range) = progress else {
            return Ahead::default();
        };
        let sequential = Ahead { is_sequential: true, ..Ahead::default() };
        if range.is_empty() {
            return sequential;
        }
        self.limit_prefetch();
        if self.is_prefetching_enough() {
            open.streams.lock().take_back(&range);
            return sequential;
        }
        if !self.origin.may_read_ahead() {
            open.streams.lock().take_back(&range);
            return Ahead { held_back: range, ..sequential };
        }
        let mut start = Start::new(reach.run_bytes);
        self.load_ahead(&mut start, open, contents.version, range);
        start.finish();
        sequential
    }

    /// Starts loading the records of a range that nobody has asked for yet.
    fn load_ahead(
        self: &Arc<Self>,
        start: &mut Start<O>,
        open: &Arc<OpenFile<O>>,
        version: Version,
        range: Range<u64>,
    ) {
        if range.is_empty() {
            return;
        }
        let record_size = self.settings.record_size_bytes;
        let size_bytes = open.inode.contents().map_or(0, |known| known.size_bytes);
        for index in range.start / record_size..=(range.end - 1) / record_size {
            let key = Key::record(version, index);
            let Some(claim) = self.cache.try_claim(&key, Kind::Data, Access::Prefetch) else {
                continue;
            };
            if self.observers.are_there() {
                let left = size_bytes.saturating_sub(index * record_size);
                let bytes = left.min(record_size) as usize;
                self.observers.read_ahead(version, index, bytes);
            }
            let wanted = Wanted { open: open.clone(), version, index, sequential: true };
            if !start.prefetch(Load::begin(self, wanted, claim, Asker::nobody(self))) {
                break;
            }
        }
    }

    /// Makes the request that is about to be made longer, by records that follow in it.
    fn lengthen(
        self: &Arc<Self>,
        start: &mut Start<O>,
        open: &Arc<OpenFile<O>>,
        version: Version,
        range: Range<u64>,
    ) {
        let record_size = self.settings.record_size_bytes;
        let start_of = |index: u64| index.saturating_mul(record_size);
        let record = |index: u64| start_of(index)..start_of(index + 1);
        let first = range.start / record_size;
        for index in (first..).take_while(|index| record(*index).start < range.end) {
            if !start.has_room_for(index) {
                // It would be another request.
                return;
            }
            self.load_ahead(start, open, version, record(index));
        }
    }

    /// Whether as much is on its way that nobody has asked for as the cache has room for. Where
    /// threads wait for the origin, the length of their queue says so.
    fn is_prefetching_enough(&self) -> bool {
        let room_bytes = self.cache.level().room_bytes() / PREFETCH_SHARE_OF_ALL;
        let active = || self.counters.prefetch_active() * self.settings.record_size_bytes;
        self.origin.reads_in_background() && active() >= room_bytes
    }

    /// Keeps the distance of prefetching to a share of the cache as large as it can be now: what is
    /// evicted before it is read was read for nothing.
    pub(super) fn limit_prefetch(&self) {
        let is_far = self.origin.reads_in_background();
        let share = if is_far { PREFETCH_SHARE_FAR } else { PREFETCH_SHARE };
        let room_bytes = self.cache.level().room_bytes() / share;
        let distance_bytes = self.settings.prefetch_max_bytes.min(room_bytes);
        self.prefetch_distance.store(distance_bytes, Ordering::Relaxed);
    }

    /// Answers a read with its bytes, as they stand in its records one after the other, and lets go
    /// of what the page cache has now.
    pub(crate) fn finish_read(&self, read: &Read<O>, answer: impl FnOnce(&[&[u8]])) {
        let length_bytes = read.reached() - read.offset;
        self.counters.read(length_bytes);
        if read.ends_short() {
            let end = read.reached();
            read.open.inode.believe(|believed| believed.may_have_shrunk_to(end));
        }
        if self.observers.are_there() {
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

    /// Hands a record over that was read whole, at once or by a sequential reader that has come to
    /// its end: the kernel has the bytes now, and asks for them again only if its page cache could
    /// not keep them. Here they are the first to leave when memory is needed. One that was asked for
    /// again stays.
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

    /// Whether what a file holds now may be found when it is opened again. Where its times prove
    /// nothing, or not yet, a copy of what the kernel has would be of no use to anybody.
    fn is_for_later(&self, read: &Read<O>) -> bool {
        let contents = read.open.inode.contents();
        self.versions.is_sole_writer()
            || contents.is_some_and(|now| now.pristine && now.version == read.version)
    }
}

impl<O: Origin> Read<O> {
    /// Whether everything that was asked for is in hand.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete && !(self.direct && self.ends_short())
    }

    /// The first record that is not in hand.
    fn next_wanted(&self, record_size: u64) -> Wanted<O> {
        let Self { open, version, sequential, .. } = self;
        let index = self.reached() / record_size;
        Wanted { open: open.clone(), version: *version, index, sequential: *sequential }
    }

    /// First byte that is not in hand.
    fn reached(&self) -> u64 {
        self.offset + self.pieces.iter().map(|piece| piece.range.len() as u64).sum::<u64>()
    }

    fn ends_short(&self) -> bool {
        self.complete && self.reached() < self.end
    }

    /// Takes the first record that is not in hand. The read is complete with the last that was
    /// asked for, or where the file ends.
    fn take(&mut self, record_size: u64, hold: Hold<Key, Entry>) {
        let at = self.reached();
        let index = at / record_size;
        let length = hold.bytes().len();
        let start = (at - index * record_size) as usize;
        let wanted = start + (self.end - at).min(record_size - start as u64) as usize;
        let range = start.min(length)..wanted.min(length);
        self.complete = length < wanted || at + range.len() as u64 == self.end;
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

/// The error of a load as the program that waited for it sees it.
pub(super) fn errno(error: LoadError<Errno>) -> Errno {
    match error {
        LoadError::Failed(errno) => errno,
        LoadError::Panicked => Errno::IO,
    }
}
