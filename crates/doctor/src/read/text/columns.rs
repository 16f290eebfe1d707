//! Tables under a line of column names.
//!
//! Tools differ in widths and order between releases and locales, so columns are found by name, and
//! cells by blanks; only the last column may hold blanks.

use super::clean::Line;

/// The names of a header line, in order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Columns<'a> {
    names: Vec<&'a str>,
}

impl<'a> Columns<'a> {
    /// Splits a header line at blanks, and at marks of the column that a list is sorted by
    /// (`CPU%▽MEM%`).
    pub(crate) fn of(header: &'a str) -> Self {
        let parts = header.split(|c: char| c.is_whitespace() || is_sort_mark(c));
        Self { names: parts.filter(|name| !name.is_empty()).collect() }
    }

    /// The names.
    pub(crate) fn names(&self) -> &[&'a str] {
        &self.names
    }

    /// Position of the first column with one of these names.
    pub(crate) fn position(&self, names: &[&str]) -> Option<usize> {
        self.names.iter().position(|name| names.contains(name))
    }

    /// The cells of a row whose last column may hold blanks; `None` when cells are missing.
    pub(crate) fn cells<'r>(&self, row: &'r str) -> Option<Vec<&'r str>> {
        let mut cells = Vec::with_capacity(self.names.len());
        let mut rest = row.trim();
        for _ in 1..self.names.len() {
            let end = rest.find(char::is_whitespace)?;
            cells.push(&rest[..end]);
            rest = rest[end..].trim_start();
        }
        if rest.is_empty() {
            return None;
        }
        cells.push(rest);
        Some(cells)
    }

    /// Like [`Self::cells`], for tables in which every cell is one word.
    pub(crate) fn words<'r>(&self, row: &'r str) -> Option<Vec<&'r str>> {
        let words: Vec<&str> = row.split_whitespace().collect();
        (words.len() == self.names.len()).then_some(words)
    }
}

/// Whether a character marks the column that a list is sorted by.
fn is_sort_mark(c: char) -> bool {
    matches!(c, '▽' | '△' | '▼' | '▲' | '⯆' | '⯅')
}

/// The text of a line without a bullet that someone put before it.
pub(crate) fn without_bullet<'a>(line: &'a Line<'_>) -> &'a str {
    let text = line.text.trim_start();
    for bullet in ["* ", "• ", "– "] {
        if let Some(rest) = text.strip_prefix(bullet) {
            return rest.trim_start();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_by_name() {
        let columns = Columns::of("  PID USER  %CPU COMMAND");
        let cells = columns.cells(" 12 root 3,5 a b  c").unwrap();
        assert_eq!(cells, ["12", "root", "3,5", "a b  c"]);
        assert!(columns.cells("12 root").is_none());
        assert_eq!(Columns::of("COMMAND CPU%▽MEM%").names(), ["COMMAND", "CPU%", "MEM%"]);
    }
}
