//! `dstat` and its heir `dool`: groups of columns between bars, a row an interval.
//!
//! The first row is the mean since boot. Options choose groups; each is read by the names above it,
//! and those of which nothing is known become figures of a table all the same.

use crate::evidence::CpuUse;
use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

/// Whether a line begins the output: the names of the groups, or those of their columns.
pub(crate) fn begins(text: &str) -> bool {
    let text = text.trim_start_matches('-');
    text.starts_with("total-cpu-usage") || text.starts_with("total-usage-") || is_names(text)
}

fn is_names(text: &str) -> bool {
    text.split('|').any(|group| {
        let mut words = group.split_whitespace();
        words.next() == Some("usr") && words.next() == Some("sys") && words.next() == Some("idl")
    })
}

/// Reads it.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut names: Vec<Vec<&str>> = Vec::new();
    let mut rows = 0;
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty() || text.starts_with('-') || text.starts_with("You did not select") {
            continue;
        }
        if is_names(text) {
            names = text.split('|').map(|group| group.split_whitespace().collect()).collect();
            continue;
        }
        let groups: Vec<Vec<&str>> =
            text.split('|').map(|group| group.split_whitespace().collect()).collect();
        let fits = !names.is_empty()
            && groups.len() <= names.len()
            && groups.iter().zip(&names).all(|(words, names)| words.len() == names.len());
        if !fits || !row(&names, &groups, rows == 0, line, reading) {
            reading.leave(line);
            continue;
        }
        rows += 1;
    }
}

/// One interval; whether its figures are some.
fn row(
    names: &[Vec<&str>],
    groups: &[Vec<&str>],
    since_boot: bool,
    line: &Line<'_>,
    reading: &mut Reading<'_>,
) -> bool {
    let mut used = CpuUse { since_boot, ..CpuUse::none(reading.at(line)) };
    let mut has_cpu = false;
    let mut table = reading.table("dstat_row");
    for (name, word) in names.iter().flatten().zip(groups.iter().flatten()) {
        let Some(value) = number::bytes(word) else {
            // The time of day has two words, and `-` stands where there is nothing.
            if *word == "-" || word.contains([':', '-']) {
                continue;
            }
            return false;
        };
        match *name {
            "usr" => used.user = value,
            "sys" => used.system = value,
            "idl" => used.idle = value,
            "wai" => used.iowait = value,
            "hiq" | "siq" => used.interrupt += value,
            "stl" => used.steal = value,
            _ => {
                table.gauge(name, Some(value), line);
                continue;
            }
        }
        has_cpu = true;
    }
    if has_cpu {
        reading.evidence.cpu.push(used);
    }
    reading.push(table);
    true
}
