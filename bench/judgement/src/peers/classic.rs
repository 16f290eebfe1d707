//! LRU, FIFO, CLOCK and SIEVE: one list each.

use super::Replacement;
use crate::lists::{Lists, NOWHERE};

/// Least recently used.
pub struct Lru(Lists, usize);

/// First in, first out.
pub struct Fifo(Lists, usize);

/// FIFO with a second chance for what was used meanwhile (Corbató 1968).
pub struct Clock(Lists, usize, Vec<bool>);

/// CLOCK without moves: the hand walks over a FIFO (Zhang et al., NSDI '24).
pub struct Sieve {
    lists: Lists,
    capacity: usize,
    visited: Vec<bool>,
    hand: Option<u32>,
}

impl Lru {
    /// Empty.
    pub fn new(numbers: usize, capacity: usize) -> Self {
        Self(Lists::new(numbers, 1), capacity)
    }
}

impl Fifo {
    /// Empty.
    pub fn new(numbers: usize, capacity: usize) -> Self {
        Self(Lists::new(numbers, 1), capacity)
    }
}

impl Clock {
    /// Empty.
    pub fn new(numbers: usize, capacity: usize) -> Self {
        Self(Lists::new(numbers, 1), capacity, vec![false; numbers])
    }
}

impl Sieve {
    /// Empty.
    pub fn new(numbers: usize, capacity: usize) -> Self {
        let lists = Lists::new(numbers, 1);
        Self { lists, capacity, visited: vec![false; numbers], hand: None }
    }
}

impl Replacement for Lru {
    fn access(&mut self, number: u32) -> bool {
        let hit = self.0.at(number) != NOWHERE;
        if !hit && self.0.len(0) >= self.1 {
            self.0.pop_tail(0);
        }
        self.0.move_to_head(0, number);
        hit
    }
}

impl Replacement for Fifo {
    fn access(&mut self, number: u32) -> bool {
        let hit = self.0.at(number) != NOWHERE;
        if !hit {
            if self.0.len(0) >= self.1 {
                self.0.pop_tail(0);
            }
            self.0.push_head(0, number);
        }
        hit
    }
}

impl Replacement for Clock {
    fn access(&mut self, number: u32) -> bool {
        if self.0.at(number) != NOWHERE {
            self.2[number as usize] = true;
            return true;
        }
        while self.0.len(0) >= self.1
            && let Some(eldest) = self.0.pop_tail(0)
        {
            if std::mem::take(&mut self.2[eldest as usize]) {
                self.0.push_head(0, eldest);
            }
        }
        self.0.push_head(0, number);
        false
    }
}

impl Replacement for Sieve {
    fn access(&mut self, number: u32) -> bool {
        if self.lists.at(number) != NOWHERE {
            self.visited[number as usize] = true;
            return true;
        }
        if self.lists.len(0) >= self.capacity {
            let mut at = self.hand.or_else(|| self.lists.tail(0));
            while let Some(candidate) = at
                && std::mem::take(&mut self.visited[candidate as usize])
            {
                at = self.lists.younger(candidate).or_else(|| self.lists.tail(0));
            }
            if let Some(victim) = at {
                self.hand = self.lists.younger(victim);
                self.lists.take(victim);
            }
        }
        self.lists.push_head(0, number);
        false
    }
}
