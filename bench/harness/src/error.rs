//! One error type: a sentence for the person who started the benchmark.

use std::fmt::Display;

/// An error as text, with its path.
pub type Result<T> = std::result::Result<T, String>;

/// Adds the failed action to an error.
pub trait Context<T> {
    /// `doing` reads like "cannot open /x".
    fn context(self, doing: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Display> Context<T> for std::result::Result<T, E> {
    fn context(self, doing: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| format!("{}: {error}", doing()))
    }
}
