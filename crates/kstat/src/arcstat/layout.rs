//! Prints rows as text, in `arcstat`'s layout.
//!
//! A number is divided by its scale until it is smaller than the scale. It gets one decimal if the
//! width allows it, and is right-aligned. With an interval of one second whole numbers have no
//! decimal. The header is repeated after a number of rows.

use std::borrow::Cow;

use super::column::{Column, Columns, Scale};
use super::report::{Cell, Report};

/// Suffixes after 0 to 5 divisions.
const SUFFIXES: [&str; 6] = ["", "K", "M", "G", "T", "P"];

/// The tolerance of an interval of one second, because timers fire late.
const ONE_SECOND_SLACK: f64 = 0.05;

/// Rows between two headers if the height of the terminal is unknown.
const DEFAULT_HEADER_ROWS: usize = 20;

/// The settings of printing, and the rows since the last header.
#[derive(Debug, Clone)]
pub struct Layout {
    columns: Columns,
    separator: String,
    raw_numbers: bool,
    header_rows: usize,
    rows_since_header: Option<usize>,
}

impl Layout {
    /// `arcstat`'s own layout of `columns`: two blanks between them, shortened numbers.
    pub fn new(columns: Columns) -> Self {
        Self {
            columns,
            separator: "  ".to_owned(),
            raw_numbers: false,
            header_rows: DEFAULT_HEADER_ROWS,
            rows_since_header: None,
        }
    }

    /// Puts `separator` between the columns (`-s`).
    #[must_use]
    pub fn separator(mut self, separator: &str) -> Self {
        separator.clone_into(&mut self.separator);
        self
    }

    /// Prints numbers in full and without padding (`-p`).
    #[must_use]
    pub fn raw_numbers(mut self, raw: bool) -> Self {
        self.raw_numbers = raw;
        self
    }

    /// Repeats the header so that a terminal of this height always shows one. Call it again when
    /// the height changes. As in `arcstat`, heights of three lines and less are ignored.
    pub fn set_terminal_rows(&mut self, rows: u16) {
        if rows > 3 {
            self.header_rows = usize::from(rows) - 3;
        }
    }

    /// The columns shown.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// The row of `report` with a line feed. The header precedes the first row and then every 21st,
    /// or as often as the terminal's height less 2.
    pub fn line(&mut self, report: &Report<'_>, time: &str) -> String {
        let mut text = String::new();
        let rows = match self.rows_since_header {
            Some(rows) if rows <= self.header_rows => rows,
            _ => {
                text.push_str(&self.header());
                text.push('\n');
                0
            }
        };
        self.rows_since_header = Some(rows + 1);
        text.push_str(&self.row(report, time));
        text.push('\n');
        text
    }

    /// The header, without a line feed.
    pub fn header(&self) -> String {
        self.join(self.columns.iter().map(|column| {
            if self.raw_numbers {
                Cow::Borrowed(column.name)
            } else {
                Cow::Owned(format!("{:>width$}", column.name, width = column.width))
            }
        }))
    }

    /// One row, without a line feed.
    pub fn row(&self, report: &Report<'_>, time: &str) -> String {
        let one_second = (report.elapsed_seconds() - 1.0).abs() <= ONE_SECOND_SLACK;
        self.join(self.columns.iter().map(|column| {
            Cow::Owned(match report.cell(column, time) {
                Cell::Text(text) => text,
                Cell::Absent if self.raw_numbers => "-".to_owned(),
                Cell::Absent => format!("{:>width$}", "-", width = column.width),
                Cell::Number(number) if self.raw_numbers => format!("{number}"),
                Cell::Number(number) => shorten(column, number, one_second),
            })
        }))
    }

    fn join<'a>(&self, cells: impl Iterator<Item = Cow<'a, str>>) -> String {
        let mut text = String::new();
        for (index, cell) in cells.enumerate() {
            if index > 0 {
                text.push_str(&self.separator);
            }
            text.push_str(&cell);
        }
        text
    }
}

/// Prints as many decimals as fit, because a cent an hour matters as much as a hundred dollars.
fn dollars(width: usize, number: f64) -> String {
    let decimals = width.saturating_sub(format!("{number:.0}").len() + 1);
    format!("{number:>width$.decimals$}")
}

fn shorten(column: &Column, number: f64, one_second: bool) -> String {
    // The interval is never exact: 16.98 hits in 0.999 s are 17.
    let mut number =
        if one_second && column.scale == Scale::Count { number.round() } else { number };
    let scale = match column.scale {
        Scale::Count => 1000.0,
        Scale::Bytes => 1024.0,
        Scale::Percent | Scale::Text => f64::INFINITY,
        Scale::Dollars => return dollars(column.width, number),
    };
    let mut divisions = 0;
    while number.abs() > scale && divisions < SUFFIXES.len() - 1 {
        number /= scale;
        divisions += 1;
    }
    let width = column.width - usize::from(divisions > 0);
    let whole_digits = format!("{number:.0}").len();
    let no_decimal = one_second && number.fract() == 0.0 || width < whole_digits + 2;
    format!("{number:>width$.*}{}", usize::from(!no_decimal), SUFFIXES[divisions])
}
