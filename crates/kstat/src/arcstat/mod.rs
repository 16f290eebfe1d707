//! The columns of OpenZFS's `arcstat` (`zarcstat` since 2.4), derived from two readings.
//!
//! A [`Snapshot`] is one reading. A [`Report`] covers the time between two readings, or from the
//! start of the counters to one. A [`Column`] is a name, a width and a formula over a report, and
//! [`Columns`] is the user's choice of columns. A [`Layout`] prints rows as `arcstat` does. A
//! [`Record`] is the same row for programs: raw numbers, through serde.
//!
//! Names, widths, scales, formulas, and the default and extended choices follow `cmd/zarcstat.in`
//! of OpenZFS 2.4. Three differences are intended:
//!
//! - The first row is the average since the counters began, as in `iostat` and `vmstat`. `arcstat`
//!   reads the counters twice at its start, so its first row covers a few milliseconds and is
//!   nearly always zeros.
//! - Rates are divided by the time that passed instead of the requested interval.
//! - A row that the source lacks (an older OpenZFS) leaves its columns empty (`-`, JSON `null`).
//!   `arcstat` stops with an exception, even if the column is not shown.

mod column;
mod columns;
mod layout;
mod report;
mod snapshot;

pub use column::{Column, ColumnError, Columns, Scale};
pub use columns::COLUMNS;
pub use layout::Layout;
pub use report::{Cell, Record, Report};
pub use snapshot::Snapshot;
