//! A queue of ghosts, first in, first out. It is in chunks that are used again, and has holes where
//! ghosts were hit.
//!
//! A ghost's position stays the same until the queue is rewritten without its holes. Positions have
//! 24 bits and wrap around, so a place of the index has room for one and two small numbers. A queue
//! that takes half of all positions is full: a rewrite needs as many again.

use super::{Mark, Marks};
use std::collections::VecDeque;

/// Slots of a chunk.
pub(super) const CHUNK: usize = 128;

/// Slots to one mark.
const MARKED_EVERY: usize = 32;

pub(super) const POSITION_BITS: u32 = 24;
pub(super) const POSITIONS: u32 = (1 << POSITION_BITS) - 1;

struct Chunk {
    words: [u64; CHUNK],
    marks: [Mark; CHUNK / MARKED_EVERY],
    each: Option<Box<[Mark; CHUNK]>>,
}

/// Bytes of a chunk for each of its slots.
pub(super) const SLOT_BYTES: f64 = size_of::<Chunk>() as f64 / CHUNK as f64;

pub(super) const fn encode(weight_bytes: u64) -> u64 {
    let bits = u64::BITS - weight_bytes.leading_zeros();
    let shift = bits.saturating_sub(10);
    ((shift as u64) << 10) | (weight_bytes >> shift)
}

pub(super) const fn decode(code: u64) -> u64 {
    (code & 0x3FF) << ((code & 0xFFFF) >> 10)
}

/// First come, first forgotten.
pub(super) struct Queue {
    chunks: VecDeque<Box<Chunk>>,
    /// A chunk to use again.
    spare: Option<Box<Chunk>>,
    /// Position of the first slot of the first chunk, always at a chunk's begin.
    base: u32,
    /// Slots before the oldest ghost, in the first chunk; and slots in all.
    start: usize,
    end: usize,
    len: usize,
    bytes: u64,
    /// The greatest mark so far.
    last: Mark,
}

impl Queue {
    pub(super) const fn new() -> Self {
        Self::beginning_at(0)
    }

