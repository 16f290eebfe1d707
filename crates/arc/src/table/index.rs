//! The index of a sublist: from a part of the hash to numbers of entries, read without a lock.
//!
//! It is open addressing with linear probing, in slots of 8 bytes: 32 bits of the hash and a
//! number. The home of a key follows from those 32 bits, so tables grow and shrink without looking
//! at a key. A home is the beginning of a cache line, so most searches read one line. With two
//! thirds of all slots in use, one number in thirty stands beyond its line; with seven eighths, one
//! in eight.
//!
//! A line is filled from its beginning. A number stands beyond its line only if the line is full,
//! so a search ends at a line that is not. One thread at a time writes, under the sublist's lock.
//! Removal moves the last number of the line into the hole. If the line was full, it also moves
//! back a number that had gone past it. So there are no tombstones.
//!
//! A reader may see a number that has just been removed or moved, or the hash of one number with
//! another. That is harmless: it looks at the entry to compare the key. It may also miss a number
//! that is being moved. So a reader that has found nothing knows that there is nothing only if
//! [`Index::version`] has stayed the same. An empty slot gets its hash before its number, so a
//! reader that sees the number sees the hash.
//!
//! Tables have 64 slots times a power of two, or one and a half times that. Each is allocated once,
//! reused, and freed with the index. A table that is not in use is zero, with its pages given back.
//! So a reader that was delayed in an old table finds nothing there, and a new version.

use super::pages::{Line, SLOTS, Tables, give_back, home_line, table_len};
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Most slots in use, in eighths of the table.
const LOAD_EIGHTHS: usize = 7;

/// From hashes to numbers.
pub(crate) struct Index {
    tables: Tables,
    /// Odd while slots are being moved. Away from what every hit reads.
    version: Box<AtomicU64>,
}

/// Bytes of index an entry takes at most, once there are 64: at the load just after growth.
pub(crate) const ENTRY_BYTES_MAX: usize = (8_usize * 8 * 3).div_ceil(LOAD_EIGHTHS * 2);

/// The lines of a table.
#[derive(Clone, Copy)]
struct Lines<'a>(&'a [Line]);

impl Line {
    /// The first slot that has this hash. If none has, a number beyond the last slot. An empty slot
    /// may be taken for one.
    ///
    /// The result cannot be predicted, so there is no branch for it.
    #[inline(always)]
    fn first_with(&self, hash: u32, order: Ordering) -> usize {
        let mut at = SLOTS;
        for (slot, found) in self.hashes.iter().enumerate().rev() {
            at = if found.load(order) == hash { slot } else { at };
        }
        at
    }

    /// The slots that have this hash. Empty ones may be among them.
    #[inline(always)]
    fn slots_with(&self, hash: u32) -> impl Iterator<Item = usize> {
        // A reader that finds nothing looks at the version next. It must see it at least as new as
        // the moves that it saw.
        let has_it = move |&at: &usize| self.hashes[at].load(Ordering::Acquire) == hash;
        (self.first_with(hash, Ordering::Acquire)..SLOTS).filter(has_it)
    }

    /// A line is filled from its beginning.
    #[inline(always)]
    fn is_full(&self) -> bool {
        self.numbers[SLOTS - 1].load(Ordering::Acquire) != 0
    }

    /// Slots in use.
    fn len(&self) -> usize {
        let empty = |number: &AtomicU32| number.load(Ordering::Acquire) == 0;
        self.numbers.iter().position(empty).unwrap_or(SLOTS)
    }

    /// The contents of a slot.
    fn get(&self, at: usize) -> Option<(u32, u32)> {
        let id = self.numbers[at].load(Ordering::Acquire).checked_sub(1)?;
        Some((self.hashes[at].load(Ordering::Acquire), id))
    }

    fn set(&self, at: usize, (hash, id): (u32, u32)) {
        self.hashes[at].store(hash, Ordering::Release);
        self.numbers[at].store(id + 1, Ordering::Release);
    }

    /// Empties a slot; of the hash, too, so that it does not hide another with the same.
    fn empty(&self, at: usize) {
        self.numbers[at].store(0, Ordering::Release);
        self.hashes[at].store(0, Ordering::Release);
    }

    /// The slot with a number that has this hash.
    fn find(&self, (hash, id): (u32, u32)) -> Option<usize> {
        self.slots_with(hash).find(|&at| self.get(at) == Some((hash, id)))
    }
}

impl<'a> Lines<'a> {
    /// Slots of all of them.
    const fn slots(self) -> usize {
        self.0.len() * SLOTS
    }

    /// Where a search for a hash begins.
    const fn home(self, hash: u32) -> usize {
        home_line(hash, self.0.len())
    }

    /// How many lines it is from one to another, going round.
    const fn distance(self, from: usize, to: usize) -> usize {
        if from <= to { to - from } else { to + self.0.len() - from }
    }

