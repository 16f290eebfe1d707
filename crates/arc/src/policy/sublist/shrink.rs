//! Giving the slab's memory back after much of it has become vacant.

use super::{NONE, NodeId, Sublist, list_index};
use crate::policy::State;

impl<K, P> Sublist<K, P> {
    /// Gives memory back if at least three quarters of the slab are vacant, and a quarter
    /// became so since the last time; so the walk over the slab is in proportion to what was
    /// freed, even if nodes in use at its end keep it as long as it is. Nodes which are held
    /// stay where they are, for holds know them by number. Returns whether it was worth it.
    pub fn shrink(&mut self) -> bool {
        let (len, vacant) = (self.nodes.len(), self.vacant_len);
        if len < 64 || vacant * 4 < len * 3 || (vacant - self.vacant_len_min) * 4 < len {
            return false;
        }
        self.compact();
        let end = self.nodes.iter().rposition(|node| node.state != State::Vacant);
        self.nodes.truncate(end.map_or(0, |last| last + 1));
        self.nodes.shrink_to(self.nodes.len());
        self.vacant = NONE;
        self.vacant_len = 0;
        for id in (0..self.nodes.len()).rev() {
            if self.nodes[id].state == State::Vacant {
                self.nodes[id].older = self.vacant;
                self.vacant = id as NodeId;
                self.vacant_len += 1;
            }
        }
        let nodes = &self.nodes;
        self.index.shrink_to(self.index.len(), |&id| nodes[id as usize].hash);
        self.vacant_len_min = self.vacant_len;
        true
    }

    /// Moves nodes which nobody knows by number (not held, so on a list) from the end of
    /// the slab into vacant places at its start. Leaves the chain of vacant nodes to
    /// [`Sublist::shrink`].
    fn compact(&mut self) {
        let (mut low, mut high) = (0, self.nodes.len());
        while low < high {
            if self.nodes[low].state != State::Vacant {
                low += 1;
            } else if !self.nodes[high - 1].linked {
                high -= 1;
            } else {
                high -= 1;
                self.relocate(high as NodeId, low as NodeId);
                low += 1;
            }
        }
    }

    /// Moves the listed node `from` into the vacant place `to`.
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
        assert!(sublist.shrink());
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
    fn a_held_node_at_the_end_keeps_the_slab_and_is_not_walked_to_again() {
        let (mut sublist, mut balance) = full();
        let last = sublist.find(NODES - 1, &(NODES - 1)).expect("it was added");
        sublist.hold(last);
        (0..NODES - 1).for_each(|key| remove(&mut sublist, &mut balance, key));
        assert!(sublist.shrink());
        assert!(!sublist.shrink(), "nothing was freed since");
        assert_eq!(*sublist.key(last), NODES - 1);
        sublist.validate().expect("a shrunk sublist is whole");
        sublist.unhold(last);
        sublist.link(last, NODES);
        remove(&mut sublist, &mut balance, NODES - 1);
        assert!(!sublist.shrink(), "one node is not worth a walk");
    }

    #[test]
    fn a_slab_in_use_is_left_alone() {
        let (mut sublist, mut balance) = full();
        assert!(!sublist.shrink());
        (0..NODES / 2).for_each(|key| remove(&mut sublist, &mut balance, key));
        assert!(!sublist.shrink());
    }
}
