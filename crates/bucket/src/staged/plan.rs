//! How a changed file goes up: which bytes are sent, and which the store copies from the object
//! that is there.
//!
//! Stores take an object in parts, of which only the last may be short. So a change of a few bytes
//! becomes a part of the least size, made of the change and of what stands around it; what is
//! between two such parts is copied inside the store. Where there would be too many parts, changes
//! that are near to each other are sent as one.
//!
//! The limits are Amazon's ("Amazon S3 multipart upload limits" in its user guide), which other
//! stores share or exceed.

use std::ops::Range;

/// What a store takes. All sizes are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Shortest part that is not the last.
    pub part_min_bytes: u64,
    /// Longest part.
    pub part_max_bytes: u64,
    /// How many parts an object has at most.
    pub parts_max: usize,
    /// Parts that are sent are about so long, where the number of parts allows it.
    pub part_bytes: u64,
    /// A file up to this size goes up in one request. It is in memory then.
    pub put_max_bytes: u64,
    /// Whether the store copies ranges of an object into another.
    pub copies: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            part_min_bytes: 5 << 20,
            part_max_bytes: 5 << 30,
            parts_max: 10_000,
            part_bytes: 8 << 20,
            put_max_bytes: 8 << 20,
            copies: true,
        }
    }
}

/// A part of an object, as a range of the file in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Sent by us.
    Send(Range<u64>),
    /// Copied from the object that is there, where it has the same place.
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

/// How a file goes up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// In one request.
    Put,
    /// In parts, one after the other.
    Parts(Vec<Part>),
}

impl Limits {
    /// The plan for a file of a size, of which `changed` ranges, in order, are not in the object
    /// that is there. `None` if the store takes no object of that size.
    pub fn plan(&self, size: u64, changed: &[Range<u64>]) -> Option<Plan> {
        if size <= self.put_max_bytes {
            return Some(Plan::Put);
        }
        let everything = 0..size;
        let changed = if self.copies { changed } else { std::slice::from_ref(&everything) };
        let (mut gap, mut part_bytes) = (self.part_min_bytes, self.part_bytes);
        loop {
            let sent = self.sent(size, changed, gap);
            let parts = self.parts(size, &sent, part_bytes);
            if parts.len() <= self.parts_max {
                return Some(Plan::Parts(parts));
            }
            if gap >= size && part_bytes >= self.part_max_bytes / 2 {
                return None;
            }
            gap = gap.saturating_mul(2);
            part_bytes = (part_bytes * 2).min(self.part_max_bytes / 2);
        }
    }

    /// Length of a part of a stream whose end nobody knows yet, by its number from 0: longer and
    /// longer ones, so that the parts allowed hold an object of 30 TiB.
    pub fn stream_part_bytes(&self, number: usize) -> u64 {
        let grown = (number / 1000).min(8) as u32;
        self.part_bytes.saturating_mul(5_u64.pow(grown)).min(self.part_max_bytes)
    }

    /// The changed ranges, grown until each is long enough to be a part and what is between them
    /// is worth a copy: `gap` bytes at least.
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
            // The last part of a range takes what is left over, so that none is too short.
            let count = ((range.end - range.start) / part_bytes).max(1);
            for number in 0..count {
                let start = range.start + number * part_bytes;
                let end = if number + 1 == count { range.end } else { start + part_bytes };
                parts.push(Part::Send(start..end));
            }
            at = range.end;
        }
        self.copy(at..size, &mut parts);
        parts
    }

    /// Copies a range in parts of about one length, none of them too long.
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

    /// Whether the parts are the file, each changed byte is sent and all limits are kept.
    fn check(limits: &Limits, size: u64, changed: &[Range<u64>], parts: &[Part]) {
        assert!(parts.len() <= limits.parts_max, "{} parts", parts.len());
        let mut at = 0;
        for (number, part) in parts.iter().enumerate() {
            let range = part.range();
            assert_eq!(range.start, at, "nothing is left out, nothing is twice");
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
    fn four_kib_in_ten_gib_are_five_mib_and_copies() {
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
    fn a_stream_of_30_tib_has_room_in_the_parts_allowed() {
        let limits = Limits::default();
        let all: u64 = (0..limits.parts_max).map(|number| limits.stream_part_bytes(number)).sum();
        assert!(all >= 30 << 40, "{all} bytes");
        assert_eq!(limits.stream_part_bytes(0), 8 * MIB);
        assert_eq!(limits.stream_part_bytes(9_999), 5 * GIB);
    }

    #[test]
    fn scattered_changes_of_a_large_object_keep_to_the_parts_allowed() {
        let limits = Limits::default();
        let size = 400 * GIB;
        let changed: Vec<_> =
            (0..20_000).map(|number| number * 20 * MIB..number * 20 * MIB + 1).collect();
        let Some(Plan::Parts(parts)) = limits.plan(size, &changed) else { unreachable!() };
        check(&limits, size, &changed, &parts);
        let everything = 0..100 << 40;
        assert!(
            limits.plan(100 << 40, from_ref(&everything)).is_none(),
            "more than any store takes"
        );
    }

    proptest! {
        #[test]
        fn a_plan_is_the_file_and_keeps_the_limits(
            size in 1_u64..200_000,
            starts in prop::collection::vec((0_u64..200_000, 1_u64..3000), 0..60),
            parts_max in 20_usize..200,
            copies: bool,
        ) {
            let limits = Limits {
                part_min_bytes: 500,
                part_max_bytes: 50_000,
                parts_max,
                part_bytes: 800,
                put_max_bytes: 1000,
                copies,
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
                Plan::Parts(parts) => check(&limits, size, &changed, &parts),
            }
        }
    }
}
