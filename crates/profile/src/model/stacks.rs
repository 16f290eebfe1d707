//! Stacks as a tree of frames.
//!
//! A node is a frame and the node that called it, so a million stacks with the same entry path
//! store that path once. The caller of a node always has a smaller number, so one pass answers
//! every question about callers.

use std::hash::BuildHasher as _;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::ids::{FrameId, StackId};

/// Nodes at most: 12 million nodes and their index are about 200 MiB.
const NODES_MAX: usize = 12_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Node {
    caller: u32,
    frame: FrameId,
}

/// The tree of stacks.
#[derive(Debug, Clone)]
pub(crate) struct Stacks {
    nodes: Vec<Node>,
    index: HashTable<u32>,
    hasher: FixedState,
    refused: u64,
}

impl Default for Stacks {
    fn default() -> Self {
        let root = Node { caller: 0, frame: FrameId(u32::MAX) };
        Self {
            nodes: vec![root],
            index: HashTable::new(),
            hasher: FixedState::default(),
            refused: 0,
        }
    }
}

impl Stacks {
    /// The number of nodes, the empty stack included.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// How many frames were dropped because the tree was full.
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    /// The leaf frame of a stack and the stack of its caller; `None` for the empty stack.
    pub(crate) fn split(&self, stack: StackId) -> Option<(FrameId, StackId)> {
        if stack == StackId::EMPTY {
            return None;
        }
        let node = self.nodes[stack.index()];
        Some((node.frame, StackId(node.caller)))
    }

    /// The stack in which `caller` called `frame`. When the tree is full, this is the stack of the
    /// caller.
    pub(crate) fn push(&mut self, caller: StackId, frame: FrameId) -> StackId {
        let node = Node { caller: caller.0, frame };
        let hash = self.hasher.hash_one(node);
        if let Some(found) = self.index.find(hash, |&id| self.nodes[id as usize] == node) {
            return StackId(*found);
        }
        if self.nodes.len() >= NODES_MAX {
            self.refused += 1;
            return caller;
        }
        let id = u32::try_from(self.nodes.len()).expect("NODES_MAX is below 2^32");
        self.nodes.push(node);
        let (nodes, hasher) = (&self.nodes, &self.hasher);
        self.index.insert_unique(hash, id, |&id| hasher.hash_one(nodes[id as usize]));
        StackId(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_are_one_and_callers_come_first() {
        let mut stacks = Stacks::default();
        let mut build = |frames: &[u32]| {
            frames.iter().fold(StackId::EMPTY, |stack, frame| stacks.push(stack, FrameId(*frame)))
        };
        let a = build(&[1, 2, 3]);
        let b = build(&[1, 2, 4]);
        assert_eq!(build(&[1, 2, 3]), a);
        assert_ne!(a, b);
        assert_eq!(stacks.len(), 5);
        let (frame, caller) = stacks.split(a).unwrap();
        assert_eq!((frame, stacks.split(b).unwrap().1), (FrameId(3), caller));
        assert!(caller < a);
        assert_eq!(stacks.split(StackId::EMPTY), None);
    }
}
