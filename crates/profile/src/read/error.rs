//! Why a profile could not be read. Each message names the source and the next step.

use std::io;

/// A source that gave no profile at all. What is merely damaged gives a profile with notes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The source could not be opened or read.
    #[error("cannot read {name}: {source}")]
    Io {
        /// The source.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// The source is empty.
    #[error(
        "{name} is empty; if a recording is still running, wait until it has ended, or record again"
    )]
    Empty {
        /// The source.
        name: String,
    },
    /// The source is none of the formats known.
    #[error(
        "{name} is not recognised as a profile; known are perf.data, the text of \"perf script\", \
         folded stacks (a;b;c 42) and pprof, each also compressed (.gz, .xz, .zst)"
    )]
    Unrecognised {
        /// The source.
        name: String,
    },
    /// The source is of a format known, but has nothing usable.
    #[error("{name} holds no samples that can be used: {reason}")]
    Unusable {
        /// The source.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl ReadError {
    pub(crate) fn io(name: &str, source: io::Error) -> Self {
        Self::Io { name: name.to_owned(), source }
    }

    pub(crate) fn unusable(name: &str, reason: impl Into<String>) -> Self {
        Self::Unusable { name: name.to_owned(), reason: reason.into() }
    }
}
