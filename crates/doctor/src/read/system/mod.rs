//! What a host and its kernel say of themselves: what it is, its load, memory, disks, counters
//! since boot, and its log.
//!
//! Linux, FreeBSD and illumos print most of it differently; a file here has one subject, not one
//! system.

pub(super) mod atopsar;
pub(super) mod host;
pub(super) mod interrupts;
pub(super) mod log;
pub(super) mod log_age;
pub(super) mod memory;
pub(super) mod proc_stat;
