//! The duel in the cache: a referee for each kind, the requests that it is shown, and its verdicts.
//! The rule changes here and nowhere else.
//!
//! The rest of the cache asks three questions: does the cache go by rules, by which one, and is a
//! key watched? It also notes hits on watched keys here, and shows misses of them.
//!
//! A referee sees the requests of a sample of keys, chosen by a mask on their hash. An entry whose
//! key is sampled has a flag in its word, so a hit needs no look-up to know. Hits of the sample lie
//! in rings, one for each processor. The next miss of the sample, in any thread, shows all of them
//! and then itself. So the referee sees requests in their order, except for hits of several threads
//! between two misses.
//!
//! A hit that finds its ring half full shows the oldest few, and never waits for the referee. If
//! another thread has the referee until the ring is full, hits are lost for all rules alike
//! (`referee_busy`). Half a ring is kept free for that: in a run of hits in several threads the
//! referee is busy most of the time. Lost hits would be unfair to a rule that needs such runs, such
//! as LRU in a loop that turns round.
//!
//! A hit is shown if arrivals have given credit for it (`table::hit_rings`). The rest is spared
//! (`referee_spared`), and so is the miss that ends such a time. So the referee sees unbroken
//! stretches of requests. If it saw all misses and only a part of the hits, that would speak
//! against the rule in force. An exact cache has no such limit.
//!
//! A referee's lock is taken alone, and the ledger's within it when a rule changes.

use super::core::Core;
use super::referee_ring::Ring;
use crate::counters::Event;
use crate::policy::Kind;
use crate::policy::duel::{Referee, Rule, is_sampled};
use crate::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};
use crate::sync::{Mutex, lock_counted, try_lock};
use crate::threads;

/// Misses shown between two looks at the capacity of the kind.
const LOOK_EVERY: u32 = 32;

/// A capacity is followed when it has changed by more than this part.
const FOLLOW_DIVISOR: u64 = 16;

/// Hits that are shown when a ring is half full. The hit that finds it so pays for them. All at
/// once would take several microseconds, for one hit in a thousand.
const PORTION: u32 = 2;

/// A referee, and the last known capacity of its kind.
struct RefereeState {
    referee: Referee,
    capacity_bytes: u64,
    until_look: u32,
}

impl RefereeState {
    fn follow(&mut self, capacity_bytes: u64) {
        if capacity_bytes.abs_diff(self.capacity_bytes) > self.capacity_bytes / FOLLOW_DIVISOR {
            self.capacity_bytes = capacity_bytes;
            self.referee.set_capacity(capacity_bytes);
        }
    }
}

struct OneKind {
    state: Mutex<RefereeState>,
    rings: Box<[Ring]>,
    /// How often the sample has been halved: a copy, to be read without the referee's lock.
    thinning: AtomicU32,
    /// The rule of the kind: a copy, to be read without the ledger's lock.
    rule: AtomicU8,
}

/// Figures of a referee.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    pub(crate) changes: u64,
    pub(crate) sampled_one_in: u64,
    pub(crate) heap_bytes: u64,
}

/// The referees of both kinds.
pub(crate) struct Referees([OneKind; 2]);

impl Referees {
    pub(crate) fn new(capacity_bytes: u64, rings: usize) -> Self {
        Self(Kind::ALL.map(|_| OneKind {
            state: Mutex::new(RefereeState {
                referee: Referee::new(capacity_bytes),
                capacity_bytes,
                until_look: 0,
            }),
            rings: (0..rings).map(|_| Ring::new()).collect(),
            thinning: AtomicU32::new(0),
            rule: AtomicU8::new(Rule::FIRST as u8),
        }))
    }

    /// Whether a key is in the sample of a kind.
    pub(crate) fn is_sampled(&self, kind: Kind, hash: u64) -> bool {
        is_sampled(hash, self.0[kind as usize].thinning.load(Relaxed))
    }

    fn ring(&self, kind: Kind) -> &Ring {
        let rings = &self.0[kind as usize].rings;
        &rings[threads::number() & (rings.len() - 1)]
    }

    pub(crate) fn rule(&self, kind: Kind) -> Rule {
        Rule::ALL[usize::from(self.0[kind as usize].rule.load(Relaxed))]
    }
}

impl<K, V> Core<K, V> {
    /// Whether the cache goes by the rules that referees choose, and not by ARC alone.
    #[inline]
    pub(crate) const fn goes_by_rules(&self) -> bool {
        self.referees.is_some()
    }

    /// The rule a kind goes by.
    pub(crate) fn rule(&self, kind: Kind) -> Rule {
        self.referees.as_ref().map_or(Rule::Arc, |referees| referees.rule(kind))
    }

