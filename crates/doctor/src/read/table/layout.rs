//! The columns of one heading, and a row cut into their cells.
//!
//! What stands before the one wide column is counted from the left, what stands behind it from the
//! right. Cells are told apart by tabs where there are any, else by two blanks or more where names
//! of columns hold blanks, else by words, of which a cell has as many as its column says.

use super::clock::{self, Before, MOST_WORDS};
use super::format::{Column, Format, Kind, To, is_gap, rank};
use super::unit::Unit;

/// Of so many columns of figures a row is known by itself.
const SURE_FIGURES: usize = 3;

/// A heading, understood.
#[derive(Debug)]
pub(crate) struct Layout<'h> {
    names: Vec<&'h str>,
    /// The columns of the format, each with its places in the row, the best first.
    columns: Vec<(&'static Column, Vec<usize>)>,
    /// What cells of a place hold, where the format says so.
    units: Vec<Option<Unit>>,
    may_miss: Vec<bool>,
    wide: Option<usize>,
    spaced: bool,
    clocked: bool,
    /// Whether words may stand behind the last cell.
    ends_in_time: bool,
    /// Whether cells at the end may be missing.
    may_be_short: bool,
}

/// A row that was cut.
#[derive(Debug, Clone)]
pub(crate) struct Cells<'t> {
    /// One cell a column; what is missing is empty.
    pub(crate) cells: Vec<&'t str>,
    /// What stood before them.
    pub(crate) before: Before,
}

impl<'h> Layout<'h> {
    /// The columns under a heading.
    pub(crate) fn under(format: &Format, heading: &'h str) -> Self {
        Self::with_before(format, heading).0
    }

    /// The same, and what stands before the first name.
    pub(super) fn with_before(format: &Format, heading: &'h str) -> (Self, Before) {
        let heading = heading.trim().trim_start_matches('#');
        let phrases: Vec<&str> = format
            .all_columns()
            .flat_map(|column| column.names.split('|'))
            .filter(|name| name.contains(' '))
            .collect();
        let (heading, before) = if format.clocked {
            clock::of_heading(heading, |word| format.is_column(word))
        } else {
            (heading, Before::default())
        };
        let names = names(heading, &phrases);
        let mut layout = Self::of_names(format, names);
        layout.spaced = !phrases.is_empty();
        (layout, before)
    }

