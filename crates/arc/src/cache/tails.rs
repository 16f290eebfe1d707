//! Which sublist has the eldest entry of a list: one stamp for each sublist and list,
//! published by whoever changed it, under that sublist's lock, and read without locks.
//!
//! The stamps of one list lie side by side, so looking at 64 sublists reads eight cache
//! lines. They are written only when a tail changes: evictions do that, and hits on the very
//! eldest entry. One bit a sublist says whether its list has an entry at all, so that with
//! nothing to evict one load tells so.
//!
//! What is read here may be old by the time the sublist's lock is taken; the evictor looks
//! again under the lock.

use crate::policy::{EMPTY, ENGINE_LISTS};
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The most sublists a cache can have: one bit each in a word.
pub(crate) const SUBLISTS_MAX: usize = 64;

#[derive(Debug)]
#[repr(align(128))]
struct ListTails {
    stamps: [AtomicU64; SUBLISTS_MAX],
    filled: AtomicU64,
}

/// The published tails of all lists of all sublists.
#[derive(Debug)]
pub(crate) struct Tails([ListTails; ENGINE_LISTS]);

/// The sublist to take from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pick {
    /// Its number.
    pub(crate) sublist: usize,
    /// The stamp of its eldest entry.
    pub(crate) stamp: u64,
    /// The stamp of the eldest entry elsewhere: what is younger here has to wait.
    pub(crate) next_stamp: u64,
}

impl Tails {
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|_| ListTails {
            stamps: std::array::from_fn(|_| AtomicU64::new(EMPTY)),
            filled: AtomicU64::new(0),
        }))
    }

    /// Publishes the stamp of a tail. Only under the sublist's lock.
    pub(crate) fn publish(&self, list: usize, sublist: usize, stamp: u64) {
        let tails = &self.0[list];
        let before = tails.stamps[sublist].load(Relaxed);
        if before != stamp {
            tails.stamps[sublist].store(stamp, Relaxed);
        }
        if (before == EMPTY) == (stamp == EMPTY) {
            return;
        }
        if stamp == EMPTY {
            tails.filled.fetch_and(!(1 << sublist), Relaxed);
        } else {
            tails.filled.fetch_or(1 << sublist, Relaxed);
        }
    }

    /// Whether any sublist has an entry on the list.
    pub(crate) fn any(&self, list: usize) -> bool {
        self.0[list].filled.load(Relaxed) != 0
    }

    /// The sublist whose tail is eldest.
    pub(crate) fn eldest(&self, list: usize) -> Option<Pick> {
        let mut filled = self.0[list].filled.load(Relaxed);
        let (mut eldest, mut next_stamp, mut pick) = (EMPTY, EMPTY, None);
        while filled != 0 {
            let sublist = filled.trailing_zeros() as usize;
            filled &= filled - 1;
            let stamp = self.0[list].stamps[sublist].load(Relaxed);
            if stamp < eldest || pick.is_none() {
                next_stamp = eldest;
                eldest = stamp;
                pick = Some(sublist);
            } else if stamp < next_stamp {
                next_stamp = stamp;
            }
        }
        pick.map(|sublist| Pick { sublist, stamp: eldest, next_stamp })
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn the_eldest_tail_is_picked_and_the_next_is_its_limit() {
        let tails = Tails::new();
        assert!(!tails.any(3));
        assert_eq!(tails.eldest(3), None);
        for (sublist, stamp) in [(0, 9), (7, 4), (63, 6)] {
            tails.publish(3, sublist, stamp);
        }
        assert_eq!(tails.eldest(3), Some(Pick { sublist: 7, stamp: 4, next_stamp: 6 }));
        tails.publish(3, 7, EMPTY);
        assert_eq!(tails.eldest(3), Some(Pick { sublist: 63, stamp: 6, next_stamp: 9 }));
        tails.publish(3, 0, EMPTY);
        tails.publish(3, 63, 11);
        assert_eq!(tails.eldest(3), Some(Pick { sublist: 63, stamp: 11, next_stamp: EMPTY }));
        tails.publish(3, 63, EMPTY);
        assert!(!tails.any(3) && !tails.any(2));
    }
}
