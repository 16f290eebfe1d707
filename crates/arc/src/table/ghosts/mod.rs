//! The ghosts of a sublist: recently evicted entries, without their keys.
//!
//! A ghost is one word: 46 bits of its key's hash, and its weight as a number with ten significant
//! bits. It stands in a queue for its kind and list, and has one place of 4 bytes in an index of
//! all. A ghost costs at most 16 bytes: 8 for the word, and half a byte for its part of a mark. A
//! twelfth more goes to places that ghost hits have left empty, and 5 to 6.4 bytes to the index.
//! [`queue`] and [`index`] have the details.
//!
//! Two keys with the same 46 bits count as one. With a million ghosts that happens at
//! one miss in 10^8. It means that one entry starts on MFU and not on MRU.
//!
//! A mark says when a ghost was used last, and how much had left the window when the ghost left.
//! The first shows which sublist has the oldest ghost of a list; the duel needs both. Both grow
//! along a queue. So every 32nd ghost has its [`Mark`] kept, and those between are interpolated. A
//! ghost that was *stale* when it left, that is used before all of MRU and MFU, has a flag for
//! that. An exact duel keeps every mark.

mod index;
mod queue;

use crate::policy::{Kind, List};
use index::{GhostIndex, Place};
use queue::{CHUNK, Queue, SLOT_BYTES, decode, encode};

/// Queues: two kinds, two lists.
const QUEUES: usize = 4;

const FINGERPRINT_SHIFT: u32 = 18;
const PREFETCHED: u64 = 1 << 16;
const STALE: u64 = 1 << 17;

/// Bytes that a ghost takes at most. They are its part of a chunk and of the holes, and its place
/// in an index that is at least [`LOAD_MIN`] full.
pub(crate) const GHOST_BYTES_MAX: f64 =
    SLOT_BYTES * (1.0 + 1.0 / HOLES_DIVISOR as f64) + 4.0 / LOAD_MIN;
/// A queue is rewritten when more than this part of it are holes.
const HOLES_DIVISOR: usize = 12;
const LOAD_MIN: f64 = 0.624;
/// The index grows when it is fuller than 4/5, by 32/25.
const FULL: (usize, usize) = (4, 5);
const GROWTH: (usize, usize) = (32, 25);
const INDEX_MIN: usize = 16;

/// A ghost that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ghost {
    pub(crate) kind: Kind,
    pub(crate) list: List,
    pub(crate) weight_bytes: u64,
    /// It was prefetched and never demanded.
    pub(crate) prefetched: bool,
    /// When it left, it had been used before all that stood on MRU and MFU.
    pub(crate) stale: bool,
    /// When it was used last, and what had left by the time it left.
    pub(crate) mark: Mark,
}

/// The marks of a ghost: they follow from its place in its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// When it was used last, by the cache's clock; under ARC alone, when it left.
    pub(crate) stamp: u64,
    /// Bytes that had left the window of its kind when it left.
    pub(crate) left_bytes: u64,
}

/// Which marks are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marks {
    /// One in 32.
    Some,
    /// All.
    Each,
}

/// A weight as a ghost remembers it: its ten highest bits.
pub(crate) const fn remembered(weight_bytes: u64) -> u64 {
    decode(encode(weight_bytes))
}

const fn fingerprint(hash: u64) -> u64 {
    hash << FINGERPRINT_SHIFT
}

const fn same(word: u64, hash: u64) -> bool {
    word >> FINGERPRINT_SHIFT == fingerprint(hash) >> FINGERPRINT_SHIFT
}

/// All ghosts of a sublist.
pub(crate) struct Ghosts {
    queues: [Queue; QUEUES],
    index: GhostIndex,
    len: usize,
    marks: Marks,
}

const fn queue_of(kind: Kind, list: List) -> usize {
    kind as usize * 2 + list as usize
}

