//! Rows of the screen. A row consists of pieces and has a rank.
//!
//! A figure that is cut at the edge would be a different figure. So a piece that does not fit is
//! left out, with all pieces after it. If the screen is too low, the rows of the highest rank go.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::super::format;

/// Columns of the titles at the left.
pub(super) const TITLE: usize = 10;

/// A row and its rank: the lower, the longer it is kept.
pub(super) struct Ranked {
    pub(super) rank: u8,
    pub(super) line: Line<'static>,
}

/// The rows that fit into a height, in their order.
pub(super) fn fit(mut rows: Vec<Ranked>, height: usize) -> Vec<Line<'static>> {
    while rows.len() > height {
        // Among rows of one rank, the last one goes first.
        let worst = rows.iter().enumerate().max_by_key(|(at, row)| (row.rank, *at));
        let Some((at, _)) = worst else { break };
        rows.remove(at);
    }
    rows.into_iter().map(|row| row.line).collect()
}

/// A row in the making.
pub(super) struct Row {
    spans: Vec<Span<'static>>,
    left: usize,
    is_full: bool,
}

impl Row {
    /// An empty row of so many columns.
    pub(super) fn new(columns: usize) -> Self {
        Self { spans: Vec::new(), left: columns, is_full: false }
    }

    /// A row that begins with a title, in the column of titles.
    pub(super) fn titled(columns: usize, title: &str, style: Style) -> Self {
        Self::new(columns).piece(&[(&format!("{title:<TITLE$}"), style)])
    }

    /// Adds a piece, if it fits.
    pub(super) fn piece(mut self, parts: &[(&str, Style)]) -> Self {
        let columns: usize = parts.iter().map(|(text, _)| format::columns_of(text)).sum();
        if self.is_full || columns > self.left {
            self.is_full = true;
            return self;
        }
        self.left -= columns;
        for (text, style) in parts {
            self.spans.push(Span::styled((*text).to_owned(), *style));
        }
        self
    }

    /// Adds a piece in the plain style.
    pub(super) fn text(self, text: &str) -> Self {
        self.piece(&[(text, Style::new())])
    }

    /// Columns that are left.
    pub(super) fn left(&self) -> usize {
        if self.is_full { 0 } else { self.left }
    }

    pub(super) fn ranked(self, rank: u8) -> Ranked {
        Ranked { rank, line: self.line() }
    }

    pub(super) fn line(self) -> Line<'static> {
        Line::from(self.spans)
    }
}

/// A bar of so many columns, including its brackets. It is filled up to a share, and may have a mark
/// at another.
pub(super) fn bar(columns: usize, share: f64, mark: Option<f64>) -> String {
    let inner = columns.saturating_sub(2);
    let filled = format::part_of(inner, share);
    let marked = mark.map(|mark| format::part_of(inner, mark).min(inner.saturating_sub(1)));
    let cell = |at: usize| match at {
        _ if marked == Some(at) => '|',
        _ if at < filled => '█',
        _ => '·',
    };
    let cells: String = (0..inner).map(cell).collect();
    format!("[{cells}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_shown_whole_or_not_at_all() {
        let row = Row::new(10).text("12.3 GiB").text(" 99").text("!");
        assert_eq!(row.line().to_string(), "12.3 GiB");
    }

    #[test]
    fn the_row_of_the_highest_rank_goes_first() {
        let row = |rank, text| Row::new(9).text(text).ranked(rank);
        let rows = vec![row(5, "a"), row(0, "b"), row(5, "c"), row(1, "d")];
        let shown: Vec<String> = fit(rows, 3).iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["a", "b", "d"]);
    }

    #[test]
    fn a_bar_has_its_mark_even_at_the_end() {
        assert_eq!(bar(10, 0.5, Some(1.0)), "[████···|]");
        assert_eq!(bar(10, 7.0, None), "[████████]");
        assert_eq!(bar(1, 0.5, Some(0.5)), "[]");
        assert_eq!(bar(6, f64::NAN, None), "[····]");
    }
}
