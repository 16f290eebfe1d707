//! Giving the slab's memory back after much of it has become vacant.

use super::{NONE, NodeId, Sublist, list_index};
use crate::policy::State;

/// A slab smaller than this, in nodes, is not worth shrinking.
const SLAB_MIN: usize = 64;

impl<K, P> Sublist<K, P> {
    /// Gives memory back if at least three quarters of the slab are vacant: takes nodes off
    /// its end, those in use into vacant places first. Nodes which are held or being loaded
    /// are known by number and cannot move; the first of them from the end ends the work, so
    /// it is in proportion to what is given back. Returns how many nodes are gone.
    pub fn shrink(&mut self) -> usize {
        let before = self.nodes.len();
        if before < SLAB_MIN || self.vacant_len * 4 < before * 3 {
            return 0;
        }
        while let Some(last) = self.nodes.len().checked_sub(1) {
            let last = last as NodeId;
            if self.state(last) == State::Vacant {
                self.occupy(last);
            } else if self.vacant != NONE && self.is_linked(last) {
                let place = self.vacant;
                self.occupy(place);
                self.relocate(last, place);
            } else {
                break;
            }
            self.nodes.pop();
        }
        // Both copy what is left, so only if much is gone.
        if self.nodes.capacity() / 2 > self.nodes.len() {
            self.nodes.shrink_to_fit();
        }
        if self.index.capacity() / 4 > self.index.len() {
            let nodes = &self.nodes;
            self.index.shrink_to(0, |&id| nodes[id as usize].hash);
        }
        before - self.nodes.len()
    }

    /// Moves the listed node `from` into the place `to`, which is nobody's.
    fn relocate(&mut self, from: NodeId, to: NodeId) {
        self.nodes.swap(from as usize, to as usize);
        let node = self.node(to);
        let (newer, older, hash) = (node.newer, node.older, node.hash);
        let list = node.state.list().expect("a listed node has a list");
        let list = list_index(node.kind, list.0, list.1);
        if newer == NONE {
            self.lists[list].head = to;
        } else {
            self.node_mut(newer).older = to;
        }
        if older == NONE {
            self.lists[list].tail = to;
        } else {
            self.node_mut(older).newer = to;
        }
        let slot = self.index.find_mut(hash, |&id| id == from);
        *slot.expect("a listed node is in the index") = to;
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::{Balance, Kind, List, State, Sublist, transition};

    const NODES: u64 = 1000;

    fn full() -> (Sublist<u64, ()>, Balance) {
        let (mut sublist, mut balance) = (Sublist::new(), Balance::new(0, NODES, NODES));
        for key in 0..NODES {
            let id = sublist.add(key, key, Kind::Data);
            balance.add_anon(Kind::Data, 1);
            transition::arrive(&mut sublist, &mut balance, id, List::Mru, 1, ());
            sublist.link(id, key);
        }
        (sublist, balance)
    }

    fn remove(sublist: &mut Sublist<u64, ()>, balance: &mut Balance, key: u64) {
        if let Some(id) = sublist.find(key, &key) {
            transition::remove(sublist, balance, id);
        }
    }

    #[test]
    fn what_is_left_moves_together_and_stays_what_it_is() {
        let (mut sublist, mut balance) = full();
        let before_bytes = sublist.overhead_bytes();
        let keeps = |key: &u64| key % 20 == 19;
        (0..NODES)
            .filter(|key| !keeps(key))
            .for_each(|key| remove(&mut sublist, &mut balance, key));
        assert_eq!(sublist.shrink(), 950);
        sublist.validate().expect("a shrunk sublist is whole");
        assert!(sublist.overhead_bytes() * 10 < before_bytes);
        let mut order = Vec::new();
        while let Some(id) = sublist.tail(0) {
            order.push(*sublist.key(id));
            assert_eq!(sublist.state(id), State::Mru);
            transition::remove(&mut sublist, &mut balance, id);
        }
        assert_eq!(order, (0..NODES).filter(keeps).collect::<Vec<_>>());
    }

    #[test]
    fn a_held_node_ends_the_work_until_it_is_released() {
        let (mut sublist, mut balance) = full();
        let held = sublist.find(900, &900).expect("it was added");
        sublist.hold(held);
        for key in (0..NODES).filter(|&key| key != 900) {
            remove(&mut sublist, &mut balance, key);
        }
        assert_eq!(sublist.shrink(), 99);
        assert_eq!(sublist.shrink(), 0);
        assert_eq!(*sublist.key(held), 900);
        sublist.validate().expect("a shrunk sublist is whole");
        sublist.unhold(held);
        sublist.link(held, NODES);
        assert_eq!(sublist.shrink(), 900);
        sublist.validate().expect("a shrunk sublist is whole");
        assert!(sublist.find(900, &900).is_some());
    }

    #[test]
    fn a_slab_in_use_is_left_alone() {
        let (mut sublist, mut balance) = full();
        assert_eq!(sublist.shrink(), 0);
        (0..NODES / 2).for_each(|key| remove(&mut sublist, &mut balance, key));
        assert_eq!(sublist.shrink(), 0);
    }
}