    /// All lines, each with its number, from one on.
    fn from(self, line: usize) -> impl Iterator<Item = (usize, &'a Line)> {
        let (before, from) = self.0.split_at(line);
        (line..).zip(from).chain((0..).zip(before))
    }

    /// Puts a number into the first empty slot there is for it.
    fn put(self, (hash, id): (u32, u32)) {
        let mut lines = self.from(self.home(hash));
        let (_, line) = lines.find(|(_, line)| !line.is_full()).expect("a table is never full");
        line.set(line.len(), (hash, id));
    }

    /// The line and the slot of a number that has this hash.
    fn find(self, (hash, id): (u32, u32)) -> Option<(usize, usize)> {
        for (number, line) in self.from(self.home(hash)) {
            if let Some(at) = line.find((hash, id)) {
                return Some((number, at));
            }
            if !line.is_full() {
                return None;
            }
        }
        None
    }

    /// Empties a slot, and fills the hole so that every search finds what it did.
    fn close(self, (mut number, mut hole): (usize, usize)) {
        loop {
            let line = &self.0[number];
            let len = line.len();
            // Numbers have gone past this line only if it was full.
            if len == SLOTS
                && let Some((beyond, at, found)) = self.gone_past(number)
            {
                line.set(hole, found);
                (number, hole) = (beyond, at);
                continue;
            }
            if let Some(last) = line.get(len - 1).filter(|_| len - 1 != hole) {
                line.set(hole, last);
            }
            return line.empty(len - 1);
        }
    }

    /// A slot beyond a line whose home is that line, or one before.
    fn gone_past(self, line: usize) -> Option<(usize, usize, (u32, u32))> {
        for (number, beyond) in self.from(line).skip(1) {
            for at in 0..beyond.len() {
                let found = beyond.get(at)?;
                let from_home = self.distance(self.home(found.0), number);
                if from_home >= self.distance(line, number) {
                    return Some((number, at, found));
                }
            }
            if !beyond.is_full() {
                return None;
            }
        }
        None
    }
}

impl Index {
    pub(crate) fn new() -> Self {
        Self { tables: Tables::new(), version: Box::new(AtomicU64::new(0)) }
    }

