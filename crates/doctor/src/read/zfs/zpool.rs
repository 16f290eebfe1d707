//! `zpool status`: its fields and its devices. `zpool iostat` in all its forms.

use super::properties;
use super::zpool_histogram::{self, Histogram};
use crate::evidence::PoolLine;
use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;
use crate::read::text::word_lists;

const FIELDS: &str = "pool id state status action see scan scrub checkpoint remove config errors \
                      dedup expand comment";

/// The field that a line of `zpool status` begins.
fn field(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.trim().split_once(':')?;
    word_lists::has(FIELDS, name.trim()).then(|| (name.trim(), rest.trim()))
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
            // Indented lines continue a field.
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

/// Whether a line begins `zpool iostat` or one of its histograms.
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

/// Reads `zpool iostat`, with `-v`, `-l`, `-q`; the histograms of `-w` and `-r` become tables of
/// buckets.
///
/// The first report is the average since boot; later reports replace it.
pub(crate) fn read_iostat(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut groups: Vec<&str> = Vec::new();
    let mut columns: Vec<String> = Vec::new();
    let mut histogram: Option<Histogram<'_, '_>> = None;
    let mut pool = "";
    for line in section.lines {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        let Some(first) = words.first() else { continue };
        if line.text.bytes().all(|byte| byte == b'-' || byte == b' ') {
            continue;
        }
        if zpool_histogram::is_heading(&words) {
            // `tank  total_wait  disk_wait ...`, then `latency  read  write  read ...`.
            Histogram::end(histogram.take(), reading);
            (pool, groups) = (first, words[1..].to_vec());
        } else if words.contains(&"operations") || words.contains(&"total_wait") {
            groups = words.into_iter().filter(|word| *word != "capacity").collect();
        } else if matches!(*first, "pool" | "vdev") && words.contains(&"alloc") {
            columns = grouped(&groups, &words).iter().map(column).collect();
        } else if matches!(*first, "latency" | "req_size") {
            Histogram::end(histogram.take(), reading);
            let columns = grouped(&groups, &words[1..]).into_iter();
            let columns = columns.map(|(group, word)| match group {
                "" => word.to_owned(),
                group => format!("{group}_{word}"),
            });
            let columns = columns.collect();
            histogram = Some(Histogram::begin(pool, first, columns, line));
        } else if histogram.as_mut().is_some_and(|open| open.row(&words, line, reading)) {
        } else if columns.is_empty()
            || words.len() < 7.min(columns.len())
            || words.len() > columns.len()
        {
            // Groups of devices (`logs`, `cache`, `mirror-0`) have no figures of their own.
            if words.len() > 2 {
                reading.leave(line);
            }
        } else {
            let mut table = reading.table("zpool_iostat").scope(*first);
            for (name, word) in columns.iter().zip(&words).skip(1) {
                match name.rsplit('_').next() {
                    Some("bytes") if matches!(name.as_str(), "alloc_bytes" | "free_bytes") => {
                        table.gauge(name, number::bytes(word), line);
                    }
                    Some("bytes") => table.rate(name, number::bytes(word), line),
                    Some("ops") => table.rate(name, number::count(word), line),
                    Some("ns") => {
                        table.gauge(name, number::seconds(word).map(|value| value * 1e9), line);
                    }
                    _ => table.gauge(name, number::count(word), line),
                }
            }
            reading.push(table);
        }
    }
    Histogram::end(histogram, reading);
}

/// The words of the line with the columns, each with its group of the line above. A group ends
/// where a word repeats. A lone column is in no group.
fn grouped<'w>(groups: &[&'w str], words: &[&'w str]) -> Vec<(&'w str, &'w str)> {
    let (mut groups, mut group, mut seen) = (groups.iter(), "", Vec::new());
    let each = words.iter().map(|word| {
        if word_lists::has("pool vdev alloc free scrub trim rebuild", word) {
            return ("", *word);
        }
        if seen.is_empty() || seen.contains(word) || *word == "wait" {
            group = groups.next().copied().unwrap_or("");
            seen.clear();
        }
        seen.push(*word);
        (group, *word)
    });
    each.collect()
}

/// The name of a column's figure.
fn column((group, word): &(&str, &str)) -> String {
    match (*group, *word) {
        ("", "alloc" | "free") => format!("{word}_bytes"),
        ("", word) => word.to_owned(),
        ("operations", word) => format!("{word}_ops"),
        ("bandwidth", word) => format!("{word}_bytes"),
        ("scrub" | "trim" | "rebuild", _) => format!("{group}_wait_ns"),
        (wait, word) if wait.ends_with("wait") => format!("{wait}_{word}_ns"),
        (queue, word) => format!("{queue}_{word}"),
    }
}
