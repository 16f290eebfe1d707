//! The table of inodes that the kernel holds references to.
//!
//! The kernel counts its lookups of each inode and gives them back with FORGET. An inode is in the
//! table exactly as long as its count is above zero. Only the kernel can remove an inode, so
//! pruning asks the kernel.
//!
//! The *idle* inodes, which no program has open, stand on a list from most to least recently looked
//! up. Pruning takes them from its end. An inode leaves the list when the kernel is asked to forget
//! it, until it is looked up again. So an inode that the kernel keeps, such as a working directory,
//! is never examined twice. Open inodes are on no list.
//!
//! Origins reuse numbers. The kernel may still know the object that had a number before, and it
//! marks an inode as bad if its kind or generation changes. So an object that differs in these gets
//! a node id of its own. The earlier object keeps its id until the kernel forgets it.
//!
//! The table is sharded by number. A later node id is in the shard of the number in `st_ino`, so
//! one lock decides. A shard's lock guards its slots, index, list and later ids, and nothing is
//! called under it. An inode, whose drop may close a descriptor, is dropped after the lock is
//! released.

use super::Inode;
use crate::inode_number::{LATER_FIRST, ROOT};
use hashbrown::{HashMap, HashTable};
use ogive_origin::{Found, Origin};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const SHARDS: usize = 16;
/// A later node id has its shard in the bits above these.
const LATER_BITS: u32 = 48;
const NONE: u32 = u32::MAX;
/// Slots are given back to the allocator when fewer than one in this many is used.
const COMPACT_BELOW: usize = 4;
/// Slots that a walk visits under one lock.
const STEP_SLOTS: usize = 512;
/// Shards with fewer slots are not worth compacting.
const COMPACT_MIN: usize = 1024;

/// All inodes that the kernel knows.
pub(crate) struct InodeTable<O: Origin> {
    shards: Vec<Mutex<Shard<O>>>,
    length: AtomicUsize,
    forgotten: Forgotten,
    /// The next shard to prune, so that all shards take turns.
    hand: AtomicUsize,
}

/// How many inodes have left the table, for threads that wait for more.
#[derive(Default)]
pub(crate) struct Forgotten {
    count: AtomicU64,
    waiters: AtomicUsize,
    changed: (Mutex<()>, Condvar),
}

struct Shard<O: Origin> {
    slots: Vec<Slot<O>>,
    index: HashTable<u32>,
    free: u32,
    /// Most recently looked up.
    head: u32,
    /// Least recently looked up.
    tail: u32,
    /// Node ids of objects whose number an earlier object in the table has.
    later: HashMap<u64, u64>,
    /// How many later node ids were given out.
    later_given: u64,
}

struct Slot<O: Origin> {
    inode: Option<Arc<Inode<O>>>,
    lookups: u64,
    number: u64,
    previous: u32,
    next: u32,
    listed: bool,
    open: bool,
}

