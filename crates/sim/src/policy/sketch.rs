//! How often keys were seen lately, approximately: a count-min sketch of four-bit counters
//! (Cormode and Muthukrishnan, J. Algorithms 2005; with the periodic halving of Einziger et al.,
//! "TinyLFU", ACM TOS 2017).

use std::hash::BuildHasher as _;

use foldhash::fast::FixedState;

/// Rows of the sketch: a key has a counter in each, and its estimate is the least.
const ROWS: usize = 4;
/// Counts are halved after so many additions a counter of a row.
const SAMPLES_A_COUNTER: u64 = 10;
const COUNTERS_MIN: usize = 64;

/// The sketch. One word holds sixteen counters.
#[derive(Debug)]
pub(crate) struct Sketch {
    words: Vec<u64>,
    additions: u64,
    hashers: [FixedState; ROWS],
}

impl Sketch {
    /// For about so many keys.
    pub(crate) fn new(keys: usize) -> Self {
        // A word for each key, over the four rows: sixteen counters a key.
        let words = keys.clamp(COUNTERS_MIN, 1 << 27).next_power_of_two();
        Self {
            words: vec![0; words],
            additions: 0,
            hashers: [1, 2, 3, 4].map(FixedState::with_seed),
        }
    }

    /// The number of keys it is made for.
    pub(crate) fn keys(&self) -> usize {
        self.words.len()
    }

    /// Word and shift of a key's counter in a row. A row has four counters of every word.
    fn place(&self, row: usize, key: u64) -> (usize, u32) {
        let hash = self.hashers[row].hash_one(key);
        let word = (hash as usize) & (self.words.len() - 1);
        let counter = row as u32 * 4 + (hash >> 62) as u32;
        (word, counter * 4)
    }

    /// Counts a key as seen once more.
    pub(crate) fn add(&mut self, key: u64) {
        let mut added = false;
        for row in 0..ROWS {
            let (word, shift) = self.place(row, key);
            if (self.words[word] >> shift) & 15 < 15 {
                self.words[word] += 1 << shift;
                added = true;
            }
        }
        self.additions += u64::from(added);
        if self.additions >= SAMPLES_A_COUNTER * self.words.len() as u64 {
            self.words.iter_mut().for_each(|word| *word = (*word >> 1) & 0x7777_7777_7777_7777);
            self.additions /= 2;
        }
    }

    /// How often a key was seen lately, at most 15.
    pub(crate) fn estimate(&self, key: u64) -> u64 {
        let counts = (0..ROWS).map(|row| {
            let (word, shift) = self.place(row, key);
            (self.words[word] >> shift) & 15
        });
        counts.min().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_never_below_the_count_and_seldom_above() {
        let mut sketch = Sketch::new(1000);
        for key in 0..1000_u64 {
            for _ in 0..key % 4 {
                sketch.add(key);
            }
        }
        let above = (0..1000_u64).filter(|&key| sketch.estimate(key) > key % 4).count();
        assert!((0..1000_u64).all(|key| sketch.estimate(key) >= key % 4));
        assert!(above < 20, "{above} of 1000 estimates are too high");
    }

    #[test]
    fn counts_fade() {
        let mut sketch = Sketch::new(64);
        (0..15).for_each(|_| sketch.add(7));
        assert_eq!(sketch.estimate(7), 15);
        (0..640).for_each(|key| sketch.add(1000 + key));
        assert!(sketch.estimate(7) < 15);
    }
}
