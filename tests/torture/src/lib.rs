//! Torture for a mounted view of a directory: three suites that can prove a mount wrong.
//!
//! - [`mirror`]: each seeded random operation runs twice, through the mount and in a mirror
//!   directory on the bare file system. Every answer and every errno must agree, and so must the
//!   whole trees at intervals.
//! - [`coherence`]: each promise of close-to-open and read-your-writes is a test of its own. It
//!   runs many times with many timings, with changes through the mount and behind it.
//! - [`durability`]: the daemon is killed with SIGKILL during writes. The source must have every
//!   acknowledged block, and the dead mount point must mount again.
//!
//! This crate does not know how the mount works. It needs a mounted directory, the directory that
//! the mount shows, and an empty directory on the same file system. So the suites run on any other
//! passthrough file system, and that is how they are tested themselves. A suite that has never
//! failed proves nothing: the unit tests run against lying directories.
//!
//! Exit codes of the binary: 0 for agreement, 1 for a difference or a broken promise, and 2 for
//! wrong use. 3 means that the environment failed (a directory missing, no space, no mount).

pub mod access;
pub mod attributes;
pub mod behind;
pub mod bytes;
pub mod coherence;
pub mod contents;
pub mod directory_entries;
pub mod durability;
pub mod generate;
pub mod locks;
pub mod mapping;
pub mod mirror;
pub mod operation;
pub mod progress;
pub mod tree;
