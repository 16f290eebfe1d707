//! Reads `lockstat` of illumos and FreeBSD, and `plockstat`: for each kind of event a heading, a
//! line of columns, and rows.
//!
//! Widths overflow, and FreeBSD's names contain blanks. Figures are therefore read from the left,
//! and the caller from the right. Stacks (`-s`) follow a row. Histograms (`-h`) follow it too, and
//! are skipped.

use super::{LockRow, LockTable, Source, number};

/// Reads the table; `None` if the text is another one.
pub(super) fn read(text: &str) -> Option<LockTable> {
    let mut table = LockTable::new(Source::Lockstat);
    let (mut kind, mut columns) = (String::new(), Vec::new());
    for (at, line) in (1..).zip(text.lines()) {
        if let Some((name, seconds)) = head(line) {
            name.clone_into(&mut kind);
            columns.clear();
            table.seconds.get_or_insert(seconds);
            continue;
        }
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let first = words.first().copied().unwrap_or_default();
        if matches!(first, "Count" | "ops/s") && words.contains(&"Caller") {
            columns = words.iter().map(|word| (*word).to_owned()).collect();
            columns.retain(|word| word != "Hottest");
            continue;
        }
        // Headings of plockstat: `Mutex block`, `R/W reader block`.
        if matches!(words.len(), 2..=4)
            && line.bytes().all(|b| b.is_ascii_alphabetic() || b" /".contains(&b))
        {
            line.trim().clone_into(&mut kind);
            columns.clear();
            continue;
        }
        if columns.is_empty() || words.is_empty() || line.starts_with("----") {
            continue;
        }
        if let ([function], Some(row)) = (&words[..], table.rows.last_mut())
            && (function.contains('`') || function.contains("+0x"))
        {
            row.follow(function);
            continue;
        }
        match row(&words, &columns, &kind, table.seconds) {
            Some(row) => table.add(LockRow { line: at, ..row }),
            // Histograms are not rows.
            None if line.contains('|') || line.contains("Distribution") => {}
            None => table.leave(at),
        }
    }
    table.end()
}

/// `Adaptive mutex spin: 4218 events in 10.016 seconds (421 events/sec)`.
fn head(line: &str) -> Option<(&str, f64)> {
    let (name, rest) = line.split_once(": ")?;
    let (events, rest) = rest.split_once(" events in ")?;
    number(events.trim())?;
    let (seconds, _) = rest.split_once(" seconds")?;
    Some((name.trim(), number(seconds)?))
}

fn row(words: &[&str], columns: &[String], kind: &str, seconds: Option<f64>) -> Option<LockRow> {
    let figures = columns.iter().position(|column| column == "Lock" || column == "CPU+PIL")?;
    let [before, names] = [words.get(..figures)?, words.get(figures..)?];
    let (caller, lock) = names.split_last()?;
    if lock.is_empty() {
        return None;
    }
    let value = |name: &str| {
        let at = columns.iter().position(|column| column == name)?;
        number(before.get(at)?)
    };
    let waits = match value("Count") {
        Some(count) => count,
        None => value("ops/s")? * seconds.unwrap_or(1.0),
    };
    Some(LockRow {
        lock: plain(&lock.join(" ")).to_owned(),
        caller: plain(caller).to_owned(),
        kind: kind.to_owned(),
        waits: waits as u64,
        mean_wait_ns: value("nsec"),
        ..LockRow::default()
    })
}

/// A name without the offset.
fn plain(name: &str) -> &str {
    name.rsplit_once("+0x").map_or(name, |(name, _)| name)
}