impl<O: Origin> InodeTable<O> {
    pub(crate) fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::new(Shard::new())).collect(),
            length: AtomicUsize::new(0),
            forgotten: Forgotten::default(),
            hand: AtomicUsize::new(0),
        }
    }

    fn shard(&self, number: u64) -> &Mutex<Shard<O>> {
        &self.shards[shard_of(number)]
    }

    /// Number of inodes.
    pub(crate) fn len(&self) -> usize {
        self.length.load(Ordering::Relaxed)
    }

    /// Adds a lookup of an object that is shown with this number: a reply is about to give it to
    /// the kernel. Returns its inode, and the new node if the inode keeps an earlier one.
    pub(crate) fn remember(
        &self,
        shown: u64,
        found: Found<O::Node>,
    ) -> (Arc<Inode<O>>, Option<O::Node>) {
        let mut replaced = None;
        let mut again = None;
        let mut shard = self.shard(shown).lock();
        let number = shard.number_of(shown);
        let inode = match shard.find(number) {
            Some(slot) if number == ROOT || shard.is_of_one_kind(slot, &found) => {
                let entry = &mut shard.slots[slot as usize];
                entry.lookups += 1;
                let known = entry.inode.as_ref().expect("an indexed slot holds an inode");
                let inode = if known.node == found.node && known.kind == found.attributes.kind {
                    again = Some(found.node);
                    known.clone()
                } else {
                    // The kernel cannot distinguish the two objects. It gives back references to
                    // either under one number, so they are counted together.
                    let inode = Arc::new(Inode::in_place_of_another(number, shown, found));
                    replaced = entry.inode.replace(inode.clone());
                    entry.open = false;
                    inode
                };
                if !shard.slots[slot as usize].open {
                    shard.unlist(slot);
                    shard.list(slot);
                }
                inode
            }
            known => {
                let number = if known.is_some() { shard.later_number(shown) } else { number };
                let inode = Arc::new(Inode::new(number, shown, found));
                shard.insert(number, inode.clone());
                self.length.fetch_add(1, Ordering::Relaxed);
                inode
            }
        };
        drop(shard);
        drop(replaced);
        (inode, again)
    }

    /// The inode of the object that has this number in `st_ino` now, if the kernel knows it.
    pub(crate) fn shown_as(&self, shown: u64) -> Option<Arc<Inode<O>>> {
        let shard = self.shard(shown).lock();
        let slot = shard.find(shard.number_of(shown))?;
        shard.slots[slot as usize].inode.clone()
    }

    /// The inode of this number.
    pub(crate) fn get(&self, number: u64) -> Option<Arc<Inode<O>>> {
        let shard = self.shard(number).lock();
        let slot = shard.find(number)?;
        shard.slots[slot as usize].inode.clone()
    }

    /// Visits every inode, in no order and under no lock; each shard is locked for some slots at a
    /// time. An inode that comes or goes meanwhile may be visited or not, or twice.
    pub(crate) fn walk(&self, mut visit: impl FnMut(&Inode<O>)) {
        let mut seen = Vec::with_capacity(STEP_SLOTS);
        for shard in &self.shards {
            let mut from = 0;
            loop {
                let slots = {
                    let shard = shard.lock();
                    let slots = shard.slots.iter().skip(from).take(STEP_SLOTS);
                    seen.extend(slots.filter_map(|slot| slot.inode.clone()));
                    shard.slots.len()
                };
                seen.drain(..).for_each(|inode| visit(&inode));
                from += STEP_SLOTS;
                if from >= slots {
                    break;
                }
            }
        }
    }

    /// Subtracts the `lookups` references that the kernel gave back. Returns an inode that the
    /// kernel does not know any more.
    pub(crate) fn forget(&self, number: u64, lookups: u64) -> Option<Leaves<O>> {
        if number == ROOT {
            return None;
        }
        let mut shard = self.shard(number).lock();
        let slot = shard.find(number)?;
        let entry = &mut shard.slots[slot as usize];
        entry.lookups = entry.lookups.saturating_sub(lookups);
        if entry.lookups > 0 {
            return None;
        }
        let inode = shard.remove(slot);
        if let Some(inode) = &inode {
            shard.drop_later_number(inode);
        }
        let mostly_empty = shard.is_mostly_empty();
        if mostly_empty {
            shard.compact();
        }
        drop(shard);
        self.length.fetch_sub(1, Ordering::Relaxed);
        self.forgotten.add_one();
        Some(Leaves { inode, mostly_empty })
    }

    /// Notes that an inode has its first open file, or has lost its last.
    pub(crate) fn set_open(&self, inode: &Arc<Inode<O>>, open: bool) {
        let mut shard = self.shard(inode.number).lock();
        let Some(slot) = shard.find(inode.number) else {
            return;
        };
        let entry = &mut shard.slots[slot as usize];
        if !entry.inode.as_ref().is_some_and(|known| Arc::ptr_eq(known, inode)) {
            return;
        }
        entry.open = open;
        shard.unlist(slot);
        if !open {
            shard.list(slot);
        }
    }

    /// Takes up to `count` idle inodes off the list, those that were looked up least recently in
    /// their shards first, and returns their numbers. They return to the list with their next
    /// lookup.
    pub(crate) fn take_idle(&self, count: usize) -> Vec<u64> {
        let mut numbers = Vec::new();
        let first = self.hand.fetch_add(1, Ordering::Relaxed);
        let share = count.div_ceil(SHARDS).max(1);
        for round in 0..SHARDS {
            let mut shard = self.shards[(first + round) % SHARDS].lock();
            for _ in 0..share.min(count - numbers.len()) {
                let slot = shard.tail;
                if slot == NONE {
                    break;
                }
                shard.unlist(slot);
                numbers.push(shard.slots[slot as usize].number);
            }
        }
        numbers
    }

    /// Waits until the number of forgotten inodes reaches `count` or `timeout` is over, and
    /// returns it.
    pub(crate) fn wait_forgotten(&self, count: u64, timeout: Duration) -> u64 {
        self.forgotten.wait(count, timeout)
    }

    /// How many inodes have left the table so far.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten.count.load(Ordering::Relaxed)
    }
}

impl Forgotten {
    fn add_one(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
        if self.waiters.load(Ordering::SeqCst) > 0 {
            let _guard = self.changed.0.lock();
            self.changed.1.notify_all();
        }
    }

    fn wait(&self, count: u64, timeout: Duration) -> u64 {
        let deadline = Instant::now() + timeout;
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let mut guard = self.changed.0.lock();
        while self.count.load(Ordering::SeqCst) < count
            && !self.changed.1.wait_until(&mut guard, deadline).timed_out()
        {}
        drop(guard);
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        self.count.load(Ordering::SeqCst)
    }
}

fn shard_of(number: u64) -> usize {
    let place = if number >= LATER_FIRST { number >> LATER_BITS } else { hash(number) >> 60 };
    place as usize % SHARDS
}

/// Fibonacci hashing: inode numbers are dense, and the high bits of the product are well mixed.
fn hash(number: u64) -> u64 {
    let product = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ (product >> 32)
}

impl<O: Origin> Shard<O> {
    fn new() -> Self {
        Self {
            slots: Vec::new(),
            index: HashTable::new(),
            free: NONE,
            head: NONE,
            tail: NONE,
            later: HashMap::new(),
            later_given: 0,
        }
    }

