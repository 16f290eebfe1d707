//! ARC's arithmetic as printed (Megiddo and Modha, "ARC: A Self-Tuning, Low Overhead Replacement
//! Cache", FAST '03, Fig. 4), with bytes in the place of pages. It moves `p`, chooses the list that
//! REPLACE takes from, and bounds the ghosts. It is written here and nowhere else.
//!
//! Two callers have such lists. [`Balance`](super::Balance) bounds the ghosts of two kinds
//! together. The rules of the duel (`duel/rules.rs`) bound those of one kind, and count the window
//! as a part of MRU.

use super::state::List;

/// Bytes of the four lists: T1, T2, B1 and B2 in the paper.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListBytes {
    pub(super) mru: u64,
    pub(super) mfu: u64,
    pub(super) mru_ghosts: u64,
    pub(super) mfu_ghosts: u64,
}

impl ListBytes {
    /// Bytes of keys seen once: MRU with its ghosts.
    const fn once(self) -> u64 {
        self.mru + self.mru_ghosts
    }

    /// Bytes of keys seen more than once: MFU with its ghosts.
    const fn often(self) -> u64 {
        self.mfu + self.mfu_ghosts
    }

    /// Bytes of all four lists.
    pub(super) const fn all(self) -> u64 {
        self.once() + self.often()
    }

    /// By how much MRU with its ghosts, and the bytes that join MRU, are over the capacity.
    pub(super) const fn once_over(self, joining_bytes: u64, capacity_bytes: u64) -> u64 {
        (self.once() + joining_bytes).saturating_sub(capacity_bytes)
    }

    /// The list whose ghosts go first when there are too many in all. It is the list that is longer
    /// with its ghosts, if it has ghosts.
    pub(super) const fn ghosts_to_forget(self) -> Option<List> {
        let longer = if self.once() > self.often() { List::Mru } else { List::Mfu };
        match (self.mru_ghosts, self.mfu_ghosts) {
            (0, 0) => None,
            (0, _) => Some(List::Mfu),
            (_, 0) => Some(List::Mru),
            _ => Some(longer),
        }
    }
}

/// REPLACE: the list whose oldest entry is evicted.
pub(super) fn replace(mru_bytes: u64, mru_target_bytes: f64, was_mfu_ghost: bool) -> List {
    let (mru, p) = (mru_bytes as f64, mru_target_bytes);
    let takes_mru = mru_bytes > 0 && (mru > p || (was_mfu_ghost && mru >= p));
    if takes_mru { List::Mru } else { List::Mfu }
}

/// ARC's `p` after a ghost of a list was asked for, with the bytes of all ghosts while it still
/// counts (cases II and III).
pub(super) fn adapted_target(
    p: f64,
    capacity_bytes: f64,
    (list, weight_bytes): (List, u64),
    [mru_ghosts, mfu_ghosts]: [u64; 2],
) -> f64 {
    let (mru, mfu, weight) = (mru_ghosts as f64, mfu_ghosts as f64, weight_bytes as f64);
    match list {
        List::Mru => (p + weight * (mfu / mru).max(1.0)).min(capacity_bytes),
        List::Mfu => (p - weight * (mru / mfu).max(1.0)).max(0.0),
    }
}
