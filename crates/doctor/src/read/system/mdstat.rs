//! `/proc/mdstat`: arrays of Linux's own RAID, and which of them is being resynced, rebuilt,
//! checked or reshaped: that is work of the kernel that is not ZFS's.
//!
//! A table of a device has its state; progress and speed are there only while something runs.

use std::sync::LazyLock;

use regex::Regex;

use crate::read::text::number;
use crate::read::text::reading::{Reading, Rows};
use crate::read::text::section::Section;

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern")
}

static ARRAY: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r"^(md\S*?)\s*: (active|inactive)(?: \((?:auto-read-only|read-only)\))?\s+(.*)$")
});
static MEMBERS: LazyLock<Regex> = LazyLock::new(|| compiled(r"\[(\d+)/(\d+)\] \[([U_]+)\]"));
static PROGRESS: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"^(?:\[[=>.]*\]\s+)?(resync|recovery|check|repair|reshape)\s*=\s*(\d+(?:[.,]\d+)?)%",
        r"(?:\s+\(\d+/\d+\))?(?:\s+finish=([\d.]+)min)?(?:\s+speed=(\d+)K/sec)?",
    ))
});
static WAITS: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r"^(resync|recovery|check|repair|reshape)\s*=\s*(DELAYED|PENDING|REMOTE)$")
});

/// Whether a line begins the file, or an array of it.
pub(crate) fn is_beginning(text: &str) -> bool {
    let text = text.trim();
    text.starts_with("Personalities :")
        || ARRAY.is_match(text)
        || text.starts_with('[') && PROGRESS.is_match(text)
}

/// Reads the file.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut open: Option<Rows> = None;
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty()
            || ["Personalities :", "unused devices:", "bitmap:", "read_ahead"]
                .iter()
                .any(|start| text.starts_with(start))
        {
            continue;
        }
        if let Some(found) = ARRAY.captures(text) {
            close(open.take(), reading);
            let mut table = reading.table("mdstat").scope(&found[1]).taken(section.hint.time_s);
            table.text("state", &found[2], line);
            let level = found[3].split_whitespace().find(|word| word.starts_with("raid"));
            if let Some(level) = level {
                table.text("level", level, line);
            }
            let failed = found[3].matches("(F)").count();
            if failed > 0 {
                table.gauge("failed", Some(failed as f64), line);
            }
            open = Some(table);
            continue;
        }
        if let Some(found) = PROGRESS.captures(text) {
            let table = open.get_or_insert_with(|| reading.table("mdstat"));
            table.text("action", &found[1], line);
            table.gauge("progress_percent", number::percent(&found[2]), line);
            let of = |at: usize| found.get(at).and_then(|cell| number::plain(cell.as_str()));
            table.gauge("finish_s", of(3).map(|minutes| minutes * 60.0), line);
            table.gauge("speed_bytes", of(4).map(|kibibytes| kibibytes * 1024.0), line);
        } else if let (Some(found), Some(table)) = (WAITS.captures(text), open.as_mut()) {
            table.text("waits", &format!("{} {}", &found[1], &found[2].to_lowercase()), line);
        } else if let (Some(found), Some(table)) = (MEMBERS.captures(text), open.as_mut()) {
            table.gauge("members", number::plain(&found[1]), line);
            table.gauge("members_working", number::plain(&found[2]), line);
        } else if !(open.is_some() && text.contains(" blocks")) {
            reading.leave(line);
        }
    }
    close(open, reading);
}

fn close(open: Option<Rows>, reading: &mut Reading<'_>) {
    if let Some(table) = open {
        reading.push(table);
    }
}
