//! Where Linux says that memory is short, read on demand ([`Sources`]) or waited for ([`Waiter`]).
//!
//! - `/proc/meminfo`: read for total, available, swap; it has no event
//! - cgroup v2 `memory.max`, `memory.high`, `memory.current`, `memory.stat`: read for limit, usage,
//!   reclaimable; waited for by `memory.events.local` or `memory.events`
//! - cgroup v1 `memory.limit_in_bytes`, `memory.usage_in_bytes`, `memory.stat`: read for the same;
//!   waited for by `memory.pressure_level`
//! - PSI, `/proc/pressure/memory` and the cgroup's `memory.pressure`: read for stall time; waited
//!   for by a trigger
//!
//! Each is used where it exists; each absence is noted and can be told to people
//! ([`Sources::describe`], [`Waiter::describe`]). What to do about a shortage is for the caller:
//! this crate knows of no cache.
//!
//! Invariants: reading allocates nothing and changes nothing; waiting wakes only for the kernel's
//! events, for a [`Waker`], or at the end of a timeout that was asked for, and every return of
//! poll(2) is counted. No lock is taken anywhere; the state shared between a waiter and its wakers
//! is an eventfd and two atomics.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod cgroup;
mod level;
mod meminfo;
mod psi;
mod source_status;
mod sources;
mod stat_file;
mod waiter;

pub use source_status::{SourceStatus, State};
pub use sources::{PressureError, Reading, STALLED_PERCENT, Sources};
pub use waiter::{Events, Waiter, Waker};
