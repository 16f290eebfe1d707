//! Lists of windows that were copied as text: names of columns and cells hold blanks.
//!
//! Cells are told apart by tabs where there are any, else by two blanks or more, else by words
//! around the one column that holds names.

use super::super::text::columns::{self, Columns};

/// The columns of one list.
#[derive(Debug)]
pub(crate) struct Wide<'h> {
    columns: Columns<'h>,
    name: usize,
}

impl<'h> Wide<'h> {
    /// The columns under a heading. `known` are names that hold blanks; `names` those of the column
    /// with the program, of which there must be one.
    pub(crate) fn under(heading: &'h str, known: &[&str], names: &[&str]) -> Option<Self> {
        let found = if heading.contains('\t') {
            heading.split('\t').map(str::trim).collect()
        } else {
            split(heading, known)
        };
        let columns = Columns::of_names(found);
        let name = columns.position(names)?;
        Some(Self { columns, name })
    }

    /// The names of the columns.
    pub(crate) fn names(&self) -> &[&'h str] {
        self.columns.names()
    }

    /// The cells of a row.
    pub(crate) fn cells<'t>(&self, row: &'t str) -> Option<Vec<&'t str>> {
        let count = self.columns.names().len();
        if row.contains('\t') {
            // Empty cells at the end were cut off.
            let mut cells: Vec<&str> = row.split('\t').map(str::trim).collect();
            cells.resize(count.max(cells.len()), "");
            return (cells.len() == count).then_some(cells);
        }
        let apart: Vec<&str> =
            row.trim().split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        if apart.len() == count {
            return Some(apart);
        }
        self.columns.cells_around(row, self.name)
    }

    /// A cell that is not empty, by the names of its column.
    pub(crate) fn cell<'t>(&self, cells: &[&'t str], names: &[&str]) -> Option<&'t str> {
        columns::cell(&self.columns, cells, names).filter(|cell| !cell.is_empty())
    }
}

/// Names by blanks, but for those that hold some.
fn split<'h>(heading: &'h str, known: &[&str]) -> Vec<&'h str> {
    let mut found = Vec::new();
    let mut rest = heading.trim();
    while !rest.is_empty() {
        let end = known
            .iter()
            .filter(|name| rest.starts_with(**name))
            .map(|name| name.len())
            .max()
            .or_else(|| rest.find(char::is_whitespace))
            .unwrap_or(rest.len());
        found.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    found
}
