//! Text on a terminal: width, emphasis, and no sequence that a terminal would execute.

use crate::diagnose::VerdictKind;

/// How to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal.
    pub width: usize,
    /// Whether to use colours.
    pub colour: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self { width: 100, colour: false }
    }
}

/// Kinds of emphasis.
#[derive(Clone, Copy)]
pub(super) enum Stress {
    Bold,
    Bad,
    Good,
    Dim,
}

impl Stress {
    /// The emphasis of an answer.
    pub(super) fn of(kind: VerdictKind) -> Self {
        match kind {
            VerdictKind::Cause => Self::Bad,
            VerdictKind::Insufficient | VerdictKind::Open => Self::Bold,
            _ => Self::Good,
        }
    }
}

impl Style {
    pub(super) fn stress(self, text: &str, stress: Stress) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let code = match stress {
            Stress::Bold => "1",
            Stress::Bad => "1;31",
            Stress::Good => "1;32",
            Stress::Dim => "2",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// Wraps `words` to the width, the first line behind `first`, the others indented as far.
    pub(super) fn wrap(self, first: &str, words: &str) -> String {
        let indent = first.chars().count();
        let room = self.width.max(indent + 20) - indent;
        let mut out = first.to_owned();
        let mut used = 0;
        for word in printable(words).split_whitespace() {
            let length = word.chars().count();
            if used > 0 && used + 1 + length > room {
                out.push('\n');
                out.push_str(&" ".repeat(indent));
                used = 0;
            } else if used > 0 {
                out.push(' ');
                used += 1;
            }
            out.push_str(word);
            used += length;
        }
        out.push('\n');
        out
    }
}

/// A text with a capital at its beginning.
pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Outside text without control characters, which a terminal would execute.
pub(super) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
