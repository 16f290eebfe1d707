//! Errors of reading a profile. Each message names the source and the next step.

use std::io;

/// No profile could be read. A damaged source is not an error: it gives a profile with notes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The source could not be opened or read.
    #[error("cannot read {name}: {error}")]
    Io {
        /// The source.
        name: String,
        /// The error of the system. It is in the message, so it is not named `source`: chains of errors
        /// would print it twice.
        error: io::Error,
    },
    /// The source is empty.
    #[error("{name} is empty; wait until the recording has ended, or record again")]
    Empty {
        /// The source.
        name: String,
    },
    /// The source has none of the known formats.
    #[error(
        "{name} is not recognised as a profile; known are perf.data, the text of \"perf script\", \
         folded stacks (a;b;c 42) and pprof, each also compressed (.gz, .xz, .zst)"
    )]
    Unrecognised {
        /// The source.
        name: String,
    },
    /// The source has a known format, but no usable content.
    #[error("{name} holds no samples that can be used: {reason}")]
    Unusable {
        /// The source.
        name: String,
        /// The reason.
        reason: String,
    },
}

impl ReadError {
    pub(crate) fn io(name: &str, error: io::Error) -> Self {
        Self::Io { name: name.to_owned(), error }
    }

    pub(crate) fn unusable(name: &str, reason: impl Into<String>) -> Self {
        Self::Unusable { name: name.to_owned(), reason: reason.into() }
    }
}
