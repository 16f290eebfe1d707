//! `vmstat -s`: sums since boot, a figure and its name a line.

use std::sync::LazyLock;

use regex::Regex;

use crate::evidence::CpuUse;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

static ROW: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = concat!(
        r"^(\d+) (?:([KkMm]) )?((?:total|used|active|inactive|free|buffer) (?:memory|swap)",
        r"|swap cache|(?:non-nice user|nice user|system|idle|IO-wait|IRQ|softirq|stolen",
        r"|non-nice guest|nice guest) cpu ticks|pages (?:paged|swapped) (?:in|out)",
        r"|[KM] (?:paged|swapped) (?:in|out)|interrupts|CPU context switches|boot time|forks)$",
    );
    Regex::new(pattern).expect("a constant pattern")
});

/// Whether a line is one of the sums.
pub(crate) fn is_row(text: &str) -> bool {
    ROW.is_match(text.trim())
}

/// Reads the sums.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut memory = reading.table("meminfo");
    let mut sums = reading.table("vmstat_sums");
    let mut ticks: Option<(CpuUse, f64)> = None;
    for line in section.lines {
        let Some(found) = ROW.captures(line.text.trim()) else {
            reading.leave(line);
            continue;
        };
        let Some(value) = number::plain(&found[1]) else { continue };
        let unit = match found.get(2).map(|unit| unit.as_str()) {
            Some("M") => 1_048_576.0,
            Some("m") => 1_000_000.0,
            Some("k") => 1000.0,
            _ => 1024.0,
        };
        let name = match &found[3] {
            "total memory" => "MemTotal_bytes",
            "free memory" => "MemFree_bytes",
            "buffer memory" => "Buffers_bytes",
            "total swap" => "SwapTotal_bytes",
            "free swap" => "SwapFree_bytes",
            _ => "",
        };
        if !name.is_empty() {
            memory.gauge(name, Some(value * unit), line);
        } else if let Some(state) = found[3].strip_suffix(" cpu ticks") {
            let none = || CpuUse { since_boot: true, ..CpuUse::none(reading.at(line)) };
            let (used, all) = ticks.get_or_insert_with(|| (none(), 0.0));
            let part = match state {
                "non-nice user" | "nice user" => &mut used.user,
                "system" => &mut used.system,
                "idle" => &mut used.idle,
                "IO-wait" => &mut used.iowait,
                "IRQ" | "softirq" => &mut used.interrupt,
                "stolen" => &mut used.steal,
                // What guests use is in the user's part.
                _ => continue,
            };
            *part += value;
            *all += value;
        } else {
            sums.counter(&found[3].replace(' ', "_"), Some(value), line);
        }
    }
    if let Some((mut used, all)) = ticks.filter(|(_, all)| *all > 0.0) {
        let parts = [
            &mut used.user,
            &mut used.system,
            &mut used.idle,
            &mut used.iowait,
            &mut used.interrupt,
            &mut used.steal,
        ];
        parts.into_iter().for_each(|part| *part *= 100.0 / all);
        reading.evidence.cpu.push(used);
    }
    super::memory::ram(&memory, reading);
    reading.push(memory);
    reading.push(sums);
}
