//! Parts of lists of threads and processes that are not tables. They are meters around a list
//! (`meters`, `screens`), groups that contain others, counters, and rows without a heading.
//!
//! The lists themselves are formats (`table/formats`). Means over a life and percents of an
//! interval are kept apart.

pub(super) mod cgtop;
mod command_columns;
pub(super) mod headless_rows;
mod meters;
pub(super) mod ps;
pub(super) mod screens;
pub(super) mod spindump;
pub(super) mod thread_tools;
mod wait_channel;
pub(super) mod windows_counters;
pub(super) mod windows_lists;
