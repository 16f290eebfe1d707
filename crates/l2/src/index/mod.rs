//! Which records are where: eight bytes each.
//!
//! A cuckoo table of 64-byte buckets with eight slots, two buckets a key (partial-key cuckoo
//! hashing: Fan, Andersen and Kaminsky, "MemC3", NSDI '13; Pagh and Rodler, "Cuckoo Hashing",
//! 2004). A slot is one word, [`Slot`]; nothing in it identifies the key for certain, the record
//! on the device does that. A slot that finds no place is dropped: a lost hit, never a wrong one.
//!
//! Growing doubles the buckets by bits of the tag, so it needs no keys. Both buckets of a slot
//! keep the same such bits.
//!
//! # Concurrency
//! Readers load each way once. One thread inserts; it writes the new place of a slot before it
//! clears the old one. Anybody may note a reference or remove a slot, by compare-and-swap. The lock
//! around the table is taken for writing only to swap in a larger one that is complete.

mod slot;

pub use slot::{LengthClasses, Slot, TAG_BITS};

use parking_lot::RwLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Slots of a bucket: a cache line.
const WAYS: usize = 8;
/// Slots that are looked at to make room for one: chains of two moves.
const STEPS_MAX: usize = 96;
/// Fullness in percent above which the table grows, if it may, when a key finds no room.
const FULL_PERCENT: u64 = 70;
/// Fullness in percent that a table is sized for.
const PLANNED_PERCENT: u64 = 90;
/// Doublings, each of which takes a bit of the tag: twelve are left to tell keys apart.
const GROWTH_MAX: u32 = 8;

/// A key, reduced to what the index uses of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    tag: u64,
    spread: u64,
}

impl Place {
    /// Of a record's key, which is uniform.
    pub fn of(key: &[u8; 16]) -> Self {
        let number = u128::from_le_bytes(*key);
        Self { tag: number as u64 & ((1 << TAG_BITS) - 1), spread: (number >> 64) as u64 }
    }
}

#[derive(Default)]
#[repr(align(64))]
struct Bucket([AtomicU64; WAYS]);

const _: () = assert!(size_of::<Bucket>() == 64);

struct Table {
    /// Buckets before any growth.
    base: u64,
    growth: u32,
    buckets: Box<[Bucket]>,
}

/// What became of an insertion.
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
    table: RwLock<Table>,
    records: AtomicU64,
    /// Most bytes it may grow to.
    bytes_max: u64,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index").field("records", &self.records()).finish_non_exhaustive()
    }
}

impl Index {
    /// For so many records, at nine tenths full; it grows to at most `bytes_max`.
    pub fn new(records: u64, bytes_max: u64) -> Self {
        let wanted = (records * 100 / PLANNED_PERCENT).div_ceil(WAYS as u64);
        let most = (bytes_max / size_of::<Bucket>() as u64).max(1);
        let table = Table::new(wanted.clamp(1, most), 0);
        Self { table: RwLock::new(table), records: AtomicU64::new(0), bytes_max }
    }

    /// Records in it.
    pub fn records(&self) -> u64 {
        self.records.load(Ordering::Relaxed)
    }

    /// Memory it takes.
    pub fn size_bytes(&self) -> u64 {
        self.table.read().buckets.len() as u64 * size_of::<Bucket>() as u64
    }

    /// The slot of a key.
    pub fn find(&self, place: Place) -> Option<Slot> {
        self.table.read().find(place).map(|(_, slot)| slot)
    }

