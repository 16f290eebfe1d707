//! What is remembered of objects, up to a bound: right or not, it only spares requests.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// A map with a bound. Where there is no room, any half of it goes: what matters is asked for again.
#[derive(Debug)]
pub(crate) struct Bounded<K, V, const MOST: usize>(HashMap<K, V>);

impl<K, V, const MOST: usize> Default for Bounded<K, V, MOST> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash, V, const MOST: usize> Bounded<K, V, MOST> {
    /// Remembers this instead of what was there.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        if self.0.len() >= MOST && !self.0.contains_key(&key) {
            let mut goes = false;
            self.0.retain(|_, _| {
                goes = !goes;
                !goes
            });
        }
        self.0.insert(key, value);
    }

    /// What is remembered.
    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.0.get(key)
    }

    /// How much is remembered.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_remembered_than_is_allowed_and_the_latest_is_there() {
        let mut map = Bounded::<u32, u32, 10>::default();
        for number in 0..100 {
            map.insert(number, number);
            map.insert(number, number + 1);
            assert!(map.len() <= 10);
            assert_eq!(map.get(&number), Some(&(number + 1)));
        }
        assert!(map.len() >= 5, "half of it stays");
        let mut one = Bounded::<u32, u32, 1>::default();
        (0..3).for_each(|number| one.insert(number, number));
        assert_eq!((one.len(), one.get(&2)), (1, Some(&2)));
    }
}
