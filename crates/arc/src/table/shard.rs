//! One sublist: what readers see of it, and everything that is done under its lock.
//!
//! Invariants, recounted by [`ShardGuard::validate`]:
//! - a live entry is on the list of its state and kind, unless it is parked: then it was held
//!   when an eviction met it, and its last release puts it back;
//! - every entry is in the index except dead ones and loading ones which are doomed;
//! - along a list from head to tail the stamps never grow, so the tail is the oldest;
//! - a key is an entry or a ghost, never both.
#![allow(unsafe_code)]

use super::entry::Entry;
use super::ghosts::{Ghost, remembered};
use super::index::Index;
use super::lists::{Inside, LIVE_LISTS, NONE, Stored};
use super::meta::{DEAD, DEMOTE, DOOMED, LOADING, MFU, MRU, PARKED, PROMOTED, TOUCHED, Word};
use super::recency::{Note, Recency};
use super::slab::Slab;
use crate::cache::Tails;
use crate::counters::{Counters, Event};
use crate::policy::{Balance, Kind, LISTS, List, list_index};
use crate::sync::{Mutex, MutexGuard, lock_counted, try_lock};
use std::sync::Arc;

/// One sublist.
#[repr(align(128))]
pub(crate) struct Shard<K, V> {
    pub(crate) index: Index,
    pub(super) slab: Slab<K, V>,
    pub(crate) recency: Recency,
    inside: Mutex<Inside>,
    number: usize,
}

/// What an eviction came to.
pub(crate) enum Taken<K, V> {
    /// What the eldest entry owned; its hash, word and weight in bytes.
    Entry(Stored<K, V>, u64, Word, u64),
    /// It has been used, or is held: it has moved, and what is wanted may be another list now.
    Moved,
    /// The list is empty.
    Nothing,
}

/// What came of a pin that was let go under the lock.
pub(crate) enum Unpinned<K, V> {
    /// Nothing: others have pins, or the entry stays.
    Held,
    /// It was the last one of a dead entry.
    Buried(Stored<K, V>, Word),
    /// It was the last one of an entry to be demoted.
    Demoted(Stored<K, V>, Word),
}

/// The part of a hash the index goes by.
pub(super) const fn short(hash: u64) -> u32 {
    hash as u32
}

impl<K, V> Shard<K, V> {
    pub(crate) fn new(number: usize, exact: bool) -> Self {
        Self {
            index: Index::new(),
            slab: Slab::new(),
            recency: Recency::new(exact),
            inside: Mutex::new(Inside::new()),
            number,
        }
    }

    /// Its number.
    pub(crate) const fn number(&self) -> usize {
        self.number
    }

    /// The entry of a slot.
    #[inline]
    pub(crate) fn entry(&self, id: u32) -> Option<&Entry<K, V>> {
        self.slab.get(id)
    }

    /// Takes the lock.
    pub(crate) fn lock<'a>(
        &'a self,
        tails: &'a Tails,
        counters: &Counters,
    ) -> ShardGuard<'a, K, V> {
        let inside = lock_counted(&self.inside, counters);
        ShardGuard { inside, shard: self, tails, replacing: None }
    }

    /// Takes the lock if nobody has it.
    pub(crate) fn try_lock<'a>(
        &'a self,
        tails: &'a Tails,
        counters: &Counters,
    ) -> Option<ShardGuard<'a, K, V>> {
        let inside = try_lock(&self.inside)?;
        counters.count(Event::Locks);
        Some(ShardGuard { inside, shard: self, tails, replacing: None })
    }
}

/// A sublist, locked. Publishes its tails and ages when it is unlocked.
pub(crate) struct ShardGuard<'a, K, V> {
    pub(crate) inside: MutexGuard<'a, Inside>,
    pub(crate) shard: &'a Shard<K, V>,
    tails: &'a Tails,
    replacing: Option<u64>,
}

