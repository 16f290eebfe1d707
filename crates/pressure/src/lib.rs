//! Memory pressure on Linux, read on demand ([`Sources`]) or waited for ([`Waiter`]).
//!
//! - `/proc/meminfo`: read for total, available and swap; it has no event
//! - cgroup v2 `memory.max`, `memory.high`, `memory.current`, `memory.stat`: read for limit, usage
//!   and reclaimable pages; events from `memory.events.local` or `memory.events`
//! - cgroup v1 `memory.limit_in_bytes`, `memory.usage_in_bytes`, `memory.stat`: read for the same;
//!   events from `memory.pressure_level`
//! - PSI, `/proc/pressure/memory` and the cgroup's `memory.pressure`: read for stall time; events
//!   from a trigger
//!
//! Each source is used if it exists, and missing ones are listed for people ([`Sources::describe`],
//! [`Waiter::describe`]). The caller decides what to do about a shortage: this crate does not know
//! caches.
//!
//! Invariants: reading allocates nothing and changes nothing. Waiting wakes only for the kernel's
//! events, for a [`Waker`], or at the end of a requested timeout, and every return of poll(2) is
//! counted. There are no locks: a waiter and its wakers share an eventfd and two atomics.
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
