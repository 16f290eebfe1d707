//! Keys on doubly linked lists with an index by key, which all policies here are built of.
//!
//! A slab of nodes, linked by number, and an index of numbers by key. A key is on exactly one of
//! the `N` lists. Only the growth of the slab and of the index allocates.

use std::hash::BuildHasher as _;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

/// Number of a node.
pub(crate) type Id = u32;

const NONE: Id = u32::MAX;

/// One key on one list.
#[derive(Clone, Copy, Debug)]
struct Node {
    key: u64,
    bytes: u64,
    /// Towards the front.
    newer: Id,
    /// Towards the back.
    older: Id,
    list: u8,
    mark: u8,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    front: Id,
    back: Id,
    bytes: u64,
    len: usize,
}

/// `N` lists that share their nodes and their index.
#[derive(Debug)]
pub(crate) struct Lists<const N: usize> {
    nodes: Vec<Node>,
    free: Vec<Id>,
    index: HashTable<Id>,
    hasher: FixedState,
    ends: [Ends; N],
}

impl<const N: usize> Lists<N> {
    pub(crate) fn new() -> Self {
        Self {
            nodes: Vec::new(),
            free: Vec::new(),
            index: HashTable::new(),
            hasher: FixedState::with_seed(0),
            ends: [Ends { front: NONE, back: NONE, bytes: 0, len: 0 }; N],
        }
    }

    pub(crate) fn find(&self, key: u64) -> Option<Id> {
        let hash = self.hasher.hash_one(key);
        self.index.find(hash, |&id| self.nodes[id as usize].key == key).copied()
    }

    pub(crate) fn key(&self, id: Id) -> u64 {
        self.nodes[id as usize].key
    }

    pub(crate) fn bytes(&self, id: Id) -> u64 {
        self.nodes[id as usize].bytes
    }

    pub(crate) fn list(&self, id: Id) -> usize {
        usize::from(self.nodes[id as usize].list)
    }

    /// A small number that the policy keeps with a key: reference bits, a count.
    pub(crate) fn mark(&self, id: Id) -> u8 {
        self.nodes[id as usize].mark
    }

    pub(crate) fn set_mark(&mut self, id: Id, mark: u8) {
        self.nodes[id as usize].mark = mark;
    }

    /// Weight of all keys of a list.
    pub(crate) fn list_bytes(&self, list: usize) -> u64 {
        self.ends[list].bytes
    }

    pub(crate) fn list_len(&self, list: usize) -> usize {
        self.ends[list].len
    }

    /// The oldest of a list.
    pub(crate) fn back(&self, list: usize) -> Option<Id> {
        some(self.ends[list].back)
    }

    /// The neighbour of a node towards the front.
    pub(crate) fn newer(&self, id: Id) -> Option<Id> {
        some(self.nodes[id as usize].newer)
    }

    /// Inserts a key that is on no list at the front of one.
    ///
    /// # Panics
    /// At 2^32 keys.
    pub(crate) fn push_front(&mut self, list: usize, key: u64, bytes: u64) -> Id {
        let node = Node { key, bytes, newer: NONE, older: NONE, list: 0, mark: 0 };
        let id = match self.free.pop() {
            Some(id) => {
                self.nodes[id as usize] = node;
                id
            }
            None => {
                self.nodes.push(node);
                Id::try_from(self.nodes.len() - 1).expect("fewer than 2^32 keys")
            }
        };
        let (nodes, hasher) = (&self.nodes, &self.hasher);
        let rehash = |&id: &Id| hasher.hash_one(nodes[id as usize].key);
        self.index.insert_unique(hasher.hash_one(key), id, rehash);
        self.link_front(list, id);
        id
    }

    /// Moves a key to the front of the same or another list.
    pub(crate) fn move_to_front(&mut self, list: usize, id: Id) {
        self.unlink(id);
        self.link_front(list, id);
    }

