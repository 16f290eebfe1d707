//! What disks tell of themselves: the attributes of `smartctl -A`, `pg_test_fsync`.

use std::sync::LazyLock;

use regex::Regex;

use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern")
}

static ATTRIBUTE: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"^\s*\d+\s+([A-Z][A-Za-z0-9_-]+)\s+0x[0-9a-f]{4}\s+\d+\s+\d+\s+(?:\d+|---)",
        r"\s+.*?\s(\d+)(?:\s+\(.*\))?\s*$",
    ))
});
static SYNCS: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"^\s*(open_datasync|fdatasync|fsync|fsync_writethrough|open_sync)",
        r"\s+([\d.]+)(?: ops/sec)?\s+(\d+)(?: usecs/op)?\s*$",
    ))
});

/// Whether a line is a row of `pg_test_fsync`.
pub(crate) fn is_sync_row(text: &str) -> bool {
    SYNCS.is_match(text)
}

/// Whether a line is an attribute of a disk as smartctl prints it.
pub(crate) fn is_attribute(text: &str) -> bool {
    ATTRIBUTE.is_match(text)
}

/// Reads the attributes of smartctl: their raw figures.
pub(crate) fn read_attributes(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut table = reading.table("smart");
    for line in section.lines {
        match ATTRIBUTE.captures(&line.text) {
            Some(found) => table.gauge(&found[1], number::plain(&found[2]), line),
            None if line.text.trim_start().starts_with("ID#") => {}
            None => reading.leave(line),
        }
    }
    reading.push(table);
}

/// Reads `pg_test_fsync`: how many synchronous writes a second.
pub(crate) fn read_syncs(section: &Section<'_>, reading: &mut Reading<'_>) {
    for line in section.lines {
        let Some(found) = SYNCS.captures(&line.text) else {
            reading.leave(line);
            continue;
        };
        let mut table = reading.table("pg_test_fsync").scope(&found[1]);
        table.gauge("ops_per_s", number::plain(&found[2]), line);
        reading.push(table);
    }
}

#[cfg(test)]
mod tests {
    use crate::evidence::Evidence;
    use crate::facts::Facts;
    use crate::read::{finish, read_bytes};

    fn gauge(text: &str, table: &str, scope: &str, figure: &str) -> Option<f64> {
        let mut evidence = Evidence::default();
        read_bytes(&mut evidence, "x.txt", text.as_bytes());
        finish(&mut evidence);
        Facts::new(evidence).gauge_of(table, scope, figure).ok()
    }

    #[test]
    fn the_figures_of_disks_are_read() {
        let gstat = "dT: 1.001s  w: 1.000s\n L(q)  ops/s    r/s   kBps   ms/r    w/s   kBps   \
                     ms/w   %busy Name\n   10     95     15    300  120.5     80   1000   99.1  \
                     100.2| ada3\n    0      3      1      4    0.5      2     16    0.2    0.1| \
                     ada0\n";
        assert_eq!(gauge(gstat, "iostat", "ada3", "util_percent"), Some(100.2));
        assert_eq!(gauge(gstat, "iostat", "ada", "r_await"), Some(120.5));
        let smart = "ID# ATTRIBUTE_NAME          FLAG     VALUE WORST THRESH TYPE      UPDATED  \
                     WHEN_FAILED RAW_VALUE\n197 Current_Pending_Sector  0x0032   200   200   000   \
                      Old_age   Always       -       48\n";
        assert_eq!(gauge(smart, "smart", ".*", "Current_Pending_Sector"), Some(48.0));
        let syncs = "        fdatasync                           120.5 ops/sec    8298 usecs/op\n";
        assert_eq!(gauge(syncs, "pg_test_fsync", "sync", "ops_per_s"), Some(120.5));
    }
}
