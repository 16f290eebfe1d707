//! The balance: how many bytes every state has, how many it should have, and therefore what to
//! evict or to forget next.
//!
//! # One kind: ARC
//! With entries of one kind and one weight this is ARC as printed, with bytes for pages and a real
//! number for `p`. The arithmetic is in `policy/arc.rs`:
//! - a hit in the MRU ghosts raises `p` by the entry's weight times max(1, MFU ghosts / MRU
//!   ghosts). A hit in the MFU ghosts lowers it in the same way.
//! - REPLACE takes from MRU if MRU is larger than `p` (or as large, if the newcomer is an MFU
//!   ghost), else from MFU;
//! - MRU with its ghosts stays within the capacity `c`, and all four lists within `2c`. When MRU
//!   alone fills the cache, its oldest leaves without a ghost.
//!
//! # Two kinds
//! Each kind has its own `p`. Between the kinds stands the metadata fraction, after OpenZFS
//! (`arc_evict_adj`, `arc_evict`). It starts at 1/4. Metadata ghost hits raise it; data ghost hits
//! lower it five times more weakly. Its speed is limited, and it is damped at the edges. Eviction
//! takes metadata when metadata are more than their fraction, else data. If the preferred kind has
//! nothing to evict, it takes the other.
//!
//! Where this differs from OpenZFS, and why:
//! - The fraction moves with every ghost hit, not once an eviction pass. So it cannot stand still
//!   between passes.
//! - Ghosts are bounded by bytes, as in the paper, over both kinds together; the kind with more
//!   ghosts gives first. So a kind that has lost all its room still has the ghosts to win it back.
//! - A ghost hit moves the fraction only if the other kind has bytes to give. So the fraction does
//!   not run away while only one kind is in use.
//!
//! Invariant: the sizes equal the sum over all sublists of what
//! [`Sublist::validate`](super::Sublist::validate) counts. There is no lock in here: the concurrent
//! cache keeps its one balance behind a lock, which is taken after a sublist's. The additions for
//! the duel's rules are in [`by_rules`].

pub(crate) mod by_rules;

use self::by_rules::Rules;
use super::arc::{self, ListBytes};
use super::state::{Kind, LISTS, List, list_index, window_index};

/// The fraction of the cache that is metadata's before any ghost hit.
const METADATA_FRACTION_START: f64 = 0.25;

/// How much more weakly data ghost hits move the metadata fraction than metadata ghost hits
/// (OpenZFS: `zfs_arc_meta_balance` = 500 percent).
const METADATA_BALANCE: f64 = 5.0;

/// The smallest step by which the target grows, in bytes (OpenZFS: `arc_adapt`, 128 KiB).
const GROWTH_STEP_BYTES: u64 = 128 << 10;

/// An entry on its way in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// Its weight, in bytes.
    pub weight_bytes: u64,
    /// Its kind.
    pub kind: Kind,
    /// The list it goes to.
    pub list: List,
    /// Its ghost was found among the MFU ghosts of its kind.
    pub was_mfu_ghost: bool,
    /// Ghosts that a change of rule has left and that may still be forgotten on its way in.
    pub leftovers: u8,
}

impl Incoming {
    /// Notes a step that was made for it.
    pub(crate) fn note(&mut self, step: Step) {
        match step {
            Step::Forget { .. } => self.leftovers = self.leftovers.saturating_sub(1),
            Step::Evict { .. } | Step::EvictWaiting { .. } => self.leftovers = 0,
            Step::Fits | Step::Demote { .. } | Step::NotEnough => {}
        }
    }
}

/// The next step before an entry fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Fits,
    /// Forget the oldest ghost of a list.
    Forget {
        /// Kind of the ghosts.
        kind: Kind,
        /// List they were evicted from.
        list: List,
    },
    /// Evict the oldest entry of a list.
    Evict {
        /// Kind of the entry.
        kind: Kind,
        /// List of the entry.
        list: List,
        /// Whether its key becomes a ghost.
        keep_ghost: bool,
    },
    /// Evict the oldest entry of a kind's window.
    EvictWaiting {
        /// Kind of the entry.
        kind: Kind,
        /// Whether its key becomes a ghost.
        keep_ghost: bool,
    },
    /// Move the oldest entry of a list to the window.
    Demote {
        /// Kind of the entry.
        kind: Kind,
        /// List of the entry.
        list: List,
    },
    /// Over the target, and nothing can be evicted.
    NotEnough,
}

impl Step {
    /// The number of the list this step takes from.
    #[must_use]
    pub const fn list_index(self) -> Option<usize> {
        match self {
            Self::Forget { kind, list } => Some(list_index(kind, list, true)),
            Self::Evict { kind, list, .. } | Self::Demote { kind, list } => {
                Some(list_index(kind, list, false))
            }
            Self::EvictWaiting { kind, .. } => Some(window_index(kind)),
            Self::Fits | Self::NotEnough => None,
        }
    }

