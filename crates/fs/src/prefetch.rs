//! Which reads are sequential, and how far ahead of them to read.
//!
//! The model is OpenZFS's zfetch (`module/zfs/dmu_zfetch.c`). A handle has a few streams. Each
//! remembers where the next read of a sequential reader would start. A read that lands there is a
//! hit and moves the stream on. The second hit starts prefetching, and each later one doubles the
//! distance, up to a limit. A read that fits no stream replaces the least recently used one. So the
//! streams of a random reader never hit, and nothing is prefetched for it.
//!
//! This module is pure: offsets in, a range to prefetch out. The caller skips records that are
//! cached or being loaded. The origin decides when prefetching starts and how far it goes
//! ([`ReadAhead`]).

use ogive_origin::ReadAhead;
use std::ops::Range;

/// Streams per handle, like OpenZFS's `zfetch_max_streams`.
const STREAMS_MAX: usize = 8;
/// A read may miss its expected place by this many times its own length. The kernel sends the reads
/// of one readahead window to several threads, and they arrive in any order. The gap is
/// proportional to the length. Otherwise small random reads in a small file would hit it by chance.
const SLACK_LENGTHS: u64 = 2;
/// But never by more than this, in bytes.
const SLACK_MAX_BYTES: u64 = 256 * 1024;

/// The sequential streams of one open file.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    streams: Vec<Stream>,
    clock: u64,
}

#[derive(Clone, Copy, Debug)]
struct Stream {
    /// Where the next read is expected.
    next: u64,
    /// Prefetches have covered everything before this.
    ahead: u64,
    distance_bytes: u64,
    /// How much was read since it started.
    read_bytes: u64,
    hits: u32,
    used: u64,
}

/// The result of a read for the streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It continues a stream; prefetch this range, if it is not empty.
    Hit(Range<u64>),
    /// It fits no stream.
    Miss,
}

impl Streams {
    /// Notes a read of `length_bytes` at `offset` of a file of `size_bytes`.
    pub(crate) fn on_read(
        &mut self,
        offset: u64,
        length_bytes: u64,
        size_bytes: u64,
        reach: &ReadAhead,
    ) -> Progress {
        self.clock += 1;
        let end = offset.saturating_add(length_bytes);
        let slack = length_bytes.saturating_mul(SLACK_LENGTHS).min(SLACK_MAX_BYTES);
        let expected = |stream: &&mut Stream| offset.abs_diff(stream.next) <= slack;
        let Some(stream) = self.streams.iter_mut().find(expected) else {
            self.start(end, length_bytes);
            return Progress::Miss;
        };
        stream.used = self.clock;
        // A gap is not sequential yet; a late read that fills it makes it so.
        stream.hits = stream.hits.saturating_add(u32::from(offset <= stream.next));
        stream.read_bytes = stream.read_bytes.saturating_add(length_bytes);
        if end <= stream.next {
            return Progress::Hit(end..end);
        }
        stream.next = end;
        if stream.hits < reach.hits_min {
            return Progress::Hit(end..end);
        }
        let before = stream.distance_bytes;
        let distance = match (reach.times_read, before) {
            (_, 0) => reach.first_bytes,
            (Some(times), _) => stream.read_bytes.saturating_mul(times).max(reach.first_bytes),
            (None, before) => before.saturating_mul(2),
        };
        let distance = distance.min(reach.most_bytes);
        // Half the distance at a time, so that loads form runs. A distance that grows with each
        // read grows when half of it has been read; otherwise each read would be a request.
        let is_far = |distance: u64| stream.ahead > end.saturating_add(distance / 2);
        match reach.times_read {
            Some(_) if before > 0 && is_far(before.min(distance)) => {
                return Progress::Hit(end..end);
            }
            None if is_far(distance) => {
                stream.distance_bytes = distance;
                return Progress::Hit(end..end);
            }
            _ => {}
        }
        stream.distance_bytes = distance;
        let from = stream.ahead.max(end);
        let to = end.saturating_add(stream.distance_bytes).min(size_bytes);
        if to <= from {
            return Progress::Hit(end..end);
        }
        stream.ahead = to;
        Progress::Hit(from..to)
    }

