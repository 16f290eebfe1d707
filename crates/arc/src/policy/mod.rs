//! The policy: which entry is worth its memory. Pure and single-threaded: no locks, no
//! atomics, no clock, no randomness, and no allocation on a hit.
//!
//! A [`Sublist`] is a slab of entries with their lists; a [`Balance`] is the sizes of all
//! lists of the cache and decides what leaves next; [`transition`] are the moves of one
//! entry between states, which keep the two in step. [`Policy`] puts one sublist and one
//! balance together: the whole of ARC in one thread, for simulators and as the oracle of the
//! concurrent [`Cache`](crate::Cache), which runs the same code behind locks.

pub(crate) mod balance;
pub mod duel;
mod flags;
mod single;
mod state;
mod sublist;
pub mod transition;

pub use balance::{Balance, Incoming, Step};
pub use flags::Flags;
pub use single::{Outcome, Policy};
pub use state::{Access, Kind, LISTS, List, State, is_ghost_list, list_index};
pub(crate) use state::{ENGINE_LISTS, window_index};
pub use sublist::{Census, EMPTY, NodeId, Sublist, node_bytes};
