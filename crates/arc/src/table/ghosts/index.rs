//! Where ghosts are, by hash: open addressing in slots of 4 bytes, mostly without reading the
//! ghosts themselves.
//!
//! Places stand in the order of their homes, as in Robin Hood hashing (Celis, Larson and Munro,
//! FOCS '85). Each says how far from its home it stands, in six bits. So a search reads only the
//! ghosts that share its home, and ends at a place that is nearer to its own home. To insert a
//! place, or to close a gap, only moves numbers within the index. A ghost is read for its distance
//! only if six bits are too few, which is rare.

use super::queue::{POSITION_BITS, POSITIONS};

/// A queue, by number, and a position in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u32);

impl Place {
    const QUEUE_SHIFT: u32 = 30;
    const BITS: u32 = !(FAR << POSITION_BITS);

    pub(super) const fn new(queue: usize, position: u32) -> Self {
        Self(((queue as u32) << Self::QUEUE_SHIFT) | position)
    }

    pub(super) const fn queue(self) -> usize {
        (self.0 >> Self::QUEUE_SHIFT) as usize
    }

    pub(super) const fn position(self) -> u32 {
        self.0 & POSITIONS
    }
}

/// Stands in a slot for a distance from home that is too far for its bits. All others hold the
/// distance plus one, because a slot that is 0 is empty.
const FAR: u32 = (1 << (Place::QUEUE_SHIFT - POSITION_BITS)) - 1;

/// The index.
pub(super) struct GhostIndex {
    slots: Vec<u32>,
}

impl GhostIndex {
    pub(super) const fn new() -> Self {
        Self { slots: Vec::new() }
    }

    /// Empty, with so many slots.
    pub(super) fn with_slots(count: usize) -> Self {
        let mut slots = Vec::new();
        slots.reserve_exact(count);
        slots.resize(count, 0);
        Self { slots }
    }