impl<'a, K, V> ShardGuard<'a, K, V> {
    /// An entry is about to be replaced: until the lock is given back, nobody without it is to
    /// find for sure that its key has none.
    pub(crate) fn begin_replacing(&mut self) {
        self.replacing = self.replacing.or_else(|| self.shard.index.begin());
    }

    /// The entry of a slot that is in use.
    pub(crate) fn entry(&self, id: u32) -> &'a Entry<K, V> {
        self.shard.slab.get(id).expect("a number under the lock is of a slot")
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
        self.inside.stamp(arrivals)
    }

    /// Makes a loading entry with one pin out of a vacant slot, and indexes it. The key must
    /// have neither an entry nor a ghost.
    ///
    /// # Panics
    /// With 2^32 entries in one sublist, which would be 256 GiB of slots.
    pub(crate) fn occupy(&mut self, hash: u64, key: K, kind: Kind, flags: u64) -> u32 {
        let inside = &mut *self.inside;
        let id = if inside.vacant == NONE {
            assert!(self.shard.slab.provide(inside.end), "fewer than 2^32 entries in a sublist");
            inside.end += 1;
            inside.end - 1
        } else {
            let id = inside.vacant;
            inside.vacant = self.shard.slab.get(id).map_or(NONE, Entry::newer);
            inside.vacant_len -= 1;
            id
        };
        let entry = self.shard.slab.get(id).expect("it was provided");
        // SAFETY: the slot is vacant, and this guard has the lock.
        unsafe { entry.put_key(key) };
        entry.set_hash(hash);
        entry.set_weight_bytes(0);
        let loading = |word: Word| {
            Some(word.plain().with_kind(kind).with_state(LOADING).with(flags).pinned())
        };
        let changed = entry.meta.change(loading);
        debug_assert!(changed.is_ok_and(|(before, _)| before.state() == 0 && before.pins() == 0));
        self.shard.index.insert(short(hash), id, inside.indexed);
        inside.indexed += 1;
        inside.indexed_max = inside.indexed_max.max(inside.indexed + inside.ghosts.len());
        id
    }

    /// Takes an entry out of the index; it keeps its slot.
    pub(crate) fn unindex(&mut self, id: u32) {
        if self.shard.index.remove(short(self.entry(id).hash()), id) {
            self.inside.indexed -= 1;
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
            self.inside.resident += 1;
            self.link(id, word, stamp);
        }
    }

    pub(crate) fn link(&mut self, id: u32, word: Word, stamp: u64) {
        let (entry, at) = (self.entry(id), (word.kind(), word.list()));
        self.inside.link(&self.shard.slab, (id, entry), at, stamp);
    }

    pub(crate) fn unlink(&mut self, id: u32, word: Word) {
        let entry = self.entry(id);
        self.inside.unlink(&self.shard.slab, (id, entry), (word.kind(), word.list()));
    }

    /// Makes an entry vacant that has `pins` pins, its caller's; it is on no list and not in the
    /// index. Gives back what it owned, for the caller to drop outside the lock, or the word as
    /// it is if the entry is not as said.
    pub(crate) fn vacate(&mut self, id: u32, pins: u64) -> Result<Stored<K, V>, Word> {
        let entry = self.entry(id);
        let vacated = |word: Word| (word.pins() == pins).then(|| word.vacated());
        let (before, _) = entry.meta.change(vacated)?;
        Ok(self.take(id, before))
    }

    /// What a slot owned which this guard has just made vacant.
    fn take(&mut self, id: u32, before: Word) -> Stored<K, V> {
        let entry = self.entry(id);
        self.inside.resident -= usize::from(before.is_live());
        entry.set_newer(self.inside.vacant);
        self.inside.vacant = id;
        self.inside.vacant_len += 1;
        let has_value = before.is_live() || before.state() == DEAD;
        // SAFETY: the entry was not vacant and is now, by this guard, which calls this once; so
        // nobody else has a pin of it, and nobody can get one.
        unsafe { (entry.take_key(), has_value.then(|| entry.take_value())) }
    }

    /// Applies what hits have noted: in this thread, or with `all` in every one.
    pub(crate) fn drain(&mut self, all: bool, arrivals: u64) {
        let shard = self.shard;
        shard.recency.drain(all, |note| self.apply(note, arrivals));
        self.inside.count_uses(&shard.recency, all, arrivals);
    }

    fn apply(&mut self, note: Note, arrivals: u64) {
        let exact = self.shard.recency.is_exact();
        if let Some(entry) = self.shard.slab.get(note.id) {
            let word = entry.meta.load();
            let stale = word.uses() != note.uses || !word.is_live();
            if !stale && (exact || word.is(TOUCHED)) {
                self.move_up(note.id, arrivals);
            }
        }
    }

    /// Moves a live entry to the head of its list, or of MFU if it belongs there.
    pub(crate) fn move_up(&mut self, id: u32, arrivals: u64) {
        let entry = self.entry(id);
        let word = entry.meta.lower(TOUCHED | PROMOTED);
        if !word.is(PARKED) {
            self.unlink(id, word);
        }
        let word = self.promoted(id, word);
        if !word.is(PARKED) {
            let stamp = self.inside.stamp(arrivals);
            self.link(id, word, stamp);
        }
    }

    /// Makes an entry one of MFU, if its word says that it belongs there. It is on no list.
    pub(crate) fn promoted(&mut self, id: u32, word: Word) -> Word {
        if word.state() != MRU || !word.is(PROMOTED) {
            return word;
        }
        let entry = self.entry(id);
        self.inside.promoted_bytes[word.kind() as usize] += entry.weight_bytes();
        match entry.meta.change(|word| Some(word.with_state(MFU))) {
            Ok((_, word)) | Err(word) => word,
        }
    }

    /// Tells the balance which bytes have gone from MRU to MFU.
    pub(crate) fn flush(&mut self, balance: &mut Balance) {
        for kind in Kind::ALL {
            let bytes = std::mem::take(&mut self.inside.promoted_bytes[kind as usize]);
            balance.sub(kind, List::Mru, false, bytes);
            balance.add(kind, List::Mfu, false, bytes);
        }
    }

    /// Takes the eldest entry of a list, unless it has been used since or is held.
    pub(crate) fn take_eldest(
        &mut self,
        (kind, list): (Kind, List),
        arrivals: u64,
        counters: &Counters,
    ) -> Taken<K, V> {
        if list == List::Mfu {
            self.inside.sort_tail(&self.shard.slab, kind);
        }
        let Some(id) = self.inside.tail(kind, list) else {
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
                Taken::Moved
            }
            Ok((before, _)) => {
                self.unlink(id, before);
                self.unindex(id);
                let (hash, weight_bytes) = (entry.hash(), entry.weight_bytes());
                Taken::Entry(self.take(id, before), hash, before, weight_bytes)
            }
            Err(_) => {
                self.move_up(id, arrivals);
                Taken::Moved
            }
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
        if before.pins() == 0 {
            return (Some(self.take(id, before)), before);
        }
        self.inside.resident -= 1;
        (None, before)
    }

    /// Takes a live entry out of index and list if nobody holds it; otherwise marks it, so that
    /// the last release does. Returns what it owned, and its word.
    pub(crate) fn demote(&mut self, id: u32) -> Option<(Stored<K, V>, Word)> {
        let demote =
            |word: Word| Some(if word.pins() == 0 { word.vacated() } else { word.with(DEMOTE) });
        let Ok((before, _)) = self.entry(id).meta.change(demote) else {
            return None;
        };
        (before.pins() == 0).then(|| (self.withdraw(id, before), before))
    }

    fn withdraw(&mut self, id: u32, before: Word) -> Stored<K, V> {
        if !before.is(PARKED) {
            self.unlink(id, before);
        }
        self.unindex(id);
        self.take(id, before)
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
            return Unpinned::Demoted(self.withdraw(id, before), before);
        }
        if before.is(PARKED) {
            let word = after.with(entry.meta.lower(TOUCHED | PROMOTED).only(PROMOTED));
            let word = self.promoted(id, word);
            let stamp = self.inside.stamp(arrivals);
            self.link(id, word, stamp);
        }
        Unpinned::Held
    }

    /// Makes a ghost of a key that has just lost its entry. Returns its weight as remembered.
    pub(crate) fn remember(&mut self, hash: u64, ghost: Ghost, arrivals: u64) -> u64 {
        let stamp = self.inside.stamp(arrivals);
        let ghost = Ghost { weight_bytes: remembered(ghost.weight_bytes), ..ghost };
        self.inside.ghosts.push(hash, &ghost, stamp);
        self.inside.ghosts_changed(ghost.kind, ghost.list);
        ghost.weight_bytes
    }

    /// The ghost of a key.
    pub(crate) fn ghost(&self, hash: u64) -> Option<Ghost> {
        self.inside.ghosts.find(hash)
    }

    /// Takes the ghost of a key out.
    pub(crate) fn take_ghost(&mut self, hash: u64) -> Option<Ghost> {
        let ghost = self.inside.ghosts.take(hash)?;
        self.inside.ghosts_changed(ghost.kind, ghost.list);
        Some(ghost)
    }

    /// Forgets the eldest ghost of a list.
    pub(crate) fn forget_ghost(&mut self, kind: Kind, list: List) -> Option<Ghost> {
        self.inside.ghosts_changed(kind, list);
        self.inside.ghosts.forget(kind, list)
    }

    /// Publishes what others go by.
    pub(crate) fn publish(&mut self) {
        let inside = &mut *self.inside;
        inside.publish_ages(&self.shard.recency);
        let changed = std::mem::take(&mut inside.changed_tails);
        for list in (0..LISTS).filter(|list| changed & (1 << list) != 0) {
            let stamp = inside.tail_stamp(&self.shard.slab, list);
            self.tails.publish(list, self.shard.number, stamp);
        }
    }

    /// The stamp of the eldest of a list.
    pub(crate) fn tail_stamp(&self, list: usize) -> u64 {
        self.inside.tail_stamp(&self.shard.slab, list)
    }

    /// Forgets all ghosts.
    pub(crate) fn forget_all_ghosts(&mut self) {
        for kind in Kind::ALL {
            List::ALL.into_iter().for_each(|list| self.inside.ghosts_changed(kind, list));
        }
        self.inside.ghosts = super::ghosts::Ghosts::new();
    }

    /// Numbers of all slots in use.
    pub(crate) fn ids(&self) -> Vec<u32> {
        (0..self.inside.end).filter(|&id| self.word(id).state() != 0).collect()
    }

    /// Bytes on the lists of entries, by [`list_index`].
    pub(crate) fn listed_bytes(&self) -> [u64; LISTS] {
        let mut bytes = [0; LISTS];
        for at in 0..LIVE_LISTS {
            let (kind, list) = (Kind::ALL[at / 2], List::ALL[at % 2]);
            bytes[list_index(kind, list, false)] = self.inside.lists[at].bytes;
            bytes[list_index(kind, list, true)] = self.inside.ghosts.list_bytes(kind, list);
        }
        bytes
    }

    pub(crate) fn resident(&self) -> usize {
        self.inside.resident
    }

    pub(crate) fn ghosts_len(&self) -> usize {
        self.inside.ghosts.len()
    }

    /// Keys known: entries, ghosts and loads; now, and at most so far.
    pub(crate) fn known(&self) -> (usize, usize) {
        let now = self.inside.indexed + self.inside.ghosts.len();
        (now, self.inside.indexed_max.max(now))
    }

    /// Bytes of the slots that have been used, of the index and of the ghosts.
    pub(crate) fn overhead_bytes(&self) -> u64 {
        let slots = self.inside.end as usize * size_of::<Entry<K, V>>();
        (slots + self.shard.index.bytes() + self.inside.ghosts.heap_bytes()) as u64
    }

    /// Takes a loading entry out of the index, so that it will be dead when it is loaded.
    pub(crate) fn doom(&mut self, id: u32) {
        self.unindex(id);
        self.entry(id).meta.raise(DOOMED);
    }

    /// Gives memory back: ghosts' queues and index if they are far too large, and if most slots
    /// are vacant, the pages after the last one in use, entries which nobody holds going into
    /// vacant slots first.
    pub(crate) fn shrink(&mut self) {
        self.inside.ghosts.shrink();
        self.shard.index.shrink(self.inside.indexed);
        if self.inside.vacant_len / 3 < (self.inside.end - self.inside.vacant_len) {
            return;
        }
        let mut vacant: Vec<u32> =
            (0..self.inside.end).filter(|&id| self.word(id).state() == 0).collect();
        vacant.reverse();
        let before = self.inside.end;
        while let Some(last) = self.inside.end.checked_sub(1) {
            let word = self.word(last);
            if word.state() != 0 {
                let to = vacant.last().copied().filter(|&to| to < last);
                if !to.is_some_and(|to| self.relocate(last, to)) {
                    break;
                }
                vacant.pop();
            }
            self.inside.end = last;
        }
        let end = self.inside.end;
        vacant.retain(|&id| id < end);
        self.inside.vacant = NONE;
        for &id in &vacant {
            self.entry(id).set_newer(self.inside.vacant);
            self.inside.vacant = id;
        }
        self.inside.vacant_len = vacant.len() as u32;
        self.shard.slab.give_back(end..before);
    }

    /// Moves a live entry which nobody holds into a vacant slot. Returns whether it could.
    fn relocate(&mut self, from: u32, to: u32) -> bool {
        let (entry, place) = (self.entry(from), self.entry(to));
        let idle = |word: Word| {
            let idle = word.is_live() && word.pins() == 0 && !word.is(PARKED);
            idle.then(|| word.vacated())
        };
        let Ok((word, _)) = entry.meta.change(idle) else {
            return false;
        };
        // SAFETY: the entry was live and has been made vacant by this guard, so its key and its
        // value are this guard's; the place is vacant.
        unsafe {
            place.put_key(entry.take_key());
            place.put_value(entry.take_value());
        }
        place.set_hash(entry.hash());
        place.set_weight_bytes(entry.weight_bytes());
        place.set_stamp(entry.stamp());
        place.set_used_in(entry.used_in());
        place.set_placed_in(entry.placed_in());
        let (newer, older) = (entry.newer(), entry.older());
        place.set_newer(newer);
        place.set_older(older);
        if word.list() == List::Mfu {
            self.inside.ages[word.kind() as usize].renumbered(entry.placed_in(), from, to);
        }
        let ends = &mut self.inside.lists[super::lists::live_list(word.kind(), word.list())];
        match self.shard.slab.get(newer) {
            Some(neighbour) if newer != NONE => neighbour.set_older(to),
            _ => ends.head = to,
        }
        match self.shard.slab.get(older) {
            Some(neighbour) if older != NONE => neighbour.set_newer(to),
            _ => ends.tail = to,
        }
        let moved = place.meta.change(|vacant| Some(vacant.as_live(word)));
        debug_assert!(moved.is_ok());
        self.shard.index.replace(short(entry.hash()), from, to);
        true
    }
}

impl<K: Eq, V> ShardGuard<'_, K, V> {
    /// The entry of a key.
    pub(crate) fn find(&self, hash: u64, key: &K) -> Option<u32> {
        self.shard.index.find(short(hash), |id| (self.key(id) == key).then_some(id))
    }
}

impl<K, V> Drop for ShardGuard<'_, K, V> {
    fn drop(&mut self) {
        self.shard.index.end(self.replacing.take());
        self.publish();
    }
}
