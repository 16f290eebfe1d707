//! Memory that readers use without a lock: tables of zeroed cache lines that are never moved. Pages
//! of it can be given back to the system, and keep their addresses.
//!
//! One of a set of [`Tables`] is in use. One word says where it begins and how long it is. So a
//! reader cannot mix up two tables, and needs no other word before it reads the table.
#![allow(unsafe_code)]

use crate::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::ptr::null_mut;
use std::sync::OnceLock;

/// Slots of a line.
pub(super) const SLOTS: usize = 8;

/// A cache line of slots, each a part of a hash and a number. All zero is an empty one.
#[repr(C, align(64))]
pub(super) struct Line {
    pub(super) hashes: [AtomicU32; SLOTS],
    pub(super) numbers: [AtomicU32; SLOTS],
}

/// Lines of the smallest table.
const FIRST: usize = 8;

/// How many tables there can be. A pointer to a line has room for the number of one.
const TABLES: usize = 54;
const _: () = assert!(TABLES <= align_of::<Line>());

/// Drops the contents of the whole pages within a range of private memory. The range is of atomics
/// that are all zero, or may become so: the next read finds zeros.
///
/// To drop a part of a huge page frees nothing until memory is short: the page stays whole, with a
/// part that is not mapped. To declare that part free first (MADV_FREE) splits the page
/// (`madvise_free_huge_pmd` in the kernel's mm/huge_memory.c).
#[cfg(all(target_os = "linux", not(miri), not(shuttle)))]
pub(super) fn give_back(start: usize, len: usize) {
    use rustix::mm::{Advice, madvise};
    let page = rustix::param::page_size();
    let from = start.next_multiple_of(page);
    let to = (start + len) / page * page;
    if from < to {
        for advice in [Advice::LinuxFree, Advice::LinuxDontNeed] {
            // SAFETY: the range lies within one allocation of the caller's, which consists of
            // atomics for which zero is a valid value at this moment. A failure leaves everything
            // as it is.
            let _ = unsafe { madvise(from as *mut _, to - from, advice) };
        }
    }
}

/// Asks the system to back a range of private memory by huge pages from now on, where it has them,
/// or not to.
#[cfg(all(target_os = "linux", not(miri), not(shuttle)))]
pub(super) fn ask_for_huge_pages(start: usize, len: usize, huge: bool) {
    use rustix::mm::{Advice, madvise};
    let page = rustix::param::page_size();
    let (from, to) = (start.next_multiple_of(page), (start + len) / page * page);
    let advice = if huge { Advice::LinuxHugepage } else { Advice::LinuxNoHugepage };
    if from < to {
        // SAFETY: the range lies within one allocation of the caller's, and what is in it does not
        // change. A failure leaves everything as it is.
        let _ = unsafe { madvise(from as *mut _, to - from, advice) };
    }
}

#[cfg(not(all(target_os = "linux", not(miri), not(shuttle))))]
pub(super) fn give_back(_: usize, _: usize) {}

#[cfg(not(all(target_os = "linux", not(miri), not(shuttle))))]
pub(super) fn ask_for_huge_pages(_: usize, _: usize, _: bool) {}

/// Lines of a table: 8 times a power of two, or one and a half times that.
#[inline(always)]
const fn lines(number: usize) -> usize {
    (FIRST + number % 2 * (FIRST / 2)) << (number / 2)
}

/// Slots of a table.
pub(super) const fn table_len(number: usize) -> usize {
    lines(number) * SLOTS
}

#[cfg(not(shuttle))]
fn make(number: usize) -> Box<[Line]> {
    // SAFETY: a line is integers, for which zero is a value.
    unsafe { Box::new_zeroed_slice(lines(number)).assume_init() }
}

#[cfg(shuttle)]
fn make(number: usize) -> Box<[Line]> {
    let zeros = || std::array::from_fn(|_| AtomicU32::new(0));
    (0..lines(number)).map(|_| Line { hashes: zeros(), numbers: zeros() }).collect()
}

/// Tables by number, each made once and kept; one of them is in use.
pub(super) struct Tables {
    /// Where the table in use begins, and in the lowest bits its number.
    in_use: AtomicPtr<Line>,
    made: Box<[OnceLock<Box<[Line]>>; TABLES]>,
}

impl Tables {
    /// With the smallest in use.
    pub(super) fn new() -> Self {
        let made = Box::new(std::array::from_fn(|_| OnceLock::new()));
        let tables = Self { in_use: AtomicPtr::new(null_mut()), made };
        tables.use_table(0);
        tables
    }

    /// The lines of a table, in use or not.
    ///
    /// # Panics
    /// If there is no table of this number; the last one would not fit into memory.
    pub(super) fn table(&self, number: usize) -> &[Line] {
        self.made[number].get_or_init(|| make(number))
    }

    /// Has readers use a table from now on.
    pub(super) fn use_table(&self, number: usize) {
        let first = self.table(number).as_ptr().cast_mut();
        self.in_use.store(first.map_addr(|address| address | number), Ordering::Release);
    }

    #[inline(always)]
    fn first_and_number(&self) -> (*const Line, usize) {
        let in_use = self.in_use.load(Ordering::Acquire);
        let first = in_use.map_addr(|address| address / align_of::<Line>() * align_of::<Line>());
        (first, in_use.addr() % align_of::<Line>())
    }

    /// The number of the table in use.
    pub(super) fn number(&self) -> usize {
        self.first_and_number().1
    }

    /// The lines of the table in use.
    pub(super) fn lines(&self) -> &[Line] {
        let (first, number) = self.first_and_number();
        // SAFETY: the table that begins here was made with as many lines, and stays until this is
        // dropped.
        unsafe { std::slice::from_raw_parts(first, lines(number)) }
    }

    /// The line of the table in use that is as far into it as `hash` is into all there are.
    #[inline(always)]
    pub(super) fn line(&self, hash: u32) -> &Line {
        let (first, number) = self.first_and_number();
        // SAFETY: as in `lines`, and the line is one of them: `home_line` is less than their count.
        unsafe { &*first.add(home_line(hash, lines(number))) }
    }
}

/// The line of `lines`, of which there is at least one, where a hash belongs.
#[inline(always)]
pub(super) const fn home_line(hash: u32, lines: usize) -> usize {
    ((hash as u64 * lines as u64) >> 32) as usize
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn the_table_in_use_is_the_one_that_was_published_last() {
        let tables = Tables::new();
        assert_eq!((tables.number(), tables.lines().len()), (0, 8));
        for number in [5, 1, 8, 0] {
            tables.use_table(number);
            assert_eq!((tables.number(), tables.lines().len()), (number, lines(number)));
            assert_eq!(tables.lines().as_ptr(), tables.table(number).as_ptr());
            let last = tables.lines().last().expect("no table is empty");
            assert!(std::ptr::eq(tables.line(u32::MAX), last));
            assert!(std::ptr::eq(tables.line(0), &raw const tables.lines()[0]));
            assert_eq!(last.numbers[SLOTS - 1].swap(number as u32 + 1, Ordering::Relaxed), 0);
        }
        assert_eq!([0, 1, 2, 3, 8].map(table_len), [64, 96, 128, 192, 1024]);
    }
}
