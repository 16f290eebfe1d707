//! The ghosts of a sublist: what was evicted lately, without its key.
//!
//! A ghost is one word, 46 bits of its key's hash and its weight as a number with ten
//! significant bits, in a queue for each kind and list, and one place of 4 bytes in an index of
//! all. So a ghost costs 8 bytes, half a byte for its part of a mark, at most a twelfth more for
//! places that a ghost hit has left empty, and 5 to 6.4 bytes of index: at most 16.
//!
//! Two keys with the same 46 bits take each other for their ghost. With a million ghosts that
//! happens to one miss in 10^8, and means that one entry starts on MFU and not on MRU.
//!
//! A mark says which sublist has the eldest ghost of a list; and to the duel, when a ghost was used
//! last and how much had left the window when it left. All of that grows along a queue, so every
//! thirty-second ghost has its [`Mark`] kept, and what lies between is taken in proportion. A ghost
//! that was *stale* when it left, used before all of MRU and MFU, says so itself. A duel that is to
//! be exact keeps every mark.

use crate::policy::{Kind, List};
use std::collections::VecDeque;

/// Slots of a chunk of a queue.
const CHUNK: usize = 128;

/// Slots to one mark.
const MARKED_EVERY: usize = 32;

/// Queues: two kinds, two lists.
const QUEUES: usize = 4;

const POSITION_BITS: u32 = 29;
const POSITIONS: u32 = (1 << POSITION_BITS) - 1;
const FINGERPRINT_SHIFT: u32 = 18;
const PREFETCHED: u64 = 1 << 16;
const STALE: u64 = 1 << 17;

/// Bytes a ghost takes at most: its part of a chunk and of the holes, and its place in an index
/// that is at least [`LOAD_MIN`] full.
pub(crate) const GHOST_BYTES_MAX: f64 =
    size_of::<Chunk>() as f64 / CHUNK as f64 * (1.0 + 1.0 / HOLES_DIVISOR as f64) + 4.0 / LOAD_MIN;
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

/// What a ghost's place in its queue says of it.
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
    /// One in [`MARKED_EVERY`].
    Some,
    /// All.
    Each,
}

struct Chunk {
    words: [u64; CHUNK],
    marks: [Mark; CHUNK / MARKED_EVERY],
    each: Option<Box<[Mark; CHUNK]>>,
}

/// A weight as a ghost remembers it: its ten highest bits.
pub(crate) const fn remembered(weight_bytes: u64) -> u64 {
    decode(encode(weight_bytes))
}

const fn encode(weight_bytes: u64) -> u64 {
    let bits = u64::BITS - weight_bytes.leading_zeros();
    let shift = bits.saturating_sub(10);
    ((shift as u64) << 10) | (weight_bytes >> shift)
}

const fn decode(code: u64) -> u64 {
    (code & 0x3FF) << ((code & 0xFFFF) >> 10)
}

const fn fingerprint(hash: u64) -> u64 {
    hash << FINGERPRINT_SHIFT
}

const fn same(word: u64, hash: u64) -> bool {
    word >> FINGERPRINT_SHIFT == fingerprint(hash) >> FINGERPRINT_SHIFT
}

/// First come, first forgotten; with holes where ghosts were asked for.
struct Queue {
    chunks: VecDeque<Box<Chunk>>,
    /// A chunk to use again.
    spare: Option<Box<Chunk>>,
    /// Position of the first slot of the first chunk, always at a chunk's begin.
    base: u32,
    /// Slots before the eldest ghost, in the first chunk; and slots in all.
    start: usize,
    end: usize,
    len: usize,
    bytes: u64,
    /// The greatest mark so far.
    last: Mark,
}

impl Queue {
    const fn new() -> Self {
        let chunks = VecDeque::new();
        let last = Mark { stamp: 0, left_bytes: 0 };
        Self { chunks, spare: None, base: 0, start: 0, end: 0, len: 0, bytes: 0, last }
    }

    fn at(&self, position: u32) -> usize {
        (position.wrapping_sub(self.base) & POSITIONS) as usize
    }

    fn slot(&mut self, position: u32) -> &mut u64 {
        let at = self.at(position);
        &mut self.chunks[at / CHUNK].words[at % CHUNK]
    }

    fn word(&self, position: u32) -> u64 {
        let at = self.at(position);
        self.chunks[at / CHUNK].words[at % CHUNK]
    }

