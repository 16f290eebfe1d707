//! Named figures: kstats, /proc files, the columns of tools.
//!
//! A figure is one of three kinds, and the kinds do not mix: a *gauge* is true at the moment it was
//! read, a *rate* is per second, a *counter* grew since its table was created. A counter has no
//! meaning by itself: rules only see it divided by time (two readings, or the table's age).

use super::Source;

/// A table of figures read at one moment from one place.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Name, lower case: `arcstats`, `dbufstats`, `meminfo`, `vmstat`, `sar`, `txgs`, ...
    pub name: String,
    /// What it is about where there are several of the name: pool, device, slab, NUMA node, CPU.
    pub scope: Option<String>,
    /// Moment it was read, nanoseconds on any clock that all tables of one host share.
    pub taken_ns: Option<i128>,
    /// Age of the counters when read, seconds: kstat `snaptime - crtime`, or uptime.
    pub age_s: Option<f64>,
    /// The figures, in order.
    pub figures: Vec<Figure>,
}

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Name as the source prints it, units appended when they were converted (`_bytes`, `_ns`).
    pub name: String,
    /// Its value.
    pub value: Number,
    /// Where it was read.
    pub source: Source,
}

/// A value with its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    /// True at the moment of reading, in the unit of its name.
    Gauge(f64),
    /// Grew since the table was created or the host started.
    Counter(f64),
    /// Per second, over an interval the source knows.
    Rate(f64),
    /// A word: state, name of the fastest implementation.
    Text(String),
}
