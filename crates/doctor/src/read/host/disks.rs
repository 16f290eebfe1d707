//! `/proc/diskstats`, and what two readings of it show: the figures that `iostat -x` prints, so a
//! disk that limits is known by the same signs.

use std::collections::HashMap;

use super::{Difference, Moment, made, moment_of};
use crate::evidence::{Evidence, Figure, Number, Table};
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

/// Whether a line is a row: a name between numbers.
pub(crate) fn is_row(text: &str) -> bool {
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let mut words = text.split_whitespace();
    let is_numbered = words.by_ref().take(2).all(is_number) && words.next().is_some();
    is_numbered && words.clone().count() >= 10 && words.all(is_number)
}

/// Reads `/proc/diskstats`.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    for line in section.lines {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        let [
            _,
            _,
            device,
            reads,
            _,
            read,
            read_ms,
            writes,
            _,
            written,
            write_ms,
            _,
            busy_ms,
            rest @ ..,
        ] = words.as_slice()
        else {
            reading.leave(line);
            continue;
        };
        let mut table = reading.table("diskstats").scope(*device).taken(section.hint.time_s);
        let bytes = |sectors: &str| number::plain(sectors).map(|sectors| sectors * 512.0);
        table.counter("reads", number::plain(reads), line);
        table.counter("read_bytes", bytes(read), line);
        table.counter("read_ms", number::plain(read_ms), line);
        table.counter("writes", number::plain(writes), line);
        table.counter("written_bytes", bytes(written), line);
        table.counter("write_ms", number::plain(write_ms), line);
        table.counter("busy_ms", number::plain(busy_ms), line);
        table.counter("queued_ms", rest.first().and_then(|word| number::plain(word)), line);
        reading.push(table);
    }
}

/// Adds what two readings show, disk by disk; one without a request is left out.
pub(crate) fn finish(evidence: &mut Evidence, seconds: f64) {
    let of_disks = || evidence.tables.iter().filter(|table| table.name == "diskstats");
    let is_start = |table: &&Table| moment_of(table) == Some(Moment::Start);
    let start: HashMap<Option<&str>, &Table> =
        of_disks().filter(is_start).map(|table| (table.scope.as_deref(), table)).collect();
    let mut found = Vec::new();
    for end in of_disks().filter(|table| moment_of(table) == Some(Moment::End)) {
        let Some(start) = start.get(&end.scope.as_deref()) else { continue };
        let growth = |name| Difference { start: Some(start), end }.growth(name).unwrap_or(0.0);
        let (reads, writes) = (growth("reads"), growth("writes"));
        let Some(source) = end.figures.first().map(|figure| &figure.source) else { continue };
        // One that answers nothing may be what all wait for.
        if reads + writes + growth("busy_ms") <= 0.0 {
            continue;
        }
        let mean = |spent: f64, requests: f64| if requests > 0.0 { spent / requests } else { 0.0 };
        let figures = [
            ("r_per_s", reads / seconds),
            ("w_per_s", writes / seconds),
            ("rkB_per_s", growth("read_bytes") / 1024.0 / seconds),
            ("wkB_per_s", growth("written_bytes") / 1024.0 / seconds),
            ("r_await", mean(growth("read_ms"), reads)),
            ("w_await", mean(growth("write_ms"), writes)),
            ("aqu-sz", growth("queued_ms") / 1000.0 / seconds),
            ("util_percent", (growth("busy_ms") / 10.0 / seconds).min(100.0)),
        ];
        let figure = |(name, value): (&str, f64)| Figure {
            name: name.to_owned(),
            value: if name.ends_with("_per_s") {
                Number::Rate(value)
            } else {
                Number::Gauge(value)
            },
            source: source.clone(),
        };
        found.push(Table {
            scope: end.scope.clone(),
            figures: figures.map(figure).into(),
            ..made("iostat")
        });
    }
    evidence.tables.extend(found);
}