    pub(super) fn slots_len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u32>()
    }

    /// How many places there are. Counts them.
    pub(super) fn count(&self) -> usize {
        self.slots.iter().filter(|&&slot| slot != 0).count()
    }

    /// The place in a slot.
    pub(super) fn at(&self, at: usize) -> Place {
        Place(self.slots[at] & Place::BITS)
    }

    fn home(&self, word: u64) -> usize {
        (((word >> 32) * self.slots.len() as u64) >> 32) as usize
    }

    fn next(&self, at: usize) -> usize {
        if at + 1 == self.slots.len() { 0 } else { at + 1 }
    }

    /// How far the place in a slot is from its home.
    fn distance(&self, at: usize, slot: u32, word_of: impl Fn(Place) -> u64) -> usize {
        let said = (slot >> POSITION_BITS) & FAR;
        if said < FAR {
            return said as usize - 1;
        }
        let home = self.home(word_of(Place(slot & Place::BITS)));
        if at >= home { at - home } else { at + self.slots.len() - home }
    }

    const fn slot(place: Place, distance: usize) -> u32 {
        let said = if distance + 1 < FAR as usize { distance as u32 + 1 } else { FAR };
        place.0 | (said << POSITION_BITS)
    }

    /// The slot of the first place whose ghost `is_it`, of those that share a word's home.
    pub(super) fn find(
        &self,
        word: u64,
        word_of: impl Fn(Place) -> u64,
        is_it: impl Fn(u64) -> bool,
    ) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let mut at = self.home(word);
        for distance in 0..self.slots.len() {
            let slot = self.slots[at];
            if slot == 0 {
                return None;
            }
            let there = self.distance(at, slot, &word_of);
            if there < distance {
                return None;
            }
            if there == distance && is_it(word_of(Place(slot & Place::BITS))) {
                return Some(at);
            }
            at = self.next(at);
        }
        None
    }

    /// The slot of a place, whose ghost is this word. Reads no ghost.
    pub(super) fn slot_of(&self, word: u64, place: Place) -> Option<usize> {
        let mut at = self.home(word);
        while self.slots[at] != 0 {
            if self.at(at) == place {
                return Some(at);
            }
            at = self.next(at);
        }
        None
    }

    /// Puts a place in, whose ghost is this word. There must be an empty slot.
    pub(super) fn put(&mut self, word: u64, place: Place, word_of: impl Fn(Place) -> u64) {
        let (mut at, mut place, mut distance) = (self.home(word), place, 0);
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                break;
            }
            let there = self.distance(at, slot, &word_of);
            if there < distance {
                self.slots[at] = Self::slot(place, distance);
                (place, distance) = (Place(slot & Place::BITS), there);
            }
            at = self.next(at);
            distance += 1;
        }
        self.slots[at] = Self::slot(place, distance);
    }

    /// Empties a slot: what stands after it and not at home moves back.
    pub(super) fn remove(&mut self, mut at: usize, word_of: impl Fn(Place) -> u64) {
        loop {
            let next = self.next(at);
            let slot = self.slots[next];
            let distance = if slot == 0 { 0 } else { self.distance(next, slot, &word_of) };
            if distance == 0 {
                self.slots[at] = 0;
                return;
            }
            self.slots[at] = Self::slot(Place(slot & Place::BITS), distance - 1);
            at = next;
        }
    }

    /// Puts another place into a slot, for the same ghost.
    pub(super) fn replace(&mut self, at: usize, place: Place) {
        self.slots[at] = (self.slots[at] & !Place::BITS) | place.0;
    }

    /// Checks what every slot says of itself, and the order.
    pub(super) fn validate(&self, word_of: impl Fn(Place) -> u64) -> Result<(), String> {
        let len = self.slots.len();
        let distances = |at: usize| {
            let slot = self.slots[at];
            let truly = (at + len - self.home(word_of(Place(slot & Place::BITS)))) % len;
            (slot != 0).then(|| (truly, self.distance(at, slot, &word_of)))
        };
        for at in (0..len).filter(|&at| self.slots[at] != 0) {
            let Some((truly, said)) = distances(at) else { continue };
            let before = if at == 0 { len - 1 } else { at - 1 };
            let most = if self.slots[before] == 0 {
                0
            } else {
                distances(before).map_or(0, |(truly, _)| truly + 1)
            };
            if truly != said || truly > most {
                return Err(format!("slot {at}: {truly} from home, {said} said, {most} at most"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Words and places that are put in and taken out by chance; `spread` bits of a word's home
    /// part are its own.
    fn work(slots: usize, spread: u32, steps: u32) {
        let mut places = GhostIndex::with_slots(slots);
        let mut words: BTreeMap<u32, u64> = BTreeMap::new();
        let mut state = 7_u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 32
        };
        for step in 0..steps {
            let place = Place::new(step as usize % 4, step & POSITIONS);
            if words.len() * 5 < slots * 4 && random() % 3 > 0 {
                // The rest of the home part is all ones: they crowd at the end, and go round.
                let home_part = (u64::MAX << spread) | (random() & ((1 << spread) - 1));
                let word = (home_part << 32) | u64::from(step) | (1 << 31);
                words.insert(place.0, word);
                places.put(word, place, |place| words[&place.0]);
            } else if let Some((&first, &word)) =
                words.range(random() as u32..).next().or_else(|| words.first_key_value())
            {
                let found = places.find(word, |place| words[&place.0], |seen| seen == word);
                let at = found.expect("it was put in");
                assert_eq!(
                    (places.at(at), places.slot_of(word, Place(first))),
                    (Place(first), found)
                );
                places.remove(at, |place| words[&place.0]);
                words.remove(&first);
                assert_eq!(places.find(word, |place| words[&place.0], |seen| seen == word), None);
            }
            if step % 64 == 0 {
                places.validate(|place| words[&place.0]).unwrap();
                assert_eq!(places.count(), words.len());
            }
        }
        for (&place, &word) in &words {
            assert!(places.slot_of(word, Place(place)).is_some());
        }
    }

    #[test]
    fn a_ghost_is_found_until_it_is_taken_out() {
        work(100, 32, if cfg!(miri) { 300 } else { 20_000 });
        work(1001, 32, if cfg!(miri) { 300 } else { 20_000 });
    }

    #[test]
    fn many_ghosts_with_the_same_home_are_kept() {
        work(200, 0, if cfg!(miri) { 150 } else { 10_000 });
        work(500, 28, if cfg!(miri) { 150 } else { 10_000 });
    }

    #[test]
    fn a_search_visits_only_entries_with_its_home() {
        let count = if cfg!(miri) { 300 } else { 8000 };
        let word = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut places = GhostIndex::with_slots(count as usize * 5 / 4);
        for n in 0..count {
            places.put(word(n), Place::new(1, n as u32), |_| panic!("no ghost is read"));
        }
        let looks = std::cell::Cell::new(0);
        let count_looks = |place: Place| {
            looks.set(looks.get() + 1);
            word(u64::from(place.position()))
        };
        for n in count..2 * count {
            assert_eq!(places.find(word(n), count_looks, |seen| seen == word(n)), None);
        }
        // As many as there are to a home: four fifths.
        assert!(looks.get() < count * 9 / 10, "{} looks in {count} searches", looks.get());
        for n in 0..count {
            let at = places.slot_of(word(n), Place::new(1, n as u32)).unwrap();
            places.remove(at, |_| panic!("no ghost is read"));
        }
        assert_eq!(places.count(), 0);
    }
}
