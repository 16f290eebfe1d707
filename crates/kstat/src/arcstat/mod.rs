//! The columns of OpenZFS's `arcstat` (`zarcstat` since 2.4), derived from two readings.
//!
//! The parts, in the order they are used: a [`Snapshot`] is what one reading said; a [`Report`] is
//! what two of them, or one and the start of the counters, say about the time between; a
//! [`Column`] is a name, a width and a formula over a report; [`Columns`] is the choice of them a
//! user made; a [`Layout`] prints rows as `arcstat` does, and a [`Record`] is the same row for
//! programs (raw numbers, through serde).
//!
//! Names, widths, scales, formulas, default and extended choice are those of `cmd/zarcstat.in` in
//! OpenZFS 2.4. Three things differ, on purpose:
//!
//! - The first row is the average since the counters began, as `iostat` and `vmstat` do it.
//!   `arcstat` reads the counters once at its start and again a moment later, so its first row is
//!   the difference over a few milliseconds, nearly always zeros.
//! - Rates are divided by the time that passed, not by the interval that was asked for.
//! - A row of `arcstats` that the source lacks (an older OpenZFS) leaves its columns empty (`-`,
//!   JSON `null`); `arcstat` stops with an exception, whether the column is shown or not.

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
