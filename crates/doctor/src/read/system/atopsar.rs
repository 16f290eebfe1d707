//! `atopsar`: reports of atop's recordings, one per option. Reports with one row per CPU or disk
//! and interval are tables. The report of the top three programs (`-O`) has all three in one row.
//!
//! The last name of each heading identifies its report (`_cpu_`, `_dsk_`, `_top3_`, `_procs_`).

use crate::read::table::Table;
use crate::read::table::formats::intervals::ATOPSAR;
use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

/// Whether a line is the heading of a report.
pub(crate) fn begins(text: &str) -> bool {
    is_of_programs(text) || ATOPSAR.iter().any(|format| format.is_heading(text))
}

/// The report's mark follows the last name directly.
fn is_of_programs(text: &str) -> bool {
    text.trim_end().ends_with("cpu%_top3_")
}

/// Reads one report or several.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut table = Table::new(&ATOPSAR, section);
    let mut of_programs = false;
    for line in section.lines {
        if begins(line.text.trim()) {
            of_programs = is_of_programs(&line.text);
            if of_programs {
                continue;
            }
        }
        let taken = if of_programs { programs(line, reading) } else { table.take(line, reading) };
        if !taken {
            reading.leave(line);
        }
    }
    table.end(reading);
}

/// Takes three programs: number, name and percent of one CPU each. `false` if the row has none.
fn programs(line: &Line<'_>, reading: &mut Reading<'_>) -> bool {
    let text = line.text.trim();
    let timed = text.split_once(char::is_whitespace);
    let rest = timed.filter(|(time, _)| number::time_of_day(time).is_some());
    let mut found = Vec::new();
    // Each interval is a list of its own.
    let list = reading.list + 1;
    for part in rest.map_or(text, |(_, rest)| rest).split('|') {
        let words: Vec<&str> = part.split_whitespace().collect();
        let [id, name @ .., percent] = &words[..] else { continue };
        let figure = percent.strip_suffix('%').and_then(number::percent);
        if let (Ok(id), Some(percent)) = (id.parse::<u64>(), figure)
            && !name.is_empty()
        {
            let mut thread = reading.thread(name.join(" "), line);
            (thread.id, thread.cpu_percent, thread.list) = (Some(id), Some(percent), list);
            found.push(thread);
        }
    }
    let any = !found.is_empty();
    if any {
        reading.list = list;
    }
    reading.evidence.threads.extend(found);
    any || text.is_empty()
}
