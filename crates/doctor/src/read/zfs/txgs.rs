//! `/proc/spl/kstat/zfs/POOL/txgs`: the last transaction groups, one a row.
//!
//! Whether groups are forced shows in their open time (`otime`) against `zfs_txg_timeout`, and in
//! how little they carry; so medians go into one table, and every row into one of its own.

use super::kstat;
use crate::read::text::columns::{Columns, median};
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

/// Columns in nanoseconds, bytes and plain counts with the name of their figure.
const FIGURES: [(&str, &str); 9] = [
    ("ndirty", "ndirty_bytes"),
    ("nread", "nread_bytes"),
    ("nwritten", "nwritten_bytes"),
    ("reads", "reads"),
    ("writes", "writes"),
    ("otime", "otime_ns"),
    ("qtime", "qtime_ns"),
    ("wtime", "wtime_ns"),
    ("stime", "stime_ns"),
];

/// Reads the table.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let pool = section.hint.path.as_deref().and_then(|path| kstat::name_and_pool(path).1);
    let mut header: Option<Columns<'_>> = None;
    let mut values: Vec<Vec<f64>> = vec![Vec::new(); FIGURES.len()];
    let mut births_ns = Vec::new();
    let mut last = None;
    for line in section.lines {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        if words.contains(&"otime") {
            header = Some(Columns::of(&line.text));
            continue;
        }
        if words.len() == 7 && words[2].starts_with("0x") {
            continue;
        }
        let cells = header.as_ref().and_then(|header| Some((header, header.words(&line.text)?)));
        let Some((header, cells)) = cells else {
            reading.leave(line);
            continue;
        };
        let cell = |name: &str| header.position(&[name]).and_then(|at| number::plain(cells[at]));
        let Some(txg) = cell("txg") else {
            reading.leave(line);
            continue;
        };
        let state = header.position(&["state"]).map_or("C", |at| cells[at]);
        let mut row = reading.table("txg").scope(format!("{txg}"));
        births_ns.extend(cell("birth"));
        row.gauge("birth_ns", cell("birth"), line);
        row.text("state", state, line);
        for ((column, figure), values) in FIGURES.iter().zip(&mut values) {
            let value = cell(column);
            row.gauge(figure, value, line);
            // A group that is not yet committed has no whole times.
            values.extend(value.filter(|_| state == "C"));
        }
        reading.push(row);
        last = Some(line);
    }
    let Some(line) = last else { return };
    let mut table = reading.table("txgs");
    table.table.scope = pool;
    table.gauge("count", Some(births_ns.len() as f64), line);
    for ((_, figure), values) in FIGURES.iter().zip(&values) {
        table.gauge(&format!("{figure}_median"), median(values), line);
    }
    let steps: Vec<f64> = births_ns.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if let Some(step_ns) = median(&steps).filter(|step| *step > 0.0) {
        table.gauge("interval_ns_median", Some(step_ns), line);
        table.rate("per_second", Some(1e9 / step_ns), line);
    }
    reading.push(table);
}