    /// Columns whose names were told apart already.
    fn of_names(format: &Format, mut names: Vec<&'h str>) -> Self {
        let places = |names: &[&str], column: &Column| -> Vec<usize> {
            let mut found: Vec<(usize, usize)> = Vec::new();
            for (at, name) in names.iter().enumerate() {
                let is_first_of_two = || names[at + 1..].contains(name);
                let rank_of = |name: &str| rank(column.names, name);
                let numbered = column.names.contains("1:");
                let place = match numbered {
                    true if is_first_of_two() => rank_of(&format!("1:{name}")),
                    true => None,
                    false => rank_of(name),
                };
                found.extend(place.map(|rank| (rank, at)));
            }
            found.sort_unstable();
            found.into_iter().map(|(_, at)| at).collect()
        };
        if format.ends_in_time {
            let last = names.iter().rposition(|name| format.is_column(name));
            names.truncate(last.map_or(names.len(), |at| at + 1));
        }
        let mut columns: Vec<(&'static Column, Vec<usize>)> = format
            .all_columns()
            .map(|column| (column, places(&names, column)))
            .filter(|(_, places)| !places.is_empty())
            .collect();
        // The first of two of a name is that column alone.
        let numbered: Vec<usize> = columns
            .iter()
            .filter(|(column, _)| column.names.contains("1:"))
            .flat_map(|(_, places)| places.clone())
            .collect();
        for (_, places) in columns.iter_mut().filter(|(column, _)| !column.names.contains("1:")) {
            places.retain(|at| !numbered.contains(at));
        }
        let mut units = vec![None; names.len()];
        for (column, places) in columns.iter().rev() {
            for at in places {
                units[*at] = Some(column.unit);
            }
        }
        for (unit, name) in units.iter_mut().zip(&names) {
            *unit = unit.or_else(|| told_by_name(name));
        }
        let wide = names.iter().position(|name| rank(format.wide, name).is_some());
        let may_miss = names.iter().map(|name| rank(format.missing, name).is_some()).collect();
        Self {
            names,
            columns,
            units,
            may_miss,
            wide,
            spaced: false,
            clocked: format.clocked,
            ends_in_time: format.ends_in_time,
            may_be_short: format.may_be_short,
        }
    }

    /// The names of the columns.
    pub(crate) fn names(&self) -> &[&'h str] {
        &self.names
    }

    /// The place of the wide column.
    pub(crate) fn wide(&self) -> Option<usize> {
        self.wide
    }

    /// The places of what goes to `to`, the best first.
    pub(crate) fn places(&self, to: To) -> &[usize] {
        let found = self.columns.iter().find(|(column, _)| column.to == to);
        found.map_or(&[], |(_, places)| places)
    }

    /// The columns of the format that are there, with their places.
    pub(super) fn columns(&self) -> &[(&'static Column, Vec<usize>)] {
        &self.columns
    }

    /// A cell of a row by the names of its column, the best first.
    pub(crate) fn cell<'t>(&self, cells: &[&'t str], names: &[&str]) -> Option<&'t str> {
        let mut places =
            names.iter().filter_map(|name| self.names.iter().position(|other| other == name));
        places.next().and_then(|at| cells.get(at).copied())
    }

    /// What cells of a place hold.
    pub(super) fn unit(&self, at: usize) -> Unit {
        self.units.get(at).copied().flatten().unwrap_or(Unit::Word)
    }

    /// Whether the format or the name of a column says what its cells hold.
    pub(super) fn is_listed(&self, at: usize) -> bool {
        self.units.get(at).is_some_and(Option::is_some)
    }

    /// Whether a line is a row without doubt: it has figures under several columns of figures.
    pub(crate) fn is_sure(&self, text: &str) -> bool {
        let figures = self.units.iter().flatten().filter(|unit| unit.is_of_figures());
        figures.count() >= SURE_FIGURES && self.cut(text).is_some()
    }

    /// The cells of a row, and what stands before them; `None` if one is not what its column says.
    pub(crate) fn cut<'t>(&self, text: &'t str) -> Option<Cells<'t>> {
        let mut rest = text.trim();
        if !self.clocked {
            return Some(Cells { cells: self.cells(rest)?, before: Before::default() });
        }
        let whole = rest;
        for _ in 0..=MOST_WORDS {
            let before = Before::of(&whole[..whole.len() - rest.len()]);
            if let Some((cells, before)) = self.cells(rest).zip(before)
                && !self.begins_too_soon(&cells)
            {
                return Some(Cells { cells, before });
            }
            rest = rest.split_once(char::is_whitespace)?.1.trim_start();
        }
        None
    }

    /// Whether a figure was pushed into the command by the time before the row.
    fn begins_too_soon(&self, cells: &[&str]) -> bool {
        let command = self.wide.and_then(|at| cells.get(at));
        let mut words = command.map(|command| command.split_whitespace()).into_iter().flatten();
        let is_figure = words.next().is_some_and(|word| Unit::Number.fits(word));
        is_figure && words.next().is_some()
    }

    /// The cells of a row that nothing stands before.
    pub(crate) fn cells<'t>(&self, text: &'t str) -> Option<Vec<&'t str>> {
        let apart = if text.contains('\t') && self.spaced {
            let mut cells: Vec<&str> = text.split('\t').map(str::trim).collect();
            // Empty cells at the end were cut off.
            cells.resize(self.names.len().max(cells.len()), "");
            Some(cells)
        } else if self.spaced {
            Some(text.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        } else {
            None
        };
        let is_whole = |cells: &Vec<&str>| {
            cells.len() == self.names.len()
                && cells.iter().enumerate().all(|(at, cell)| self.unit(at).fits(cell))
        };
        apart.filter(is_whole).or_else(|| self.by_words(text.trim()))
    }

    fn by_words<'t>(&self, text: &'t str) -> Option<Vec<&'t str>> {
        let mut cells = Vec::with_capacity(self.names.len());
        let wide = self.wide.unwrap_or(self.names.len());
        let mut rest = text;
        for at in 0..wide {
            let unit = self.unit(at);
            let (cell, behind) = first_words(rest, unit.words(rest));
            if self.may_miss[at] && !unit.fits(cell) {
                cells.push("");
                continue;
            }
            if cell.is_empty() && self.may_be_short && at > 0 {
                cells.resize(self.names.len(), "");
                return Some(cells);
            }
            if cell.is_empty() || !unit.fits(cell) {
                return None;
            }
            cells.push(cell);
            rest = behind;
        }
        if self.wide.is_none() {
            return (rest.is_empty() || self.ends_in_time).then_some(cells);
        }
        let mut behind = Vec::new();
        for at in (wide + 1..self.names.len()).rev() {
            let unit = self.unit(at);
            let mut start = rest.len();
            for _ in 0..unit.words_from_end() {
                start = rest[..start].trim_end().rfind(is_gap)?;
            }
            let cell = rest[start..].trim_matches(is_gap);
            if !unit.fits(cell) {
                return None;
            }
            behind.push(cell);
            rest = rest[..start].trim_end();
        }
        if rest.is_empty() {
            return None;
        }
        cells.push(rest);
        cells.extend(behind.into_iter().rev());
        Some(cells)
    }
}

