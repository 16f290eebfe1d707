//! Recounting a sublist: every invariant of it, checked from its slots alone.

use super::entry::NONE;
use super::live_list::LiveList;
use super::meta::{DEAD, DOOMED, HANDED, LOADING, OVERSIZE, PARKED};
use super::sublist::SublistGuard;
use crate::policy::{Census, Kind, List, list_index};

impl<K: Eq, V> SublistGuard<'_, K, V> {
    /// Recounts every list, the index and all sizes.
    ///
    /// # Errors
    /// The first invariant that does not hold, in words.
    pub(crate) fn validate(&self) -> Result<Census, String> {
        let locked = &*self.locked;
        let mut census = Census::default();
        let (mut indexed, mut listed, mut vacant) = (0, 0, 0);
        for id in 0..locked.end {
            let word = self.word(id);
            if word.state() == 0 {
                vacant += 1;
                if word.pins() > 0 {
                    return Err(format!("slot {id} is vacant and held"));
                }
                continue;
            }
            self.validate_entry(id, &mut census)?;
            let found = self
                .sublist
                .index
                .find(self.entry(id).hash() as u32, |it| (it == id).then_some(()));
            let expected = word.state() != DEAD && !word.is(DOOMED);
            if found.is_some() != expected {
                return Err(format!("entry {id}, {word:?}: in index {}", found.is_some()));
            }
            if expected && self.find(self.entry(id).hash(), self.key(id)) != Some(id) {
                return Err(format!("entry {id}, {word:?}: found under another number"));
            }
            indexed += usize::from(expected);
            listed += u64::from(word.is_live() && !word.is(PARKED));
        }
        if census.resident != locked.resident as u64 {
            return Err(format!("{} live entries of {}", census.resident, locked.resident));
        }
        if indexed != locked.indexed || vacant != locked.vacant_len {
            return Err(format!("{indexed} indexed of {}, {vacant} vacant", locked.indexed));
        }
        self.validate_vacant()?;
        let mut walked = 0;
        for at in LiveList::all() {
            walked += self.validate_list(at)?;
        }
        if walked != listed {
            return Err(format!("{listed} entries should be on a list, {walked} are"));
        }
        locked.ghosts.validate()?;
        census.ghosts = locked.ghosts.len() as u64;
        for kind in Kind::ALL {
            for list in List::ALL {
                let bytes = locked.ghosts.list_bytes(kind, list);
                census.state_bytes[list_index(kind, list, true)] = bytes;
                census.listed_bytes[list_index(kind, list, true)] = bytes;
            }
        }
        if locked.flights.keys().any(|&id| self.word(id).state() != LOADING) {
            return Err("there are waiters for an entry that is not loading".to_owned());
        }
        Ok(census)
    }

    fn validate_entry(&self, id: u32, census: &mut Census) -> Result<(), String> {
        let (entry, word) = (self.entry(id), self.word(id));
        census.holds += word.pins();
        let kind = word.kind() as usize;
        if word.is_live() {
            let at = list_index(word.kind(), word.list(), false);
            census.resident += 1;
            census.state_bytes[at] += entry.weight_bytes();
            if word.at().waits {
                if word.list() != List::Mru {
                    return Err(format!("entry {id}, {word:?}, waits on MFU"));
                }
                census.window_bytes[kind] += entry.weight_bytes();
            }
            if word.is(HANDED) {
                census.handed_bytes += entry.weight_bytes();
            }
            if !word.is(PARKED) {
                census.listed_bytes[at] += entry.weight_bytes();
            } else if word.pins() == 0 {
                return Err(format!("entry {id} is parked and has no hold"));
            }
            if entry.weight_bytes() == 0 {
                return Err(format!("entry {id} weighs nothing"));
            }
        } else if word.state() == LOADING {
            census.loading += 1;
        } else {
            let bytes =
                if word.is(OVERSIZE) { &mut census.oversize_bytes } else { &mut census.dead_bytes };
            bytes[kind] += entry.weight_bytes();
        }
        if !word.is_live() && word.pins() == 0 {
            return Err(format!("entry {id}, {word:?}, has no hold"));
        }
        Ok(())
    }

    fn validate_vacant(&self) -> Result<(), String> {
        let (mut id, mut len) = (self.locked.vacant, 0);
        while id != NONE && len <= self.locked.vacant_len {
            if id >= self.locked.end || self.word(id).state() != 0 {
                return Err(format!("slot {id} is wrong in the chain of vacant ones"));
            }
            (id, len) = (self.entry(id).newer(), len + 1);
        }
        if len != self.locked.vacant_len {
            return Err(format!("{len} in the chain of {} vacant ones", self.locked.vacant_len));
        }
        Ok(())
    }

    /// The newest entry of every age is marked, and no other.
    fn validate_ages(&self, kind: Kind) -> Result<(), String> {
        let ages = &self.locked.ages[kind as usize];
        let mut id = self.locked.lists[LiveList::mfu(kind).live()].head;
        let (mut marks, mut age) = (ages.marks(), None);
        while id != NONE {
            let of_this = Some(ages.placed_in(self.entry(id))?);
            if age != of_this && marks.next() != of_this.map(|age| (age, id)) {
                return Err(format!("entry {id} of MFU, the newest of age {of_this:?}, no mark"));
            }
            age = of_this;
            id = self.entry(id).older();
        }
        marks.next().map_or(Ok(()), |mark| Err(format!("{mark:?} is not the newest of an age")))
    }

    fn validate_list(&self, at: LiveList) -> Result<u64, String> {
        let ends = &self.locked.lists[at.live()];
        let (mut id, mut newer, mut len, mut bytes, mut stamp) = (ends.head, NONE, 0, 0, u64::MAX);
        while id != NONE {
            let (entry, word) = (self.entry(id), self.word(id));
            let right = word.is_live() && word.at() == at;
            if !right || word.is(PARKED) || entry.newer() != newer || entry.stamp() > stamp {
                return Err(format!("entry {id}, {word:?}, is wrong on {at:?}"));
            }
            len += 1;
            bytes += entry.weight_bytes();
            stamp = entry.stamp();
            newer = id;
            id = entry.older();
            if len > u64::from(self.locked.end) {
                return Err(format!("{at:?} is a circle"));
            }
        }
        if at.list == List::Mfu {
            self.validate_ages(at.kind)?;
        }
        if newer != ends.tail || len != ends.len || bytes != ends.bytes {
            return Err(format!("{at:?}: {len} entries, {} said", ends.len));
        }
        Ok(len)
    }
}
