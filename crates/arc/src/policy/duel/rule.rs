//! The four rules among which the duel chooses, and the constants they have.
//!
//! | rule | a newcomer | a ghost comes back | leaves next |
//! |---|---|---|---|
//! | LIRS | waits in a window of 1% | to MFU if it was away for less long than the eldest entry has been idle | the window's eldest |
//! | LRU | to MRU | to MFU | the eldest of all |
//! | 2Q | waits in a window of 10%, must be used twice there | to MFU if it left the window lately | the window's eldest |
//! | ARC | to MRU | to MFU, and moves `p` | by `p` |
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

    /// What part of the capacity newcomers have to wait in: one in so many bytes (LIRS: 1% of
    /// "resident HIR blocks"; S3-FIFO: a small queue of 10%). None: they need not wait.
    pub(super) const fn window_divisor(self) -> Option<u64> {
        match self {
            Self::Lirs => Some(100),
            Self::TwoQueues => Some(10),
            Self::Lru | Self::Arc => None,
        }
    }

    /// Whether newcomers wait in the window.
    #[must_use]
    pub const fn has_window(self) -> bool {
        self.window_divisor().is_some()
    }
}

/// Two uses in the window admit an entry under 2Q: a burst of two that belong together is one
/// use too few (S3-FIFO).
pub(super) const USES_TO_ADMIT: u8 = 2;

/// Uses an entry remembers: two bits (S3-FIFO).
pub(super) const USES_MAX: u8 = 3;