    /// The mark of a ghost, as far as it was kept.
    fn mark(&self, at: usize) -> Mark {
        let (chunk, slot) = (&self.chunks[at / CHUNK], (at % MARKED_EVERY) as u64);
        if let Some(each) = &chunk.each {
            return each[at % CHUNK];
        }
        let kept = |at: usize| self.chunks[at / CHUNK].marks[at % CHUNK / MARKED_EVERY];
        let (first, begun) = (kept(at), (at / MARKED_EVERY + 1) * MARKED_EVERY);
        let (next, slots) = if begun < self.end {
            (kept(begun), MARKED_EVERY as u64)
        } else {
            (self.last, ((self.end - 1) % MARKED_EVERY).max(1) as u64)
        };
        // Whole slots and the rest apart, or the product would need 128 bits.
        let between = |from: u64, to: u64| {
            let far = to.saturating_sub(from);
            from + far / slots * slot + far % slots * slot / slots
        };
        Mark {
            stamp: between(first.stamp, next.stamp),
            left_bytes: between(first.left_bytes, next.left_bytes),
        }
    }

    fn push(&mut self, word: u64, mark: Mark, marks: Marks) -> u32 {
        self.last.stamp = self.last.stamp.max(mark.stamp);
        self.last.left_bytes = self.last.left_bytes.max(mark.left_bytes);
        if self.end == self.chunks.len() * CHUNK {
            let each = || (marks == Marks::Each).then(|| Box::new([Mark::default(); CHUNK]));
            let marks = [Mark::default(); CHUNK / MARKED_EVERY];
            let new = || Box::new(Chunk { words: [0; CHUNK], marks, each: each() });
            let chunk = self.spare.take().unwrap_or_else(new);
            self.chunks.push_back(chunk);
        }
        let at = self.end;
        self.end += 1;
        self.len += 1;
        self.bytes += decode(word);
        let chunk = &mut self.chunks[at / CHUNK];
        chunk.words[at % CHUNK] = word;
        if at.is_multiple_of(MARKED_EVERY) {
            chunk.marks[at % CHUNK / MARKED_EVERY] = self.last;
        }
        if let Some(each) = &mut chunk.each {
            each[at % CHUNK] = mark;
        }
        self.base.wrapping_add(at as u32) & POSITIONS
    }

    /// Position of the eldest ghost.
    fn eldest(&mut self) -> Option<u32> {
        while self.start < self.end && self.chunks[0].words[self.start] == 0 {
            self.start += 1;
            if self.start == CHUNK {
                self.spare = self.chunks.pop_front();
                self.base = self.base.wrapping_add(CHUNK as u32) & POSITIONS;
                self.start = 0;
                self.end -= CHUNK;
            }
        }
        (self.start < self.end).then(|| self.base.wrapping_add(self.start as u32) & POSITIONS)
    }

    fn take(&mut self, position: u32) -> u64 {
        let word = std::mem::take(self.slot(position));
        self.len -= 1;
        self.bytes -= decode(word);
        word
    }

    /// Holes between the eldest and the newest.
    const fn holes(&self) -> usize {
        self.end - self.start - self.len
    }

    fn heap_bytes(&self) -> usize {
        (self.chunks.len() + usize::from(self.spare.is_some())) * size_of::<Chunk>()
    }
}

/// All ghosts of a sublist.
pub(crate) struct Ghosts {
    queues: [Queue; QUEUES],
    /// Queue and position, plus 1.
    index: Vec<u32>,
    len: usize,
    marks: Marks,
}

const fn queue_of(kind: Kind, list: List) -> usize {
    kind as usize * 2 + list as usize
}

impl Ghosts {
    pub(crate) const fn new(marks: Marks) -> Self {
        Self { queues: [const { Queue::new() }; QUEUES], index: Vec::new(), len: 0, marks }
    }

    /// The mark of the eldest ghost of a list.
    pub(crate) fn eldest(&self, kind: Kind, list: List) -> Option<Mark> {
        let queue = &self.queues[queue_of(kind, list)];
        (queue.len > 0).then(|| queue.mark(queue.start))
    }

    /// Whether the mark of the eldest ghost of a list stays as it is when another is pushed.
    pub(crate) fn eldest_is_settled(&self, kind: Kind, list: List) -> bool {
        let queue = &self.queues[queue_of(kind, list)];
        let next_kept = (queue.start / MARKED_EVERY + 1) * MARKED_EVERY;
        queue.len > 0 && (self.marks == Marks::Each || next_kept < queue.end)
    }