    /// Notes that a record was of use.
    pub fn touch(&self, place: Place) {
        let table = self.table.read();
        let Some((cell, slot)) = table.find(place) else { return };
        let touched = slot.referenced();
        if touched != slot {
            // If somebody else changed it meanwhile, one reference is not counted.
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
        let table = self.table.read();
        let (cell, slot) = table.find(place).filter(|(_, slot)| slot.address() == address)?;
        let bits = slot.bits();
        cell.compare_exchange(bits, 0, Ordering::AcqRel, Ordering::Relaxed).ok()?;
        self.records.fetch_sub(1, Ordering::Relaxed);
        Some(slot)
    }

    /// Forgets everything at addresses in the range.
    pub fn remove_range(&self, addresses: std::ops::Range<u64>) {
        let table = self.table.read();
        for cell in table.buckets.iter().flat_map(|bucket| &bucket.0) {
            let bits = cell.load(Ordering::Relaxed);
            let inside = Slot::from_bits(bits).is_some_and(|s| addresses.contains(&s.address()));
            if inside && cell.compare_exchange(bits, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            {
                self.records.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.remove_range(0..u64::MAX);
    }

    /// Puts a key in. Only one thread at a time may.
    pub fn insert(&self, place: Place, class: u8, address: u64) -> Inserted {
        let slot = Slot::new(place.tag, class, address);
        loop {
            let table = self.table.read();
            if let Some((cell, old)) = table.find(place) {
                cell.store(slot.bits(), Ordering::Release);
                return Inserted::Replaced(old);
            }
            if table.put(place, slot) {
                self.records.fetch_add(1, Ordering::Relaxed);
                return Inserted::Added;
            }
            if !self.may_grow(&table) {
                return Inserted::Displaced(table.displace(place, slot));
            }
            drop(table);
            self.grow();
        }
    }

    /// Whether a larger table is allowed, and a fuller one no alternative: an unlucky key in a
    /// table with room is displaced.
    fn may_grow(&self, table: &Table) -> bool {
        let slots = (table.buckets.len() * WAYS) as u64;
        self.records() * 100 >= slots * FULL_PERCENT
            && table.growth < GROWTH_MAX
            && table.buckets.len() as u64 * 2 * size_of::<Bucket>() as u64 <= self.bytes_max
    }

    /// Doubles the table. Readers go on with the old one until the new one is complete; what they
    /// change meanwhile, references and removals, may be lost, which is harmless.
    fn grow(&self) {
        let larger = self.table.read().doubled();
        let records = larger.count();
        *self.table.write() = larger;
        self.records.store(records, Ordering::Relaxed);
    }
}

impl Table {
    fn new(base: u64, growth: u32) -> Self {
        let buckets = (0..base << growth).map(|_| Bucket::default()).collect();
        Self { base, growth, buckets }
    }

    /// First bucket of a key, before growth.
    fn home(&self, place: Place) -> u64 {
        ((u128::from(place.spread) * u128::from(self.base)) >> 64) as u64
    }

    /// The other bucket of a tag; applied twice it gives the first back.
    fn other(&self, base: u64, tag: u64) -> u64 {
        // Fibonacci hashing: the tag's bits are uniform already and only need spreading.
        let hash = tag.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let sum = ((u128::from(hash) * u128::from(self.base)) >> 64) as u64;
        if sum >= base { sum - base } else { sum + self.base - base }
    }

    fn bucket(&self, base: u64, tag: u64) -> &Bucket {
        let low = tag & ((1 << self.growth) - 1);
        &self.buckets[((base << self.growth) | low) as usize]
    }

    fn find(&self, place: Place) -> Option<(&AtomicU64, Slot)> {
        let home = self.home(place);
        [home, self.other(home, place.tag)].into_iter().find_map(|base| {
            self.bucket(base, place.tag).0.iter().find_map(|cell| {
                let slot = Slot::from_bits(cell.load(Ordering::Acquire))?;
                (slot.tag() == place.tag).then_some((cell, slot))
            })
        })
    }

    fn put(&self, place: Place, slot: Slot) -> bool {
        let home = self.home(place);
        let other = self.other(home, place.tag);
        for base in [home, other] {
            if let Some(free) = free_in(self.bucket(base, place.tag)) {
                free.store(slot.bits(), Ordering::Release);
                return true;
            }
        }
        self.put_by_moving(place, slot)
    }

    /// Moves slots to their other buckets, one for the next, until there is room. The shortest way
    /// is found first and walked backwards, so that no slot is ever missing.
    fn put_by_moving(&self, place: Place, slot: Slot) -> bool {
        let home = self.home(place);
        let mut steps: Vec<Step<'_>> = Vec::with_capacity(STEPS_MAX);
        for base in [home, self.other(home, place.tag)] {
            self.look_around(&mut steps, base, place.tag, None);
        }
        let mut next = 0;
        while next < steps.len() {
            let Step { base, victim, .. } = steps[next];
            let other = self.other(base, victim.tag());
            let bucket = self.bucket(other, victim.tag());
            if let Some(free) = free_in(bucket) {
                return walk_back(&steps, next, free, slot);
            }
            self.look_around(&mut steps, other, victim.tag(), Some(next));
            next += 1;
        }
        false
    }

    /// Adds the slots of a bucket to those that could be moved.
    fn look_around<'a>(
        &'a self,
        steps: &mut Vec<Step<'a>>,
        base: u64,
        tag: u64,
        before: Option<usize>,
    ) {
        for cell in &self.bucket(base, tag).0 {
            let Some(victim) = Slot::from_bits(cell.load(Ordering::Acquire)) else { continue };
            let is_new = steps.iter().all(|step| !std::ptr::eq(step.cell, cell));
            if is_new && steps.len() < STEPS_MAX {
                steps.push(Step { cell, base, victim, before });
            }
        }
    }

    /// Takes the place of the slot that was of least use.
    fn displace(&self, place: Place, slot: Slot) -> Slot {
        let home = self.home(place);
        let cells = [home, self.other(home, place.tag)]
            .into_iter()
            .flat_map(|base| &self.bucket(base, place.tag).0);
        let least = cells.min_by_key(|cell| {
            Slot::from_bits(cell.load(Ordering::Relaxed)).map_or(0, |slot| slot.references())
        });
        let cell = least.expect("a bucket has ways");
        let old = cell.swap(slot.bits(), Ordering::AcqRel);
        Slot::from_bits(old).unwrap_or(slot)
    }

    fn doubled(&self) -> Self {
        let larger = Self::new(self.base, self.growth + 1);
        let width = 1 << self.growth;
        for (number, bucket) in self.buckets.iter().enumerate() {
            let base = number as u64 / width;
            for cell in &bucket.0 {
                let Some(slot) = Slot::from_bits(cell.load(Ordering::Acquire)) else { continue };
                let Some(free) = free_in(larger.bucket(base, slot.tag())) else { continue };
                free.store(slot.bits(), Ordering::Relaxed);
            }
        }
        larger
    }

    fn count(&self) -> u64 {
        let cells = self.buckets.iter().flat_map(|bucket| &bucket.0);
        cells.filter(|cell| cell.load(Ordering::Relaxed) != 0).count() as u64
    }
}

/// A slot that could be moved to its other bucket, and the one that would take its place.
#[derive(Clone, Copy)]
struct Step<'a> {
    cell: &'a AtomicU64,
    base: u64,
    victim: Slot,
    before: Option<usize>,
}

fn walk_back(steps: &[Step<'_>], last: usize, free: &AtomicU64, slot: Slot) -> bool {
    let mut to = free;
    let mut at = Some(last);
    while let Some(number) = at {
        let step = steps[number];
        // With a reference more or removed it is moved as it is now.
        let now = step.cell.load(Ordering::Acquire);
        if Slot::from_bits(now).is_some_and(|now| now.address() == step.victim.address()) {
            to.store(now, Ordering::Release);
        }
        (to, at) = (step.cell, step.before);
    }
    to.store(slot.bits(), Ordering::Release);
    true
}

fn free_in(bucket: &Bucket) -> Option<&AtomicU64> {
    bucket.0.iter().find(|cell| cell.load(Ordering::Acquire) == 0)
}

#[cfg(test)]
mod tests;
