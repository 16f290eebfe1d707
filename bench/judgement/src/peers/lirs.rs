//! LIRS (Jiang and Zhang, SIGMETRICS '02): a resident HIR share of 1%, and as many
//! non-resident HIR blocks in the stack as twice the cache at most.

use super::Replacement;
use crate::lists::{Lists, NOWHERE};
use std::collections::VecDeque;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    Low,
    High,
    HighAway,
    Unknown,
}

/// Low inter-reference recency set.
pub struct Lirs {
    stack: Lists,
    queue: Lists,
    status: Vec<Status>,
    capacity: usize,
    low_max: usize,
    low: usize,
    away: VecDeque<(u32, u64)>,
    away_len: usize,
    since: Vec<u64>,
    clock: u64,
}

impl Lirs {
    /// Empty.
    pub fn new(numbers: usize, capacity: usize) -> Self {
        let high = (capacity / 100).max(1);
        Self {
            stack: Lists::new(numbers, 1),
            queue: Lists::new(numbers, 1),
            status: vec![Status::Unknown; numbers],
            capacity,
            low_max: capacity.saturating_sub(high).max(1),
            low: 0,
            away: VecDeque::new(),
            away_len: 0,
            since: vec![0; numbers],
            clock: 0,
        }
    }

    fn in_stack(&self, number: u32) -> bool {
        self.stack.at(number) != NOWHERE
    }

    fn prune(&mut self) {
        while let Some(bottom) = self.stack.tail(0)
            && self.status[bottom as usize] != Status::Low
        {
            self.stack.take(bottom);
            if self.status[bottom as usize] == Status::HighAway {
                self.status[bottom as usize] = Status::Unknown;
                self.away_len -= 1;
            }
        }
    }

    fn demote_bottom(&mut self) {
        if let Some(bottom) = self.stack.pop_tail(0) {
            self.status[bottom as usize] = Status::High;
            self.low -= 1;
            self.queue.push_head(0, bottom);
            self.prune();
        }
    }

    fn evict(&mut self) {
        if self.low + self.queue.len(0) < self.capacity {
            return;
        }
        let Some(victim) = self.queue.pop_tail(0) else { return };
        if self.in_stack(victim) {
            self.status[victim as usize] = Status::HighAway;
            self.clock += 1;
            self.since[victim as usize] = self.clock;
            self.away.push_back((victim, self.clock));
            self.away_len += 1;
            while self.away_len > 2 * self.capacity {
                let Some((eldest, since)) = self.away.pop_front() else { break };
                if self.status[eldest as usize] == Status::HighAway
                    && self.since[eldest as usize] == since
                {
                    self.stack.take(eldest);
                    self.status[eldest as usize] = Status::Unknown;
                    self.away_len -= 1;
                }
            }
        } else {
            self.status[victim as usize] = Status::Unknown;
        }
    }
}

impl Replacement for Lirs {
    fn access(&mut self, number: u32) -> bool {
        match self.status[number as usize] {
            Status::Low => {
                self.stack.move_to_head(0, number);
                self.prune();
                true
            }
            Status::High => {
                if self.in_stack(number) {
                    self.status[number as usize] = Status::Low;
                    self.low += 1;
                    self.queue.take(number);
                    self.stack.move_to_head(0, number);
                    if self.low > self.low_max {
                        self.demote_bottom();
                    }
                } else {
                    self.stack.move_to_head(0, number);
                    self.queue.move_to_head(0, number);
                }
                true
            }
            found => {
                self.evict();
                // The eviction may have dropped the oldest non-resident block: this one.
                let known =
                    found == Status::HighAway && self.status[number as usize] == Status::HighAway;
                if known {
                    self.away_len -= 1;
                }
                if known || self.low < self.low_max {
                    self.status[number as usize] = Status::Low;
                    self.low += 1;
                    self.stack.move_to_head(0, number);
                    if self.low > self.low_max {
                        self.demote_bottom();
                    }
                } else {
                    self.status[number as usize] = Status::High;
                    self.stack.move_to_head(0, number);
                    self.queue.push_head(0, number);
                }
                false
            }
        }
    }
}
