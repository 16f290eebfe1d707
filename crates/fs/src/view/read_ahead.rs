//! Reading ahead: how much is loaded before a program asks for it.
//!
//! A sequential reader ([`crate::prefetch`]) gets the records ahead of it loaded. The distance is a
//! share of the cache, so that records are not evicted before they are read. An origin may refuse
//! prefetch, because each request costs money. Then the request of a waiting reader is made longer
//! instead: it also fetches the next records.

use super::View;
use super::load::{Demand, Load, MissingRecord, Start};
use crate::handle::OpenFile;
use crate::prefetch::Progress;
use crate::record::{Key, Version};
use crate::version::Contents;
use ogive_arc::{Access, Kind};
use ogive_origin::{Origin, ReadAhead};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The most that one thread reads at once: the size of a large read.
const RUN_MAX_BYTES: u64 = 1 << 20;
/// The largest share of the cache that is prefetched for one sequential reader.
const PREFETCH_SHARE: u64 = 32;
/// The same where the origin reads in the background, and fills its window itself.
const PREFETCH_SHARE_FAR: u64 = 16;
/// The share of all readers together, where the origin reads in the background and no queue bounds
/// it.
const PREFETCH_SHARE_OF_ALL: u64 = 8;

/// The result of one read for prefetch.
#[derive(Default)]
pub(super) struct Ahead {
    pub(super) is_sequential: bool,
    pub(super) held_back: Range<u64>,
}

impl<O: Origin> View<O> {
    /// How many records one thread reads at once, from an origin that keeps a thread waiting.
    pub(super) fn records_at_once(&self) -> u64 {
        self.origin_latency.records(RUN_MAX_BYTES / self.settings.record_size_bytes)
    }

    /// Starts loading the next records of a sequential reader, or returns the range that is held
    /// back.
    pub(super) fn prefetch(
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

    /// Starts loading the records of a range before they are asked for.
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
            if self.observers.are_active() {
                let left = size_bytes.saturating_sub(index * record_size);
                let bytes = left.min(record_size) as usize;
                self.observers.read_ahead(version, index, bytes);
            }
            let missing = MissingRecord { open: open.clone(), version, index, sequential: true };
            if !start.prefetch(Load::begin(self, missing, claim, Demand::prefetch(self))) {
                break;
            }
        }
    }

    /// Lengthens the request that is about to be made by the records that follow in it.
    pub(super) fn lengthen(
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
                // This record would need another request.
                return;
            }
            self.load_ahead(start, open, version, record(index));
        }
    }

    /// Whether prefetches in flight fill the cache's room for them. Where threads wait for the
    /// origin, the queue has its own bound.
    fn is_prefetching_enough(&self) -> bool {
        let room_bytes = self.cache.level().room_bytes() / PREFETCH_SHARE_OF_ALL;
        let active = || self.counters.prefetch_active() * self.settings.record_size_bytes;
        self.origin.reads_in_background() && active() >= room_bytes
    }

    /// Keeps the prefetch distance to a share of the present cache, so that records are not evicted
    /// before they are read.
    pub(super) fn limit_prefetch(&self) {
        let is_far = self.origin.reads_in_background();
        let share = if is_far { PREFETCH_SHARE_FAR } else { PREFETCH_SHARE };
        let room_bytes = self.cache.level().room_bytes() / share;
        let distance_bytes = self.settings.prefetch_max_bytes.min(room_bytes);
        self.prefetch_distance.store(distance_bytes, Ordering::Relaxed);
    }
}
