//! The benchmarks that ZFS runs when it is loaded: `fletcher_4_bench`, `vdev_raidz_bench`,
//! `chksum_bench`. They name the implementation in use and its speed on this host.

use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

/// Reads a table of implementations.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut names: Vec<&str> = Vec::new();
    let mut rows: Vec<(&Line<'_>, Vec<&str>)> = Vec::new();
    for line in section.lines {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        if words.first() == Some(&"implementation") {
            names = words;
        } else if !names.is_empty()
            && words.len() >= 2
            && (words[0] == "fastest" || number::plain(words[1]).is_some())
        {
            rows.push((line, words));
        } else if words.len() == 7 && words[2].starts_with("0x") {
            continue;
        } else {
            reading.leave(line);
        }
    }
    let name = match names[..] {
        [] => return,
        [_, first, ..] if first.starts_with("gen_") => "vdev_raidz_bench",
        [_, "digest", ..] => "chksum_bench",
        _ if names.contains(&"4k") || names.contains(&"16k") => "chksum_bench",
        _ => "fletcher_4_bench",
    };
    let mut table = reading.table(name);
    for (line, words) in &rows {
        let numeric = words.get(1).and_then(|cell| number::plain(cell)).is_some();
        if words[0] == "fastest" || !numeric {
            if let Some(fastest) = words.get(1) {
                table.text("fastest", fastest, line);
            }
            for (column, cell) in names.iter().zip(words).skip(2) {
                table.text(&format!("fastest_{column}"), cell, line);
            }
            continue;
        }
        // The figure of the first column goes under the plain name of the implementation.
        table.gauge(words[0], number::plain(words[1]), line);
        for (column, cell) in names.iter().zip(words).skip(1) {
            table.gauge(&format!("{}_{column}", words[0]), number::plain(cell), line);
        }
    }
    reading.push(table);
}
