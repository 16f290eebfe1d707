//! One sublist: a slab of nodes, an index of their keys, and eight lists through them.
//!
//! It is for one thread, under [`PlainArc`](super::PlainArc): the witness that tests compare the
//! cache with. So it has lists of its own on purpose, and shares none with `table::Sublist`, which
//! the cache has. ARC as printed stands a second time in `tests/engine/model_paper.rs` alone.
//!
//! A node is an entry, the ghost of one, or an entry on its way in. Nodes live in a slab and refer
//! to each other by number, so a hit allocates nothing and no pointer can dangle.
//!
//! Invariants, recounted by [`Sublist::validate`]:
//! - an entry or a ghost is on the list of its state and kind; a loading node is on no list;
//! - every node is in the index;
//! - along a list from head to tail the stamps never grow, so the tail is the oldest;
//! - no weight is zero.
//!
//! It knows nothing of bytes: see [`Balance`](super::Balance) for those.

mod validate;

pub use validate::Census;

use super::state::{Kind, LISTS, List, State, list_index};
use hashbrown::HashTable;

/// No node: the end of a list.
const NONE: u32 = u32::MAX;

/// Number of a node in its sublist.
pub type NodeId = u32;

#[derive(Debug)]
struct Node<K, P> {
    /// `None` in a vacant node only.
    key: Option<K>,
    payload: Option<P>,
    hash: u64,
    weight_bytes: u64,
    stamp: u64,
    /// Towards the head. In a vacant node the vacant one before.
    newer: NodeId,
    /// Towards the tail. In a vacant node the next vacant one.
    older: NodeId,
    state: State,
    kind: Kind,
    prefetched: bool,
    linked: bool,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    head: NodeId,
    tail: NodeId,
    bytes: u64,
    len: u64,
}

/// The stamp of the tail of an empty list.
pub const EMPTY: u64 = u64::MAX;

/// A slab of nodes, their index and their lists.
#[derive(Debug)]
pub struct Sublist<K, P> {
    index: HashTable<NodeId>,
    nodes: Vec<Node<K, P>>,
    vacant: NodeId,
    vacant_len: usize,
    lists: [Ends; LISTS],
    resident_len: usize,
}

impl<K, P> Default for Sublist<K, P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, P> Sublist<K, P> {
    /// An empty sublist.
    #[must_use]
    pub const fn new() -> Self {
        let empty = Ends { head: NONE, tail: NONE, bytes: 0, len: 0 };
        Self {
            index: HashTable::new(),
            nodes: Vec::new(),
            vacant: NONE,
            vacant_len: 0,
            lists: [empty; LISTS],
            resident_len: 0,
        }
    }

    fn node(&self, id: NodeId) -> &Node<K, P> {
        &self.nodes[id as usize]
    }

    fn node_mut(&mut self, id: NodeId) -> &mut Node<K, P> {
        &mut self.nodes[id as usize]
    }

    /// The state of a node.
    #[must_use]
    pub fn state(&self, id: NodeId) -> State {
        self.node(id).state
    }

    /// Changes the state of a node which is on no list.
    pub fn set_state(&mut self, id: NodeId, state: State) {
        let node = self.node_mut(id);
        debug_assert!(!node.linked, "a node on a list keeps its state");
        let was_live = std::mem::replace(&mut node.state, state).is_live();
        self.resident_len += usize::from(state.is_live());
        self.resident_len -= usize::from(was_live);
    }

    /// The kind of a node.
    #[must_use]
    pub fn kind(&self, id: NodeId) -> Kind {
        self.node(id).kind
    }

    /// Changes the kind of a node which is on no list.
    pub fn set_kind(&mut self, id: NodeId, kind: Kind) {
        let node = self.node_mut(id);
        debug_assert!(!node.linked, "a node on a list keeps its kind");
        node.kind = kind;
    }

    /// The weight of a node, in bytes.
    #[must_use]
    pub fn weight_bytes(&self, id: NodeId) -> u64 {
        self.node(id).weight_bytes
    }

    /// Changes the weight of a node which is on no list.
    pub fn set_weight_bytes(&mut self, id: NodeId, weight_bytes: u64) {
        let node = self.node_mut(id);
        debug_assert!(!node.linked, "a node on a list keeps its weight");
        debug_assert!(weight_bytes > 0 || node.state == State::Loading, "no weight is zero");
        node.weight_bytes = weight_bytes;
    }

    /// Whether a node was brought in by a prefetch, and no demand has asked for it yet.
    #[must_use]
    pub fn is_prefetched(&self, id: NodeId) -> bool {
        self.node(id).prefetched
    }

    /// Says whether a node was brought in by a prefetch.
    pub fn set_prefetched(&mut self, id: NodeId, prefetched: bool) {
        self.node_mut(id).prefetched = prefetched;
    }

    /// The payload of a node.
    #[must_use]
    pub fn payload(&self, id: NodeId) -> Option<&P> {
        self.node(id).payload.as_ref()
    }

    /// Puts a payload in, or takes it out; returns the one before.
    pub fn set_payload(&mut self, id: NodeId, payload: Option<P>) -> Option<P> {
        std::mem::replace(&mut self.node_mut(id).payload, payload)
    }

    /// The key of a node.
    ///
    /// # Panics
    /// If the node is vacant, which no caller can have a number of.
    #[must_use]
    pub fn key(&self, id: NodeId) -> &K {
        self.node(id).key.as_ref().expect("only vacant nodes have no key")
    }

