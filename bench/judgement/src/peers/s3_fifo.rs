//! S3-FIFO (Yang et al., SOSP '23) with the settings of libCacheSim: small queue 10%, ghosts
//! as many as the main queue holds, two uses while small admit to main, counters up to 3.

use super::Replacement;
use crate::lists::Lists;

/// Three FIFO queues.
pub struct S3Fifo {
    lists: Lists,
    uses: Vec<u8>,
    capacity: usize,
    small_max: usize,
    has_evicted: bool,
}

const SMALL: u8 = 0;
const MAIN: u8 = 1;
const GHOST: u8 = 2;

impl S3Fifo {
    /// Empty.
    pub fn new(numbers: usize, capacity: usize) -> Self {
        Self {
            lists: Lists::new(numbers, 3),
            uses: vec![0; numbers],
            capacity,
            small_max: (capacity / 10).max(1),
            has_evicted: false,
        }
    }

    fn evict(&mut self) {
        self.has_evicted = true;
        let main_max = self.capacity - self.small_max;
        if self.lists.len(MAIN) > main_max || self.lists.len(SMALL) == 0 {
            while let Some(eldest) = self.lists.pop_tail(MAIN) {
                let uses = &mut self.uses[eldest as usize];
                if *uses == 0 {
                    return;
                }
                *uses -= 1;
                self.lists.push_head(MAIN, eldest);
            }
            return;
        }
        while let Some(eldest) = self.lists.pop_tail(SMALL) {
            if self.uses[eldest as usize] > 1 {
                self.uses[eldest as usize] = 0;
                self.lists.push_head(MAIN, eldest);
            } else {
                self.lists.push_head(GHOST, eldest);
                if self.lists.len(GHOST) > main_max {
                    self.lists.pop_tail(GHOST);
                }
                return;
            }
        }
    }
}

impl Replacement for S3Fifo {
    fn access(&mut self, number: u32) -> bool {
        let at = self.lists.at(number);
        if at == SMALL || at == MAIN {
            let uses = &mut self.uses[number as usize];
            *uses = (*uses + 1).min(3);
            return true;
        }
        if at == GHOST {
            self.lists.take(number);
        }
        while self.lists.len(SMALL) + self.lists.len(MAIN) >= self.capacity {
            self.evict();
        }
        self.uses[number as usize] = 0;
        let filling = !self.has_evicted && self.lists.len(SMALL) >= self.small_max;
        self.lists.push_head(if at == GHOST || filling { MAIN } else { SMALL }, number);
        false
    }
}
