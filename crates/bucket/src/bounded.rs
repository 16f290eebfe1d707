//! A map with a bound, for answers that only save requests.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// A map with a bound. Inserting into a full map drops half of its entries, whichever they are.
#[derive(Debug)]
pub(crate) struct Bounded<K, V> {
    entries: HashMap<K, V>,
    most: usize,
}

impl<K: Eq + Hash, V> Bounded<K, V> {
    /// An empty map of at most `most` entries.
    pub(crate) fn new(most: usize) -> Self {
        Self { entries: HashMap::new(), most }
    }

    /// Inserts or replaces an entry.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        if self.entries.len() >= self.most && !self.entries.contains_key(&key) {
            let mut goes = false;
            self.entries.retain(|_, _| {
                goes = !goes;
                !goes
            });
        }
        self.entries.insert(key, value);
    }

    /// The value of a key.
    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.entries.get(key)
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_map_keeps_its_bound_and_the_latest_entry() {
        let mut map = Bounded::<u32, u32>::new(10);
        for number in 0..100 {
            map.insert(number, number);
            map.insert(number, number + 1);
            assert!(map.len() <= 10);
            assert_eq!(map.get(&number), Some(&(number + 1)));
        }
        assert!(map.len() >= 5, "half of it stays");
        let mut one = Bounded::<u32, u32>::new(1);
        (0..3).for_each(|number| one.insert(number, number));
        assert_eq!((one.len(), one.get(&2)), (1, Some(&2)));
    }
}
