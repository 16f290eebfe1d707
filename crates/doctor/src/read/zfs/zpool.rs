//! `zpool status` in words and devices, `zpool iostat` in all its forms.

use super::properties;
use super::zpool_histogram::{self, Histogram};
use crate::evidence::PoolLine;
use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;
use crate::read::text::words;

const FIELDS: &str = "pool id state status action see scan scrub checkpoint remove config errors \
                      dedup expand comment";

/// The field a line of `zpool status` begins.
fn field(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.trim().split_once(':')?;
    words::has(FIELDS, name.trim()).then(|| (name.trim(), rest.trim()))
}

/// Reads `zpool status` of any number of pools.
pub(crate) fn read_status(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut pool = String::new();
    let mut open: Option<PoolLine> = None;
    let mut in_config = false;
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty() {
            continue;
        }
        if text == "no pools available" {
            properties::no_pools(text, line, reading);
            continue;
        }
        if let Some((name, rest)) = field(text) {
            reading.evidence.pools.extend(open.take());
            in_config = name == "config";
            if name == "pool" {
                pool = rest.to_owned();
                continue;
            }
            let name = if name == "scrub" { "scan" } else { name };
            if !in_config {
                open = Some(pool_line(&pool, name, rest, line, reading));
            }
            continue;
        }
        if in_config {
            if !text.starts_with("NAME ") {
                let entry = pool_line(&pool, "config", text, line, reading);
                reading.evidence.pools.push(entry);
            }
            continue;
        }
        match &mut open {
            // Fields go on in indented lines.
            Some(entry) if line.text.starts_with([' ', '\t']) && entry.text.len() < 4096 => {
                entry.text.push(' ');
                entry.text.push_str(text);
            }
            _ => reading.leave(line),
        }
    }
    reading.evidence.pools.extend(open);
}

fn pool_line(
    pool: &str,
    field: &str,
    text: &str,
    line: &Line<'_>,
    reading: &Reading<'_>,
) -> PoolLine {
    PoolLine {
        pool: pool.to_owned(),
        field: field.to_owned(),
        text: text.to_owned(),
        source: reading.at(line),
    }
}

/// Whether a line is one of the two headings of `zpool iostat`.
pub(crate) fn is_iostat_heading(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.contains(&"operations") && words.contains(&"bandwidth")
        || words.contains(&"total_wait") && words.contains(&"disk_wait")
        || words.first().is_some_and(|word| matches!(*word, "pool" | "vdev"))
            && words.contains(&"alloc")
            && words.contains(&"read")
}

/// Whether a line begins `zpool iostat`, also one of its histograms.
pub(crate) fn is_iostat_beginning(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    zpool_histogram::is_heading(&words) || is_iostat_heading(text)
}

/// Reads the kstat `state` of a pool: one word.
pub(crate) fn read_state(section: &Section<'_>, reading: &mut Reading<'_>) {
    let pool = section.hint.path.as_deref().and_then(|path| super::kstat::name_and_pool(path).1);
    for line in section.lines {
        let entry =
            pool_line(pool.as_deref().unwrap_or(""), "state", line.text.trim(), line, reading);
        reading.evidence.pools.push(entry);
    }
}

/// Reads `zpool iostat`, with `-v`, `-l`, `-q`; histograms of `-w` and `-r` as tables of buckets.
///
/// The first report is the average since boot, so later ones replace it where there are any.
pub(crate) fn read_iostat(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut groups: Vec<&str> = Vec::new();
    let mut columns: Vec<String> = Vec::new();
    let mut histogram: Option<Histogram<'_, '_>> = None;
    let mut pool = String::new();
    for line in section.lines {
        let text = line.text.trim();
        let words: Vec<&str> = text.split_whitespace().collect();
        if words.is_empty() || text.bytes().all(|byte| byte == b'-' || byte == b' ') {
            continue;
        }
        if words.contains(&"operations")
            || words.contains(&"total_wait") && !zpool_histogram::is_heading(&words)
        {
            groups = words.into_iter().filter(|word| *word != "capacity").collect();
            continue;
        }
        if matches!(words[0], "pool" | "vdev") && words.contains(&"alloc") {
            columns = iostat_columns(&groups, &words);
            continue;
        }
        if zpool_histogram::is_heading(&words) {
            // `tank  total_wait  disk_wait ...`, then `latency  read  write  read ...`.
            end_histogram(&mut histogram, reading);
            pool = words[0].to_owned();
            groups = words[1..].to_vec();
            continue;
        }
        if let Some(begun) = Histogram::begin(&pool, &groups, &words, line) {
            end_histogram(&mut histogram, reading);
            histogram = Some(begun);
            continue;
        }
        if histogram.as_mut().is_some_and(|histogram| histogram.row(&words, line, reading)) {
            continue;
        }
        if columns.is_empty() || words.len() < 7.min(columns.len()) || words.len() > columns.len() {
            // Groups of devices (`logs`, `cache`, `mirror-0`) have no figures.
            if words.len() > 2 {
                reading.leave(line);
            }
            continue;
        }
        let mut table = reading.table("zpool_iostat").scope(words[0]);
        for (name, word) in columns.iter().zip(&words).skip(1) {
            match name.as_str() {
                "alloc_bytes" | "free_bytes" => table.gauge(name, number::bytes(word), line),
                name if name.ends_with("_bytes") => table.rate(name, number::bytes(word), line),
                name if name.ends_with("_ops") => table.rate(name, number::count(word), line),
                name if name.ends_with("_ns") => {
                    table.gauge(name, number::seconds(word).map(|value| value * 1e9), line)
                }
                name => table.gauge(name, number::count(word), line),
            }
        }
        reading.push(table);
    }
    end_histogram(&mut histogram, reading);
}

fn end_histogram(histogram: &mut Option<Histogram<'_, '_>>, reading: &mut Reading<'_>) {
    if let Some(histogram) = histogram.take() {
        histogram.end(reading);
    }
}

/// `read write` twice or more often, told apart by the line above.
fn iostat_columns(groups: &[&str], words: &[&str]) -> Vec<String> {
    let mut group = 0;
    let mut seen_in_group: Vec<&str> = Vec::new();
    let mut names = Vec::with_capacity(words.len());
    for word in words {
        if matches!(*word, "pool" | "vdev") {
            names.push((*word).to_owned());
            continue;
        }
        if matches!(*word, "alloc" | "free") {
            names.push(format!("{word}_bytes"));
            continue;
        }
        if matches!(*word, "scrub" | "trim" | "rebuild") {
            names.push((*word).to_owned());
            continue;
        }
        // `scrub`, `trim` and `rebuild` have one column each: `wait`.
        if seen_in_group.contains(word) || *word == "wait" && !seen_in_group.is_empty() {
            group += 1;
            seen_in_group.clear();
        }
        seen_in_group.push(word);
        let name = match groups.get(group).copied().unwrap_or("") {
            "operations" => format!("{word}_ops"),
            "bandwidth" => format!("{word}_bytes"),
            wait if wait.ends_with("wait") => format!("{wait}_{word}_ns"),
            "scrub" | "trim" | "rebuild" => format!("{}_wait_ns", groups[group]),
            queue => format!("{queue}_{word}"),
        };
        names.push(name);
    }
    names
}
