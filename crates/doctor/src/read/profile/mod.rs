//! Profiles: flat and with call graphs, stacks counted or of one moment, and lock profilers.
//!
//! All of them name functions through `text::frame`, so that each function has one name.

pub(super) mod call_graph;
pub(super) mod folded;
pub(super) mod kernel_stack;
pub(super) mod locks;
pub(super) mod perf_report;
pub(super) mod perf_script;
pub(super) mod tool_stacks;
