//! The index of a sublist: from a part of the hash to numbers of entries, read without a lock.
//!
//! Open addressing with linear probing in slots of 8 bytes: 32 bits of the hash and a number.
//! The place of a key follows from those 32 bits, so tables grow and shrink without looking at
//! a key. One thread at a time writes, under the sublist's lock; removal moves later slots
//! back, so there are no tombstones.
//!
//! A reader may see a number that has just been removed or moved: it looks at the entry anyway
//! to compare the key. It may miss a number that is being moved: so somebody who has found
//! nothing knows that there is nothing only if [`Index::version`] has stayed the same.
//!
//! Tables have 64 slots times a power of two, or one and a half times that. Each is allocated
//! once and reused; one that is not in use is zero, with its pages given back, and freed with the
//! index. So a reader that has been sleeping in an old table finds nothing there, and a new
//! version.

use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::OnceLock;

const TABLES: usize = 54;
const FIRST: usize = 64;

/// Slots from its home on where most numbers stand. A search compares these without a branch for
/// each, for how far a number is from its home cannot be foretold.
const NEAR: usize = 4;

/// Most slots in use, in eighths of the table.
const LOAD_EIGHTHS: usize = 7;

type Table = Box<[AtomicU64]>;

/// From hashes to numbers.
pub(crate) struct Index {
    /// Odd while slots are being moved.
    version: AtomicU64,
    current: AtomicUsize,
    tables: [OnceLock<Table>; TABLES],
}

/// Bytes of index an entry takes at most, once there are 64: at the load just after growth.
pub(crate) const ENTRY_BYTES_MAX: usize = (8_usize * 8 * 3).div_ceil(LOAD_EIGHTHS * 2);

const fn table_len(table: usize) -> usize {
    let half_more = table % 2;
    (FIRST << (table / 2)) + half_more * ((FIRST << (table / 2)) / 2)
}

#[cfg(not(any(shuttle, loom)))]
fn make(table: usize) -> Table {
    // Zeroed by the system, page by page when it is used.
    super::pages::atomics(vec![0; table_len(table)].into_boxed_slice())
}

#[cfg(any(shuttle, loom))]
fn make(table: usize) -> Table {
    (0..table_len(table)).map(|_| AtomicU64::new(0)).collect()
}

#[inline]
fn home(hash: u32, len: usize) -> usize {
    ((u64::from(hash) * len as u64) >> 32) as usize
}

const fn slot(hash: u32, id: u32) -> u64 {
    ((hash as u64) << 32) | (id as u64 + 1)
}

const fn hash_of(slot: u64) -> u32 {
    (slot >> 32) as u32
}

impl Index {
    pub(crate) fn new() -> Self {
        let index = Self {
            version: AtomicU64::new(0),
            current: AtomicUsize::new(0),
            tables: std::array::from_fn(|_| OnceLock::new()),
        };
        index.tables[0].get_or_init(|| make(0));
        index
    }

    #[inline]
    fn table(&self) -> &[AtomicU64] {
        let current = self.current.load(Ordering::Acquire);
        self.tables[current].get().map_or(&[], |table| table)
    }

    /// What to compare after a search that found nothing. `None` while slots are being moved.
    pub(crate) fn version(&self) -> Option<u64> {
        let version = self.version.load(Ordering::Acquire);
        version.is_multiple_of(2).then_some(version)
    }

    /// From now on nobody can be sure that a key is not here. Only under the lock. Returns what
    /// [`Index::end`] has to be told, if it is the caller who has begun this.
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

    /// The first number with this hash that `is_it` agrees to.
    #[inline]
    pub(crate) fn find<R>(&self, hash: u32, mut is_it: impl FnMut(u32) -> Option<R>) -> Option<R> {
        let table = self.table();
        let home = home(hash, table.len());
        let Some(near) = table.get(home..).and_then(|slots| slots.first_chunk::<NEAR>()) else {
            return Self::find_far(table, home, hash, is_it);
        };
        let near = near.each_ref().map(|slot| slot.load(Ordering::Acquire));
        let (mut same, mut empty) = (0_u32, false);
        for (n, &slot) in near.iter().enumerate() {
            same |= u32::from(hash_of(slot) == hash && slot != 0) << n;
            empty |= slot == 0;
        }
        while same != 0 {
            let slot = near[same.trailing_zeros() as usize % NEAR];
            if let Some(result) = is_it((slot as u32).wrapping_sub(1)) {
                return Some(result);
            }
            same &= same - 1;
        }
        if empty {
            return None;
        }
        Self::find_far(table, home + NEAR, hash, is_it)
    }

