//! The values of options: how users type them, and how messages print them.

mod auto;
pub(crate) mod choice;
mod count;
mod memory_size;
mod record_size;
mod size;
mod span;

pub(crate) use auto::Auto;
pub(crate) use count::Count;
pub(crate) use memory_size::MemorySize;
pub(crate) use record_size::RecordSize;
pub(crate) use size::Size;
pub(crate) use span::Span;
