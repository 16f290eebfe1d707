//! Memory: `/proc/meminfo`, `free`, `/proc/vmstat`, `/proc/pressure`, buddyinfo.

use std::sync::LazyLock;

use regex::Regex;

use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

static MEMINFO: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^([A-Z][A-Za-z0-9_()]+):\s+(\d[\d.,]*)\s*(kB|KiB|MB|MiB|GB|GiB)?$")
        .expect("a constant pattern")
});

/// Whether a line is one of `/proc/meminfo`.
pub(crate) fn is_meminfo_row(text: &str) -> bool {
    const KNOWN: [&str; 22] = [
        "MemTotal:",
        "MemFree:",
        "MemAvailable:",
        "Buffers:",
        "Cached:",
        "SwapTotal:",
        "SwapFree:",
        "SwapCached:",
        "Slab:",
        "SReclaimable:",
        "SUnreclaim:",
        "Shmem:",
        "AnonPages:",
        "Dirty:",
        "Writeback:",
        "Active:",
        "Inactive:",
        "HugePages_Total:",
        "VmallocUsed:",
        "AnonHugePages:",
        "Percpu:",
        "Active(anon):",
    ];
    let text = text.trim();
    KNOWN.iter().any(|known| text.starts_with(known)) && MEMINFO.is_match(text)
}

/// Reads `/proc/meminfo`, whole or some lines of it.
pub(crate) fn read_meminfo(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut table = reading.table("meminfo").taken(section.hint.time_s);
    for line in section.lines {
        let Some(found) = MEMINFO.captures(line.text.trim()) else {
            reading.leave(line);
            continue;
        };
        let value = number::plain(&found[2]);
        let unit = match found.get(3).map(|unit| unit.as_str()) {
            Some("kB" | "KiB") => Some(1024.0),
            Some("MB" | "MiB") => Some(1_048_576.0),
            Some(_) => Some(1_073_741_824.0),
            None => None,
        };
        let Some(unit) = unit else {
            table.gauge(&found[1], value, line);
            continue;
        };
        let bytes = value.map(|value| value * unit);
        table.gauge(&format!("{}_bytes", &found[1]), bytes, line);
        if &found[1] == "MemTotal" {
            reading.evidence.host.ram_bytes = bytes.map(|bytes| reading.said(bytes as u64, line));
        }
    }
    reading.push(table);
}

/// Columns of `free` with the name of `/proc/meminfo`.
const FREE_COLUMNS: [(&str, &str); 8] = [
    ("total", "MemTotal_bytes"),
    ("free", "MemFree_bytes"),
    ("shared", "Shmem_bytes"),
    ("available", "MemAvailable_bytes"),
    ("buffers", "Buffers_bytes"),
    ("cached", "Cached_bytes"),
    ("used", "used_bytes"),
    ("buff/cache", "buff_cache_bytes"),
];

/// Reads `free`. Its unit is not printed: KiB, unless that would be less memory than any machine
/// that runs ZFS has (below 256 MiB); then it was `free -m`, or `-g`.
pub(crate) fn read_free(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut names: Vec<&str> = Vec::new();
    let mut unit = None;
    let mut table = reading.table("meminfo").taken(section.hint.time_s);
    for line in section.lines {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        if words.first() == Some(&"total") {
            names = words;
            continue;
        }
        let is_row = words
            .first()
            .is_some_and(|word| matches!(*word, "Mem:" | "Swap:" | "Speicher:" | "Total:" | "-/+"));
        if !is_row || names.is_empty() {
            reading.leave(line);
            continue;
        }
        let plain = words.get(1).and_then(|word| number::plain(word));
        let unit_bytes = *unit.get_or_insert_with(|| free_unit(plain));
        let figure = |text: &str| match number::plain(text) {
            Some(value) => Some(value * unit_bytes),
            None => number::bytes(text),
        };
        for (name, cell) in names.iter().zip(words.iter().skip(1)) {
            let known = FREE_COLUMNS.iter().find(|(column, _)| column == name);
            match (words[0], known) {
                ("Swap:", _) => {
                    let name = if *name == "total" {
                        "SwapTotal_bytes".to_owned()
                    } else if *name == "free" {
                        "SwapFree_bytes".to_owned()
                    } else {
                        format!("swap_{name}_bytes")
                    };
                    table.gauge(&name, figure(cell), line);
                }
                ("Mem:" | "Speicher:", Some((_, figure_name))) => {
                    table.gauge(figure_name, figure(cell), line);
                    if *name == "total" && reading.evidence.host.ram_bytes.is_none() {
                        reading.evidence.host.ram_bytes =
                            figure(cell).map(|bytes| reading.said(bytes as u64, line));
                    }
                }
                _ => {}
            }
        }
    }
    reading.push(table);
}

