//! One sublist: what readers see of it, and everything that is done under its lock.
//!
//! Invariants, recounted by [`SublistGuard::validate`]:
//! - a live entry is on the list of its state and kind, unless it is parked: an eviction met it
//!   while it was held. Its last release puts it back;
//! - every entry is in the index except dead ones and loading ones which are doomed;
//! - along a list from head to tail the stamps never grow, so the tail is the oldest;
//! - a key is an entry or a ghost, never both.
#![allow(unsafe_code)]

use super::blocks::Blocks;
use super::entry::{Entry, NONE};
use super::ghosts::{Ghost, Marks, remembered};
use super::hand_over_queue::HandOverQueue;
use super::hit_rings::HitRings;
use super::index::Index;
use super::live_list::LiveList;
use super::locked::{Locked, Stored};
use super::meta::{
    DEAD, DEMOTE, DOOMED, HANDED, LOADING, MFU, MRU, PARKED, PROMOTED, TOUCHED, WAITING, Word,
};
use super::mfu_order::Ages;
use super::published_tails::Tails;
use super::slab::Slab;
use crate::counters::{Counters, Event};
use crate::policy::{Balance, EMPTY, Kind, LISTS, List, list_index};
use crate::sync::{Mutex, MutexGuard, lock_counted, try_lock};
use std::ops::Range;
use std::sync::Arc;

/// One sublist. The fields that hits read lie together at the beginning, and are rarely written.
/// The half behind the lock lies elsewhere.
#[repr(C, align(64))]
pub(crate) struct Sublist<K, V> {
    pub(crate) index: Index,
    pub(crate) hit_rings: HitRings,
    pub(super) slab: Slab<K, V>,
    pub(crate) handed: Arc<HandOverQueue>,
    number: usize,
    locked: Box<Mutex<Locked>>,
}

#[cfg(all(target_pointer_width = "64", not(shuttle)))]
const _: () = assert!(std::mem::offset_of!(Sublist<u64, u64>, slab) <= 64);

/// The outcome of an eviction.
pub(crate) enum Taken<K, V> {
    /// The oldest entry: its key and value, and its figures.
    Entry(Stored<K, V>, RemovedEntry),
    /// It is held, and has left its list. The next victim may be of another list now.
    Parked,
    /// It has been used since it was put there, and stands there still.
    Used(u32),
    /// The list is empty.
    Nothing,
}

/// The outcome of a pin that was released under the lock.
pub(crate) enum Unpinned<K, V> {
    /// Nothing: others have pins, or the entry stays.
    Held,
    /// It was the last one of a dead entry.
    Buried(Stored<K, V>, Word),
    /// It was the last one of an entry to be demoted.
    Demoted(Stored<K, V>, RemovedEntry),
}

/// The figures of an entry that has left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemovedEntry {
    pub(crate) hash: u64,
    pub(crate) word: Word,
    pub(crate) weight_bytes: u64,
    pub(crate) stamp: u64,
    pub(crate) stale: bool,
}

/// The part of a hash the index goes by.
pub(super) const fn short(hash: u64) -> u32 {
    hash as u32
}

impl<K, V> Sublist<K, V> {
    /// One of those that share the blocks.
    pub(crate) fn new(
        (blocks, handed): (&Arc<Blocks<K, V>>, &Arc<HandOverQueue>),
        number: usize,
        (exact, rings): (bool, usize),
        marks: Marks,
    ) -> Self {
        Self {
            index: Index::new(),
            slab: Slab::new(Arc::clone(blocks), number),
            handed: Arc::clone(handed),
            hit_rings: HitRings::new(exact, rings),
            locked: Box::new(Mutex::new(Locked::new(marks))),
            number,
        }
    }

    /// Its number.
    pub(crate) const fn number(&self) -> usize {
        self.number
    }

