//! Promise: under pressure the cache gives back the missing bytes, and stops at its floor. It grows
//! again when the pressure is over. While idle it asks for no wake-up.

use crate::eventually::BOUND;
use ogive_arc::reclaim::{
    Governor, GovernorConfig, Pressure, Reading, Reclaimer, ReclaimerConfig, WakeReason, Waker,
};
use ogive_arc::{Access, Cache, Hold, Kind, Level};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

const CONFIG: GovernorConfig = GovernorConfig {
    reserve_bytes: 100 * MIB,
    headroom_reserve_bytes: 10 * MIB,
    grow_retry: Duration::from_secs(5),
    recheck: Duration::from_secs(1),
};

const fn seconds(s: u64) -> Duration {
    Duration::from_secs(s)
}

const fn available(mib: u64) -> Reading {
    Reading { available_bytes: Some(mib * MIB), headroom_bytes: None, stalled: false }
}

const fn level(size_mib: u64, target_mib: u64) -> Level {
    let (min_bytes, max_bytes) = (64 * MIB, 1024 * MIB);
    Level {
        size_bytes: size_mib * MIB,
        target_bytes: target_mib * MIB,
        min_bytes,
        max_bytes,
        may_grow: true,
    }
}

#[test]
fn ample_memory_asks_for_nothing() {
    let mut governor = Governor::new(CONFIG);
    for now in 0..100 {
        let decision = governor.decide(seconds(now), &available(500), &level(1000, 1024));
        assert_eq!(decision.shrink_to_bytes, None);
        assert_eq!((decision.no_grow_until, decision.next_check), (None, None));
    }
}

#[test]
fn a_shortage_shrinks_by_the_bytes_that_are_lacking() {
    let mut governor = Governor::new(CONFIG);
    let decision = governor.decide(seconds(1), &available(60), &level(1000, 1024));
    assert_eq!(decision.shrink_to_bytes, Some(960 * MIB), "40 MiB less than the size");
    assert_eq!(decision.give_bytes, 40 * MIB);
    assert_eq!(decision.no_grow_until, Some(seconds(6)));
    assert_eq!(decision.next_check, Some(seconds(2)));
}

#[test]
fn a_small_shortage_shrinks_by_a_128th() {
    let mut governor = Governor::new(CONFIG);
    let at = level(1024, 1024);
    let reading = Reading { available_bytes: Some(100 * MIB - 1), ..Reading::default() };
    let give_bytes = (1024 - 64) * MIB / 128;
    let decision = governor.decide(seconds(1), &reading, &at);
    assert_eq!(decision.shrink_to_bytes, Some(1024 * MIB - give_bytes));
    let stalled = Reading { stalled: true, ..available(900) };
    let decision = Governor::new(CONFIG).decide(seconds(1), &stalled, &at);
    assert_eq!(decision.shrink_to_bytes, Some(1024 * MIB - give_bytes));
}

#[test]
fn a_shortage_that_returns_at_once_takes_twice_as_much_and_then_nothing_more() {
    let mut governor = Governor::new(CONFIG);
    let mut now = seconds(1);
    let mut give = |governor: &mut Governor, later: Duration, size_mib: u64| {
        now += later;
        governor.decide(now, &available(90), &level(size_mib, 1024)).give_bytes / MIB
    };
    let at_once = Duration::from_millis(20);
    assert_eq!(give(&mut governor, at_once, 1000), 10, "what is lacking");
    assert_eq!(give(&mut governor, at_once, 990), 20);
    assert_eq!(give(&mut governor, at_once, 970), 40);
    assert_eq!(
        give(&mut governor, Duration::from_millis(200), 930),
        10,
        "the other program waits now"
    );
    assert_eq!(give(&mut governor, at_once, 80), 16, "no more than there is above the floor");
}

