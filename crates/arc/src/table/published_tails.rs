//! Which sublist has the oldest entry of a list: one stamp for each sublist and list. The thread
//! that changes a tail publishes its stamp, under that sublist's lock. Stamps are read without
//! locks.
//!
//! The stamps of one list lie side by side, eight to a cache line. The oldest of each eight is
//! kept, too, and these lie side by side. So to find how old the oldest of all is, a miss reads
//! eight words of one line. Stamps are written only when a tail changes: by evictions, and by hits
//! on the very oldest entry. One bit for each sublist says whether its list has an entry at all. So
//! with nothing to evict, one load shows it.
//!
//! Two sublists of the same eight that publish at the same time may leave a wrong oldest of them.
//! It is put right when one of them publishes again, or when an eviction looks for that stamp and
//! no sublist has it. In one thread it is always right.
//!
//! With many sublists the oldest of all is nearly always in another sublist than the one that needs
//! room. Evicting there would cost its lock and its cache lines. So an entry that is nearly as old
//! will do. With 64 sublists it is younger by at most a sixteenth of the oldest's age; with 32, by
//! a 32nd; with 16, by a 64th. With eight or fewer, or if every hit counts, only the oldest will
//! do. The ages of tails differ by as much anyway: the number of keys in a sublist of a thousand
//! varies by a thirtieth.
//!
//! A stamp that is read here may be outdated by the time the sublist's lock is taken. The eviction
//! looks again under the lock.

use crate::policy::{EMPTY, ENGINE_LISTS};
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The most sublists a cache can have: one bit each in a word.
pub(crate) const SUBLISTS_MAX: usize = 64;

#[derive(Debug)]
#[repr(align(128))]
struct ListTails {
    stamps: [AtomicU64; SUBLISTS_MAX],
    /// The oldest of each group.
    oldest: [AtomicU64; SUBLISTS_MAX / GROUP],
    filled: AtomicU64,
}

/// Sublists whose stamps share a cache line.
const GROUP: usize = 8;

/// With at most so many sublists, only the oldest of all will do.
const STRICT_SUBLISTS_MAX: usize = 8;

/// With 2^n sublists, an entry may be younger than the oldest by this part of its age: one in
/// 2^(this - n).
const SLACK_SUBLISTS_LOG: u32 = 10;

/// The published tails of all lists of all sublists.
#[derive(Debug)]
pub(crate) struct Tails {
    lists: [ListTails; ENGINE_LISTS],
    /// Groups there are.
    groups: usize,
    /// An entry may be younger by one in 2^this of the oldest's age; `None`: not at all.
    slack_shift: Option<u32>,
}

/// The sublist to take from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pick {
    /// Its number.
    pub(crate) sublist: usize,
    /// The stamp of its oldest entry.
    pub(crate) stamp: u64,
    /// The stamp of the oldest entry elsewhere: a younger entry of this sublist has to wait.
    pub(crate) next_stamp: u64,
}

impl ListTails {
    fn find_oldest(&self, group: usize) {
        let stamps = self.stamps[group * GROUP..][..GROUP].iter();
        let oldest = stamps.map(|stamp| stamp.load(Relaxed)).fold(EMPTY, u64::min);
        self.oldest[group].store(oldest, Relaxed);
    }
}

impl Tails {
    /// For so many sublists, a power of two; with `exact`, the oldest of all is always looked for.
    pub(crate) fn new(sublists: usize, exact: bool) -> Self {
        let lists = std::array::from_fn(|_| ListTails {
            stamps: std::array::from_fn(|_| AtomicU64::new(EMPTY)),
            oldest: std::array::from_fn(|_| AtomicU64::new(EMPTY)),
            filled: AtomicU64::new(0),
        });
        let strict = exact || sublists <= STRICT_SUBLISTS_MAX;
        Self {
            lists,
            groups: sublists.div_ceil(GROUP).min(SUBLISTS_MAX / GROUP),
            slack_shift: (!strict).then(|| SLACK_SUBLISTS_LOG - sublists.ilog2()),
        }
    }