    /// The entry of a slot.
    #[inline(always)]
    pub(crate) fn entry(&self, id: u32) -> Option<&Entry<K, V>> {
        self.slab.get(id)
    }

    /// The slot of an entry of this sublist.
    pub(crate) fn slot_of(&self, entry: &Entry<K, V>) -> Option<u32> {
        self.slab.number_of(entry)
    }

    /// Takes the lock.
    pub(crate) fn lock<'a>(
        &'a self,
        tails: &'a Tails,
        counters: &Counters,
    ) -> SublistGuard<'a, K, V> {
        let locked = lock_counted(&self.locked, counters);
        SublistGuard { locked, sublist: self, tails, replacing: None }
    }

    /// Takes the lock if it is free.
    pub(crate) fn try_lock<'a>(
        &'a self,
        tails: &'a Tails,
        counters: &Counters,
    ) -> Option<SublistGuard<'a, K, V>> {
        let locked = try_lock(&self.locked)?;
        counters.count(Event::Locks);
        Some(SublistGuard { locked, sublist: self, tails, replacing: None })
    }
}

/// A sublist, locked. Publishes its tails and ages when it is unlocked.
pub(crate) struct SublistGuard<'a, K, V> {
    pub(crate) locked: MutexGuard<'a, Locked>,
    pub(crate) sublist: &'a Sublist<K, V>,
    tails: &'a Tails,
    replacing: Option<u64>,
}

impl<'a, K, V> SublistGuard<'a, K, V> {
    /// An entry is about to be replaced. Until the lock is given back, no reader without it may
    /// conclude that the key is absent.
    pub(crate) fn begin_replacing(&mut self) {
        self.replacing = self.replacing.or_else(|| self.sublist.index.begin());
    }

