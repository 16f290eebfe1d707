//! Nodes: keys, and which of them no longer lead to the object that the kernel knows.
//!
//! A store identifies objects by keys only. After a rename or a removal through the mount, another
//! object may have the key by which the kernel knows the first. So a node that lost its name is
//! *gone*: it leads nowhere. The next object with that key is another node with another generation,
//! as long as the kernel knows the node that is gone.
//!
//! A read-only mount needs no such table.
//!
//! # Locks
//! One, of the table; a leaf.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// An object or a directory, by its key.
#[derive(Clone)]
pub struct Node(Arc<Name>);

struct Name {
    key: Box<str>,
    /// Distinguishes the objects of this key that the kernel knows.
    incarnation: u64,
    is_gone: AtomicBool,
    table: Weak<Mutex<Table>>,
}

/// The nodes that the kernel knows.
#[derive(Default)]
struct Table {
    names: BTreeMap<Box<str>, Known>,
    /// The last incarnation that was assigned.
    given: u64,
}

/// The nodes of a key.
#[derive(Default)]
struct Known {
    /// Its node that is not gone.
    name: Weak<Name>,
    /// How many of its nodes are gone and still known to the kernel.
    gone: usize,
}

/// Makes nodes.
#[derive(Clone, Default)]
pub(super) struct Nodes(Option<Arc<Mutex<Table>>>);

impl Nodes {
    /// Nodes of a mount that can change names.
    pub(super) fn changing() -> Self {
        Self(Some(Arc::default()))
    }

    /// The node of a key: the same node as long as it exists and has not lost its name.
    pub(super) fn node(&self, key: &str) -> Node {
        let Some(shared) = &self.0 else {
            let (is_gone, table) = (AtomicBool::new(false), Weak::new());
            return Node(Arc::new(Name { key: key.into(), incarnation: 0, is_gone, table }));
        };
        let mut table = shared.lock();
        let known = table.names.get(key);
        if let Some(name) = known.and_then(|known| known.name.upgrade()) {
            return Node(name);
        }
        let mut incarnation = 0;
        if known.is_some_and(|known| known.gone > 0) {
            table.given += 1;
            incarnation = table.given;
        }
        let (is_gone, weak) = (AtomicBool::new(false), Arc::downgrade(shared));
        let name = Arc::new(Name { key: key.into(), incarnation, is_gone, table: weak });
        table.names.entry(key.into()).or_default().name = Arc::downgrade(&name);
        Node(name)
    }

    /// A key was removed, or now holds another object.
    pub(super) fn lose(&self, key: &str) {
        let Some(table) = &self.0 else { return };
        // Drop the nodes after the lock is released: dropping the last reference takes the lock.
        let lost = table.lock().names.get_mut(key).map(Known::lose);
        drop(lost);
    }

    /// The same for all keys with a prefix.
    pub(super) fn lose_below(&self, prefix: &str) {
        let Some(table) = &self.0 else { return };
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let lost: Vec<_> = {
            let mut table = table.lock();
            let below = table.names.range_mut::<str, _>(from);
            below.take_while(|(key, _)| key.starts_with(prefix)).map(|(_, k)| k.lose()).collect()
        };
        drop(lost);
    }
}

impl Known {
    fn lose(&mut self) -> Option<Arc<Name>> {
        let name = std::mem::take(&mut self.name).upgrade()?;
        name.is_gone.store(true, Ordering::Release);
        self.gone += 1;
        Some(name)
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        let Some(table) = self.table.upgrade() else { return };
        let mut table = table.lock();
        let Some(known) = table.names.get_mut(&self.key) else { return };
        if *self.is_gone.get_mut() {
            known.gone -= 1;
        }
        // A later node of the key may exist already.
        if known.gone == 0 && known.name.strong_count() == 0 {
            table.names.remove(&self.key);
        }
    }
}

impl Node {
    /// Its key. A directory's key ends in a slash; the root's may also be empty.
    pub(super) fn key(&self) -> &str {
        &self.0.key
    }

    /// This is added to the generation of its key.
    pub(super) fn incarnation(&self) -> u64 {
        self.0.incarnation
    }

    /// Whether its name was removed through the mount.
    pub(super) fn is_gone(&self) -> bool {
        self.0.is_gone.load(Ordering::Acquire)
    }

    pub(super) fn is_directory(&self) -> bool {
        self.0.key.is_empty() || self.0.key.ends_with('/')
    }
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        let is_one = Arc::ptr_eq(&self.0, &other.0);
        is_one || (self.key() == other.key() && !self.is_gone() && !other.is_gone())
    }
}

impl Eq for Node {}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, is_gone) = (self.key(), self.is_gone());
        f.debug_struct("Node").field("key", &key).field("is_gone", &is_gone).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_node_until_it_loses_its_name_and_then_another() {
        let names = Nodes::changing();
        let (first, again) = (names.node("d/a"), names.node("d/a"));
        assert!(first == again && first.incarnation() == 0);
        names.lose("d/a");
        assert!(first.is_gone() && again.is_gone() && first == again);
        let second = names.node("d/a");
        assert!(second != first && second.incarnation() != first.incarnation());
        names.lose_below("d/");
        assert!(second.is_gone());
        let third = names.node("d/a");
        assert_ne!(third.incarnation(), second.incarnation());
        drop(third);
        assert_ne!(names.node("d/a").incarnation(), 0, "the first node still exists");
        drop((first, again, second));
        assert_eq!(names.node("d/a").incarnation(), 0, "no earlier node exists");
        assert!(names.0.unwrap().lock().names.is_empty());
    }

    #[test]
    fn losing_a_directory_loses_only_the_keys_below_it() {
        let names = Nodes::changing();
        let nodes = ["d/", "d/a", "d", "d0", "da/", "c"].map(|key| names.node(key));
        names.lose_below("d/");
        let gone: Vec<_> =
            nodes.iter().filter(|node| node.is_gone()).map(|node| node.key()).collect();
        assert_eq!(gone, ["d/", "d/a"]);
        names.lose("none");
    }

    #[test]
    fn a_read_only_mount_remembers_no_nodes() {
        let names = Nodes::default();
        let node = names.node("a");
        names.lose("a");
        assert!(!node.is_gone() && node == names.node("a"));
    }
}
