//! A section of an input: one tool's output, and its context.
//!
//! Readers take sections and know no other formats. `detect` and `split`, above them, choose the
//! reader of a section.

use super::clean::Line;

/// The context of a section. It helps to name the section's subject and is never needed to
/// recognise the format.
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
    /// Its lines, beginning with the first line of the format.
    pub(crate) lines: &'a [Line<'a>],
    /// Its context.
    pub(crate) hint: Hint,
}
