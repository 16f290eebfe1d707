//! The referees of the duel, one for each kind: what they are shown, and what comes of it.
//!
//! A referee sees the requests of a sample of keys, chosen by hash: misses when they arrive, hits
//! when their notes are applied to the lists. Whether a key is sampled is a mask on its hash, and
//! an entry whose key is has a flag in its word, so a hit asks nobody.
//!
//! Lock order: a sublist, a referee, the ledger. A hit that has to empty its ring never waits for
//! a referee: what it would have shown is lost for all rules alike (`referee_busy`).

use super::core::Core;
use crate::counters::Event;
use crate::policy::Kind;
use crate::policy::duel::{Referee, Rule, is_sampled};
use crate::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};
use crate::sync::{Mutex, lock_counted, try_lock};

/// Misses shown between two looks at the capacity of the kind.
const LOOK_EVERY: u32 = 32;

/// A capacity is followed when it has changed by more than this part.
const FOLLOW_DIVISOR: u64 = 16;

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
    /// How often the sample has been halved, for those who only ask whether a key is in it.
    thinning: AtomicU32,
    /// The rule of the kind, for those without the ledger.
    rule: AtomicU8,
}

/// What is known of a referee.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    pub(crate) rule: Rule,
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
            thinning: AtomicU32::new(0),
            rule: AtomicU8::new(Rule::FIRST as u8),
        }))
    }

    /// Whether a referee wants to hear of a key.
    pub(crate) fn is_sampled(&self, kind: Kind, hash: u64) -> bool {
        is_sampled(hash, self.0[kind as usize].thinning.load(Relaxed))
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

    /// Shows the referee of a kind a request of a key that is sampled, and goes by what it says.
    /// Not with the ledger locked. A hit does not wait.
    pub(crate) fn show(&self, kind: Kind, hash: u64, weight_bytes: u64, may_wait: bool) {
        let Some(referees) = self.referees.as_ref() else {
            return;
        };
        if !referees.is_sampled(kind, hash) {
            return;
        }
        let one = &referees.0[kind as usize];
        let panel = if may_wait {
            Some(lock_counted(&one.panel, &self.counters))
        } else {
            try_lock(&one.panel)
        };
        let Some(mut panel) = panel else {
            self.counters.count(Event::RefereeBusy);
            return;
        };
        self.counters.count(Event::RefereeRequests);
        if may_wait {
            if panel.until_look == 0 {
                panel.until_look = LOOK_EVERY;
                let capacity_bytes = self.ledger().balance.capacity_bytes(kind) as u64;
                panel.follow(capacity_bytes);
            }
            panel.until_look -= 1;
        }
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
            rule: referee.rule(),
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
