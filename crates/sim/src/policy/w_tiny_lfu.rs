//! W-TinyLFU (Einziger, Friedman and Manes, "TinyLFU: A Highly Efficient Cache Admission Policy",
//! ACM TOS 2017): newcomers stay in a small LRU window; what leaves it is admitted to the main
//! cache, a segmented LRU with 80% protected, only if a sketch of frequencies has seen it more
//! often than the main cache's eldest entry.
//!
//! The window starts at 1% and, if asked for, follows the hit ratio by hill climbing (Einziger,
//! Eytan, Friedman and Manes, "Adaptive Software Cache Management", Middleware '18): steps of
//! 6.25% of the cache, by 0.98 smaller each time, begun anew when the hit ratio jumps by 5 points.

use super::lists::{Id, Lists};
use super::sketch::Sketch;
use super::{Counts, Policy, Request};

const WINDOW: usize = 0;
const PROBATION: usize = 1;
const PROTECTED: usize = 2;

const STEP: f64 = 0.0625;
const STEP_DECAY: f64 = 0.98;
const RESTART: f64 = 0.05;
/// The climber looks at the hit ratio after so many accesses an entry.
const SAMPLES_AN_ENTRY: u64 = 10;
/// The sketch starts at this many entries and grows with the cache.
const ENTRIES_MIN: usize = 512;

/// The cache.
#[derive(Debug)]
pub(crate) struct WTinyLfu {
    lists: Lists<3>,
    sketch: Sketch,
    capacity_bytes: u64,
    window_bytes: u64,
    evictions: u64,
    climber: Option<Climber>,
}

/// Hill climbing over the share of the window.
#[derive(Debug)]
struct Climber {
    accesses: u64,
    hits: u64,
    ratio_before: f64,
    step_bytes: f64,
}

impl WTinyLfu {
    /// `adaptive`: whether the window follows the hit ratio.
    pub(crate) fn new(capacity_bytes: u64, adaptive: bool) -> Self {
        let step_bytes = STEP * capacity_bytes as f64;
        Self {
            lists: Lists::new(),
            sketch: Sketch::new(ENTRIES_MIN.min(capacity_bytes as usize)),
            capacity_bytes,
            window_bytes: (capacity_bytes / 100).max(1),
            evictions: 0,
            climber: adaptive.then_some(Climber {
                accesses: 0,
                hits: 0,
                ratio_before: 0.0,
                step_bytes,
            }),
        }
    }

    fn len(&self) -> usize {
        [WINDOW, PROBATION, PROTECTED].iter().map(|&list| self.lists.list_len(list)).sum()
    }

    fn protected_bytes_max(&self) -> u64 {
        (self.capacity_bytes - self.window_bytes) / 5 * 4
    }

    fn hit(&mut self, id: Id) {
        match self.lists.list(id) {
            PROBATION => {
                self.lists.move_to_front(PROTECTED, id);
                self.demote_protected();
            }
            list => self.lists.move_to_front(list, id),
        }
    }

    fn demote_protected(&mut self) {
        while self.lists.list_bytes(PROTECTED) > self.protected_bytes_max() {
            let Some(eldest) = self.lists.back(PROTECTED) else { return };
            self.lists.move_to_front(PROBATION, eldest);
        }
    }

    /// What is too much for the window has to win against the eldest of the main cache.
    fn drain_window(&mut self) {
        while self.lists.list_bytes(WINDOW) > self.window_bytes
            || self.resident_bytes() > self.capacity_bytes
        {
            let Some(candidate) = self.lists.back(WINDOW) else {
                self.evict_main();
                continue;
            };
            let seen = self.sketch.estimate(self.lists.key(candidate));
            let mut admitted = true;
            while admitted && self.resident_bytes() > self.capacity_bytes {
                let victim = self.lists.back(PROBATION).or_else(|| self.lists.back(PROTECTED));
                let victim =
                    victim.filter(|&victim| self.sketch.estimate(self.lists.key(victim)) < seen);
                admitted = victim.is_some();
                self.lists.remove(victim.unwrap_or(candidate));
                self.evictions += 1;
            }
            if admitted {
                self.lists.move_to_front(PROBATION, candidate);
            }
        }
    }

    fn evict_main(&mut self) {
        if let Some(id) = self.lists.back(PROBATION).or_else(|| self.lists.back(PROTECTED)) {
            self.lists.remove(id);
            self.evictions += 1;
        }
    }

    fn climb(&mut self, hit: bool) {
        let entries = self.len() as u64;
        let Some(climber) = &mut self.climber else { return };
        climber.accesses += 1;
        climber.hits += u64::from(hit);
        // Before it is full nothing is learnt.
        if climber.accesses < SAMPLES_AN_ENTRY * entries.max(1) || self.evictions == 0 {
            return;
        }
        let ratio = climber.hits as f64 / climber.accesses as f64;
        let change = ratio - climber.ratio_before;
        let step = if change >= 0.0 { climber.step_bytes } else { -climber.step_bytes };
        climber.step_bytes = if change.abs() >= RESTART {
            (STEP * self.capacity_bytes as f64).copysign(step)
        } else {
            STEP_DECAY * step
        };
        (climber.accesses, climber.hits, climber.ratio_before) = (0, 0, ratio);
        let most = self.capacity_bytes as f64 * 0.8;
        let window = (self.window_bytes as f64 + step).clamp(1.0, most.max(1.0));
        self.resize_window(window as u64);
    }

    /// Moves entries with the border: the main cache's eldest to the window, or the window's to
    /// probation.
    fn resize_window(&mut self, window_bytes: u64) {
        self.window_bytes = window_bytes;
        self.demote_protected();
        while let Some(eldest) = self.lists.back(PROBATION) {
            if self.lists.list_bytes(WINDOW) + self.lists.bytes(eldest) > window_bytes {
                break;
            }
            self.lists.move_to_front(WINDOW, eldest);
        }
        while self.lists.list_bytes(WINDOW) > window_bytes {
            let Some(eldest) = self.lists.back(WINDOW) else { break };
            self.lists.move_to_front(PROBATION, eldest);
        }
    }
}

impl Policy for WTinyLfu {
    fn access(&mut self, request: &Request) -> bool {
        if self.len() > self.sketch.keys() {
            self.sketch = Sketch::new(2 * self.sketch.keys());
        }
        self.sketch.add(request.key);
        let found = self.lists.find(request.key);
        match found {
            Some(id) => self.hit(id),
            None => {
                self.lists.push_front(WINDOW, request.key, request.bytes);
                self.drain_window();
            }
        }
        self.climb(found.is_some());
        found.is_some()
    }

    fn counts(&self) -> Counts {
        Counts { evictions: self.evictions, ghost_hits: None }
    }

    fn resident_bytes(&self) -> u64 {
        [WINDOW, PROBATION, PROTECTED].iter().map(|&list| self.lists.list_bytes(list)).sum()
    }
}
