//! The recent frequency of keys, by which TinyLFU admits.
//!
//! All counts are halved after ten additions per entry of the cache (Einziger, Friedman and Manes,
//! "TinyLFU", ACM TOS 2017). Counts are exact, or a count-min sketch of four-bit counters (Cormode
//! and Muthukrishnan, J. Algorithms 2005). The sketch has blocks of one cache line, and as many
//! words as the cache has entries, which is Caffeine's size.

use std::hash::BuildHasher as _;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// Counters per key; the estimate is their minimum.
const ROWS: usize = 4;
/// Words per block; a row has two of them.
const BLOCK_WORDS: usize = 8;
/// Additions per entry of the cache between two halvings.
const ADDITIONS_AN_ENTRY: u64 = 10;
/// The lowest bit of every counter of a word.
const ONES: u64 = 0x1111_1111_1111_1111;

/// Counts of keys, exact or estimated.
#[derive(Debug)]
pub(crate) struct Frequency {
    counts: Counts,
    additions: u64,
    /// Additions between two halvings.
    additions_max: u64,
}

#[derive(Debug)]
enum Counts {
    Exact(HashMap<u64, u64, FixedState>),
    Sketch { words: Vec<u64>, hasher: FixedState },
}

impl Frequency {
    /// Exact counts, for a cache of about this many entries.
    pub(crate) fn exact(entries: usize) -> Self {
        Self::new(Counts::Exact(HashMap::with_hasher(FixedState::with_seed(1))), entries)
    }

    /// A sketch, for a cache of about this many entries.
    pub(crate) fn sketch(entries: usize) -> Self {
        let words = entries.clamp(BLOCK_WORDS, 1 << 27).next_power_of_two();
        let hasher = FixedState::with_seed(1);
        Self::new(Counts::Sketch { words: vec![0; words], hasher }, entries)
    }

    fn new(counts: Counts, entries: usize) -> Self {
        let additions_max = ADDITIONS_AN_ENTRY * entries.max(1) as u64;
        Self { counts, additions: 0, additions_max }
    }

    /// Counts a request of a key.
    pub(crate) fn add(&mut self, key: u64) {
        let added = match &mut self.counts {
            Counts::Exact(counts) => {
                *counts.entry(key).or_default() += 1;
                true
            }
            Counts::Sketch { words, hasher } => {
                let mut added = false;
                for (word, shift) in places(hasher.hash_one(key), words.len()) {
                    if (words[word] >> shift) & 15 < 15 {
                        words[word] += 1 << shift;
                        added = true;
                    }
                }
                added
            }
        };
        self.additions += u64::from(added);
        if self.additions >= self.additions_max {
            self.halve();
        }
    }

    fn halve(&mut self) {
        match &mut self.counts {
            Counts::Exact(counts) => {
                counts.retain(|_, count| {
                    *count /= 2;
                    *count > 0
                });
            }
            Counts::Sketch { words, .. } => {
                // Halving rounds down, and each addition has incremented four counters.
                let odd: u64 = words.iter().map(|word| u64::from((word & ONES).count_ones())).sum();
                self.additions = self.additions.saturating_sub(odd / ROWS as u64);
                words.iter_mut().for_each(|word| *word = (*word >> 1) & !(ONES << 3));
            }
        }
        self.additions /= 2;
    }

    /// The recent frequency of a key; at most 15 in a sketch.
    pub(crate) fn estimate(&self, key: u64) -> u64 {
        match &self.counts {
            Counts::Exact(counts) => counts.get(&key).copied().unwrap_or(0),
            Counts::Sketch { words, hasher } => {
                let places = places(hasher.hash_one(key), words.len());
                let counts = places.map(|(word, shift)| (words[word] >> shift) & 15);
                counts.into_iter().min().unwrap_or(0)
            }
        }
    }
}

/// Word and shift of a key's counter in each row, all in one block.
fn places(hash: u64, words: usize) -> [(usize, u32); ROWS] {
    let blocks = words / BLOCK_WORDS;
    let block = (hash as u32 as usize) & (blocks - 1);
    std::array::from_fn(|row| {
        let bits = (hash >> (32 + 8 * row)) as usize;
        let word = block * BLOCK_WORDS + 2 * row + (bits & 1);
        (word, ((bits >> 1) & 15) as u32 * 4)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(mut frequency: Frequency) -> Frequency {
        for key in 0..1000_u64 {
            for _ in 0..key % 4 {
                frequency.add(key);
            }
        }
        frequency
    }

    #[test]
    fn an_estimate_is_never_below_the_count_and_seldom_above() {
        let sketch = counted(Frequency::sketch(1000));
        let above = (0..1000_u64).filter(|&key| sketch.estimate(key) > key % 4).count();
        assert!((0..1000_u64).all(|key| sketch.estimate(key) >= key % 4));
        assert!(above < 100, "{above} of 1000 estimates are too high");
        let exact = counted(Frequency::exact(1000));
        assert!((0..1000_u64).all(|key| exact.estimate(key) == key % 4));
    }

    #[test]
    fn counts_are_halved_over_time() {
        for mut frequency in [Frequency::sketch(64), Frequency::exact(64)] {
            (0..15).for_each(|_| frequency.add(7));
            assert_eq!(frequency.estimate(7), 15);
            (0..640).for_each(|key| frequency.add(1000 + key));
            assert!(frequency.estimate(7) < 15);
        }
    }
}
