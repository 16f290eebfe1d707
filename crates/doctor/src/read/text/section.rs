//! A section of an input: one tool's output, and what stood around it.
//!
//! Readers take sections and know nothing of formats: which reader takes a section is decided above
//! them (`detect`, `split`).

use super::clean::Line;

/// What stood around a section and helps to name what is in it; never needed to know the format.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Hint {
    /// Path of the file the text came from: from a banner, `cat PATH`, or the input's name.
    pub(crate) path: Option<String>,
    /// The command at the prompt.
    pub(crate) command: Option<String>,
    /// Seconds on any clock, from a `date` line or a banner such as `== t=2647.14`.
    pub(crate) time_s: Option<f64>,
}

/// One output.
#[derive(Debug)]
pub(crate) struct Section<'a> {
    /// Its lines, the one that begins the format first.
    pub(crate) lines: &'a [Line<'a>],
    /// What stood around it.
    pub(crate) hint: Hint,
}
