//! The state of each source of memory pressure: used, or the reason why not, for people.

use std::fmt;
use std::path::PathBuf;

/// One source and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceStatus {
    /// The name of the source, such as `PSI trigger` or `cgroup v2 limit`.
    pub source: &'static str,
    /// The file or directory where it was searched.
    pub path: PathBuf,
    /// Found or not.
    pub state: State,
}

/// State of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// In use; the text is its value or setting.
    Used(String),
    /// Not in use; the text is the reason.
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
