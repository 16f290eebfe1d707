//! One sublist: a slab of nodes, an index of their keys, and eight lists through them.
//!
//! A node is an entry of the cache, the ghost of one, or a load in flight. Nodes live in a
//! slab and refer to each other by number, so a hit allocates nothing and no pointer can
//! dangle.
//!
//! Invariants, recounted by [`Sublist::validate`]:
//! - a node in state MRU or MFU is on the list of its state and kind exactly when nobody
//!   holds it; a ghost is always on its list and never held; loading and dead nodes are on
//!   no list;
//! - every node is in the index except dead nodes and loading nodes which are doomed;
//! - along a list from head to tail the stamps never grow, so the tail is the oldest;
//! - no weight is zero.
//!
//! A sublist has no lock of its own and knows nothing of bytes in other sublists: see
//! [`Balance`](super::Balance) for those.

mod shrink;
mod validate;

pub use validate::Census;

use super::flags::Flags;
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
    holds: u32,
    /// Towards the head. In a vacant node the vacant one before.
    newer: NodeId,
    /// Towards the tail. In a vacant node the next vacant one.
    older: NodeId,
    state: State,
    kind: Kind,
    flags: u8,
    linked: bool,
}

/// Bytes of one node, ghost or not, without what the key or the value own on the heap. The
/// index adds 4 to 10 bytes (a number and a tag byte, at a load between 7/16 and 7/8).
#[must_use]
pub const fn node_bytes<K, P>() -> usize {
    size_of::<Node<K, P>>()
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
    changed_tails: u8,
    index_len_max: usize,
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
            changed_tails: 0,
            index_len_max: 0,
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

    /// The flags of a node.
    #[must_use]
    pub fn flags(&self, id: NodeId) -> Flags {
        Flags::unpack(self.node(id).flags)
    }

    /// Replaces the flags of a node.
    pub fn set_flags(&mut self, id: NodeId, flags: Flags) {
        self.node_mut(id).flags = flags.pack();
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

    /// How many hold a node.
    #[must_use]
    pub fn holds(&self, id: NodeId) -> u32 {
        self.node(id).holds
    }

    /// Adds a hold; takes the node off its list with the first one.
    pub fn hold(&mut self, id: NodeId) {
        if self.node(id).linked {
            self.unlink(id);
        }
        let node = self.node_mut(id);
        node.holds = node.holds.checked_add(1).expect("fewer than 2^32 holds of one entry");
    }

    /// Takes a hold away and returns how many are left. The caller decides what becomes of
    /// a node nobody holds.
    pub fn unhold(&mut self, id: NodeId) -> u32 {
        let node = self.node_mut(id);
        node.holds = node.holds.checked_sub(1).expect("a hold is released once");
        node.holds
    }

    /// Nodes in the index.
    #[must_use]
    pub fn index_len(&self) -> usize {
        self.index.len()
    }

    /// Entries in state MRU or MFU.
    #[must_use]
    pub const fn resident_len(&self) -> usize {
        self.resident_len
    }

    /// The most nodes there have been in the index.
    #[must_use]
    pub const fn index_len_max(&self) -> usize {
        self.index_len_max
    }

    /// Bytes the slab and the index take, vacant room included.
    #[must_use]
    pub fn overhead_bytes(&self) -> u64 {
        let slab = self.nodes.capacity() * node_bytes::<K, P>();
        // One number and one control byte a bucket.
        let buckets = self.index.capacity().saturating_mul(8) / 7;
        (slab + buckets * (size_of::<NodeId>() + 1)) as u64
    }

    /// Bytes on a list.
    #[must_use]
    pub fn list_bytes(&self, list: usize) -> u64 {
        self.lists[list].bytes
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

    /// The stamp at the old end of a list, or [`EMPTY`].
    #[must_use]
    pub fn tail_stamp(&self, list: usize) -> u64 {
        self.tail(list).map_or(EMPTY, |id| self.node(id).stamp)
    }

    /// One bit a list: its tail may have another stamp than at the last call.
    pub fn take_changed_tails(&mut self) -> u8 {
        std::mem::take(&mut self.changed_tails)
    }

    /// Puts a node at the head of the list of its state.
    pub fn link(&mut self, id: NodeId, stamp: u64) {
        let (kind, state) = (self.node(id).kind, self.node(id).state);
        let list = state.list().expect("only live entries and ghosts stand on lists");
        let list = list_index(kind, list.0, list.1);
        let head = self.lists[list].head;
        debug_assert!(head == NONE || self.node(head).stamp <= stamp, "stamps only grow");
        let node = self.node_mut(id);
        debug_assert!(!node.linked && node.holds == 0, "held entries are on no list");
        node.stamp = stamp;
        node.newer = NONE;
        node.older = head;
        node.linked = true;
        let weight_bytes = node.weight_bytes;
        if head == NONE {
            self.lists[list].tail = id;
            self.changed_tails |= 1 << list;
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
            self.changed_tails |= 1 << list;
        } else {
            self.node_mut(older).newer = newer;
        }
        let ends = &mut self.lists[list];
        ends.bytes -= weight_bytes;
        ends.len -= 1;
    }

    /// Whether a node is on a list.
    #[must_use]
    pub fn is_linked(&self, id: NodeId) -> bool {
        self.node(id).linked
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
        node.holds = 0;
        node.flags = 0;
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

    /// Numbers of all nodes that are not vacant.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> + '_ {
        (0..self.nodes.len() as NodeId).filter(|&id| self.node(id).state != State::Vacant)
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
            holds: 0,
            newer: NONE,
            older: NONE,
            state: State::Loading,
            kind,
            flags: 0,
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
        self.index_len_max = self.index_len_max.max(self.index.len());
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