#[test]
fn the_scarcer_of_system_and_cgroup_counts() {
    let read = |available_mib: u64, headroom_mib: i64| Reading {
        available_bytes: Some(available_mib * MIB),
        headroom_bytes: Some(headroom_mib * MIB as i64),
        stalled: false,
    };
    let shrink = |reading| {
        let decision = Governor::new(CONFIG).decide(seconds(0), &reading, &level(1000, 1000));
        decision.shrink_to_bytes.map(|to_bytes| to_bytes / MIB)
    };
    assert_eq!(shrink(read(5000, 500)), None);
    assert_eq!(shrink(read(5000, -40)), Some(950));
    assert_eq!(shrink(read(40, 5000)), Some(940));
    assert_eq!(shrink(read(90, -20)), Some(970));
    assert_eq!(shrink(Reading::default()), None);
}

#[test]
fn tight_memory_denies_growth_but_shrinks_nothing() {
    let mut governor = Governor::new(CONFIG);
    let decision = governor.decide(seconds(1), &available(120), &level(1000, 1024));
    assert_eq!(decision.shrink_to_bytes, None);
    assert_eq!((decision.no_grow_until, decision.next_check), (Some(seconds(6)), None));
    let decision = governor.decide(seconds(4), &available(900), &level(1000, 1024));
    assert_eq!(decision.no_grow_until, Some(seconds(6)), "not before the time is over");
    let decision = governor.decide(seconds(6), &available(900), &level(1000, 1024));
    assert_eq!(decision.no_grow_until, None);
}

#[test]
fn a_lasting_shortage_comes_to_the_floor_and_no_further_and_then_is_quiet() {
    let mut governor = Governor::new(CONFIG);
    let mut at = level(1000, 1024);
    let mut checks = 0;
    let mut now = seconds(0);
    loop {
        let decision = governor.decide(now, &available(70), &at);
        if let Some(to_bytes) = decision.shrink_to_bytes {
            assert!(to_bytes >= at.min_bytes && to_bytes < at.target_bytes);
            at.target_bytes = to_bytes;
            at.size_bytes = at.size_bytes.min(to_bytes);
        }
        checks += 1;
        let Some(next) = decision.next_check else {
            break;
        };
        assert_eq!(next, now + seconds(1));
        now = next;
    }
    assert_eq!(at.target_bytes, at.min_bytes);
    assert_eq!(checks, (1000 - 64_u32).div_ceil(30));
    let decision = governor.decide(now + seconds(1), &available(70), &at);
    assert_eq!((decision.shrink_to_bytes, decision.next_check), (None, None));
}

#[test]
fn a_shrink_that_frees_nothing_is_not_tried_again_by_the_clock() {
    let mut governor = Governor::new(CONFIG);
    let first = governor.decide(seconds(0), &available(70), &level(1000, 1024));
    assert!(first.next_check.is_some());
    // All is held: the size stays.
    let second = governor.decide(seconds(1), &available(70), &level(1000, 970));
    assert_eq!(second.next_check, None);
}

/// A system whose memory the test plays.
#[derive(Default)]
struct Played {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    available_bytes: Option<u64>,
    /// The next reading panics.
    panics: bool,
    awakenings: VecDeque<WakeReason>,
    waits: Vec<Option<Duration>>,
    waiting: bool,
}

struct Port(Arc<Played>);

impl Pressure for Port {
    fn wait(&mut self, timeout: Option<Duration>) -> WakeReason {
        let mut state = self.0.state.lock().unwrap();
        state.waits.push(timeout);
        // A timeout is over at once here: the clock is the test's.
        while state.awakenings.is_empty() {
            if timeout.is_some() {
                return WakeReason::TimedOut;
            }
            state.waiting = true;
            self.0.changed.notify_all();
            state = self.0.changed.wait(state).unwrap();
        }
        state.waiting = false;
        state.awakenings.pop_front().unwrap()
    }

    fn read(&mut self) -> Reading {
        let mut state = self.0.state.lock().unwrap();
        let (available_bytes, panics) = (state.available_bytes, std::mem::take(&mut state.panics));
        drop(state);
        assert!(!panics, "on purpose");
        Reading { available_bytes, ..Reading::default() }
    }

    fn waker(&self) -> Waker {
        let played = Arc::clone(&self.0);
        Arc::new(move || played.wake(WakeReason::Woken))
    }
}