    /// Whether an entry leaves the cache by this step.
    #[must_use]
    pub const fn evicts(self) -> bool {
        matches!(self, Self::Evict { .. } | Self::EvictWaiting { .. })
    }
}

/// Sizes of all states and the targets for them.
#[derive(Clone, Debug)]
pub struct Balance {
    target_bytes: u64,
    min_bytes: u64,
    max_bytes: u64,
    no_grow: bool,
    metadata_fraction: f64,
    mru_target_bytes: [f64; 2],
    size_bytes: [u64; LISTS],
    anon_bytes: [u64; 2],
    oversize_bytes: [u64; 2],
    rules: Option<Rules>,
}

impl Balance {
    /// A balance for an empty cache with a target of `target_bytes`, which may later move
    /// between `min_bytes` and `max_bytes`.
    #[must_use]
    pub fn new(min_bytes: u64, target_bytes: u64, max_bytes: u64) -> Self {
        let min_bytes = min_bytes.min(max_bytes);
        Self {
            target_bytes: target_bytes.clamp(min_bytes, max_bytes),
            min_bytes,
            max_bytes,
            no_grow: false,
            metadata_fraction: METADATA_FRACTION_START,
            mru_target_bytes: [0.0; 2],
            size_bytes: [0; LISTS],
            anon_bytes: [0; 2],
            oversize_bytes: [0; 2],
            rules: None,
        }
    }

    /// The target for all entries together (OpenZFS: `c`).
    #[must_use]
    pub const fn target_bytes(&self) -> u64 {
        self.target_bytes
    }

    /// The least the target can be (OpenZFS: `c_min`).
    #[must_use]
    pub const fn min_bytes(&self) -> u64 {
        self.min_bytes
    }

    /// The most the target can be (OpenZFS: `c_max`).
    #[must_use]
    pub const fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// Whether the target may not grow at the moment.
    #[must_use]
    pub const fn no_grow(&self) -> bool {
        self.no_grow
    }

    /// Forbids or allows that the target grows.
    pub const fn set_no_grow(&mut self, no_grow: bool) {
        self.no_grow = no_grow;
    }

    /// The share of the target that is metadata's, between 0 and 1.
    #[must_use]
    pub const fn metadata_fraction(&self) -> f64 {
        self.metadata_fraction
    }

    /// ARC's `p` of a kind: how many bytes its MRU list should have.
    #[must_use]
    pub fn mru_target_bytes(&self, kind: Kind) -> f64 {
        self.mru_target_bytes[kind as usize].min(self.capacity_bytes(kind))
    }

    /// How much of the target a kind can have now: its fraction, or more if the other kind does not
    /// use all of its own.
    #[must_use]
    pub fn capacity_bytes(&self, kind: Kind) -> f64 {
        let fraction = match kind {
            Kind::Metadata => self.metadata_fraction,
            Kind::Data => 1.0 - self.metadata_fraction,
        };
        let left = self.target_bytes.saturating_sub(self.live_bytes(kind.other()));
        (self.target_bytes as f64 * fraction).max(left as f64)
    }

    /// Bytes of a list, held entries included.
    #[must_use]
    pub const fn size_bytes(&self, kind: Kind, list: List, ghost: bool) -> u64 {
        self.size_bytes[list_index(kind, list, ghost)]
    }

    /// Bytes of all lists, by number.
    #[must_use]
    pub const fn sizes(&self) -> &[u64; LISTS] {
        &self.size_bytes
    }

    /// Bytes of entries of a kind, held ones included.
    #[must_use]
    pub const fn live_bytes(&self, kind: Kind) -> u64 {
        self.size_bytes(kind, List::Mru, false) + self.size_bytes(kind, List::Mfu, false)
    }

    const fn ghost_bytes(&self, kind: Kind) -> u64 {
        self.size_bytes(kind, List::Mru, true) + self.size_bytes(kind, List::Mfu, true)
    }

    /// Bytes of a kind which are on their way in, or removed and still held.
    #[must_use]
    pub const fn anon_bytes(&self, kind: Kind) -> u64 {
        self.anon_bytes[kind as usize]
    }

    /// Bytes of a kind in held entries that are heavier than the cache. Their holders alone keep
    /// them, so they do not count against the target.
    #[must_use]
    pub const fn oversize_bytes(&self, kind: Kind) -> u64 {
        self.oversize_bytes[kind as usize]
    }

    /// Bytes that count against the target.
    #[must_use]
    pub const fn used_bytes(&self) -> u64 {
        self.live_bytes(Kind::Data)
            + self.live_bytes(Kind::Metadata)
            + self.anon_bytes[0]
            + self.anon_bytes[1]
    }