    /// Forgets them all.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.marks);
    }

    /// Weight of the ghosts of a list, in bytes.
    pub(crate) const fn list_bytes(&self, kind: Kind, list: List) -> u64 {
        self.queues[queue_of(kind, list)].bytes
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory they take.
    pub(crate) fn heap_bytes(&self) -> usize {
        let queues: usize = self.queues.iter().map(Queue::heap_bytes).sum();
        queues + self.index.capacity() * 4
    }

    fn home(&self, word: u64) -> usize {
        (((word >> 32) * self.index.len() as u64) >> 32) as usize
    }

    fn next(&self, at: usize) -> usize {
        if at + 1 == self.index.len() { 0 } else { at + 1 }
    }

    fn word_of(&self, place: u32) -> u64 {
        self.queues[((place - 1) >> POSITION_BITS) as usize].word((place - 1) & POSITIONS)
    }

    /// The ghost of a key: where in the index.
    fn search(&self, hash: u64) -> Option<usize> {
        if self.len == 0 {
            return None;
        }
        let mut at = self.home(fingerprint(hash));
        while self.index[at] != 0 {
            if same(self.word_of(self.index[at]), hash) {
                return Some(at);
            }
            at = self.next(at);
        }
        None
    }

    fn describe(&self, place: u32) -> Ghost {
        let (number, word) = (((place - 1) >> POSITION_BITS) as usize, self.word_of(place));
        let queue = &self.queues[number];
        Ghost {
            kind: Kind::ALL[number / 2],
            list: List::ALL[number % 2],
            weight_bytes: decode(word),
            prefetched: word & PREFETCHED != 0,
            stale: word & STALE != 0,
            mark: queue.mark(queue.at((place - 1) & POSITIONS)),
        }
    }

    /// The ghost of a key.
    pub(crate) fn find(&self, hash: u64) -> Option<Ghost> {
        Some(self.describe(self.index[self.search(hash)?]))
    }

    /// Takes the ghost of a key out.
    pub(crate) fn take(&mut self, hash: u64) -> Option<Ghost> {
        let at = self.search(hash)?;
        let place = self.index[at];
        let ghost = self.describe(place);
        self.unindex(at);
        let queue = ((place - 1) >> POSITION_BITS) as usize;
        self.queues[queue].take((place - 1) & POSITIONS);
        self.queues[queue].eldest();
        self.len -= 1;
        let holes = self.queues[queue].holes();
        if holes > CHUNK && holes * HOLES_DIVISOR > self.queues[queue].len {
            self.close_up(queue);
        }
        Some(ghost)
    }

    /// Remembers a key, which has no ghost. Its weight must be [`remembered`].
    pub(crate) fn push(&mut self, hash: u64, ghost: &Ghost) {
        if (self.len + 1) * FULL.1 > self.index.len() * FULL.0 {
            self.reindex((self.index.len() * GROWTH.0 / GROWTH.1).max(INDEX_MIN));
        }
        let prefetched = if ghost.prefetched { PREFETCHED } else { 0 };
        let stale = if ghost.stale { STALE } else { 0 };
        let word = fingerprint(hash) | prefetched | stale | encode(ghost.weight_bytes);
        let queue = queue_of(ghost.kind, ghost.list);
        let position = self.queues[queue].push(word, ghost.mark, self.marks);
        self.put(word, (((queue as u32) << POSITION_BITS) | position) + 1);
        self.len += 1;
    }

    /// Forgets the eldest ghost of a list. Returns its weight in bytes.
    pub(crate) fn forget(&mut self, kind: Kind, list: List) -> Option<u64> {
        let queue = queue_of(kind, list);
        let position = self.queues[queue].eldest()?;
        let place = (((queue as u32) << POSITION_BITS) | position) + 1;
        let mut at = self.home(self.word_of(place));
        while self.index[at] != place {
            at = self.next(at);
        }
        self.unindex(at);
        self.len -= 1;
        let word = self.queues[queue].take(position);
        self.queues[queue].eldest();
        Some(decode(word))
    }

    /// Gives memory back if much of it is not needed.
    pub(crate) fn shrink(&mut self) {
        if self.len == 0 {
            self.clear();
        } else if self.len * 4 < self.index.len() {
            self.reindex((self.len * GROWTH.0 / GROWTH.1).max(INDEX_MIN));
        }
    }

    fn put(&mut self, word: u64, place: u32) {
        let mut at = self.home(word);
        while self.index[at] != 0 {
            at = self.next(at);
        }
        self.index[at] = place;
    }

    /// Takes a place out of the index and moves later ones back.
    fn unindex(&mut self, mut hole: usize) {
        let mut at = hole;
        loop {
            at = self.next(at);
            if self.index[at] == 0 {
                break;
            }
            let home = self.home(self.word_of(self.index[at]));
            let stays =
                if hole < at { hole < home && home <= at } else { hole < home || home <= at };
            if !stays {
                self.index[hole] = self.index[at];
                hole = at;
            }
        }
        self.index[hole] = 0;
    }

    fn reindex(&mut self, len: usize) {
        let mut new = Vec::new();
        new.reserve_exact(len);
        new.resize(len, 0);
        let old = std::mem::replace(&mut self.index, new);
        for place in old.into_iter().filter(|&place| place != 0) {
            self.put(self.word_of(place), place);
        }
    }

    /// Rewrites a queue without its holes.
    fn close_up(&mut self, queue: usize) {
        let mut old = std::mem::replace(&mut self.queues[queue], Queue::new());
        // Positions no ghost has, so that none is taken for another on the way.
        let end = old.base.wrapping_add(old.end as u32);
        self.queues[queue].base = end.next_multiple_of(CHUNK as u32) & POSITIONS;
        let tag = (queue as u32) << POSITION_BITS;
        for at in old.start..old.end {
            let word = old.chunks[at / CHUNK].words[at % CHUNK];
            if word == 0 {
                continue;
            }
            let mark = old.mark(at);
            let place = (tag | (old.base.wrapping_add(at as u32) & POSITIONS)) + 1;
            let mut slot = self.home(word);
            while self.index[slot] != place {
                slot = self.next(slot);
            }
            self.index[slot] = (tag | self.queues[queue].push(word, mark, self.marks)) + 1;
        }
        old.chunks.clear();
    }

    /// Recounts queues and index.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let mut len = 0;
        for (number, queue) in self.queues.iter().enumerate() {
            let (mut own, mut bytes) = (0, 0);
            for at in queue.start..queue.end {
                let word = queue.chunks[at / CHUNK].words[at % CHUNK];
                if word == 0 {
                    continue;
                }
                own += 1;
                bytes += decode(word);
                let position = queue.base.wrapping_add(at as u32) & POSITIONS;
                let place = (((number as u32) << POSITION_BITS) | position) + 1;
                let mut slot = self.home(word);
                while self.index[slot] != place {
                    if self.index[slot] == 0 {
                        return Err(format!("ghost {position} of queue {number} is not indexed"));
                    }
                    slot = self.next(slot);
                }
            }
            if (own, bytes) != (queue.len, queue.bytes) {
                return Err(format!("{own} ghosts in queue {number}, {} said", queue.len));
            }
            len += own;
        }
        let indexed = self.index.iter().filter(|&&place| place != 0).count();
        if (len, indexed) != (self.len, self.len) {
            return Err(format!("{len} ghosts, {indexed} indexed, {} said", self.len));
        }
        Ok(())
    }
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
    fn the_eldest_goes_first_whatever_was_taken_out_of_the_middle() {
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
            let mark = ghosts.eldest(Kind::Data, List::Mru).expect("there is one");
            // One in three is left, and of those one in 32 has its mark kept.
            assert!(mark.stamp.abs_diff(1000 + n) <= 192, "{mark:?} for {n}");
            assert!(mark.left_bytes.abs_diff(7 * n) <= 7 * 192, "{mark:?} for {n}");
            assert_eq!((found.kind, found.list, found.mark), (Kind::Data, List::Mru, mark));
            assert_eq!(ghosts.forget(Kind::Data, List::Mru), Some(1));
            assert!(ghosts.find(hash(n)).is_none());
        }
        assert_eq!(ghosts.forget(Kind::Data, List::Mru), None);
        assert_eq!(ghosts.eldest(Kind::Data, List::Mru), None);
        assert!(ghosts.forget(Kind::Metadata, List::Mru).is_some());
        ghosts.validate().expect("whole");
    }

    #[test]
    fn what_is_said_to_be_settled_is_not_changed_by_another() {
        for marks in [Marks::Some, Marks::Each] {
            let mut ghosts = Ghosts::new(marks);
            let hash = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let mut settled = 0;
            for n in 0..400 {
                let before = ghosts.eldest(Kind::Data, List::Mru);
                let stays = ghosts.eldest_is_settled(Kind::Data, List::Mru);
                let mark = Mark { stamp: n * n, left_bytes: n };
                ghosts.push(hash(n), &Ghost { mark, ..ghost(Kind::Data, List::Mru) });
                assert!(!stays || ghosts.eldest(Kind::Data, List::Mru) == before, "{n}");
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