    /// Node id of the object that has this number in `st_ino` now.
    fn number_of(&self, shown: u64) -> u64 {
        self.later.get(&shown).copied().unwrap_or(shown)
    }

    /// Whether the kernel cannot distinguish a found object from the inode that it knows.
    fn is_of_one_kind(&self, slot: u32, found: &Found<O::Node>) -> bool {
        let known = self.slots[slot as usize].inode.as_ref();
        known.is_some_and(|known| {
            known.kind == found.attributes.kind && known.generation == found.generation
        })
    }

    /// A node id for an object whose number another inode in the table has.
    fn later_number(&mut self, shown: u64) -> u64 {
        let given = self.later_given;
        self.later_given += 1;
        let number = LATER_FIRST | (shard_of(shown) as u64) << LATER_BITS | given;
        self.later.insert(shown, number);
        number
    }

    /// No later reply names this inode: the next object of its number gets another node id.
    fn drop_later_number(&mut self, inode: &Inode<O>) {
        if self.later.get(&inode.shown) == Some(&inode.number) {
            self.later.remove(&inode.shown);
        }
    }

    fn find(&self, number: u64) -> Option<u32> {
        let same = |slot: &u32| self.slots[*slot as usize].number == number;
        self.index.find(hash(number), same).copied()
    }

    fn insert(&mut self, number: u64, inode: Arc<Inode<O>>) {
        let entry = Slot {
            inode: Some(inode),
            lookups: 1,
            number,
            previous: NONE,
            next: NONE,
            listed: false,
            open: false,
        };
        let slot = if self.free == NONE {
            self.slots.push(entry);
            (self.slots.len() - 1) as u32
        } else {
            let slot = self.free;
            self.free = self.slots[slot as usize].next;
            self.slots[slot as usize] = entry;
            slot
        };
        let slots = &self.slots;
        self.index.insert_unique(hash(number), slot, |slot| hash(slots[*slot as usize].number));
        // The root is never idle: the kernel does not give it back.
        if number != ROOT {
            self.list(slot);
        }
    }

    fn remove(&mut self, slot: u32) -> Option<Arc<Inode<O>>> {
        self.unlist(slot);
        let number = self.slots[slot as usize].number;
        if let Ok(entry) = self.index.find_entry(hash(number), |other| *other == slot) {
            entry.remove();
        }
        let entry = &mut self.slots[slot as usize];
        entry.next = self.free;
        self.free = slot;
        entry.inode.take()
    }

    fn list(&mut self, slot: u32) {
        let head = self.head;
        let entry = &mut self.slots[slot as usize];
        (entry.previous, entry.next, entry.listed) = (NONE, head, true);
        match head {
            NONE => self.tail = slot,
            head => self.slots[head as usize].previous = slot,
        }
        self.head = slot;
    }

    fn unlist(&mut self, slot: u32) {
        let entry = &mut self.slots[slot as usize];
        if !std::mem::take(&mut entry.listed) {
            return;
        }
        let (previous, next) = (entry.previous, entry.next);
        match previous {
            NONE => self.head = next,
            previous => self.slots[previous as usize].next = next,
        }
        match next {
            NONE => self.tail = previous,
            next => self.slots[next as usize].previous = previous,
        }
    }

    fn is_mostly_empty(&self) -> bool {
        self.slots.len() >= COMPACT_MIN && self.index.len() < self.slots.len() / COMPACT_BELOW
    }

    /// Rebuilds the shard without free slots, and keeps the order of the list.
    fn compact(&mut self) {
        let mut order = Vec::with_capacity(self.index.len());
        let mut slot = self.tail;
        while slot != NONE {
            order.push(slot);
            slot = self.slots[slot as usize].previous;
        }
        let listed = order.len();
        let is_unlisted = |slot: &Slot<O>| slot.inode.is_some() && !slot.listed;
        order
            .extend((0..self.slots.len() as u32).filter(|s| is_unlisted(&self.slots[*s as usize])));
        let mut old = std::mem::replace(self, Self::new());
        (self.later, self.later_given) = (std::mem::take(&mut old.later), old.later_given);
        self.slots.reserve_exact(order.len());
        self.index.reserve(order.len(), |_| 0);
        for (position, slot) in order.into_iter().enumerate() {
            let entry = &mut old.slots[slot as usize];
            self.slots.push(Slot {
                inode: entry.inode.take(),
                lookups: entry.lookups,
                number: entry.number,
                previous: NONE,
                next: NONE,
                listed: false,
                open: entry.open,
            });
            let slots = &self.slots;
            self.index.insert_unique(hash(entry.number), position as u32, |slot| {
                hash(slots[*slot as usize].number)
            });
            if position < listed {
                self.list(position as u32);
            }
        }
    }
}

/// An inode that the kernel does not know any more.
pub(crate) struct Leaves<O: Origin> {
    pub(crate) inode: Option<Arc<Inode<O>>>,
    /// Its shard was compacted, which happens each time three quarters of it are empty.
    pub(crate) mostly_empty: bool,
}

#[cfg(test)]
mod tests;
