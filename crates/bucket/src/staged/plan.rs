//! The plan of an upload: which bytes are sent, and which the store copies from the existing
//! object.
//!
//! A store accepts an object in parts, and only the last part may be short. So a change of a few
//! bytes becomes a part of minimal size, made of the change and the bytes around it. The store
//! copies the ranges between such parts. If that makes too many parts, neighbouring changes are
//! sent as one.
//!
//! The limits are Amazon's ("Amazon S3 multipart upload limits"); other stores share or exceed
//! them. Sent parts are in memory, so they are smaller than the store allows. That limits the size
//! of a file.
//!
//! Some stores require parts of one length, except for the last (Cloudflare R2: "All parts except
//! the last one must be the same size"). For those a file is cut into such parts from its start,
//! and each part is either sent or copied.

use std::ops::Range;

/// The limits of a store. All sizes are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The shortest part that is not the last.
    pub part_min_bytes: u64,
    /// The longest part.
    pub part_max_bytes: u64,
    /// The maximal number of parts.
    pub parts_max: usize,
    /// The usual length of a sent part; longer if that would make too many parts.
    pub part_bytes: u64,
    /// The longest part to send, not counting a short rest that is sent with it.
    pub sent_max_bytes: u64,
    /// A file up to this size is uploaded in one request, from memory.
    pub put_max_bytes: u64,
    /// Whether the store copies ranges of an object into another.
    pub copies: bool,
    /// Whether all parts except the last must have one length.
    pub are_even: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            part_min_bytes: 5 << 20,
            part_max_bytes: 5 << 30,
            parts_max: 10_000,
            part_bytes: 8 << 20,
            sent_max_bytes: 64 << 20,
            put_max_bytes: 8 << 20,
            copies: true,
            are_even: false,
        }
    }
}

/// A part of an object, as a range of the file in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Sent from memory.
    Send(Range<u64>),
    /// Copied from the same range of the existing object.
    Copy(Range<u64>),
}

impl Part {
    /// Its place in the file.
    pub fn range(&self) -> &Range<u64> {
        match self {
            Self::Send(range) | Self::Copy(range) => range,
        }
    }
}

/// How a file is uploaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// In one request.
    Put,
    /// In parts.
    Parts(Vec<Part>),
}

impl Limits {
    /// The plan for a file of this size. The `changed` ranges, in order, are missing in the
    /// existing object. `None` if the store accepts no object of that size.
    pub fn plan(&self, size: u64, changed: &[Range<u64>]) -> Option<Plan> {
        if size <= self.put_max_bytes {
            return Some(Plan::Put);
        }
        let everything = 0..size;
        let changed = if self.copies { changed } else { std::slice::from_ref(&everything) };
        if self.are_even {
            return self.even(size, changed).map(Plan::Parts);
        }
        let (mut gap, mut part_bytes) = (self.part_min_bytes, self.part_bytes);
        loop {
            let sent = self.sent(size, changed, gap);
            let parts = self.parts(size, &sent, part_bytes);
            if parts.len() <= self.parts_max {
                return Some(Plan::Parts(parts));
            }
            if gap >= size && part_bytes >= self.sent_max_bytes {
                return None;
            }
            gap = gap.saturating_mul(2);
            part_bytes = (part_bytes * 2).min(self.sent_max_bytes);
        }
    }

    /// The length of a stream's part by its number, from 0. The end of a stream is not known. So
    /// the parts become longer: small files take little memory, and large ones fit into the allowed
    /// parts. `None` if a stream may have no such part.
    pub fn stream_part_bytes(&self, number: usize) -> Option<u64> {
        let doubled =
            if self.are_even { 0 } else { (number / (self.parts_max / 10).max(1)).min(8) };
        // The last part is for the rest at the end.
        let has_more = number + 1 < self.parts_max;
        has_more.then(|| (self.part_bytes << doubled).min(self.sent_max_bytes))
    }

    /// The size of the largest new file, in bytes.
    pub fn new_max_bytes(&self) -> u64 {
        self.sent_max_bytes.saturating_mul(self.parts_max as u64)
    }

