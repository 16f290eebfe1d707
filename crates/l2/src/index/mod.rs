//! The index: the place of each record on the device, in eight bytes.
//!
//! A cuckoo table of 64-byte buckets with eight slots, and two buckets per key. This is partial-key
//! cuckoo hashing (Fan, Andersen and Kaminsky, "MemC3", NSDI '13; Pagh and Rodler, "Cuckoo
//! Hashing", 2004). A slot is one word, [`Slot`]. It does not identify the key for certain; the
//! record on the device does that. A slot that finds no place is dropped: a lost hit, never a wrong
//! one.
//!
//! It is cut into parts by hash, each a table of its own (`table`). So it grows and gives memory
//! back piece by piece, and takes little memory for that.
//!
//! # Giving memory back
//! [`Index::shrink`] halves parts until enough is free. When two buckets become one, the slots that
//! had hits stay, and then the youngest. So it forgets the coldest segments first. Their records
//! stay on the device, unknown until the next opening.
//!
//! # Concurrency
//! Readers load each way once. One thread inserts; it writes the new place of a slot before it
//! clears the old one. Any thread may note a reference or remove a slot, by compare-and-swap. The
//! lock around a part's table is taken for writing only to swap in another, complete one. Readers
//! of different parts share no cache line. A part has a mutex for the thread that inserts and for
//! the one that changes its size; readers do not take it.

mod slot;
mod table;

pub use slot::{LengthClasses, Slot, TAG_BITS};

use parking_lot::{Mutex, RwLock};
use std::sync::atomic::{AtomicU64, Ordering};
use table::{BUCKET_BYTES, Table, WAYS};

/// Fullness in percent above which the table grows, if it may, when a key finds no room.
const FULL_PERCENT: u64 = 70;
/// Fullness in percent that a table is sized for.
const PLANNED_PERCENT: u64 = 90;
/// Fullness in percent from which no way is looked for to make room: there hardly is one.
const CROWDED_PERCENT: u64 = 98;
/// Buckets of a part, at least, where there is more than one; and the most parts.
const PART_BUCKETS_MIN: u64 = 4096;
const PARTS_MAX: u64 = 64;

/// The parts of a key that the index uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    tag: u64,
    spread: u64,
}

impl Place {
    /// A part of a record's key, which is uniform.
    pub fn of(key: &[u8; 16]) -> Self {
        let number = u128::from_le_bytes(*key);
        Self { tag: number as u64 & ((1 << TAG_BITS) - 1), spread: (number >> 64) as u64 }
    }
}

/// The outcome of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// It has a place of its own.
    Added,
    /// It took the place of an older one of the same key.
    Replaced(Slot),
    /// It took the place of another key, which is lost.
    Displaced(Slot),
}

/// The index of a device.
pub struct Index {
    parts: Box<[Part]>,
    /// Memory of all tables.
    size_bytes: AtomicU64,
    /// Most bytes it may grow to.
    bytes_max: AtomicU64,
}

/// A piece of the index, on cache lines of its own.
#[repr(align(128))]
struct Part {
    table: RwLock<Table>,
    records: AtomicU64,
    /// Held to insert, or to change the size. Before the table's lock.
    change: Mutex<()>,
}

/// The memory that was given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shrunk {
    /// Memory that is free now.
    pub bytes: u64,
    /// Records that the index knew and forgot for it.
    pub records: u64,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index").field("records", &self.records()).finish_non_exhaustive()
    }
}

impl Index {
    /// For this many records, at nine tenths full; it grows to at most `bytes_max`.
    pub fn new(records: u64, bytes_max: u64) -> Self {
        let wanted = (records * 100 / PLANNED_PERCENT).div_ceil(WAYS as u64);
        let most = (bytes_max / BUCKET_BYTES).max(1);
        let buckets = wanted.clamp(1, most);
        let count = (buckets / PART_BUCKETS_MIN).clamp(1, PARTS_MAX);
        let part = |_| Part {
            table: RwLock::new(Table::new(buckets.div_ceil(count), most / count)),
            records: AtomicU64::new(0),
            change: Mutex::new(()),
        };
        let parts: Box<[Part]> = (0..count).map(part).collect();
        let size_bytes = parts.iter().map(|part| part.table.read().size_bytes()).sum();
        Self { parts, size_bytes: AtomicU64::new(size_bytes), bytes_max: AtomicU64::new(bytes_max) }
    }

    /// Records in it.
    pub fn records(&self) -> u64 {
        self.parts.iter().map(|part| part.records.load(Ordering::Relaxed)).sum()
    }

