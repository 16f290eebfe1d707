//! The lines of `top` that say how the CPUs were used: all together or one by one, in any language.
//!
//! Words are translated, their order is not: where a line of Linux top has words that nobody knows,
//! its figures are taken by their places. The graph of newer ones (`45.3/10.0  55[||||`) tells user
//! and system.

use std::sync::LazyLock;

use regex::Regex;

use crate::evidence::{CpuUse, OneCpu};
use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::Reading;

static LABEL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:%?C[Pp][Uu]\s?(?:\(s\)|(\d+))?\s*:|CPU states?:|\d+ CPUs?:)\s*(.*)$")
        .expect("a constant pattern")
});
/// A second CPU on the same line.
static NEXT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\s%?Cpu\s?\d+\s*:").expect("a constant pattern"));
static PART: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(\d+(?:[.,]\d+)?)\s*%?\s*(user|nice|system|interrupt|idle|kernel|iowait|swap|us|sy|ni|id|wa|hi|si|st)\b").expect("a constant pattern")
});
static FIGURE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(\d+(?:[.,]\d+)?)\s*%?\s*\p{L}").expect("a constant pattern"));
static GRAPH: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(\d+(?:[.,]\d+)?)\s*/\s*(\d+(?:[.,]\d+)?)\s+\d+\s*\[")
        .expect("a constant pattern")
});

/// Reads such a line; whether it was one. All CPUs together go into the evidence, single ones into
/// `singles`.
pub(crate) fn read(line: &Line<'_>, singles: &mut Vec<OneCpu>, reading: &mut Reading<'_>) -> bool {
    let mut rest = line.text.trim();
    let mut any = false;
    if !LABEL.is_match(rest) {
        return false;
    }
    while !rest.is_empty() {
        let (this, behind) = match NEXT.find(rest) {
            Some(next) => rest.split_at(next.start()),
            None => (rest, ""),
        };
        rest = behind.trim_start();
        let Some(found) = LABEL.captures(this.trim()) else { break };
        let linux = found.get(1).is_some() || this.contains("(s)");
        let Some(used) = used(&found[2], linux, line, reading) else { break };
        match found.get(1) {
            Some(name) => singles.push(OneCpu { name: name.as_str().to_owned(), used }),
            None => reading.evidence.cpu.push(used),
        }
        any = true;
    }
    any
}

fn used(text: &str, linux: bool, line: &Line<'_>, reading: &Reading<'_>) -> Option<CpuUse> {
    let parts = PART.captures_iter(text).count();
    let figures: Vec<f64> =
        FIGURE.captures_iter(text).filter_map(|found| number::plain(&found[1])).collect();
    let mut used = CpuUse::none(reading.at(line));
    if let Some(found) = GRAPH.captures(text) {
        used.user = number::plain(&found[1])?;
        used.system = number::plain(&found[2])?;
        used.idle = (100.0 - used.user - used.system).max(0.0);
    } else if linux && parts < figures.len() && (7..=8).contains(&figures.len()) {
        let at = |place: usize| figures.get(place).copied().unwrap_or_default();
        used.user = at(0) + at(2);
        used.system = at(1);
        used.idle = at(3);
        used.iowait = at(4);
        used.interrupt = at(5) + at(6);
        used.steal = at(7);
    } else if parts > 0 {
        by_words(text, &mut used);
    } else {
        return None;
    }
    Some(used)
}

/// The parts of a heading such as `0.1 us, 49.8 sy, ...` or `8.0% user, ... 60.1% idle`.
fn by_words(text: &str, used: &mut CpuUse) {
    for found in PART.captures_iter(text) {
        let value = number::plain(&found[1]).unwrap_or(0.0);
        match &found[2] {
            "us" | "user" | "ni" | "nice" => used.user += value,
            "sy" | "system" | "kernel" => used.system += value,
            "id" | "idle" => used.idle += value,
            "wa" | "iowait" => used.iowait += value,
            "hi" | "si" | "interrupt" => used.interrupt += value,
            _ => used.steal += value,
        }
    }
}