    /// Nodes on a list.
    #[must_use]
    pub fn list_len(&self, list: usize) -> u64 {
        self.lists[list].len
    }

    /// The node at the old end of a list.
    #[must_use]
    pub fn tail(&self, list: usize) -> Option<NodeId> {
        let tail = self.lists[list].tail;
        (tail != NONE).then_some(tail)
    }

    /// Puts a node at the head of the list of its state.
    pub fn link(&mut self, id: NodeId, stamp: u64) {
        let (kind, state) = (self.node(id).kind, self.node(id).state);
        let list = state.list().expect("only live entries and ghosts stand on lists");
        let list = list_index(kind, list.0, list.1);
        let head = self.lists[list].head;
        debug_assert!(head == NONE || self.node(head).stamp <= stamp, "stamps only grow");
        let node = self.node_mut(id);
        debug_assert!(!node.linked, "a node is on one list");
        node.stamp = stamp;
        node.newer = NONE;
        node.older = head;
        node.linked = true;
        let weight_bytes = node.weight_bytes;
        if head == NONE {
            self.lists[list].tail = id;
        } else {
            self.node_mut(head).newer = id;
        }
        let ends = &mut self.lists[list];
        ends.head = id;
        ends.bytes += weight_bytes;
        ends.len += 1;
    }

    /// Takes a node off its list.
    pub fn unlink(&mut self, id: NodeId) {
        let node = self.node_mut(id);
        debug_assert!(node.linked, "only a node on a list can be taken off it");
        node.linked = false;
        let (newer, older, weight_bytes) = (node.newer, node.older, node.weight_bytes);
        let (kind, state) = (node.kind, node.state);
        let list = state.list().expect("only live entries and ghosts stand on lists");
        let list = list_index(kind, list.0, list.1);
        if newer == NONE {
            self.lists[list].head = older;
        } else {
            self.node_mut(newer).older = older;
        }
        if older == NONE {
            self.lists[list].tail = newer;
        } else {
            self.node_mut(older).newer = newer;
        }
        let ends = &mut self.lists[list];
        ends.bytes -= weight_bytes;
        ends.len -= 1;
    }

    /// Takes a node out of the index; it keeps its number.
    pub fn unindex(&mut self, id: NodeId) {
        let hash = self.node(id).hash;
        if let Ok(entry) = self.index.find_entry(hash, |&other| other == id) {
            entry.remove();
        }
    }

    /// Makes a node vacant and gives back what it owned, for the caller to drop outside its
    /// lock. The node must be on no list and not in the index.
    pub fn free(&mut self, id: NodeId) -> (Option<K>, Option<P>) {
        self.set_state(id, State::Vacant);
        let node = self.node_mut(id);
        node.prefetched = false;
        let owned = (node.key.take(), node.payload.take());
        self.vacate(id);
        owned
    }

    /// Puts a node into the chain of vacant ones.
    fn vacate(&mut self, id: NodeId) {
        let next = self.vacant;
        if next != NONE {
            self.node_mut(next).newer = id;
        }
        let node = self.node_mut(id);
        node.newer = NONE;
        node.older = next;
        self.vacant = id;
        self.vacant_len += 1;
    }

    /// Takes a node out of the chain of vacant ones.
    fn occupy(&mut self, id: NodeId) {
        let node = self.node(id);
        let (before, next) = (node.newer, node.older);
        if before == NONE {
            self.vacant = next;
        } else {
            self.node_mut(before).older = next;
        }
        if next != NONE {
            self.node_mut(next).newer = before;
        }
        self.vacant_len -= 1;
    }
}

impl<K: Eq, P> Sublist<K, P> {
    /// The node of a key.
    #[must_use]
    pub fn find(&self, hash: u64, key: &K) -> Option<NodeId> {
        self.index.find(hash, |&id| self.node(id).key.as_ref() == Some(key)).copied()
    }

    /// Makes a node in state loading, with no weight and no payload, and indexes it. The
    /// key must not be in the index.
    ///
    /// # Panics
    /// With 2^32 - 1 nodes in one sublist, which at the least would be 256 GiB of nodes.
    pub fn add(&mut self, hash: u64, key: K, kind: Kind) -> NodeId {
        debug_assert!(self.find(hash, &key).is_none(), "a key is in the index once");
        let node = Node {
            key: Some(key),
            payload: None,
            hash,
            weight_bytes: 0,
            stamp: 0,
            newer: NONE,
            older: NONE,
            state: State::Loading,
            kind,
            prefetched: false,
            linked: false,
        };
        let id = if self.vacant == NONE {
            let id = u32::try_from(self.nodes.len()).ok().filter(|&id| id != NONE);
            self.nodes.push(node);
            id.expect("fewer than 2^32 - 1 nodes in one sublist")
        } else {
            let id = self.vacant;
            self.occupy(id);
            *self.node_mut(id) = node;
            id
        };
        let nodes = &self.nodes;
        self.index.insert_unique(hash, id, |&other| nodes[other as usize].hash);
        id
    }
}

impl<K, P> Sublist<K, P> {
    /// The list (MRU or MFU) of a live node or a ghost.
    #[must_use]
    pub fn list_of(&self, id: NodeId) -> Option<List> {
        self.node(id).state.list().map(|(list, _)| list)
    }
}
