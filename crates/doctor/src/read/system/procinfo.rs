//! `procinfo`: use of the CPUs since boot with paging beside it, memory, swap and load, and the
//! interrupts by line.
//!
//! Two columns stand side by side: what is left of a line is the CPUs', what is right is the
//! kernel's counters. Times are `6d 05:04:06.55`; only the percentages say how the CPUs were used.

use std::sync::LazyLock;

use regex::Regex;

use super::host;
use crate::evidence::CpuUse;
use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::{Reading, Rows};
use crate::read::text::section::Section;

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern")
}

static USED: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"^(user|nice|system|IOwait|hw irq|sw irq|steal|guest|idle)\s*:",
        r"\s+(?:\d+[wd] )*(?:\d+d )?[\d:]+[.,]\d+\s+([\d.,]+)%(.*)$",
    ))
});
static UP: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r"^uptime\s*:\s+(?:(\d+)w )?(?:(\d+)d )?(\d+):(\d\d):(\d\d[.,]\d+)(.*)$")
});
static COUNTER: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"^\s+((?:page|swap) [a-z]+|context|intr|procs)\s*:\s*(\d+)\s*$"));
static BOOT: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r"^Bootup: .*Load average:\s+(\d+[.,]\d+) (\d+[.,]\d+) (\d+[.,]\d+)\s+(\d+)/(\d+)")
});
static MEMORY: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"^(RAM|Swap|Mem):\s+(\d+)\s+(\d+)\s+(\d+)(?:\s+(\d+))?\s*$"));
static INTERRUPT: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"irq\s*(\d+):\s+(\d+)\s+(\S.*?)(?:\s{2,}|$)"));

/// Whether a line belongs to procinfo once it has begun: `free` has a line for swap too.
pub(crate) fn is_of(text: &str) -> bool {
    is_row(text) || MEMORY.is_match(text.trim())
}

/// Whether a line is one of procinfo.
pub(crate) fn is_row(text: &str) -> bool {
    let text = text.trim();
    text.split_whitespace().eq(["Memory:", "Total", "Used", "Free", "Buffers"])
        || USED.is_match(text)
        || UP.is_match(text)
        || BOOT.is_match(text)
        || text.starts_with("RAM:") && MEMORY.is_match(text)
        || text.starts_with("irq ") && INTERRUPT.is_match(text)
}

/// Reads procinfo.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut used: Option<CpuUse> = None;
    let mut counters = reading.table("procinfo");
    let mut memory = reading.table("meminfo").taken(section.hint.time_s);
    for line in section.lines {
        let text = line.text.trim();
        if let Some(found) = USED.captures(text) {
            let source = reading.at(line);
            let used =
                used.get_or_insert_with(|| CpuUse { since_boot: true, ..CpuUse::none(source) });
            add(used, &found[1], number::percent(&found[2]));
            counter(&found[3], line, &mut counters);
        } else if let Some(found) = UP.captures(text) {
            let part = |at: usize, seconds: f64| {
                let cell = found.get(at).and_then(|cell| number::plain(cell.as_str()));
                cell.map_or(0.0, |cell| cell * seconds)
            };
            let days = part(1, 7.0 * 86_400.0) + part(2, 86_400.0);
            let up = days + part(3, 3600.0) + part(4, 60.0) + part(5, 1.0);
            reading.evidence.host.uptime_s = Some(reading.said(up, line));
            counter(&found[6], line, &mut counters);
        } else if let Some(found) = BOOT.captures(text) {
            let load = [1, 2, 3].map(|at| number::plain(&found[at]).unwrap_or(0.0));
            reading.evidence.host.load = Some(reading.said(load, line));
            counters.gauge("running", number::plain(&found[4]), line);
            counters.gauge("threads", number::plain(&found[5]), line);
        } else if let Some(found) = MEMORY.captures(text) {
            put_memory(&found, line, &mut memory, reading);
        } else if text.starts_with("irq") && INTERRUPT.is_match(text) {
            for found in INTERRUPT.captures_iter(text) {
                let mut table = reading.table("interrupts").scope(found[1].to_owned());
                table.counter("sum", number::plain(&found[2]), line);
                table.text("what", &found[3], line);
                reading.push(table);
            }
        } else if !text.starts_with("Memory:") {
            reading.leave(line);
        }
    }
    reading.evidence.cpu.extend(used);
    reading.push(memory);
    reading.push(counters);
}

fn add(used: &mut CpuUse, name: &str, percent: Option<f64>) {
    let percent = percent.unwrap_or(0.0);
    let slot = match name {
        "user" | "nice" => &mut used.user,
        "system" => &mut used.system,
        "idle" => &mut used.idle,
        "IOwait" => &mut used.iowait,
        "steal" => &mut used.steal,
        // What guests use is in the user's already.
        "guest" => return,
        _ => &mut used.interrupt,
    };
    *slot += percent;
}

/// A counter at the right of a line.
fn counter(text: &str, line: &Line<'_>, counters: &mut Rows) {
    if let Some(found) = COUNTER.captures(text) {
        counters.counter(&found[1].replace(' ', "_"), number::plain(&found[2]), line);
    }
}

/// Total, used, free and, of memory, what is in buffers; all in KiB.
fn put_memory(
    found: &regex::Captures<'_>,
    line: &Line<'_>,
    memory: &mut Rows,
    reading: &mut Reading<'_>,
) {
    let bytes = |at: usize| {
        let cell = found.get(at).and_then(|cell| number::plain(cell.as_str()));
        cell.map(|kibibytes| kibibytes * 1024.0)
    };
    let names = match &found[1] {
        "Swap" => ["SwapTotal_bytes", "swap_used_bytes", "SwapFree_bytes", ""],
        _ => ["MemTotal_bytes", "used_bytes", "MemFree_bytes", "Buffers_bytes"],
    };
    for (at, name) in names.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
        memory.gauge(name, bytes(at + 2), line);
    }
    if &found[1] != "Swap"
        && let Some(total) = bytes(2)
    {
        let total = reading.said(total as u64, line);
        host::set(&mut reading.evidence.host.ram_bytes, total);
    }
}
