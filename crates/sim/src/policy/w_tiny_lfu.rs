//! W-TinyLFU (Einziger, Friedman and Manes, "TinyLFU: A Highly Efficient Cache Admission Policy",
//! ACM TOS 2017). New entries stay in a small LRU window. An entry that leaves it enters the main
//! cache only if it was requested more often than the main cache's oldest entry. The main cache is
//! a segmented LRU with 80% protected.
//!
//! The window starts at 1%. The adaptive flavour follows the hit ratio by hill climbing (Einziger,
//! Eytan, Friedman and Manes, "Adaptive Software Cache Management", Middleware '18). The first step
//! is 6.25% of the cache, and each is 0.98 times the last. When the hit ratio jumps by 5 points,
//! the steps start again at full size.
//!
//! With exact counts every cell equals that of Caffeine's simulator. With a sketch the rule is the
//! same, but the hash differs. Then, as in Caffeine, a frequent candidate that lost is admitted
//! once in 128 times. So no client can lock others out by hash collisions.

use super::frequency_sketch::Frequency;
use super::linked_lists::{Id, Lists};
use super::{Counts, Policy, Request};

const WINDOW: usize = 0;
const PROBATION: usize = 1;
const PROTECTED: usize = 2;

const MAIN_SHARE: f64 = 0.99;
const PROTECTED_SHARE: f64 = 0.8;

const STEP: f64 = 0.0625;
const STEP_DECAY: f64 = 0.98;
/// The climber stops at steps this small.
const STEP_MIN: f64 = 0.01;
const RESTART: f64 = 0.05;
/// Requests per entry between two steps of the climber.
const REQUESTS_AN_ENTRY: u64 = 10;

/// A candidate that lost but has at least this count is admitted once in `LUCKY_ONE_IN` times.
const WARM: u64 = 6;
const LUCKY_ONE_IN: u64 = 128;

/// The flavours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flavour {
    /// Whether the window follows the hit ratio.
    pub(crate) adaptive: bool,
    /// Whether every key is counted exactly, without a sketch and without random admission.
    pub(crate) exact: bool,
}

/// The cache.
#[derive(Debug)]
pub(crate) struct WTinyLfu {
    lists: Lists<3>,
    frequency: Frequency,
    capacity_bytes: u64,
    window_bytes_max: u64,
    protected_bytes_max: u64,
    evictions: u64,
    climber: Option<Climber>,
    /// State of the generator for random admission; `None` without it.
    random: Option<u64>,
}

/// Hill climbing over the size of the window.
#[derive(Debug)]
struct Climber {
    requests: u64,
    hits: u64,
    /// Requests between two steps.
    requests_max: u64,
    ratio_before: f64,
    step_bytes: f64,
    grows: bool,
    /// The fraction of a byte that the window should have in addition to its whole bytes.
    fraction: f64,
}

impl Climber {
    fn new(capacity_bytes: u64, entries: u64) -> Self {
        Self {
            requests: 0,
            hits: 0,
            requests_max: REQUESTS_AN_ENTRY * entries,
            ratio_before: 0.0,
            step_bytes: STEP * capacity_bytes as f64,
            grows: false,
            fraction: 0.0,
        }
    }

    /// Counts a request of a full cache. Returns the bytes by which the window should grow, or
    /// shrink if negative.
    fn request(&mut self, hit: bool, capacity_bytes: u64) -> Option<f64> {
        self.requests += 1;
        self.hits += u64::from(hit);
        if self.requests < self.requests_max {
            return None;
        }
        let ratio = self.hits as f64 / self.requests as f64;
        if ratio < self.ratio_before {
            self.grows = !self.grows;
        }
        if (ratio - self.ratio_before).abs() >= RESTART {
            self.step_bytes = STEP * capacity_bytes as f64;
        }
        let step_bytes = if self.grows { self.step_bytes } else { -self.step_bytes };
        (self.requests, self.hits, self.ratio_before) = (0, 0, ratio);
        self.step_bytes *= STEP_DECAY;
        if self.step_bytes <= STEP_MIN {
            self.requests_max = u64::MAX;
        }
        Some(step_bytes)
    }
}

impl WTinyLfu {
    /// `entry_bytes` is the expected weight of an entry. It determines the size of the sketch, and
    /// how often counts are halved and the climber steps.
    pub(crate) fn new(capacity_bytes: u64, entry_bytes: u64, flavour: Flavour) -> Self {
        let entries = (capacity_bytes / entry_bytes.max(1)).max(1);
        let main_bytes = (capacity_bytes as f64 * MAIN_SHARE) as u64;
        let frequency =
            if flavour.exact { Frequency::exact } else { Frequency::sketch }(entries as usize);
        Self {
            lists: Lists::new(),
            frequency,
            capacity_bytes,
            window_bytes_max: capacity_bytes - main_bytes,
            protected_bytes_max: (main_bytes as f64 * PROTECTED_SHARE) as u64,
            evictions: 0,
            climber: flavour.adaptive.then(|| Climber::new(capacity_bytes, entries)),
            random: (!flavour.exact).then_some(1),
        }
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
        while self.lists.list_bytes(PROTECTED) > self.protected_bytes_max {
            let Some(oldest) = self.lists.back(PROTECTED) else { return };
            self.lists.move_to_front(PROBATION, oldest);
        }
    }

