//! Keys on lists: the book-keeping under [`RuledCache`](super::RuledCache), without a rule.
//!
//! There are five lists: the window with the newcomers, MRU, MFU, the ghosts of MRU and the window,
//! and the ghosts of MFU. Every key is on one list, or on none while it is held. A node has the
//! stamp of its last use, which its ghost keeps.

use super::rules::On;
use hashbrown::HashTable;

const LISTS: usize = On::ALL.len();

const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Node<K> {
    /// Nothing in a vacant node.
    key: Option<K>,
    hash: u64,
    newer: u32,
    older: u32,
    pub(super) weight_bytes: u64,
    /// When it was used last.
    pub(super) stamp: u64,
    /// It was the oldest of main when it went to the window, and has not been used since.
    pub(super) stale: bool,
    /// A ghost: bytes that had left the window when it left.
    pub(super) left_at_bytes: u64,
    pub(super) on: On,
    /// Uses since it came in or was put back, at most three.
    pub(super) uses: u8,
    /// How many hold it; then it is on no list, but its bytes still are.
    pub(super) holds: u32,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    head: u32,
    tail: u32,
    len: usize,
    bytes: u64,
}

/// Nodes, index, lists.
#[derive(Debug)]
pub(super) struct Directory<K> {
    nodes: Vec<Node<K>>,
    vacant: Vec<u32>,
    index: HashTable<u32>,
    lists: [Ends; LISTS],
}

impl<K: Eq> Directory<K> {
    pub(super) fn new() -> Self {
        let ends = Ends { head: NONE, tail: NONE, len: 0, bytes: 0 };
        Self {
            nodes: Vec::new(),
            vacant: Vec::new(),
            index: HashTable::new(),
            lists: [ends; LISTS],
        }
    }

    pub(super) fn find(&self, hash: u64, key: &K) -> Option<u32> {
        let same = |&id: &u32| self.node(id).key.as_ref() == Some(key);
        self.index.find(hash, same).copied()
    }

    pub(super) fn node(&self, id: u32) -> &Node<K> {
        &self.nodes[id as usize]
    }

    pub(super) fn node_mut(&mut self, id: u32) -> &mut Node<K> {
        &mut self.nodes[id as usize]
    }

    /// Bytes that belong to a list, held entries included.
    pub(super) const fn bytes(&self, on: On) -> u64 {
        self.lists[on as usize].bytes
    }

    /// Entries on a list, held ones not included.
    pub(super) const fn len(&self, on: On) -> usize {
        self.lists[on as usize].len
    }

    /// Adds a key, on no list yet; its bytes count for `on`.
    pub(super) fn add(&mut self, hash: u64, key: K, weight_bytes: u64, on: On) -> u32 {
        let node = Node {
            key: Some(key),
            hash,
            newer: NONE,
            older: NONE,
            weight_bytes,
            stamp: 0,
            stale: false,
            left_at_bytes: 0,
            on,
            uses: 0,
            holds: 0,
        };
        let id = if let Some(id) = self.vacant.pop() {
            self.nodes[id as usize] = node;
            id
        } else {
            self.nodes.push(node);
            u32::try_from(self.nodes.len() - 1).expect("fewer than 2^32 keys")
        };
        let nodes = &self.nodes;
        self.index.insert_unique(hash, id, |&other| nodes[other as usize].hash);
        self.lists[on as usize].bytes += weight_bytes;
        id
    }

    /// Forgets a key that is on no list.
    pub(super) fn drop_key(&mut self, id: u32) {
        let (hash, on, bytes) = {
            let node = self.node_mut(id);
            node.key = None;
            (node.hash, node.on, node.weight_bytes)
        };
        if let Ok(entry) = self.index.find_entry(hash, |&other| other == id) {
            entry.remove();
        }
        self.lists[on as usize].bytes -= bytes;
        self.vacant.push(id);
    }

    /// Lets the bytes of a node that is on no list count for another list.
    pub(super) fn assign(&mut self, id: u32, on: On) {
        let bytes = self.node(id).weight_bytes;
        self.lists[self.node(id).on as usize].bytes -= bytes;
        self.lists[on as usize].bytes += bytes;
        self.node_mut(id).on = on;
    }