impl Layout<'static> {
    /// The columns of rows that have lost their heading.
    pub(crate) fn bare(format: &Format) -> Self {
        Self::under(format, format.bare)
    }
}

/// The first `count` words of `rest`, and what follows.
fn first_words(rest: &str, count: usize) -> (&str, &str) {
    let mut end = 0;
    for _ in 0..count {
        let behind = &rest[end..];
        let start = behind.len() - behind.trim_start_matches(is_gap).len();
        let word = &behind[start..];
        end += start + word.find(is_gap).unwrap_or(word.len());
    }
    (rest[..end].trim_matches(is_gap), rest[end..].trim_start_matches(is_gap))
}

/// The names of a heading; `phrases` are those that hold blanks.
fn names<'h>(heading: &'h str, phrases: &[&str]) -> Vec<&'h str> {
    let mut found = Vec::new();
    let tabs = !phrases.is_empty() && heading.contains('\t');
    if tabs {
        return heading.split('\t').map(str::trim).collect();
    }
    let mut rest = heading.trim_matches(is_gap);
    while !rest.is_empty() {
        let phrase = phrases.iter().filter(|name| rest.starts_with(**name)).map(|name| name.len());
        let end = phrase.max().or_else(|| rest.find(is_gap)).unwrap_or(rest.len());
        found.push(&rest[..end]);
        rest = rest[end..].trim_start_matches(is_gap);
    }
    // The number of a page (`1/29`), the mark of a report (`_cpu_`).
    let is_mark = |word: &str| {
        word.starts_with('_') && word.ends_with('_') && word.len() > 2
            || word
                .split_once('/')
                .is_some_and(|(page, of)| page.parse::<u32>().is_ok() && of.parse::<u32>().is_ok())
    };
    if found.last().is_some_and(|word| is_mark(word)) {
        found.pop();
    }
    found
}

/// What the cells of a column hold that no format lists: its name tells where they are figures.
fn told_by_name(name: &str) -> Option<Unit> {
    if name.contains("kB") || name.ends_with("req-sz") {
        Some(Unit::Kilobytes)
    } else {
        (name.starts_with('%') || name.ends_with('%') || name.ends_with("/s"))
            .then_some(Unit::Number)
    }
}

/// What a figure is called whose column no format lists, and what it is.
pub(super) fn named(name: &str, others: Kind) -> (String, Kind) {
    let percent = name.strip_prefix('%').or_else(|| name.strip_suffix('%'));
    match (percent, name.strip_suffix("/s")) {
        (Some(name), _) => (format!("{name}_percent"), Kind::Gauge),
        (_, Some(name)) => (format!("{name}_per_s"), Kind::Rate),
        _ => (name.to_owned(), others),
    }
}
