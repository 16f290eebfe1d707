//! `/proc/spl/kstat/taskq/summary` (OpenZFS 2.3): threads and tasks of each queue, one a row.

use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

/// The columns behind the name, without bars and brackets.
const FIGURES: [&str; 8] =
    ["threads", "active", "idle", "threads_max", "pending", "normal", "high", "delayed"];

/// Whether a line names the columns.
pub(crate) fn is_heading(text: &str) -> bool {
    text.starts_with("taskq name") && text.contains("[act")
}

/// Whether a line stands above the heading, or is a row.
pub(crate) fn is_part(text: &str) -> bool {
    text.contains('|')
}

/// Reads the rows.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    for line in section.lines {
        let text = line.text.trim();
        let bare = text.replace(['|', '[', ']'], " ");
        let words: Vec<&str> = bare.split_whitespace().collect();
        let (name, cells) = match words.split_first() {
            Some((name, cells)) if cells.len() == FIGURES.len() => (name, cells),
            // What is above the rows is no figure.
            _ if is_heading(text) || text.starts_with(['|', '-']) || words.len() == 7 => continue,
            _ => {
                reading.leave(line);
                continue;
            }
        };
        let mut table = reading.table("taskq").scope(*name).taken(section.hint.time_s);
        for (figure, cell) in FIGURES.iter().zip(cells) {
            table.gauge(figure, number::plain(cell), line);
        }
        reading.push(table);
    }
}