    fn fraction(&self) -> f64 {
        self.climber.as_ref().map_or(0.0, |climber| climber.fraction)
    }

    /// Entries that do not fit into the window compete with the oldest of the main cache. At most
    /// as many bytes compete as have just arrived.
    fn drain_window(&mut self, arrived_bytes: u64) {
        let mut moved_bytes = 0;
        while moved_bytes < arrived_bytes
            && self.lists.list_bytes(WINDOW) as f64 + self.fraction() > self.window_bytes_max as f64
            && let Some(candidate) = self.lists.back(WINDOW)
        {
            moved_bytes += self.lists.bytes(candidate);
            self.lists.move_to_front(PROBATION, candidate);
            self.make_room_for(candidate);
        }
        // Some entries weigh more than expected.
        while self.resident_bytes() > self.capacity_bytes {
            let oldest = [PROBATION, PROTECTED, WINDOW].into_iter();
            let Some(oldest) = oldest.filter_map(|list| self.lists.back(list)).next() else {
                return;
            };
            self.evict(oldest);
        }
    }

    /// Evicts for a candidate that has entered the main cache, or evicts the candidate.
    fn make_room_for(&mut self, candidate: Id) {
        while self.resident_bytes() > self.capacity_bytes
            && let Some(victim) = self.lists.back(PROBATION)
        {
            if victim == candidate || !self.admits(candidate, victim) {
                self.evict(candidate);
                return;
            }
            self.evict(victim);
        }
    }

    fn admits(&mut self, candidate: Id, victim: Id) -> bool {
        let frequency = |id| self.frequency.estimate(self.lists.key(id));
        let (candidate, victim) = (frequency(candidate), frequency(victim));
        candidate > victim || (candidate >= WARM && self.is_chosen_at_random())
    }

    fn is_chosen_at_random(&mut self) -> bool {
        self.random.as_mut().is_some_and(|random| {
            // The upper bits of Knuth's multiplier are good.
            *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (*random >> 40).is_multiple_of(LUCKY_ONE_IN)
        })
    }

    fn evict(&mut self, id: Id) {
        self.lists.remove(id);
        self.evictions += 1;
    }

    /// Moves the border between the window and the protected segment, and this many bytes across
    /// it.
    fn resize_window(&mut self, step_bytes: f64) {
        let most = if step_bytes >= 0.0 { self.protected_bytes_max } else { self.window_bytes_max };
        let step_bytes = step_bytes.clamp(-(most as f64), most as f64);
        let Some(climber) = self.climber.as_mut().filter(|_| most > 0) else { return };
        let window_bytes = self.lists.list_bytes(WINDOW) as f64;
        let wanted_bytes = window_bytes + climber.fraction + step_bytes;
        climber.fraction = wanted_bytes - wanted_bytes.trunc();
        let (from, change_bytes) = if step_bytes >= 0.0 {
            (PROBATION, (wanted_bytes.trunc() - window_bytes) as u64)
        } else {
            (WINDOW, (window_bytes - wanted_bytes.trunc()) as u64)
        };
        if from == PROBATION {
            self.window_bytes_max += change_bytes;
            self.protected_bytes_max = self.protected_bytes_max.saturating_sub(change_bytes);
            self.demote_protected();
        } else {
            self.window_bytes_max = self.window_bytes_max.saturating_sub(change_bytes);
            self.protected_bytes_max += change_bytes;
        }
        let mut left_bytes = change_bytes;
        while let Some(oldest) = self.lists.back(from)
            && self.lists.bytes(oldest) <= left_bytes
        {
            left_bytes -= self.lists.bytes(oldest);
            match from {
                PROBATION => self.lists.move_to_front(WINDOW, oldest),
                // The next to be evicted.
                _ => self.lists.move_to_back(PROBATION, oldest),
            }
        }
    }
}

impl Policy for WTinyLfu {
    fn access(&mut self, request: &Request) -> bool {
        let full = self.resident_bytes() + request.bytes > self.capacity_bytes;
        self.frequency.add(request.key);
        let found = self.lists.find(request.key);
        match found {
            Some(id) => self.hit(id),
            None => {
                self.lists.push_front(WINDOW, request.key, request.bytes);
                self.drain_window(request.bytes);
            }
        }
        let capacity_bytes = self.capacity_bytes;
        if let Some(climber) = self.climber.as_mut().filter(|_| full)
            && let Some(step_bytes) = climber.request(found.is_some(), capacity_bytes)
        {
            self.resize_window(step_bytes);
        }
        found.is_some()
    }

    fn counts(&self) -> Counts {
        Counts { evictions: self.evictions, ghost_hits: None }
    }

    fn resident_bytes(&self) -> u64 {
        [WINDOW, PROBATION, PROTECTED].iter().map(|&list| self.lists.list_bytes(list)).sum()
    }
}