    fn lines(&self) -> Lines<'_> {
        Lines(self.tables.lines())
    }

    /// A version to compare after a search that found nothing. `None` while slots are being moved.
    pub(crate) fn version(&self) -> Option<u64> {
        let version = self.version.load(Ordering::Acquire);
        version.is_multiple_of(2).then_some(version)
    }

    /// From now on no reader can be sure that a key is absent. Only under the lock. Returns what
    /// [`Index::end`] needs; `None` if an outer call has begun this already.
    pub(crate) fn begin(&self) -> Option<u64> {
        let version = self.version()?;
        self.version.store(version + 1, Ordering::Release);
        Some(version)
    }

    /// Ends what [`Index::begin`] began.
    pub(crate) fn end(&self, began: Option<u64>) {
        if let Some(version) = began {
            self.version.store(version + 2, Ordering::Release);
        }
    }

    /// A number with this hash, if there is one in its home line, as for most. A number that is not
    /// found here may be elsewhere. The entry that is found may be another key's, or may have gone.
    #[inline(always)]
    pub(crate) fn near(&self, hash: u32) -> Option<u32> {
        let line = self.tables.line(hash);
        // Only a hint: after the pin the caller compares the key.
        let at = line.first_with(hash, Ordering::Relaxed);
        let number = line.numbers.get(at)?.load(Ordering::Acquire);
        number.checked_sub(1)
    }

    /// The first number with this hash that `is_it` agrees to.
    pub(crate) fn find<R>(&self, hash: u32, mut is_it: impl FnMut(u32) -> Option<R>) -> Option<R> {
        let lines = self.lines();
        // Ends after a full turn, in case a reader finds a full table that is being changed.
        for (_, line) in lines.from(lines.home(hash)) {
            for at in line.slots_with(hash) {
                if let Some(id) = line.numbers[at].load(Ordering::Acquire).checked_sub(1)
                    && let Some(result) = is_it(id)
                {
                    return Some(result);
                }
            }
            if !line.is_full() {
                return None;
            }
        }
        None
    }

    /// Adds a number; `len` is how many there are already. Only under the lock.
    pub(crate) fn insert(&self, hash: u32, id: u32, len: usize) {
        if (len + 1) * 8 > self.lines().slots() * LOAD_EIGHTHS {
            self.rebuild(self.tables.number() + 1);
        }
        self.lines().put((hash, id));
    }

    /// Removes a number. Only under the lock. Returns whether it was there.
    pub(crate) fn remove(&self, hash: u32, id: u32) -> bool {
        let lines = self.lines();
        let Some(slot) = lines.find((hash, id)) else {
            return false;
        };
        let began = self.begin();
        lines.close(slot);
        self.end(began);
        true
    }

    /// Puts another number in the place of one. Only under the lock.
    pub(crate) fn replace(&self, hash: u32, id: u32, by: u32) {
        let lines = self.lines();
        if let Some((line, at)) = lines.find((hash, id)) {
            lines.0[line].set(at, (hash, by));
        }
    }

    /// Makes the table fit for `len` numbers, if it is far too large. Only under the lock.
    pub(crate) fn shrink(&self, len: usize) {
        let current = self.tables.number();
        if len * 4 >= self.lines().slots() {
            return;
        }
        let fits = (0..current).find(|&table| len * 8 <= table_len(table) * (LOAD_EIGHTHS - 1));
        if let Some(table) = fits {
            self.rebuild(table);
        }
    }

    fn rebuild(&self, to: usize) {
        let (old, new) = (self.lines(), Lines(self.tables.table(to)));
        let began = self.begin();
        let slots = || old.0.iter().flat_map(|line| (0..SLOTS).map(move |at| (line, at)));
        slots().filter_map(|(line, at)| line.get(at)).for_each(|found| new.put(found));
        self.tables.use_table(to);
        slots().for_each(|(line, at)| line.empty(at));
        self.end(began);
        give_back(old.0.as_ptr() as usize, size_of_val(old.0));
    }

    /// Bytes of the table in use.
    pub(crate) fn bytes(&self) -> usize {
        self.lines().slots() * 8
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn numbers(index: &Index, hash: u32) -> Vec<u32> {
        let mut found = Vec::new();
        index.find(hash, |id| {
            found.push(id);
            None::<()>
        });
        found
    }

    #[test]
    fn entries_are_found_through_growth_removal_and_shrinking() {
        let index = Index::new();
        let mut model: HashMap<u32, u32> = HashMap::new();
        let mut state = 1_u32;
        for step in 0..if cfg!(miri) { 100 } else { 20_000_u32 } {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Few different places, so that runs of slots wrap and collide.
            let hash = (state >> 8) & 0xFF00_03FF;
            if let Some(id) = model.remove(&hash) {
                assert!(index.remove(hash, id) && !index.remove(hash, id));
            } else {
                index.insert(hash, step, model.len());
                model.insert(hash, step);
            }
            if step % 97 == 0 {
                index.shrink(model.len());
                for (&hash, &id) in &model {
                    assert_eq!(numbers(&index, hash), [id]);
                    assert!(index.near(hash).is_none_or(|near| near == id));
                }
            }
        }
        assert!(index.version().is_some());
        for (hash, id) in model {
            index.replace(hash, id, id + 1);
            assert_eq!(numbers(&index, hash), [id + 1]);
            assert!(index.remove(hash, id + 1));
        }
        index.shrink(0);
        assert_eq!(index.bytes(), table_len(0) * 8);
    }

    #[test]
    fn most_numbers_stand_in_the_line_of_their_home_and_are_found_there() {
        let index = Index::new();
        let hash = |id: u32| (id + 1).wrapping_mul(0x9E37_79B9).rotate_left(13) ^ id;
        let count = if cfg!(miri) { 100 } else { 4096 };
        (0..2 * count).for_each(|id| index.insert(hash(id), id, id as usize));
        // Entries that were moved into the holes are found as before.
        (0..count).for_each(|id| assert!(index.remove(hash(id), id)));
        let near = (count..2 * count).filter(|&id| index.near(hash(id)) == Some(id)).count();
        assert!(near as u32 >= count / 10 * 9, "{near} of {count}");
        assert!((0..count).all(|id| index.near(hash(id)).is_none()));
    }

    #[test]
    fn no_reader_is_sure_of_absence_while_an_entry_is_moved() {
        // Nine whose home is the first line: the last stands in the second, until one leaves.
        const LAST: u32 = 8;
        for round in 0..if cfg!(miri) { 30 } else { 1000 } {
            let index = Index::new();
            (0..=LAST).for_each(|id| index.insert(id + 1, id, id as usize));
            std::thread::scope(|scope| {
                let searches = || {
                    for _ in 0..3 {
                        let before = index.version();
                        let found = index.find(LAST + 1, |id| (id == LAST).then_some(()));
                        let sure = before.is_some() && index.version() == before;
                        assert!(found.is_some() || !sure, "in round {round}");
                    }
                };
                scope.spawn(searches);
                assert!(index.remove(round % LAST + 1, round % LAST));
            });
            assert_eq!(index.near(LAST + 1), Some(LAST));
        }
    }

    #[test]
    fn the_version_changes_with_every_move() {
        let index = Index::new();
        let before = index.version();
        (0..50).for_each(|id| index.insert(7, id, id as usize));
        assert_eq!(index.version(), before, "what is added moves nothing");
        index.remove(7, 0);
        assert_ne!(index.version(), before);
    }
}