    /// By how much the cache is over its target.
    #[must_use]
    pub const fn excess_bytes(&self) -> u64 {
        self.used_bytes().saturating_sub(self.target_bytes)
    }

    /// Whether entries or ghosts are beyond their bounds: there is something to do for
    /// [`Balance::step`] with nothing on its way in.
    #[must_use]
    pub fn is_over(&self) -> bool {
        if self.rules.is_some() {
            return self.excess_bytes() > 0 || self.ghosts_are_over();
        }
        let over_ghosts = |kind| {
            let bytes = self.list_bytes(kind);
            bytes.mru_ghosts > 0 && bytes.once_over(0, self.target_bytes) > 0
        };
        let total = self.size_bytes.iter().sum::<u64>();
        self.excess_bytes() > 0
            || total > self.target_bytes.saturating_mul(2)
            || Kind::ALL.into_iter().any(over_ghosts)
    }

    /// A list has got bytes.
    pub const fn add(&mut self, kind: Kind, list: List, ghost: bool, bytes: u64) {
        self.size_bytes[list_index(kind, list, ghost)] += bytes;
    }

    /// A list has lost bytes.
    pub const fn sub(&mut self, kind: Kind, list: List, ghost: bool, bytes: u64) {
        self.size_bytes[list_index(kind, list, ghost)] -= bytes;
    }

    /// Bytes are on their way in, or were removed while held.
    pub const fn add_anon(&mut self, kind: Kind, bytes: u64) {
        self.anon_bytes[kind as usize] += bytes;
    }

    /// Bytes have arrived on a list, or a removed entry was released.
    pub const fn sub_anon(&mut self, kind: Kind, bytes: u64) {
        self.anon_bytes[kind as usize] -= bytes;
    }

    /// An entry heavier than the cache was handed out.
    pub const fn add_oversize(&mut self, kind: Kind, bytes: u64) {
        self.oversize_bytes[kind as usize] += bytes;
    }

    /// An entry heavier than the cache was released.
    pub const fn sub_oversize(&mut self, kind: Kind, bytes: u64) {
        self.oversize_bytes[kind as usize] -= bytes;
    }

    /// Moves the target, within its limits, and `p` in proportion.
    pub fn set_target_bytes(&mut self, target_bytes: u64) {
        let target_bytes = target_bytes.clamp(self.min_bytes, self.max_bytes);
        if target_bytes != self.target_bytes && self.target_bytes > 0 {
            let ratio = target_bytes as f64 / self.target_bytes as f64;
            self.mru_target_bytes = self.mru_target_bytes.map(|p| p * ratio);
        }
        self.target_bytes = target_bytes;
    }

    /// Replaces the limits of the target and moves it to the new maximum.
    pub fn set_max_bytes(&mut self, max_bytes: u64) {
        self.max_bytes = max_bytes;
        self.min_bytes = self.min_bytes.min(max_bytes);
        self.set_target_bytes(max_bytes);
    }

    /// Whether the target would have to grow for `bytes` more, and is below its maximum.
    #[must_use]
    pub const fn wants_growth(&self, bytes: u64) -> bool {
        self.target_bytes < self.max_bytes && self.used_bytes() + bytes > self.target_bytes
    }

    /// Grows the target so that `bytes` more fit, as far as that is allowed.
    pub fn grow_for(&mut self, bytes: u64) {
        if self.no_grow || !self.wants_growth(bytes) {
            return;
        }
        let need_bytes = (self.used_bytes() + bytes).saturating_sub(self.target_bytes);
        let step_bytes = need_bytes.max(GROWTH_STEP_BYTES);
        self.set_target_bytes(self.target_bytes.saturating_add(step_bytes));
    }

    /// Grows the target so that all ghosts, and `bytes` more, would fit as entries, as far as that
    /// is allowed. The entries of these ghosts would have stayed if the memory had been free.
    pub fn grow_for_ghosts(&mut self, bytes: u64) {
        let ghosts = self.ghost_bytes(Kind::Data) + self.ghost_bytes(Kind::Metadata);
        self.grow_for(ghosts.saturating_add(bytes));
    }

    /// Notes a ghost hit. Call it while the ghost still counts.
    pub fn ghost_hit(&mut self, kind: Kind, list: List, weight_bytes: u64) {
        let ghosts = List::ALL.map(|list| self.size_bytes(kind, list, true));
        let capacity = self.capacity_bytes(kind);
        let p = self.mru_target_bytes[kind as usize].min(capacity);
        self.mru_target_bytes[kind as usize] =
            arc::adapted_target(p, capacity, (list, weight_bytes), ghosts);
        let weight = weight_bytes as f64;
        if self.live_bytes(kind.other()) > 0 {
            let ghosts = self.ghost_bytes(Kind::Data) + self.ghost_bytes(Kind::Metadata);
            let (up, down) = match kind {
                Kind::Metadata => (weight, 0.0),
                Kind::Data => (0.0, weight),
            };
            self.metadata_fraction =
                adjusted_fraction(self.metadata_fraction, ghosts as f64, up, down);
        }
    }

