//! A hold: a counted claim on an entry, and the way to its value.

use super::shard::Shard;
use crate::policy::NodeId;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A claim on an entry of a [`Cache`](crate::Cache). While there is one, the entry is on no
/// list and is not evicted; with the last one it goes back to the head of its list.
///
/// The value stays what it was when the hold was taken, whatever happens to the key: an entry
/// that is removed or replaced meanwhile is freed with its last hold. Cloning takes another
/// hold. Dropping costs one lock of the entry's sublist.
pub struct Hold<K, V> {
    value: Arc<V>,
    shard: Arc<Shard<K, V>>,
    id: NodeId,
}

impl<K, V> Hold<K, V> {
    /// For somebody whose hold on the node is counted already.
    pub(crate) const fn of(shard: Arc<Shard<K, V>>, id: NodeId, value: Arc<V>) -> Self {
        Self { value, shard, id }
    }

    /// The value, without the claim on its entry: it lives as long as somebody has it, but
    /// its bytes are not counted once the entry is gone from the cache.
    #[must_use]
    pub const fn value(&self) -> &Arc<V> {
        &self.value
    }
}

impl<K, V> Deref for Hold<K, V> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.value
    }
}

impl<K, V> Clone for Hold<K, V> {
    fn clone(&self) -> Self {
        self.shard.hold_again(self.id);
        Self { value: Arc::clone(&self.value), shard: Arc::clone(&self.shard), id: self.id }
    }
}

impl<K, V> Drop for Hold<K, V> {
    fn drop(&mut self) {
        self.shard.release(self.id);
    }
}

impl<K, V: fmt::Debug> fmt::Debug for Hold<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hold").field(&self.value).finish()
    }
}
