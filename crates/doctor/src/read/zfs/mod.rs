//! What ZFS and its own tools print: kstats, parameters, properties, `zpool`, `arcstat`,
//! `arc_summary`. `ogive stat` prints in the same forms.
//!
//! What SPL keeps beside it of memory and task queues is read with the system's own.

pub(super) mod arc_summary;
pub(super) mod bench;
pub(super) mod commands;
pub(super) mod dbgmsg;
pub(super) mod kstat;
pub(super) mod parameters;
pub(super) mod properties;
pub(super) mod txgs;
pub(super) mod zpool;
mod zpool_histogram;