    /// The same, slot by slot from one on.
    fn find_far<R>(
        table: &[AtomicU64],
        from: usize,
        hash: u32,
        mut is_it: impl FnMut(u32) -> Option<R>,
    ) -> Option<R> {
        let mut at = if from < table.len() { from } else { 0 };
        // A full turn ends it, should a reader find a table full that is changed under it.
        for _ in 0..table.len() {
            let found = table[at].load(Ordering::Acquire);
            if found == 0 {
                return None;
            }
            if hash_of(found) == hash
                && let Some(result) = is_it((found as u32).wrapping_sub(1))
            {
                return Some(result);
            }
            at += 1;
            if at == table.len() {
                at = 0;
            }
        }
        None
    }

    /// Adds a number; `len` is how many there are already. Only under the lock.
    pub(crate) fn insert(&self, hash: u32, id: u32, len: usize) {
        if (len + 1) * 8 > self.table().len() * LOAD_EIGHTHS {
            self.rebuild(self.current.load(Ordering::Relaxed) + 1);
        }
        put(self.table(), slot(hash, id));
    }

    /// Removes a number. Only under the lock. Returns whether it was there.
    pub(crate) fn remove(&self, hash: u32, id: u32) -> bool {
        let table = self.table();
        let wanted = slot(hash, id);
        let mut hole = home(hash, table.len());
        loop {
            match table[hole].load(Ordering::Relaxed) {
                0 => return false,
                found if found == wanted => break,
                _ => hole = (hole + 1) % table.len(),
            }
        }
        let began = self.begin();
        let mut at = hole;
        loop {
            at = if at + 1 == table.len() { 0 } else { at + 1 };
            let found = table[at].load(Ordering::Relaxed);
            if found == 0 {
                break;
            }
            let home = home(hash_of(found), table.len());
            // Whether its home is not between the hole and where it stands, going round.
            let stays =
                if hole < at { hole < home && home <= at } else { hole < home || home <= at };
            if !stays {
                table[hole].store(found, Ordering::Release);
                hole = at;
            }
        }
        table[hole].store(0, Ordering::Release);
        self.end(began);
        true
    }

    /// Puts another number in the place of one. Only under the lock.
    pub(crate) fn replace(&self, hash: u32, id: u32, by: u32) {
        let table = self.table();
        let wanted = slot(hash, id);
        let mut at = home(hash, table.len());
        loop {
            match table[at].load(Ordering::Relaxed) {
                0 => return,
                found if found == wanted => {
                    return table[at].store(slot(hash, by), Ordering::Release);
                }
                _ => at = (at + 1) % table.len(),
            }
        }
    }

    /// Makes the table fit for `len` numbers, if it is far too large. Only under the lock.
    pub(crate) fn shrink(&self, len: usize) {
        let current = self.current.load(Ordering::Relaxed);
        if len * 4 >= self.table().len() {
            return;
        }
        let fits = (0..current).find(|&table| len * 8 <= table_len(table) * (LOAD_EIGHTHS - 1));
        if let Some(table) = fits {
            self.rebuild(table);
        }
    }

    fn rebuild(&self, to: usize) {
        let new = self.tables[to].get_or_init(|| make(to));
        let began = self.begin();
        let old = self.table();
        for found in old {
            let found = found.load(Ordering::Relaxed);
            if found != 0 {
                put(new, found);
            }
        }
        self.current.store(to, Ordering::Release);
        old.iter().for_each(|slot| slot.store(0, Ordering::Release));
        self.end(began);
        super::pages::give_back(old.as_ptr() as usize, size_of_val(old));
    }

    /// Bytes of the table in use.
    pub(crate) fn bytes(&self) -> usize {
        self.table().len() * 8
    }
}

fn put(table: &[AtomicU64], slot: u64) {
    let mut at = home(hash_of(slot), table.len());
    while table[at].load(Ordering::Relaxed) != 0 {
        at = if at + 1 == table.len() { 0 } else { at + 1 };
    }
    table[at].store(slot, Ordering::Release);
}

#[cfg(all(test, not(shuttle), not(loom)))]
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
    fn what_is_in_is_found_through_growth_removal_and_shrinking() {
        let index = Index::new();
        let mut model: HashMap<u32, u32> = HashMap::new();
        let mut state = 1_u32;
        for step in 0..if cfg!(miri) { 600 } else { 20_000_u32 } {
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
        assert_eq!(index.bytes(), FIRST * 8);
    }

    #[test]
    fn the_version_tells_of_every_move() {
        let index = Index::new();
        let before = index.version();
        (0..50).for_each(|id| index.insert(7, id, id as usize));
        assert_eq!(index.version(), before, "what is added moves nothing");
        index.remove(7, 0);
        assert_ne!(index.version(), before);
    }
}
