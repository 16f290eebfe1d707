//! Puts the parts of a large append in order. The kernel sends them at once, and they arrive in any
//! order.
//!
//! The kernel cuts a large write past the page cache into requests, and sends each without waiting
//! for the one before. In an append each part belongs behind its predecessor. A part that arrives
//! early leaves a gap in the file, which the late parts fill.
//!
//! Offsets are the kernel's, which expects the file to end where the first part begins. The real
//! end may be elsewhere, so a part's place in the file may differ from its offset.

use std::ops::{Range, RangeInclusive};

/// A part in memory that begins at a page boundary has this length, unless it is the last.
const PART_BYTES: u64 = 1 << 20;
/// Every part but the last has at least this length: 1 MiB less the rest of a page.
const PART_MIN_BYTES: u64 = PART_BYTES - (4 << 10);

/// The parts of one write that have arrived, if one arrived early.
#[derive(Debug, Default)]
pub(crate) struct AppendParts {
    gaps: Vec<Gap>,
    /// The end of the last part, by the kernel's offset and in the file.
    end: Option<(u64, u64)>,
}

/// The kernel's end of the file, if the append at `start` is not the first part of a write. `sizes`
/// are the sizes that the kernel may have cached. It appends at the greatest of them at most, so
/// beyond that whole parts must be missing.
pub(crate) fn end_before(start: u64, sizes: &RangeInclusive<u64>) -> Option<u64> {
    let (least, greatest) = (*sizes.start(), *sizes.end());
    let ahead_bytes = start.checked_sub(greatest).filter(|ahead| *ahead > 0)?;
    let whole = ahead_bytes.div_ceil(PART_BYTES).saturating_mul(PART_BYTES);
    let end = start.checked_sub(whole).filter(|end| *end >= least);
    end.or_else(|| (ahead_bytes >= PART_MIN_BYTES).then_some(greatest))
}

/// Bytes that are still to come, by the kernel's offsets, and their place in the file.
#[derive(Debug)]
struct Gap {
    missing: Range<u64>,
    place: u64,
}

impl AppendParts {
    /// Whether parts are still to come.
    pub(crate) fn are_expected(&self) -> bool {
        self.end.is_some()
    }

    /// The place of a part: in a gap, or behind all that arrived early.
    pub(crate) fn place(&mut self, part: &Range<u64>) -> Option<u64> {
        let within = |gap: &Gap| gap.missing.start <= part.start && part.end <= gap.missing.end;
        if let Some(number) = self.gaps.iter().position(within) {
            let gap = self.gaps.swap_remove(number);
            let place = gap.place.saturating_add(part.start - gap.missing.start);
            let before = Gap { missing: gap.missing.start..part.start, place: gap.place };
            let behind = place.saturating_add(part.end - part.start);
            let after = Gap { missing: part.end..gap.missing.end, place: behind };
            self.gaps.extend([before, after].into_iter().filter(|gap| !gap.missing.is_empty()));
            return Some(place);
        }
        let end = self.end.filter(|(end, _)| *end <= part.start)?;
        Some(self.come_early(part, end))
    }

    /// Adds a part that arrives early, and returns its place. The parts before it reach `end`: one
    /// place, by the kernel's offset and in the file.
    pub(crate) fn come_early(&mut self, part: &Range<u64>, end: (u64, u64)) -> u64 {
        let (end, place_of_end) = end;
        let place = place_of_end.saturating_add(part.start.saturating_sub(end));
        if end < part.start {
            self.gaps.push(Gap { missing: end..part.start, place: place_of_end });
        }
        self.end = Some((part.end, place.saturating_add(part.end - part.start)));
        place
    }

    /// The end of the parts, by the kernel's offset, if none is missing. Then no more are expected.
    pub(crate) fn take_end(&mut self) -> Option<u64> {
        let is_whole = self.gaps.is_empty();
        self.end.take_if(|_| is_whole).map(|(end, _)| end)
    }

    /// Stops expecting parts. Returns their end so far, by the kernel's offset.
    pub(crate) fn give_up(&mut self) -> Option<u64> {
        std::mem::take(self).end.map(|(end, _)| end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_before_missing_parts_is_found() {
        const UNALIGNED: u64 = PART_BYTES - 3000;
        assert_eq!(end_before(7 + PART_BYTES, &(7..=7)), Some(7));
        assert_eq!(end_before(7 + 3 * PART_BYTES, &(7..=7)), Some(7));
        assert_eq!(end_before(7 + UNALIGNED, &(7..=7)), Some(7));
        assert_eq!(end_before(7 + UNALIGNED, &(3..=7)), Some(7));
        assert_eq!(end_before(7 + 2 * PART_BYTES, &(3..=900)), Some(7), "of several");
        for none in [0, 7, 900, 901, 5000] {
            assert_eq!(end_before(none, &(3..=900)), None, "{none}");
        }
        assert_eq!(end_before(u64::MAX, &(0..=u64::MAX)), None);
    }

    /// Five parts that arrive in any order, in a file that really ended 100 bytes further on.
    #[test]
    fn parts_that_come_in_any_order_are_put_in_order() {
        let parts = [1000..1010, 1010..1020, 1020..1030, 1030..1040, 1040..1043];
        let mut orders = vec![vec![]];
        for _ in 0..parts.len() {
            let longer = |order: &Vec<usize>| {
                let order = order.clone();
                let rest = (0..parts.len()).filter(|part| !order.contains(part));
                let longer = rest.map(|part| [&order[..], &[part]].concat());
                longer.collect::<Vec<_>>()
            };
            orders = orders.iter().flat_map(longer).collect();
        }
        assert_eq!(orders.len(), 120);
        for order in orders.iter().filter(|order| order[0] != 0) {
            let mut known = AppendParts::default();
            for (count, number) in order.iter().enumerate() {
                let part = &parts[*number];
                let place = match count {
                    0 => known.come_early(part, (1000, 1100)),
                    _ => known.place(part).unwrap(),
                };
                assert_eq!(place, part.start + 100, "{order:?}");
                // Until all parts before the last are there, more may come.
                let all_before = (0..*order[..=count].iter().max().unwrap())
                    .all(|before| order[..=count].contains(&before));
                assert_eq!(known.gaps.is_empty(), all_before, "{order:?}");
            }
            assert_eq!(known.take_end(), Some(1043));
            assert!(!known.are_expected());
        }
    }

    #[test]
    fn a_part_outside_every_gap_belongs_to_another_write() {
        let mut known = AppendParts::default();
        assert_eq!(known.place(&(5..6)), None);
        known.come_early(&(20..30), (10, 10));
        assert_eq!(known.place(&(5..15)), None);
        assert_eq!(known.place(&(15..25)), None);
        assert_eq!(known.take_end(), None, "ten bytes are missing");
        assert_eq!(known.give_up(), Some(30));
        assert!(!known.are_expected());
    }

    #[test]
    fn offsets_beyond_all_files_do_no_harm() {
        let mut known = AppendParts::default();
        let far = u64::MAX - 5..u64::MAX;
        assert_eq!(known.come_early(&far, (3, 9)), u64::MAX);
        assert_eq!(known.place(&(10..20)), Some(16));
    }
}
