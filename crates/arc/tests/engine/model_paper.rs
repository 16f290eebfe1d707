//! Promise: with equal weights the policy is, access by access, the algorithm of the paper.
//!
//! The model below is Fig. 4 of Megiddo and Modha (FAST '03), word for word, on four queues.

use ogive_arc::Kind;
use ogive_arc::policy::{PlainArc, State};
use proptest::prelude::*;
use std::collections::VecDeque;

/// Queues have their most recently used end in front.
#[derive(Default)]
struct Paper {
    c: f64,
    p: f64,
    t1: VecDeque<u8>,
    t2: VecDeque<u8>,
    b1: VecDeque<u8>,
    b2: VecDeque<u8>,
}

fn take(queue: &mut VecDeque<u8>, x: u8) -> bool {
    let position = queue.iter().position(|&y| y == x);
    position.is_some_and(|position| queue.remove(position).is_some())
}

impl Paper {
    fn replace(&mut self, x_in_b2: bool) {
        let t1 = self.t1.len() as f64;
        if t1 > 0.0 && (t1 > self.p || (x_in_b2 && t1 == self.p)) {
            let y = self.t1.pop_back().unwrap();
            self.b1.push_front(y);
        } else {
            let y = self.t2.pop_back().unwrap();
            self.b2.push_front(y);
        }
    }

    fn access(&mut self, x: u8) -> bool {
        let (b1, b2) = (self.b1.len() as f64, self.b2.len() as f64);
        if take(&mut self.t1, x) || take(&mut self.t2, x) {
            self.t2.push_front(x);
            return true;
        }
        if self.b1.contains(&x) {
            self.p = (self.p + (b2 / b1).max(1.0)).min(self.c);
            self.replace(false);
            take(&mut self.b1, x);
            self.t2.push_front(x);
        } else if self.b2.contains(&x) {
            self.p = (self.p - (b1 / b2).max(1.0)).max(0.0);
            self.replace(true);
            take(&mut self.b2, x);
            self.t2.push_front(x);
        } else {
            let c = self.c as usize;
            let l1 = self.t1.len() + self.b1.len();
            let total = l1 + self.t2.len() + self.b2.len();
            if l1 == c {
                if self.t1.len() < c {
                    self.b1.pop_back();
                    self.replace(false);
                } else {
                    self.t1.pop_back();
                }
            } else if total >= c {
                if total == 2 * c {
                    self.b2.pop_back();
                }
                self.replace(false);
            }
            self.t1.push_front(x);
        }
        false
    }

    fn state(&self, x: u8) -> Option<State> {
        let states = [State::Mru, State::Mfu, State::MruGhost, State::MfuGhost];
        let queues = [&self.t1, &self.t2, &self.b1, &self.b2];
        let position = queues.iter().position(|queue| queue.contains(&x));
        position.map(|position| states[position])
    }
}

/// So many cases, few under Miri; a failure is printed and not written to a file.
fn cases(cases: u32) -> ProptestConfig {
    let cases = if cfg!(miri) { 4 } else { cases };
    ProptestConfig { cases, failure_persistence: None, ..crate::seed::seeded() }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn every_key_is_in_the_state_the_paper_puts_it_in(
        c in 1_u64..14,
        // Weights above 1 must scale everything and change nothing.
        weight in prop_oneof![Just(1_u64), Just(4096), Just(131_072)],
        kind in prop_oneof![Just(Kind::Data), Just(Kind::Metadata)],
        // Runs over near keys and jumps, so that all lists and ghosts are used.
        accesses in prop::collection::vec((0_u8..48, 1_u8..6), 1..120),
    ) {
        let mut paper = Paper { c: c as f64, ..Paper::default() };
        let mut policy = PlainArc::new(c * weight);
        for (first, length) in accesses {
            for x in first..first + length {
                let outcome = policy.access(x, weight, kind);
                prop_assert_eq!(outcome.is_hit(), paper.access(x));
                policy.validate().map_err(TestCaseError::fail)?;
                let p = policy.balance().mru_target_bytes(kind) / weight as f64;
                prop_assert!((p - paper.p).abs() < 1e-9, "p is {} and not {}", p, paper.p);
                for y in 0..56 {
                    prop_assert_eq!(policy.state(&y), paper.state(y), "key {}", y);
                }
            }
        }
    }
}
