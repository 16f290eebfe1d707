//! The engine of ogive: an adaptive replacement cache (ARC) in memory.
//!
//! The policy is ARC as printed (Megiddo and Modha, "ARC: A Self-Tuning, Low Overhead Replacement
//! Cache", FAST '03), with bytes in the place of pages. Around it is what OpenZFS added:
//! - two kinds of entries, data and metadata, with a balance between them;
//! - entries that are held and cannot be evicted;
//! - a size that follows the system's memory;
//! - prefetches that have to prove themselves.
//!
//! The parts:
//! - [`Cache`] is the concurrent cache, [`Hold`] a claim on one of its entries.
//! - [`policy`] is the policy alone, pure and single-threaded; [`policy::PlainArc`] is the oracle
//!   the cache is tested against, and good for simulations.
//! - [`reclaim`] decides how much memory to give back and when to grow again.
//! - [`prune`] asks owners of pinned metadata to release it.
//! - [`Stats`] has all counters, with the names of OpenZFS's `arcstats`.
//!
//! The engine does no I/O, logs nothing, draws nothing at random and knows no file.
//!
//! # What an entry costs
//! In addition to key and value, an entry takes at most [`entry_bytes_max`] bytes for its slot and
//! its place in the index. The counters of its value's `Arc` take 16 bytes more. A ghost takes at
//! most [`ghost_bytes_max`]. `tests/engine/sizes.rs` checks this. [`Stats`] gives the real sum as
//! `hdr_size`. The weights of all ghosts together are at most twice the target, and under ARC alone
//! at most the target. So with records of 128 KiB, a GiB of cache costs less than a MiB.
#![deny(unsafe_code)]

mod cache;
mod counters;
mod flight;
mod generation;
pub mod policy;
pub mod prune;
pub mod reclaim;
#[cfg(all(test, not(shuttle)))]
#[path = "../../../tests/seed.rs"]
mod seed;
#[cfg(all(test, not(shuttle)))]
#[path = "../../../tests/skipped.rs"]
mod skipped;
mod stats;
mod sync;
mod table;
mod threads;

pub use cache::{
    Builder, Cache, Claim, Eviction, Growth, Hold, Joined, Level, LoadError, Lookup, Policy,
    Reason, Resident, Source,
};
pub use generation::Generation;
pub use policy::{Access, Kind, List};
pub use prune::{Prune, PruneResult, Registration};
pub use stats::Stats;
pub use table::{entry_bytes_max, ghost_bytes_max};

/// The README's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The example of the page on the engine, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/engine.md")]
struct EnginePage;