impl Played {
    fn wake(&self, awakening: WakeReason) {
        let mut state = self.state.lock().unwrap();
        state.awakenings.push_back(awakening);
        state.waiting = false;
        self.changed.notify_all();
    }

    fn set_available(&self, mib: u64) {
        self.state.lock().unwrap().available_bytes = Some(mib * MIB);
    }

    /// Waits until the thread waits without a timeout; returns how often it has waited.
    fn settle(&self) -> usize {
        let mut state = self.state.lock().unwrap();
        while !state.waiting {
            let waited = self.changed.wait_timeout(state, BOUND).unwrap();
            state = waited.0;
            assert!(state.waiting || !waited.1.timed_out(), "the thread never comes to rest");
        }
        state.waits.len()
    }
}

fn put(cache: &Cache<u64, ()>, keys: std::ops::Range<u64>) -> Vec<Hold<u64, ()>> {
    keys.map(|key| cache.insert(key, (), MIB, Kind::Data, Access::Demand)).collect()
}

fn played(
    check_every_bytes: Option<u64>,
    retry: Duration,
) -> (Arc<Played>, Cache<u64, ()>, Reclaimer) {
    let cache = Cache::builder(1000 * MIB).min_bytes(100 * MIB).sublists(4).build();
    let played = Arc::new(Played::default());
    played.set_available(5000);
    let governor = GovernorConfig { grow_retry: retry, ..CONFIG };
    let config = ReclaimerConfig { governor, check_every_bytes };
    let reclaimer = Reclaimer::spawn(&cache, Port(Arc::clone(&played)), config).unwrap();
    played.settle();
    (played, cache, reclaimer)
}

#[test]
fn the_thread_shrinks_to_the_floor_lets_it_grow_again_and_sleeps_in_between() {
    let (system, cache, reclaimer) = played(None, Duration::ZERO);
    drop(put(&cache, 0..1000));
    assert_eq!(system.settle(), 1, "no event, no wake-up");
    assert_eq!(cache.size_bytes(), 1000 * MIB);

    system.set_available(0);
    system.wake(WakeReason::Pressure);
    system.settle();
    let level = cache.level();
    assert_eq!((level.size_bytes, level.target_bytes), (100 * MIB, 100 * MIB));
    assert_eq!(cache.stats().arc_no_grow, 1);
    assert_eq!(cache.stats().reclaim_bytes, 900 * MIB);

    // Short still: growth that is wanted is looked into, and denied.
    drop(put(&cache, 2000..2010));
    system.settle();
    assert_eq!(cache.level().target_bytes, 100 * MIB);

    system.set_available(5000);
    let mut rounds = 0;
    while cache.level().target_bytes < 1000 * MIB {
        drop(put(&cache, 3000..4000));
        system.settle();
        rounds += 1;
        assert!(rounds < 20, "{:?}", cache.level());
    }
    assert_eq!((cache.size_bytes(), cache.stats().arc_no_grow), (1000 * MIB, 0));
    cache.validate().unwrap();

    let before = system.settle();
    drop(put(&cache, 5000..6000));
    (0..100).for_each(|key| drop(cache.get(&key, Access::Demand)));
    assert_eq!(system.settle(), before, "at rest with ample memory nothing wakes it");
    drop(reclaimer);
}

#[test]
fn the_thread_shrinks_after_a_look_that_panicked() {
    let (system, cache, reclaimer) = played(None, Duration::ZERO);
    drop(put(&cache, 0..1000));
    system.set_available(0);
    system.state.lock().unwrap().panics = true;
    system.wake(WakeReason::Pressure);
    system.settle();
    assert_eq!(cache.size_bytes(), 100 * MIB, "it has looked again by itself");
    cache.validate().unwrap();
    drop(reclaimer);
}

