//! Torture for a mounted view of a directory: three suites that can prove a mount wrong.
//!
//! - [`mirror`]: seeded random operations made twice, once through the mount and once in a mirror
//!   directory on the bare file system. Every answer and every errno must agree, and so must the
//!   whole trees at intervals.
//! - [`coherence`]: each promise of close-to-open and read-your-writes as a test of its own, run
//!   many times with many timings, with changes made through the mount and behind it.
//! - [`durability`]: the daemon is killed with SIGKILL in the middle of writes; every block that
//!   was acknowledged must be in the source directory, and the dead mount point must mount again.
//!
//! Nothing in this crate knows how the mount works: it needs a mounted directory, the directory
//! the mount shows, and an empty directory on the same file system. So the same suites run on
//! any other passthrough file system, which is how they are themselves tested: a suite that has
//! never failed proves nothing (see the unit tests, which run against lying directories).
//!
//! Exit codes of the binary: 0 everything agreed; 1 a difference or a broken promise was found;
//! 2 wrong use; 3 the environment failed (a directory missing, no space, the mount not there).

pub mod access;
pub mod attributes;
pub mod behind;
pub mod bytes;
pub mod coherence;
pub mod contents;
pub mod durability;
pub mod generate;
pub mod locks;
pub mod mapping;
pub mod mirror;
pub mod names;
pub mod operation;
pub mod progress;
pub mod tree;
