//! Promise: each key is a linearizable register. Whatever threads do at once, there is an order of
//! their operations with every answer right. Each operation takes place at one moment between its
//! call and its return. (Wing and Gong, "Testing and Verifying Concurrent Objects", 1993.)

use crate::common::Sequence;
use ogive_arc::{Access, Cache, Kind, Policy};
use std::collections::HashSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

const THREADS: u64 = 4;
const KEYS: u64 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// And what was found.
    Get(Option<u64>),
    Insert(u64),
    /// And what was there.
    Remove(Option<u64>),
}

#[derive(Clone, Copy, Debug)]
struct Event {
    key: u64,
    action: Action,
    called: u64,
    returned: u64,
}

/// The register after an action, if the action can take place when it has `value`.
fn after(value: Option<u64>, action: Action) -> Option<Option<u64>> {
    match action {
        Action::Get(found) => (found == value).then_some(value),
        Action::Insert(new) => Some(Some(new)),
        Action::Remove(found) => (found == value).then_some(None),
    }
}

/// Whether the events of one key have a right order.
fn is_linearizable(events: &[Event]) -> bool {
    assert!(events.len() <= 64);
    let all = u64::MAX >> (64 - events.len().max(1));
    let mut seen = HashSet::new();
    let mut stack = vec![(0_u64, None)];
    while let Some((done, value)) = stack.pop() {
        if events.is_empty() || done == all {
            return true;
        }
        if !seen.insert((done, value)) {
            continue;
        }
        let open = (0..events.len()).filter(|&at| done & (1 << at) == 0);
        let first_return = open.clone().map(|at| events[at].returned).min().unwrap();
        for at in open.filter(|&at| events[at].called < first_return) {
            if let Some(value) = after(value, events[at].action) {
                stack.push((done | (1 << at), value));
            }
        }
    }
    false
}

fn history(seed: u64, steps: u64) -> Vec<Event> {
    let policy = if seed.is_multiple_of(2) { Policy::Duel } else { Policy::Arc };
    let cache: Cache<u64, u64> = Cache::builder(1000).policy(policy).sublists(1).build();
    let (clock, start) = (AtomicU64::new(0), Barrier::new(THREADS as usize));
    let mut events = Vec::new();
    std::thread::scope(|scope| {
        let work = |thread: u64| {
            let (cache, clock, start) = (&cache, &clock, &start);
            move || {
                let mut next = Sequence(seed.wrapping_mul(THREADS).wrapping_add(thread));
                let mut events = Vec::new();
                let mut held = Vec::new();
                start.wait();
                for step in 0..steps {
                    let key = next.below(KEYS);
                    let called = clock.fetch_add(1, Ordering::SeqCst);
                    let action = match next.below(8) {
                        0..=3 => {
                            let hold = cache.get(&key, Access::Demand);
                            let found = hold.as_deref().copied();
                            held.extend(hold.map(|hold| (hold, found)));
                            Action::Get(found)
                        }
                        4..=5 => {
                            let value = (seed << 32) | (thread << 16) | step;
                            drop(cache.insert(key, value, 1, Kind::Data, Access::Demand));
                            Action::Insert(value)
                        }
                        _ => Action::Remove(cache.remove(&key).as_deref().copied()),
                    };
                    let returned = clock.fetch_add(1, Ordering::SeqCst);
                    events.push(Event { key, action, called, returned });
                    if next.below(3) == 0 {
                        held.drain(..).for_each(|(hold, found)| assert_eq!(Some(*hold), found));
                    }
                }
                events
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(work(thread))).collect();
        threads.into_iter().for_each(|thread| events.extend(thread.join().unwrap()));
    });
    assert_eq!(cache.validate().unwrap().holds, 0);
    events
}

#[test]
fn the_checker_refuses_impossible_histories() {
    let event = |action, called, returned| Event { key: 0, action, called, returned };
    let insert = event(Action::Insert(1), 0, 3);
    assert!(is_linearizable(&[insert, event(Action::Get(None), 1, 2)]));
    assert!(is_linearizable(&[insert, event(Action::Get(Some(1)), 1, 2)]));
    assert!(!is_linearizable(&[insert, event(Action::Get(None), 4, 5)]));
    assert!(!is_linearizable(&[insert, event(Action::Get(Some(2)), 1, 2)]));
    let (seen, lost) = (event(Action::Get(Some(1)), 1, 2), event(Action::Get(None), 4, 5));
    assert!(!is_linearizable(&[event(Action::Insert(1), 0, 9), seen, lost]));
}

#[test]
fn every_history_has_a_right_order() {
    let (histories, steps) = match crate::skipped::is_nightly() {
        _ if cfg!(miri) => (3, 6),
        true => (3000, 12),
        false => (1000, 12),
    };
    let first_seed = crate::seed::seed().wrapping_sub(1).wrapping_mul(histories);
    for seed in (0..histories).map(|number| first_seed.wrapping_add(number)) {
        let events = history(seed, steps);
        for key in 0..KEYS {
            let of_key: Vec<_> = events.iter().copied().filter(|event| event.key == key).collect();
            assert!(is_linearizable(&of_key), "seed {seed}: {of_key:#?}");
        }
    }
}
