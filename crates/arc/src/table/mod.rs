//! The table: entries, their index, their lists and their ghosts, in sublists.
//!
//! One half of a sublist is for readers without a lock: the [`slab`] of entries, the [`index`] of
//! their keys, and the [`recency`] rings in which hits leave notes for the lists. The other half,
//! the lists and the [`ghosts`], is behind the sublist's lock ([`sublist`]). Which entries leave first
//! is in [`handed`]. Between the two stands
//! the entry's one atomic word ([`meta`]), which says what the entry is and who holds it.
//!
//! Slots of all sublists share their memory ([`blocks`]), so that a large cache can have huge
//! pages.
//!
//! Unsafe code is in `entry` (keys and values), `slab` and `blocks` (memory), `pages` (system
//! calls), and in the callers that know why an entry stays: `sublist` and `shrink` have the lock,
//! and the cache's `hold` has a pin.

mod ages;
mod blocks;
mod entry;
mod ghosts;
mod handed;
mod index;
mod lists;
mod live_list;
mod meta;
mod pages;
mod recency;
mod shrink;
mod slab;
mod sublist;
mod tails;
mod validate;
mod window;

pub(crate) use blocks::Blocks;
pub(crate) use entry::Entry;
pub(crate) use ghosts::{Ghost, Mark, Marks};
pub(crate) use handed::{Handed, Place};
pub(crate) use lists::Stored;
pub(crate) use live_list::At;
pub(crate) use meta::{
    ASKED_FOR, DEAD, DOOMED, HANDED, LOADING, MFU, MRU, OVERSIZE, PREFETCHED, PROMOTED, RETURNED,
    TOUCHED, WAITING, WATCHED, Word,
};
pub(crate) use recency::{Note, Now};
pub(crate) use sublist::{RemovedEntry, Sublist, SublistGuard, Taken, Unpinned};
pub(crate) use tails::{Pick, SUBLISTS_MAX, Tails};
pub(crate) use window::Demoted;

/// Bytes of an entry beside its key and its value, at most: its slot, and its place in an index
/// that has just grown.
#[must_use]
pub const fn entry_bytes_max<K, V>() -> usize {
    let own = size_of::<K>() + size_of::<std::sync::Arc<V>>();
    size_of::<Entry<K, V>>() - own + index::ENTRY_BYTES_MAX
}

/// Bytes of a ghost, at most, its index included.
#[must_use]
pub const fn ghost_bytes_max() -> f64 {
    ghosts::GHOST_BYTES_MAX
}