impl Ghosts {
    pub(crate) const fn new(marks: Marks) -> Self {
        Self { queues: [const { Queue::new() }; QUEUES], index: GhostIndex::new(), len: 0, marks }
    }

    /// The mark of the oldest ghost of a list.
    #[cfg(test)]
    fn oldest(&self, kind: Kind, list: List) -> Option<Mark> {
        self.queues[queue_of(kind, list)].oldest_mark()
    }

    /// The stamp of that mark.
    pub(crate) fn oldest_stamp(&self, kind: Kind, list: List) -> Option<u64> {
        self.queues[queue_of(kind, list)].oldest_stamp()
    }

    /// Whether the mark of the oldest ghost of a list stays as it is when another is pushed.
    pub(crate) fn oldest_is_settled(&self, kind: Kind, list: List) -> bool {
        self.queues[queue_of(kind, list)].oldest_is_settled(self.marks)
    }

    /// Forgets them all.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.marks);
    }

    /// Weight of the ghosts of a list, in bytes.
    pub(crate) const fn list_bytes(&self, kind: Kind, list: List) -> u64 {
        self.queues[queue_of(kind, list)].bytes()
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory they take.
    pub(crate) fn heap_bytes(&self) -> usize {
        let queues: usize = self.queues.iter().map(Queue::heap_bytes).sum();
        queues + self.index.heap_bytes()
    }

    /// The ghost of a key: where in the index.
    fn search(&self, hash: u64) -> Option<usize> {
        if self.len == 0 {
            return None;
        }
        self.index.find(fingerprint(hash), word_in(&self.queues), |word| same(word, hash))
    }

    fn describe(&self, place: Place) -> Ghost {
        let (number, word) = (place.queue(), word_in(&self.queues)(place));
        Ghost {
            kind: Kind::ALL[number / 2],
            list: List::ALL[number % 2],
            weight_bytes: decode(word),
            prefetched: word & PREFETCHED != 0,
            stale: word & STALE != 0,
            mark: self.queues[number].mark(place.position()),
        }
    }

    /// The ghost of a key.
    pub(crate) fn find(&self, hash: u64) -> Option<Ghost> {
        Some(self.describe(self.index.at(self.search(hash)?)))
    }

    /// Takes the ghost of a key out.
    pub(crate) fn take(&mut self, hash: u64) -> Option<Ghost> {
        let at = self.search(hash)?;
        let place = self.index.at(at);
        let ghost = self.describe(place);
        self.index.remove(at, word_in(&self.queues));
        let queue = &mut self.queues[place.queue()];
        queue.take(place.position());
        queue.oldest();
        self.len -= 1;
        let holes = queue.holes();
        if holes > CHUNK && holes * HOLES_DIVISOR > queue.len() {
            self.close_up(place.queue());
        }
        Some(ghost)
    }

    /// Remembers a key, which has no ghost. Its weight must be [`remembered`]. Returns false,
    /// without remembering it, if its queue has no position left.
    pub(crate) fn push(&mut self, hash: u64, ghost: &Ghost) -> bool {
        let queue = queue_of(ghost.kind, ghost.list);
        if self.queues[queue].is_full() {
            return false;
        }
        if (self.len + 1) * FULL.1 > self.index.slots_len() * FULL.0 {
            self.reindex((self.index.slots_len() * GROWTH.0 / GROWTH.1).max(INDEX_MIN));
        }
        let prefetched = if ghost.prefetched { PREFETCHED } else { 0 };
        let stale = if ghost.stale { STALE } else { 0 };
        let word = fingerprint(hash) | prefetched | stale | encode(ghost.weight_bytes);
        let position = self.queues[queue].push(word, ghost.mark, self.marks);
        self.index.put(word, Place::new(queue, position), word_in(&self.queues));
        self.len += 1;
        true
    }

    /// Forgets the oldest ghost of a list. Returns its weight in bytes.
    pub(crate) fn forget(&mut self, kind: Kind, list: List) -> Option<u64> {
        let number = queue_of(kind, list);
        let position = self.queues[number].oldest()?;
        let place = Place::new(number, position);
        let at = self.index.slot_of(word_in(&self.queues)(place), place)?;
        self.index.remove(at, word_in(&self.queues));
        self.len -= 1;
        let queue = &mut self.queues[number];
        let word = queue.take(position);
        queue.oldest();
        Some(decode(word))
    }

    /// Gives memory back if much of it is not needed.
    pub(crate) fn shrink(&mut self) {
        if self.len == 0 {
            self.clear();
        } else if self.len * 4 < self.index.slots_len() {
            self.reindex((self.len * GROWTH.0 / GROWTH.1).max(INDEX_MIN));
        }
    }

    fn reindex(&mut self, slots: usize) {
        // The old one first, so that there are never two.
        self.index = GhostIndex::new();
        self.index = GhostIndex::with_slots(slots);
        for (number, queue) in self.queues.iter().enumerate() {
            for (position, word) in queue.ghosts() {
                self.index.put(word, Place::new(number, position), word_in(&self.queues));
            }
        }
    }

    /// Rewrites a queue without its holes.
    fn close_up(&mut self, number: usize) {
        let old = std::mem::replace(&mut self.queues[number], Queue::new());
        // Positions that no ghost has, so that none is taken for another during the move.
        let mut new = Queue::beginning_at(old.end_position().next_multiple_of(CHUNK as u32));
        for (position, word) in old.ghosts() {
            let at = self.index.slot_of(word, Place::new(number, position));
            let position = new.push(word, old.mark(position), self.marks);
            if let Some(at) = at {
                self.index.replace(at, Place::new(number, position));
            }
        }
        self.queues[number] = new;
    }

    /// Recounts queues and index.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let mut len = 0;
        for (number, queue) in self.queues.iter().enumerate() {
            for (position, word) in queue.ghosts() {
                if self.index.slot_of(word, Place::new(number, position)).is_none() {
                    return Err(format!("ghost {position} of queue {number} is not indexed"));
                }
            }
            len += queue.validate().map_err(|what| format!("queue {number}: {what}"))?;
        }
        let indexed = self.index.count();
        if (len, indexed) != (self.len, self.len) {
            return Err(format!("{len} ghosts, {indexed} indexed, {} said", self.len));
        }
        self.index.validate(word_in(&self.queues))
    }
}