    /// The entry of a slot that is in use.
    pub(crate) fn entry(&self, id: u32) -> &'a Entry<K, V> {
        self.sublist.slab.get(id).expect("a number under the lock is of a slot")
    }

    /// The word of an entry.
    pub(crate) fn word(&self, id: u32) -> Word {
        self.entry(id).meta.load()
    }

    /// The key of an entry.
    ///
    /// # Panics
    /// If the slot is vacant, which no caller can have the number of.
    pub(crate) fn key(&self, id: u32) -> &K {
        let entry = self.entry(id);
        assert!(entry.meta.load().state() != 0, "only vacant slots have no key");
        // SAFETY: the slot is not vacant, and only this guard could make it so.
        unsafe { entry.key() }
    }

    /// The value of an entry, if it has one.
    pub(crate) fn value(&self, id: u32) -> Option<&Arc<V>> {
        let entry = self.entry(id);
        let word = entry.meta.load();
        // SAFETY: the entry is live or dead, and only this guard could make it vacant.
        (word.is_live() || word.state() == DEAD).then(|| unsafe { entry.value() })
    }

    /// A stamp for now.
    pub(crate) fn stamp(&mut self, arrivals: u64) -> u64 {
        self.locked.stamp(arrivals)
    }

    /// Makes a loading entry with one pin out of a vacant slot, and indexes it. The key must
    /// have neither an entry nor a ghost.
    ///
    /// # Panics
    /// With 2^32 entries in one sublist, which would be 256 GiB of slots.
    pub(crate) fn occupy(&mut self, hash: u64, key: K, kind: Kind, flags: u64) -> u32 {
        let locked = &mut *self.locked;
        let id = if locked.vacant == NONE {
            assert!(self.sublist.slab.provide(locked.end), "fewer than 2^32 entries in a sublist");
            locked.end += 1;
            locked.end - 1
        } else {
            let id = locked.vacant;
            locked.vacant = self.sublist.slab.get(id).map_or(NONE, Entry::newer);
            locked.vacant_len -= 1;
            id
        };
        let entry = self.sublist.slab.get(id).expect("it was provided");
        // SAFETY: the slot is vacant, and this guard has the lock.
        unsafe { entry.put_key(key) };
        entry.set_hash(hash);
        entry.set_weight_bytes(0);
        entry.set_uses(0, false);
        let loading = |word: Word| {
            Some(word.plain().with_kind(kind).with_state(LOADING).with(flags).pinned())
        };
        let changed = entry.meta.change(loading);
        debug_assert!(changed.is_ok_and(|(before, _)| before.state() == 0 && before.pins() == 0));
        self.sublist.index.insert(short(hash), id, locked.indexed);
        locked.indexed += 1;
        locked.indexed_max = locked.indexed_max.max(locked.indexed + locked.ghosts.len());
        id
    }

    /// Takes an entry out of the index; it keeps its slot.
    pub(crate) fn unindex(&mut self, id: u32) {
        if self.sublist.index.remove(short(self.entry(id).hash()), id) {
            self.locked.indexed -= 1;
        }
    }

    /// Gives a loading entry its value: it becomes live on a list, which it is put on, or dead.
    pub(crate) fn settle(
        &mut self,
        id: u32,
        (state, flags): (u64, u64),
        (value, weight_bytes): (Arc<V>, u64),
        stamp: u64,
    ) {
        let entry = self.entry(id);
        debug_assert!(entry.meta.load().state() == LOADING, "a value comes once");
        // SAFETY: the entry is loading, and this guard has the lock.
        unsafe { entry.put_value(value) };
        entry.set_weight_bytes(weight_bytes);
        let settled = |word: Word| Some(word.plain().with_state(state).with(flags));
        let word = match entry.meta.change(settled) {
            Ok((_, word)) | Err(word) => word,
        };
        if word.is_live() {
            self.locked.resident += 1;
            self.link(id, word, stamp);
        }
    }

    pub(crate) fn link(&mut self, id: u32, word: Word, stamp: u64) {
        let entry = self.entry(id);
        self.locked.link(&self.sublist.slab, (id, entry), word.at(), stamp);
    }

    pub(crate) fn unlink(&mut self, id: u32, word: Word) {
        let entry = self.entry(id);
        self.locked.unlink(&self.sublist.slab, (id, entry), word.at());
    }

    /// Makes an entry vacant that is on no list and not in the index, and has `pins` pins, all of
    /// them the caller's. Returns what it owned, for the caller to drop outside the lock; the word
    /// as it is, if the entry is not as said.
    pub(crate) fn vacate(&mut self, id: u32, pins: u64) -> Result<Stored<K, V>, Word> {
        let entry = self.entry(id);
        let vacated = |word: Word| (word.pins() == pins).then(|| word.vacated());
        let (before, _) = entry.meta.change(vacated)?;
        Ok(self.take(id, before))
    }

    /// Takes the key and the value out of a slot that this guard has just made vacant.
    fn take(&mut self, id: u32, before: Word) -> Stored<K, V> {
        let entry = self.entry(id);
        self.locked.resident -= usize::from(before.is_live());
        entry.set_newer(self.locked.vacant);
        self.locked.vacant = id;
        self.locked.vacant_len += 1;
        let has_value = before.is_live() || before.state() == DEAD;
        // SAFETY: this guard has made the entry vacant, and calls this once. So no other thread has
        // a pin of it, or can get one.
        unsafe { (entry.take_key(), has_value.then(|| entry.take_value())) }
    }

    /// Counts the uses that hits of this thread, or with `all` of every one, have counted.
    pub(crate) fn take_uses(&mut self, all: bool, arrivals: u64) {
        for kind in Kind::ALL {
            let uses = self.sublist.hit_rings.take_uses(all, kind);
            if uses > 0 {
                let stamp = self.locked.stamp(arrivals);
                self.locked.used(kind, uses, stamp);
            }
        }
    }

    /// Moves a live entry to the head of its list, or of MFU if it belongs there.
    pub(crate) fn move_up(&mut self, id: u32, arrivals: u64) {
        let entry = self.entry(id);
        let word = entry.meta.lower(TOUCHED | PROMOTED);
        entry.count_use();
        if !word.is(PARKED) {
            self.unlink(id, word);
        }
        let word = self.promoted(id, word);
        if !word.is(PARKED) {
            let stamp = self.locked.stamp(arrivals);
            self.link(id, word, stamp);
        }
    }

    /// Makes an entry one of MFU, if its word says that it belongs there. It is on no list.
    pub(crate) fn promoted(&mut self, id: u32, word: Word) -> Word {
        if word.state() != MRU || !word.is(PROMOTED) {
            return word;
        }
        let entry = self.entry(id);
        let (kind, weight_bytes) = (word.kind() as usize, entry.weight_bytes());
        self.locked.promoted_bytes[kind] += weight_bytes;
        if word.is(WAITING) {
            self.locked.admitted_bytes[kind] += weight_bytes;
        }
        match entry.meta.change(|word| Some(word.without(WAITING).with_state(MFU))) {
            Ok((_, word)) | Err(word) => word,
        }
    }

    /// Moves bytes in the balance that have gone from MRU or the window to MFU.
    pub(crate) fn flush(&mut self, balance: &mut Balance) {
        for kind in Kind::ALL {
            let bytes = std::mem::take(&mut self.locked.promoted_bytes[kind as usize]);
            balance.sub(kind, List::Mru, false, bytes);
            balance.add(kind, List::Mfu, false, bytes);
            balance
                .sub_waiting(kind, std::mem::take(&mut self.locked.admitted_bytes[kind as usize]));
        }
    }

    /// Takes the oldest entry of a list, unless it has been used since or is held.
    pub(crate) fn take_oldest(&mut self, at: LiveList, counters: &Counters) -> Taken<K, V> {
        self.sort(at);
        let Some(id) = self.locked.tail(at) else {
            return Taken::Nothing;
        };
        let entry = self.entry(id);
        let next = |word: Word| {
            if word.pins() > 0 {
                Some(word.with(PARKED))
            } else {
                (!word.is(TOUCHED)).then(|| word.vacated())
            }
        };
        match entry.meta.change(next) {
            Ok((before, after)) if after.is(PARKED) => {
                self.unlink(id, before);
                counters.count(Event::EvictParked);
                Taken::Parked
            }
            Ok((before, _)) => {
                let (stored, gone) = self.withdraw(id, before);
                Taken::Entry(stored, gone)
            }
            Err(_) => Taken::Used(id),
        }
    }

    /// The figures of an entry with this word that is about to leave, or has just left.
    fn gone(&self, id: u32, word: Word) -> RemovedEntry {
        let entry = self.entry(id);
        RemovedEntry {
            hash: entry.hash(),
            word,
            weight_bytes: entry.weight_bytes(),
            stamp: entry.stamp(),
            stale: entry.is_stale(),
        }
    }

    /// Takes a live entry out of index and list. Returns what it owned, or nothing if it is held:
    /// then it is dead from now on. Returns its word before, too.
    pub(crate) fn remove(&mut self, id: u32) -> (Option<Stored<K, V>>, Word) {
        let remove = |word: Word| {
            Some(if word.pins() == 0 { word.vacated() } else { word.plain().with_state(DEAD) })
        };
        let entry = self.entry(id);
        let before = match entry.meta.change(remove) {
            Ok((before, _)) | Err(before) => before,
        };
        if !before.is(PARKED) {
            self.unlink(id, before);
        }
        self.unindex(id);
        self.sublist.handed.count_out(before.is(HANDED), entry.weight_bytes());
        if before.pins() == 0 {
            return (Some(self.take(id, before)), before);
        }
        self.locked.resident -= 1;
        (None, before)
    }

    /// Takes a live entry without holds out of index and list. Marks a held one, so that the last
    /// release does it. Returns what it owned, and what it was.
    pub(crate) fn demote(&mut self, id: u32) -> Option<(Stored<K, V>, RemovedEntry)> {
        let demote =
            |word: Word| Some(if word.pins() == 0 { word.vacated() } else { word.with(DEMOTE) });
        let Ok((before, _)) = self.entry(id).meta.change(demote) else {
            return None;
        };
        (before.pins() == 0).then(|| self.withdraw(id, before))
    }

    fn withdraw(&mut self, id: u32, before: Word) -> (Stored<K, V>, RemovedEntry) {
        if !before.is(PARKED) {
            self.unlink(id, before);
        }
        self.unindex(id);
        let gone = self.gone(id, before);
        self.sublist.handed.count_out(before.is(HANDED), gone.weight_bytes);
        (self.take(id, before), gone)
    }

    /// Lets a pin go, and if it is the last one does what had to wait for it.
    pub(crate) fn unpin(&mut self, id: u32, arrivals: u64) -> Unpinned<K, V> {
        let unpin = |word: Word| {
            let ends = word.state() == DEAD || word.is(DEMOTE);
            Some(if word.pins() == 1 && ends { word.vacated() } else { word.unpinned().put_back() })
        };
        let entry = self.entry(id);
        let (before, after) = match entry.meta.change(unpin) {
            Ok(words) => words,
            Err(word) => (word, word),
        };
        if before.pins() > 1 {
            return Unpinned::Held;
        }
        if before.state() == DEAD {
            return Unpinned::Buried(self.take(id, before), before);
        }
        if before.is(DEMOTE) {
            let (stored, gone) = self.withdraw(id, before);
            return Unpinned::Demoted(stored, gone);
        }
        if before.is(PARKED) {
            let word = after.with(entry.meta.lower(TOUCHED | PROMOTED).only(PROMOTED));
            let word = self.promoted(id, word);
            let stamp = self.locked.stamp(arrivals);
            self.link(id, word, stamp);
        }
        Unpinned::Held
    }

    /// Makes a ghost of a key that has just lost its entry. Returns its weight as remembered: 0 if
    /// there is no room for another.
    pub(crate) fn remember(&mut self, hash: u64, ghost: Ghost) -> u64 {
        let ghost = Ghost { weight_bytes: remembered(ghost.weight_bytes), ..ghost };
        if !self.locked.ghosts.oldest_is_settled(ghost.kind, ghost.list) {
            self.locked.ghosts_changed(ghost.kind, ghost.list);
        }
        if self.locked.ghosts.push(hash, &ghost) { ghost.weight_bytes } else { 0 }
    }

    /// The ghost of a key.
    pub(crate) fn ghost(&self, hash: u64) -> Option<Ghost> {
        self.locked.ghosts.find(hash)
    }

    /// Takes the ghost of a key out.
    pub(crate) fn take_ghost(&mut self, hash: u64) -> Option<Ghost> {
        let ghost = self.locked.ghosts.take(hash)?;
        self.locked.ghosts_changed(ghost.kind, ghost.list);
        Some(ghost)
    }

    /// Forgets the oldest ghost of a list. Returns its weight in bytes.
    pub(crate) fn forget_ghost(&mut self, kind: Kind, list: List) -> Option<u64> {
        self.locked.ghosts_changed(kind, list);
        self.locked.ghosts.forget(kind, list)
    }

    /// Publishes what others go by.
    #[inline]
    pub(crate) fn publish(&mut self) {
        if self.locked.ages_changed || self.locked.changed_tails != 0 {
            self.publish_changes();
        }
    }

    fn publish_changes(&mut self) {
        let locked = &mut *self.locked;
        if std::mem::take(&mut locked.ages_changed) {
            for kind in Kind::ALL {
                let len = locked.lists[LiveList::mfu(kind).live()].len;
                let age = locked.ages[kind as usize].now();
                self.sublist.hit_rings.set_now(kind, age, Ages::width(len));
            }
        }
        let mut changed = std::mem::take(&mut locked.changed_tails);
        while changed != 0 {
            let list = changed.trailing_zeros() as usize;
            changed &= changed - 1;
            let stamp = locked.tail_stamp(&self.sublist.slab, list);
            self.tails.publish(list, self.sublist.number, stamp);
        }
    }

    /// The stamp of the oldest of a list.
    pub(crate) fn tail_stamp(&self, list: usize) -> u64 {
        self.locked.tail_stamp(&self.sublist.slab, list)
    }

    /// Whether this sublist's oldest of a list is as old as the oldest of all, or nearly. Then no
    /// other sublist need be locked. Goes by the published stamps.
    pub(crate) fn has_nearly_oldest(&self, list: usize, oldest_stamp: u64) -> bool {
        let own = self.tails.stamp_of(list, self.sublist.number);
        let now = self.locked.last_stamp();
        let slack = self.tails.slack(now.saturating_sub(oldest_stamp));
        own != EMPTY && own <= oldest_stamp.saturating_add(slack)
    }

    /// Forgets all ghosts.
    pub(crate) fn forget_all_ghosts(&mut self) {
        for kind in Kind::ALL {
            List::ALL.into_iter().for_each(|list| self.locked.ghosts_changed(kind, list));
        }
        self.locked.ghosts.clear();
    }

    /// Numbers of all slots in use.
    pub(crate) fn ids(&self) -> Vec<u32> {
        self.ids_among(0..self.locked.end).collect()
    }

    /// Numbers of those among these slots that are in use.
    pub(crate) fn ids_among(&self, slots: Range<u32>) -> impl Iterator<Item = u32> {
        let slots = slots.start..slots.end.min(self.locked.end);
        slots.filter(|&id| self.word(id).state() != 0)
    }

    /// Slots that are or have been in use.
    pub(crate) fn slots(&self) -> u32 {
        self.locked.end
    }

    /// Bytes on the lists of entries, by [`list_index`].
    pub(crate) fn listed_bytes(&self) -> [u64; LISTS] {
        let mut bytes = [0; LISTS];
        for at in LiveList::all() {
            bytes[list_index(at.kind, at.list, false)] += self.locked.lists[at.live()].bytes;
            bytes[list_index(at.kind, at.list, true)] =
                self.locked.ghosts.list_bytes(at.kind, at.list);
        }
        bytes
    }

    pub(crate) fn resident(&self) -> usize {
        self.locked.resident
    }

    pub(crate) fn ghosts_len(&self) -> usize {
        self.locked.ghosts.len()
    }

    /// Keys known: entries, ghosts and loads; now, and at most so far.
    pub(crate) fn known(&self) -> (usize, usize) {
        let now = self.locked.indexed + self.locked.ghosts.len();
        (now, self.locked.indexed_max.max(now))
    }

    /// Bytes of the slots that have been used, of the index and of the ghosts.
    pub(crate) fn overhead_bytes(&self) -> u64 {
        let slots = self.locked.end as usize * size_of::<Entry<K, V>>();
        (slots + self.sublist.index.bytes() + self.locked.ghosts.heap_bytes()) as u64
    }

    /// Takes a loading entry out of the index, so that it will be dead when it is loaded.
    pub(crate) fn doom(&mut self, id: u32) {
        self.unindex(id);
        self.entry(id).meta.raise(DOOMED);
    }
}

impl<K: Eq, V> SublistGuard<'_, K, V> {
    /// The entry of a key.
    pub(crate) fn find(&self, hash: u64, key: &K) -> Option<u32> {
        self.sublist.index.find(short(hash), |id| (self.key(id) == key).then_some(id))
    }
}

impl<K, V> Drop for SublistGuard<'_, K, V> {
    fn drop(&mut self) {
        self.sublist.index.end(self.replacing.take());
        self.publish();
    }
}
