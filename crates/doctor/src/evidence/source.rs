//! The source of a fact. Every fact has one, so every sentence of an answer can be checked.

use std::fmt;
use std::sync::Arc;

/// The place where a fact was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Source {
    /// Name of the input: a file name, a path inside a bundle, `standard input`.
    pub input: Arc<str>,
    /// Line of the input, counted from 1; `None` for inputs without lines (binary profiles).
    pub line: Option<u32>,
}

impl Source {
    /// A whole input.
    pub fn whole(input: &Arc<str>) -> Self {
        Self { input: Arc::clone(input), line: None }
    }

    /// One line of an input, counted from 1.
    pub fn line(input: &Arc<str>, line: usize) -> Self {
        Self { input: Arc::clone(input), line: u32::try_from(line).ok() }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.input),
            None => f.write_str(&self.input),
        }
    }
}
