//! Where a host swaps to: `swapon`, `/proc/swaps`. Swap on a zvol is told by its device (`zd0`).

use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

/// Whether a line names the columns.
pub(crate) fn is_heading(text: &str) -> bool {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    let first = words.first().is_some_and(|word| matches!(word.as_str(), "name" | "filename"));
    first && words.get(1..4).is_some_and(|rest| rest == ["type", "size", "used"])
}

/// Reads both: sizes are KiB in the file, and with a suffix from the command.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut unit = 1024.0;
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty() {
            continue;
        }
        if is_heading(text) {
            unit = if text.starts_with("Filename") { 1024.0 } else { 1.0 };
            continue;
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let bytes = |text: &str| {
            let plain = number::plain(text).map(|value| value * unit);
            plain.or_else(|| number::bytes(text))
        };
        let sizes = words
            .get(2)
            .and_then(|size| bytes(size))
            .zip(words.get(3).and_then(|used| bytes(used)));
        let Some((size, used)) = sizes.filter(|_| words[0].starts_with('/')) else {
            reading.leave(line);
            continue;
        };
        let mut table = reading.table("swap").scope(words[0]).taken(section.hint.time_s);
        table.text("type", words[1], line);
        table.gauge("size_bytes", Some(size), line);
        table.gauge("used_bytes", Some(used), line);
        reading.push(table);
    }
}
