//! Slab caches: `/proc/spl/kmem/slab`, `/proc/slabinfo`.

use std::sync::LazyLock;

use regex::Regex;

use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

static SPL_ROW: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(\S+)\s+(0x[0-9a-f]+)\s+(-|\d+)\s+(-|\d+)\s+(-|\d+)\s+(-|\d+)\s+(-|\d+)\s+(-|\d+)\s+(-|\d+)\s+(-|\d+)\s+(-|\d+)\s+(-|\d+)(?:\s+(-|\d+)\s+(-|\d+)\s+(-|\d+))?$").expect("a constant pattern")
});
static SLABINFO_ROW: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(\S+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)(?:\s*:\s*tunables\s+(\d+)\s+(\d+)\s+(\d+)\s*:\s*slabdata\s+(\d+)\s+(\d+)\s+(\d+))?$").expect("a constant pattern")
});
/// Whether a line is a row of the SPL's table.
pub(crate) fn is_spl_row(text: &str) -> bool {
    SPL_ROW.is_match(text.trim())
}

/// Reads the SPL's table.
pub(crate) fn read_spl(section: &Section<'_>, reading: &mut Reading<'_>) {
    const NAMES: [&str; 12] = [
        "size_bytes",
        "alloc_bytes",
        "slab_bytes",
        "object_bytes",
        "slabs",
        "slabs_alloc",
        "slabs_max",
        "objects",
        "objects_alloc",
        "objects_max",
        "emergency_dlock",
        "emergency_alloc",
    ];
    for line in section.lines {
        let text = line.text.trim();
        if text.starts_with("---") || text.starts_with("name ") || text.is_empty() {
            continue;
        }
        let Some(found) = SPL_ROW.captures(text) else {
            reading.leave(line);
            continue;
        };
        let mut table = reading.table("slab").scope(&found[1]).taken(section.hint.time_s);
        for (at, name) in NAMES.iter().enumerate() {
            table.gauge(
                name,
                found.get(at + 3).and_then(|cell| number::plain(cell.as_str())),
                line,
            );
        }
        // Caches that the kernel's own allocator backs show no size: what is allocated is all.
        let alloc = found.get(4).and_then(|cell| number::plain(cell.as_str()));
        if &found[3] == "-" {
            table.gauge("size_bytes", alloc, line);
        }
        table.gauge(
            "emergency_max",
            found.get(15).and_then(|cell| number::plain(cell.as_str())),
            line,
        );
        reading.push(table);
    }
}

/// Whether a line is a row of slabinfo.
pub(crate) fn is_slabinfo_row(text: &str) -> bool {
    text.contains(": slabdata")
}

/// Reads slabinfo.
pub(crate) fn read_slabinfo(section: &Section<'_>, reading: &mut Reading<'_>) {
    for line in section.lines {
        let text = line.text.trim();
        if text.starts_with('#') || text.starts_with("slabinfo") || text.is_empty() {
            continue;
        }
        let Some(found) = SLABINFO_ROW.captures(text) else {
            reading.leave(line);
            continue;
        };
        let cell = |at: usize| found.get(at).and_then(|cell| number::plain(cell.as_str()));
        let mut table = reading.table("slab").scope(&found[1]).taken(section.hint.time_s);
        table.gauge("objects_active", cell(2), line);
        table.gauge("objects", cell(3), line);
        table.gauge("object_bytes", cell(4), line);
        let bytes = |count: Option<f64>| Some(count? * cell(4)?);
        table.gauge("size_bytes", bytes(cell(3)), line);
        table.gauge("alloc_bytes", bytes(cell(2)), line);
        table.gauge("objects_per_slab", cell(5), line);
        table.gauge("pages_per_slab", cell(6), line);
        for (at, name) in [
            (7, "limit"),
            (8, "batchcount"),
            (9, "sharedfactor"),
            (10, "slabs_active"),
            (11, "slabs"),
            (12, "sharedavail"),
        ] {
            table.gauge(name, cell(at), line);
        }
        reading.push(table);
    }
}
