//! Output of ZFS and its tools: kstats, parameters, properties, `zpool`, `arcstat`, `arc_summary`.
//! `ogive stat` prints the same formats.
//!
//! The kstats of SPL about memory and task queues are read by `read::system` and `read::table`.

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
