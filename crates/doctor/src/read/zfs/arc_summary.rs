//! `arc_summary`, old (Perl and Python 2: tabs, `ARC Size:`) and new (0.8 on: indented, dotted).
//!
//! All figures go into the table `arc_summary` under their label. A label that stands for a row of
//! arcstats also goes into `arcstats` under that row's name. Tunables are parameters. The verdict
//! HEALTHY only says that no allocation was throttled, so it is kept as a word.

use super::kstat;
use crate::pattern::Pattern;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;
use crate::read::text::word_lists;

/// Rows of arcstats with their labels, in lower case and without parentheses.
const ROWS: [(&str, &str); 26] = [
    ("size", "arc size|arc size current"),
    ("c", "target size|target size adaptive"),
    ("c_min", "min size|min size hard limit"),
    ("c_max", "max size|max size high water"),
    ("memory_throttle_count", "memory throttle count"),
    ("deleted", "deleted"),
    ("recycle_miss", "recycle misses"),
    ("mutex_miss", "mutex misses"),
    ("evict_skip", "evict skips|eviction skips"),
    ("evict_l2_skip", "eviction skips due to l2 writes"),
    ("evict_l2_cached", "l2 cached evictions"),
    ("evict_l2_eligible", "l2 eligible evictions"),
    ("evict_l2_ineligible", "l2 ineligible evictions"),
    ("hash_elements_max", "elements max"),
    ("hash_elements", "elements current"),
    ("hash_collisions", "collisions"),
    ("hash_chain_max", "chain max"),
    ("hash_chains", "chains"),
    ("arc_meta_used", "metadata cache size|metadata cache size current|meta_used"),
    ("arc_meta_limit", "metadata cache size hard limit|meta_limit"),
    ("dnode_size", "dnode cache size|dnode cache size current"),
    (
        "arc_dnode_limit",
        "dnode cache size target|dnode cache size hard limit|dnode cache target|dnode_limit",
    ),
    ("hdr_size", "header size"),
    ("l2_hdr_size", "l2 header size"),
    ("memory_available_bytes", "available memory size"),
    ("memory_free_bytes", "free memory size"),
];

static OLD: Pattern = Pattern::new(r"^\s*(?<label>\S[^:]*):\s+(?<value>\S.*)$");
static TUNABLE: Pattern = Pattern::new(
    r"^\s+((?:zfs|zio|zvol|l2arc|spa|spl|dbuf|dmu|metaslab|send|zil|vdev|icp|arc|brt|ddt|raidz|ignore|vfs\.zfs)[a-z0-9_.]*)(?:\s*=\s*|\s+)(\S.*)$",
);
static PARENTHESES: Pattern = Pattern::new(r"\s*\(([^)]*)\)");
static NEW: Pattern = Pattern::new(
    r"^\s*(?<label>\S.*?):?\s{2,}(?:<?\s*(?<percent>\d[\d.,]*)\s*%\s+)?(?<value>\S.*)$",
);

/// Reads the report.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut arcstats = reading.table("arcstats");
    let mut summary = reading.table("arc_summary");
    for line in section.lines {
        let text = line.text.trim();
        if text.bytes().all(|byte| b"-=".contains(&byte))
            || text.starts_with("ZFS Subsystem Report")
        {
            continue;
        }
        if let Some(found) = TUNABLE.captures(&line.text) {
            reading.parameter(&found[1], &found[2], line);
            continue;
        }
        let Some(found) = NEW.captures(&line.text).or_else(|| OLD.captures(text)) else {
            // Titles of parts (`ARC Misc:`) carry no figure; other text belongs to another reader.
            if !is_title(text) {
                reading.leave(line);
            }
            continue;
        };
        let label = PARENTHESES.replace_all(&found["label"], " $1").to_lowercase();
        let label = label.split([' ', '\t', ':']).filter(|word| !word.is_empty());
        let plain = label.collect::<Vec<_>>().join(" ");
        let key = plain.replace([' ', '-', '/'], "_");
        // `100.02%  34.20  GiB`, `1.5 GiB`, `12.3k`, `HEALTHY`.
        let mut words: Vec<&str> = found["value"].split_whitespace().collect();
        let mut share = found.name("percent").and_then(|part| number::plain(part.as_str()));
        if share.is_none() {
            share = words.first().and_then(|word| word.strip_suffix('%')).and_then(number::plain);
            words.drain(..usize::from(share.is_some() && words.len() > 1));
        }
        summary.gauge(&format!("{key}_percent"), share, line);
        // `16:1  31.4 GiB`: the largest size, after its ratio to the smallest.
        if words.len() > 2 && words[0].ends_with(":1") {
            words.remove(0);
        }
        let Some(amount) = amount(&words) else {
            if share.is_none() {
                summary.text(&key, &found["value"], line);
            }
            continue;
        };
        summary.gauge(&key, Some(amount), line);
        if let Some((row, _)) = ROWS.iter().find(|(_, labels)| word_lists::is(labels, &plain)) {
            arcstats.number(row, kstat::number(kstat::kind_of("arcstats", row), amount), line);
        }
    }
    reading.push(arcstats);
    reading.push(summary);
}

/// Whether a line is the title of a part, or says that a part is skipped.
fn is_title(text: &str) -> bool {
    text.ends_with(':')
        || text.contains("skipping section")
        || text.split_whitespace().count() <= 3
            && text.starts_with(|c: char| c.is_ascii_uppercase())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" -/()".contains(&byte))
}

/// `34.20 GiB`, `12.3k`, `1.69 G` (counts in thousands), `1688362305`.
fn amount(words: &[&str]) -> Option<f64> {
    match words {
        // The old report abbreviates thousands, millions and billions.
        [one] if one.ends_with('b') => number::count(&one.replace('b', "G")),
        [one] | [one, "Bytes" | "bytes" | "B"] => number::count(one),
        [value, unit @ ("KiB" | "MiB" | "GiB" | "TiB" | "PiB"), ..] => {
            number::bytes(&format!("{value}{unit}"))
        }
        [value, unit @ ("k" | "K" | "m" | "M" | "b" | "B" | "G" | "T"), ..] => {
            let unit = match *unit {
                "b" | "B" => "G",
                unit => unit,
            };
            number::count(&format!("{value}{unit}"))
        }
        _ => None,
    }
}
