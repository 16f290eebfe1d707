//! Which sublist has the eldest entry of a list: one stamp for each sublist and list,
//! published by whoever changed it, under that sublist's lock, and read without locks.
//!
//! The stamps of one list lie side by side, so looking at 64 sublists reads eight cache
//! lines. They are written only when a tail changes: evictions do that, and hits on the very
//! eldest entry. One bit a sublist says whether its list has an entry at all, so that with
//! nothing to evict one load tells so. What every miss asks, how old the eldest of all is, has
//! no branch for each sublist.
//!
//! With many sublists the eldest of all is nearly always in another than the one that needs room,
//! and would cost the lock and the cache lines of that. So what is nearly as old will do: with 64
//! sublists, what is younger by no more than a sixteenth of the eldest's age, with half as many half
//! of that, and with eight or fewer, or where every hit counts, nothing but the eldest. Ages of tails
//! are as far apart anyway: a sublist of a thousand keys has as many as its share, give or take a
//! thirtieth.
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
    /// The eldest stamp that was found last.
    lately: AtomicU64,
}

/// Stamps that are looked at beside each other, so that no look waits for the last.
const LANES: usize = 4;

/// Up to so many sublists the eldest of all is looked for.
const STRICT_SUBLISTS_MAX: usize = 8;

/// With how many sublists all tails would be nearly as old as the eldest, as a power of two.
const SLACK_SUBLISTS_LOG: u32 = 10;

/// The published tails of all lists of all sublists.
#[derive(Debug)]
pub(crate) struct Tails {
    lists: [ListTails; ENGINE_LISTS],
    /// Sublists there are, rounded up to whole lanes.
    lanes_end: usize,
    /// Which part of the eldest's age another may be younger, as a power of two.
    slack_shift: Option<u32>,
}

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
    /// For so many sublists, a power of two; with `exact`, the eldest of all is always looked for.
    pub(crate) fn new(sublists: usize, exact: bool) -> Self {
        let lists = std::array::from_fn(|_| ListTails {
            stamps: std::array::from_fn(|_| AtomicU64::new(EMPTY)),
            filled: AtomicU64::new(0),
            lately: AtomicU64::new(0),
        });
        let strict = exact || sublists <= STRICT_SUBLISTS_MAX;
        Self {
            lists,
            lanes_end: sublists.next_multiple_of(LANES).min(SUBLISTS_MAX),
            slack_shift: (!strict).then(|| SLACK_SUBLISTS_LOG - sublists.ilog2()),
        }
    }

    /// Publishes the stamp of a tail. Only under the sublist's lock.
    pub(crate) fn publish(&self, list: usize, sublist: usize, stamp: u64) {
        let tails = &self.lists[list];
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
        self.lists[list].filled.load(Relaxed) != 0
    }

    /// The stamp of the eldest of all, [`EMPTY`] if there is none.
    pub(crate) fn eldest_stamp(&self, list: usize) -> u64 {
        let mut eldest = [EMPTY; LANES];
        for stamps in self.lists[list].stamps[..self.lanes_end].chunks_exact(LANES) {
            for (eldest, stamp) in eldest.iter_mut().zip(stamps) {
                *eldest = stamp.load(Relaxed).min(*eldest);
            }
        }
        let eldest = eldest.into_iter().fold(EMPTY, u64::min);
        let lately = &self.lists[list].lately;
        // Written only where somebody goes by it, and only when it is another.
        if self.slack_shift.is_some() && eldest != EMPTY && eldest != lately.load(Relaxed) {
            lately.store(eldest, Relaxed);
        }
        eldest
    }

    /// What [`Tails::eldest_stamp`] found last, 0 before: the eldest is hardly ever older. Nothing
    /// where that would not do.
    pub(crate) fn eldest_lately(&self, list: usize) -> Option<u64> {
        self.slack_shift.map(|_| self.lists[list].lately.load(Relaxed))
    }

    /// By how much another may be younger than the eldest to leave in its place.
    pub(crate) fn slack(&self, eldest_age: u64) -> u64 {
        self.slack_shift.map_or(0, |shift| eldest_age >> shift)
    }

    /// A sublist whose tail has this stamp; none if it has another by now.
    pub(crate) fn sublist_with(&self, list: usize, stamp: u64) -> Option<usize> {
        self.lists[list].stamps.iter().position(|tail| tail.load(Relaxed) == stamp)
    }

    /// The sublist whose tail is eldest.
    pub(crate) fn eldest(&self, list: usize) -> Option<Pick> {
        let (mut eldest, mut next_stamp, mut sublist) = (EMPTY, EMPTY, 0);
        for (number, stamp) in self.lists[list].stamps[..self.lanes_end].iter().enumerate() {
            let stamp = stamp.load(Relaxed);
            if stamp < eldest {
                (next_stamp, eldest, sublist) = (eldest, stamp, number);
            } else {
                next_stamp = next_stamp.min(stamp);
            }
        }
        (eldest != EMPTY).then_some(Pick { sublist, stamp: eldest, next_stamp })
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn the_eldest_tail_is_picked_and_the_next_is_its_limit() {
        let tails = Tails::new(SUBLISTS_MAX, false);
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
        assert_eq!(tails.sublist_with(3, 11), Some(63));
        tails.publish(3, 63, EMPTY);
        assert!(!tails.any(3) && !tails.any(2));
        assert_eq!(tails.sublist_with(3, 11), None);
    }

    #[test]
    fn what_is_nearly_as_old_will_do_with_many_sublists_only() {
        for (sublists, exact, slack) in
            [(64, false, 100), (32, false, 50), (16, false, 25), (8, false, 0), (64, true, 0)]
        {
            let tails = Tails::new(sublists, exact);
            tails.publish(1, 0, 77);
            assert_eq!((tails.slack(1600), tails.eldest_stamp(1)), (slack, 77));
            assert_eq!(tails.eldest_lately(1), (slack > 0).then_some(77));
        }
    }

    #[test]
    fn the_eldest_stamp_is_the_picks_with_any_number_of_sublists() {
        for sublists in [1, 2, 8, 64] {
            let tails = Tails::new(sublists, false);
            assert_eq!((tails.eldest_stamp(0), tails.eldest(0)), (EMPTY, None));
            for sublist in 0..sublists {
                tails.publish(0, sublist, 100 - sublist as u64);
                let pick = tails.eldest(0).map(|pick| (pick.sublist, pick.stamp));
                assert_eq!(pick, Some((sublist, 100 - sublist as u64)));
                assert_eq!(tails.eldest_stamp(0), 100 - sublist as u64);
            }
        }
    }
}
