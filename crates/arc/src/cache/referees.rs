//! The referees of the duel, one for each kind: what they are shown, and what comes of it.
//!
//! A referee sees the requests of a sample of keys, chosen by hash. Whether a key is sampled is a
//! mask on its hash, and an entry whose key is has a flag in its word, so a hit asks nobody. Hits
//! of the sample lie in a ring, one for each processor, until the next miss of the sample, in any
//! thread, shows all of them, and then itself: so requests are shown in the order in which they were
//! made, but for the hits of several threads between two misses. A hit that finds its ring half full
//! shows the eldest few. It never waits for the referee: if somebody has it until the ring is full,
//! hits are lost for all rules alike (`referee_busy`). That is why half a ring is left: in a run of
//! hits in several threads the referee is busy most of the time, and a rule that lives on such runs
//! (LRU where a loop turns round) came out behind others when they were not shown.
//!
//! Hits are shown as far as arrivals have given credit (`table::recency`); the rest is
//! spared (`referee_spared`), and so is the miss that ends such a time: the referee sees stretches
//! of requests as they came, not all that misses and a part of what hits, which would speak
//! against the rule in force. If every hit counts, there is no such limit.
//!
//! A referee's lock is taken alone, and the ledger's within it when a rule changes.

use super::core::Core;
use super::noted::Ring;
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

/// Hits that are shown when a ring is half full. A hit that finds it so pays for them: all at once
/// would take several microseconds, and would be met by one hit in a thousand.
const PORTION: u32 = 2;

struct Panel {
    referee: Referee,
    capacity_bytes: u64,
    until_look: u32,
}

impl Panel {
    fn follow(&mut self, capacity_bytes: u64) {
        if capacity_bytes.abs_diff(self.capacity_bytes) > self.capacity_bytes / FOLLOW_DIVISOR {
            self.capacity_bytes = capacity_bytes;
            self.referee.set_capacity(capacity_bytes);
        }
    }
}

struct OneKind {
    panel: Mutex<Panel>,
    rings: Box<[Ring]>,
    /// How often the sample has been halved, for those who only ask whether a key is in it.
    thinning: AtomicU32,
    /// The rule of the kind, for those without the ledger.
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
    pub(crate) fn new(capacity_bytes: u64) -> Self {
        Self(Kind::ALL.map(|_| OneKind {
            panel: Mutex::new(Panel {
                referee: Referee::new(capacity_bytes),
                capacity_bytes,
                until_look: 0,
            }),
            rings: (0..threads::stripes()).map(|_| Ring::new()).collect(),
            thinning: AtomicU32::new(0),
            rule: AtomicU8::new(Rule::FIRST as u8),
        }))
    }

    /// Whether a referee wants to hear of a key.
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
    /// The rule a kind goes by.
    pub(crate) fn rule(&self, kind: Kind) -> Rule {
        self.referees.as_ref().map_or(Rule::Arc, |referees| referees.rule(kind))
    }

    /// Whether hits on a key are to be noted in any case.
    pub(crate) fn is_watched(&self, kind: Kind, hash: u64) -> bool {
        self.referees.as_ref().is_some_and(|referees| referees.is_sampled(kind, hash))
    }

    /// Keeps a hit on a key that is sampled for the referee of its kind. At once, if the lists
    /// are to be exact.
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
            && let Some(mut panel) = try_lock(&referees.0[kind as usize].panel)
        {
            ring.drain(PORTION, |hash, weight_bytes| {
                self.request(referees, &mut panel, kind, (hash, weight_bytes));
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
        let recency = &self.shard_of(hash).recency;
        let spent = || recency.is_spent(kind, threads::number(), self.arrivals());
        if !recency.is_exact() && spent() {
            self.counters.count(Event::RefereeSpared);
            return;
        }
        let mut panel = lock_counted(&referees.0[kind as usize].panel, &self.counters);
        if panel.until_look == 0 {
            panel.until_look = LOOK_EVERY;
            let capacity_bytes = self.ledger().balance.capacity_bytes(kind) as u64;
            panel.follow(capacity_bytes);
        }
        panel.until_look -= 1;
        self.show_noted(referees, &mut panel, kind);
        self.request(referees, &mut panel, kind, (hash, weight_bytes));
    }

    /// Shows the hits that all threads have noted.
    fn show_noted(&self, referees: &Referees, panel: &mut Panel, kind: Kind) {
        for ring in &referees.0[kind as usize].rings {
            ring.drain(u32::MAX, |hash, weight_bytes| {
                self.request(referees, panel, kind, (hash, weight_bytes));
            });
        }
    }

    fn request(
        &self,
        referees: &Referees,
        panel: &mut Panel,
        kind: Kind,
        (hash, weight_bytes): (u64, u64),
    ) {
        let one = &referees.0[kind as usize];
        self.counters.count(Event::RefereeRequests);
        if let Some(verdict) = panel.referee.request(hash, weight_bytes) {
            // The referee stays locked, so that verdicts come into force in their order.
            self.ledger().balance.set_rule(kind, verdict.rule, verdict.mru_share);
            one.rule.store(verdict.rule as u8, Relaxed);
        }
        let thinning = panel.referee.thinning();
        if one.thinning.load(Relaxed) != thinning {
            one.thinning.store(thinning, Relaxed);
        }
    }

    /// Tells the referees of a target that was moved by somebody's wish.
    pub(crate) fn follow_target(&self) {
        let Some(referees) = self.referees.as_ref() else {
            return;
        };
        for kind in Kind::ALL {
            let mut panel = lock_counted(&referees.0[kind as usize].panel, &self.counters);
            let capacity_bytes = self.ledger().balance.capacity_bytes(kind) as u64;
            panel.follow(capacity_bytes);
        }
    }

    /// What is known of the referee of a kind, if there is one.
    pub(crate) fn standing(&self, kind: Kind) -> Option<Standing> {
        let referees = self.referees.as_ref()?;
        let panel = lock_counted(&referees.0[kind as usize].panel, &self.counters);
        let referee = &panel.referee;
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
            let panel = lock_counted(&referees.0[kind as usize].panel, &self.counters);
            panel.referee.validate()?;
            let rules = (Some(panel.referee.rule()), Some(referees.rule(kind)));
            let in_force = self.ledger().balance.rule(kind);
            if rules != (in_force, in_force) {
                return Err(format!("{kind:?} goes by {in_force:?}, the referee says {rules:?}"));
            }
        }
        Ok(())
    }
}
