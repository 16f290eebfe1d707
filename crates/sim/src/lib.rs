//! Simulation of caches on traces: replay, miss-ratio curves, sizes.
//!
//! - [`trace`] reads traces in many formats as a stream of [`Request`]s.
//! - [`policy`] has the policies by [`PolicyName`], reference ones and ogive's own. ARC as printed
//!   and the shipping engine are those of `ogive-arc`.
//! - [`replay()`] runs traces through many caches at once; [`Simulation`] is one of them.
//! - [`curve`] makes the LRU curve in one pass: exact, or from a sample of fixed size (SHARDS)
//!   with an error bound.
//! - [`paper`] has the tables of the ARC paper and ogive's results on the same traces.
//! - [`sizing`] answers how large a cache should be, and whether a second level would help.
//! - [`plot`] draws curves, on a terminal and as SVG.
//!
//! Weights are bytes. If a trace has no sizes, every key weighs 1 and sizes are in entries. Memory
//! is bounded by the caches themselves and by the bounds of each module, whatever the length of the
//! trace.
#![forbid(unsafe_code)]

pub mod curve;
mod footprint;
pub mod paper;
pub mod plot;
pub mod policy;
mod replay;
mod sampling;
mod simulation;
pub mod sizing;
mod spooled_requests;
mod tiered;
pub mod trace;

pub use footprint::Footprint;
pub use policy::{PolicyName, Request};
pub use replay::{CurvePlan, OnProgress, Plan, Progress, Replay, ReplayError, SizeSpec, replay};
pub use simulation::{Simulation, Tally};
pub use trace::{Format, ReadOptions, TraceError, TraceReader};
