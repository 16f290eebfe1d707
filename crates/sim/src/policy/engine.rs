//! Adapters to ogive's own code: ARC as printed, the duel of four rules, and the shipping engine.

use ogive_arc::policy::duel::Duel;
use ogive_arc::policy::{self, Outcome};
use ogive_arc::{Access, Cache, Kind, Source};
use std::convert::Infallible;

use super::{Counts, Policy, Request};

/// ARC as printed (Megiddo and Modha, FAST '03, Fig. 4), from `ogive-arc`.
#[derive(Debug)]
pub(crate) struct PaperArc {
    policy: policy::PlainArc<u64>,
    ghost_hits: u64,
}

impl PaperArc {
    pub(crate) fn new(capacity_bytes: u64) -> Self {
        Self { policy: policy::PlainArc::new(capacity_bytes), ghost_hits: 0 }
    }
}

impl Policy for PaperArc {
    fn access(&mut self, request: &Request) -> bool {
        let outcome = self.policy.access(request.key, request.bytes, Kind::Data);
        self.ghost_hits += u64::from(matches!(outcome, Outcome::GhostHit(_)));
        outcome.is_hit()
    }

    fn counts(&self) -> Counts {
        Counts { evictions: self.policy.evictions(), ghost_hits: Some(self.ghost_hits) }
    }

    fn resident_bytes(&self) -> u64 {
        let sizes = self.policy.balance().sizes();
        (0..sizes.len()).filter(|&list| !policy::is_ghost_list(list)).map(|list| sizes[list]).sum()
    }
}

/// The duel of four rules, from `ogive-arc`.
#[derive(Debug)]
pub(crate) struct FourRules {
    duel: Duel<u64>,
    ghost_hits: u64,
}

impl FourRules {
    pub(crate) fn new(capacity_bytes: u64) -> Self {
        Self { duel: Duel::new(capacity_bytes), ghost_hits: 0 }
    }
}

impl Policy for FourRules {
    fn access(&mut self, request: &Request) -> bool {
        let outcome = self.duel.access(request.key, request.bytes);
        self.ghost_hits += u64::from(matches!(outcome, Outcome::GhostHit(_)));
        outcome.is_hit()
    }

    fn counts(&self) -> Counts {
        Counts { evictions: self.duel.evictions(), ghost_hits: Some(self.ghost_hits) }
    }

    fn resident_bytes(&self) -> u64 {
        self.duel.live_bytes()
    }
}

/// The engine as a mount runs it, with one access at a time.
#[derive(Debug)]
pub(crate) struct Engine {
    cache: Cache<u64, ()>,
}

impl Engine {
    /// `sublists`: `None` for the number that the engine chooses for entries of this weight.
    pub(crate) fn new(
        capacity_bytes: u64,
        policy: ogive_arc::Policy,
        sublists: Option<usize>,
        entry_bytes: u64,
    ) -> Self {
        // The default on two processors, so that all machines give the same result.
        let builder = Cache::builder(capacity_bytes).rings(2);
        let builder = builder.policy(policy).expected_weight_bytes(entry_bytes);
        let builder = match sublists {
            Some(sublists) => builder.sublists(sublists),
            None => builder,
        };
        Self { cache: builder.build() }
    }
}

impl Policy for Engine {
    fn access(&mut self, request: &Request) -> bool {
        let load = || Ok::<_, Infallible>(((), request.bytes));
        let loaded = self.cache.get_or_load(&request.key, Kind::Data, Access::Demand, load);
        loaded.is_ok_and(|(_, source)| source == Source::Hit)
    }

    fn counts(&self) -> Counts {
        let stats = self.cache.stats();
        let ghost_hits = stats.mru_ghost_hits + stats.mfu_ghost_hits;
        Counts { evictions: stats.deleted, ghost_hits: Some(ghost_hits) }
    }

    fn resident_bytes(&self) -> u64 {
        self.cache.size_bytes()
    }
}