    /// Whether every hit on a key has to be noted.
    pub(crate) fn is_watched(&self, kind: Kind, hash: u64) -> bool {
        self.referees.as_ref().is_some_and(|referees| referees.is_sampled(kind, hash))
    }

    /// Keeps a hit on a sampled key for the referee of its kind. An exact cache shows it at once.
    #[cold]
    pub(crate) fn note_watched(&self, kind: Kind, hash: u64, weight_bytes: u64, exact: bool) {
        let Some(referees) = self.referees.as_ref() else {
            return;
        };
        if exact {
            return self.show(kind, hash, weight_bytes);
        }
        let ring = referees.ring(kind);
        if ring.is_half_full()
            && let Some(mut state) = try_lock(&referees.0[kind as usize].state)
        {
            ring.drain(PORTION, |hash, weight_bytes| {
                self.request(referees, &mut state, kind, (hash, weight_bytes));
            });
        }
        if !ring.push(hash, weight_bytes) {
            self.counters.count(Event::RefereeBusy);
        }
    }

    /// Shows the referee of a kind a request, after the hits noted so far, if its key is sampled.
    /// Not under any other lock.
    pub(crate) fn show(&self, kind: Kind, hash: u64, weight_bytes: u64) {
        let Some(referees) = self.referees.as_ref().filter(|all| all.is_sampled(kind, hash)) else {
            return;
        };
        let hit_rings = &self.sublist_of(hash).hit_rings;
        let spent = || hit_rings.is_spent(kind, threads::number(), self.arrivals());
        if !hit_rings.is_exact() && spent() {
            self.counters.count(Event::RefereeSpared);
            return;
        }
        let mut state = lock_counted(&referees.0[kind as usize].state, &self.counters);
        if state.until_look == 0 {
            state.until_look = LOOK_EVERY;
            let capacity_bytes = self.ledger().balance.capacity_bytes(kind) as u64;
            state.follow(capacity_bytes);
        }
        state.until_look -= 1;
        self.show_noted(referees, &mut state, kind);
        self.request(referees, &mut state, kind, (hash, weight_bytes));
    }

    /// Shows the hits that all threads have noted.
    fn show_noted(&self, referees: &Referees, state: &mut RefereeState, kind: Kind) {
        for ring in &referees.0[kind as usize].rings {
            ring.drain(u32::MAX, |hash, weight_bytes| {
                self.request(referees, state, kind, (hash, weight_bytes));
            });
        }
    }

    fn request(
        &self,
        referees: &Referees,
        state: &mut RefereeState,
        kind: Kind,
        (hash, weight_bytes): (u64, u64),
    ) {
        let one = &referees.0[kind as usize];
        self.counters.count(Event::RefereeRequests);
        if let Some(verdict) = state.referee.request(hash, weight_bytes) {
            // The referee stays locked, so that verdicts come into force in their order.
            self.ledger().balance.set_rule(kind, verdict.rule, verdict.mru_share);
            one.rule.store(verdict.rule as u8, Relaxed);
        }
        let thinning = state.referee.thinning();
        if one.thinning.load(Relaxed) != thinning {
            one.thinning.store(thinning, Relaxed);
        }
    }

    /// Gives the referees a target that was changed from outside.
    pub(crate) fn follow_target(&self) {
        let Some(referees) = self.referees.as_ref() else {
            return;
        };
        for kind in Kind::ALL {
            let mut state = lock_counted(&referees.0[kind as usize].state, &self.counters);
            let capacity_bytes = self.ledger().balance.capacity_bytes(kind) as u64;
            state.follow(capacity_bytes);
        }
    }

    /// Figures of the referee of a kind, if there is one.
    pub(crate) fn standing(&self, kind: Kind) -> Option<Standing> {
        let referees = self.referees.as_ref()?;
        let state = lock_counted(&referees.0[kind as usize].state, &self.counters);
        let referee = &state.referee;
        Some(Standing {
            changes: referee.changes(),
            sampled_one_in: referee.sampled_one_in(),
            heap_bytes: referee.heap_bytes() as u64,
        })
    }

    /// Recounts the shadows.
    ///
    /// # Errors
    /// The first invariant that does not hold, in words.
    pub(crate) fn validate_referees(&self) -> Result<(), String> {
        let Some(referees) = self.referees.as_ref() else {
            return Ok(());
        };
        for kind in Kind::ALL {
            let state = lock_counted(&referees.0[kind as usize].state, &self.counters);
            state.referee.validate()?;
            let rules = (Some(state.referee.rule()), Some(referees.rule(kind)));
            let in_force = self.ledger().balance.rule(kind);
            if rules != (in_force, in_force) {
                return Err(format!("{kind:?} goes by {in_force:?}, the referee says {rules:?}"));
            }
        }
        Ok(())
    }
}
