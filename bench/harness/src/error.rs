//! One error type: a sentence for the person who started the benchmark.

use std::fmt::Display;

/// What went wrong, in words, with the path it happened to.
pub type Result<T> = std::result::Result<T, String>;

/// Adds what was being done to an error.
pub trait Context<T> {
    /// `doing` reads like "cannot open /x".
    fn context(self, doing: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Display> Context<T> for std::result::Result<T, E> {
    fn context(self, doing: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| format!("{}: {error}", doing()))
    }
}
