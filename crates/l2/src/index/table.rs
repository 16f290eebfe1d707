//! A part of the index: one cuckoo table.
//!
//! Buckets stand in blocks of up to `1 << BLOCK_BITS_MAX`. The two buckets of a key are found by
//! arithmetic between blocks and by exclusive or within one, and each from the other, so that:
//!
//! - growing doubles every bucket by one more bit of the tag, which both buckets of a slot share;
//! - shrinking takes such a bit back. When none is left, it merges neighbours of a block, until one
//!   bucket of each block is left.
//!
//! Neither needs the keys, of which a slot has not kept enough.

use super::slot::ADDRESS_MASK;
use super::{Place, Slot};
use std::sync::atomic::{AtomicU64, Ordering};

/// Slots of a bucket: a cache line.
pub(super) const WAYS: usize = 8;
/// Size of a bucket in bytes.
pub(super) const BUCKET_BYTES: u64 = size_of::<Bucket>() as u64;
/// Slots that are looked at to make room for one: chains of two moves.
const STEPS_MAX: usize = 96;
/// Doublings, each of which takes a bit of the tag: twelve are left to distinguish keys.
const GROWTH_MAX: u32 = 8;
/// Buckets of a block, as a power of two: what a table can be shrunk by.
const BLOCK_BITS_MAX: u32 = 4;
/// Blocks that a table has, at least, if it has blocks at all.
const BLOCKS_MIN: u64 = 4;

#[derive(Default)]
#[repr(align(64))]
struct Bucket([AtomicU64; WAYS]);

const _: () = assert!(size_of::<Bucket>() == 64);

/// A cuckoo table.
pub(super) struct Table {
    shape: Shape,
    buckets: Box<[Bucket]>,
}

/// How large a table is.
#[derive(Clone, Copy)]
struct Shape {
    blocks: u64,
    /// Bits of a place within a block, when the table was made and now.
    block_bits: u32,
    bits: u32,
    /// Bits of the tag that choose among the buckets of a place.
    growth: u32,
}

impl Shape {
    fn buckets(self) -> u64 {
        self.blocks << self.bits << self.growth
    }
}

impl Table {
    /// With about so many buckets, and at most so many.
    pub(super) fn new(buckets: u64, most: u64) -> Self {
        let bits = (0..=BLOCK_BITS_MAX).rev().find(|bits| buckets >> bits >= BLOCKS_MIN);
        let bits = bits.unwrap_or(0);
        let blocks = buckets.div_ceil(1 << bits).min(most >> bits).max(1);
        Self::of(Shape { blocks, block_bits: bits, bits, growth: 0 })
    }

    fn of(shape: Shape) -> Self {
        Self { shape, buckets: (0..shape.buckets()).map(|_| Bucket::default()).collect() }
    }

    pub(super) fn slots(&self) -> u64 {
        self.shape.buckets() * WAYS as u64
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.shape.buckets() * BUCKET_BYTES
    }

    /// First place of a key: its block, and which of the block.
    fn home(&self, place: Place) -> u64 {
        let places = self.shape.blocks << self.shape.block_bits;
        let full = ((u128::from(place.spread) * u128::from(places)) >> 64) as u64;
        full >> (self.shape.block_bits - self.shape.bits)
    }

    /// The other place of a tag; applied twice it gives the first back.
    fn other(&self, place: u64, tag: u64) -> u64 {
        let Shape { blocks, block_bits, bits, .. } = self.shape;
        // Fibonacci hashing: the tag's bits are uniform already and only need spreading.
        let hash = tag.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let sum = ((u128::from(hash) * u128::from(blocks)) >> 64) as u64;
        let block = place >> bits;
        let other = if sum >= block { sum - block } else { sum + blocks - block };
        // Bits that the product above makes little of.
        let within = (hash >> 20 & ((1 << block_bits) - 1)) >> (block_bits - bits);
        other << bits | (place & ((1 << bits) - 1)) ^ within
    }

    fn bucket(&self, place: u64, tag: u64) -> &Bucket {
        let low = tag & ((1 << self.shape.growth) - 1);
        &self.buckets[(place << self.shape.growth | low) as usize]
    }

    /// The slot of a key, and where it is.
    pub(super) fn find(&self, place: Place) -> Option<(&AtomicU64, Slot)> {
        let home = self.home(place);
        [home, self.other(home, place.tag)].into_iter().find_map(|base| {
            self.bucket(base, place.tag).0.iter().find_map(|cell| {
                let slot = Slot::from_bits(cell.load(Ordering::Acquire))?;
                (slot.tag() == place.tag).then_some((cell, slot))
            })
        })
    }

