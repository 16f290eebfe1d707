//! The heaviest threads and functions as text.

use std::fmt::Write as _;

use ogive_profile::roles::Roles;
use ogive_profile::{Mode, Rate, SymbolShare, View};

/// Names longer than this are cut.
const NAME_WIDTH: usize = 48;

/// The tables.
pub(super) fn text(view: &View<'_>, roles: &Roles, rows: usize) -> String {
    let mut out = facts(view);
    let by_role = view.by_thread_group(|thread| roles.group(thread.name));
    let what = |role: &str| {
        roles.iter().find(|known| known.role == role).map_or("", |known| known.what.as_str())
    };
    let mut table = Table::new(&["CPU", "share", "thread role", "what it does"]);
    for share in by_role.iter().take(rows) {
        let seconds = view.profile().cpu_seconds(share.weight, share.samples);
        table.row([
            cpu(seconds, share.weight),
            percent(share.share),
            printable(&share.name),
            what(&share.name).to_owned(),
        ]);
    }
    table.end(&mut out, by_role.len(), rows);
    functions(&mut out, "function, by its own CPU", &view.self_by_symbol(), rows);
    functions(&mut out, "function, with what it calls", &view.total_by_symbol(), rows);
    for note in &view.profile().meta.notes {
        let _ = writeln!(out, "note: {}", printable(note));
    }
    out
}

fn facts(view: &View<'_>) -> String {
    let meta = &view.profile().meta;
    let mut parts = vec![ogive_text::counted(view.count(), "sample", "samples")];
    if !meta.event.is_empty() {
        parts.push(match meta.rate {
            Rate::Hertz(hertz) => format!("{} at {hertz:.0} Hz", printable(&meta.event)),
            _ => printable(&meta.event),
        });
    }
    if let Some(seconds) = view.cpu_seconds() {
        let mut text = format!("{seconds:.2} s of CPU");
        if let Some(ns) = meta.duration_ns.filter(|ns| *ns > 0) {
            let duration = ns as f64 / 1e9;
            let _ = write!(text, " in {duration:.1} s ({:.2} CPUs busy)", seconds / duration);
        }
        parts.push(text);
    }
    if meta.lost_samples > 0 {
        parts.push(ogive_text::counted(meta.lost_samples, "sample lost", "samples lost"));
    }
    format!("{}\n\n", parts.join(", "))
}

fn functions(out: &mut String, title: &str, symbols: &[SymbolShare<'_>], rows: usize) {
    let mut table = Table::new(&["share", title, "module", ""]);
    for symbol in symbols.iter().take(rows) {
        let mode = match symbol.mode {
            Mode::Kernel => "kernel",
            Mode::User => "user",
            Mode::Unknown => "",
        };
        let module = symbol.module.rsplit('/').next().unwrap_or_default();
        table.row([
            percent(symbol.share),
            printable(&symbol.symbol),
            printable(module),
            mode.to_owned(),
        ]);
    }
    table.end(out, symbols.len(), rows);
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

fn cpu(seconds: Option<f64>, weight: u64) -> String {
    match seconds {
        Some(seconds) => format!("{seconds:.2} s"),
        None => weight.to_string(),
    }
}

/// Outside text without characters that control a terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Rows under a header, in aligned columns: figures to the right.
pub(crate) struct Table<const COLUMNS: usize> {
    rows: Vec<[String; COLUMNS]>,
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    pub(crate) fn new(head: &[&str; COLUMNS]) -> Self {
        Self { rows: vec![head.map(str::to_owned)] }
    }

    pub(crate) fn row(&mut self, cells: [String; COLUMNS]) {
        self.rows.push(cells.map(|cell| cut(&cell)));
    }

    /// Writes the table, and the number of rows that are not shown.
    pub(crate) fn end(self, out: &mut String, all: usize, shown: usize) {
        let mut widths = [0; COLUMNS];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let figures = |column: usize| {
            self.rows.iter().skip(1).all(|row| {
                row[column].is_empty()
                    || row[column].starts_with(|c: char| c.is_ascii_digit() || c == '-')
            })
        };
        let right: Vec<bool> = (0..COLUMNS).map(figures).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let width = widths[column];
                // Writing to a String cannot fail.
                let _ = if right[column] {
                    write!(line, "{cell:>width$}  ")
                } else {
                    write!(line, "{cell:<width$}  ")
                };
            }
            let _ = writeln!(out, "{}", line.trim_end());
        }
        if all > shown {
            let _ = writeln!(out, "({} more)", all - shown);
        }
        out.push('\n');
    }
}

fn cut(cell: &str) -> String {
    if cell.chars().count() <= NAME_WIDTH * 2 {
        return cell.to_owned();
    }
    let head: String = cell.chars().take(NAME_WIDTH * 2 - 1).collect();
    format!("{head}\u{2026}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_align_and_contain_no_control_characters() {
        let mut table = Table::new(&["share", "name"]);
        table.row(["9.5%".to_owned(), "a".to_owned()]);
        table.row(["10.0%".to_owned(), printable("b\x1b[31m")]);
        let mut out = String::new();
        table.end(&mut out, 3, 2);
        assert_eq!(out, "share  name\n 9.5%  a\n10.0%  b\u{fffd}[31m\n(1 more)\n\n");
    }
}
