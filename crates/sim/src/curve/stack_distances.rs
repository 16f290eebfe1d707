//! LRU stack distances in O(log n). The distance is the weight of all keys requested since the last
//! request of the key (Mattson et al., "Evaluation Techniques for Storage Hierarchies", 1970). A
//! tree over time finds it (Bennett and Kruskal, "LRU Stack Processing", 1975).
//!
//! Each key has the time slot of its last access in a Fenwick tree, which sums weights from a slot
//! on. When slots run out, the keys are compacted in their order.

use std::hash::BuildHasher as _;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

const SLOTS_MIN: usize = 1024;

#[derive(Clone, Copy, Debug)]
struct Place {
    key: u64,
    slot: u32,
}

/// The keys in the order of their last access, with their weights.
#[derive(Debug)]
pub(crate) struct Distances {
    places: HashTable<Place>,
    hasher: FixedState,
    /// Sums of weights, one-based.
    tree: Vec<u64>,
    weights: Vec<u64>,
    /// The slot of the next access.
    next: usize,
    total: u64,
}

impl Distances {
    pub(crate) fn new() -> Self {
        Self {
            places: HashTable::new(),
            hasher: FixedState::with_seed(0),
            tree: vec![0; SLOTS_MIN + 1],
            weights: vec![0; SLOTS_MIN],
            next: 0,
            total: 0,
        }
    }

    /// Records an access. Returns the weight of all keys accessed since this one was, including its
    /// own, or `None` at its first access. A key keeps the weight of its first access.
    pub(crate) fn access(&mut self, key: u64, weight: u64) -> Option<u64> {
        if self.next == self.weights.len() {
            self.compact();
        }
        let now = self.next as u32;
        self.next += 1;
        let hash = self.hasher.hash_one(key);
        if let Some(place) = self.places.find_mut(hash, |place| place.key == key) {
            let slot = place.slot as usize;
            place.slot = now;
            let weight = self.weights[slot];
            let distance = self.total - self.sum_before(slot);
            self.set(slot, 0);
            self.set(now as usize, weight);
            return Some(distance);
        }
        let hasher = &self.hasher;
        self.places
            .insert_unique(hash, Place { key, slot: now }, |place| hasher.hash_one(place.key));
        self.set(now as usize, weight);
        None
    }

    /// Removes a key.
    pub(crate) fn remove(&mut self, key: u64) {
        let hash = self.hasher.hash_one(key);
        if let Ok(entry) = self.places.find_entry(hash, |place| place.key == key) {
            let slot = entry.remove().0.slot as usize;
            self.set(slot, 0);
        }
    }

    /// Sum of the weights in the slots before one.
    fn sum_before(&self, slot: usize) -> u64 {
        let mut at = slot;
        let mut sum = 0;
        while at > 0 {
            sum += self.tree[at];
            at &= at - 1;
        }
        sum
    }

    fn set(&mut self, slot: usize, weight: u64) {
        let change = weight.wrapping_sub(self.weights[slot]);
        self.weights[slot] = weight;
        self.total = self.total.wrapping_add(change);
        let mut at = slot + 1;
        while at < self.tree.len() {
            self.tree[at] = self.tree[at].wrapping_add(change);
            at += at & at.wrapping_neg();
        }
    }

    /// Compacts all keys in their order, and makes room for as many accesses as there are keys.
    fn compact(&mut self) {
        let mut moved = vec![0_u32; self.weights.len()];
        let mut live = 0;
        for (slot, &weight) in self.weights.iter().enumerate() {
            // A key weighs at least 1, so only unused slots weigh 0.
            if weight > 0 {
                moved[slot] = live;
                live += 1;
            }
        }
        let slots = (live as usize * 2).max(SLOTS_MIN);
        let weights: Vec<u64> = self.weights.iter().copied().filter(|&weight| weight > 0).collect();
        for place in self.places.iter_mut() {
            place.slot = moved[place.slot as usize];
        }
        self.weights = weights;
        self.weights.resize(slots, 0);
        self.next = live as usize;
        self.tree = vec![0; slots + 1];
        for slot in 0..slots {
            let at = slot + 1;
            self.tree[at] = self.tree[at].wrapping_add(self.weights[slot]);
            let parent = at + (at & at.wrapping_neg());
            if parent <= slots {
                self.tree[parent] = self.tree[parent].wrapping_add(self.tree[at]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn distances_equal_those_of_a_list(
            steps in prop::collection::vec((0_u64..40, prop::bool::weighted(0.05)), 0..4000)
        ) {
            let mut distances = Distances::new();
            let mut list: Vec<u64> = Vec::new();
            for (key, remove) in steps {
                let position = list.iter().position(|&other| other == key);
                if remove {
                    distances.remove(key);
                    position.map(|position| list.remove(position));
                    continue;
                }
                let expected = position.map(|position| {
                    list[position..].iter().map(|key| key + 1).sum::<u64>()
                });
                prop_assert_eq!(distances.access(key, key + 1), expected);
                position.map(|position| list.remove(position));
                list.push(key);
                prop_assert_eq!(distances.places.len(), list.len());
            }
        }
    }
}
