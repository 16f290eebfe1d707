//! Prune: asking the owners of pinned metadata to release it.
//!
//! A held entry cannot be evicted, so the cache asks its owner. The question is in bytes wanted,
//! the answer in bytes freed. An owner that frees little is left alone for a while. OpenZFS asks
//! every file system for the full amount with each eviction pass, and never learns the result. So
//! with objects that are truly pinned it asks without end. The answer and the back-off prevent that
//! here.

mod backoff;
mod registry;

pub use backoff::Backoff;
pub use registry::Registration;
pub(crate) use registry::Registry;

/// An owner of memory that can release some.
pub trait Prune: Send + Sync {
    /// Lets go of about `want_bytes`, or of less, and says what it did. Called with no lock
    /// of the cache held, by one thread at a time. It may use the cache, but must not call
    /// [`Cache::prune`](crate::Cache::prune) or [`Cache::reclaim`](crate::Cache::reclaim).
    /// Its work should be in proportion to what it frees.
    fn prune(&self, want_bytes: u64) -> PruneResult;
}

/// The result of a prune.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneResult {
    /// Objects looked at.
    pub examined: u64,
    /// Bytes freed: the owner's own, and what it released of the cache's.
    pub freed_bytes: u64,
    /// Objects freed.
    pub freed_objects: u64,
    /// Objects looked at which could not be freed.
    pub held: u64,
}

impl PruneResult {
    /// Adds another result.
    pub const fn add(&mut self, other: &Self) {
        self.examined += other.examined;
        self.freed_bytes += other.freed_bytes;
        self.freed_objects += other.freed_objects;
        self.held += other.held;
    }
}
