//! W-TinyLFU (Einziger, Friedman, Manes, TOS '17) with the adaptive window of "Adaptive
//! Software Cache Management" (Middleware '18), as Caffeine ships it: window 1% at first, main
//! a segmented LRU with 80% protected, a 4-bit count-min sketch that is halved every ten times
//! the capacity, a hill climber with a step of 6.25% that decays by 2% and restarts when the
//! hit ratio moves by 5 points.

use super::Replacement;
use crate::lists::Lists;

struct Sketch {
    table: Vec<[u8; 4]>,
    additions: usize,
    sample: usize,
}

impl Sketch {
    fn new(capacity: usize) -> Self {
        let width = capacity.max(16).next_power_of_two() * 4;
        Self { table: vec![[0; 4]; width], additions: 0, sample: 10 * capacity.max(1) }
    }

    fn at(&self, number: u32, row: usize) -> usize {
        let mut hash = (u64::from(number) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        hash = (hash ^ (hash >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9 + 2 * row as u64);
        (hash ^ (hash >> 32)) as usize & (self.table.len() - 1)
    }

    fn count(&self, number: u32) -> u8 {
        (0..4).map(|row| self.table[self.at(number, row)][row]).min().unwrap_or(0)
    }

    fn add(&mut self, number: u32) {
        let mut added = false;
        for row in 0..4 {
            let at = self.at(number, row);
            let count = &mut self.table[at][row];
            if *count < 15 {
                *count += 1;
                added = true;
            }
        }
        self.additions += usize::from(added);
        if self.additions >= self.sample {
            for counts in &mut self.table {
                *counts = counts.map(|count| count / 2);
            }
            self.additions /= 2;
        }
    }
}

/// A window, an admission by frequency, a segmented LRU.
pub struct WTinyLfu {
    lists: Lists,
    sketch: Sketch,
    capacity: usize,
    window_max: f64,
    step: f64,
    hits: u64,
    requests: u64,
    last_ratio: f64,
    random: u64,
}

const WINDOW: u8 = 0;
const PROBATION: u8 = 1;
const PROTECTED: u8 = 2;

impl WTinyLfu {
    /// Empty.
    pub fn new(numbers: usize, capacity: usize) -> Self {
        Self {
            lists: Lists::new(numbers, 3),
            sketch: Sketch::new(capacity),
            capacity,
            window_max: (capacity as f64 / 100.0).max(1.0),
            step: -0.0625 * capacity as f64,
            hits: 0,
            requests: 0,
            last_ratio: 0.0,
            random: 1,
        }
    }

    fn protected_max(&self) -> usize {
        ((self.capacity as f64 - self.window_max) * 0.8) as usize
    }

    fn climb(&mut self) {
        self.requests += 1;
        if self.requests < 10 * self.capacity as u64 {
            return;
        }
        let ratio = self.hits as f64 / self.requests as f64;
        let change = ratio - self.last_ratio;
        let amount = if change >= 0.0 { self.step } else { -self.step };
        self.step = if change.abs() >= 0.05 {
            0.0625 * self.capacity as f64 * amount.signum()
        } else {
            amount * 0.98
        };
        self.last_ratio = ratio;
        (self.hits, self.requests) = (0, 0);
        self.window_max =
            (self.window_max + amount).clamp(1.0, (self.capacity as f64 * 0.8).max(1.0));
        while self.lists.len(PROTECTED) > self.protected_max()
            && let Some(eldest) = self.lists.pop_tail(PROTECTED)
        {
            self.lists.push_head(PROBATION, eldest);
        }
        while (self.lists.len(WINDOW) as f64) < self.window_max {
            let Some(eldest) = self.lists.pop_tail(PROBATION) else { break };
            self.lists.push_head(WINDOW, eldest);
        }
        self.shrink_window();
    }

    fn shrink_window(&mut self) -> Option<u32> {
        let mut candidate = None;
        while self.lists.len(WINDOW) as f64 > self.window_max
            && let Some(eldest) = self.lists.pop_tail(WINDOW)
        {
            self.lists.push_head(PROBATION, eldest);
            candidate = Some(eldest);
        }
        candidate
    }

    fn admits(&mut self, candidate: u32, victim: u32) -> bool {
        let (ours, theirs) = (self.sketch.count(candidate), self.sketch.count(victim));
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ours > theirs || (ours >= 6 && (self.random >> 40) & 127 == 0)
    }
}

impl Replacement for WTinyLfu {
    fn access(&mut self, number: u32) -> bool {
        self.sketch.add(number);
        let at = self.lists.at(number);
        let hit = at <= PROTECTED;
        match at {
            WINDOW | PROTECTED => self.lists.move_to_head(at, number),
            PROBATION => {
                self.lists.move_to_head(PROTECTED, number);
                if self.lists.len(PROTECTED) > self.protected_max()
                    && let Some(eldest) = self.lists.pop_tail(PROTECTED)
                {
                    self.lists.push_head(PROBATION, eldest);
                }
            }
            _ => {
                self.lists.push_head(WINDOW, number);
                let candidate = self.shrink_window();
                let all = self.lists.len(0) + self.lists.len(1) + self.lists.len(2);
                if all > self.capacity {
                    let victim = self.lists.tail(PROBATION).filter(|&v| Some(v) != candidate);
                    let victim = victim.or_else(|| self.lists.tail(PROTECTED));
                    let loser = match (candidate, victim) {
                        (Some(c), Some(v)) if c != v => {
                            if self.admits(c, v) {
                                v
                            } else {
                                c
                            }
                        }
                        (Some(c), _) => c,
                        (None, Some(v)) => v,
                        (None, None) => number,
                    };
                    self.lists.take(loser);
                }
            }
        }
        self.hits += u64::from(hit);
        self.climb();
        hit
    }

    fn tell(&self) -> String {
        format!("window {:.0} of {}", self.window_max, self.capacity)
    }
}