    /// Puts a node at the head of the list it belongs to.
    pub(super) fn link(&mut self, id: u32) {
        let on = self.node(id).on as usize;
        let head = self.lists[on].head;
        let node = self.node_mut(id);
        (node.newer, node.older) = (NONE, head);
        match head {
            NONE => self.lists[on].tail = id,
            head => self.nodes[head as usize].newer = id,
        }
        self.lists[on].head = id;
        self.lists[on].len += 1;
    }

    /// Takes a node off its list; it still belongs to it.
    pub(super) fn unlink(&mut self, id: u32) {
        let (newer, older, on) = {
            let node = self.node(id);
            (node.newer, node.older, node.on as usize)
        };
        match newer {
            NONE => self.lists[on].head = older,
            newer => self.nodes[newer as usize].older = older,
        }
        match older {
            NONE => self.lists[on].tail = newer,
            older => self.nodes[older as usize].newer = newer,
        }
        self.lists[on].len -= 1;
    }

    /// Moves a node from its list to the head of another.
    pub(super) fn move_to(&mut self, id: u32, on: On) {
        self.unlink(id);
        self.assign(id, on);
        self.link(id);
    }

    /// The oldest of a list.
    pub(super) fn tail(&self, on: On) -> Option<u32> {
        let tail = self.lists[on as usize].tail;
        (tail != NONE).then_some(tail)
    }

    /// The list whose oldest is the older of two.
    pub(super) fn older(&self, a: On, b: On) -> Option<On> {
        let stamp = |on| self.tail(on).map(|id| self.node(id).stamp);
        match (stamp(a), stamp(b)) {
            (Some(of_a), Some(of_b)) => Some(if of_a < of_b { a } else { b }),
            (Some(_), None) => Some(a),
            (None, Some(_)) => Some(b),
            (None, None) => None,
        }
    }

    /// Keys for which `drop` says so, whose nodes are on lists: their numbers.
    pub(super) fn select(&self, drop: impl Fn(u64) -> bool) -> Vec<u32> {
        let chosen = self.nodes.iter().enumerate();
        let chosen = chosen.filter(|(_, node)| node.key.is_some() && drop(node.hash));
        chosen.map(|(id, _)| id as u32).collect()
    }

    /// Bytes of entries that are held. Looks at every one.
    pub(super) fn held_bytes(&self) -> u64 {
        let held = self.nodes.iter().filter(|node| node.key.is_some() && node.holds > 0);
        held.map(|node| node.weight_bytes).sum()
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node<K>>()
            + self.vacant.capacity() * size_of::<u32>()
            + self.index.capacity() * 8 / 7 * (size_of::<u32>() + 1)
    }

    /// Recounts everything.
    ///
    /// # Errors
    /// The first thing that is wrong, in words.
    pub(super) fn validate(&self) -> Result<(), String> {
        let mut bytes = [0; LISTS];
        let mut linked = [0; LISTS];
        for (id, node) in self.nodes.iter().enumerate() {
            let Some(key) = &node.key else { continue };
            if self.find(node.hash, key) != Some(id as u32) {
                return Err(format!("node {id} is not found by its key"));
            }
            bytes[node.on as usize] += node.weight_bytes;
            linked[node.on as usize] += usize::from(node.holds == 0);
            if node.holds > 0 && node.on.is_ghost() {
                return Err(format!("node {id} is a ghost and held"));
            }
        }
        for on in On::ALL {
            let ends = self.lists[on as usize];
            let (mut at, mut newer, mut len) = (ends.head, NONE, 0);
            while at != NONE && len <= self.nodes.len() {
                let node = self.node(at);
                if node.newer != newer || node.on != on || node.holds > 0 || node.key.is_none() {
                    return Err(format!("node {at} is not linked as it should be: {on:?}"));
                }
                (newer, at) = (at, node.older);
                len += 1;
            }
            if (len, newer) != (ends.len, ends.tail) || len != linked[on as usize] {
                return Err(format!("{on:?}: {len} on the list, {ends:?}, {linked:?} by nodes"));
            }
            if bytes[on as usize] != ends.bytes {
                return Err(format!("{on:?}: {} bytes counted, {ends:?}", bytes[on as usize]));
            }
        }
        let live = self.nodes.len() - self.vacant.len();
        if self.index.len() != live {
            return Err(format!("{} in the index, {live} nodes", self.index.len()));
        }
        Ok(())
    }
}
