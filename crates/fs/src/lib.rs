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
//! | `dir_cookies`, `held_names` | places in directories too large for that, and memory for names |
//! | `estale_retries` | who was told to look a path up again |
//! | `inode`, `inode_number`, `handle` | what the kernel knows, and by which numbers |
//! | `second_level` | what outlives memory, and the process |
//! | `prefetch` | which readers are sequential |
//! | `workers` | who waits for the origin |
//! | `affinity` | who stays at a processor |
//! | `inode_limit`, `pruning`, `memory` | giving memory back |
//! | `control`, `statistics`, `counters`, `latency` | the control directory and what it tells |
//! | `cached_objects` | what is in the cache, by file and directory |
//! | `observers`, `recording`, `sampling` | what is read, while somebody wants to know |
//!
//! `unsafe` is in `session::uring::ring`, which says why it may, and in `session::device` and
//! `kernel::backing` for a system call each.
//!
//! What the view promises its users about other people's changes is in `docs/coherence.md`.

#![deny(unsafe_code)]

mod affinity;
mod append_parts;
mod cached_objects;
mod control;
mod counters;
mod dir_cookies;
mod estale_retries;
#[cfg(test)]
#[path = "../../../tests/eventually.rs"]
mod eventually;
mod handle;
mod held_names;
mod inode;
mod inode_limit;
mod inode_number;
mod kernel;
mod late_releases;
mod latency;
mod listing;
mod log_events;
mod memory;
mod memory_bell;
mod mount;
mod observers;
mod origin_latency;
mod prefetch;
mod pruning;
mod record;
mod recording;
mod renames_seen;
mod sampling;
mod second_level;
#[cfg(test)]
#[path = "../../../tests/seed.rs"]
mod seed;
mod session;
#[cfg(test)]
#[path = "../../../tests/skipped.rs"]
mod skipped;
mod statistics;
#[cfg(any(test, feature = "fuzzing"))]
#[cfg_attr(not(test), allow(dead_code))]
mod testing;
mod version;
mod view;
mod workers;

pub use mount::{
    Caching, Kstats, Mount, MountError, MountOptions, RECORDS_MIN, Summary, Transport, Unmounter,
};
pub use ogive_origin::TrustTimes;
pub use second_level::{PathRuleError, PathRules, SecondLevelError, SecondLevelOptions};
#[cfg(any(test, feature = "fuzzing"))]
pub use session::fuzzing::requests as carry_out_any_requests;
