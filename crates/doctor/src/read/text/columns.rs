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

    /// Columns whose names were told apart already.
    pub(crate) fn of_names(names: Vec<&'a str>) -> Self {
        Self { names }
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

    /// The cells of a row in which the column at `wide` may hold blanks: what stands before it is
    /// counted from the left, what stands behind it from the right. `None` when cells are missing.
    pub(crate) fn cells_around<'r>(&self, row: &'r str, wide: usize) -> Option<Vec<&'r str>> {
        let mut cells = Vec::with_capacity(self.names.len());
        let mut rest = row.trim();
        for name in self.names.get(..wide)? {
            let (cell, behind) = split_cell(rest, name)?;
            cells.push(cell);
            rest = behind;
        }
        let mut behind = Vec::new();
        for _ in wide + 1..self.names.len() {
            let start = rest.rfind(char::is_whitespace)?;
            behind.push(rest[start..].trim_start());
            rest = rest[..start].trim_end();
        }
        if rest.is_empty() {
            return None;
        }
        cells.push(rest);
        cells.extend(behind.into_iter().rev());
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

/// The cell that `rest` begins with, and what follows; a date of several words is one cell where
/// the column is of dates.
fn split_cell<'r>(rest: &'r str, name: &str) -> Option<(&'r str, &'r str)> {
    let mut words = rest.split_whitespace();
    let first = words.next()?;
    let count = match name {
        // `Mon Jun 29 17:21:50 2023`
        "STARTED" | "START" | "STIME"
            if is_one_of(first, &WEEKDAYS)
                && words.next().is_some_and(|word| is_one_of(word, &MONTHS)) =>
        {
            5
        }
        "STARTED" | "START" | "STIME" if is_one_of(first, &MONTHS) => 2,
        _ => 1,
    };
    let mut end = 0;
    for _ in 0..count {
        let word = end + rest[end..].find(|c: char| !c.is_whitespace())?;
        end = word + rest[word..].find(char::is_whitespace)?;
    }
    Some((&rest[..end], rest[end..].trim_start()))
}

const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

fn is_one_of(word: &str, names: &[&str]) -> bool {
    names.contains(&word)
}

/// A cell of a row by column name.
pub(crate) fn cell<'r>(
    columns: &Columns<'_>,
    cells: &[&'r str],
    names: &[&str],
) -> Option<&'r str> {
    columns.position(names).and_then(|at| cells.get(at).copied())
}

/// The middle value; of an even number the lower middle. `None` of nothing.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().checked_sub(1)? / 2).copied()
}

/// Seconds between rows that begin with a time of day, where it is the same between all of them.
pub(crate) fn interval(times: &[f64]) -> Option<f64> {
    let steps: Vec<f64> =
        times.windows(2).map(|pair| (pair[1] - pair[0]).rem_euclid(86_400.0)).collect();
    median(&steps).filter(|step| *step > 0.0)
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
        assert_eq!(cell(&columns, &cells, &["CMD", "COMMAND"]), Some("a b  c"));
        assert!(columns.cells("12 root").is_none());
        let columns = Columns::of("PID STARTED COMMAND CPU%▽MEM%");
        let cells =
            columns.cells_around("1 Mon Jun  9 17:21:50 2023 two words 3.0 0.1", 2).unwrap();
        assert_eq!(cells, ["1", "Mon Jun  9 17:21:50 2023", "two words", "3.0", "0.1"]);
        assert!(columns.cells_around("1 Mon Jun 9", 2).is_none());
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[]), None);
        assert_eq!(interval(&[86_399.0, 0.0, 1.0]), Some(1.0));
    }
}
