//! One engine for tables: a format is data, and a row becomes threads, the use of CPUs and figures.
//!
//! ```text
//! heading → layout (a column of the format for each name) → cells → the purpose of each column
//! ```
//!
//! A `format` has the words of its heading, its columns with their units, and the destination of
//! each column. `layout` cuts rows into cells. `list` makes a thread of a row, `cpu` a use of CPUs,
//! and `sink` the rest; `engine` walks through a section. If a tool prints lines around its table,
//! `read_with` takes a reader for them.
//!
//! A row of a list without a heading is recognised by its cells (`headless_rows`). A row of sorted
//! output is tried under the nearest headings.
//!
//! Invariants: a row is taken only if each cell fits its column, so that rows of another list are
//! not read under the wrong names. A missing column gives no figure. A column that the format does
//! not list stays in the table under its own name.

mod clock;
pub(super) mod cpu;
mod engine;
mod format;
pub(super) mod formats;
mod layout;
mod list;
mod sink;
mod unit;

pub(crate) use clock::is_moment;
pub(crate) use engine::{Table, bare, is_row, read, read_with};
pub(crate) use format::{
    Boot, Column, FORMAT, Format, Heading, Percent, Rows, To, column, gauge, is_drawn, is_gap, rate,
};
pub(crate) use layout::Layout;
pub(crate) use list::{is_branch, is_idle, name_of, note_wait, program};
pub(crate) use unit::Unit;