    /// Memory it takes.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes.load(Ordering::Relaxed)
    }

    /// The part of a key, and what spreads keys in it.
    fn part(&self, place: Place) -> (&Part, Place) {
        let wide = u128::from(place.spread) * self.parts.len() as u128;
        let part = &self.parts[(wide >> 64) as usize];
        (part, Place { tag: place.tag, spread: wide as u64 })
    }

    /// The slot of a key.
    pub fn find(&self, place: Place) -> Option<Slot> {
        let (part, place) = self.part(place);
        part.table.read().find(place).map(|(_, slot)| slot)
    }

    /// Notes that a record was of use.
    pub fn touch(&self, place: Place) {
        let (part, place) = self.part(place);
        let table = part.table.read();
        let Some((cell, slot)) = table.find(place) else { return };
        let touched = slot.referenced();
        if touched != slot {
            // If another thread has changed it, one reference is not counted.
            let _ = cell.compare_exchange(
                slot.bits(),
                touched.bits(),
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
    }

    /// Forgets a key, if it is at this address; returns its slot.
    pub fn remove(&self, place: Place, address: u64) -> Option<Slot> {
        let (part, place) = self.part(place);
        let table = part.table.read();
        let (cell, slot) = table.find(place).filter(|(_, slot)| slot.address() == address)?;
        let bits = slot.bits();
        cell.compare_exchange(bits, 0, Ordering::AcqRel, Ordering::Relaxed).ok()?;
        part.forget(1);
        Some(slot)
    }

    /// Forgets everything at addresses in the range.
    pub fn remove_range(&self, addresses: std::ops::Range<u64>) {
        for part in &self.parts {
            let removed = part.table.read().remove_range(&addresses);
            part.forget(removed);
        }
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.remove_range(0..u64::MAX);
    }

    /// Puts a key in. Only one thread at a time may.
    pub fn insert(&self, place: Place, class: u8, address: u64) -> Inserted {
        let slot = Slot::new(place.tag, class, address);
        let (part, place) = self.part(place);
        let _changing = part.change.lock();
        loop {
            let table = part.table.read();
            if let Some((cell, old)) = table.find(place) {
                cell.store(slot.bits(), Ordering::Release);
                return Inserted::Replaced(old);
            }
            let used = part.records.load(Ordering::Relaxed);
            if table.put(place, slot, used * 100 < table.slots() * CROWDED_PERCENT) {
                part.records.fetch_add(1, Ordering::Relaxed);
                return Inserted::Added;
            }
            if !self.may_grow(part, &table) {
                return Inserted::Displaced(table.displace(place, slot));
            }
            let Some(larger) = table.grown() else {
                return Inserted::Displaced(table.displace(place, slot));
            };
            drop(table);
            self.replace(part, larger);
        }
    }

    /// Whether a larger table is allowed, and a fuller one no alternative: an unlucky key in a
    /// table with room is displaced.
    fn may_grow(&self, part: &Part, table: &Table) -> bool {
        part.records.load(Ordering::Relaxed) * 100 >= table.slots() * FULL_PERCENT
            && self.size_bytes() + table.size_bytes() <= self.bytes_max.load(Ordering::Relaxed)
    }

    /// Gives back about `want_bytes` of memory, or as much as it has. Does not grow beyond the rest
    /// until [`Index::allow_growth`]. The log is being written at `head`; ages follow from it.
    pub fn shrink(&self, want_bytes: u64, head: u64) -> Shrunk {
        let mut shrunk = Shrunk::default();
        let mut any = true;
        while any && shrunk.bytes < want_bytes {
            any = false;
            // The largest first, so that all parts lose alike.
            let mut parts: Vec<(u64, &Part)> =
                self.parts.iter().map(|part| (part.table.read().slots(), part)).collect();
            parts.sort_by_key(|(slots, _)| std::cmp::Reverse(*slots));
            let largest = parts.first().map_or(0, |(slots, _)| *slots);
            for (_, part) in parts.into_iter().take_while(|(slots, _)| *slots * 2 > largest) {
                if shrunk.bytes >= want_bytes {
                    break;
                }
                let _changing = part.change.lock();
                let table = part.table.read();
                let Some(smaller) = table.halved(head) else { continue };
                drop(table);
                let before = (self.size_bytes(), part.records.load(Ordering::Relaxed));
                self.replace(part, smaller);
                let after = part.records.load(Ordering::Relaxed);
                shrunk.bytes += before.0.saturating_sub(self.size_bytes());
                shrunk.records += before.1.saturating_sub(after);
                any = true;
            }
        }
        self.bytes_max.fetch_min(self.size_bytes(), Ordering::Relaxed);
        shrunk
    }

    /// Lets it grow again, to at most `bytes_max`.
    pub fn allow_growth(&self, bytes_max: u64) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// Readers use the old table until now. Their references and removals since the new one was
    /// begun may be lost, which is harmless.
    fn replace(&self, part: &Part, table: Table) {
        let (records, new_bytes) = (table.count(), table.size_bytes());
        let old = std::mem::replace(&mut *part.table.write(), table);
        part.records.store(records, Ordering::Relaxed);
        let old_bytes = old.size_bytes();
        drop(old);
        self.size_bytes.fetch_add(new_bytes.wrapping_sub(old_bytes), Ordering::Relaxed);
    }
}

impl Part {
    fn forget(&self, records: u64) {
        // During a change of size the count may be off by the slots that other threads change.
        let less = |count: u64| Some(count.saturating_sub(records));
        let _ = self.records.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

#[cfg(test)]
mod tests;
