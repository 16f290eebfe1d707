//! A screen of `btop` or `bpytop` that was copied: boxes drawn around meters and the list.
//!
//! The boxes and graphs are taken off. The list's percent is of all CPUs, unless somebody chose
//! "per-core", which shows only where one is above 100.

use std::sync::LazyLock;

use regex::Regex;

use super::htop;
use crate::evidence::{OneCpu, Thread};
use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

static WHOLE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\bCPU\s+(\d{1,3})%").expect("a constant pattern"));
static ONE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\bC(\d{1,4})\s+(\d{1,3})%").expect("a constant pattern"));
static LOAD: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\bload av(?:era)?ge?:?\s+(\d+\.?\d*)\s+(\d+\.?\d*)\s+(\d+\.?\d*)")
        .expect("a constant pattern")
});
static ROW: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(\d+)\s+(\S.*?)\s+(\d+(?:[.,]\d+)?[KMGT]?i?B?)\s+(\d+(?:[.,]\d+)?)$")
        .expect("a constant pattern")
});

/// Whether a line begins a screen: the box of the CPU, or the heading of the list.
pub(crate) fn begins(text: &str) -> bool {
    text.contains('┌') && text.contains("cpu┌") && text.contains("menu") || is_heading(text)
}

fn is_heading(text: &str) -> bool {
    text.contains("Pid:") && text.contains("Program:") && text.contains("Cpu%")
}

/// Whether a character is of a box or a graph.
fn is_drawn(c: char) -> bool {
    matches!(c, '─'..='╿' | '■'..='◿' | '▀'..='▟' | '⠀'..='⣿' | '↑' | '↓' | '¹' | '²' | '³' | '⁴')
}

/// Reads the screen.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut list = false;
    let mut rows: Vec<Thread> = Vec::new();
    let begun = reading.evidence.single_cpus.len();
    for line in section.lines {
        let bare: String = line.text.chars().map(|c| if is_drawn(c) { ' ' } else { c }).collect();
        let text = bare.split_whitespace().collect::<Vec<_>>().join(" ");
        if is_heading(&text) {
            list = true;
            reading.list += 1;
        } else if let Some(thread) = row(&text, line, reading).filter(|_| list) {
            rows.push(thread);
        } else if !meters(&text, begun, line, reading) && !is_frame(&line.text, &text) {
            reading.leave(line);
        }
    }
    let per_core = rows.iter().any(|row| row.machine_percent.is_some_and(|share| share > 100.0));
    for mut row in rows {
        if per_core {
            row.cpu_percent = row.machine_percent.take();
        }
        reading.evidence.threads.push(row);
    }
}

/// A border with the names of a box and its keys, or nothing but drawing.
fn is_frame(line: &str, bare: &str) -> bool {
    bare.is_empty() || line.contains(['┌', '└', '╭', '╰', '┐', '┘'])
}

fn row(text: &str, line: &Line<'_>, reading: &Reading<'_>) -> Option<Thread> {
    let found = ROW.captures(text)?;
    let name = found[2].split_whitespace().next()?;
    Some(Thread {
        id: found[1].parse().ok(),
        machine_percent: number::percent(&found[4]),
        ..reading.thread(name.to_owned(), line)
    })
}

/// Reads the meters of a line; whether there are any.
fn meters(text: &str, begun: usize, line: &Line<'_>, reading: &mut Reading<'_>) -> bool {
    let mut any = false;
    if let Some(percent) = WHOLE.captures(text).and_then(|found| number::plain(&found[1])) {
        let used = htop::busy(percent, line, reading);
        reading.evidence.cpu.push(used);
        any = true;
    }
    for found in ONE.captures_iter(text) {
        let Some(percent) = number::plain(&found[2]) else { continue };
        let used = htop::busy(percent, line, reading);
        let singles = &mut reading.evidence.single_cpus;
        match singles[begun..].iter_mut().find(|one| one.name == found[1]) {
            Some(one) => one.used = used,
            None => singles.push(OneCpu { name: found[1].to_owned(), used }),
        }
        any = true;
    }
    if let Some(found) = LOAD.captures(text) {
        let part = |at: usize| number::plain(&found[at]);
        if let (Some(one), Some(five), Some(fifteen)) = (part(1), part(2), part(3)) {
            reading.evidence.host.load = Some(reading.said([one, five, fifteen], line));
        }
        any = true;
    }
    any
}
