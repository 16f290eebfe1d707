//! Tools that list threads and processes with their CPU: `top`, `ps`, and the others.
//!
//! Percents that are averages over a life are kept apart from those of an interval.

pub(super) mod bare;
pub(super) mod btop;
pub(super) mod busybox;
pub(super) mod containers;
pub(super) mod htop;
pub(super) mod macos;
mod picked;
pub(super) mod ps;
pub(super) mod spindump;
pub(super) mod thread_tools;
pub(super) mod top;
pub(super) mod top_cpu;
mod wait_channel;
mod wide;
pub(super) mod windows;
pub(super) mod windows_counters;

use super::table::list;
