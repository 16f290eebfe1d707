//! Load averages and uptime: `uptime`, `w`, the first line of `top`, `/proc/loadavg`,
//! `/proc/uptime`.

use std::sync::LazyLock;

use regex::Regex;

use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

static LOAD: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"load averages?:\s*(\d+[.,]\d+)(?:,\s*|\s+)(\d+[.,]\d+)(?:,\s*|\s+)(\d+[.,]\d+)")
        .expect("a constant pattern")
});
/// The end of the line in any language, and with any decimal mark.
static ANY_LOAD: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\p{L}\s?:\s*(\d+[.,]\d\d)(?:,\s*|\s+)(\d+[.,]\d\d)(?:,\s*|\s+)(\d+[.,]\d\d)$")
        .expect("a constant pattern")
});
static UP: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\bup\s+(?:(\d+)\s*(?:days?\(?s?\)?|\+)[,\s]*)?(?:(\d+):(\d\d)(?::(\d\d))?|(\d+)\s*min|(\d+)\s*hrs?|(\d+)\s*secs?)?").expect("a constant pattern")
});
/// Reads the line with `load average:`; also the first line of top.
pub(crate) fn heading(line: &Line<'_>, reading: &mut Reading<'_>) {
    let text = line.text.trim();
    if let Some(found) = LOAD.captures(text).or_else(|| ANY_LOAD.captures(text)) {
        let part = |at: usize| number::plain(&found[at].replace(',', ".")).unwrap_or(0.0);
        let load = [part(1), part(2), part(3)];
        reading.evidence.host.load = Some(reading.said(load, line));
    }
    // Linux: `up 90 days, 1:05`; FreeBSD: `up 3+04:05:06`.
    if let Some(found) = UP.captures(text) {
        let part = |at: usize, seconds: f64| {
            found
                .get(at)
                .and_then(|cell| number::plain(cell.as_str()))
                .map_or(0.0, |value| value * seconds)
        };
        let total = part(1, 86_400.0)
            + part(2, 3600.0)
            + part(3, 60.0)
            + part(4, 1.0)
            + part(5, 60.0)
            + part(6, 3600.0)
            + part(7, 1.0);
        if total > 0.0 {
            reading.evidence.host.uptime_s = Some(reading.said(total, line));
        }
    }
}

/// Reads `uptime` and `/proc/loadavg`.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    for line in section.lines {
        let text = line.text.trim();
        if text.contains("load average") || text.contains(" up ") && ANY_LOAD.is_match(text) {
            heading(line, reading);
        } else {
            reading.leave(line);
        }
    }
}

/// Whether a line is that of `uptime`, in any language.
pub(crate) fn is_uptime(text: &str) -> bool {
    let is_time = |word: &str| word.contains(':') && word.starts_with(|c: char| c.is_ascii_digit());
    text.starts_with("load average") && LOAD.is_match(text)
        || text.split_once(" up ").is_some_and(|(time, rest)| {
            time.split_whitespace().next().is_some_and(is_time)
                && (LOAD.is_match(rest) || ANY_LOAD.is_match(rest))
        })
}
