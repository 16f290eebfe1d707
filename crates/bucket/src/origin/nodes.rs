//! Nodes: keys, and which of them no longer lead to the object that the kernel knows.
//!
//! A store identifies objects by keys only. After a rename or a removal through the mount, the
//! kernel may know an object by a key that another object has by now. So a node that lost its name
//! is *gone*: it leads nowhere. The next object with its key is another node, with another
//! generation, for as long as anybody knows the one that is gone.
//!
//! A read-only mount needs no such table, and has none.
//!
//! # Locks
//! One, of the table; nothing is called under it.

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
    /// Which object with this key it is, among those that the kernel knows.
    incarnation: u64,
    is_gone: AtomicBool,
    table: Weak<Mutex<Table>>,
}

/// The nodes that the kernel knows.
#[derive(Default)]
struct Table {
    names: BTreeMap<Box<str>, Known>,
    /// How many incarnations were given out.
    given: u64,
}

/// The nodes of a key.
#[derive(Default)]
struct Known {
    /// The node of it that is not gone.
    name: Weak<Name>,
    /// Nodes of it that are gone and that the kernel still knows.
    gone: usize,
}

/// Makes nodes.
#[derive(Clone, Default)]
pub(super) struct Nodes(Option<Arc<Mutex<Table>>>);

impl Nodes {
    /// Nodes of a mount through which names are changed.
    pub(super) fn changing() -> Self {
        Self(Some(Arc::default()))
    }

    /// The node of a key: the same one for as long as it is known and its name is its own.
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

    /// The name of a key was taken away, or given to another object.
    pub(super) fn lose(&self, key: &str) {
        let Some(table) = &self.0 else { return };
        // Dropped where the table is not locked: the last one to be dropped locks it.
        let lost = table.lock().names.get_mut(key).map(Known::lose);
        drop(lost);
    }

    /// The same for all keys that begin so.
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
        // A later node of the key may be known already.
        if known.gone == 0 && known.name.strong_count() == 0 {
            table.names.remove(&self.key);
        }
    }
}

impl Node {
    /// Its key. That of a directory ends in a slash, and so does the root's, or it is empty.
    pub(super) fn key(&self) -> &str {
        &self.0.key
    }

    /// Added to the generation of its key.
    pub(super) fn incarnation(&self) -> u64 {
        self.0.incarnation
    }

    /// Whether its name was taken away through the mount.
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
    fn a_key_has_one_node_until_its_name_is_lost_and_another_one_then() {
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
        assert_ne!(names.node("d/a").incarnation(), 0, "the first one is known still");
        drop((first, again, second));
        assert_eq!(names.node("d/a").incarnation(), 0, "nobody knows an earlier one");
        assert!(names.0.unwrap().lock().names.is_empty());
    }

    #[test]
    fn only_what_is_below_a_directory_is_lost_with_it() {
        let names = Nodes::changing();
        let nodes = ["d/", "d/a", "d", "d0", "da/", "c"].map(|key| names.node(key));
        names.lose_below("d/");
        let gone: Vec<_> =
            nodes.iter().filter(|node| node.is_gone()).map(|node| node.key()).collect();
        assert_eq!(gone, ["d/", "d/a"]);
        names.lose("none");
    }

    #[test]
    fn without_changes_nothing_is_remembered() {
        let names = Nodes::default();
        let node = names.node("a");
        names.lose("a");
        assert!(!node.is_gone() && node == names.node("a"));
    }
}
