//! The table: entries, their index, their lists and their ghosts, in sublists.
//!
//! One half of a sublist is for readers without a lock. It is the [`slab`] of entries, the
//! [`index`] of their keys, and the [`hit_rings`] in which hits leave notes for the lists. The
//! other half ([`locked`]) is behind the sublist's lock: the lists, the order of MFU
//! ([`mfu_order`]) and the [`ghosts`]. Between the two stands the entry's one atomic word
//! ([`meta`]), with its state and its pins. [`sublist`] puts the halves together.
//! [`admission_window`] adds what the duel's rules need, and [`hand_over_queue`] has the entries
//! that leave first.
//!
//! Slots of all sublists share their memory ([`blocks`]), so that a large cache can have huge
//! pages.
//!
//! Unsafe code is in `entry` (keys and values), `slab` and `blocks` (memory), and `pages` (system
//! calls). It is also in the callers that know why an entry stays: `sublist` and `shrink` have the
//! lock, and the cache's `hold` has a pin.

mod admission_window;
mod blocks;
mod entry;
mod ghosts;
mod hand_over_queue;
mod hit_rings;
mod index;
mod live_list;
mod locked;
mod meta;
mod mfu_order;
mod pages;
mod published_tails;
mod shrink;
mod slab;
mod sublist;
mod validate;

pub(crate) use admission_window::Demoted;
pub(crate) use blocks::Blocks;
pub(crate) use entry::Entry;
pub(crate) use ghosts::{Ghost, Mark, Marks};
pub(crate) use hand_over_queue::{HandOverQueue, Place};
pub(crate) use hit_rings::{Note, Now};
pub(crate) use live_list::LiveList;
pub(crate) use locked::Stored;
pub(crate) use meta::{
    ASKED_FOR, DEAD, DOOMED, HANDED, LOADING, MFU, MRU, OVERSIZE, PREFETCHED, PROMOTED, RETURNED,
    TOUCHED, WAITING, WATCHED, Word,
};
pub(crate) use published_tails::{Pick, SUBLISTS_MAX, Tails};
pub(crate) use sublist::{RemovedEntry, Sublist, SublistGuard, Taken, Unpinned};

/// Bytes of an entry without its key and its value, at most: its slot, and its place in an index
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