    /// Moves a key to the back of the same or another list.
    pub(crate) fn move_to_back(&mut self, list: usize, id: Id) {
        self.unlink(id);
        self.link_back(list, id);
    }

    /// Removes a key.
    pub(crate) fn remove(&mut self, id: Id) {
        self.unlink(id);
        let hash = self.hasher.hash_one(self.key(id));
        if let Ok(entry) = self.index.find_entry(hash, |&other| other == id) {
            entry.remove();
        }
        self.free.push(id);
    }

    fn link_front(&mut self, list: usize, id: Id) {
        let front = self.ends[list].front;
        let node = &mut self.nodes[id as usize];
        (node.list, node.newer, node.older) = (list as u8, NONE, front);
        let bytes = node.bytes;
        match some(front) {
            Some(front) => self.nodes[front as usize].newer = id,
            None => self.ends[list].back = id,
        }
        let ends = &mut self.ends[list];
        ends.front = id;
        ends.bytes += bytes;
        ends.len += 1;
    }

    fn link_back(&mut self, list: usize, id: Id) {
        let back = self.ends[list].back;
        let node = &mut self.nodes[id as usize];
        (node.list, node.newer, node.older) = (list as u8, back, NONE);
        let bytes = node.bytes;
        match some(back) {
            Some(back) => self.nodes[back as usize].older = id,
            None => self.ends[list].front = id,
        }
        let ends = &mut self.ends[list];
        ends.back = id;
        ends.bytes += bytes;
        ends.len += 1;
    }

    fn unlink(&mut self, id: Id) {
        let Node { newer, older, list, bytes, .. } = self.nodes[id as usize];
        let ends = &mut self.ends[usize::from(list)];
        ends.bytes -= bytes;
        ends.len -= 1;
        match some(newer) {
            Some(newer) => self.nodes[newer as usize].older = older,
            None => ends.front = older,
        }
        let ends = &mut self.ends[usize::from(list)];
        match some(older) {
            Some(older) => self.nodes[older as usize].newer = newer,
            None => ends.back = newer,
        }
    }
}

fn some(id: Id) -> Option<Id> {
    (id != NONE).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn keys(lists: &Lists<2>, list: usize) -> Vec<u64> {
        let mut at = lists.back(list);
        let mut keys = Vec::new();
        while let Some(id) = at {
            keys.push(lists.key(id));
            at = lists.newer(id);
        }
        keys
    }

    proptest! {
        #[test]
        fn lists_behave_like_two_deques(steps in prop::collection::vec((0_u8..4, 0_u64..12, 0_usize..2), 0..300)) {
            let mut lists = Lists::<2>::new();
            let mut model = [VecDeque::new(), VecDeque::new()];
            for (step, key, list) in steps {
                let found = lists.find(key);
                prop_assert_eq!(found.is_some(), model.iter().any(|keys| keys.contains(&key)));
                match (step, found) {
                    (0, None) => {
                        lists.push_front(list, key, key + 1);
                        model[list].push_back(key);
                    }
                    (1, Some(id)) => {
                        lists.move_to_front(list, id);
                        model.iter_mut().for_each(|keys| keys.retain(|&other| other != key));
                        model[list].push_back(key);
                    }
                    (3, Some(id)) => {
                        lists.move_to_back(list, id);
                        model.iter_mut().for_each(|keys| keys.retain(|&other| other != key));
                        model[list].push_front(key);
                    }
                    (2, Some(id)) => {
                        lists.remove(id);
                        model.iter_mut().for_each(|keys| keys.retain(|&other| other != key));
                    }
                    _ => {}
                }
                for (list, model) in model.iter().enumerate() {
                    prop_assert_eq!(keys(&lists, list), Vec::from(model.clone()));
                    prop_assert_eq!(lists.list_len(list), model.len());
                    let bytes: u64 = model.iter().map(|key| key + 1).sum();
                    prop_assert_eq!(lists.list_bytes(list), bytes);
                }
            }
        }
    }
}
