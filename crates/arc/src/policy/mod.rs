//! The policy: which entry is worth its memory. Pure and single-threaded: no locks, no atomics, no
//! clock, no randomness, and no allocation on a hit.
//!
//! ARC alone:
//! - a [`Sublist`] is a slab of entries with their lists;
//! - a [`Balance`] has the sizes of all lists of the cache, and decides what leaves next;
//! - [`transition`] has the moves of one entry between states, which keep the two in step.
//!
//! [`PlainArc`] puts one sublist and one balance together. That is the whole of ARC in one thread,
//! for simulators and as the witness of tests. The concurrent [`Cache`](crate::Cache) has the same
//! balance, and lists of its own behind locks; tests compare it with the witness. In a [`Sublist`]
//! a held entry is on no list. In the cache it stays on its list until an eviction meets it.
//!
//! ARC's arithmetic (`p`, REPLACE, the bounds of ghosts) is written once, in `arc.rs`.
//!
//! The duel: its four rules are written once, in `duel/rules.rs`, over a trait. The shadow
//! directories of [`duel`] and the cache's own lists (`balance/by_rules.rs`) both implement it.

mod arc;
pub(crate) mod balance;
pub mod duel;
mod plain_arc;
mod plain_sublist;
mod state;
pub mod transition;

pub use balance::{Balance, Incoming, Step};
pub use plain_arc::{Outcome, PlainArc};
pub use plain_sublist::{Census, EMPTY, NodeId, Sublist};
pub use state::{Access, Kind, LISTS, List, State, is_ghost_list, list_index};
pub(crate) use state::{ENGINE_LISTS, window_index};