    /// A range was not prefetched after all: the next read of its stream gets it again.
    pub(crate) fn take_back(&mut self, range: &Range<u64>) {
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.ahead == range.end) {
            stream.ahead = range.start;
        }
    }

    /// Number of streams.
    pub(crate) fn len(&self) -> usize {
        self.streams.len()
    }

    fn start(&mut self, next: u64, read_bytes: u64) {
        let used = self.clock;
        let stream = Stream { next, ahead: 0, distance_bytes: 0, read_bytes, hits: 0, used };
        if self.streams.len() < STREAMS_MAX {
            self.streams.push(stream);
        } else if let Some(oldest) = self.streams.iter_mut().min_by_key(|stream| stream.used) {
            *oldest = stream;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;
    const MIB: u64 = 1024 * KIB;
    const MAX: u64 = 8 * MIB;

    fn up_to(most_bytes: u64) -> ReadAhead {
        ReadAhead { most_bytes, ..ReadAhead::default() }
    }

    fn range(progress: Progress) -> Range<u64> {
        match progress {
            Progress::Hit(range) => range,
            Progress::Miss => 0..0,
        }
    }

    #[test]
    fn a_sequential_reader_is_prefetched_without_gaps_or_repeats() {
        let size = 100 * MIB;
        for step in [4 * KIB, 128 * KIB, MIB] {
            let mut streams = Streams::default();
            let mut prefetched_to = None;
            for read in 0..size / step {
                let offset = read * step;
                let range = range(streams.on_read(offset, step, size, &up_to(MAX)));
                if range.is_empty() {
                    continue;
                }
                let from = prefetched_to.unwrap_or(range.start);
                assert!(range.start == from.max(offset + step), "{range:?} after {from}");
                assert!(range.end <= (offset + step + MAX).min(size));
                prefetched_to = Some(range.end);
            }
            assert_eq!(prefetched_to, Some(size), "with reads of {step}");
            assert_eq!(streams.len(), 1);
        }
    }

    #[test]
    fn a_random_reader_is_not_prefetched() {
        let mut streams = Streams::default();
        let mut offset = 1u64;
        for _ in 0..1000 {
            offset = offset.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (offset >> 20) % (1 << 40);
            assert_eq!(streams.on_read(at, 8 * KIB, 1 << 41, &up_to(MAX)), Progress::Miss);
        }
        assert_eq!(streams.len(), STREAMS_MAX);
    }

    #[test]
    fn streams_through_one_handle_do_not_disturb_each_other() {
        let size = 1 << 40;
        let mut streams = Streams::default();
        let mut prefetched = [0u64; 4];
        for step in 0..64 {
            for (lane, prefetched) in prefetched.iter_mut().enumerate() {
                let offset = (lane as u64 + 1) * (1 << 36) + step * 128 * KIB;
                let range = range(streams.on_read(offset, 128 * KIB, size, &up_to(MAX)));
                *prefetched += range.end - range.start;
            }
        }
        for bytes in prefetched {
            assert!(bytes >= 8 * MIB, "{bytes}");
        }
    }

    #[test]
    fn reads_of_one_window_may_arrive_in_any_order() {
        let size = 1 << 30;
        let mut streams = Streams::default();
        let mut misses = 0;
        for window in 0..64u64 {
            for part in [1u64, 0] {
                let offset = (window * 2 + part) * 128 * KIB;
                if streams.on_read(offset, 128 * KIB, size, &up_to(MAX)) == Progress::Miss {
                    misses += 1;
                }
            }
        }
        assert_eq!(misses, 1);
    }

    #[test]
    fn nothing_is_prefetched_past_the_end_or_without_a_distance() {
        let mut streams = Streams::default();
        streams.on_read(0, 64 * KIB, 128 * KIB, &up_to(MAX));
        assert_eq!(
            streams.on_read(64 * KIB, 64 * KIB, 128 * KIB, &up_to(MAX)),
            Progress::Hit(131_072..131_072)
        );
        let mut streams = Streams::default();
        for read in 0..100 {
            assert!(range(streams.on_read(read * KIB, KIB, MIB, &up_to(0))).is_empty());
        }
        assert_eq!(streams.on_read(u64::MAX, u64::MAX, u64::MAX, &up_to(u64::MAX)), Progress::Miss);
    }

    #[test]
    fn prefetching_starts_and_reaches_as_the_origin_asks() {
        let far =
            ReadAhead { hits_min: 2, first_bytes: MIB, times_read: Some(4), ..up_to(4 * MIB) };
        let mut streams = Streams::default();
        let mut ahead = Vec::new();
        for read in 0..40 {
            let (offset, length) = (read * 128 * KIB, 128 * KIB);
            let range = range(streams.on_read(offset, length, 1 << 40, &far));
            if !range.is_empty() {
                ahead.push((read, (range.end - offset - length) / MIB, range.end - range.start));
            }
        }
        assert_eq!(ahead[0], (2, 1, MIB), "{ahead:?}");
        let (read, distance, _) = ahead[1];
        // Seven reads of four times the length.
        assert_eq!((read, distance), (6, 3), "half of the distance was read first: {ahead:?}");
        assert!(ahead[2..].iter().all(|(_, distance, _)| *distance == 4), "{ahead:?}");
    }

    #[test]
    fn a_dropped_prefetch_is_tried_again_by_the_next_read() {
        let mut streams = Streams::default();
        let mut read = 0;
        let mut next = || {
            read += 1;
            let length = 128 * KIB;
            let progress = streams.on_read((read - 1) * length, length, 1 << 40, &up_to(MAX));
            let range = range(progress);
            if read == 5 || read == 6 {
                streams.take_back(&range);
            }
            (read * length, range)
        };
        for _ in 0..4 {
            next();
        }
        let (_, held_back) = next();
        let ((_, again), (end, then)) = (next(), next());
        assert!(held_back.start == again.start && !again.is_empty(), "{held_back:?} {again:?}");
        assert_eq!(then.start, again.start.max(end));
    }
}