    /// Parts of one length: those with a change are sent, the others copied.
    fn even(&self, size: u64, changed: &[Range<u64>]) -> Option<Vec<Part>> {
        let least = size.div_ceil(self.parts_max as u64);
        let mut part_bytes = self.part_bytes;
        while part_bytes < least {
            part_bytes = part_bytes.saturating_mul(2);
        }
        let part_bytes = part_bytes.min(self.sent_max_bytes);
        if part_bytes < least {
            return None;
        }
        let mut changed = changed.iter().peekable();
        let cut = |number: u64| number * part_bytes..size.min((number + 1) * part_bytes);
        let parts = (0..size.div_ceil(part_bytes)).map(cut).map(|range| {
            while changed.next_if(|changed| changed.end <= range.start).is_some() {}
            match changed.peek() {
                Some(changed) if changed.start < range.end => Part::Send(range),
                _ => Part::Copy(range),
            }
        });
        Some(parts.collect())
    }

    /// The changed ranges, grown until each is long enough for a part, and joined if the gap
    /// between them is shorter than `gap` bytes.
    fn sent(&self, size: u64, changed: &[Range<u64>], gap: u64) -> Vec<Range<u64>> {
        let mut sent: Vec<Range<u64>> = Vec::new();
        for range in changed {
            let end = range.end.max(range.start.saturating_add(self.part_min_bytes)).min(size);
            match sent.last_mut() {
                Some(last) if range.start < last.end.saturating_add(gap) => {
                    last.end = last.end.max(end);
                }
                None if range.start < gap => sent.push(0..end),
                _ => sent.push(range.start..end),
            }
        }
        sent
    }

