//! One engine for tables: a format is data, and a row becomes threads, the use of CPUs and figures.
//!
//! ```text
//! heading → layout (a column of the format for each name) → cells → what each column is for
//! ```
//!
//! A format (`format`) says by which words its heading is known, what its columns hold and where
//! that goes. `layout` cuts rows into cells, `list` makes a thread of one, `cpu` the use of CPUs,
//! `sink` the rest, and `engine` walks through a section. A tool that prints more than a table
//! gives `read_with` a reader of the lines beside it. A row of a list that has lost its heading is known
//! by its cells (`headless_rows`), and one of sorted output is tried under the headings next to it.
//!
//! Invariants: a row is taken only if each of its cells is what its column says, so that rows of
//! another list are not read under the wrong names. A column that is not there gives no figure. A
//! column that no format lists is kept in the table under its own name.

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
