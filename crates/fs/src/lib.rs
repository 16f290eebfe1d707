//! A FUSE view of an origin through an adaptive replacement cache.
//!
//! [`Mount::start`] mounts a directory. Reads are answered from [`ogive_arc`]'s cache. Changes go
//! through to the origin before they are answered. The cache is never the authority: it can be
//! dropped, and the daemon killed, at any moment. No acknowledged write is lost.
//!
//! # The path of one read
//!
//! ```text
//! kernel ─► session ─► view ─► engine ── hit ─► hold ─► bytes of the record ─► kernel
//!                        │        └─ miss: one load a record ─► origin
//!                        └─ prefetch: the next records of a sequential reader
//! ```
//!
//! | module | idea |
//! |---|---|
//! | `mount` | a mount's life |
//! | `session` | the protocol; no other module knows it |
//! | `view` | the meaning of each operation |
//! | `version` | which contents of a file are current |
//! | `record`, `listing` | the contents of the cache |
//! | `dir_cookies`, `held_names` | offsets into huge directories; memory for names |
//! | `estale_retries` | threads that come back after `ESTALE` |
//! | `renames_seen` | names that were changed through the mount |
//! | `inode`, `inode_number`, `handle` | the kernel's inodes and open files, by number |
//! | `append_parts` | the order of a large append in parts |
//! | `second_level` | records on SSD, which outlive the process |
//! | `prefetch`, `origin_latency` | which readers are sequential; how fast the origin is |
//! | `workers` | the threads that wait for the origin |
//! | `affinity` | pins a thread to a processor |
//! | `inode_limit`, `pruning`, `memory`, `memory_bell` | giving memory back |
//! | `control`, `statistics`, `counters`, `latency` | the control directory and its contents |
//! | `log_events` | the events that a mount logs |
//! | `cached_objects` | the contents of the cache, by file and directory |
//! | `observers`, `recording`, `sampling` | reads, while a program asks for them |
//!
//! `unsafe` is in `session::uring::ring`, which gives the reason, and in `session::device` and
//! `kernel::backing` for a system call each.
//!
//! `docs/coherence.md` has the view's promises about changes by other programs.

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
