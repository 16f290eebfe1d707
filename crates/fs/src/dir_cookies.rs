//! Short offsets into directories that are too large for a listing.
//!
//! Such a directory is read through with the origin's own cookies, which have up to 63 bits. A
//! 32-bit program takes offsets of at most 31 bits: beyond them its readdir(3) ends with
//! `EOVERFLOW`. So short cookies are used unchanged, and the others are numbered in the order in
//! which they are first seen. Bit 30 is set in all of these offsets, and in none of a listing's
//! ([`crate::listing`]).
//!
//! An offset maps to the same cookie as long as the table lives. The table lives as long as a
//! handle is open, however often it is rewound and whatever names come and go. Handles that share
//! the kernel's cache of a directory share a table, because the kernel reads on with one handle
//! where another ended ([`crate::inode`]).
//!
//! Memory is bounded. Beyond [`COOKIES_MAX`] cookies the oldest are dropped, and their offsets are
//! refused. When all handles together hold too much ([`crate::held_names`]), the bound is
//! [`COOKIES_LEAST`].
//!
//! The lock is a leaf.

use crate::held_names::HeldNames;
use hashbrown::{DefaultHashBuilder, HashTable};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::hash::BuildHasher as _;
use std::sync::Arc;

/// Set in the offsets of a directory that is read through.
const THROUGH: u64 = 1 << 30;
/// Set in numbered offsets as well; below it are cookies unchanged.
const NUMBERED: u64 = 1 << 29;
/// Most cookies kept of a directory: some 300 MiB, as long as it is open.
const COOKIES_MAX: usize = 1 << 24;
/// Each handle keeps at least this many: several replies of the largest kind.
const COOKIES_LEAST: usize = 1 << 13;
/// Memory of a cookie and its number, in bytes, with the spare room of the tables.
const COOKIE_BYTES: u64 = 20;

/// The offsets of one directory.
#[derive(Debug)]
pub(crate) struct DirCookies(Mutex<Numbered>);

/// Long cookies and their numbers, which count up and begin again at 2^29.
#[derive(Debug)]
struct Numbered {
    cookies: VecDeque<u64>,
    /// The number of the oldest cookie.
    first: u64,
    /// The number of each cookie.
    numbers: HashTable<u32>,
    hasher: DefaultHashBuilder,
    cookies_max: usize,
    held: Arc<HeldNames>,
}

/// Whether an offset belongs to a directory that is read through.
pub(crate) fn is_through(offset: u64) -> bool {
    offset & THROUGH != 0
}

impl DirCookies {
    /// Offsets whose memory counts as held names.
    pub(crate) fn new(held: &Arc<HeldNames>) -> Self {
        Self::remembering(COOKIES_MAX, held)
    }

    fn remembering(cookies_max: usize, held: &Arc<HeldNames>) -> Self {
        Self(Mutex::new(Numbered {
            cookies: VecDeque::new(),
            first: 0,
            numbers: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            cookies_max,
            held: held.clone(),
        }))
    }

    /// The offset for a cookie of the origin.
    pub(crate) fn of(&self, cookie: u64) -> u64 {
        THROUGH | if cookie < NUMBERED { cookie } else { NUMBERED | self.0.lock().number(cookie) }
    }

    /// The cookie of an offset; none if the offset was never given out, or too long ago.
    pub(crate) fn cookie(&self, offset: u64) -> Option<u64> {
        if offset == 0 {
            return Some(0);
        }
        let rest = offset.checked_sub(THROUGH).filter(|rest| *rest < THROUGH)?;
        match rest.checked_sub(NUMBERED) {
            None => Some(rest),
            Some(number) => self.0.lock().cookie(number),
        }
    }
}

impl Numbered {
    fn number(&mut self, cookie: u64) -> u64 {
        let Self { cookies, first, numbers, hasher, cookies_max, held } = self;
        let hash = |cookie: u64| hasher.hash_one(cookie);
        let at = |first: u64, number: u32| (u64::from(number).wrapping_sub(first)) % NUMBERED;
        let is_it = |number: &u32| cookies.get(at(*first, *number) as usize) == Some(&cookie);
        if let Some(number) = numbers.find(hash(cookie), is_it) {
            return u64::from(*number);
        }
        let is_enough =
            cookies.len() >= *cookies_max || (cookies.len() >= COOKIES_LEAST && held.is_full());
        if !is_enough {
            held.add(COOKIE_BYTES);
        } else if let Some(oldest) = cookies.pop_front() {
            let is_oldest = |number: &u32| u64::from(*number) == *first;
            if let Ok(entry) = numbers.find_entry(hash(oldest), is_oldest) {
                entry.remove();
            }
            *first = (*first + 1) % NUMBERED;
        }
        let number = (*first + cookies.len() as u64) % NUMBERED;
        cookies.push_back(cookie);
        let rehash = |number: &u32| hash(cookies[at(*first, *number) as usize]);
        numbers.insert_unique(hash(cookie), number as u32, rehash);
        number
    }

