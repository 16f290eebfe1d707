//! `/proc/diskstats`, and the difference of two readings: the figures of `iostat -x`, so the same
//! signs recognise a saturated disk.

use std::collections::HashMap;

use super::{Difference, Moment, moment_of};
use crate::evidence::{Evidence, Number, Table};
use crate::read::lines::{FORMAT, Format};

/// `/proc/diskstats` of any kernel: a name between numbers.
pub(crate) static DISKSTATS: Format = Format {
    name: "diskstats",
    shapes: &[concat!(
        r"^\d+\s+\d+\s+(?<scope>\S+)\s+(?<counter_reads>\d+)\s+\d+\s+(?<counter_read_bytes>\d+)",
        r"\s+(?<counter_read_ms>\d+)\s+(?<counter_writes>\d+)\s+\d+",
        r"\s+(?<counter_written_bytes>\d+)\s+(?<counter_write_ms>\d+)\s+\d+",
        r"\s+(?<counter_busy_ms>\d+)(?:\s+(?<counter_queued_ms>\d+))?(?:\s+\d+)*$",
    )],
    table: "diskstats",
    each: true,
    scales: &[("read_bytes", 512.0), ("written_bytes", 512.0)],
    ..FORMAT
};

/// Adds the difference of two readings for each disk that was in use.
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
        // A busy disk that completes no request may be the one that all threads wait for, so it
        // stays.
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
        let mut table = Table { scope: end.scope.clone(), ..Table::named("iostat") };
        for (name, value) in figures {
            let is_rate = name.ends_with("_per_s");
            let value = if is_rate { Number::Rate(value) } else { Number::Gauge(value) };
            table.add(name, Some(value), source);
        }
        found.push(table);
    }
    evidence.tables.extend(found);
}
