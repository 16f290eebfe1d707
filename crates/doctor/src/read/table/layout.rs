//! The columns under one heading; cuts rows into their cells.
//!
//! Tabs separate cells if the row has any. Otherwise two blanks or more do, if names of columns
//! contain blanks. Otherwise words do: the unit of a column says how many words a cell has. The
//! column of text takes the words that the later columns do not need.

use super::clock::{self, Before, MOST_WORDS};
use super::format::{Column, Format, To, is_drawn, is_gap, names, rank};
use super::unit::{self, Unit};

/// With this many columns of figures, a row is certain.
const SURE_FIGURES: usize = 3;
/// Longer texts are not cells.
const MAX_TEXT: usize = 4096;

/// The columns of a heading.
#[derive(Clone)]
pub(crate) struct Layout<'h> {
    pub(super) format: &'static Format,
    pub(super) names: Vec<&'h str>,
    /// Columns of the format with their places; the best place of each comes first.
    columns: Vec<(&'static Column, usize)>,
    /// The unit of each place, if the format or the name gives it.
    units: Vec<Option<Unit>>,
    spaced: bool,
}

impl<'h> Layout<'h> {
    /// The columns under a heading.
    pub(crate) fn under(format: &'static Format, heading: &'h str) -> Self {
        Self::with_before(format, heading).0
    }