fn free_unit(total: Option<f64>) -> f64 {
    match total {
        Some(total) if total < 256.0 => 1_073_741_824.0,
        Some(total) if total < 262_144.0 => 1_048_576.0,
        // `free -b` of anything from 1 GiB up would be a terabyte in KiB.
        Some(total) if total >= 8_589_934_592.0 => 1.0,
        _ => 1024.0,
    }
}

/// Whether a line is one of `/proc/vmstat`.
pub(crate) fn is_vmstat_row(text: &str) -> bool {
    const MARKS: [&str; 15] = [
        "nr_",
        "pgscan",
        "pgsteal",
        "pgfault",
        "pgmajfault",
        "pgpgin",
        "pgpgout",
        "pswp",
        "compact_",
        "allocstall",
        "kswapd_",
        "slabs_scanned",
        "workingset_",
        "thp_",
        "numa_hit",
    ];
    let mut words = text.split_whitespace();
    words.next().is_some_and(|name| MARKS.iter().any(|mark| name.starts_with(mark)))
        && words.next().is_some_and(|value| value.bytes().all(|byte| byte.is_ascii_digit()))
        && words.next().is_none()
}

/// Reads `/proc/vmstat`: `nr_*` are levels, the rest counts since boot.
pub(crate) fn read_vmstat_file(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut table = reading.table("proc_vmstat").taken(section.hint.time_s);
    for line in section.lines {
        let mut words = line.text.split_whitespace();
        match (words.next(), words.next().and_then(number::plain), words.next()) {
            (Some(name), Some(value), None) if name.starts_with("nr_") => {
                table.gauge(name, Some(value), line)
            }
            (Some(name), Some(value), None) => table.counter(name, Some(value), line),
            _ => reading.leave(line),
        }
    }
    reading.push(table);
}

static PRESSURE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:(?:/proc/pressure/)?(cpu|io|memory|irq)[: ]+)?(some|full) avg10=([\d.]+) avg60=([\d.]+) avg300=([\d.]+) total=(\d+)").expect("a constant pattern")
});

/// Reads `/proc/pressure/*`; the resource is in the path or before the colon of `grep`.
pub(crate) fn read_pressure(section: &Section<'_>, reading: &mut Reading<'_>) {
    let resource = section.hint.path.as_deref().and_then(|path| {
        let file = path.rsplit('/').next()?.split('.').next()?;
        ["cpu", "io", "memory", "irq"].into_iter().find(|name| file.ends_with(name))
    });
    for line in section.lines {
        let Some(found) = PRESSURE.captures(line.text.trim()) else {
            reading.leave(line);
            continue;
        };
        let mut table = reading.table("pressure").taken(section.hint.time_s);
        table.table.scope = found.get(1).map(|name| name.as_str()).or(resource).map(str::to_owned);
        let kind = &found[2];
        for (at, span) in [(3, "avg10"), (4, "avg60"), (5, "avg300")] {
            table.gauge(&format!("{kind}_{span}_percent"), number::plain(&found[at]), line);
        }
        table.counter(&format!("{kind}_total_us"), number::plain(&found[6]), line);
        reading.push(table);
    }
}

static BUDDY: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^Node\s+(\d+), zone\s+(\S+)\s+(\d[\d\s]*)$").expect("a constant pattern")
});

/// Reads `/proc/buddyinfo`: free blocks by order.
pub(crate) fn read_buddyinfo(section: &Section<'_>, reading: &mut Reading<'_>) {
    for line in section.lines {
        let Some(found) = BUDDY.captures(line.text.trim()) else {
            reading.leave(line);
            continue;
        };
        let mut table = reading
            .table("buddyinfo")
            .scope(format!("node {} {}", &found[1], &found[2]))
            .taken(section.hint.time_s);
        for (order, count) in found[3].split_whitespace().enumerate().take(32) {
            table.gauge(&format!("order{order}"), number::plain(count), line);
        }
        reading.push(table);
    }
}