    /// The next step to make room for an entry, or with `None` to get back to the target.
    ///
    /// `can_evict` says whether a list has an entry without a hold.
    pub fn step(
        &self,
        incoming: Option<&Incoming>,
        can_evict: impl Fn(Kind, List) -> bool,
    ) -> Step {
        let target = self.target_bytes;
        let weight = incoming.map_or(0, |entry| entry.weight_bytes);
        let over = self.used_bytes() + weight > target;
        for kind in Kind::ALL {
            let joins = match incoming {
                Some(entry) if entry.kind == kind && entry.list == List::Mru => weight,
                Some(_) => continue,
                None => 0,
            };
            let bytes = self.list_bytes(kind);
            if bytes.once_over(joins, target) > 0 {
                if bytes.mru_ghosts > 0 {
                    return Step::Forget { kind, list: List::Mru };
                }
                if joins > 0 && over && can_evict(kind, List::Mru) {
                    return Step::Evict { kind, list: List::Mru, keep_ghost: false };
                }
            }
        }
        let total = self.size_bytes.iter().sum::<u64>() + weight;
        if total > target.saturating_mul(2)
            && let kind = self.kind_with_more_ghosts()
            && let Some(list) = self.list_bytes(kind).ghosts_to_forget()
        {
            return Step::Forget { kind, list };
        }
        if over { self.victim(incoming, can_evict) } else { Step::Fits }
    }

    /// The lists of one kind, as ARC counts them.
    const fn list_bytes(&self, kind: Kind) -> ListBytes {
        ListBytes {
            mru: self.size_bytes(kind, List::Mru, false),
            mfu: self.size_bytes(kind, List::Mfu, false),
            mru_ghosts: self.size_bytes(kind, List::Mru, true),
            mfu_ghosts: self.size_bytes(kind, List::Mfu, true),
        }
    }

    /// The kind that gives when both together have too many ghosts.
    const fn kind_with_more_ghosts(&self) -> Kind {
        let more_data = self.ghost_bytes(Kind::Data) >= self.ghost_bytes(Kind::Metadata);
        if more_data { Kind::Data } else { Kind::Metadata }
    }

    /// The kind that has to evict first.
    fn first_to_give(&self, incoming: Option<&Incoming>) -> Kind {
        let arriving = incoming.filter(|entry| entry.kind == Kind::Metadata);
        let metadata =
            self.live_bytes(Kind::Metadata) + arriving.map_or(0, |entry| entry.weight_bytes);
        let share = self.metadata_fraction * self.target_bytes as f64;
        if metadata as f64 > share { Kind::Metadata } else { Kind::Data }
    }

    fn victim(&self, incoming: Option<&Incoming>, can_evict: impl Fn(Kind, List) -> bool) -> Step {
        let first = self.first_to_give(incoming);
        for kind in [first, first.other()] {
            let preferred = self.preferred(kind, incoming);
            for list in [preferred, preferred.other()] {
                if can_evict(kind, list) {
                    return Step::Evict { kind, list, keep_ghost: true };
                }
            }
        }
        Step::NotEnough
    }

    fn preferred(&self, kind: Kind, incoming: Option<&Incoming>) -> List {
        let mru_bytes = self.size_bytes(kind, List::Mru, false);
        let was_mfu_ghost = incoming.is_some_and(|entry| entry.kind == kind && entry.was_mfu_ghost);
        arc::replace(mru_bytes, self.mru_target_bytes(kind), was_mfu_ghost)
    }
}

/// The metadata fraction after ghost hits of `up` bytes for and `down` bytes against it, with
/// `ghosts` bytes in all ghost lists (OpenZFS, `arc_evict_adj`).
fn adjusted_fraction(fraction: f64, ghosts: f64, up: f64, down: f64) -> f64 {
    let hits = up + down;
    if ghosts < 32.0 || hits <= 0.0 {
        return fraction;
    }
    // The speed limit: one step moves at most 1/32.
    let scale = if hits >= ghosts / 16.0 { ghosts / 32.0 / hits } else { 1.0 };
    let (mut up, mut down) = (up * scale, down * scale);
    // The damping: the nearer to an edge, the weaker the push towards it.
    let rest = 1.0 - fraction;
    if fraction >= 4.0 * rest {
        up /= (fraction / (2.0 * rest).max(f64::MIN_POSITIVE)).floor();
    }
    if rest >= 4.0 * fraction {
        down /= (rest / (2.0 * fraction).max(f64::MIN_POSITIVE)).floor();
    }
    (fraction + up / ghosts - down / ghosts / METADATA_BALANCE).clamp(0.0, 1.0)
}