    /// The same, with the text before the first name.
    pub(super) fn with_before(format: &'static Format, heading: &'h str) -> (Self, Before) {
        let heading = heading.trim().trim_start_matches('#');
        let (heading, before) = if format.clocked {
            clock::of_heading(heading, |word| format.is_column(word))
        } else {
            (heading, Before::default())
        };
        let mut names = names(heading, format);
        if format.is_open {
            let last = names.iter().rposition(|name| format.is_column(name));
            names.truncate(last.map_or(names.len(), |at| at + 1));
        }
        // The first of two equal names may be a column of its own.
        let numbered = |at: usize| -> Option<String> {
            let is_first = names[at + 1..].contains(&names[at]);
            let name = is_first.then(|| format!("1:{}", names[at]));
            name.filter(|name| format.is_column(name))
        };
        let numbered: Vec<Option<String>> = (0..names.len()).map(numbered).collect();
        let places = |column: &'static Column| {
            let rank = |at: usize| rank(column.names, numbered[at].as_deref().unwrap_or(names[at]));
            let ranked = (0..names.len()).filter_map(|at| Some((rank(at)?, at)));
            let mut ranked: Vec<(usize, usize)> = ranked.collect();
            ranked.sort_unstable();
            ranked.into_iter().map(move |(_, at)| (column, at))
        };
        let mut columns: Vec<_> = format.columns.iter().flat_map(places).collect();
        let own: Vec<usize> = columns.iter().map(|(_, at)| *at).collect();
        columns.extend(format.shared().flat_map(places).filter(|(_, at)| !own.contains(at)));
        let unit = |(at, name): (usize, &&str)| {
            let column = columns.iter().find(|(_, place)| *place == at);
            column.map(|(column, _)| column.unit).or_else(|| unit_by_name(name))
        };
        let units = names.iter().enumerate().map(unit).collect();
        let spaced = format.phrases().next().is_some();
        (Self { format, names, columns, units, spaced }, before)
    }

    /// Whether a column has one of these names.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.names.iter().any(|name| names.contains(name))
    }

    /// The column of the format at a place.
    pub(super) fn column(&self, at: usize) -> Option<&'static Column> {
        self.columns.iter().find(|(_, place)| *place == at).map(|(column, _)| *column)
    }

    /// The places with destination `to`, the best first.
    pub(super) fn places(&self, to: To) -> impl Iterator<Item = usize> {
        self.columns.iter().filter(move |(column, _)| column.to == to).map(|(_, at)| *at)
    }

    /// Cells with destination `to` that are not empty, with their units, the best first.
    pub(super) fn cells_of<'t>(
        &self,
        to: To,
        cells: &[&'t str],
    ) -> impl Iterator<Item = (Unit, &'t str)> {
        let found = self.places(to).filter_map(|at| Some((self.unit(at), *cells.get(at)?)));
        found.filter(|(_, cell)| !unit::is_empty(cell))
    }

    /// The best cell with destination `to`.
    pub(crate) fn cell<'t>(&self, to: To, cells: &[&'t str]) -> Option<&'t str> {
        self.cells_of(to, cells).next().map(|(_, cell)| cell)
    }

    /// The figures with destination `to`, the best first.
    pub(super) fn figures(&self, to: To, cells: &[&str]) -> impl Iterator<Item = f64> {
        self.cells_of(to, cells).filter_map(|(unit, cell)| unit.figure(cell))
    }

    /// The unit of the cells of a place.
    pub(super) fn unit(&self, at: usize) -> Unit {
        self.units.get(at).copied().flatten().unwrap_or(Unit::Word)
    }

    /// The unit of the figures of a place. In an unknown column they are plain numbers.
    pub(super) fn unit_of_figures(&self, at: usize) -> Unit {
        self.units.get(at).copied().flatten().unwrap_or(Unit::Number)
    }

    /// Whether a line is certainly a row: it has figures in several columns of figures.
    pub(crate) fn is_sure(&self, text: &str) -> bool {
        let figures = self.units.iter().flatten().filter(|unit| !unit.fits("x"));
        figures.count() >= SURE_FIGURES && self.cut(text).is_some()
    }

    /// The cells of a row, and the text before them; `None` if a cell does not fit its column.
    pub(crate) fn cut<'t>(&self, text: &'t str) -> Option<(Vec<&'t str>, Before)> {
        let whole = text.trim_start_matches(is_gap).trim_end_matches(is_drawn).trim_end();
        if !self.format.clocked {
            return Some((self.cells(whole)?, Before::default()));
        }
        let mut rest = whole;
        for _ in 0..=MOST_WORDS {
            let before = Before::of(&whole[..whole.len() - rest.len()]);
            if let Some((cells, before)) = self.cells(rest).zip(before)
                && !self.begins_too_soon(&cells)
            {
                return Some((cells, before));
            }
            rest = rest.split_once(char::is_whitespace)?.1.trim_start();
        }
        None
    }

    /// Whether the time before the row pushed a figure into the command.
    fn begins_too_soon(&self, cells: &[&str]) -> bool {
        let words = self.cell(To::Command, cells).and_then(|text| text.split_once(' '));
        words.is_some_and(|(first, _)| Unit::Number.fits(first))
    }

    /// The cells of a row without text before it.
    fn cells<'t>(&self, text: &'t str) -> Option<Vec<&'t str>> {
        let mut cells: Vec<&str> = Vec::with_capacity(self.names.len());
        if self.spaced {
            let gap = if text.contains('\t') { "\t" } else { "  " };
            cells.extend(text.split(gap).map(str::trim));
            if gap == "\t" {
                // Empty cells at the end were trimmed.
                cells.resize(self.names.len().max(cells.len()), "");
            } else {
                cells.retain(|cell| !cell.is_empty());
            }
            let fits = |(at, cell): (usize, &&str)| self.unit(at).fits(cell);
            if cells.len() == self.names.len() && cells.iter().enumerate().all(fits) {
                return Some(cells);
            }
            cells.clear();
        }
        self.words(text, &mut cells).then_some(cells)
    }

    /// Cuts the rest of a row into the remaining cells.
    fn words<'t>(&self, rest: &'t str, cells: &mut Vec<&'t str>) -> bool {
        let at = cells.len();
        if at == self.names.len() {
            return rest.is_empty() || self.format.is_open;
        }
        if rest.is_empty() {
            let may_end = self.format.may_be_short && at > 0;
            cells.resize(if may_end { self.names.len() } else { at }, "");
            return may_end;
        }
        let unit = self.unit(at);
        if unit == Unit::Text && at + 1 == self.names.len() && !self.format.is_open {
            cells.push(rest);
            return true;
        }
        let mut end =
            words_end(rest, unit.words(rest.split(is_gap).filter(|word| !word.is_empty())));
        loop {
            let cell = rest[..end].trim_end_matches(is_gap);
            if unit.fits(cell) && !cell.is_empty() {
                cells.push(cell);
                if self.words(rest[end..].trim_start_matches(is_gap), cells) {
                    return true;
                }
                cells.truncate(at);
            } else if rank(self.format.missing, self.names[at]).is_some() {
                cells.push("");
                return self.words(rest, cells);
            }
            if unit != Unit::Text || end == rest.len() || end > MAX_TEXT {
                return false;
            }
            end += words_end(&rest[end..], 1);
        }
    }
}

/// The end of the first `count` words of `rest`.
fn words_end(rest: &str, count: usize) -> usize {
    let mut end = 0;
    for _ in 0..count {
        let behind = rest[end..].trim_start_matches(is_gap);
        end = rest.len() - behind.len() + behind.find(is_gap).unwrap_or(behind.len());
    }
    end
}

/// The unit of a column that no format lists, if its name shows that it has figures.
fn unit_by_name(name: &str) -> Option<Unit> {
    if name.contains("kB") || name.ends_with("req-sz") {
        return Some(Unit::Kilobytes);
    }
    let is_figure = name.starts_with('%') || name.ends_with('%') || name.ends_with("/s");
    is_figure.then_some(Unit::Number)
}
