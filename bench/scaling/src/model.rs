//! The discrete-event model. A thread alternates between private work and shared things: locks
//! and cache lines. One thread at a time uses such a thing, first come, first served.
//!
//! A use takes `local_ns` if the same thread used it last, otherwise `remote_ns`. Waiting threads
//! steal the cache line from the one at work, which costs more. They back off from each other, so
//! the cost is `per_waiter_ns` times the root of their number.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The costs of a shared thing, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Shared {
    pub local_ns: f64,
    pub remote_ns: f64,
    pub per_waiter_ns: f64,
}

/// A step of a read, in order.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// Private time, between half and one and a half times this.
    Work(f64),
    /// Uses one thing of a group: the first number, drawn again for each read.
    Use { group: usize, again: bool },
}

/// A group of shared things.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    pub things: usize,
    /// 0 for uniform; else keys are drawn by zipf's law.
    pub skew: f64,
    pub shared: Shared,
}

#[derive(Clone, Default)]
struct Thing {
    last: Option<usize>,
    busy: bool,
    waiting: VecDeque<usize>,
}

struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Times in whole picoseconds, so that they can be compared.
const fn ps(ns: f64) -> u64 {
    (ns * 1000.0) as u64
}

struct Thread {
    step: usize,
    drawn: Vec<usize>,
    using: Option<(usize, usize)>,
}

/// Million reads a second by `threads` threads, each on a processor of its own.
pub fn run(threads: usize, steps: &[Step], groups: &[Group], reads: usize) -> f64 {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut things: Vec<Vec<Thing>> =
        groups.iter().map(|group| vec![Thing::default(); group.things]).collect();
    let mut all: Vec<Thread> = (0..threads)
        .map(|_| Thread { step: 0, drawn: vec![0; groups.len()], using: None })
        .collect();
    let mut events: BinaryHeap<Reverse<(u64, usize)>> =
        (0..threads).map(|thread| Reverse((thread as u64 * 1000, thread))).collect();
    let (mut done, mut now) = (0, 0);
    while done < reads {
        let Some(Reverse((time, id))) = events.pop() else {
            break;
        };
        now = time;
        // The thing is free for the next thread.
        if let Some((group, thing)) = all[id].using.take() {
            let place = &mut things[group][thing];
            place.busy = false;
            if let Some(next) = place.waiting.pop_front() {
                let ns = start(place, &groups[group].shared, next);
                all[next].using = Some((group, thing));
                events.push(Reverse((now + ps(ns), next)));
            }
        }
        if all[id].step == steps.len() {
            all[id].step = 0;
            done += 1;
        }
        let step = steps[all[id].step];
        all[id].step += 1;
        match step {
            Step::Work(ns) => {
                events.push(Reverse((now + ps(ns * (0.5 + random.unit())), id)));
            }
            Step::Use { group, again } => {
                if !again {
                    all[id].drawn[group] = draw(&groups[group], &mut random);
                }
                let thing = all[id].drawn[group];
                let place = &mut things[group][thing];
                if place.busy {
                    place.waiting.push_back(id);
                } else {
                    let ns = start(place, &groups[group].shared, id);
                    all[id].using = Some((group, thing));
                    events.push(Reverse((now + ps(ns), id)));
                }
            }
        }
    }
    done as f64 / (now as f64 / 1e6).max(1e-9)
}

fn start(thing: &mut Thing, shared: &Shared, thread: usize) -> f64 {
    let own = thing.last == Some(thread);
    thing.last = Some(thread);
    thing.busy = true;
    let ns = if own { shared.local_ns } else { shared.remote_ns };
    ns + shared.per_waiter_ns * (thing.waiting.len() as f64).sqrt()
}

/// By the inverse of zipf's law, taken as continuous.
fn draw(group: &Group, random: &mut Random) -> usize {
    let (things, unit) = (group.things as f64, random.unit());
    let at = if group.skew == 0.0 {
        unit * things
    } else {
        let power = 1.0 - group.skew;
        (1.0 + unit * ((things + 1.0).powf(power) - 1.0)).powf(1.0 / power) - 1.0
    };
    (at as usize).min(group.things - 1)
}