    /// Empty, with this for the first position; of a chunk's begin.
    pub(super) const fn beginning_at(position: u32) -> Self {
        let chunks = VecDeque::new();
        let base = position & POSITIONS;
        let last = Mark { stamp: 0, left_bytes: 0 };
        Self { chunks, spare: None, base, start: 0, end: 0, len: 0, bytes: 0, last }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether there is no position left for another. A rewrite takes at most as many positions
    /// again, at the same time.
    pub(super) const fn is_full(&self) -> bool {
        self.end >= (POSITIONS as usize) / 2
    }

    /// The position after the newest ghost's.
    pub(super) const fn end_position(&self) -> u32 {
        self.base.wrapping_add(self.end as u32)
    }

    fn at(&self, position: u32) -> usize {
        (position.wrapping_sub(self.base) & POSITIONS) as usize
    }

    fn slot(&mut self, position: u32) -> &mut u64 {
        let at = self.at(position);
        &mut self.chunks[at / CHUNK].words[at % CHUNK]
    }

    /// The ghost at a position.
    pub(super) fn word(&self, position: u32) -> u64 {
        let at = self.at(position);
        self.chunks[at / CHUNK].words[at % CHUNK]
    }

    /// All ghosts with their positions, the oldest first.
    pub(super) fn ghosts(&self) -> impl Iterator<Item = (u32, u64)> {
        (self.start..self.end).filter_map(|at| {
            let word = self.chunks[at / CHUNK].words[at % CHUNK];
            (word != 0).then_some((self.base.wrapping_add(at as u32) & POSITIONS, word))
        })
    }

    /// The mark of the oldest ghost.
    #[cfg(test)]
    pub(super) fn oldest_mark(&self) -> Option<Mark> {
        (self.len > 0).then(|| self.mark_at(self.start))
    }

    /// The stamp of that mark.
    pub(super) fn oldest_stamp(&self) -> Option<u64> {
        if self.len == 0 {
            return None;
        }
        Some(match self.kept_at(self.start) {
            Kept::Itself(mark) => mark.stamp,
            Kept::Between(slot, [first, next]) => slot.between(first.stamp, next.stamp),
        })
    }

    /// Whether that stays as it is when another is pushed.
    pub(super) fn oldest_is_settled(&self, marks: Marks) -> bool {
        let next_kept = (self.start / MARKED_EVERY + 1) * MARKED_EVERY;
        self.len > 0 && (marks == Marks::Each || next_kept < self.end)
    }

    /// The mark of the ghost at a position, as far as it was kept.
    pub(super) fn mark(&self, position: u32) -> Mark {
        self.mark_at(self.at(position))
    }

    fn mark_at(&self, at: usize) -> Mark {
        match self.kept_at(at) {
            Kept::Itself(mark) => mark,
            Kept::Between(slot, [first, next]) => Mark {
                stamp: slot.between(first.stamp, next.stamp),
                left_bytes: slot.between(first.left_bytes, next.left_bytes),
            },
        }
    }

    #[inline(always)]
    fn kept_at(&self, at: usize) -> Kept {
        let (chunk, number) = (&self.chunks[at / CHUNK], (at % MARKED_EVERY) as u64);
        if let Some(each) = &chunk.each {
            return Kept::Itself(each[at % CHUNK]);
        }
        let kept = |at: usize| self.chunks[at / CHUNK].marks[at % CHUNK / MARKED_EVERY];
        let (first, begun) = (kept(at), (at / MARKED_EVERY + 1) * MARKED_EVERY);
        if begun < self.end {
            let slot = Slot { number, of: MARKED_EVERY as u64 };
            return Kept::Between(slot, [first, kept(begun)]);
        }
        let slot = Slot { number, of: ((self.end - 1) % MARKED_EVERY).max(1) as u64 };
        Kept::Between(slot, [first, self.last])
    }

    /// Adds a ghost; returns its position.
    pub(super) fn push(&mut self, word: u64, mark: Mark, marks: Marks) -> u32 {
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

    /// Position of the oldest ghost.
    pub(super) fn oldest(&mut self) -> Option<u32> {
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

    /// Takes a ghost out.
    pub(super) fn take(&mut self, position: u32) -> u64 {
        let word = std::mem::take(self.slot(position));
        self.len -= 1;
        self.bytes -= decode(word);
        word
    }

    /// Holes between the oldest and the newest.
    pub(super) const fn holes(&self) -> usize {
        self.end - self.start - self.len
    }

    pub(super) fn heap_bytes(&self) -> usize {
        (self.chunks.len() + usize::from(self.spare.is_some())) * size_of::<Chunk>()
    }

    #[cfg(test)]
    pub(super) const fn pretend_full(&mut self) {
        self.end = POSITIONS as usize;
    }

    /// Recounts it. Returns how many ghosts there are.
    pub(super) fn validate(&self) -> Result<usize, String> {
        let bytes: u64 = self.ghosts().map(|(_, word)| decode(word)).sum();
        let len = self.ghosts().count();
        if (len, bytes) != (self.len, self.bytes) {
            return Err(format!("{len} ghosts of {bytes} bytes, {} said", self.len));
        }
        Ok(len)
    }
}

/// The mark of a ghost, as far as it was kept.
enum Kept {
    Itself(Mark),
    /// It lies between two that are kept.
    Between(Slot, [Mark; 2]),
}

/// How far a slot is from one mark to the next.
struct Slot {
    number: u64,
    of: u64,
}

impl Slot {
    #[inline(always)]
    const fn between(&self, from: u64, to: u64) -> u64 {
        let far = to.saturating_sub(from);
        // Whole slots and the rest apart, or the product would need 128 bits. Nearly all lie
        // between two that are kept, where dividing is a matter of shifting.
        if self.of == MARKED_EVERY as u64 {
            const ALL: u64 = MARKED_EVERY as u64;
            return from + far / ALL * self.number + far % ALL * self.number / ALL;
        }
        from + far / self.of * self.number + far % self.of * self.number / self.of
    }
}
