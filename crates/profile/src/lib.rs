//! Profiles of kernel and user stacks: read from files or sampled live, symbolised, queried and
//! written in formats for people and tools.
#![forbid(unsafe_code)]

mod assemble;
pub mod live;
pub mod locks;
pub mod model;
pub mod read;
pub mod roles;
#[cfg(test)]
#[path = "../../../tests/seed.rs"]
mod seed;
pub mod symbols;
pub mod threads;
mod unwind;
pub mod write;

#[doc(hidden)]
pub use unwind::any_bytes::unwind as unwind_hostile;

pub use model::{
    CPU_UNKNOWN, Format, Frame, FrameId, Meta, Mode, Profile, Rate, Reason, Sample, Share, StackId,
    StringId, SymbolShare, Thread, ThreadId, Unresolved, View, WeightUnit,
};
