//! `arcstat` of all releases, `dbufstat`-like tables of it, and `ogive stat`, which prints the
//! same.
//!
//! Columns differ per release (`arcsz`/`size`, `dmis`/`dmiss`, `avail`), so only names count.
//! Without an interval the one row is the average since the module was loaded; with one, so is the
//! first row.

use super::zpool;
use crate::read::text::clean::Line;
use crate::read::text::columns::{Columns, interval, median, row_under};
use crate::read::text::number;
use crate::read::text::reading::{Reading, Rows};
use crate::read::text::section::Section;

const SIZES: [&str; 23] = [
    "c", "size", "arcsz", "avail", "free", "need", "meta", "mfusz", "mrusz", "l2size", "l2asize",
    "l2bytes", "mfu_size", "mru_size", "ameta", "pd", "mfugsz", "mrugsz", "cmax", "cmin", "l2data",
    "l2meta", "l2hsize",
];

/// Whether a line names columns of arcstat.
pub(crate) fn is_heading(text: &str) -> bool {
    // That of `zpool iostat` has a name in common with it, twice.
    if zpool::is_iostat_heading(text) {
        return false;
    }
    let words: Vec<&str> = text.split([' ', '\t', ',']).filter(|word| !word.is_empty()).collect();
    let known = words.iter().filter(|word| {
        SIZES.contains(word)
            || matches!(
                **word,
                "time"
                    | "read"
                    | "hits"
                    | "miss"
                    | "hit%"
                    | "miss%"
                    | "dmis"
                    | "dm%"
                    | "pmis"
                    | "pm%"
                    | "mmis"
                    | "mm%"
                    | "dread"
                    | "ddread"
                    | "pread"
                    | "mread"
                    | "mfu"
                    | "mru"
                    | "l2hits"
                    | "l2miss"
                    | "l2read"
                    | "eskip"
                    | "mtxmis"
                    | "dhit"
                    | "ioh%"
                    | "iohs"
                    | "dh%"
            )
    });
    let named = |word: &&str| {
        word.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"%_".contains(&byte))
    };
    words.len() >= 3
        && known.count() * 5 >= words.len() * 2
        && words.iter().all(named)
        && words.iter().any(|word| word.ends_with('%') || matches!(*word, "read" | "miss" | "hits"))
        && words
            .iter()
            .any(|word| matches!(*word, "read" | "miss%" | "hit%" | "arcsz" | "c" | "size"))
        && words.iter().all(|word| number::plain(word).is_none())
}

/// `miss%` as `miss_percent`, sizes with their unit, `arcsz` as `size`.
fn figure_name(column: &str) -> String {
    match column {
        "arcsz" | "size" => "size_bytes".to_owned(),
        size if SIZES.contains(&size) => format!("{size}_bytes"),
        percent => match percent.strip_suffix('%') {
            Some(name) => format!("{name}_percent"),
            None => column.to_owned(),
        },
    }
}

fn put(table: &mut Rows, name: &str, value: f64, line: &Line<'_>) {
    if name.ends_with("_bytes") || name.ends_with("_percent") {
        table.gauge(name, Some(value), line);
    } else {
        table.rate(name, Some(value), line);
    }
}

/// A line with its time of day and its figures.
type Row<'a, 'l> = (&'a Line<'l>, Option<f64>, Vec<(String, f64)>);

/// Reads the table.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut columns: Option<Columns<'_>> = None;
    let mut rows: Vec<Row<'_, '_>> = Vec::new();
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty() {
            continue;
        }
        if is_heading(text) {
            columns = Some(Columns::of(text));
            continue;
        }
        let Some((columns, cells)) = row_under(&columns, text) else {
            reading.leave(line);
            continue;
        };
        let time_s = columns.position(&["time"]).and_then(|at| number::time_of_day(cells[at]));
        let values: Vec<_> = columns
            .names()
            .iter()
            .zip(&cells)
            .filter(|(name, _)| **name != "time")
            .filter_map(|(name, cell)| {
                let scale =
                    if SIZES.contains(name) { number::bytes(cell) } else { number::count(cell) };
                Some((figure_name(name), scale?))
            })
            .collect();
        if values.is_empty() {
            reading.leave(line);
        } else {
            rows.push((line, time_s, values));
        }
    }
    let Some(last) = rows.last().map(|row| row.0) else { return };
    for (index, (line, time_s, values)) in rows.iter().enumerate() {
        let mut table = reading.table("arcstat_row").scope(format!("{}", index + 1)).taken(*time_s);
        for (name, value) in values {
            put(&mut table, name, *value, line);
        }
        reading.push(table);
    }
    let used = if rows.len() >= 3 { &rows[1..] } else { &rows[..] };
    let mut table = reading.table("arcstat");
    for (name, _) in &rows[rows.len() - 1].2 {
        let values: Vec<f64> = used
            .iter()
            .filter_map(|row| row.2.iter().find(|(other, _)| other == name))
            .map(|(_, value)| *value)
            .collect();
        if let Some(middle) = median(&values) {
            put(&mut table, name, middle, last);
            let largest = values.iter().copied().fold(f64::MIN, f64::max);
            table.gauge(&format!("{name}_max"), Some(largest), last);
        }
    }
    let times: Vec<f64> = rows.iter().filter_map(|row| row.1).collect();
    table.gauge("interval_s", interval(&times), last);
    table.gauge("rows", Some(rows.len() as f64), last);
    reading.push(table);
}