#[test]
fn the_thread_looks_in_proportion_to_arrivals() {
    let (system, cache, reclaimer) = played(Some(100 * MIB), seconds(5));
    for batch in 1..=5 {
        drop(put(&cache, batch * 1000..batch * 1000 + 100));
        assert_eq!(system.settle(), 1 + batch as usize);
    }
    // No event of pressure is needed.
    system.set_available(50);
    drop(put(&cache, 10_000..10_100));
    system.settle();
    assert_eq!(cache.level().target_bytes, 100 * MIB);
    drop(reclaimer);
    assert_eq!(cache.stats().arc_no_grow, 0, "no thread is left to allow growth again");
}

#[test]
fn with_everything_held_the_thread_gives_up_and_sleeps() {
    let (system, cache, reclaimer) = played(None, seconds(5));
    let held = put(&cache, 0..1000);
    system.set_available(50);
    system.wake(WakeReason::Pressure);
    let waits = system.settle();
    assert!(waits <= 4, "{waits} waits");
    assert_eq!(cache.size_bytes(), 1000 * MIB);
    assert!(cache.stats().arc_need_free > 0);
    let target_bytes = cache.level().target_bytes;
    drop(held);
    assert_eq!(cache.size_bytes(), target_bytes, "it goes with the holds");
    assert_eq!(system.settle(), waits);
    drop(reclaimer);
}

#[test]
fn the_thread_ends_with_its_handle_and_does_not_keep_the_cache() {
    let (system, cache, reclaimer) = played(None, seconds(5));
    let value = Arc::new(());
    let other: Cache<u64, Arc<()>> = Cache::new(1000);
    drop(other.insert(1, Arc::clone(&value), 1, Kind::Data, Access::Demand));
    drop(cache);
    system.wake(WakeReason::Woken);
    drop(reclaimer);
    drop(other);
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn reclaim_gives_back_the_bytes_asked_for_and_stops_at_the_floor() {
    let cache = Cache::builder(1000).min_bytes(300).sublists(4).build();
    for key in 0..100_u64 {
        drop(cache.insert(key, (), 10, Kind::Data, Access::Demand));
    }
    assert_eq!(cache.reclaim(250), 250);
    assert_eq!(cache.reclaim(250), 250);
    assert_eq!(cache.reclaim(1000), 200);
    assert_eq!(cache.reclaim(1000), 0);
    let level = cache.level();
    assert_eq!((level.size_bytes, level.target_bytes), (300, 300));
    // If growth is not denied, the target grows with the next arrivals.
    for key in 0..100_u64 {
        drop(cache.insert(key, (), 10, Kind::Data, Access::Demand));
    }
    assert_eq!(cache.size_bytes(), 1000);
    cache.reclaim(100);
    assert_eq!(cache.level().room_bytes(), 1000, "it may rise again");
    cache.deny_growth(Instant::now() + seconds(3600));
    cache.reclaim(400);
    assert_eq!(cache.level().room_bytes(), 500);
    for key in 200..300_u64 {
        drop(cache.insert(key, (), 10, Kind::Data, Access::Demand));
    }
    assert_eq!(cache.size_bytes(), 500);
    cache.validate().unwrap();
}

#[test]
fn a_lowered_target_is_counted_from_the_size_not_from_the_capacity() {
    let cache: Cache<u64, ()> = Cache::new(1_000_000);
    drop(cache.insert(1, (), 100, Kind::Data, Access::Demand));
    assert_eq!(cache.reclaim(40), 100, "the only entry does not fit into 60");
    assert_eq!(cache.level().target_bytes, 60);
}

#[test]
fn nodes_of_reclaimed_entries_are_given_back() {
    let cache = Cache::builder(1_000_000).sublists(1).build();
    for key in 0..100_000_u64 {
        drop(cache.insert(key, (), 1, Kind::Metadata, Access::Demand));
    }
    let full = cache.stats().hdr_size;
    let held: Vec<_> = (0..10).map(|n| cache.get(&(n * 9999), Access::Demand).unwrap()).collect();
    cache.reclaim(u64::MAX);
    cache.validate().unwrap();
    let stats = cache.stats();
    assert_eq!((stats.entries, stats.ghosts), (10, 0));
    drop(held);
    cache.clear();
    let empty = cache.stats().hdr_size;
    assert!(empty * 100 < full, "{full} bytes of nodes before, {empty} after");
}
