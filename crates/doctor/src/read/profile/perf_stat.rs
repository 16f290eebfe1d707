//! `perf stat`: counters of a command or the machine, with what perf derives from them.
//!
//! Events count whole things, so every mark inside such a figure divides thousands, whichever the
//! language; in figures with a unit, and behind `#`, the last mark is the decimal one.

use std::sync::LazyLock;

use regex::Regex;

use crate::evidence::{Thread, Timing};
use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::{Reading, Rows};
use crate::read::text::section::Section;

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern")
}

static EVENT: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"^(\d[\d., ']*|<not \w+>)\s+(?:(msec|Joules|ns)\s+)?([A-Za-z][\w./:=,-]*)",
        r"(?: \((msec)\))?(?:\s+#\s+(.*?))?(?:\s+\(\s*\+-\s*([\d.,]+)%\s*\))?",
        r"(?:\s+[\[(]\s*\d+[.,]\d+%[\])])?$",
    ))
});
static DERIVED: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"^#?\s*([\d.,]+)\s*(.*?)(?:\s+[\[(]\s*\d+[.,]\d+%[\])])?$"));
static SECONDS: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r"^(\d+[.,]\d+)(?:\s+\+-\s+[\d.,]+)?\s+seconds (time elapsed|user|sys)\b")
});

/// Whom it watched: "stats for process id '3182'".
static WHOSE: LazyLock<Regex> = LazyLock::new(|| compiled(r"for (process|thread) id '(\d+)'"));
static UTILIZED: LazyLock<Regex> = LazyLock::new(|| compiled(r"#\s+([\d.,]+)\s+CPUs utilized"));

/// CPUs that it used, as stands behind its clock.
fn cpus_utilized(text: &str) -> Option<f64> {
    decimal(&UTILIZED.captures(text)?[1])
}

/// A figure whose last mark is decimal.
fn decimal(text: &str) -> Option<f64> {
    let text: String = text.chars().filter(|c| !matches!(c, ' ' | '\'')).collect();
    match text.rfind(['.', ',']) {
        Some(at) => {
            let whole: String = text[..at].chars().filter(char::is_ascii_digit).collect();
            number::plain(&format!("{whole}.{}", &text[at + 1..]))
        }
        None => number::plain(&text),
    }
}

fn whole(text: &str) -> Option<f64> {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    if text.starts_with('<') { None } else { number::plain(&digits) }
}

/// Reads `perf stat`.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut table = reading.table("perf_stat");
    let mut command = None;
    let mut whose: Option<String> = None;
    let mut seconds: [Option<f64>; 3] = [None; 3];
    let mut last = None;
    let mut event = String::new();
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty() {
            continue;
        }
        if text.starts_with("Performance counter stats") {
            command = text.split('\'').nth(1).map(str::to_owned);
            whose = WHOSE.captures(text).map(|found| format!("{} {}", &found[1], &found[2]));
            reading.list += u32::from(whose.is_some());
        } else if let Some(found) = SECONDS.captures(text) {
            let (at, name) = match &found[2] {
                "user" => (1, "user_s"),
                "sys" => (2, "system_s"),
                _ => (0, "elapsed_s"),
            };
            seconds[at] = decimal(&found[1]);
            table.gauge(name, seconds[at], line);
            last = Some(line);
        } else if let Some(found) = EVENT.captures(text) {
            event = found[3].replace('-', "_");
            let unit = found.get(2).or(found.get(4)).map(|unit| unit.as_str());
            let name = unit.map_or(event.clone(), |unit| format!("{event}_{unit}"));
            let value = if unit.is_some() { decimal(&found[1]) } else { whole(&found[1]) };
            table.gauge(&name, value, line);
            if let Some(text) = found.get(5) {
                derived(&event, text.as_str(), line, &mut table);
            }
            if let (Some(whose), Some(cpus)) = (&whose, cpus_utilized(text)) {
                let thread = Thread {
                    cpu_percent: Some(cpus * 100.0),
                    ..reading.thread(whose.clone(), line)
                };
                reading.evidence.threads.push(thread);
            }
            let spread = found.get(6).and_then(|cell| decimal(cell.as_str()));
            table.gauge(&format!("{name}_plusminus_percent"), spread, line);
        } else if text.starts_with('#') && DERIVED.is_match(text) {
            derived(&event, text, line, &mut table);
        } else {
            reading.leave(line);
        }
    }
    reading.push(table);
    if let (Some(command), [Some(real_s), Some(user_s), Some(system_s)], Some(line)) =
        (command, seconds, last)
    {
        let source = reading.at(line);
        reading.evidence.timings.push(Timing { command, real_s, user_s, system_s, source });
    }
}

/// What stands behind `#`: a rate of the event, its part of another, or a figure of its own.
fn derived(event: &str, text: &str, line: &Line<'_>, table: &mut Rows) {
    let Some(found) = DERIVED.captures(text.trim()) else { return };
    let value = decimal(&found[1]);
    let what = found[2].split("  ").next().unwrap_or_default().trim().to_lowercase();
    let scaled = |scale: f64| value.map(|value| value * scale);
    match what.as_str() {
        "" => {}
        "/sec" => table.gauge(&format!("{event}_per_s"), value, line),
        "k/sec" => table.gauge(&format!("{event}_per_s"), scaled(1e3), line),
        "m/sec" => table.gauge(&format!("{event}_per_s"), scaled(1e6), line),
        "g/sec" => table.gauge(&format!("{event}_per_s"), scaled(1e9), line),
        "insns per cycle" | "insn per cycle" => table.gauge("insn_per_cycle", value, line),
        part if part.starts_with('%') => table.gauge(&format!("{event}_percent"), value, line),
        what => table.gauge(&what.replace([' ', '/'], "_"), value, line),
    }
}
