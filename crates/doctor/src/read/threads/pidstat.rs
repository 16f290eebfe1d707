//! `pidstat` with any of its options (`-u`, `-t`, `-d`, `-w`, `-r`, `-h`), in any language and
//! clock.
//!
//! The columns begin where the first known name stands; what stands before it is the time, in the
//! heading as in the rows, and may be several words, one, or none. A word of a language in its
//! place that ends in a colon marks an average. Where threads are listed below processes only the
//! threads are taken; averages are left out where rows of intervals were seen.

use super::list::name_of;
use crate::evidence::Thread;
use crate::read::text::clean::Line;
use crate::read::text::columns::{self, Columns};
use crate::read::text::frame;
use crate::read::text::number;
use crate::read::text::reading::{Reading, Rows};
use crate::read::text::section::Section;

/// The columns that pidstat begins with.
const FIRST: [&str; 4] = ["UID", "USER", "TGID", "PID"];
/// Columns of which one is in every list of pidstat and in no other.
const OWN: [&str; 6] = ["%system", "%usr", "kB_rd/s", "cswch/s", "minflt/s", "StkSize"];
/// Figures that go into a table: the column, the table, its name there, and its unit.
const FIGURES: [(&str, &str, &str, f64); 8] = [
    ("kB_rd/s", "iotop", "read_bytes", 1024.0),
    ("kB_wr/s", "iotop", "write_bytes", 1024.0),
    ("kB_ccwr/s", "iotop", "cancelled_write_bytes", 1024.0),
    ("iodelay", "iotop", "delay_ticks", 1.0),
    ("cswch/s", "pidstat", "voluntary_switches", 1.0),
    ("nvcswch/s", "pidstat", "involuntary_switches", 1.0),
    ("minflt/s", "pidstat", "minor_faults", 1.0),
    ("majflt/s", "pidstat", "major_faults", 1.0),
];

/// Whether a line names the columns of pidstat.
pub(crate) fn is_heading(text: &str) -> bool {
    let mut words = text.split_whitespace();
    words.next_back() == Some("Command")
        && text.split_whitespace().any(|word| OWN.contains(&word))
        && text.split_whitespace().any(|word| FIRST.contains(&word))
}

/// What one row says.
struct Row {
    thread: Thread,
    tables: Vec<Rows>,
    average: bool,
}

/// Reads pidstat.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut columns: Option<Columns<'_>> = None;
    let mut rows = Vec::new();
    let mut with_threads = false;
    let mut process = None;
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty() || text.starts_with("Linux ") {
            continue;
        }
        if is_heading(text) {
            let names = text.split_whitespace().skip_while(|word| !FIRST.contains(word));
            columns = Some(Columns::of_names(names.collect()));
            (with_threads, process) = (text.contains("TID"), None);
            reading.list += 1;
            continue;
        }
        let Some((columns, (cells, average))) =
            columns.as_ref().and_then(|columns| Some((columns, cells(columns, text)?)))
        else {
            reading.leave(line);
            continue;
        };
        let cell = |names: &[&str]| columns::cell(columns, &cells, names);
        // Threads are drawn below the process they are of.
        if with_threads && cell(&["TID"]).is_some_and(|cell| number::plain(cell).is_none()) {
            process = cell(&["TGID"]).and_then(|id| id.parse().ok());
            continue;
        }
        match row(columns, &cells, line, reading) {
            Some((mut thread, tables)) => {
                thread.process = process.filter(|_| with_threads);
                rows.push(Row { thread, tables, average });
            }
            None => reading.leave(line),
        }
    }
    let only_averages = rows.iter().all(|row| row.average);
    for row in rows.into_iter().filter(|row| only_averages || !row.average) {
        reading.evidence.threads.push(row.thread);
        for table in row.tables {
            reading.push(table);
        }
    }
}

/// The cells of a row without its time, and whether it is an average.
fn cells<'t>(columns: &Columns<'_>, text: &'t str) -> Option<(Vec<&'t str>, bool)> {
    let mut rest = text;
    let mut average = false;
    // `12:16:39 AM`, `18时53分35秒`, `1575000000`, `Average:`, `Moyenne :`, or nothing.
    for words in 0..=3 {
        let cells = columns.cells(rest).filter(|cells| is_row(columns, cells));
        if let Some(cells) = cells {
            return Some((cells, average));
        }
        let (word, behind) = rest.split_once(char::is_whitespace)?;
        if words > 0 && !average && number::plain(word).is_some() {
            return None;
        }
        average |= word.ends_with([':', '：']) && !word.contains(|c: char| c.is_ascii_digit());
        rest = behind.trim_start();
    }
    None
}

/// Whether every cell between the first and the command is a figure or a dash.
fn is_row(columns: &Columns<'_>, cells: &[&str]) -> bool {
    let figure = |cell: &str| cell == "-" || number::plain(cell).is_some();
    let named = columns.names().iter().zip(cells);
    let mut inner = named.filter(|(name, _)| !matches!(**name, "USER" | "Command"));
    // With the time still on, the command begins with the last figure or the first is no figure.
    let command = cells.last().and_then(|cell| cell.split_whitespace().next());
    let cut = command.is_some_and(|word| number::plain(word).is_some());
    inner.all(|(_, cell)| figure(cell)) && !(cut && command != cells.last().copied())
}

fn row(
    columns: &Columns<'_>,
    cells: &[&str],
    line: &Line<'_>,
    reading: &Reading<'_>,
) -> Option<(Thread, Vec<Rows>)> {
    let cell = |names: &[&str]| columns::cell(columns, cells, names);
    let (name, dressed) = frame::thread(cells.last()?);
    let name = name_of(&name, cell(&["TID"]).is_some());
    let id = cell(&["TID"]).or_else(|| cell(&["PID", "TGID"])).and_then(|id| id.parse().ok());
    let mut tables: Vec<Rows> = Vec::new();
    for (column, table, figure, unit) in FIGURES {
        // pidstat prints -1 for what it may not see.
        let value = cell(&[column]).and_then(number::plain).filter(|value| *value >= 0.0);
        let Some(value) = value else { continue };
        if tables.last().is_none_or(|last| last.table.name != table) {
            let mut rows = reading.table(table).scope(name.clone());
            rows.gauge("id", cell(&["TID", "PID"]).and_then(number::plain), line);
            tables.push(rows);
        }
        if let Some(rows) = tables.last_mut() {
            match column {
                "iodelay" => rows.gauge(figure, Some(value), line),
                _ => rows.rate(figure, Some(value * unit), line),
            }
        }
    }
    let thread = Thread {
        id,
        kernel: dressed.or((cell(&["VSZ"]) == Some("0")).then_some(true)),
        cpu_percent: cell(&["%CPU"]).and_then(number::percent),
        system_percent: cell(&["%system"]).and_then(number::percent),
        ..reading.thread(name, line)
    };
    Some((thread, tables))
}