    fn parts(&self, size: u64, sent: &[Range<u64>], part_bytes: u64) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut at = 0;
        for range in sent {
            self.copy(at..range.start, &mut parts);
            at = range.start;
            while at < range.end {
                let end = range.end.min(at + part_bytes);
                // A rest that is too short for a part of its own is sent with this one.
                let is_short = range.end - end < self.part_min_bytes && range.end < size;
                let end = if is_short { range.end } else { end };
                parts.push(Part::Send(at..end));
                at = end;
            }
        }
        self.copy(at..size, &mut parts);
        parts
    }

    /// Copies a range in parts of about equal length, none of them too long.
    fn copy(&self, range: Range<u64>, parts: &mut Vec<Part>) {
        let bytes = range.end - range.start;
        let count = bytes.div_ceil(self.part_max_bytes);
        for number in 0..count {
            let cut = |number: u64| {
                let bytes = u128::from(bytes) * u128::from(number) / u128::from(count);
                range.start + bytes as u64
            };
            parts.push(Part::Copy(cut(number)..cut(number + 1)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::slice::from_ref;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    fn sent_bytes(parts: &[Part]) -> u64 {
        let sent = parts.iter().filter(|part| matches!(part, Part::Send(_)));
        sent.map(|part| part.range().end - part.range().start).sum()
    }

    /// Whether all parts except the last have one length, and the last is no longer.
    fn are_even(parts: &[Part]) -> bool {
        let bytes = |part: &Part| part.range().end - part.range().start;
        let (first, last) = (bytes(&parts[0]), bytes(&parts[parts.len() - 1]));
        last <= first && parts[..parts.len() - 1].iter().all(|part| bytes(part) == first)
    }

    /// Checks that the parts make up the file, that each changed byte is sent, and all limits.
    fn check(limits: &Limits, size: u64, changed: &[Range<u64>], parts: &[Part]) {
        assert!(parts.len() <= limits.parts_max, "{} parts", parts.len());
        let mut at = 0;
        for (number, part) in parts.iter().enumerate() {
            let range = part.range();
            assert_eq!(range.start, at, "no gap, no overlap");
            let bytes = range.end - range.start;
            assert!(bytes > 0 && bytes <= limits.part_max_bytes, "{part:?}");
            let is_last = number + 1 == parts.len();
            assert!(is_last || bytes >= limits.part_min_bytes, "{part:?} is too short");
            if let Part::Copy(range) = part {
                let touches =
                    |other: &Range<u64>| other.start < range.end && range.start < other.end;
                assert!(!changed.iter().any(touches), "{part:?} was changed");
            }
            at = range.end;
        }
        assert_eq!(at, size);
    }

    #[test]
    fn changing_four_kib_of_ten_gib_sends_five_mib_and_copies_the_rest() {
        let limits = Limits::default();
        for place in [0, 4 * MIB, GIB + 5 * KIB, 5 * GIB, 10 * GIB - 4 * KIB] {
            let changed = place..place + 4 * KIB;
            let changed = from_ref(&changed);
            let Some(Plan::Parts(parts)) = limits.plan(10 * GIB, changed) else {
                panic!("one request for 10 GiB")
            };
            check(&limits, 10 * GIB, changed, &parts);
            assert!(sent_bytes(&parts) <= 10 * MIB, "{place}: {} bytes", sent_bytes(&parts));
            assert!(parts.len() <= 5, "{place}: {} parts", parts.len());
        }
        let middle = GIB..GIB + 4 * KIB;
        let Some(Plan::Parts(parts)) = limits.plan(10 * GIB, from_ref(&middle)) else {
            unreachable!()
        };
        assert_eq!(sent_bytes(&parts), 5 * MIB);
    }

    #[test]
    fn parts_in_memory_are_bounded_which_bounds_the_size_of_a_file() {
        let limits = Limits::default();
        let even = Limits { are_even: true, ..limits };
        let largest = limits.new_max_bytes();
        assert_eq!(largest, 625 * GIB);
        for limits in [limits, even] {
            for size in [9 * MIB, 20 * MIB + 1, 80 * GIB, 200 * GIB + 1, largest] {
                let everything = 0..size;
                let Some(Plan::Parts(parts)) = limits.plan(size, from_ref(&everything)) else {
                    panic!("no parts for {size} bytes")
                };
                check(&limits, size, from_ref(&everything), &parts);
                let lengths = parts.iter().map(|part| part.range().end - part.range().start);
                assert!(lengths.max() <= Some(64 * MIB), "{size} bytes");
                // A new file always has parts of one length.
                assert!(are_even(&parts), "{size} bytes");
            }
            let beyond = 0..largest + 1;
            assert!(limits.plan(largest + 1, from_ref(&beyond)).is_none());
        }
    }

    #[test]
    fn a_stream_has_room_for_a_large_file() {
        let limits = Limits::default();
        let lengths = |limits: &Limits| -> Vec<u64> {
            (0..).map_while(|number| limits.stream_part_bytes(number)).collect()
        };
        let grown = lengths(&limits);
        assert_eq!((grown.len(), grown[0], grown[9_998]), (9_999, 8 * MIB, 64 * MIB));
        assert!(grown.iter().sum::<u64>() > 490 * GIB);
        let even = lengths(&Limits { are_even: true, ..limits });
        assert_eq!(even, [8 * MIB; 9_999]);
    }

    #[test]
    fn with_even_parts_a_change_sends_the_parts_it_touches() {
        let limits = Limits { are_even: true, ..Limits::default() };
        let (size, changed) = (GIB + 1, [5 * MIB..8 * MIB, 16 * MIB - 1..16 * MIB + 1]);
        let Some(Plan::Parts(parts)) = limits.plan(size, &changed) else { unreachable!() };
        check(&limits, size, &changed, &parts);
        assert!(are_even(&parts));
        assert_eq!(sent_bytes(&parts), 3 * 8 * MIB);
    }

    #[test]
    fn scattered_changes_of_a_large_object_stay_within_the_allowed_parts() {
        let limits = Limits::default();
        let size = 400 * GIB;
        let changed: Vec<_> =
            (0..20_000).map(|number| number * 20 * MIB..number * 20 * MIB + 1).collect();
        let Some(Plan::Parts(parts)) = limits.plan(size, &changed) else { unreachable!() };
        check(&limits, size, &changed, &parts);
        let everything = 0..100 << 40;
        assert!(
            limits.plan(100 << 40, from_ref(&everything)).is_none(),
            "more than any store accepts"
        );
    }

    proptest! {
        #[test]
        fn a_plan_makes_up_the_file_and_keeps_the_limits(
            size in 1_u64..200_000,
            starts in prop::collection::vec((0_u64..200_000, 1_u64..3000), 0..60),
            parts_max in 20_usize..200,
            copies: bool,
            are_even: bool,
        ) {
            let limits = Limits {
                part_min_bytes: 500,
                part_max_bytes: 50_000,
                parts_max,
                part_bytes: 800,
                sent_max_bytes: 20_000,
                put_max_bytes: 1000,
                copies,
                are_even,
            };
            let mut changed: Vec<Range<u64>> = Vec::new();
            let mut starts = starts;
            starts.sort_unstable();
            for (start, bytes) in starts {
                let start = start.max(changed.last().map_or(0, |last| last.end));
                if start < size {
                    changed.push(start..(start + bytes).min(size));
                }
            }
            match limits.plan(size, &changed).unwrap() {
                Plan::Put => prop_assert!(size <= 1000),
                Plan::Parts(parts) => {
                    check(&limits, size, &changed, &parts);
                    prop_assert!(!are_even || self::are_even(&parts));
                }
            }
        }
    }
}
