//! What lists of threads and processes have beside a table: meters around them (`meters`,
//! `screens`), groups that hold others, counters, rows without a heading.
//!
//! The lists themselves are formats (`table/formats`). Percents that are averages over a life are
//! kept apart from those of an interval.

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
