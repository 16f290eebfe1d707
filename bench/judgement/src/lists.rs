//! Doubly linked lists over dense numbers: a number is on at most one list at a time.
//!
//! A list has a head (the youngest) and a tail (the eldest). Links are two arrays, so that a
//! replay of ten million requests spends its time in the policy and not in an allocator.

/// Not on any list.
pub const NOWHERE: u8 = u8::MAX;

/// Several lists over the numbers `0..numbers`.
#[derive(Clone)]
pub struct Lists {
    previous: Vec<u32>,
    next: Vec<u32>,
    at: Vec<u8>,
    len: Vec<usize>,
    numbers: u32,
}

impl Lists {
    /// `lists` empty lists over `numbers` numbers.
    #[must_use]
    pub fn new(numbers: usize, lists: usize) -> Self {
        let sentinels = numbers as u32..(numbers + lists) as u32;
        let mut links = vec![u32::MAX; numbers];
        links.extend(sentinels);
        Self {
            previous: links.clone(),
            next: links,
            at: vec![NOWHERE; numbers],
            len: vec![0; lists],
            numbers: numbers as u32,
        }
    }

    /// The list a number is on.
    #[must_use]
    pub fn at(&self, number: u32) -> u8 {
        self.at[number as usize]
    }

    /// How many numbers are on a list.
    #[must_use]
    pub fn len(&self, list: u8) -> usize {
        self.len[list as usize]
    }

    fn insert_after(&mut self, before: u32, number: u32, list: u8) {
        debug_assert_eq!(self.at(number), NOWHERE);
        let after = self.next[before as usize];
        self.next[before as usize] = number;
        self.previous[number as usize] = before;
        self.next[number as usize] = after;
        self.previous[after as usize] = number;
        self.at[number as usize] = list;
        self.len[list as usize] += 1;
    }

    /// Puts a number at the head of a list.
    pub fn push_head(&mut self, list: u8, number: u32) {
        self.insert_after(self.numbers + u32::from(list), number, list);
    }

    /// Takes a number off its list.
    pub fn take(&mut self, number: u32) {
        let (before, after) = (self.previous[number as usize], self.next[number as usize]);
        self.next[before as usize] = after;
        self.previous[after as usize] = before;
        self.len[self.at[number as usize] as usize] -= 1;
        self.at[number as usize] = NOWHERE;
    }

    /// The eldest of a list.
    #[must_use]
    pub fn tail(&self, list: u8) -> Option<u32> {
        let last = self.previous[self.numbers as usize + list as usize];
        (last < self.numbers).then_some(last)
    }

    /// The neighbour nearer to the head.
    #[must_use]
    pub fn younger(&self, number: u32) -> Option<u32> {
        let previous = self.previous[number as usize];
        (previous < self.numbers).then_some(previous)
    }

    /// Takes the eldest off a list.
    pub fn pop_tail(&mut self, list: u8) -> Option<u32> {
        let last = self.tail(list)?;
        self.take(last);
        Some(last)
    }

    /// Takes a number off its list, if it is on one, and puts it at the head of another.
    pub fn move_to_head(&mut self, list: u8, number: u32) {
        if self.at(number) != NOWHERE {
            self.take(number);
        }
        self.push_head(list, number);
    }
}