    fn cookie(&self, number: u64) -> Option<u64> {
        let at = number.wrapping_sub(self.first) % NUMBERED;
        self.cookies.get(at as usize).copied()
    }
}

impl Drop for Numbered {
    fn drop(&mut self) {
        self.held.remove(self.cookies.len() as u64 * COOKIE_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cookies like ext4's: 63-bit hashes of names.
    fn long(number: u64) -> u64 {
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1 | 1 << 62
    }

    #[test]
    fn more_than_a_million_long_cookies_have_offsets_of_31_bits_that_lead_back_to_each() {
        let offsets = DirCookies::new(&Arc::default());
        let count = (1 << 20) + 5;
        for number in 0..count {
            let offset = offsets.of(long(number));
            assert!(is_through(offset) && offset < 1 << 31);
        }
        for number in (0..count).rev() {
            let offset = offsets.of(long(number));
            assert_eq!(offsets.cookie(offset), Some(long(number)));
        }
        assert_eq!(offsets.0.lock().cookies.len(), count as usize, "each was numbered once");
    }

    #[test]
    fn short_cookies_are_used_as_they_are_and_not_remembered() {
        let offsets = DirCookies::new(&Arc::default());
        for cookie in [1, 77, NUMBERED - 1] {
            assert_eq!(offsets.cookie(offsets.of(cookie)), Some(cookie));
        }
        assert!(offsets.0.lock().cookies.is_empty());
        for cookie in [NUMBERED, THROUGH, u64::MAX >> 1, u64::MAX] {
            let offset = offsets.of(cookie);
            assert!(offset < 1 << 31);
            assert_eq!(offsets.cookie(offset), Some(cookie));
        }
    }

    #[test]
    fn unknown_and_dropped_offsets_have_no_cookie() {
        let offsets = DirCookies::remembering(3, &Arc::default());
        assert_eq!(offsets.cookie(0), Some(0), "the beginning");
        for never_told in [1, 1 << 16, THROUGH | NUMBERED, 1 << 31, u64::MAX] {
            assert_eq!(offsets.cookie(never_told), None, "{never_told:#x}");
        }
        let given: Vec<u64> = (0..10).map(|number| offsets.of(long(number))).collect();
        let known = |at: usize| offsets.cookie(given[at]);
        assert_eq!((known(6), known(7), known(9)), (None, Some(long(7)), Some(long(9))));
        assert_ne!(offsets.of(long(0)), given[0], "a number is not reused so soon");
        assert_eq!(offsets.0.lock().numbers.len(), 3);
    }

    #[test]
    fn numbers_start_again_when_they_run_out() {
        let offsets = DirCookies::remembering(4, &Arc::default());
        offsets.0.lock().first = NUMBERED - 2;
        let given: Vec<u64> = (0..6).map(|number| offsets.of(long(number))).collect();
        for (number, offset) in (0..).zip(&given).skip(2) {
            assert_eq!(offsets.cookie(*offset), Some(long(number)));
            assert_eq!(offsets.of(long(number)), *offset);
        }
        assert!(given.iter().all(|offset| *offset < 1 << 31));
    }

    #[test]
    fn a_table_forgets_its_oldest_offsets_when_too_much_is_held() {
        let held = Arc::new(HeldNames::default());
        let offsets = DirCookies::new(&held);
        let least = COOKIES_LEAST as u64;
        let given: Vec<_> = (0..2 * least).map(|number| offsets.of(long(number))).collect();
        assert_eq!(held.bytes(), 2 * least * COOKIE_BYTES);
        held.add(1 << 40);
        let last = offsets.of(long(2 * least));
        assert_eq!(offsets.cookie(last), Some(long(2 * least)));
        assert_eq!(offsets.cookie(given[0]), None, "it stopped growing");
        assert_eq!(offsets.cookie(given[1]), Some(long(1)));
        let small = DirCookies::new(&held);
        let first = small.of(long(0));
        (1..least).for_each(|number| assert_ne!(small.of(long(number)), first));
        assert_eq!(small.cookie(first), Some(long(0)), "each keeps at least this many");
        drop((offsets, small));
        assert_eq!(held.bytes(), 1 << 40);
    }
}
