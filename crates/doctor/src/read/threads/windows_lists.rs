//! Lists of processes of Windows that are more than a table: `Get-Process` and `tasklist`.

use crate::read::table;
use crate::read::table::formats::systems::{GET_PROCESS, TASKLIST};
use crate::read::text::clean::Line;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

/// The columns of `tasklist`; their order is the same in every language.
const TASKS: [&str; 9] = [
    "Image Name",
    "PID",
    "Session Name",
    "Session#",
    "Mem Usage",
    "Status",
    "User Name",
    "CPU Time",
    "Window Title",
];

/// Whether the first of `lines` names the columns of `Get-Process`, or of a selection from it.
pub(crate) fn begins_processes(lines: &[Line<'_>]) -> bool {
    let text = lines.first().map_or("", |line| line.text.trim());
    let is_ruler = |text: &str| text.starts_with("--") && text.trim_matches(['-', ' ']).is_empty();
    GET_PROCESS[0].is_heading(text)
        && (text.contains("NPM(K)")
            || text.contains("PercentProcessorTime")
            || lines.get(1).is_some_and(|line| is_ruler(line.text.trim())))
}

/// Reads `Get-Process`.
pub(crate) fn read_processes(section: &Section<'_>, reading: &mut Reading<'_>) {
    table::read(&GET_PROCESS, section, reading);
}

fn is_ruler(line: &Line<'_>) -> bool {
    line.text.starts_with("===") && line.text.trim_matches(['=', ' ']).is_empty()
}

/// Whether the first of `lines` is the heading of `tasklist`; a ruler comes next.
pub(crate) fn begins_tasks(lines: &[Line<'_>]) -> bool {
    lines.first().is_some_and(|line| line.text.contains(" PID "))
        && lines.get(1).is_some_and(is_ruler)
}

/// Reads `tasklist`; its ruler marks the ends of cells.
pub(crate) fn read_tasks(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut widths: Vec<usize> = Vec::new();
    let mut lines = Vec::with_capacity(section.lines.len());
    for (at, line) in section.lines.iter().enumerate() {
        let text = if is_ruler(line) {
            widths = line.text.split(' ').map(str::len).collect();
            TASKS[..widths.len().min(TASKS.len())].join("\t")
        } else if section.lines.get(at + 1).is_some_and(is_ruler) {
            continue;
        } else {
            tabbed(&line.text, &widths)
        };
        lines.push(Line { number: line.number, text: text.into() });
    }
    table::read(&TASKLIST, &Section { lines: &lines, hint: section.hint.clone() }, reading);
}

/// A row with cells of these widths, separated by tabs.
fn tabbed(text: &str, widths: &[usize]) -> String {
    let mut rest = text.chars();
    let cell = |width: &usize| {
        let cell: String = rest.by_ref().take(width + 1).collect();
        cell.trim().to_owned()
    };
    widths.iter().map(cell).collect::<Vec<_>>().join("\t")
}
