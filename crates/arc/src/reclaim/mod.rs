//! Reclaim: giving memory back to the system when it is short, and growing again later.
//!
//! [`Governor`] decides, and is pure: readings of memory pressure and a clock come in, a
//! [`Decision`] comes out. [`Reclaimer`] is the thread that carries it out. It sleeps in
//! [`Pressure::wait`], which another crate implements: PSI triggers, cgroup files and the like are
//! not this crate's. With nothing to do it asks for no wake-up.

mod governor;
mod reclaimer;

pub use governor::{Decision, Governor, GovernorConfig, Reading};
pub use reclaimer::{Pressure, Reclaimer, ReclaimerConfig, WakeReason, Waker};