    /// Publishes the stamp of a tail. Only under the sublist's lock.
    pub(crate) fn publish(&self, list: usize, sublist: usize, stamp: u64) {
        let tails = &self.lists[list];
        let before = tails.stamps[sublist].load(Relaxed);
        if before != stamp {
            tails.stamps[sublist].store(stamp, Relaxed);
            if before.min(stamp) <= tails.oldest[sublist / GROUP].load(Relaxed) {
                tails.find_oldest(sublist / GROUP);
            }
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

    /// The stamp of the oldest of all, [`EMPTY`] if there is none.
    pub(crate) fn oldest_stamp(&self, list: usize) -> u64 {
        let groups = &self.lists[list].oldest[..self.groups];
        groups.iter().map(|oldest| oldest.load(Relaxed)).fold(EMPTY, u64::min)
    }

    /// The stamp that a sublist has published.
    pub(crate) fn stamp_of(&self, list: usize, sublist: usize) -> u64 {
        self.lists[list].stamps[sublist].load(Relaxed)
    }

    /// By how much an entry may be younger than the oldest, to leave in its place.
    pub(crate) fn slack(&self, oldest_age: u64) -> u64 {
        self.slack_shift.map_or(0, |shift| oldest_age >> shift)
    }

    /// A sublist whose tail has this stamp. If no sublist has it any more, `None`, and the oldest
    /// of each group is computed again.
    pub(crate) fn sublist_with(&self, list: usize, stamp: u64) -> Option<usize> {
        let tails = &self.lists[list];
        let group = tails.oldest.iter().position(|oldest| oldest.load(Relaxed) == stamp);
        let stamps = group.map(|group| (group, &tails.stamps[group * GROUP..][..GROUP]));
        let found = stamps.and_then(|(group, stamps)| {
            let at = stamps.iter().position(|tail| tail.load(Relaxed) == stamp)?;
            Some(group * GROUP + at)
        });
        if found.is_none() {
            (0..self.groups).for_each(|group| tails.find_oldest(group));
        }
        found
    }

    /// The sublist whose tail is oldest.
    pub(crate) fn oldest(&self, list: usize) -> Option<Pick> {
        let (mut oldest, mut next_stamp, mut sublist) = (EMPTY, EMPTY, 0);
        let stamps = &self.lists[list].stamps[..self.groups * GROUP];
        for (number, stamp) in stamps.iter().enumerate() {
            let stamp = stamp.load(Relaxed);
            if stamp < oldest {
                (next_stamp, oldest, sublist) = (oldest, stamp, number);
            } else {
                next_stamp = next_stamp.min(stamp);
            }
        }
        (oldest != EMPTY).then_some(Pick { sublist, stamp: oldest, next_stamp })
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_tail_is_picked_and_the_next_is_its_limit() {
        let tails = Tails::new(SUBLISTS_MAX, false);
        assert!(!tails.any(3));
        assert_eq!(tails.oldest(3), None);
        for (sublist, stamp) in [(0, 9), (7, 4), (63, 6)] {
            tails.publish(3, sublist, stamp);
        }
        assert_eq!(tails.oldest(3), Some(Pick { sublist: 7, stamp: 4, next_stamp: 6 }));
        tails.publish(3, 7, EMPTY);
        assert_eq!(tails.oldest(3), Some(Pick { sublist: 63, stamp: 6, next_stamp: 9 }));
        tails.publish(3, 0, EMPTY);
        tails.publish(3, 63, 11);
        assert_eq!(tails.oldest(3), Some(Pick { sublist: 63, stamp: 11, next_stamp: EMPTY }));
        assert_eq!(tails.sublist_with(3, 11), Some(63));
        tails.publish(3, 63, EMPTY);
        assert!(!tails.any(3) && !tails.any(2));
        assert_eq!(tails.sublist_with(3, 11), None);
    }

    #[test]
    fn a_nearly_as_old_entry_will_do_with_many_sublists_only() {
        for (sublists, exact, slack) in
            [(64, false, 100), (32, false, 50), (16, false, 25), (8, false, 0), (64, true, 0)]
        {
            let tails = Tails::new(sublists, exact);
            tails.publish(1, 0, 77);
            assert_eq!((tails.slack(1600), tails.oldest_stamp(1)), (slack, 77));
        }
    }

    #[test]
    fn the_oldest_stamp_is_the_picks_with_any_number_of_sublists() {
        for sublists in [1, 2, 8, 16, 64] {
            let tails = Tails::new(sublists, false);
            let same = || {
                let pick = tails.oldest(0);
                assert_eq!(tails.oldest_stamp(0), pick.map_or(EMPTY, |pick| pick.stamp));
                let found = tails.sublist_with(0, tails.oldest_stamp(0));
                assert_eq!(found.filter(|_| pick.is_some()), pick.map(|pick| pick.sublist));
            };
            same();
            let mut state = 1_u64;
            for step in 0..if cfg!(miri) { 20 } else { 2000 } {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let sublist = (state >> 40) as usize % sublists;
                let stamp = if state >> 61 == 0 { EMPTY } else { step + (state >> 50) % 500 };
                // No two have the same.
                tails.publish(0, sublist, stamp.saturating_mul(64).saturating_add(sublist as u64));
                same();
            }
        }
    }

    #[test]
    fn an_oldest_stamp_that_no_sublist_has_is_corrected_by_a_search_for_it() {
        let tails = Tails::new(64, false);
        tails.publish(2, 9, 50);
        tails.lists[2].oldest[5].store(7, Relaxed);
        assert_eq!((tails.oldest_stamp(2), tails.sublist_with(2, 7)), (7, None));
        assert_eq!((tails.oldest_stamp(2), tails.sublist_with(2, 50)), (50, Some(9)));
    }
}