    /// Puts a slot into a free place, moving others if it may; false if there is none.
    pub(super) fn put(&self, place: Place, slot: Slot, may_move: bool) -> bool {
        let home = self.home(place);
        let other = self.other(home, place.tag);
        for base in [home, other] {
            if let Some(free) = free_in(self.bucket(base, place.tag)) {
                free.store(slot.bits(), Ordering::Release);
                return true;
            }
        }
        may_move && self.put_by_moving(place, slot)
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

    /// Adds the slots of a bucket to the candidates for a move.
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

    /// Takes the place of the slot that was of least use, and of several such the oldest's.
    pub(super) fn displace(&self, place: Place, slot: Slot) -> Slot {
        let home = self.home(place);
        let cells = [home, self.other(home, place.tag)]
            .into_iter()
            .flat_map(|base| &self.bucket(base, place.tag).0);
        let least = cells.min_by_key(|cell| {
            let old = Slot::from_bits(cell.load(Ordering::Relaxed));
            old.map(|old| (old.references(), youth(old, slot.address())))
        });
        let cell = least.expect("a bucket has ways");
        let old = cell.swap(slot.bits(), Ordering::AcqRel);
        Slot::from_bits(old).unwrap_or(slot)
    }

    /// Clears all slots with an address in the range; returns how many.
    pub(super) fn remove_range(&self, addresses: &std::ops::Range<u64>) -> u64 {
        let mut removed = 0;
        for cell in self.cells() {
            let bits = cell.load(Ordering::Relaxed);
            let inside = Slot::from_bits(bits).is_some_and(|s| addresses.contains(&s.address()));
            if inside && cell.compare_exchange(bits, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            {
                removed += 1;
            }
        }
        removed
    }

    fn cells(&self) -> impl Iterator<Item = &AtomicU64> {
        self.buckets.iter().flat_map(|bucket| &bucket.0)
    }

    /// Used slots.
    pub(super) fn count(&self) -> u64 {
        self.cells().filter(|cell| cell.load(Ordering::Relaxed) != 0).count() as u64
    }

    /// A table twice as large with the same slots; `None` if the tag has no bit left for it.
    pub(super) fn grown(&self) -> Option<Self> {
        let larger = Shape { growth: self.shape.growth + 1, ..self.shape };
        // Every bucket becomes two: all its slots find room.
        (larger.growth <= GROWTH_MAX).then(|| self.reshaped(larger, 0))
    }

    /// A table half as large with the most valuable slots: those that had hits, then the youngest.
    /// The log is being written at `head`. `None` if it is as small as can be.
    pub(super) fn halved(&self, head: u64) -> Option<Self> {
        let smaller = match self.shape {
            shape if shape.growth > 0 => Shape { growth: shape.growth - 1, ..shape },
            shape if shape.bits > 0 => Shape { bits: shape.bits - 1, ..shape },
            _ => return None,
        };
        Some(self.reshaped(smaller, head))
    }

    fn reshaped(&self, shape: Shape, head: u64) -> Self {
        let other = Self::of(shape);
        let worth = |slot: Slot| (slot.references() > 0, youth(slot, head));
        for (number, bucket) in (0_u64..).zip(&self.buckets) {
            let place = number >> self.shape.growth >> (self.shape.bits - shape.bits);
            for cell in &bucket.0 {
                let Some(slot) = Slot::from_bits(cell.load(Ordering::Acquire)) else { continue };
                let bucket = other.bucket(place, slot.tag());
                let free = free_in(bucket).or_else(|| {
                    let of = |cell: &&AtomicU64| Slot::from_bits(cell.load(Ordering::Relaxed));
                    let least = bucket.0.iter().min_by_key(|cell| of(cell).map(worth))?;
                    (of(&least).map(worth) < Some(worth(slot))).then_some(least)
                });
                if let Some(cell) = free {
                    cell.store(slot.bits(), Ordering::Relaxed);
                }
            }
        }
        other
    }
}

/// A slot that could move to its other bucket, and the slot that would replace it.
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
        // Its reference may have changed meanwhile: the present slot is moved.
        let now = step.cell.load(Ordering::Acquire);
        if Slot::from_bits(now).is_some_and(|now| now.address() == step.victim.address()) {
            to.store(now, Ordering::Release);
        }
        (to, at) = (step.cell, step.before);
    }
    to.store(slot.bits(), Ordering::Release);
    true
}

/// Larger for records that were written later. The log wraps around, so the records just ahead of
/// its head are the oldest. The wrapping of addresses equals that of the device.
fn youth(slot: Slot, head: u64) -> u64 {
    slot.address().wrapping_sub(head) & ADDRESS_MASK
}

fn free_in(bucket: &Bucket) -> Option<&AtomicU64> {
    bucket.0.iter().find(|cell| cell.load(Ordering::Acquire) == 0)
}
