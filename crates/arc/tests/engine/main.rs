//! The engine as a whole: its promises to its users, one a module. They are one program, so that
//! the engine is compiled for them once. Tests that need a process of their own, for an allocator
//! or for numbers of threads, are outside this folder.
#![cfg(not(shuttle))]
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../../tests/eventually.rs"]
mod eventually;
#[path = "../../../../tests/seed.rs"]
mod seed;
#[path = "../../../../tests/skipped.rs"]
mod skipped;

mod duel;
mod golden;
mod hand_over;
mod holds;
mod judgement;
mod kinds_and_prefetch;
mod linearizable;
mod locks;
mod model_operations;
mod model_paper;
mod operations;
mod prune;
mod reclaim;
mod referee;
mod single_flight;
mod sizes;
mod stress;
