//! 2Q and ARC: entries seen once and entries seen again, with ghosts.

use super::Replacement;
use crate::lists::{Lists, NOWHERE};

/// Full 2Q (Johnson and Shasha, VLDB '94): Kin a quarter, Kout half of the cache.
pub struct TwoQ {
    lists: Lists,
    capacity: usize,
}

const IN: u8 = 0;
const MAIN: u8 = 1;
const OUT: u8 = 2;

impl TwoQ {
    /// Empty.
    pub fn new(numbers: usize, capacity: usize) -> Self {
        Self { lists: Lists::new(numbers, 3), capacity }
    }

    fn make_room(&mut self) {
        if self.lists.len(IN) + self.lists.len(MAIN) < self.capacity {
            return;
        }
        if self.lists.len(IN) > (self.capacity / 4).max(1) || self.lists.len(MAIN) == 0 {
            let Some(eldest) = self.lists.pop_tail(IN) else { return };
            self.lists.push_head(OUT, eldest);
            if self.lists.len(OUT) > self.capacity / 2 {
                self.lists.pop_tail(OUT);
            }
        } else {
            self.lists.pop_tail(MAIN);
        }
    }
}

impl Replacement for TwoQ {
    fn access(&mut self, number: u32) -> bool {
        match self.lists.at(number) {
            IN => true,
            MAIN => {
                self.lists.move_to_head(MAIN, number);
                true
            }
            ghost => {
                if ghost == OUT {
                    self.lists.take(number);
                }
                self.make_room();
                self.lists.push_head(if ghost == OUT { MAIN } else { IN }, number);
                false
            }
        }
    }
}

/// ARC as printed (Megiddo and Modha, FAST '03, Fig. 4), `p` a real number.
pub struct Arc {
    lists: Lists,
    capacity: usize,
    mru_target: f64,
}

const T1: u8 = 0;
const T2: u8 = 1;
const B1: u8 = 2;
const B2: u8 = 3;

impl Arc {
    /// Empty.
    pub fn new(numbers: usize, capacity: usize) -> Self {
        Self { lists: Lists::new(numbers, 4), capacity, mru_target: 0.0 }
    }

    fn replace(&mut self, from_b2: bool) {
        let mru = self.lists.len(T1) as f64;
        let take_mru = mru > 0.0 && (mru > self.mru_target || (from_b2 && mru >= self.mru_target));
        let (from, to) = if take_mru { (T1, B1) } else { (T2, B2) };
        if let Some(eldest) = self.lists.pop_tail(from) {
            self.lists.push_head(to, eldest);
        }
    }
}

impl Replacement for Arc {
    fn access(&mut self, number: u32) -> bool {
        let lists = &mut self.lists;
        let (b1, b2) = (lists.len(B1) as f64, lists.len(B2) as f64);
        match lists.at(number) {
            T1 | T2 => {
                lists.move_to_head(T2, number);
                return true;
            }
            B1 => {
                self.mru_target = (self.mru_target + (b2 / b1).max(1.0)).min(self.capacity as f64);
                self.replace(false);
                self.lists.move_to_head(T2, number);
            }
            B2 => {
                self.mru_target = (self.mru_target - (b1 / b2).max(1.0)).max(0.0);
                self.replace(true);
                self.lists.move_to_head(T2, number);
            }
            _ => {
                let once = lists.len(T1) + lists.len(B1);
                let all = once + lists.len(T2) + lists.len(B2);
                if once >= self.capacity {
                    if lists.len(T1) < self.capacity {
                        lists.pop_tail(B1);
                        self.replace(false);
                    } else {
                        lists.pop_tail(T1);
                    }
                } else if all >= self.capacity {
                    if all >= 2 * self.capacity {
                        lists.pop_tail(B2);
                    }
                    self.replace(false);
                }
                debug_assert_eq!(self.lists.at(number), NOWHERE);
                self.lists.push_head(T1, number);
            }
        }
        false
    }

    fn tell(&self) -> String {
        format!("p {:.0} of {}", self.mru_target, self.capacity)
    }
}
