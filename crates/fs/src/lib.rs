//! A FUSE view of an origin through an adaptive replacement cache.
//!
//! [`Mount::start`] shows a directory at a mount point. Reads are answered from
//! [`ogive_arc`]'s cache, changes go through to the origin before they are answered, and nothing
//! that the cache holds is ever the authority: it can be dropped, and the daemon killed, at any
//! moment, and no byte that a program was told is written is lost.
//!
//! # The way of one read
//!
//! ```text
//! kernel ─► session ─► view ─► engine ── hit ─► hold ─► bytes of the record ─► kernel
//!                        │        └─ miss: one load a record ─► origin
//!                        └─ prefetch: what a sequential reader asks for next
//! ```
//!
//! | module | idea |
//! |---|---|
//! | `mount` | a mount's life |
//! | `session` | the protocol, and nothing else knows it |
//! | `view` | what each operation means |
//! | `version` | which contents of a file are current |
//! | `record`, `listing` | what the cache holds |
//! | `retries` | who was told to look a path up again |
//! | `inode`, `number`, `handle` | what the kernel knows, and by which numbers |
//! | `second_level` | what outlives memory, and the process |
//! | `prefetch` | which readers are sequential |
//! | `workers` | who waits for the origin |
//! | `affinity` | who stays at a processor |
//! | `pruning`, `memory` | giving memory back |
//! | `control`, `statistics`, `counters` | the control directory and what it tells |
//! | `recording` | what is read, for a simulator |
//!
//! `unsafe` is in one module, `session::uring::ring`, which says why it may.
//!
//! What the view promises its users about other people's changes is in `docs/coherence.md`.

#![deny(unsafe_code)]

mod affinity;
mod control;
mod counters;
mod handle;
mod inode;
mod kernel;
mod listing;
mod memory;
mod mount;
mod number;
mod prefetch;
mod pruning;
mod record;
mod recording;
mod retries;
mod second_level;
mod session;
mod statistics;
#[cfg(test)]
mod testing;
mod version;
mod view;
mod wanted;
mod workers;

pub use mount::{Caching, Mount, MountError, MountOptions, Summary, Transport, Unmounter};
pub use second_level::{SecondLevelError, SecondLevelOptions};