/// The word of the ghost in a place.
fn word_in(queues: &[Queue; QUEUES]) -> impl Fn(Place) -> u64 + Copy + '_ {
    |place| queues[place.queue()].word(place.position())
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ghost(kind: Kind, list: List) -> Ghost {
        let mark = Mark { stamp: 0, left_bytes: 0 };
        Ghost { kind, list, weight_bytes: 1, prefetched: false, stale: false, mark }
    }

    #[test]
    fn weights_keep_ten_bits() {
        for (weight, kept) in [(1, 1), (1023, 1023), (1024, 1024), (1025, 1024), (4097, 4096)] {
            assert_eq!(remembered(weight), kept);
        }
        assert_eq!(remembered(128 << 10), 128 << 10);
        assert_eq!(remembered(u64::MAX), 0x3FF << 54);
    }

    #[test]
    fn the_oldest_goes_first_after_any_removals_from_the_middle() {
        let mut ghosts = Ghosts::new(Marks::Some);
        let count = if cfg!(miri) { 400 } else { 10_000_u64 };
        let hash = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        for n in 0..count {
            let mark = Mark { stamp: 1000 + n, left_bytes: 7 * n };
            ghosts.push(hash(n), &Ghost { mark, ..ghost(Kind::ALL[n as usize % 2], List::Mru) });
        }
        for n in (0..count).filter(|n| n % 3 != 0) {
            assert_eq!(ghosts.take(hash(n)).map(|g| g.kind), Some(Kind::ALL[n as usize % 2]));
            assert_eq!(ghosts.take(hash(n)), None);
        }
        ghosts.validate().expect("whole");
        for n in (0..count).filter(|n| n % 6 == 0) {
            let found = ghosts.find(hash(n)).expect("it has not been taken");
            let mark = ghosts.oldest(Kind::Data, List::Mru).expect("there is one");
            // One in three is left, and of those one in 32 has its mark kept.
            assert!(mark.stamp.abs_diff(1000 + n) <= 192, "{mark:?} for {n}");
            assert!(mark.left_bytes.abs_diff(7 * n) <= 7 * 192, "{mark:?} for {n}");
            assert_eq!((found.kind, found.list, found.mark), (Kind::Data, List::Mru, mark));
            assert_eq!(ghosts.forget(Kind::Data, List::Mru), Some(1));
            assert!(ghosts.find(hash(n)).is_none());
        }
        assert_eq!(ghosts.forget(Kind::Data, List::Mru), None);
        assert_eq!(ghosts.oldest(Kind::Data, List::Mru), None);
        assert!(ghosts.forget(Kind::Metadata, List::Mru).is_some());
        ghosts.validate().expect("whole");
    }

    #[test]
    fn a_queue_without_a_position_left_takes_no_other() {
        let mut ghosts = Ghosts::new(Marks::Some);
        assert!(ghosts.push(1, &ghost(Kind::Data, List::Mru)));
        ghosts.queues[queue_of(Kind::Data, List::Mru)].pretend_full();
        assert!(!ghosts.push(2, &ghost(Kind::Data, List::Mru)));
        assert!(ghosts.push(3, &ghost(Kind::Data, List::Mfu)));
        assert_eq!((ghosts.len(), ghosts.find(2)), (2, None));
    }

    #[test]
    fn a_settled_oldest_mark_is_not_changed_by_another_ghost() {
        for marks in [Marks::Some, Marks::Each] {
            let mut ghosts = Ghosts::new(marks);
            let hash = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let mut settled = 0;
            for n in 0..400 {
                let before = ghosts.oldest(Kind::Data, List::Mru);
                let stays = ghosts.oldest_is_settled(Kind::Data, List::Mru);
                let stamp = ghosts.oldest_stamp(Kind::Data, List::Mru);
                assert_eq!(stamp, before.map(|mark| mark.stamp));
                let mark = Mark { stamp: n * n, left_bytes: n };
                ghosts.push(hash(n), &Ghost { mark, ..ghost(Kind::Data, List::Mru) });
                assert!(!stays || ghosts.oldest(Kind::Data, List::Mru) == before, "{n}");
                settled += u32::from(stays);
                if n % 4 == 3 {
                    ghosts.forget(Kind::Data, List::Mru);
                }
            }
            assert!(settled > 300, "{settled} of 400 with {marks:?}");
        }
    }

    #[test]
    fn a_ghost_takes_at_most_16_bytes() {
        const { assert!(GHOST_BYTES_MAX <= 16.0) };
        let mut ghosts = Ghosts::new(Marks::Some);
        let mut state = 1_u64;
        for n in 0..if cfg!(miri) { 2_000 } else { 300_000_u64 } {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ghosts.push(n.wrapping_mul(0x9E37_79B9_7F4A_7C15), &ghost(Kind::Data, List::Mfu));
            // Like a cache at work: some are asked for, some are forgotten.
            if n % 3 == 0 {
                let asked = (state >> 33) % (n + 1);
                ghosts.take(asked.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            }
            let allowed = ghosts.len() as f64 * GHOST_BYTES_MAX + 4.0 * CHUNK as f64 * 8.0;
            assert!((ghosts.heap_bytes() as f64) < allowed, "{} of {}", ghosts.heap_bytes(), n);
        }
        ghosts.validate().expect("whole");
    }
}
