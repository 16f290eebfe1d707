//! Explains which programs and functions use the CPU of a host with a file system, and why.
//!
//! Readers turn tool output into [`evidence`]. Rules (data, one file for each cause, under
//! `rules/`) are weighed against it, and the answer is printed. This crate neither samples nor
//! reads the host: evidence arrives as bytes with a name.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod advise;
pub mod answers;
pub mod atlas;
pub mod bundle;
pub mod compare;
pub mod diagnose;
pub mod evidence;
pub mod expression;
pub mod facts;
pub mod fleet;
mod pattern;
pub mod read;
pub mod report;
pub mod rule;

pub use diagnose::{Diagnosis, diagnose};
