//! Faults of a trace, each with its place.

use std::fmt;
use std::io;

/// A place in a trace, after decompression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line, counted from 1.
    Line(u64),
    /// A byte, counted from 0.
    Offset(u64),
    /// The whole trace.
    Whole,
}

/// A trace could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{name}{place}: {reason}")]
pub struct TraceError {
    /// The file, or "standard input".
    pub name: String,
    /// The place.
    pub place: Place,
    /// The fault, and a remedy if there is one.
    pub reason: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, ", line {line}"),
            Self::Offset(offset) => write!(f, ", byte {offset}"),
            Self::Whole => Ok(()),
        }
    }
}

/// The reason why a decoder stops.
#[derive(Debug)]
pub(crate) enum Fault {
    /// This record is bad; the next may be good.
    Record(String),
    /// Nothing after this can be read.
    End(String),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::End(format!("cannot read on: {error}"))
    }
}
