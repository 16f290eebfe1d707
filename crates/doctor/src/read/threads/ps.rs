//! `ps`: aux, -ef, -eL with chosen columns, and rows without their heading.
//!
//! `%CPU` of ps is an average over the life of the process, so it goes to `life_percent`; a process
//! that began to spin an hour ago hardly shows there.

use std::sync::LazyLock;

use regex::Regex;

use super::top::short_name;
use crate::evidence::Thread;
use crate::read::text::clean::Line;
use crate::read::text::columns::{self, Columns};
use crate::read::text::frame;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

static AUX_ROW: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"^\s*(\S+)\s+(\d+)\s+(\d+(?:[.,]\d+)?)\s+(\d+(?:[.,]\d+)?)\s+(\d+)\s+(\d+)\s+(\S+)\s+([RSDZTtIWXL][<NLsl+WE]*)\s+(\S+)\s+(\d[\d:.-]*)\s+(\S.*)$";
    Regex::new(pattern).expect("a constant pattern")
});

/// Whether a line is a row of `ps aux`.
pub(crate) fn is_row(text: &str) -> bool {
    AUX_ROW.is_match(text)
}

/// Whether a line names the columns of ps.
pub(crate) fn is_heading(text: &str) -> bool {
    let has = |names: &[&str]| text.split_whitespace().any(|word| names.contains(&word));
    has(&["PID", "TID", "LWP", "SPID"])
        && has(&["COMMAND", "CMD", "COMM", "COMMAND"])
        && has(&["STAT", "S", "TTY", "TT", "STARTED", "ELAPSED", "VSZ", "TIME", "PPID", "WCHAN"])
        && !text.contains("TIME+")
        && !text.contains("WCPU")
        && !text.contains("VIRT")
        && !text.contains("KSTACK")
}

/// Reads the list.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut columns: Option<(Columns<'_>, Option<usize>)> = None;
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty() {
            continue;
        }
        if is_heading(text) {
            let found = Columns::of(text);
            let command = found.position(&["COMMAND", "CMD", "COMM"]);
            columns = Some((found, command));
            reading.list += 1;
            continue;
        }
        let thread = match &columns {
            Some((columns, command)) => by_columns(text, columns, *command, line, reading),
            None => None,
        };
        match thread.or_else(|| by_pattern(text, line, reading)) {
            Some(thread) => reading.evidence.threads.push(thread),
            None => reading.leave(line),
        }
    }
}

fn by_columns(
    text: &str,
    columns: &Columns<'_>,
    command_at: Option<usize>,
    line: &Line<'_>,
    reading: &Reading<'_>,
) -> Option<Thread> {
    let command_at = command_at?;
    let cells = if command_at + 1 == columns.names().len() {
        columns.cells(text)?
    } else {
        // The command stands in the middle (`ps -eLo ...,comm,time`): its blanks are not told from
        // columns, so only rows with one word there are read by column.
        columns.words(text)?
    };
    let cell = |names: &[&str]| columns::cell(columns, &cells, names);
    let id: u64 = cell(&["TID", "LWP", "SPID"]).or_else(|| cell(&["PID"]))?.parse().ok()?;
    // In `-ef` the time may be glued to a date column; what is no time is not taken for one.
    let times: Vec<f64> = columns
        .names()
        .iter()
        .zip(&cells)
        .filter(|(name, _)| matches!(**name, "TIME" | "TIME+"))
        .filter_map(|(_, cell)| number::cpu_seconds(cell))
        .collect();
    Some(thread(
        cells.get(command_at)?,
        id,
        cell(&["STAT", "S"]),
        cell(&["%CPU", "C", "PCPU"]).and_then(number::percent),
        times.last().copied(),
        cell(&["VSZ"]) == Some("0"),
        line,
        reading,
    ))
}

fn by_pattern(text: &str, line: &Line<'_>, reading: &Reading<'_>) -> Option<Thread> {
    let found = AUX_ROW.captures(text)?;
    let percent = number::percent(&found[3]);
    let seconds = number::cpu_seconds(&found[10]);
    Some(thread(
        &found[11],
        found[2].parse().ok()?,
        Some(&found[8]),
        percent,
        seconds,
        &found[5] == "0",
        line,
        reading,
    ))
}

#[expect(clippy::too_many_arguments, reason = "the columns of one row")]
fn thread(
    raw: &str,
    id: u64,
    state: Option<&str>,
    percent: Option<f64>,
    seconds: Option<f64>,
    no_memory: bool,
    line: &Line<'_>,
    reading: &Reading<'_>,
) -> Thread {
    // `ps f` draws a tree in front of the command.
    let raw = raw.trim_start_matches(['\\', '_', '|', ' ', '`', '-']);
    let (name, by_dress) = frame::thread(raw);
    Thread {
        command: name.contains(' ').then(|| name.clone()),
        id: Some(id),
        kernel: by_dress.or(no_memory.then_some(true)),
        state: state.and_then(|state| state.chars().next()).filter(char::is_ascii_alphabetic),
        life_percent: percent,
        cpu_time_s: seconds,
        ..reading.thread(short_name(&name), line)
    }
}
