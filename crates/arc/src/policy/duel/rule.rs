//! The four rules among which the duel chooses, and the constants they have.
//!
//! - LIRS: a newcomer waits in a window of 1%; a ghost that comes back goes to MFU if it was away
//!   for less long than the oldest entry has been idle; the window's oldest leaves next
//! - LRU: a newcomer goes to MRU; a ghost that comes back goes to MFU; the oldest of all leaves
//!   next
//! - 2Q: a newcomer waits in a window of 10%, must be used twice there; a ghost that comes back
//!   goes to MFU if it left the window lately; the window's oldest leaves next
//! - ARC: a newcomer goes to MRU; a ghost that comes back goes to MFU, and moves `p`; `p` says
//!   what leaves next
//!
//! The constants of LIRS and of the queues are their authors'; none was fitted here.

/// A rule for what comes in where, and what leaves next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// Low inter-reference recency (Jiang and Zhang, SIGMETRICS '02): keeps what is in, unless a
    /// newcomer comes back sooner. Right for loops and scans a bit larger than the cache.
    Lirs = 0,
    /// Least recently used: right where recency is all there is.
    Lru = 1,
    /// Two queues with reinsertion, after 2Q (Johnson and Shasha, VLDB '94) and S3-FIFO (Yang et
    /// al., SOSP '23): right where most keys are used once, or in one burst.
    TwoQueues = 2,
    /// ARC as printed (Megiddo and Modha, FAST '03): the rule to go home to.
    Arc = 3,
}

impl Rule {
    /// All rules. Where two are as good, the later is taken: so ARC stands last.
    pub const ALL: [Self; 4] = [Self::Lirs, Self::Lru, Self::TwoQueues, Self::Arc];

    /// The rule a cache starts with: as long as nothing is known, what is in stays in.
    pub const FIRST: Self = Self::Lirs;

    /// Its name, as in statistics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lirs => "lirs",
            Self::Lru => "lru",
            Self::TwoQueues => "2q",
            Self::Arc => "arc",
        }
    }

    /// Whether newcomers wait in the window.
    #[must_use]
    pub const fn has_window(self) -> bool {
        match self {
            Self::Lirs | Self::TwoQueues => true,
            Self::Lru | Self::Arc => false,
        }
    }

    /// Whether the oldest of MRU and MFU goes back to the window when they have too much.
    pub(crate) const fn demotes(self) -> bool {
        match self {
            Self::Lirs => true,
            Self::TwoQueues | Self::Lru | Self::Arc => false,
        }
    }

    /// Whether a victim that was used gets another round instead.
    pub(crate) const fn gives_rounds(self) -> bool {
        match self {
            Self::TwoQueues => true,
            Self::Lirs | Self::Lru | Self::Arc => false,
        }
    }

    /// Whether MRU and MFU are one list in the order of their stamps. ARC has `p` instead.
    pub(crate) const fn merges_lists(self) -> bool {
        match self {
            Self::Lirs | Self::TwoQueues | Self::Lru => true,
            Self::Arc => false,
        }
    }
}

/// Every number in the duel that could be another. `docs/policy.md` says what changes with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constants {
    /// LIRS's window: one in so many bytes of the capacity (its authors: 1%).
    pub lirs_window_divisor: u64,
    /// 2Q's window: one in so many bytes of the capacity (S3-FIFO: 10%).
    pub two_queues_window_divisor: u64,
    /// The least entries of a shadow. With twice as many, keys are sampled more thinly. With fewer,
    /// two rules are hard to tell apart; with more, only the memory grows.
    pub shadow_entries: usize,
    /// The part of a cacheful of hits by which a rule must lead to be changed to.
    pub change_cost: f64,
    /// Requests after which scores are halved, in cachefuls.
    pub half_life_cachefuls: u64,
}

impl Constants {
    /// Those of the product.
    pub const DEFAULT: Self = Self {
        lirs_window_divisor: 100,
        two_queues_window_divisor: 10,
        shadow_entries: 1024,
        change_cost: 0.25,
        half_life_cachefuls: 16,
    };

    pub(in crate::policy) const fn window_divisor(&self, rule: Rule) -> Option<u64> {
        match rule {
            Rule::Lirs => Some(self.lirs_window_divisor),
            Rule::TwoQueues => Some(self.two_queues_window_divisor),
            Rule::Lru | Rule::Arc => None,
        }
    }
}

/// Under 2Q, two uses in the window admit an entry. A burst of two requests that belong together is
/// one use after the arrival, which is too few (S3-FIFO).
pub(super) const USES_TO_ADMIT: u8 = 2;
