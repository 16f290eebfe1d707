//! The referee: four small directories of sampled keys, one for each rule. All see the same
//! requests. The rule whose directory has the most hits is the one for the cache.
//!
//! Keys are sampled by their hash. The directories are as much smaller than the cache as the sample
//! is smaller than the key space (SHARDS, Waldspurger et al., FAST '15). So each has the hit ratio
//! that the cache would have had, had it always been under that rule. A small cache is not sampled:
//! its directories see every key.
//!
//! A change of rule costs: what one rule has gathered is not what another would have. So:
//! - A new rule must lead by more than the noise: the square root of how often the two rules have
//!   disagreed. It must also lead by a quarter of a cacheful of hits.
//! - To go home to ARC the noise is enough. So the cache is hardly ever worse than ARC for long.
//!
//! Scores are halved every 16 cachefuls of requests: older times count less.

use super::ruled_cache::RuledCache;
use super::rules::{Constants, Lists, Rule};

const RULES: usize = Rule::ALL.len();

/// The referee's answer to a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// The rule that the cache goes by from now on.
    pub rule: Rule,
    /// ARC's `p` as a share of the capacity, as its directory has it.
    pub mru_share: f64,
}

/// Chooses the rule for one cache, or for one kind of its entries.
///
/// It should see every request of a sampled key, hits included. Hits may come late and in batches,
/// and some may be missing.
#[derive(Debug)]
pub struct Referee {
    shadows: [RuledCache<u64>; RULES],
    constants: Constants,
    capacity_bytes: u64,
    /// A key is sampled if this many of its hash's bits are zero.
    thinning: u32,
    scores: [f64; RULES],
    /// How often each rule has disagreed with the one in use, since it is in use.
    disagreements: [f64; RULES],
    current: Rule,
    until_halving: u64,
    changes: u64,
}

impl Referee {
    /// For a cache of `capacity_bytes`.
    #[must_use]
    pub fn new(capacity_bytes: u64) -> Self {
        Self::with_constants(capacity_bytes, Constants::DEFAULT)
    }

    /// The same with other constants.
    #[must_use]
    pub fn with_constants(capacity_bytes: u64, constants: Constants) -> Self {
        Self {
            shadows: Rule::ALL.map(|rule| RuledCache::new(capacity_bytes, rule, constants)),
            constants,
            capacity_bytes,
            thinning: 0,
            scores: [0.0; RULES],
            disagreements: [0.0; RULES],
            current: Rule::FIRST,
            until_halving: 0,
            changes: 0,
        }
    }

    /// The rule in use.
    #[must_use]
    pub const fn rule(&self) -> Rule {
        self.current
    }

    /// How often the rule has changed.
    #[must_use]
    pub const fn changes(&self) -> u64 {
        self.changes
    }

    /// The share of sampled keys: one in this many.
    #[must_use]
    pub const fn sampled_one_in(&self) -> u64 {
        1 << self.thinning
    }

    /// How often the sample has been halved.
    pub(crate) const fn thinning(&self) -> u32 {
        self.thinning
    }

    /// Memory of the directories, in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.shadows.iter().map(|shadow| shadow.directory.heap_bytes()).sum()
    }

    /// Whether requests of a key have to be shown. Two instructions; needs no lock, if the caller
    /// keeps [`Referee::sampled_one_in`] at hand.
    #[must_use]
    pub const fn is_sampled(&self, hash: u64) -> bool {
        is_sampled(hash, self.thinning)
    }

    /// A request of a key, hit or miss. Says which rule to go by if that changes.
    pub fn request(&mut self, hash: u64, weight_bytes: u64) -> Option<Verdict> {
        if !self.is_sampled(hash) {
            return None;
        }
        let hits = {
            let shadows = self.shadows.each_mut();
            shadows.map(|shadow| shadow.access(hash, hash, weight_bytes).is_hit())
        };
        let resident = self.shadows.iter().map(RuledCache::resident).max().unwrap_or(0);
        if self.until_halving == 0 {
            self.until_halving = self.constants.half_life_cachefuls * resident as u64;
            self.scores = self.scores.map(|score| score / 2.0);
            self.disagreements = self.disagreements.map(|count| count / 2.0);
        }
        self.until_halving = self.until_halving.saturating_sub(1);
        let agreed = hits[self.current as usize];
        for (rule, hit) in hits.into_iter().enumerate() {
            self.scores[rule] += f64::from(u8::from(hit));
            self.disagreements[rule] += f64::from(u8::from(hit != agreed));
        }
        if resident > 2 * self.constants.shadow_entries {
            self.thin();
        }
        self.judge(resident)
    }

    fn judge(&mut self, resident: usize) -> Option<Verdict> {
        let cost = resident as f64 * self.constants.change_cost;
        let score = |rule: Rule| self.scores[rule as usize];
        let leads = |rule: Rule, cost: f64| {
            let noise = self.disagreements[rule as usize].sqrt() + 1.0;
            score(rule) - score(self.current) > noise + cost
        };
        let best = Rule::ALL.into_iter().max_by(|&a, &b| score(a).total_cmp(&score(b)))?;
        if best == self.current {
            return None;
        }
        let rule = if leads(best, cost) {
            best
        } else if leads(Rule::Arc, 0.0) {
            Rule::Arc
        } else {
            return None;
        };
        self.current = rule;
        self.changes += 1;
        self.disagreements = [0.0; RULES];
        Some(Verdict { rule, mru_share: self.shadows[Rule::Arc as usize].mru_share() })
    }

    /// Samples half as many keys.
    fn thin(&mut self) {
        self.thinning += 1;
        let (thinning, capacity_bytes) = (self.thinning, self.capacity_bytes);
        for shadow in &mut self.shadows {
            for id in shadow.directory.select(|hash| !is_sampled(hash, thinning)) {
                shadow.remove(id);
            }
            shadow.set_capacity(capacity_bytes >> thinning);
        }
        self.scores = self.scores.map(|score| score / 2.0);
        self.disagreements = self.disagreements.map(|count| count / 2.0);
    }

    /// Follows the cache's capacity.
    pub fn set_capacity(&mut self, capacity_bytes: u64) {
        self.capacity_bytes = capacity_bytes;
        for shadow in &mut self.shadows {
            shadow.set_capacity(capacity_bytes >> self.thinning);
        }
    }

    /// Recounts everything.
    ///
    /// # Errors
    /// The first invariant that does not hold, in words.
    pub fn validate(&self) -> Result<(), String> {
        for (shadow, rule) in self.shadows.iter().zip(Rule::ALL) {
            shadow.validate().map_err(|what| format!("shadow of {}: {what}", rule.name()))?;
            if shadow.rule() != rule
                || shadow.capacity_bytes() != self.capacity_bytes >> self.thinning
            {
                return Err(format!("the shadow of {} is another's", rule.name()));
            }
            if shadow.resident() > 2 * self.constants.shadow_entries + 1 {
                return Err(format!("{} entries in a shadow", shadow.resident()));
            }
        }
        Ok(())
    }
}

/// Whether a key is in a sample that has been halved so often.
pub(crate) const fn is_sampled(hash: u64, thinning: u32) -> bool {
    // Bits that neither the index nor the choice of a sublist goes by alone.
    let mixed = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 20) & ((1 << thinning) - 1) == 0
}
