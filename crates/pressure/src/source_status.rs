//! Which sources of memory pressure are used, and why others are not, for people.

use std::fmt;
use std::path::PathBuf;

/// One source and whether it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceStatus {
    /// What the source is, such as `PSI trigger` or `cgroup v2 limit`.
    pub source: &'static str,
    /// The file or directory it was looked for at.
    pub path: PathBuf,
    /// Found or not.
    pub state: State,
}

/// State of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// In use; the text says with what value or setting.
    Used(String),
    /// Not in use; the text says why.
    Absent(String),
}

impl SourceStatus {
    pub(crate) fn used(source: &'static str, path: impl Into<PathBuf>, how: String) -> Self {
        Self { source, path: path.into(), state: State::Used(how) }
    }

    pub(crate) fn absent(
        source: &'static str,
        path: impl Into<PathBuf>,
        why: impl fmt::Display,
    ) -> Self {
        Self { source, path: path.into(), state: State::Absent(why.to_string()) }
    }

    /// Whether the source is in use.
    pub fn is_used(&self) -> bool {
        matches!(self.state, State::Used(_))
    }
}

impl fmt::Display for SourceStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.state {
            State::Used(how) => write!(formatter, "{}: {how} ({path})", self.source),
            State::Absent(why) => write!(formatter, "{}: not used: {why} ({path})", self.source),
        }
    }
}
