//! Output of hosts and kernels about themselves: identity, load, memory, disks, counters since
//! boot, and the log.
//!
//! Linux, FreeBSD and illumos print most of it differently; each file here covers one subject, not
//! one system.

pub(super) mod atopsar;
pub(super) mod host;
pub(super) mod interrupts;
pub(super) mod log;
pub(super) mod log_age;
pub(super) mod memory;
pub(super) mod proc_stat;
